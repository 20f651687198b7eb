/* lib/ops/tensor/op_const.c -- values that depend on shapes and attributes: Constant, ConstantOfShape, Shape, Size,
 * Range. */
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

static oct_status cannot(const char *type, oct_err *err)
{
    return oct_fail(err, OCT_EUNSUPPORTED, "values of type %s", type);
}

/* ------------------------------------------------------------------ Constant */

/* Type, shape and bytes of a Constant node; false for strings and sparse values. */
typedef struct literal {
    oct_dtype dtype;
    int rank;
    int64_t dims[OCT_MAX_RANK];
    const void *data;
    size_t bytes;
} literal;

static bool literal_of(const oct_node *n, literal *l)
{
    const oct_attr *a;
    memset(l, 0, sizeof *l);
    if ((a = oct_node_attr(n, "value")) != NULL && a->t != NULL) {
        if (a->t->rank > OCT_MAX_RANK)
            return false;
        *l = (literal){ .dtype = a->t->dtype, .rank = a->t->rank, .data = a->t->data, .bytes = a->t->bytes };
        if (a->t->rank > 0)
            memcpy(l->dims, a->t->dims, (size_t)a->t->rank * sizeof *l->dims);
        return true;
    }
    if ((a = oct_node_attr(n, "value_float")) != NULL)
        *l = (literal){ .dtype = OCT_F32, .data = &a->f, .bytes = sizeof a->f };
    else if ((a = oct_node_attr(n, "value_int")) != NULL)
        *l = (literal){ .dtype = OCT_S64, .data = &a->i, .bytes = sizeof a->i };
    else if ((a = oct_node_attr(n, "value_floats")) != NULL)
        *l = (literal){ OCT_F32, 1, { a->n }, a->floats, (size_t)a->n * sizeof(float) };
    else if ((a = oct_node_attr(n, "value_ints")) != NULL)
        *l = (literal){ OCT_S64, 1, { a->n }, a->ints, (size_t)a->n * sizeof(int64_t) };
    else
        return false;
    return true;
}

static oct_status set_dims(const oct_infer *c, int rank, const int64_t *dims, oct_err *err)
{
    oct_dim d[OCT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        d[i] = oct_dim_of(dims[i]);
    return oct_out_shape(c, 0, rank, d, err);
}

static oct_status constant_infer(const oct_infer *c, oct_err *err)
{
    literal l;
    if (!literal_of(oct_in_node(c), &l)) {
        if (oct_node_attr(oct_in_node(c), "value_string") != NULL)
            OCT_TRY(oct_out_shape(c, 0, 0, NULL, err));
        if (oct_node_attr(oct_in_node(c), "value_string") != NULL ||
            oct_node_attr(oct_in_node(c), "value_strings") != NULL)
            oct_out_dtype(c, 0, OCT_STRING);
        return OCT_OK;
    }
    oct_out_dtype(c, 0, l.dtype);
    OCT_TRY(set_dims(c, l.rank, l.dims, err));
    int64_t n;
    if (!oct_known_wanted(c) || l.data == NULL || !oct_count(l.dims, l.rank, &n) || n > OCT_KNOWN_MAX)
        return OCT_OK;
    oct_operand t = { .dtype = l.dtype, .count = n, .data = (void *)(uintptr_t)l.data };
    oct_dim d[OCT_KNOWN_MAX];
    for (int64_t i = 0; i < n; i++)
        d[i] = oct_known_of(oct_elem_int(&t, i));
    return oct_out_known(c, 0, (int)n, d, err);
}

static oct_status constant_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    literal l;
    size_t bytes;
    if (!literal_of(s->node, &l) || l.data == NULL)
        return cannot("string or sparse tensor", err);
    if (!oct_dtype_bytes(s->out[0]->dtype, s->out[0]->count, &bytes) || bytes != l.bytes)
        return oct_fail(err, OCT_EMALFORMED, "the value has %zu bytes, its shape needs another number", l.bytes);
    if (bytes > 0)
        memcpy(s->out[0]->data, l.data, bytes);
    return OCT_OK;
}

const oct_op oct_op_constant = {
    OCT_SCHEMA("Constant", "", 1, 0, 0, 1, 1),
    .infer = constant_infer,
    .run = constant_run,
};

/* ------------------------------------------------------------------ ConstantOfShape */

