/* Values and the tensors that represent them, and what converts one of these to another. */
#include "tflite/tfl_tensors.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

oct_status oct_tfl_cannot(const oct_tfl_writer *w, oct_err *err, const char *hint, const char *fmt, ...)
{
    char text[160], what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    oct_fail(err, OCT_EUNSUPPORTED, "%s cannot be written to .tflite: %s",
             w->node < 0 ? "the model" : oct_node_text(w->g, w->node, text, sizeof text), what);
    oct_hint(err, "%s", hint ? hint : "write .onnx, or replace the node by operators that docs/tflite.md lists");
    return OCT_EUNSUPPORTED;
}

/* ---- values ---- */

oct_status oct_tfl_dims(const oct_tfl_writer *w, int value, int *rank, int64_t dims[OCT_MAX_RANK], oct_err *err)
{
    const oct_value *v = &w->g->value[value];
    int64_t count;
    if (!oct_shape_known(&v->shape, dims))
        return oct_tfl_cannot(w, err, "give the model's inputs fixed shapes", "the shape of '%s' is not known",
                              v->name);
    *rank = v->shape.rank;
    for (int i = 0; i < *rank; i++)
        if (dims[i] > INT32_MAX)
            return oct_tfl_cannot(w, err, NULL, "a dimension of '%s' needs more than 32 bits", v->name);
    return oct_count(dims, *rank, &count) ? OCT_OK : oct_tfl_cannot(w, err, NULL, "'%s' is too large", v->name);
}

bool oct_tfl_is_int8(const oct_tfl_writer *w, int value)
{
    const oct_quant *q = value >= 0 ? w->g->value[value].quant : NULL;
    return q && q->dtype == OCT_S8 && q->n == 1 && !q->block;
}

bool oct_tfl_is_whole(const oct_tfl_writer *w, int value)
{
    const oct_quant *q = value >= 0 ? w->g->value[value].quant : NULL;
    return oct_tfl_is_int8(w, value) || (q && q->dtype == OCT_S16 && q->n == 1 && !q->block && q->zp[0] == 0);
}

bool oct_tfl_runs_whole(const oct_tfl_writer *w, int first, int n)
{
    const oct_node *node = &w->g->node[w->node];
    if (!oct_tfl_is_whole(w, w->out))
        return false;
    const oct_dtype type = w->g->value[w->out].quant->dtype;
    for (int i = first; i < first + n && i < node->n_in; i++)
        if (node->in[i] >= 0 && (!oct_tfl_is_whole(w, node->in[i]) || w->g->value[node->in[i]].quant->dtype != type))
            return false;
    return type == OCT_S8 || w->wide;
}

oct_status oct_tfl_ints(const oct_tfl_writer *w, int value, const int64_t **v, int *n, oct_err *err)
{
    *v = NULL;
    *n = 0;
    if (value < 0)
        return OCT_OK;
    const oct_tensor *t = w->g->value[value].constant;
    if (!t || !t->data || (t->dtype != OCT_S64 && t->dtype != OCT_S32) || t->count > 4096)
        return oct_tfl_cannot(w, err, "give the model's inputs fixed shapes, so that it becomes a constant",
                              "its operand '%s' is computed at run time", w->g->value[value].name);
    *n = (int)t->count;
    if (t->dtype == OCT_S64) {
        *v = t->data;
        return OCT_OK;
    }
    int64_t *wide = oct_arena_calloc(w->arena, (size_t)*n + 1, sizeof *wide);
    for (int i = 0; i < *n && wide; i++)
        wide[i] = ((const int32_t *)t->data)[i];
    *v = wide;
    return wide ? OCT_OK : oct_nomem(err);
}

bool oct_tfl_one_real(const oct_tfl_writer *w, int value, float *x)
{
    const oct_tensor *t = value >= 0 ? w->g->value[value].constant : NULL;
    if (!t || !t->data || t->dtype != OCT_F32 || t->count < 1)
        return false;
    const float *v = t->data;
    for (int64_t i = 1; i < t->count; i++)
        if (!(v[i] == v[0]))
            return false;
    *x = v[0];
    return true;
}

