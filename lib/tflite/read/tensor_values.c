/* Tensors of a file and the values that represent them, and what converts one of these to another. */
#include "tflite/read/tensor_values.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

oct_status oct_tfl_unread(const oct_tfl_reader *r, oct_err *err, const char *hint, const char *fmt, ...)
{
    char text[300], what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    oct_fail(err, OCT_EUNSUPPORTED, "%s cannot be read: %s",
             r->op ? oct_tfl_operator_text(r->m, r->at, text, sizeof text) : "the model", what);
    oct_hint(err, "%s", hint ? hint : "give the model that the file was made from, exported as .onnx");
    return OCT_EUNSUPPORTED;
}

/* ---- nodes ---- */

oct_status oct_tfl_second(oct_tfl_reader *r, int k, int node, int slot, int *value, oct_err *err)
{
    const char *name = oct_arena_printf(r->arena, "%s_%s", r->tensor[r->op->out[k]].name, r->g->node[node].op);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(r->g, name, OCT_UNDEFINED, value, err));
    return oct_graph_set_output(r->g, node, slot, *value, err);
}

/* A node for a tensor, whose value has a name that begins with that of the tensor. name: of the node; runtimes refuse
 * names that occur twice, and "" is none. */
static oct_status add_named(oct_tfl_reader *r, const char *of, const char *name, const char *op, const int *in, int n,
                            int n_out, int *node, int *value, oct_err *err)
{
    int id, made; /* value may be one of in */
    const char *result = oct_arena_printf(r->arena, "%s_%s", of, op);
    if (!result)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(r->g, result, OCT_UNDEFINED, &made, err));
    OCT_TRY(oct_graph_add_node(r->g, op, "", name, n, n_out, -1, &id, err));
    for (int i = 0; i < n; i++)
        if (in[i] >= 0)
            OCT_TRY(oct_graph_set_input(r->g, id, i, in[i], err));
    *node = id;
    *value = made;
    return oct_graph_set_output(r->g, id, 0, made, err);
}

static oct_status add_node(oct_tfl_reader *r, const char *of, const char *op, const int *in, int n, int n_out,
                           int *node, int *value, oct_err *err)
{
    return add_named(r, of, "", op, in, n, n_out, node, value, err);
}

oct_status oct_tfl_node(oct_tfl_reader *r, int k, const char *op, const int *in, int n, int *node, int *value,
                        oct_err *err)
{
    const char *of = r->tensor[r->op->out[k]].name;
    const bool many = strcmp(op, "Split") == 0, first = r->named != r->at + 1;
    r->named = r->at + 1;
    return add_named(r, of, first ? of : "", op, in, n, many ? r->op->n_out : 1, node, value, err);
}

oct_status oct_tfl_const_ints(oct_tfl_reader *r, const char *name, const int64_t *v, int n, int *value, oct_err *err)
{
    return oct_graph_new_const_s64(r->g, name, 1, (int64_t[]){ n }, v, value, err);
}

oct_status oct_tfl_const_real(oct_tfl_reader *r, const char *name, float x, int *value, oct_err *err)
{
    return oct_graph_new_const_f32(r->g, name, 0, NULL, &x, value, err);
}

oct_status oct_tfl_activate(oct_tfl_reader *r, int slot, int *value, oct_err *err)
{
    const int act = oct_tfl_option(r->op, slot, OCT_TFL_ACT_NONE);
    int node, in[3] = { *value, -1, -1 };
    switch (act) {
    case OCT_TFL_ACT_NONE: return OCT_OK;
    case OCT_TFL_ACT_RELU: return oct_tfl_node(r, 0, "Relu", in, 1, &node, value, err);
    case OCT_TFL_ACT_TANH: return oct_tfl_node(r, 0, "Tanh", in, 1, &node, value, err);
    case OCT_TFL_ACT_RELU_N1_TO_1:
    case OCT_TFL_ACT_RELU6:
        OCT_TRY(oct_tfl_const_real(r, "least", act == OCT_TFL_ACT_RELU6 ? 0 : -1, &in[1], err));
        OCT_TRY(oct_tfl_const_real(r, "most", act == OCT_TFL_ACT_RELU6 ? 6 : 1, &in[2], err));
        return oct_tfl_node(r, 0, "Clip", in, 3, &node, value, err);
    default: return oct_tfl_unread(r, err, NULL, "its fused activation is number %d", act);
    }
}