static oct_status fill_infer(const oct_infer *c, oct_err *err)
{
    const oct_attr *a = oct_node_attr(oct_in_node(c), "value");
    if (a != NULL && (a->t == NULL || a->t->count != 1))
        return oct_fail(err, OCT_EMALFORMED, "'value' must have one element");
    oct_out_dtype(c, 0, a != NULL ? a->t->dtype : OCT_F32);
    oct_dim d[OCT_MAX_RANK];
    int n = oct_in_ints(c, 0, d, OCT_MAX_RANK);
    if (n < 0)
        return OCT_OK;
    for (int i = 0; i < n; i++)
        if (d[i].sym == oct_minus_one || d[i].n < -1)
            return oct_fail(err, OCT_EMALFORMED, "dimension %d of the shape is negative", i);
    OCT_TRY(oct_out_shape(c, 0, n, d, err));
    if (!oct_known_wanted(c) || a == NULL || a->t->data == NULL || n > 1 ||
        (n == 1 && (d[0].n < 0 || d[0].n > OCT_KNOWN_MAX)))
        return OCT_OK;
    oct_operand t = { .dtype = a->t->dtype, .count = 1, .data = (void *)(uintptr_t)a->t->data };
    oct_dim known[OCT_KNOWN_MAX];
    int count = n == 1 ? (int)d[0].n : 1;
    for (int i = 0; i < count; i++)
        known[i] = oct_known_of(oct_elem_int(&t, 0));
    return oct_out_known(c, 0, count, known, err);
}

/* Elements of 2 or 4 bits, several to a byte; what is left of the last one is zero. */
static void fill_packed(const oct_operand *y, int bits, uint8_t qval)
{
    const int64_t per = 8 / bits, whole = y->count / per;
    const unsigned most = (1u << bits) - 1, byte = (qval & most) * (0xffu / most);
    memset(y->data, (int)byte, (size_t)whole);
    if (y->count % per)
        ((uint8_t *)y->data)[whole] = (uint8_t)(byte & ((1u << (y->count % per * bits)) - 1));
}

static oct_status fill_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_attr *a = oct_node_attr(s->node, "value");
    const oct_operand *out = s->out[0];
    const size_t size = oct_elem_size(out->dtype);
    const int bits = (int)oct_dtype_bits(out->dtype);
    uint8_t *y = out->data;
    if (bits == 0 || (a != NULL && a->t->data == NULL))
        return cannot(oct_dtype_name(out->dtype), err);
    if (bits < 8)
        fill_packed(out, bits, a != NULL ? *(const uint8_t *)a->t->data : 0);
    for (int64_t i = 0; i < out->count && bits >= 8; i++) {
        if (a != NULL)
            memcpy(y + (size_t)i * size, a->t->data, size);
        else
            memset(y + (size_t)i * size, 0, size);
    }
    return OCT_OK;
}

const oct_op oct_op_constant_of_shape = {
    OCT_SCHEMA("ConstantOfShape", "", 9, 1, 1, 1, 1),
    .infer = fill_infer,
    .run = fill_run,
};

/* ------------------------------------------------------------------ Shape, Size */

static int64_t clamp_axis(int64_t v, int rank)
{
    if (v < 0)
        v += rank;
    return v < 0 ? 0 : v > rank ? rank : v;
}

static oct_status shape_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, OCT_S64);
    if (in.rank < 0) {
        oct_dim one = { -1, NULL };
        return oct_out_shape(c, 0, 1, &one, err);
    }
    int64_t start = clamp_axis(oct_node_int(oct_in_node(c), "start", 0), in.rank);
    int64_t end = clamp_axis(oct_node_int(oct_in_node(c), "end", in.rank), in.rank);
    oct_dim n = oct_dim_of(end > start ? end - start : 0);
    OCT_TRY(oct_out_shape(c, 0, 1, &n, err));
    return oct_out_known(c, 0, (int)n.n, n.n > 0 ? in.d + start : in.d, err);
}

static oct_status shape_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    int rank = s->in[0]->rank;
    int64_t start = clamp_axis(oct_node_int(s->node, "start", 0), rank);
    int64_t end = clamp_axis(oct_node_int(s->node, "end", rank), rank);
    for (int64_t i = start; i < end; i++)
        ((int64_t *)s->out[0]->data)[i - start] = s->in[0]->dims[i];
    return OCT_OK;
}

const oct_op oct_op_shape = {
    OCT_SCHEMA("Shape", "", 1, 1, 1, 1, 1),
    .infer = shape_infer,
    .run = shape_run,
    .moves = true,
    .layout = OCT_RULE_ANY,
};

static oct_status size_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, OCT_S64);
    OCT_TRY(oct_out_shape(c, 0, 0, NULL, err));
    if (in.rank < 0)
        return OCT_OK;
    oct_dim n = oct_dim_of(1);
    for (int i = 0; i < in.rank; i++)
        n = oct_dim_mul(n, in.d[i]);
    return oct_out_known(c, 0, 1, &n, err);
}