const oct_node *oct_tfl_only_reader(const oct_tfl_writer *w, int value, int *id)
{
    const oct_value *v = &w->g->value[value];
    if (v->quant || !oct_value_used_once(v) || v->uses[0].slot != 0)
        return NULL;
    *id = v->uses[0].node;
    return &w->g->node[*id];
}

int oct_tfl_behind_border(oct_tfl_writer *w, int value)
{
    int id;
    const oct_node *next = oct_tfl_only_reader(w, value, &id);
    if (!next || !oct_is_op(next, "QuantizeLinear") || !oct_tfl_is_whole(w, next->out[0]))
        return value;
    w->skip[id] = true;
    return next->out[0];
}

/* ---- orders ---- */

oct_tfl_order oct_tfl_order_of(const oct_tfl_writer *w, int value)
{
    const oct_tfl_state *s = &w->value[value];
    return s->n && !oct_value_is_constant(&w->g->value[value]) ? s->form[0].order : oct_tfl_plain();
}

/* ---- tensors ---- */

/* The type of a value's elements as they are stored; false: there is none. */
static bool type_of(oct_dtype t, oct_tfl_type *type)
{
    static const struct {
        oct_dtype of;
        oct_tfl_type type;
    } types[] = { { OCT_F32, OCT_TFL_FLOAT32 }, { OCT_F16, OCT_TFL_FLOAT16 }, { OCT_F64, OCT_TFL_FLOAT64 },
                  { OCT_S8, OCT_TFL_INT8 },     { OCT_U8, OCT_TFL_UINT8 },    { OCT_S16, OCT_TFL_INT16 },
                  { OCT_S32, OCT_TFL_INT32 },   { OCT_S64, OCT_TFL_INT64 },   { OCT_BOOL, OCT_TFL_BOOL } };
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (types[i].of == t) {
            *type = types[i].type;
            return true;
        }
    return false;
}

static oct_status new_tensor(oct_tfl_writer *w, const oct_tfl_tensor *t, int *tensor, oct_err *err)
{
    oct_tfl_model *m = w->m;
    if (m->n_tensor >= INT32_MAX || !t->name || !OCT_GROW(m->arena, m->tensor, m->n_tensor, m->cap_tensor))
        return oct_nomem(err);
    *tensor = (int)m->n_tensor;
    m->tensor[m->n_tensor++] = *t;
    return OCT_OK;
}

static oct_status add_form(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind, int tensor,
                           oct_err *err)
{
    oct_tfl_state *s = &w->value[value];
    if (!OCT_GROW(w->arena, s->form, s->n, s->cap))
        return oct_nomem(err);
    s->form[s->n++] = (oct_tfl_form){ *order, kind, tensor };
    return OCT_OK;
}

static const oct_tfl_form *find_form(const oct_tfl_state *s, int rank, const oct_tfl_order *order, oct_tfl_kind kind)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->form[i].kind == kind && (!order || oct_tfl_same_order(&s->form[i].order, order, rank)))
            return &s->form[i];
    return NULL;
}

