/* From the bytes of a file to a model in memory; each index, offset and size is checked here. */
#include "tflite/tfl_read.h"

#include "base/little_endian.h"
#include "tflite/flat_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SHOWN = 80 };

typedef struct code {
    oct_tfl_code code;
    int version;
    const char *custom;
} code;

typedef struct bytes {
    const uint8_t *p;
    size_t n;
} bytes;

typedef struct reading {
    oct_flat_in f;
    oct_tfl_model *m;
    oct_arena *arena;
    code *code;
    size_t n_code;
    bytes *buffer;
    size_t n_buffer;
    int32_t *zeros; /* zero points that are all 0 */
    size_t n_zeros;
    oct_err *err;
} reading;

bool oct_tfl_is_model(const void *data, size_t size)
{
    return size >= 8 && memcmp((const char *)data + 4, OCT_TFL_IDENTIFIER, 4) == 0;
}

/* ---- faults ---- */

static oct_status hint_damage(const reading *r, oct_status s)
{
    oct_hint(r->err, s == OCT_EMALFORMED ? "the file is damaged or cut short: copy or export it again"
                                         : "export the model again without that");
    return s;
}

/* The first fault of the bytes that were read, if there is one. */
static oct_status sound(const reading *r)
{
    return r->f.fault ? hint_damage(r, oct_fail(r->err, OCT_EMALFORMED, "%s", r->f.fault)) : OCT_OK;
}

static oct_status within_tensor(const reading *r, size_t i, oct_status s)
{
    if (s != OCT_OK)
        oct_within(r->err, "tensor %zu '%.*s'", i, NAME_SHOWN, r->m->tensor[i].name ? r->m->tensor[i].name : "");
    return s;
}

const char *oct_tfl_operator_text(const oct_tfl_model *m, size_t op, char *dst, size_t size)
{
    const oct_tfl_operator *o = &m->op[op];
    const int out = o->n_out > 0 ? o->out[0] : -1;
    const char *name = out >= 0 && m->tensor[out].name ? m->tensor[out].name : "";
    char number[24];
    const char *is = o->custom ? o->custom : oct_tfl_code_name(o->code);
    if (!o->custom && is[0] == '?') {
        snprintf(number, sizeof number, "number %d", (int)o->code);
        is = number;
    }
    oct_print_whole(dst, size, "operator #%zu (%.*s%s%.*s%s)", op, NAME_SHOWN, is, *name ? ", '" : "", NAME_SHOWN, name,
                    *name ? "'" : "");
    return dst;
}

static oct_status within_operator(const reading *r, size_t i, oct_status s)
{
    char text[300];
    if (s != OCT_OK)
        oct_within(r->err, "%s", oct_tfl_operator_text(r->m, i, text, sizeof text));
    return s;
}

#define MALFORMED(r, ...) hint_damage((r), oct_fail((r)->err, OCT_EMALFORMED, __VA_ARGS__))
#define UNSUPPORTED(r, ...) hint_damage((r), oct_fail((r)->err, OCT_EUNSUPPORTED, __VA_ARGS__))

/* ---- buffers and codes ---- */

static oct_status read_buffer(reading *r, const oct_flat_list *list, size_t i)
{
    oct_flat_in *f = &r->f;
    const oct_flat_node t = oct_flat_element(f, list, i);
    const uint64_t offset = oct_flat_number(f, &t, OCT_TFL_BUFFER_OFFSET, 8, 0);
    const uint64_t size = oct_flat_number(f, &t, OCT_TFL_BUFFER_SIZE, 8, 0);
    if (offset > 1 && size > 1) { /* 0 and 1 stand where a writer kept room and wrote none */
        if (offset > f->size || size > f->size - offset)
            return MALFORMED(r, "buffer %zu ends behind the file", i);
        r->buffer[i] = (bytes){ f->data + offset, (size_t)size };
        return OCT_OK;
    }
    const oct_flat_list data = oct_flat_bytes(f, &t, OCT_TFL_BUFFER_DATA);
    r->buffer[i] = (bytes){ data.p, data.n };
    return sound(r);
}

static oct_status read_buffers(reading *r, const oct_flat_node *model)
{
    const oct_flat_list list = oct_flat_elements(&r->f, model, OCT_TFL_MODEL_BUFFERS, 4);
    if (!(r->buffer = oct_arena_calloc(r->arena, list.n + 1, sizeof *r->buffer)))
        return oct_nomem(r->err);
    r->n_buffer = list.n;
    for (size_t i = 0; i < list.n; i++)
        OCT_TRY(read_buffer(r, &list, i));
    return OCT_OK;
}

