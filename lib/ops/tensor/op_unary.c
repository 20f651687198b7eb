/* lib/ops/tensor/op_unary.c -- functions of one element: activations, elementary functions, Clip, Not, IsNaN, IsInf. */
#include "kernels/half.h"
#include "kernels/math.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"
#include "ops/core/unary_f64.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ which function */

typedef struct function {
    const char *type;
    oct_unary_op op;
    const char *a;  /* attribute of the first parameter ... */
    float a_absent; /* ... and its default */
    const char *b;
    float b_absent;
} function;

static const function functions[] = {
    { "Relu", OCT_UNARY_RELU, NULL, 0, NULL, 0 },
    { "Clip", OCT_UNARY_CLIP, NULL, -INFINITY, NULL, INFINITY },
    { "LeakyRelu", OCT_UNARY_LEAKY_RELU, "alpha", 0.01f, NULL, 0 },
    { "ThresholdedRelu", OCT_UNARY_THRESHOLDED_RELU, "alpha", 1.0f, NULL, 0 },
    { "Sigmoid", OCT_UNARY_SIGMOID, NULL, 0, NULL, 0 },
    { "HardSigmoid", OCT_UNARY_HARD_SIGMOID, "alpha", 0.2f, "beta", 0.5f },
    { "HardSwish", OCT_UNARY_HARD_SWISH, NULL, 0, NULL, 0 },
    { "Swish", OCT_UNARY_SWISH, "alpha", 1.0f, NULL, 0 },
    { "Mish", OCT_UNARY_MISH, NULL, 0, NULL, 0 },
    { "Tanh", OCT_UNARY_TANH, NULL, 0, NULL, 0 },
    { "Elu", OCT_UNARY_ELU, "alpha", 1.0f, NULL, 0 },
    { "Celu", OCT_UNARY_CELU, "alpha", 1.0f, NULL, 0 },
    { "Selu", OCT_UNARY_SELU, "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f },
    { "Softplus", OCT_UNARY_SOFTPLUS, NULL, 0, NULL, 0 },
    { "Softsign", OCT_UNARY_SOFTSIGN, NULL, 0, NULL, 0 },
    { "Erf", OCT_UNARY_ERF, NULL, 0, NULL, 0 },
    { "Gelu", OCT_UNARY_GELU, NULL, 0, NULL, 0 },
    { "Exp", OCT_UNARY_EXP, NULL, 0, NULL, 0 },
    { "Log", OCT_UNARY_LOG, NULL, 0, NULL, 0 },
    { "Sqrt", OCT_UNARY_SQRT, NULL, 0, NULL, 0 },
    { "Reciprocal", OCT_UNARY_RECIPROCAL, NULL, 0, NULL, 0 },
    { "Abs", OCT_UNARY_ABS, NULL, 0, NULL, 0 },
    { "Neg", OCT_UNARY_NEG, NULL, 0, NULL, 0 },
    { "Sign", OCT_UNARY_SIGN, NULL, 0, NULL, 0 },
    { "Floor", OCT_UNARY_FLOOR, NULL, 0, NULL, 0 },
    { "Ceil", OCT_UNARY_CEIL, NULL, 0, NULL, 0 },
    { "Round", OCT_UNARY_ROUND, NULL, 0, NULL, 0 },
    { "Sin", OCT_UNARY_SIN, NULL, 0, NULL, 0 },
    { "Cos", OCT_UNARY_COS, NULL, 0, NULL, 0 },
    { "Tan", OCT_UNARY_TAN, NULL, 0, NULL, 0 },
    { "Asin", OCT_UNARY_ASIN, NULL, 0, NULL, 0 },
    { "Acos", OCT_UNARY_ACOS, NULL, 0, NULL, 0 },
    { "Atan", OCT_UNARY_ATAN, NULL, 0, NULL, 0 },
    { "Sinh", OCT_UNARY_SINH, NULL, 0, NULL, 0 },
    { "Cosh", OCT_UNARY_COSH, NULL, 0, NULL, 0 },
    { "Asinh", OCT_UNARY_ASINH, NULL, 0, NULL, 0 },
    { "Acosh", OCT_UNARY_ACOSH, NULL, 0, NULL, 0 },
    { "Atanh", OCT_UNARY_ATANH, NULL, 0, NULL, 0 },
    { "Shrink", OCT_UNARY_SHRINK, "lambd", 0.5f, "bias", 0 },
};

/* type: of the record; a lowered node may have another (QLinearSigmoid). */
static oct_unary function_of(const char *type, const oct_node *n)
{
    oct_unary f = { OCT_UNARY_COPY, 0, 0 };
    for (size_t i = 0; i < OCT_COUNT(functions); i++) {
        const function *k = &functions[i];
        if (strcmp(k->type, type) != 0)
            continue;
        f.op = k->op;
        f.a = k->a != NULL ? oct_node_float(n, k->a, k->a_absent) : k->a_absent;
        f.b = k->b != NULL ? oct_node_float(n, k->b, k->b_absent) : k->b_absent;
    }
    if (f.op == OCT_UNARY_GELU && strcmp(oct_node_str(n, "approximate", "none"), "tanh") == 0)
        f.op = OCT_UNARY_GELU_TANH;
    return f;
}

/* ------------------------------------------------------------------ integers */

static bool int_of(const oct_unary *f, bool is_unsigned, int64_t x, int64_t *y)
{
    bool negative = !is_unsigned && x < 0;
    switch (f->op) {
    case OCT_UNARY_RELU: *y = negative ? 0 : x; return true;
    case OCT_UNARY_ABS: *y = negative ? (int64_t)(0 - (uint64_t)x) : x; return true;
    case OCT_UNARY_NEG: *y = (int64_t)(0 - (uint64_t)x); return true;
    case OCT_UNARY_SIGN: *y = negative ? -1 : x != 0; return true;
    case OCT_UNARY_SHRINK:
    case OCT_UNARY_ERF: { /* through double, truncated */
        double v = 0;
        oct_unary_f64(f, is_unsigned ? (double)(uint64_t)x : (double)x, &v);
        oct_elem_store(is_unsigned ? OCT_U64 : OCT_S64, y, 0, 1, 1, OCT_DOM_D, &v);
        return true;
    }
    default: return false;
    }
}

/* ------------------------------------------------------------------ running */

typedef struct unary {
    oct_unary f;
    const uint8_t *table; /* quantized: the map of quantized values */
} unary;

typedef struct walk {
    const oct_unary *f;
    const oct_operand *x, *y;
} walk;

static void unary_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    oct_dom dom = oct_dom_of(w->x->dtype);
    oct_chunk bx, by;
    const void *x = oct_elem_load(w->x->dtype, w->x->data, o[1], st[1], n, &bx);
    void *y = oct_elem_buffer(w->y->dtype, w->y->data, o[0], st[0], &by);
    if (dom == OCT_DOM_F)
        oct_unary_f32(NULL, w->f, x, y, (size_t)n);
    else if (dom == OCT_DOM_D)
        for (int64_t i = 0; i < n; i++)
            oct_unary_f64(w->f, ((const double *)x)[i], (double *)y + i);
    else
        for (int64_t i = 0; i < n; i++)
            int_of(w->f, dom == OCT_DOM_U, ((const int64_t *)x)[i], (int64_t *)y + i);
    oct_elem_store(w->y->dtype, w->y->data, o[0], st[0], n, dom, y);
}