/* A tensor for a value, in an order: its integers if `q` says what they mean, else its numbers. */
static oct_status value_tensor(oct_tfl_writer *w, int value, const oct_tfl_order *order, const oct_quant *q,
                               const char *suffix, int *tensor, oct_err *err)
{
    const oct_value *v = &w->g->value[value];
    int64_t dims[OCT_MAX_RANK];
    oct_tfl_tensor t = { .quant = q,
                         .open = -1,
                         .name = oct_arena_printf(w->m->arena, "%s%s", v->name, suffix),
                         .value = q == v->quant ? v->name : NULL,
                         .order = *order };
    OCT_TRY(oct_tfl_dims(w, value, &t.rank, dims, err));
    const oct_dtype stored = q ? q->dtype : v->quant ? OCT_F32 : v->dtype;
    if (v->kind != OCT_VALUE_TENSOR || !type_of(stored, &t.type) || (q && q->n == 0))
        return oct_tfl_cannot(w, err, q && q->n == 0 ? "give samples (--data), and --scheme static" : NULL,
                              "'%s' is %s", v->name,
                              q && q->n == 0                ? "quantized with a scale that is computed at run time"
                              : v->kind != OCT_VALUE_TENSOR ? "no tensor"
                                                            : oct_dtype_name(stored));
    if (q && q->dtype == OCT_S16 && (q->n != 1 || q->zp[0]))
        return oct_tfl_cannot(w, err, "convert for --target litert-int16", "'%s' has 16 bits and a zero point",
                              v->name);
    for (int i = 0; i < t.rank; i++) {
        t.dims[i] = (int32_t)dims[order->d[i]];
        if (order->d[i] == w->value[value].open)
            t.open = i;
    }
    return new_tensor(w, &t, tensor, err);
}

oct_status oct_tfl_between(oct_tfl_writer *w, const char *name, int as, int rank, const int64_t *dims, int open,
                           int *tensor, oct_err *err)
{
    oct_tfl_tensor t = w->m->tensor[as];
    t.name = oct_arena_strdup(w->m->arena, name);
    t.rank = rank;
    t.open = open;
    t.data = NULL;
    t.value = NULL;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0 || dims[i] > INT32_MAX)
            return oct_tfl_cannot(w, err, NULL, "a dimension of '%s' needs more than 32 bits", name);
        t.dims[i] = (int32_t)dims[i];
    }
    return new_tensor(w, &t, tensor, err);
}

oct_status oct_tfl_constant(oct_tfl_writer *w, const char *name, oct_tfl_type type, int rank, const int64_t *dims,
                            const oct_quant *q, int axis, const void *data, int *tensor, oct_err *err)
{
    oct_tfl_tensor t = { .type = type, .rank = rank, .open = -1, .quant = q, .axis = axis, .data = data };
    size_t bytes = oct_tfl_type_bytes(type);
    t.name = oct_arena_strdup(w->m->arena, name);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0 || dims[i] > INT32_MAX || !oct_mul_size(bytes, (size_t)dims[i], &bytes))
            return oct_tfl_cannot(w, err, NULL, "'%s' is too large", name);
        t.dims[i] = (int32_t)dims[i];
    }
    t.bytes = bytes;
    return new_tensor(w, &t, tensor, err);
}

oct_status oct_tfl_numbers(oct_tfl_writer *w, const char *name, int rank, const int64_t *dims, const int64_t *v,
                           int *tensor, oct_err *err)
{
    int64_t n;
    if (!oct_count(dims, rank, &n))
        return oct_nomem(err);
    int32_t *data = oct_arena_calloc(w->m->arena, (size_t)n + 1, sizeof *data);
    if (!data)
        return oct_nomem(err);
    for (int64_t i = 0; i < n; i++)
        data[i] = (int32_t)(v[i] < INT32_MIN ? INT32_MIN : v[i] > INT32_MAX ? INT32_MAX : v[i]);
    const size_t last = w->m->n_tensor, window = 64; /* shapes and axes repeat */
    for (size_t i = last; i-- > 0 && last - i < window;) {
        const oct_tfl_tensor *t = &w->m->tensor[i];
        bool same =
            t->data && t->type == OCT_TFL_INT32 && !t->quant && t->rank == rank && t->bytes == (size_t)n * sizeof *data;
        for (int k = 0; k < rank && same; k++)
            same = t->dims[k] == dims[k];
        if (same && memcmp(t->data, data, t->bytes) == 0) {
            *tensor = (int)i;
            return OCT_OK;
        }
    }
    return oct_tfl_constant(w, name, OCT_TFL_INT32, rank, dims, NULL, 0, data, tensor, err);
}