/* The number stands in a byte, and since there are more operators than bytes, also in a field of its own. */
static oct_status read_codes(reading *r, const oct_flat_node *model)
{
    oct_flat_in *f = &r->f;
    const oct_flat_list list = oct_flat_elements(f, model, OCT_TFL_MODEL_CODES, 4);
    if (!(r->code = oct_arena_calloc(r->arena, list.n + 1, sizeof *r->code)))
        return oct_nomem(r->err);
    r->n_code = list.n;
    for (size_t i = 0; i < list.n; i++) {
        const oct_flat_node t = oct_flat_element(f, &list, i);
        const int32_t narrow = (int32_t)oct_flat_number(f, &t, OCT_TFL_CODE_DEPRECATED, 1, 0);
        const int32_t wide = (int32_t)oct_flat_number(f, &t, OCT_TFL_CODE_BUILTIN, 4, 0);
        const char *custom = oct_flat_text(f, &t, OCT_TFL_CODE_CUSTOM);
        r->code[i].code = (oct_tfl_code)(wide > narrow ? wide : narrow);
        r->code[i].version = (int32_t)oct_flat_number(f, &t, OCT_TFL_CODE_VERSION, 4, 1);
        r->code[i].custom = r->code[i].code == OCT_TFL_CUSTOM ? custom : NULL;
    }
    return sound(r);
}

/* ---- tensors ---- */

static int32_t int_at(const oct_flat_list *l, size_t i)
{
    return (int32_t)oct_le_u32(l->p + 4 * i);
}

static oct_status read_shape(reading *r, const oct_flat_node *t, oct_tfl_tensor *x)
{
    const oct_flat_list shape = oct_flat_elements(&r->f, t, OCT_TFL_TENSOR_SHAPE, 4);
    const oct_flat_list open = oct_flat_elements(&r->f, t, OCT_TFL_TENSOR_SIGNATURE, 4);
    if (shape.n > OCT_MAX_RANK)
        return UNSUPPORTED(r, "it has %zu dimensions, at most %d can be read", shape.n, OCT_MAX_RANK);
    x->rank = (int)shape.n;
    x->open = -1;
    for (int i = 0; i < x->rank; i++) {
        x->dims[i] = int_at(&shape, (size_t)i);
        if (x->dims[i] < -1)
            return MALFORMED(r, "its dimension %d is %d", i, (int)x->dims[i]);
        if (x->dims[i] >= 0 && (open.n != shape.n || int_at(&open, (size_t)i) >= 0))
            continue;
        x->dims[i] = x->dims[i] < 0 ? 1 : x->dims[i];
        x->more_open = x->open >= 0;
        x->open = x->open >= 0 ? x->open : i;
    }
    return sound(r);
}

/* Bytes aligned to `align`: those of the file if they are, else a copy, which all that use them share. */
static oct_status align_bytes(reading *r, bytes *b, size_t align)
{
    if ((uintptr_t)b->p % align == 0)
        return OCT_OK;
    if (b->n > r->f.left)
        return MALFORMED(r, "the same bytes stand for too much");
    r->f.left -= b->n;
    b->p = oct_arena_memdup(r->arena, b->p, b->n);
    return b->p ? OCT_OK : oct_nomem(r->err);
}

static oct_status read_data(reading *r, const oct_flat_node *t, oct_tfl_tensor *x)
{
    const uint32_t buffer = (uint32_t)oct_flat_number(&r->f, t, OCT_TFL_TENSOR_BUFFER, 4, 0);
    const int bits = oct_tfl_type_bits(x->type);
    int64_t dims[OCT_MAX_RANK], count, all;
    if (buffer >= r->n_buffer && buffer)
        return MALFORMED(r, "it has buffer %u of %zu", buffer, r->n_buffer);
    if (!buffer || !r->buffer[buffer].n)
        return OCT_OK;
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    bytes *b = &r->buffer[buffer];
    if (!oct_count(dims, x->rank, &count) || __builtin_mul_overflow(count, (int64_t)bits, &all))
        return MALFORMED(r, "its shape is too large");
    const uint64_t need = bits ? (uint64_t)all / 8 + (all % 8 != 0) : b->n;
    if (need > b->n)
        return MALFORMED(r, "it has %zu bytes, and its type and shape ask for %llu", b->n, (unsigned long long)need);
    if (oct_tfl_type_bytes(x->type) > 1)
        OCT_TRY(align_bytes(r, b, oct_tfl_type_bytes(x->type) > 8 ? 8 : oct_tfl_type_bytes(x->type)));
    x->data = b->p;
    x->bytes = (size_t)need;
    return OCT_OK;
}