/* ---- operands ---- */

static int index_in(const oct_tfl_reader *r, int k)
{
    const int t = k < r->op->n_in ? r->op->in[k] : -1;
    return t >= 0 && r->tensor[t].source ? r->tensor[t].source - 1 : t;
}

const oct_tfl_tensor *oct_tfl_in(const oct_tfl_reader *r, int k)
{
    const int t = index_in(r, k);
    return t >= 0 ? &r->m->tensor[t] : NULL;
}

const oct_tfl_tensor *oct_tfl_out(const oct_tfl_reader *r, int k)
{
    return k < r->op->n_out ? &r->m->tensor[r->op->out[k]] : NULL;
}

static oct_status malformed(const oct_tfl_reader *r, oct_err *err, const char *fmt, ...) OCT_PRINTF(3, 4);
static oct_status malformed(const oct_tfl_reader *r, oct_err *err, const char *fmt, ...)
{
    char text[300], what[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    oct_fail(err, OCT_EMALFORMED, "%s: %s", oct_tfl_operator_text(r->m, r->at, text, sizeof text), what);
    oct_hint(err, "the file is damaged, or made by a faulty converter: export the model again");
    return OCT_EMALFORMED;
}

oct_status oct_tfl_need(const oct_tfl_reader *r, int k, int least, oct_err *err)
{
    const oct_tfl_tensor *t = oct_tfl_in(r, k);
    if (!t)
        return malformed(r, err, "it has no operand %d", k);
    if (t->rank < least)
        return malformed(r, err, "its operand %d has %d axes, at least %d are expected", k, t->rank, least);
    return OCT_OK;
}

static oct_status show(oct_tfl_reader *r, int tensor, const oct_tfl_order *order, int value, oct_err *err)
{
    oct_tfl_found *f = &r->tensor[tensor];
    if (!OCT_GROW(r->arena, f->shown, f->n, f->cap))
        return oct_nomem(err);
    f->shown[f->n++] = (oct_tfl_shown){ *order, value };
    return OCT_OK;
}

static const oct_tfl_shown *find_shown(const oct_tfl_reader *r, int tensor, const oct_tfl_order *order)
{
    const oct_tfl_found *f = &r->tensor[tensor];
    for (size_t i = 0; i < f->n; i++)
        if (oct_tfl_same_order(&f->shown[i].order, order, r->m->tensor[tensor].rank))
            return &f->shown[i];
    return NULL;
}

oct_tfl_order oct_tfl_shown_order(const oct_tfl_reader *r, int k)
{
    const int t = index_in(r, k);
    return t >= 0 && r->tensor[t].n && !r->m->tensor[t].data ? r->tensor[t].shown[0].order : oct_tfl_plain();
}

/* ---- integers ---- */

/* The operands of QuantizeLinear and DequantizeLinear: scale and zero point. */
static oct_status scale_and_zero(oct_tfl_reader *r, const char *of, const oct_quant *q, int *scale, int *zero,
                                 oct_err *err)
{
    const int rank = q->n > 1;
    const int64_t dims[] = { q->n };
    size_t bytes;
    const char *name = oct_arena_printf(r->arena, "%s_scale", of), *point = oct_arena_printf(r->arena, "%s_zero", of);
    if (!name || !point || !oct_dtype_bytes(q->dtype, q->n, &bytes))
        return oct_nomem(err);
    uint8_t *zp = oct_arena_alloc(r->arena, bytes);
    if (!zp)
        return oct_nomem(err);
    const size_t each = bytes / (size_t)q->n;
    for (int i = 0; i < q->n; i++) {
        const uint32_t x = (uint32_t)q->zp[i];
        memcpy(zp + each * (size_t)i, &x, each);
    }
    OCT_TRY(oct_graph_new_const_f32(r->g, name, rank, dims, q->scale, scale, err));
    return oct_graph_new_const(r->g, point, q->dtype, rank, dims, zp, zero, err);
}

/* The integers that quantized activations may have. */
static bool rounds_to(oct_dtype t)
{
    return t == OCT_S8 || t == OCT_U8 || t == OCT_S16 || t == OCT_U16;
}

/* Rounds a value to the integers of a tensor. */
static oct_status round_value(oct_tfl_reader *r, int tensor, int *value, oct_err *err)
{
    const oct_quant *q = r->m->tensor[tensor].quant;
    const char *of = r->tensor[tensor].name;
    int in[3] = { *value, -1, -1 }, node;
    if (!q)
        return OCT_OK;
    if (q->n > 1 || !rounds_to(q->dtype))
        return oct_tfl_unread(r, err, NULL, "'%.80s' is quantized %s%s", of,
                              q->n > 1 ? "by channel, which is for constants" : "to ",
                              q->n > 1 ? "" : oct_dtype_name(q->dtype));
    OCT_TRY(scale_and_zero(r, of, q, &in[1], &in[2], err));
    OCT_TRY(add_node(r, of, "QuantizeLinear", in, 3, 1, &node, &in[0], err));
    return add_node(r, of, "DequantizeLinear", in, 3, 1, &node, value, err);
}

/* ---- constants ---- */

/* Copies elements of `each` bytes: axis i of the copy is axis perm[i]. */
static void permute(uint8_t *to, const uint8_t *from, size_t each, int rank, const int64_t *dims, const int *perm)
{
    int64_t step[OCT_MAX_RANK], at[OCT_MAX_RANK] = { 0 }, all = 1;
    size_t stride[OCT_MAX_RANK], n = each;
    for (int i = rank; i-- > 0;) {
        stride[i] = n;
        n *= (size_t)dims[i];
        all *= dims[i];
    }
    for (int i = 0; i < rank; i++)
        step[i] = dims[perm[i]];
    for (int64_t e = 0; e < all; e++) {
        size_t place = 0;
        for (int i = 0; i < rank; i++)
            place += (size_t)at[i] * stride[perm[i]];
        memcpy(to, from + place, each);
        to += each;
        for (int i = rank; i-- > 0 && ++at[i] == step[i];)
            at[i] = 0;
    }
}

/* Elements as graphs have them: float16 is read as float32, 4-bit integers as int8. */
static oct_status widen(oct_tfl_reader *r, const oct_tfl_tensor *t, int64_t count, oct_dtype *type, const void **data,
                        oct_err *err)
{
    *type = oct_tfl_type_dtype(t->type);
    *data = t->data;
    if (*type == OCT_UNDEFINED)
        return oct_tfl_unread(r, err, NULL, "'%.80s' is %s", t->name, oct_tfl_type_name(t->type));
    if (*type == OCT_F16) {
        float *wide = oct_arena_calloc(r->g->arena, (size_t)count + 1, sizeof *wide);
        for (int64_t i = 0; i < count && wide; i++)
            wide[i] = oct_f16_to_f32(((const uint16_t *)t->data)[i]);
        *type = OCT_F32;
        *data = wide;
    } else if (*type == OCT_S4) {
        int8_t *wide = oct_arena_alloc(r->g->arena, (size_t)count + 1);
        for (int64_t i = 0; i < count && wide; i++) {
            const int half = ((const uint8_t *)t->data)[i / 2] >> 4 * (i % 2) & 15;
            wide[i] = (int8_t)(half > 7 ? half - 16 : half);
        }
        *type = OCT_S8;
        *data = wide;
    }
    return *data ? OCT_OK : oct_nomem(err);
}

/* Copies are bounded by the file: an operator of a few bytes may refer to a constant of any size. */
static oct_status count_copy(oct_tfl_reader *r, uint64_t bytes, oct_err *err)
{
    r->copied += bytes;
    if (r->copied <= r->most_copied)
        return OCT_OK;
    return oct_tfl_unread(r, err, NULL, "too many operators want the same constants in another order of axes");
}

/* The real numbers of 64-bit integers, which DequantizeLinear does not take. */
static oct_status real_constant(oct_tfl_reader *r, const oct_tensor *t, const oct_quant *q, int axis, const char *name,
                                int *value, oct_err *err)
{
    float *real = oct_arena_calloc(r->arena, (size_t)t->count + 1, sizeof *real);
    int64_t inner = 1;
    if (!real)
        return oct_nomem(err);
    for (int i = axis + 1; i < t->rank; i++)
        inner *= t->dims[i];
    for (int64_t i = 0; i < t->count; i++) {
        const int c = q->n > 1 ? (int)(i / inner % q->n) : 0;
        const double x = (double)((const int64_t *)t->data)[i] - q->zp[c];
        real[i] = (float)(x * (double)q->scale[c]);
    }
    return oct_graph_new_const_f32(r->g, name, t->rank, t->dims, real, value, err);
}

static oct_status dequantize(oct_tfl_reader *r, int tensor, const oct_tensor *t, const oct_quant *q, int axis,
                             int *value, oct_err *err)
{
    const char *of = r->tensor[tensor].name;
    int in[3] = { *value, -1, -1 }, node;
    oct_quant typed = *q;
    if (t->dtype == OCT_S64)
        return real_constant(r, t, q, axis, oct_arena_printf(r->arena, "%s_real", of), value, err);
    typed.dtype = t->dtype;
    OCT_TRY(scale_and_zero(r, of, &typed, &in[1], &in[2], err));
    OCT_TRY(add_node(r, of, "DequantizeLinear", in, 3, 1, &node, value, err));
    return q->n > 1 ? oct_node_set_int(r->g, node, "axis", axis, err) : OCT_OK;
}

static oct_status make_constant(oct_tfl_reader *r, int tensor, int rank, const int64_t *dims, const int *perm,
                                const oct_quant *like, int *value, oct_err *err)
{
    const oct_tfl_tensor *t = &r->m->tensor[tensor];
    const oct_quant *q = t->quant ? t->quant : like;
    const char *name = r->tensor[tensor].name;
    int64_t count, made[OCT_MAX_RANK];
    oct_dtype type;
    const void *data;
    bool moved = false;
    int axis = 0;
    if (!oct_count(dims, rank, &count))
        return oct_tfl_unread(r, err, NULL, "'%.80s' is too large", name);
    OCT_TRY(widen(r, t, count, &type, &data, err));
    for (int i = 0; i < rank; i++) {
        made[i] = dims[perm[i]];
        moved = moved || perm[i] != i;
        axis = q && perm[i] == q->axis + rank - t->rank ? i : axis;
    }
    if (moved || data != t->data)
        OCT_TRY(count_copy(r, t->bytes + (uint64_t)rank, err));
    oct_tensor *x = oct_arena_calloc(r->g->arena, 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    if (moved) {
        OCT_TRY(oct_tensor_new(r->g->arena, type, rank, made, &x, err));
        permute((uint8_t *)(uintptr_t)x->data, data, (size_t)oct_dtype_bits(type) / 8, rank, dims, perm);
    } else {
        *x = (oct_tensor){ .dtype = type, .rank = rank, .count = count, .data = data };
        x->dims = oct_arena_memdup(r->g->arena, made, sizeof made);
        if (!x->dims || !oct_dtype_bytes(type, count, &x->bytes))
            return oct_nomem(err);
    }
    if (q)
        name = oct_arena_printf(r->arena, "%s_quantized", name);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(r->g, name, type, value, err));
    OCT_TRY(oct_graph_set_dims(r->g, *value, rank, made, err));
    oct_graph_set_const(r->g, *value, x);
    return q ? dequantize(r, tensor, x, q, axis, value, err) : OCT_OK;
}

oct_status oct_tfl_take_constant(oct_tfl_reader *r, int k, int rank, const int64_t *dims, const int *perm,
                                 const oct_quant *like, int *value, oct_err *err)
{
    const oct_tfl_tensor *t = oct_tfl_in(r, k);
    OCT_TRY(oct_tfl_need(r, k, 0, err));
    if (!t->data)
        return oct_tfl_unread(r, err, NULL, "its operand '%.80s' is computed", t->name);
    return make_constant(r, index_in(r, k), rank, dims, perm, like, value, err);
}

/* Copies rows of one matrix, and their scales. */
static oct_status stack_one(oct_tfl_reader *r, int k, const oct_tfl_tensor *first, size_t at, uint8_t *to, float *scale,
                            oct_err *err)
{
    const oct_tfl_tensor *t = oct_tfl_in(r, k);
    OCT_TRY(oct_tfl_need(r, k, 2, err));
    const oct_quant *q = t->quant;
    const bool whole = t->type == OCT_TFL_INT8 && q && q->n == 1 && q->zp[0] == 0;
    if (!t->data || (!whole && t->type != OCT_TFL_FLOAT32))
        return oct_tfl_unread(r, err, NULL, "its operand '%.80s' is no constant of float32, or of int8 with one scale",
                              t->name);
    if (t->rank != 2 || t->type != first->type || t->dims[0] != first->dims[0] || t->dims[1] != first->dims[1])
        return malformed(r, err, "its matrices differ in type or size");
    memcpy(to + at * t->bytes, t->data, t->bytes);
    for (int32_t i = 0; whole && i < t->dims[0]; i++)
        scale[at * (size_t)t->dims[0] + (size_t)i] = q->scale[0];
    return OCT_OK;
}

oct_status oct_tfl_take_stacked(oct_tfl_reader *r, const int *k, int n, int *value, oct_err *err)
{
    const oct_tfl_tensor *t = oct_tfl_in(r, k[0]);
    OCT_TRY(oct_tfl_need(r, k[0], 2, err));
    const int64_t dims[] = { 1, (int64_t)n * t->dims[0], t->dims[1] };
    const oct_dtype type = t->type == OCT_TFL_INT8 ? OCT_S8 : OCT_F32;
    const char *name = r->tensor[index_in(r, k[0])].name;
    size_t bytes, rows = (size_t)dims[1], scales;
    if (!oct_mul_size(t->bytes, (size_t)n, &bytes) || dims[1] > INT32_MAX)
        return oct_tfl_unread(r, err, NULL, "'%.80s' is too large", name);
    if (!oct_mul_size(rows, sizeof(float) + sizeof(int32_t), &scales)) /* rows may be empty, and many */
        return oct_tfl_unread(r, err, NULL, "'%.80s' has too many rows", name);
    OCT_TRY(count_copy(r, bytes, err));
    OCT_TRY(count_copy(r, scales, err));
    uint8_t *data = oct_arena_calloc(r->arena, bytes + 1, 1);
    float *scale = oct_arena_calloc(r->arena, rows + 1, sizeof *scale);
    int32_t *zero = oct_arena_calloc(r->arena, rows + 1, sizeof *zero);
    if (!data || !scale || !zero)
        return oct_nomem(err);
    for (int i = 0; i < n; i++)
        OCT_TRY(stack_one(r, k[i], t, (size_t)i, data, scale, err));
    OCT_TRY(oct_graph_new_const(r->g, name, type, 3, dims, data, value, err));
    const oct_quant q = { .n = (int)rows, .axis = 1, .scale = scale, .zp = zero, .dtype = OCT_S8 };
    return type == OCT_S8 ? dequantize(r, index_in(r, k[0]), r->g->value[*value].constant, &q, 1, value, err) : OCT_OK;
}

oct_status oct_tfl_take_ints(oct_tfl_reader *r, int k, const int64_t **v, int *n, oct_err *err)
{
    const oct_tfl_tensor *t = oct_tfl_in(r, k);
    OCT_TRY(oct_tfl_need(r, k, 0, err));
    const bool wide = t->type == OCT_TFL_INT64;
    if (!t->data || (!wide && t->type != OCT_TFL_INT32) || t->bytes > 4096)
        return oct_tfl_unread(r, err, "fix the model's shapes and export it again",
                              "its operand '%.80s' is computed at run time", t->name);
    *n = (int)(t->bytes / (wide ? 8 : 4));
    int64_t *to = oct_arena_calloc(r->arena, (size_t)*n + 1, sizeof *to);
    for (int i = 0; i < *n && to; i++)
        to[i] = wide ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
    *v = to;
    return to ? OCT_OK : oct_nomem(err);
}

oct_status oct_tfl_take_real(oct_tfl_reader *r, int k, float *x, oct_err *err)
{
    const oct_tfl_tensor *t = oct_tfl_in(r, k);
    OCT_TRY(oct_tfl_need(r, k, 0, err));
    const oct_quant *q = t->quant;
    const bool known = t->data && t->bytes;
    if (known && t->type == OCT_TFL_FLOAT32 && t->bytes == 4)
        memcpy(x, t->data, sizeof *x);
    else if (known && q && q->n == 1 && t->bytes == 1)
        *x = q->scale[0] *
             (float)((t->type == OCT_TFL_UINT8 ? *(const uint8_t *)t->data : *(const int8_t *)t->data) - q->zp[0]);
    else if (known && q && q->n == 1 && t->type == OCT_TFL_INT16 && t->bytes == 2)
        *x = q->scale[0] * (float)(*(const int16_t *)t->data - q->zp[0]);
    else
        return oct_tfl_unread(r, err, NULL, "its operand '%.80s' is not one constant number", t->name);
    return OCT_OK;
}

/* ---- orders ---- */

static oct_status transpose(oct_tfl_reader *r, int tensor, const oct_tfl_order *order, int *value, oct_err *err)
{
    const int rank = r->m->tensor[tensor].rank;
    const oct_tfl_shown *s = &r->tensor[tensor].shown[0];
    int64_t perm[OCT_MAX_RANK];
    int node;
    char text[300];
    for (int i = 0; i < rank; i++)
        perm[i] = oct_tfl_axis(&s->order, rank, order->d[i]);
    OCT_TRY(add_node(r, r->tensor[tensor].name, "Transpose", &s->value, 1, 1, &node, value, err));
    OCT_TRY(oct_node_set_ints(r->g, node, "perm", perm, rank, err));
    OCT_TRY(round_value(r, tensor, value, err));
    oct_buf_printf(r->notes, "Transpose of '%.80s' before %s\n", r->tensor[tensor].name,
                   r->op ? oct_tfl_operator_text(r->m, r->at, text, sizeof text) : "the output");
    return r->notes->failed ? oct_nomem(err) : OCT_OK;
}

static oct_status take(oct_tfl_reader *r, int tensor, const oct_tfl_order *order, int *value, oct_err *err)
{
    const oct_tfl_tensor *t = &r->m->tensor[tensor];
    const oct_tfl_shown *s = find_shown(r, tensor, order);
    int64_t dims[OCT_MAX_RANK];
    int perm[OCT_MAX_RANK];
    if (s) {
        *value = s->value;
        return OCT_OK;
    }
    for (int i = 0; i < t->rank; i++) {
        dims[i] = t->dims[i];
        perm[i] = order->d[i];
    }
    if (t->data)
        OCT_TRY(make_constant(r, tensor, t->rank, dims, perm, NULL, value, err));
    else if (!r->tensor[tensor].n)
        return oct_tfl_unread(r, err, NULL, "'%.80s' keeps its content from run to run", t->name);
    else
        OCT_TRY(transpose(r, tensor, order, value, err));
    return show(r, tensor, order, *value, err);
}

oct_status oct_tfl_take(oct_tfl_reader *r, int k, const oct_tfl_order *order, int *value, oct_err *err)
{
    OCT_TRY(oct_tfl_need(r, k, 0, err));
    return take(r, index_in(r, k), order, value, err);
}

oct_status oct_tfl_take_wide(oct_tfl_reader *r, int k, int rank, const oct_tfl_order *order, int *value, oct_err *err)
{
    OCT_TRY(oct_tfl_need(r, k, 0, err));
    const int tensor = index_in(r, k);
    const oct_tfl_tensor *t = &r->m->tensor[tensor];
    const oct_tfl_order plain = oct_tfl_plain();
    const int more = rank - t->rank;
    int64_t dims[OCT_MAX_RANK], perm[OCT_MAX_RANK], count = 1;
    int axes[OCT_MAX_RANK], node, in[2];
    for (int i = 0; i < rank; i++) {
        dims[i] = i < more ? 1 : t->dims[i - more];
        count *= i < more ? 1 : t->dims[i - more] == 1;
        axes[i] = order->d[i];
        perm[i] = order->d[i];
    }
    if (more <= 0 || (count == 1 && t->data))
        return take(r, tensor, more <= 0 ? order : &plain, value, err);
    if (t->data)
        return make_constant(r, tensor, rank, dims, axes, NULL, value, err);
    OCT_TRY(take(r, tensor, &plain, &in[0], err));
    for (int i = 0; i < more; i++)
        dims[i] = i;
    OCT_TRY(oct_tfl_const_ints(r, "axes", dims, more, &in[1], err));
    OCT_TRY(add_node(r, r->tensor[tensor].name, "Unsqueeze", in, 2, 1, &node, value, err));
    if (oct_tfl_same_order(order, &plain, rank))
        return OCT_OK;
    in[0] = *value;
    OCT_TRY(add_node(r, r->tensor[tensor].name, "Transpose", in, 1, 1, &node, value, err));
    return oct_node_set_ints(r->g, node, "perm", perm, rank, err);
}

bool oct_tfl_is_one(const oct_tfl_tensor *t, int axis)
{
    return t->dims[axis] == 1 && t->open != axis;
}

bool oct_tfl_same_axes(const oct_tfl_tensor *x, const oct_tfl_tensor *y, int axis[OCT_MAX_RANK])
{
    int next = 0;
    for (int i = 0; i < y->rank; i++) {
        axis[i] = -1;
        if (oct_tfl_is_one(y, i))
            continue;
        while (next < x->rank && oct_tfl_is_one(x, next))
            next++;
        if (next == x->rank || x->dims[next] != y->dims[i])
            return false;
        axis[i] = next++;
    }
    while (next < x->rank && oct_tfl_is_one(x, next))
        next++;
    return next == x->rank;
}

bool oct_tfl_find_sequence(const oct_tfl_reader *r, int k, const int *sequence, int n, int *value)
{
    const oct_tfl_tensor *t = oct_tfl_in(r, k);
    const oct_tfl_found *f = &r->tensor[index_in(r, k)];
    for (size_t i = 0; i < f->n; i++) {
        int found = 0;
        for (int a = 0; a < t->rank; a++) {
            const int axis = f->shown[i].order.d[a];
            if (!oct_tfl_is_one(t, axis))
                found = found < n && sequence[found] == axis ? found + 1 : n + 1;
        }
        *value = f->shown[i].value;
        if (found == n)
            return true;
    }
    return false;
}

oct_status oct_tfl_take_elements(oct_tfl_reader *r, int k, int *value, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    int rising[OCT_MAX_RANK], n = 0;
    OCT_TRY(oct_tfl_need(r, k, 0, err));
    const oct_tfl_tensor *t = oct_tfl_in(r, k);
    for (int i = 0; i < t->rank; i++)
        if (!oct_tfl_is_one(t, i))
            rising[n++] = i;
    return oct_tfl_find_sequence(r, k, rising, n, value) ? OCT_OK : take(r, index_in(r, k), &plain, value, err);
}

/* ---- results ---- */

static oct_status name_value(oct_tfl_reader *r, int value, const char *name, oct_err *err)
{
    if (strcmp(r->g->value[value].name, name) == 0)
        return OCT_OK;
    return oct_graph_rename(r->g, value, name, err);
}

oct_status oct_tfl_round(oct_tfl_reader *r, int k, int *value, oct_err *err)
{
    return round_value(r, r->op->out[k], value, err);
}

oct_status oct_tfl_give(oct_tfl_reader *r, int k, const oct_tfl_order *order, int value, oct_err *err)
{
    const int tensor = r->op->out[k];
    OCT_TRY(round_value(r, tensor, &value, err));
    OCT_TRY(name_value(r, value, r->tensor[tensor].name, err));
    return show(r, tensor, order, value, err);
}

oct_status oct_tfl_give_same(oct_tfl_reader *r, int k, int from, const int *perm, oct_err *err)
{
    const oct_tfl_tensor *x = oct_tfl_in(r, from), *y = oct_tfl_out(r, k);
    const int tensor = index_in(r, from), rank = x->rank;
    int value;
    oct_tfl_order order = oct_tfl_shown_order(r, from);
    OCT_TRY(take(r, tensor, &order, &value, err));
    if (x->data && !perm && !y->quant)
        r->tensor[r->op->out[k]].source = tensor + 1;
    for (size_t i = 0; i < r->tensor[tensor].n; i++) {
        const oct_tfl_shown s = r->tensor[tensor].shown[i];
        order = oct_tfl_plain();
        for (int a = 0; a < rank; a++)
            for (int j = 0; j < rank; j++)
                if ((perm ? perm[j] : j) == s.order.d[a])
                    order.d[a] = (int8_t)j;
        if (!y->quant || (x->quant && oct_quant_same(x->quant, y->quant)))
            OCT_TRY(show(r, r->op->out[k], &order, s.value, err));
        else
            return oct_tfl_give(r, k, &order, s.value, err);
    }
    return OCT_OK;
}

/* ---- ends ---- */

static void say_order(oct_tfl_reader *r, const char *end, const char *name, int tensor, const oct_tfl_order *order)
{
    const oct_tfl_tensor *t = &r->m->tensor[tensor];
    const oct_tfl_order plain = oct_tfl_plain();
    if (oct_tfl_same_order(order, &plain, t->rank))
        return;
    oct_buf_printf(r->notes, "%s '%.80s' is [", end, name);
    for (int i = 0; i < t->rank; i++)
        oct_buf_printf(r->notes, "%s%d", i ? "," : "", t->dims[order->d[i]]);
    oct_buf_puts(r->notes, "], with the channels first; in the file they are last\n");
}

static void say_integers(oct_tfl_reader *r, const char *end, const char *name, const oct_tfl_tensor *t)
{
    if (t->quant)
        oct_buf_printf(r->notes, "%s '%.80s' is float32; in the file %s with scale %g and zero point %d\n", end, name,
                       oct_dtype_name(t->quant->dtype), (double)t->quant->scale[0], (int)t->quant->zp[0]);
}

static oct_status set_input(oct_tfl_reader *r, int tensor, const oct_tfl_order *order, int value, oct_err *err)
{
    const oct_tfl_tensor *t = &r->m->tensor[tensor];
    oct_graph *g = r->g;
    oct_dim d[OCT_MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        const int axis = order->d[i];
        d[i] = axis == t->open ? (oct_dim){ -1, axis ? "length" : "batch" } : (oct_dim){ t->dims[axis], NULL };
    }
    OCT_TRY(oct_graph_set_shape(g, value, t->rank, d, err));
    g->value[value].is_input = true;
    if (!OCT_GROW(g->arena, g->input, g->n_input, g->cap_input))
        return oct_nomem(err);
    g->input[g->n_input++] = value;
    return OCT_OK;
}

oct_status oct_tfl_read_input(oct_tfl_reader *r, size_t i, oct_err *err)
{
    const int tensor = r->m->input[i].tensor;
    const oct_tfl_tensor *t = &r->m->tensor[tensor];
    const oct_tfl_found *f = &r->tensor[tensor];
    const oct_tfl_order order = f->has_wish ? f->wish : oct_tfl_plain();
    const oct_dtype type = t->quant ? OCT_F32 : oct_tfl_type_dtype(t->type);
    int value;
    if (type == OCT_UNDEFINED)
        return oct_tfl_unread(r, err, NULL, "input '%.80s' is %s", f->name, oct_tfl_type_name(t->type));
    if (t->more_open)
        return oct_tfl_unread(r, err, "export it again with fixed sizes", "input '%.80s' has several open dimensions",
                              f->name);
    OCT_TRY(oct_graph_new_value(r->g, f->name, type, &value, err));
    OCT_TRY(set_input(r, tensor, &order, value, err));
    r->open = r->open || t->open >= 0;
    say_order(r, "input", f->name, tensor, &order);
    say_integers(r, "input", f->name, t);
    OCT_TRY(round_value(r, tensor, &value, err));
    return show(r, tensor, &order, value, err);
}

oct_status oct_tfl_read_output(oct_tfl_reader *r, size_t i, oct_err *err)
{
    const int tensor = r->m->output[i].tensor;
    const oct_tfl_tensor *t = &r->m->tensor[tensor];
    const oct_tfl_found *f = &r->tensor[tensor];
    const oct_tfl_order plain = oct_tfl_plain(), first = oct_tfl_channels_first(t->rank);
    const char *name = *r->m->output[i].name ? r->m->output[i].name : f->name;
    oct_graph *g = r->g;
    oct_tfl_order order = plain;
    int value, node;
    if (f->n && t->rank > 2 && oct_tfl_same_order(&f->shown[0].order, &first, t->rank) &&
        !find_shown(r, tensor, &plain))
        order = first;
    OCT_TRY(take(r, tensor, &order, &value, err));
    say_order(r, "output", name, tensor, &order);
    say_integers(r, "output", name, t);
    const oct_value *v = &g->value[value];
    if (v->is_input || v->is_output || v->producer < 0)
        OCT_TRY(add_node(r, name, "Identity", &value, 1, 1, &node, &value, err));
    OCT_TRY(name_value(r, value, name, err));
    g->value[value].is_output = true;
    if (!OCT_GROW(g->arena, g->output, g->n_output, g->cap_output))
        return oct_nomem(err);
    g->output[g->n_output++] = value;
    return r->notes->failed ? oct_nomem(err) : OCT_OK;
}