/* Copies elements of `size` bytes into another order of axes. */
static void permute(uint8_t *to, const uint8_t *from, size_t size, int rank, const int64_t *dims,
                    const oct_tfl_order *order)
{
    int64_t stride[OCT_MAX_RANK], at[OCT_MAX_RANK] = { 0 }, n = 1, pos = 0;
    for (int i = rank; i-- > 0;) {
        stride[i] = n;
        n *= dims[i];
    }
    for (int64_t k = 0; k < n; k++) {
        memcpy(to + (size_t)k * size, from + (size_t)pos * size, size);
        for (int i = rank; i-- > 0;) {
            const int d = order->d[i];
            pos += stride[d];
            if (++at[i] < dims[d])
                break;
            pos -= stride[d] * dims[d];
            at[i] = 0;
        }
    }
}

oct_status oct_tfl_read_constant(oct_tfl_writer *w, int value, int rank, const int64_t *dims,
                                 const oct_tfl_order *order, int axis, int *tensor, oct_err *err)
{
    const oct_value *v = &w->g->value[value];
    const oct_quant *q = v->quant;
    const oct_tensor *t = q ? q->qvals : v->constant;
    const oct_tfl_order plain = oct_tfl_plain();
    oct_tfl_type type;
    int64_t physical[OCT_MAX_RANK], count;
    if (!t || !t->data)
        return oct_tfl_cannot(w, err, NULL, "its operand '%s' is computed at run time", v->name);
    if (q && q->block)
        return oct_tfl_cannot(w, err, "convert with --scheme static", "'%s' is quantized in blocks", v->name);
    if (!type_of(t->dtype, &type))
        return oct_tfl_cannot(w, err, "convert with another scheme", "'%s' is %s", v->name, oct_dtype_name(t->dtype));
    if (!oct_count(dims, rank, &count) || count != t->count)
        return oct_tfl_cannot(w, err, NULL, "'%s' has %lld elements, and its shape others", v->name,
                              (long long)t->count);
    if (axis < 0 && q)
        axis = q->axis;
    for (int i = 0; i < rank; i++)
        physical[i] = dims[order->d[i]];
    const void *data = t->data;
    if (!oct_tfl_same_order(order, &plain, rank) && count > 0) {
        uint8_t *moved = oct_arena_alloc(w->m->arena, t->bytes);
        if (!moved)
            return oct_nomem(err);
        permute(moved, t->data, oct_tfl_type_bytes(type), rank, dims, order);
        data = moved;
    }
    return oct_tfl_constant(w, v->name, type, rank, physical, q, q && q->n > 1 ? oct_tfl_axis(order, rank, axis) : 0,
                            data, tensor, err);
}

/* ---- operators ---- */

oct_status oct_tfl_add(oct_tfl_writer *w, oct_tfl_code code, const int *in, int n_in, const int *out, int n_out,
                       oct_tfl_operator **op, oct_err *err)
{
    oct_tfl_model *m = w->m;
    int *list = oct_arena_alloc(m->arena, (size_t)(n_in + n_out + 1) * sizeof *list);
    if (!list || !OCT_GROW(m->arena, m->op, m->n_op, m->cap_op))
        return oct_nomem(err);
    oct_tfl_operator *o = &m->op[m->n_op++];
    *o = (oct_tfl_operator){ .code = code, .version = 1, .in = list, .out = list + n_in, .n_in = n_in, .n_out = n_out };
    memcpy(o->in, in, (size_t)n_in * sizeof *list);
    memcpy(o->out, out, (size_t)n_out * sizeof *list);
    for (int i = 0; i < n_in; i++)
        if (in[i] >= 0 && m->tensor[in[i]].type == OCT_TFL_INT8)
            o->version = oct_tfl_code_int8(code);
    for (int i = 0; i < n_in + n_out; i++) {
        const int t = i < n_in ? in[i] : out[i - n_in];
        if (t >= 0 && m->tensor[t].type == OCT_TFL_INT16 && oct_tfl_code_int16(code))
            o->version = oct_tfl_code_int16(code);
    }
    if (op)
        *op = o;
    return OCT_OK;
}

