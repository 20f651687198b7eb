/* lib/ops/tensor/op_compare.c -- Equal, Less, Greater, LessOrEqual, GreaterOrEqual, and the choice Where,
 * QLinearWhere. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"
#include "ops/text/strings.h"

#include <string.h>

/* ------------------------------------------------------------------ comparisons */

enum { LESS = 1, EQUAL = 2, GREATER = 4 }; /* outcomes that give true; NaN gives none */

static int outcomes_of(const char *type)
{
    if (strcmp(type, "Equal") == 0)
        return EQUAL;
    int m = type[0] == 'L' ? LESS : GREATER;
    return strstr(type, "OrEqual") != NULL ? m | EQUAL : m;
}

typedef struct walk {
    int outcomes;
    const oct_operand *a, *b, *y;
} walk;

#define COMPARE(type, sign)         \
    for (int64_t i = 0; i < n; i++) \
        y[i] = (uint8_t)(((const type *)a)[i] sign((const type *)b)[i]);
#define COMPARE_ALL(type)      \
    if (outcomes == EQUAL)     \
        COMPARE(type, ==)      \
    else if (outcomes == LESS) \
        COMPARE(type, <)       \
    else                       \
        COMPARE(type, <=)

static void compare_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const walk *w = arg;
    const bool swap = (w->outcomes & GREATER) != 0;
    const int outcomes = swap ? (w->outcomes & EQUAL) | LESS : w->outcomes;
    oct_chunk ba, bb;
    uint8_t by[OCT_ND_CHUNK], *to = (uint8_t *)w->y->data + o[0], *y = st[0] == 1 ? to : by;
    const void *a = oct_elem_load(w->a->dtype, w->a->data, o[1], st[1], n, &ba);
    const void *b = oct_elem_load(w->b->dtype, w->b->data, o[2], st[2], n, &bb);
    if (swap) {
        const void *t = a;
        a = b;
        b = t;
    }
    switch (oct_dom_of(w->a->dtype)) {
    case OCT_DOM_F: COMPARE_ALL(float) break;
    case OCT_DOM_D: COMPARE_ALL(double) break;
    case OCT_DOM_U: COMPARE_ALL(uint64_t) break;
    default: COMPARE_ALL(int64_t) break;
    }
    for (int64_t i = 0; st[0] != 1 && i < n; i++)
        to[i * st[0]] = by[i];
}

static oct_status compare_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_early_tail(s->node, s->opset, s->in[0]->rank, s->in[1]->rank) != 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "an axis to lie at, as before opset 7");
    if (s->in[0]->dtype != s->in[1]->dtype || oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "types %s and %s", oct_dtype_name(s->in[0]->dtype),
                        oct_dtype_name(s->in[1]->dtype));
    return OCT_OK;
}

static oct_status compare_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    walk w = { outcomes_of(s->op->type), s->in[0], s->in[1], s->out[0] };
    oct_nd d;
    oct_nd_init(&d, s->out[0]);
    oct_nd_add(&d, s->in[0]);
    oct_nd_add(&d, s->in[1]);
    oct_nd_run(&d, r->pool, compare_row, &w);
    return OCT_OK;
}

/* 0 or 1 where it follows: numbers, or a dimension (never negative) against a negative number. */
static oct_dim known_outcome(int outcomes, oct_dim a, oct_dim b)
{
    int64_t x, y;
    bool kx = oct_known_get(a, &x), ky = oct_known_get(b, &y);
    int got = 0;
    if (kx && ky)
        got = x < y ? LESS : x == y ? EQUAL : GREATER;
    else if (ky && y < 0 && a.sym != NULL)
        got = GREATER;
    else if (kx && x < 0 && b.sym != NULL)
        got = LESS;
    else if (!kx && !ky && oct_dim_same(a, b))
        got = EQUAL;
    return got == 0 ? (oct_dim){ -1, NULL } : oct_dim_of((outcomes & got) != 0);
}

static oct_status compare_infer(const oct_infer *c, oct_err *err)
{
    oct_dim early[OCT_MAX_RANK];
    oct_shape a = oct_in_shape(c, 0), b = oct_early_shape(c, early);
    oct_dim d[OCT_MAX_RANK], x[OCT_KNOWN_MAX], y[OCT_KNOWN_MAX];
    int rank;
    oct_out_dtype(c, 0, OCT_BOOL);
    OCT_TRY(oct_broadcast_dims(&a, &b, &rank, d, err));
    OCT_TRY(oct_out_shape(c, 0, rank, d, err));
    if (rank < 0 || rank > 1)
        return OCT_OK;
    int n = oct_in_ints(c, 0, x, OCT_KNOWN_MAX), m = oct_in_ints(c, 1, y, OCT_KNOWN_MAX), out = n > m ? n : m;
    if (n < 1 || m < 1 || (n != m && n != 1 && m != 1))
        return OCT_OK;
    oct_dim z[OCT_KNOWN_MAX];
    for (int i = 0; i < out; i++)
        z[i] = known_outcome(outcomes_of(oct_in_node(c)->op), x[n == 1 ? 0 : i], y[m == 1 ? 0 : i]);
    return oct_out_known(c, 0, out, z, err);
}