static oct_status size_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    *(int64_t *)s->out[0]->data = s->in[0]->count;
    return OCT_OK;
}

const oct_op oct_op_size = {
    OCT_SCHEMA("Size", "", 1, 1, 1, 1, 1), .infer = size_infer, .run = size_run, .moves = true, .layout = OCT_RULE_ANY,
};

/* ------------------------------------------------------------------ Range */

/* ceil((limit - start) / delta), at least 0; -1 when it cannot be: delta 0 or NaN, or too many. */
static int64_t range_count(double start, double limit, double delta)
{
    if (delta == 0)
        return -1;
    double n = ceil((limit - start) / delta);
    if (n != n || n > 0x1p53)
        return -1;
    return n > 0 ? (int64_t)n : 0;
}

/* The same, exact for any 64-bit integers. */
static int64_t range_count_int(int64_t start, int64_t limit, int64_t delta)
{
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    if (step == 0)
        return -1;
    if (delta > 0 ? limit <= start : limit >= start)
        return 0;
    uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t n = (span - 1) / step + 1;
    return n > INT64_MAX ? -1 : (int64_t)n;
}

/* Number i: none passes 64 bits, but the way there from `start` may. */
static int64_t range_int(int64_t start, int64_t i, int64_t delta)
{
    return (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
}

/* A constant scalar input of any type. */
static bool scalar_in(const oct_infer *c, int slot, double *v)
{
    const oct_value *in = oct_in_value(c, slot);
    if (in == NULL || in->constant == NULL || in->constant->data == NULL || in->constant->count != 1 ||
        oct_dom_of(in->constant->dtype) == OCT_DOM_NONE)
        return false;
    oct_operand t = { .dtype = in->constant->dtype, .count = 1, .data = (void *)(uintptr_t)in->constant->data };
    *v = oct_elem_double(&t, 0);
    return true;
}

static oct_status range_infer(const oct_infer *c, oct_err *err)
{
    oct_dim n = { -1, NULL };
    double d[3];
    int64_t v[3];
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    oct_dtype t = oct_in_dtype(c, 0);
    bool whole = t == OCT_S64 || t == OCT_S32;
    if (whole && oct_in_consts(c, 0, &v[0], 1) == 1 && oct_in_consts(c, 1, &v[1], 1) == 1 &&
        oct_in_consts(c, 2, &v[2], 1) == 1)
        n.n = range_count_int(v[0], v[1], v[2]);
    else if (!whole && scalar_in(c, 0, &d[0]) && scalar_in(c, 1, &d[1]) && scalar_in(c, 2, &d[2]))
        n.n = range_count(d[0], d[1], d[2]);
    else
        return oct_out_shape(c, 0, 1, &n, err);
    if (n.n < 0)
        return oct_fail(err, OCT_EMALFORMED, "the step is zero or the range too long");
    OCT_TRY(oct_out_shape(c, 0, 1, &n, err));
    if (!whole || n.n > OCT_KNOWN_MAX)
        return OCT_OK;
    oct_dim known[OCT_KNOWN_MAX];
    for (int64_t i = 0; i < n.n; i++)
        known[i] = oct_known_of(range_int(v[0], i, v[2]));
    return oct_out_known(c, 0, (int)n.n, known, err);
}

static oct_status range_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    return oct_dom_of(s->out[0]->dtype) == OCT_DOM_NONE ? cannot(oct_dtype_name(s->out[0]->dtype), err) : OCT_OK;
}

static oct_status range_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *y = s->out[0];
    oct_dom dom = oct_dom_of(y->dtype);
    for (int i = 0; i < 3; i++)
        if (s->in[i]->count != 1 || s->in[i]->dtype != y->dtype)
            return oct_fail(err, OCT_EMALFORMED, "input %d is not one %s", i, oct_dtype_name(y->dtype));
    double start = oct_elem_double(s->in[0], 0), delta = oct_elem_double(s->in[2], 0);
    int64_t istart = oct_elem_int(s->in[0], 0), idelta = oct_elem_int(s->in[2], 0);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t whole = range_int(istart, i, idelta);
        double real = start + (double)i * delta;
        float single = (float)start + (float)i * (float)delta;
        const void *v = dom == OCT_DOM_F ? (const void *)&single : dom == OCT_DOM_D ? (const void *)&real : &whole;
        oct_elem_store(y->dtype, y->data, i, 1, 1, dom, v);
    }
    return OCT_OK;
}

const oct_op oct_op_range = {
    OCT_SCHEMA("Range", "", 11, 3, 3, 1, 1),
    .infer = range_infer,
    .prepare = range_prepare,
    .run = range_run,
    .f16 = 27,
    .bf16 = 27,
    .counts = 7,
};