static void set(oct_tfl_operator *op, int slot, int bytes, uint32_t bits)
{
    if (op->n_fields < OCT_TFL_FIELDS)
        op->field[op->n_fields++] = (oct_flat_field){ slot, bytes, bits };
}

void oct_tfl_set(oct_tfl_operator *op, int slot, int32_t x)
{
    set(op, slot, 4, (uint32_t)x);
}

void oct_tfl_set_byte(oct_tfl_operator *op, int slot, int x)
{
    if (x) /* the default of every byte */
        set(op, slot, 1, (uint32_t)x);
}

void oct_tfl_clear_byte(oct_tfl_operator *op, int slot)
{
    set(op, slot, 1, 0);
}

void oct_tfl_set_real(oct_tfl_operator *op, int slot, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    set(op, slot, 4, bits);
}

oct_status oct_tfl_reshape(oct_tfl_writer *w, int from, int to, oct_err *err)
{
    const oct_tfl_tensor *t = &w->m->tensor[to];
    int64_t shape[OCT_MAX_RANK];
    int number;
    for (int i = 0; i < t->rank; i++)
        shape[i] = i == t->open ? -1 : t->dims[i];
    OCT_TRY(oct_tfl_numbers(w, "shape", 1, (int64_t[]){ t->rank }, shape, &number, err));
    return oct_tfl_add(w, OCT_TFL_RESHAPE, (int[]){ from, number }, 2, &to, 1, NULL, err);
}

bool oct_tfl_moves_nothing(const oct_tfl_writer *w, int value, const oct_tfl_order *a, const oct_tfl_order *b, int rank,
                           const int64_t *dims)
{
    const int open = w->value[value].open;
    int i = 0, k = 0;
    for (;;) {
        while (i < rank && dims[a->d[i]] == 1 && a->d[i] != open)
            i++;
        while (k < rank && dims[b->d[k]] == 1 && b->d[k] != open)
            k++;
        if (i == rank || k == rank)
            return i == rank && k == rank;
        if (a->d[i++] != b->d[k++])
            return false;
    }
}

/* Axes that stay together are one: an operator of at most four axes, which accelerators take, in place of one of more.
 * shape: of tensor `from` with these merged; perm: their order; at: that of the result. */
static int merged(const oct_tfl_tensor *from, int rank, const int64_t *perm, int64_t *shape, int64_t *order,
                  int64_t *moved, int *open)
{
    int first[OCT_MAX_RANK], n = 0;
    for (int i = 0; i < rank; i++) {
        const bool follows = i > 0 && perm[i] == perm[i - 1] + 1;
        if (!follows) {
            first[n] = (int)perm[i];
            moved[n++] = 1;
        }
        moved[n - 1] *= from->dims[perm[i]];
    }
    for (int k = 0; k < n; k++) {
        int before = 0;
        for (int i = 0; i < n; i++)
            before += first[i] < first[k];
        order[k] = before;
        shape[before] = moved[k];
    }
    *open = -1;
    for (int k = 0; k < n && from->open >= 0; k++)
        if (first[k] <= from->open && (*open < 0 || first[k] > first[*open]))
            *open = k;
    return n;
}