static oct_status unary_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    unary *u = oct_arena_calloc(p->arena, 1, sizeof *u);
    if (u == NULL)
        return oct_nomem(err);
    u->f = function_of(s->op->type, s->node);
    s->state = u;
    s->overwrites = oct_elem_overwrites(s, 1);
    if (oct_q8(s->in[0]) && oct_q8(s->out[0]))
        return oct_q8_table(s->in[0], s->out[0], &u->f, p->arena, &u->table, err);
    double y;
    int64_t i;
    oct_dom dom = oct_dom_of(s->in[0]->dtype);
    bool ok = dom == OCT_DOM_F || (dom == OCT_DOM_D && oct_unary_f64(&u->f, 1.0, &y)) ||
              ((dom == OCT_DOM_I || dom == OCT_DOM_U) && int_of(&u->f, false, 1, &i));
    if (!ok || s->in[0]->dtype != s->out[0]->dtype)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

/* The walk over input 0 and output 0. */
static void unary_walk(const oct_step *s, oct_nd *d)
{
    oct_nd_init(d, s->out[0]);
    oct_nd_add(d, s->in[0]);
}

static bool same_layout(const oct_step *s)
{
    return s->in[0]->layout == s->out[0]->layout;
}

static oct_status apply(const oct_step *s, const oct_run *r, const oct_unary *f, const uint8_t *table)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    oct_nd d;
    unary_walk(s, &d);
    if (table != NULL && same_layout(s)) {
        oct_lut_8(r->pool, table, x->data, y->data, (size_t)y->count);
    } else if (table != NULL) {
        oct_nd_copy(&d, r->pool, y->data, x->data, 1, table);
    } else if (x->dtype == OCT_F32 && same_layout(s)) {
        oct_unary_f32(r->pool, f, x->data, y->data, (size_t)y->count);
    } else {
        walk w = { f, x, y };
        oct_nd_run(&d, r->pool, unary_row, &w);
    }
    return OCT_OK;
}