/* ------------------------------------------------------------------ Where */

typedef struct where_walk {
    const uint8_t *cond, *x, *y;
    uint8_t *out;
    size_t size;
    const uint8_t *tx, *ty; /* quantized: maps of quantized values, or NULL */
} where_walk;

/* Reads both, so that no branch waits for the condition. */
#define CHOOSE(type)                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                  \
        const type p = ((const type *)x)[i * st[2]], q = ((const type *)y)[i * st[3]]; \
        ((type *)out)[i * st[0]] = cond[i * st[1]] != 0 ? p : q;                       \
    }

static void where_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const where_walk *w = arg;
    const int64_t size = (int64_t)w->size;
    const uint8_t *cond = w->cond + o[1], *x_at = w->x + o[2] * size, *y_at = w->y + o[3] * size;
    const void *x = x_at, *y = y_at;
    void *out = w->out + o[0] * size;
    if (w->tx != NULL || w->ty != NULL || size > 8) {
        for (int64_t i = 0; i < n; i++) {
            const bool first = cond[i * st[1]] != 0;
            const uint8_t *from = first ? x_at + i * st[2] * size : y_at + i * st[3] * size;
            const uint8_t *table = first ? w->tx : w->ty;
            uint8_t *to = w->out + (o[0] + i * st[0]) * size;
            if (table != NULL)
                *to = table[*from];
            else
                memcpy(to, from, w->size);
        }
        return;
    }
    switch (size) {
    case 1: CHOOSE(uint8_t) break;
    case 2: CHOOSE(uint16_t) break;
    case 4: CHOOSE(uint32_t) break;
    default: CHOOSE(uint64_t) break;
    }
}

typedef struct where_state {
    const uint8_t *tx, *ty;
} where_state;

static oct_status where_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    where_state *w = oct_arena_calloc(p->arena, 1, sizeof *w);
    if (w == NULL)
        return oct_nomem(err);
    s->state = w;
    if (s->in[0]->dtype != OCT_BOOL || oct_elem_size(s->out[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "types %s and %s", oct_dtype_name(s->in[0]->dtype),
                        oct_dtype_name(s->out[0]->dtype));
    if (oct_elem_size(s->in[1]->dtype) != oct_elem_size(s->out[0]->dtype) || s->in[1]->dtype != s->in[2]->dtype)
        return oct_fail(err, OCT_EMALFORMED, "types %s and %s", oct_dtype_name(s->in[1]->dtype),
                        oct_dtype_name(s->in[2]->dtype));
    OCT_TRY(oct_q8_move_table(s->in[1], s->out[0], p->arena, &w->tx, err));
    return oct_q8_move_table(s->in[2], s->out[0], p->arena, &w->ty, err);
}

static void choose(const oct_operand *out, const oct_operand *cond, const oct_operand *x, const oct_operand *y,
                   const where_state *tables, oct_pool *pool)
{
    where_walk w = { cond->data, x->data, y->data, out->data, oct_elem_size(out->dtype), tables->tx, tables->ty };
    oct_nd d;
    oct_nd_init(&d, out);
    oct_nd_add(&d, cond);
    oct_nd_add(&d, x);
    oct_nd_add(&d, y);
    oct_nd_run(&d, pool, where_row, &w);
}

static oct_status where_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    choose(s->out[0], s->in[0], s->in[1], s->in[2], s->state, r->pool);
    return OCT_OK;
}

static bool where_integer(const oct_step *s)
{
    return oct_q8(s->in[1]) && oct_q8(s->in[2]) && oct_q8(s->out[0]) && s->in[1]->dtype == s->in[2]->dtype;
}

/* The shape of a condition, of x and of y together. */
static oct_status infer_choice(const oct_infer *c, int x, int y, oct_err *err)
{
    oct_shape s[3] = { oct_in_shape(c, 0), oct_in_shape(c, x), oct_in_shape(c, y) };
    oct_dim d1[OCT_MAX_RANK], d2[OCT_MAX_RANK];
    oct_shape part = { -1, d1 };
    int rank;
    oct_out_dtype(c, 0, oct_in_dtype(c, y));
    oct_out_dtype(c, 0, oct_in_dtype(c, x));
    OCT_TRY(oct_broadcast_dims(&s[0], &s[1], &part.rank, d1, err));
    OCT_TRY(oct_broadcast_dims(&part, &s[2], &rank, d2, err));
    return oct_out_shape(c, 0, rank, d2, err);
}