static oct_status transpose_merged(oct_tfl_writer *w, int from, int rank, const int64_t *perm, int to, oct_err *err)
{
    int64_t shape[OCT_MAX_RANK], order[OCT_MAX_RANK], moved[OCT_MAX_RANK];
    int number, in = from, out = to, open, n = rank;
    oct_tfl_operator *op;
    if (rank > 4)
        n = merged(&w->m->tensor[from], rank, perm, shape, order, moved, &open);
    if (rank > 4 && n <= 4) {
        const char *name = w->m->tensor[to].name;
        OCT_TRY(oct_tfl_between(w, oct_arena_printf(w->arena, "%s_axes", name), from, n, shape,
                                open < 0 ? -1 : (int)order[open], &in, err));
        OCT_TRY(oct_tfl_reshape(w, from, in, err));
        OCT_TRY(oct_tfl_between(w, oct_arena_printf(w->arena, "%s_moved", name), from, n, moved, open, &out, err));
        perm = order;
    } else {
        n = rank;
    }
    OCT_TRY(oct_tfl_numbers(w, "order", 1, (int64_t[]){ n }, perm, &number, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_TRANSPOSE, (int[]){ in, number }, 2, &out, 1, &op, err));
    if (n > 4)
        op->version = n > 5 ? 6 : 4;
    return out == to ? OCT_OK : oct_tfl_reshape(w, out, to, err);
}

static oct_status transpose(oct_tfl_writer *w, int value, const oct_tfl_form *from, const oct_tfl_order *order,
                            int *tensor, oct_err *err)
{
    const oct_value *v = &w->g->value[value];
    const oct_quant *q = from->kind == OCT_TFL_OWN ? v->quant : NULL;
    const oct_tfl_form f = *from;
    char text[160];
    int rank;
    int64_t dims[OCT_MAX_RANK], perm[OCT_MAX_RANK];
    OCT_TRY(oct_tfl_dims(w, value, &rank, dims, err));
    OCT_TRY(value_tensor(w, value, order, q, "_transposed", tensor, err));
    OCT_TRY(add_form(w, value, order, f.kind, *tensor, err));
    if (oct_tfl_moves_nothing(w, value, &f.order, order, rank, dims))
        return oct_tfl_reshape(w, f.tensor, *tensor, err);
    for (int i = 0; i < rank; i++)
        perm[i] = oct_tfl_axis(&f.order, rank, order->d[i]);
    OCT_TRY(transpose_merged(w, f.tensor, rank, perm, *tensor, err));
    if (w->notes)
        oct_buf_printf(w->notes, "%s of '%s' before %s\n", "TRANSPOSE", v->name,
                       w->node < 0 ? "the output" : oct_node_text(w->g, w->node, text, sizeof text));
    return OCT_OK;
}

static oct_status dequantize(oct_tfl_writer *w, int from, int to, oct_err *err)
{
    oct_tfl_operator *op;
    OCT_TRY(oct_tfl_add(w, OCT_TFL_DEQUANTIZE, &from, 1, &to, 1, &op, err));
    if (w->m->tensor[from].quant->n > 1)
        op->version = 5;
    return OCT_OK;
}

/* A constant of the graph, whole. */
static oct_status constant_form(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind,
                                int *tensor, oct_err *err)
{
    int rank, from;
    int64_t dims[OCT_MAX_RANK];
    OCT_TRY(oct_tfl_dims(w, value, &rank, dims, err));
    OCT_TRY(oct_tfl_read_constant(w, value, rank, dims, order, -1, tensor, err));
    OCT_TRY(add_form(w, value, order, OCT_TFL_OWN, *tensor, err));
    if (kind == OCT_TFL_OWN || !w->g->value[value].quant)
        return OCT_OK;
    from = *tensor;
    OCT_TRY(value_tensor(w, value, order, NULL, "_dequantized", tensor, err));
    OCT_TRY(add_form(w, value, order, OCT_TFL_REAL, *tensor, err));
    return dequantize(w, from, *tensor, err);
}