static oct_status unary_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const unary *u = s->state;
    return apply(s, r, &u->f, u->table);
}

/* Neg keeps known elements: lengths counted from the end of an axis. */
static oct_status neg_infer(const oct_infer *c, oct_err *err)
{
    oct_dim d[OCT_KNOWN_MAX];
    OCT_TRY(oct_out_like(c, 0, 0, err));
    if (!oct_known_wanted(c))
        return OCT_OK;
    int n = oct_in_ints(c, 0, d, OCT_KNOWN_MAX);
    for (int i = 0; i < n; i++) {
        int64_t v;
        bool known = oct_known_get(d[i], &v) && v != INT64_MIN;
        d[i] = known ? oct_known_of(-v) : (oct_dim){ -1, NULL };
    }
    return n < 0 ? OCT_OK : oct_out_known(c, 0, n, d, err);
}

static bool unary_integer(const oct_step *s)
{
    return s->n_out == 1 && oct_q8(s->in[0]) && oct_q8(s->out[0]);
}

/* ------------------------------------------------------------------ Clip */

/* Bounds as real numbers; false when they are not there yet. */
static bool clip_bounds(const oct_step *s, oct_unary *f)
{
    bool attrs = s->opset < 11;
    double lo, hi;
    if (!oct_step_scalar(s, attrs ? "min" : NULL, attrs ? -1 : 1, -INFINITY, &lo) ||
        !oct_step_scalar(s, attrs ? "max" : NULL, attrs ? -1 : 2, INFINITY, &hi))
        return false;
    *f = (oct_unary){ OCT_UNARY_CLIP, (float)lo, (float)hi };
    return true;
}

static bool is_plain_constant(const oct_step *s, int slot)
{
    return slot >= s->n_in || s->in[slot] == NULL || (s->in[slot]->constant && s->in[slot]->q == NULL);
}

static bool clip_integer(const oct_step *s)
{
    return unary_integer(s) && is_plain_constant(s, 1) && is_plain_constant(s, 2);
}