static oct_status where_infer(const oct_infer *c, oct_err *err)
{
    OCT_TRY(infer_choice(c, 1, 2, err));
    if (!oct_known_wanted(c))
        return OCT_OK;
    oct_dim v[3][OCT_KNOWN_MAX], z[OCT_KNOWN_MAX];
    int n[3], out = 1;
    for (int i = 0; i < 3; i++) {
        n[i] = oct_in_ints(c, i, v[i], OCT_KNOWN_MAX);
        if (n[i] < 1)
            return OCT_OK;
        if (n[i] > 1)
            out = n[i];
    }
    for (int i = 0; i < 3; i++)
        if (n[i] != 1 && n[i] != out)
            return OCT_OK;
    for (int i = 0; i < out; i++) {
        int64_t cond;
        bool known = oct_known_get(v[0][n[0] == 1 ? 0 : i], &cond);
        oct_dim x = v[1][n[1] == 1 ? 0 : i], y = v[2][n[2] == 1 ? 0 : i];
        z[i] = known ? (cond ? x : y) : (oct_dim){ -1, NULL };
    }
    return oct_out_known(c, 0, out, z, err);
}

/* ------------------------------------------------------------------ QLinearWhere */

enum { X = 1, Y = 4, Z = 7 }; /* of the inputs: data (of Z, there is none), scale and zero point */

static oct_status qlinear_where_infer(const oct_infer *c, oct_err *err)
{
    return infer_choice(c, X, Y, err);
}

/* t with the constant scale and zero point of input `at` and the one behind it. */
static oct_status with_qparams(const oct_step *s, const oct_prep *p, const oct_operand *t, int at, oct_operand *out,
                               oct_err *err)
{
    const oct_operand *scale = s->in[at], *zero = s->in[at + 1];
    struct qparams {
        oct_quant q;
        float scale;
        int32_t zp;
    } *g = oct_arena_calloc(p->arena, 1, sizeof *g);
    if (g == NULL)
        return oct_nomem(err);
    if (scale == NULL || !scale->constant || (zero != NULL && !zero->constant))
        return oct_fail(err, OCT_EUNSUPPORTED, "a computed scale or zero point");
    if (scale->dtype != OCT_F32 || scale->count != 1 || !(oct_elem_double(scale, 0) > 0.0) ||
        (zero != NULL && (zero->count != 1 || zero->dtype != t->dtype)) || (t->dtype != OCT_U8 && t->dtype != OCT_S8))
        return oct_fail(err, OCT_EMALFORMED,
                        "a scale that is no positive number, or a zero point that is not one of the data's type");
    g->scale = (float)oct_elem_double(scale, 0);
    g->zp = zero != NULL ? (int32_t)oct_elem_int(zero, 0) : 0;
    g->q = (oct_quant){ 1, 0, &g->scale, &g->zp };
    *out = *t;
    out->q = &g->q;
    return OCT_OK;
}

static oct_status qlinear_where_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    where_state *w = oct_arena_calloc(p->arena, 1, sizeof *w);
    oct_operand x, y, z;
    if (w == NULL)
        return oct_nomem(err);
    s->state = w;
    if (s->in[0] == NULL || s->in[X] == NULL || s->in[Y] == NULL || s->in[0]->dtype != OCT_BOOL ||
        s->in[X]->dtype != s->in[Y]->dtype)
        return oct_fail(err, OCT_EMALFORMED, "a condition that is no bool, or data that are missing or of two types");
    OCT_TRY(with_qparams(s, p, s->in[X], X + 1, &x, err));
    OCT_TRY(with_qparams(s, p, s->in[Y], Y + 1, &y, err));
    OCT_TRY(with_qparams(s, p, s->out[0], Z, &z, err));
    OCT_TRY(oct_q8_move_table(&x, &z, p->arena, &w->tx, err));
    return oct_q8_move_table(&y, &z, p->arena, &w->ty, err);
}

static oct_status qlinear_where_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const where_state *state = s->state;
    choose(s->out[0], s->in[0], s->in[X], s->in[Y], state, r->pool);
    return OCT_OK;
}

/* ------------------------------------------------------------------ records */

#define COMPARISON(name, onnx, first, strings)   \
    const oct_op oct_op_##name = {               \
        OCT_SCHEMA(onnx, "", first, 2, 2, 1, 1), \
        .infer = compare_infer,                  \
        .prepare = compare_prepare,              \
        .run = compare_run,                      \
        .layout = OCT_RULE_ANY,                  \
        .exec = strings,                         \
        .raise = oct_raise_early,                \
        .decision = OCT_DECIDES,                 \
    }

COMPARISON(equal, "Equal", 6, oct_strings_equal);
COMPARISON(less, "Less", 6, NULL);
COMPARISON(greater, "Greater", 6, NULL);
COMPARISON(less_equal, "LessOrEqual", 12, NULL);
COMPARISON(greater_equal, "GreaterOrEqual", 12, NULL);

const oct_op oct_op_where = {
    OCT_SCHEMA("Where", "", 9, 3, 3, 1, 1),
    .infer = where_infer,
    .prepare = where_prepare,
    .run = where_run,
    .moves = true,
    .layout = OCT_RULE_ANY,
    .integer = where_integer,
};

const oct_op oct_op_qlinear_where = {
    OCT_SCHEMA("QLinearWhere", "com.microsoft", 1, 9, 9, 1, 1),
    .infer = qlinear_where_infer,
    .prepare = qlinear_where_prepare,
    .run = qlinear_where_run,
    .layout = OCT_RULE_ANY,
};