/* ---- scales ---- */

static oct_status zero_points(reading *r, const oct_flat_list *zp, size_t n, int32_t **to)
{
    bool zero = true;
    for (size_t i = 0; i < zp->n && zero; i++)
        zero = oct_le_u64(zp->p + 8 * i) == 0;
    if (zero && n <= r->n_zeros) {
        *to = r->zeros;
        return OCT_OK;
    }
    if (!(*to = oct_arena_calloc(r->arena, n, sizeof **to)))
        return oct_nomem(r->err);
    if (zero) {
        r->zeros = *to;
        r->n_zeros = n;
    }
    for (size_t i = 0; i < zp->n && !zero; i++) {
        const int64_t x = (int64_t)oct_le_u64(zp->p + 8 * i);
        (*to)[i] = x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
    }
    return OCT_OK;
}

/* The range of integers that are quantized; false: the type is none of theirs. */
static bool range_of(oct_tfl_type t, int64_t *least, int64_t *most)
{
    switch (t) {
    case OCT_TFL_INT2:
    case OCT_TFL_INT4:
    case OCT_TFL_INT8:
    case OCT_TFL_INT16:
    case OCT_TFL_INT32:
        *most = ((int64_t)1 << (oct_tfl_type_bits(t) - 1)) - 1;
        *least = -*most - 1;
        return true;
    case OCT_TFL_INT64: /* zero points are kept in 32 bits */
        *most = INT32_MAX;
        *least = INT32_MIN;
        return true;
    case OCT_TFL_UINT4:
    case OCT_TFL_UINT8:
    case OCT_TFL_UINT16:
        *most = ((int64_t)1 << oct_tfl_type_bits(t)) - 1;
        *least = 0;
        return true;
    default: return false;
    }
}

static oct_status check_scales(const reading *r, const oct_quant *q, int64_t least, int64_t most)
{
    for (int i = 0; i < q->n; i++) {
        if (!isfinite(q->scale[i]) || !(q->scale[i] > 0))
            return MALFORMED(r, "its scale %d is %g", i, (double)q->scale[i]);
        if (q->zp[i] < least || q->zp[i] > most)
            return MALFORMED(r, "its zero point %d is %d, which its type does not hold", i, (int)q->zp[i]);
    }
    return OCT_OK;
}

static oct_status read_scales(reading *r, const oct_flat_node *t, oct_tfl_tensor *x)
{
    oct_flat_in *f = &r->f;
    int64_t least, most;
    const oct_flat_node node = oct_flat_child(f, t, OCT_TFL_TENSOR_QUANTIZATION);
    const oct_flat_list scale = oct_flat_elements(f, &node, OCT_TFL_QUANT_SCALE, 4);
    const oct_flat_list zp = oct_flat_elements(f, &node, OCT_TFL_QUANT_ZERO_POINT, 8);
    const int32_t axis = (int32_t)oct_flat_number(f, &node, OCT_TFL_QUANT_AXIS, 4, 0);
    OCT_TRY(sound(r));
    if (oct_flat_number(f, &node, OCT_TFL_QUANT_DETAILS_TYPE, 1, 0))
        return UNSUPPORTED(r, "it is quantized in another way than by scales");
    if (!scale.n || !range_of(x->type, &least, &most))
        return OCT_OK; /* ranges that a converter has noted */
    if (zp.n && zp.n != scale.n)
        return MALFORMED(r, "it has %zu scales and %zu zero points", scale.n, zp.n);
    if (scale.n > 1 && (axis < 0 || axis >= x->rank || (size_t)x->dims[axis] != scale.n))
        return MALFORMED(r, "it has %zu scales for its dimension %d", scale.n, (int)axis);
    oct_quant *q = oct_arena_calloc(r->arena, 1, sizeof *q);
    int32_t *points;
    bytes b = { scale.p, 4 * scale.n };
    if (!q)
        return oct_nomem(r->err);
    OCT_TRY(align_bytes(r, &b, sizeof *q->scale));
    OCT_TRY(zero_points(r, &zp, scale.n, &points));
    x->axis = scale.n > 1 ? axis : 0;
    *q = (oct_quant){ .n = (int)scale.n,
                      .axis = x->axis,
                      .scale = (const float *)(const void *)b.p,
                      .zp = points,
                      .dtype = oct_tfl_type_dtype(x->type) };
    x->quant = q;
    return check_scales(r, q, least, most);
}