static oct_status clip_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    unary *u = oct_arena_calloc(p->arena, 1, sizeof *u);
    if (u == NULL)
        return oct_nomem(err);
    s->state = u;
    s->overwrites = oct_elem_overwrites(s, 1);
    if (oct_q8(s->in[0]) && oct_q8(s->out[0])) {
        if (!clip_bounds(s, &u->f))
            return oct_fail(err, OCT_EUNSUPPORTED, "quantized with computed bounds");
        return oct_q8_table(s->in[0], s->out[0], &u->f, p->arena, &u->table, err);
    }
    if (oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    for (int i = 1; i < s->n_in; i++)
        if (s->in[i] != NULL && s->in[i]->dtype != s->in[0]->dtype)
            return oct_fail(err, OCT_EMALFORMED, "bound %d is %s, the input %s", i, oct_dtype_name(s->in[i]->dtype),
                            oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

typedef struct clip_walk {
    const oct_operand *x, *y, *lo, *hi; /* lo, hi: scalars of the same type, or NULL */
} clip_walk;

#define CLIP(type)                                                                       \
    do {                                                                                 \
        const type *v = x;                                                               \
        type *to = y;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                \
            type t = v[i];                                                               \
            t = lo != NULL && t < ((const type *)lo)[0] ? ((const type *)lo)[0] : t;     \
            to[i] = hi != NULL && t > ((const type *)hi)[0] ? ((const type *)hi)[0] : t; \
        }                                                                                \
    } while (0)

static void clip_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const clip_walk *w = arg;
    oct_dom dom = oct_dom_of(w->x->dtype);
    oct_chunk bx, by, blo, bhi;
    const void *x = oct_elem_load(w->x->dtype, w->x->data, o[1], st[1], n, &bx);
    const void *lo = w->lo != NULL ? oct_elem_load(w->lo->dtype, w->lo->data, 0, 1, 1, &blo) : NULL;
    const void *hi = w->hi != NULL ? oct_elem_load(w->hi->dtype, w->hi->data, 0, 1, 1, &bhi) : NULL;
    void *y = oct_elem_buffer(w->y->dtype, w->y->data, o[0], st[0], &by);
    switch (dom) {
    case OCT_DOM_F: CLIP(float); break;
    case OCT_DOM_D: CLIP(double); break;
    case OCT_DOM_U: CLIP(uint64_t); break;
    default: CLIP(int64_t); break;
    }
    oct_elem_store(w->y->dtype, w->y->data, o[0], st[0], n, dom, y);
}

static const oct_operand *clip_bound(const oct_step *s, int slot)
{
    return slot < s->n_in && s->in[slot] != NULL && s->in[slot]->count > 0 ? s->in[slot] : NULL;
}

static oct_status clip_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const unary *u = s->state;
    oct_unary f = u->f;
    if (u->table != NULL)
        return apply(s, r, &f, u->table);
    if (oct_dom_of(s->in[0]->dtype) == OCT_DOM_F) {
        clip_bounds(s, &f);
        return apply(s, r, &f, NULL);
    }
    clip_walk w = { s->in[0], s->out[0], NULL, NULL };
    if (s->opset >= 11) {
        w.lo = clip_bound(s, 1);
        w.hi = clip_bound(s, 2);
    } else { /* attributes: only float types, so this is double */
        if (!clip_bounds(s, &f))
            return oct_fail(err, OCT_EINTERNAL, "Clip without bounds");
    }
    oct_operand lo = { .dtype = OCT_F32, .count = 1 }, hi = lo;
    double dlo = f.a, dhi = f.b;
    if (s->opset < 11) {
        lo.dtype = hi.dtype = OCT_F64;
        lo.data = &dlo;
        hi.data = &dhi;
        w.lo = &lo;
        w.hi = &hi;
    }
    oct_nd d;
    unary_walk(s, &d);
    oct_nd_run(&d, r->pool, clip_row, &w);
    return OCT_OK;
}

/* Opset 11: the bounds become inputs. */
static oct_status clip_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from != 10)
        return OCT_OK;
    OCT_TRY(oct_raise_float(g, node, "min", 1, err));
    return oct_raise_float(g, node, "max", 2, err);
}

/* ------------------------------------------------------------------ Not, IsNaN, IsInf */

static oct_status bool_infer(const oct_infer *c, oct_err *err)
{
    OCT_TRY(oct_out_like(c, 0, 0, err));
    oct_out_dtype(c, 0, OCT_BOOL);
    return OCT_OK;
}

typedef struct test {
    const oct_operand *x, *y;
    char what; /* '!', 'n'an, 'i'nf */
    bool positive, negative;
} test;

#define TEST_EACH(type, expr)                \
    for (int64_t i = 0; i < n; i++) {        \
        const type v = ((const type *)x)[i]; \
        y[i] = (uint8_t)(expr);              \
    }