oct_status oct_tfl_read(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind, int *tensor,
                        oct_err *err)
{
    const oct_value *v = &w->g->value[value];
    oct_tfl_state *s = &w->value[value];
    const int rank = v->shape.rank;
    const oct_tfl_form *f;
    if (!v->quant)
        kind = OCT_TFL_OWN;
    if ((f = find_form(s, rank, order, kind))) {
        *tensor = f->tensor;
        return OCT_OK;
    }
    if (oct_value_is_constant(v))
        return constant_form(w, value, order, kind, tensor, err);
    if (!s->n)
        return oct_tfl_cannot(w, err, NULL, "the elements of its operand '%s' are not known", v->name);
    if (!find_form(s, rank, NULL, kind)) { /* reals of the value's integers, which are moved where they are small */
        int from;
        OCT_TRY(oct_tfl_read(w, value, order, OCT_TFL_OWN, &from, err));
        OCT_TRY(value_tensor(w, value, order, NULL, "_dequantized", tensor, err));
        OCT_TRY(add_form(w, value, order, OCT_TFL_REAL, *tensor, err));
        return dequantize(w, from, *tensor, err);
    }
    return transpose(w, value, find_form(s, rank, NULL, kind), order, tensor, err);
}

oct_status oct_tfl_read_elements(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind,
                                 int *tensor, oct_err *err)
{
    const oct_tfl_state *s = &w->value[value];
    int rank;
    int64_t dims[OCT_MAX_RANK];
    OCT_TRY(oct_tfl_dims(w, value, &rank, dims, err));
    for (size_t i = 0; i < s->n; i++)
        if (s->form[i].kind == (w->g->value[value].quant ? kind : OCT_TFL_OWN) &&
            oct_tfl_moves_nothing(w, value, &s->form[i].order, order, rank, dims)) {
            *tensor = s->form[i].tensor;
            return OCT_OK;
        }
    return oct_tfl_read(w, value, order, kind, tensor, err);
}

oct_status oct_tfl_result(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind,
                          const oct_quant *like, int *tensor, oct_err *err)
{
    const oct_quant *own = w->g->value[value].quant;
    const oct_quant *made = kind == OCT_TFL_REAL ? NULL : like ? like : own;
    if (made == own || (made && own && oct_quant_same(made, own))) {
        OCT_TRY(value_tensor(w, value, order, own, "", tensor, err));
        return add_form(w, value, order, OCT_TFL_OWN, *tensor, err);
    }
    OCT_TRY(value_tensor(w, value, order, made, made ? "_scaled" : "_real", tensor, err));
    if (w->n_pending == OCT_TFL_MOST_OUTPUTS)
        return oct_tfl_cannot(w, err, NULL, "it has too many outputs");
    w->pending[w->n_pending++] = (oct_tfl_pending){ value, *tensor, *order };
    return OCT_OK;
}

oct_status oct_tfl_finish(oct_tfl_writer *w, oct_err *err)
{
    for (size_t i = 0; i < w->n_pending; i++) {
        const oct_tfl_pending *p = &w->pending[i];
        const oct_quant *own = w->g->value[p->value].quant;
        int tensor;
        OCT_TRY(value_tensor(w, p->value, &p->order, own, "", &tensor, err));
        OCT_TRY(add_form(w, p->value, &p->order, OCT_TFL_OWN, tensor, err));
        OCT_TRY(own ? oct_tfl_add(w, OCT_TFL_QUANTIZE, &p->tensor, 1, &tensor, 1, NULL, err)
                    : dequantize(w, p->tensor, tensor, err));
    }
    w->n_pending = 0;
    return OCT_OK;
}

oct_status oct_tfl_rename(oct_tfl_writer *w, int value, int from, const int64_t *perm, oct_err *err)
{
    const int rank = w->g->value[value].shape.rank;
    for (size_t i = 0; i < w->value[from].n; i++) {
        const oct_tfl_form f = w->value[from].form[i];
        oct_tfl_order o = oct_tfl_plain();
        for (int k = 0; k < rank; k++)
            for (int d = 0; d < rank; d++)
                if (perm[d] == f.order.d[k])
                    o.d[k] = (int8_t)d;
        OCT_TRY(add_form(w, value, &o, f.kind, f.tensor, err));
    }
    return OCT_OK;
}