static oct_status read_tensor(reading *r, const oct_flat_list *list, size_t i)
{
    oct_flat_in *f = &r->f;
    oct_tfl_tensor *x = &r->m->tensor[i];
    const oct_flat_node t = oct_flat_element(f, list, i);
    x->name = oct_flat_text(f, &t, OCT_TFL_TENSOR_NAME);
    x->type = (oct_tfl_type)oct_flat_number(f, &t, OCT_TFL_TENSOR_TYPE, 1, 0);
    x->variable = oct_flat_number(f, &t, OCT_TFL_TENSOR_VARIABLE, 1, 0) != 0;
    OCT_TRY(read_shape(r, &t, x));
    if (oct_tfl_type_name(x->type)[0] == '?')
        return UNSUPPORTED(r, "its type is number %d", (int)x->type);
    if (oct_flat_has(f, &t, OCT_TFL_TENSOR_SPARSITY))
        return UNSUPPORTED(r, "it is sparse");
    OCT_TRY(read_data(r, &t, x));
    OCT_TRY(read_scales(r, &t, x));
    return sound(r);
}

static oct_status read_tensors(reading *r, const oct_flat_node *graph)
{
    oct_tfl_model *m = r->m;
    const oct_flat_list list = oct_flat_elements(&r->f, graph, OCT_TFL_SUBGRAPH_TENSORS, 4);
    if (!(m->tensor = oct_arena_calloc(r->arena, list.n + 1, sizeof *m->tensor)))
        return oct_nomem(r->err);
    m->n_tensor = m->cap_tensor = list.n;
    for (size_t i = 0; i < list.n; i++)
        OCT_TRY(within_tensor(r, i, read_tensor(r, &list, i)));
    return OCT_OK;
}

/* ---- operators ---- */

static const char *fields_of(uint32_t options)
{
    static const struct {
        uint32_t number;
        const char *fields;
    } known[] = {
#define OPTIONS(number, fields) { number, fields },
#include "tflite/schema_options.inc"
#undef OPTIONS
    };
    for (size_t i = 0; i < OCT_COUNT(known); i++)
        if (known[i].number == options)
            return known[i].fields;
    return "";
}

static oct_status read_options(reading *r, const oct_flat_node *t, oct_tfl_operator *o)
{
    oct_flat_in *f = &r->f;
    const uint32_t options = (uint32_t)oct_flat_number(f, t, OCT_TFL_OPERATOR_OPTIONS_TYPE, 1, 0);
    const int own = oct_tfl_code_options(o->code);
    const char *fields = fields_of(options);
    if (!options)
        return OCT_OK;
    if (own && options != (uint32_t)own)
        return MALFORMED(r, "its options are those of another operator");
    const oct_flat_node table = oct_flat_child(f, t, OCT_TFL_OPERATOR_OPTIONS);
    for (int slot = 0; fields[slot] && o->n_fields < OCT_TFL_FIELDS; slot++) {
        const int width = fields[slot] == 'w' ? 4 : 1;
        if (fields[slot] == '-' || !oct_flat_has(f, &table, slot))
            continue;
        const uint32_t bits = (uint32_t)oct_flat_number(f, &table, slot, width, 0);
        o->field[o->n_fields++] = (oct_flat_field){ slot, width, bits };
    }
    return sound(r);
}

static oct_status read_indices(reading *r, const oct_flat_node *t, int slot, bool absent, const char *what, int **to,
                               int *n)
{
    const oct_flat_list l = oct_flat_elements(&r->f, t, slot, 4);
    OCT_TRY(sound(r));
    if (!(*to = oct_arena_calloc(r->arena, l.n + 1, sizeof **to)))
        return oct_nomem(r->err);
    for (size_t i = 0; i < l.n; i++, *n = (int)i) { /* only what is right counts, also in an error */
        (*to)[i] = int_at(&l, i);
        if ((*to)[i] < (absent ? -1 : 0) || ((*to)[i] >= 0 && (size_t)(*to)[i] >= r->m->n_tensor))
            return MALFORMED(r, "its %s %zu is tensor %d of %zu", what, i, (*to)[i], r->m->n_tensor);
    }
    return OCT_OK;
}