#define TEST_REAL(type)         \
    if (t->what == 'n')         \
        TEST_EACH(type, v != v) \
    else                        \
        TEST_EACH(type, (positive & (v == (type)INFINITY)) | (negative & (v == -(type)INFINITY)))

static void test_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const test *t = arg;
    const bool positive = t->positive, negative = t->negative;
    oct_chunk bx;
    uint8_t by[OCT_ND_CHUNK], *to = (uint8_t *)t->y->data + o[0], *y = st[0] == 1 ? to : by;
    const void *x = t->what == '!' && st[1] == 1 ? (const uint8_t *)t->x->data + o[1]
                                                 : oct_elem_load(t->x->dtype, t->x->data, o[1], st[1], n, &bx);
    if (t->what == '!' && st[1] == 1)
        TEST_EACH(uint8_t, v == 0)
    else if (t->what == '!')
        TEST_EACH(int64_t, v == 0)
    else if (oct_dom_of(t->x->dtype) == OCT_DOM_D)
        TEST_REAL(double)
    else
        TEST_REAL(float)
    for (int64_t i = 0; st[0] != 1 && i < n; i++)
        to[i * st[0]] = by[i];
}

static oct_status test_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    oct_dom dom = oct_dom_of(s->in[0]->dtype);
    bool ok = s->op->type[0] == 'N' ? s->in[0]->dtype == OCT_BOOL : dom == OCT_DOM_F || dom == OCT_DOM_D;
    return ok ? OCT_OK : oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
}

static oct_status test_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_node *n = s->node;
    test t = { s->in[0], s->out[0], '!', oct_node_int(n, "detect_positive", 1) != 0,
               oct_node_int(n, "detect_negative", 1) != 0 };
    if (strcmp(s->op->type, "IsNaN") == 0)
        t.what = 'n';
    else if (strcmp(s->op->type, "IsInf") == 0)
        t.what = 'i';
    oct_nd d;
    unary_walk(s, &d);
    oct_nd_run(&d, r->pool, test_row, &t);
    return OCT_OK;
}

/* ------------------------------------------------------------------ records */

static bool relu_clamp(const oct_graph *g, int node, float *lo, float *hi)
{
    *lo = 0.0f;
    return true;
}

/* A bound of Clip given as input: absent leaves it open; a constant scalar sets it; anything else is no clamp. */
static bool bound(const oct_graph *g, const oct_node *n, int slot, float *x)
{
    if (slot >= n->n_in || n->in[slot] < 0)
        return true;
    const oct_tensor *t = g->value[n->in[slot]].constant;
    if (!t || t->count != 1 || !(t->dtype == OCT_F32 || oct_is_half(t->dtype)) || !t->data)
        return false;
    if (t->dtype == OCT_F32)
        memcpy(x, t->data, sizeof *x);
    else
        oct_widen(NULL, t->dtype, t->data, 1, x);
    return true;
}

static bool clip_clamp(const oct_graph *g, int node, float *lo, float *hi)
{
    const oct_node *n = &g->node[node];
    if (oct_node_opset(g, n) >= 11)
        return bound(g, n, 1, lo) && bound(g, n, 2, hi);
    *lo = oct_node_float(n, "min", -INFINITY);
    *hi = oct_node_float(n, "max", INFINITY);
    return true;
}

#define UNARY(name, onnx, first, ...)                                       \
    const oct_op oct_op_##name = { OCT_SCHEMA(onnx, "", first, 1, 1, 1, 1), \
                                   .infer = oct_infer_like,                 \
                                   .prepare = unary_prepare,                \
                                   .run = unary_run,                        \
                                   .layout = OCT_RULE_ANY,                  \
                                   .by_rows = oct_elem_by_rows,             \
                                   .integer = unary_integer,                \
                                   .quant = OCT_QUANT_UNARY,                \
                                   __VA_ARGS__ }

UNARY(relu, "Relu", 6, .clamp = relu_clamp);
UNARY(leaky_relu, "LeakyRelu", 6, .homogeneous = 1);
UNARY(thresholded_relu, "ThresholdedRelu", 10, .until = 0);
UNARY(sigmoid, "Sigmoid", 6, .fixed_range = true, .range_lo = 0.0f, .range_hi = 1.0f);
UNARY(hard_sigmoid, "HardSigmoid", 6, .fixed_range = true, .range_lo = 0.0f, .range_hi = 1.0f);
UNARY(tanh, "Tanh", 6, .fixed_range = true, .range_lo = -1.0f, .range_hi = 1.0f);
UNARY(softsign, "Softsign", 1, .fixed_range = true, .range_lo = -1.0f, .range_hi = 1.0f);
UNARY(erf, "Erf", 9, .fixed_range = true, .range_lo = -1.0f, .range_hi = 1.0f);
UNARY(hard_swish, "HardSwish", 14, .until = 0);
UNARY(swish, "Swish", 24, .until = 0);
UNARY(mish, "Mish", 18, .until = 0);
UNARY(elu, "Elu", 6, .until = 0);
UNARY(celu, "Celu", 12, .f16 = 28, .bf16 = 28);
UNARY(selu, "Selu", 6, .until = 0);
UNARY(softplus, "Softplus", 1, .until = 0);
UNARY(gelu, "Gelu", 20, .until = 0);
UNARY(exp, "Exp", 6, .grows = OCT_GROWS);
UNARY(log, "Log", 6, .delicate = 1, .compresses = true);
UNARY(sqrt, "Sqrt", 6, .compresses = true);
UNARY(reciprocal, "Reciprocal", 6, .grows = OCT_GROWS, .delicate = 1);
UNARY(abs, "Abs", 6, .homogeneous = 1);
UNARY(sign, "Sign", 9, .decision = OCT_DECIDES);
UNARY(floor, "Floor", 6, .until = 0);
UNARY(ceil, "Ceil", 6, .until = 0);
UNARY(round, "Round", 11, .until = 0);
UNARY(sin, "Sin", 7, .until = 0);
UNARY(cos, "Cos", 7, .until = 0);
UNARY(tan, "Tan", 7, .grows = OCT_GROWS);
UNARY(asin, "Asin", 7, .until = 0);
UNARY(acos, "Acos", 7, .until = 0);
UNARY(atan, "Atan", 7, .until = 0);
UNARY(sinh, "Sinh", 9, .grows = OCT_GROWS);
UNARY(cosh, "Cosh", 9, .grows = OCT_GROWS);
UNARY(asinh, "Asinh", 9, .until = 0);
UNARY(acosh, "Acosh", 9, .until = 0);
UNARY(atanh, "Atanh", 9, .until = 0);
UNARY(shrink, "Shrink", 9, .bf16 = -1);

const oct_op oct_op_neg = {
    OCT_SCHEMA("Neg", "", 6, 1, 1, 1, 1),
    .infer = neg_infer,
    .prepare = unary_prepare,
    .run = unary_run,
    .layout = OCT_RULE_ANY,
    .integer = unary_integer,
    .quant = OCT_QUANT_UNARY,
    .homogeneous = 1,
};

const oct_op oct_op_clip = {
    OCT_SCHEMA("Clip", "", 6, 1, 3, 1, 1),
    .infer = oct_infer_like,
    .prepare = clip_prepare,
    .run = clip_run,
    .layout = OCT_RULE_ANY,
    .integer = clip_integer,
    .quant = OCT_QUANT_UNARY,
    .clamp = clip_clamp,
    .raise = clip_raise,
};

#define TEST(name, onnx, first, ...)                                        \
    const oct_op oct_op_##name = { OCT_SCHEMA(onnx, "", first, 1, 1, 1, 1), \
                                   .infer = bool_infer,                     \
                                   .prepare = test_prepare,                 \
                                   .run = test_run,                         \
                                   .layout = OCT_RULE_ANY,                  \
                                   .decision = OCT_DECIDES,                 \
                                   __VA_ARGS__ }

TEST(not, "Not", 1, .until = 0);
TEST(isnan, "IsNaN", 9, .takes_nan = true);
TEST(isinf, "IsInf", 10, .f16 = 20, .bf16 = 20);