static oct_status read_operator(reading *r, const oct_flat_list *list, size_t i)
{
    oct_tfl_operator *o = &r->m->op[i];
    const oct_flat_node t = oct_flat_element(&r->f, list, i);
    const uint32_t at = (uint32_t)oct_flat_number(&r->f, &t, OCT_TFL_OPERATOR_CODE, 4, 0);
    OCT_TRY(sound(r));
    if (at >= r->n_code)
        return MALFORMED(r, "its code is %u of %zu", at, r->n_code);
    o->code = r->code[at].code;
    o->version = r->code[at].version;
    o->custom = r->code[at].custom;
    OCT_TRY(read_indices(r, &t, OCT_TFL_OPERATOR_INPUTS, true, "input", &o->in, &o->n_in));
    OCT_TRY(read_indices(r, &t, OCT_TFL_OPERATOR_OUTPUTS, false, "output", &o->out, &o->n_out));
    OCT_TRY(read_indices(r, &t, OCT_TFL_OPERATOR_INTERMEDIATES, true, "tensor within", &o->within, &o->n_within));
    return read_options(r, &t, o);
}

static oct_status read_operators(reading *r, const oct_flat_node *graph)
{
    oct_tfl_model *m = r->m;
    const oct_flat_list list = oct_flat_elements(&r->f, graph, OCT_TFL_SUBGRAPH_OPERATORS, 4);
    if (!(m->op = oct_arena_calloc(r->arena, list.n + 1, sizeof *m->op)))
        return oct_nomem(r->err);
    m->cap_op = list.n;
    for (size_t i = 0; i < list.n; i++) {
        m->n_op = i + 1;
        OCT_TRY(within_operator(r, i, read_operator(r, &list, i)));
    }
    return sound(r);
}

/* ---- inputs and outputs ---- */

static oct_status read_ends(reading *r, const oct_flat_node *graph, int slot, const char *what, oct_tfl_end **end,
                            size_t *n)
{
    int *index, count = 0;
    OCT_TRY_WITHIN(read_indices(r, graph, slot, false, what, &index, &count), r->err, "the subgraph");
    if (!(*end = oct_arena_calloc(r->arena, (size_t)count + 1, sizeof **end)))
        return oct_nomem(r->err);
    for (int i = 0; i < count; i++)
        (*end)[i] = (oct_tfl_end){ r->m->tensor[index[i]].name, index[i], oct_tfl_plain() };
    *n = (size_t)count;
    return OCT_OK;
}

/* Names of ends from a list of the signature, which has its own order. */
static oct_status name_ends(reading *r, const oct_flat_node *signature, int slot, oct_tfl_end *end, size_t n)
{
    oct_flat_in *f = &r->f;
    const oct_flat_list list = oct_flat_elements(f, signature, slot, 4);
    int *end_of = oct_arena_calloc(r->arena, r->m->n_tensor + 1, sizeof *end_of); /* 1 + the end that a tensor is */
    if (!end_of)
        return oct_nomem(r->err);
    for (size_t i = n; i-- > 0;)
        end_of[end[i].tensor] = (int)i + 1;
    for (size_t i = 0; i < list.n; i++) {
        const oct_flat_node map = oct_flat_element(f, &list, i);
        const uint32_t tensor = (uint32_t)oct_flat_number(f, &map, OCT_TFL_MAP_TENSOR, 4, 0);
        const char *name = oct_flat_text(f, &map, OCT_TFL_MAP_NAME);
        if (tensor < r->m->n_tensor && end_of[tensor] && *name)
            end[end_of[tensor] - 1].name = name;
    }
    return sound(r);
}

static oct_status read_signature(reading *r, const oct_flat_node *model)
{
    oct_flat_in *f = &r->f;
    const oct_flat_list list = oct_flat_elements(f, model, OCT_TFL_MODEL_SIGNATURES, 4);
    for (size_t i = 0; i < list.n; i++) {
        const oct_flat_node t = oct_flat_element(f, &list, i);
        if (oct_flat_number(f, &t, OCT_TFL_SIGNATURE_SUBGRAPH, 4, 0) != 0)
            continue;
        OCT_TRY(name_ends(r, &t, OCT_TFL_SIGNATURE_INPUTS, r->m->input, r->m->n_input));
        return name_ends(r, &t, OCT_TFL_SIGNATURE_OUTPUTS, r->m->output, r->m->n_output);
    }
    return sound(r);
}

/* ---- order ---- */

/* Whether the tensor holds something before any operator has run. A type of fixed size without elements does. */
static bool given(reading *r, int tensor)
{
    static const uint64_t nothing[2];
    oct_tfl_tensor *t = &r->m->tensor[tensor];
    bool empty = false;
    for (int i = 0; i < t->rank; i++)
        empty = empty || !t->dims[i];
    if (!t->data && empty && t->open < 0 && oct_tfl_type_bits(t->type))
        t->data = nothing;
    return t->data || t->variable;
}

/* Each tensor is made once, before it is read. */
static oct_status check_order(reading *r)
{
    oct_tfl_model *m = r->m;
    bool *there = oct_arena_calloc(r->arena, m->n_tensor + 1, sizeof *there);
    if (!there)
        return oct_nomem(r->err);
    for (size_t i = 0; i < m->n_input; i++) {
        const int t = m->input[i].tensor;
        if (there[t] || m->tensor[t].data || m->tensor[t].variable)
            return MALFORMED(r, "input '%.*s' is there already", NAME_SHOWN, m->input[i].name);
        there[t] = true;
    }
    for (size_t i = 0; i < m->n_op; i++) {
        const oct_tfl_operator *o = &m->op[i];
        for (int k = 0; k < o->n_in; k++)
            if (o->in[k] >= 0 && !there[o->in[k]] && !given(r, o->in[k]))
                return within_operator(r, i, MALFORMED(r, "its input %d is made by no operator before it", k));
        for (int k = 0; k < o->n_out; k++) {
            const oct_tfl_tensor *t = &m->tensor[o->out[k]];
            if (there[o->out[k]] || t->data || t->variable)
                return within_operator(r, i, MALFORMED(r, "its output %d is there already", k));
            there[o->out[k]] = true;
        }
    }
    for (size_t i = 0; i < m->n_output; i++)
        if (!there[m->output[i].tensor] && !given(r, m->output[i].tensor))
            return MALFORMED(r, "output '%.*s' is made by no operator", NAME_SHOWN, m->output[i].name);
    return OCT_OK;
}

/* ---- the whole ---- */

static oct_status read_graph(reading *r, const oct_flat_node *model)
{
    const oct_flat_list list = oct_flat_elements(&r->f, model, OCT_TFL_MODEL_SUBGRAPHS, 4);
    const oct_flat_node graph = oct_flat_element(&r->f, &list, 0);
    oct_tfl_model *m = r->m;
    OCT_TRY(sound(r));
    if (!graph.at)
        return MALFORMED(r, "it has no subgraph");
    m->n_subgraph = list.n;
    m->name = oct_flat_text(&r->f, &graph, OCT_TFL_SUBGRAPH_NAME);
    OCT_TRY(read_tensors(r, &graph));
    OCT_TRY(read_ends(r, &graph, OCT_TFL_SUBGRAPH_INPUTS, "input", &m->input, &m->n_input));
    OCT_TRY(read_ends(r, &graph, OCT_TFL_SUBGRAPH_OUTPUTS, "output", &m->output, &m->n_output));
    OCT_TRY(read_operators(r, &graph));
    OCT_TRY(read_signature(r, model));
    return check_order(r);
}

static oct_status read_model(reading *r, const void *data, size_t size)
{
    const oct_flat_node model = oct_flat_root(&r->f, data, size);
    OCT_TRY(sound(r));
    if (!oct_tfl_is_model(data, size))
        return MALFORMED(r, "not a .tflite file");
    const uint32_t version = (uint32_t)oct_flat_number(&r->f, &model, OCT_TFL_MODEL_VERSION, 4, 0);
    if (version != OCT_TFL_SCHEMA_VERSION)
        return UNSUPPORTED(r, "it has version %u of the schema, version %d can be read", version,
                           OCT_TFL_SCHEMA_VERSION);
    r->m->description = oct_flat_text(&r->f, &model, OCT_TFL_MODEL_DESCRIPTION);
    OCT_TRY(read_buffers(r, &model));
    OCT_TRY(read_codes(r, &model));
    return read_graph(r, &model);
}

oct_status oct_tfl_model_read(const void *data, size_t size, const char *path, oct_arena *arena, oct_tfl_model *m,
                              oct_err *err)
{
    reading r = { .m = m, .arena = arena, .err = err };
    *m = (oct_tfl_model){ .arena = arena };
    const oct_status s = read_model(&r, data, size);
    if (s != OCT_OK && path)
        oct_within(err, "%s", path);
    return s;
}
