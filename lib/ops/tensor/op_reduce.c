/* lib/ops/tensor/op_reduce.c -- ReduceSum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSum, LogSumExp, ArgMax,
 * ArgMin. */
#include "kernels/math.h"
#include "kernels/reduce.h"
#include "kernels/rows.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *type;
    oct_reduce_op op;
} kinds[] = {
    { "ReduceSum", OCT_REDUCE_SUM },
    { "ReduceMean", OCT_REDUCE_MEAN },
    { "ReduceMax", OCT_REDUCE_MAX },
    { "ReduceMin", OCT_REDUCE_MIN },
    { "ReduceProd", OCT_REDUCE_PROD },
    { "ReduceL1", OCT_REDUCE_L1 },
    { "ReduceL2", OCT_REDUCE_L2 },
    { "ReduceLogSum", OCT_REDUCE_LOG_SUM },
    { "ReduceSumSquare", OCT_REDUCE_SUM_SQUARE },
    { "ReduceLogSumExp", OCT_REDUCE_LOG_SUM_EXP },
};

static oct_reduce_op op_of(const char *type)
{
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (strcmp(kinds[i].type, type) == 0)
            return kinds[i].op;
    return OCT_REDUCE_SUM;
}

static bool axes_are_attribute(const char *type, int64_t opset)
{
    return opset < (strcmp(type, "ReduceSum") == 0 ? 13 : 18);
}

/* The set of axes; n elements were given (OCT_ARG_ABSENT: none). */
static oct_status reduced_axes(const oct_node *node, const int64_t *axes, int n, int rank, uint32_t *mask, oct_err *err)
{
    if (n > 0)
        return oct_axes_mask(axes, n, rank, mask, err);
    *mask = oct_node_int(node, "noop_with_empty_axes", 0) != 0 ? 0 : (1u << rank) - 1u;
    return OCT_OK;
}

static oct_status reduced_shape(const oct_infer *c, int slot, const oct_shape *in, uint32_t mask, oct_err *err)
{
    bool keep = oct_node_int(oct_in_node(c), "keepdims", 1) != 0;
    oct_dim d[OCT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < in->rank; i++) {
        if (!(mask >> i & 1))
            d[rank++] = in->d[i];
        else if (keep)
            d[rank++] = oct_dim_of(1);
    }
    return oct_out_shape(c, slot, rank, d, err);
}

/* Reductions of propagated integers (products of dimensions) to one number. */
static oct_status reduce_known(const oct_infer *c, oct_err *err)
{
    oct_dim d[OCT_KNOWN_MAX], out = oct_dim_of(1);
    oct_reduce_op op = op_of(oct_in_node(c)->op);
    int n = oct_in_ints(c, 0, d, OCT_KNOWN_MAX);
    if (n < 1 || !oct_known_wanted(c) || oct_in_shape(c, 0).rank != 1)
        return OCT_OK;
    if (op == OCT_REDUCE_PROD) {
        for (int i = 0; i < n; i++)
            out = oct_dim_mul(out, d[i]);
        return oct_out_known(c, 0, 1, &out, err);
    }
    for (int i = 0; i < n; i++)
        if (d[i].n < 0)
            return OCT_OK;
    out = d[0];
    for (int i = 1; i < n; i++) {
        if (op == OCT_REDUCE_MAX)
            out = d[i].n > out.n ? d[i] : out;
        else if (op == OCT_REDUCE_MIN)
            out = d[i].n < out.n ? d[i] : out;
        else if (op == OCT_REDUCE_SUM)
            out = oct_dim_add(out, d[i]);
        else
            return OCT_OK;
    }
    return oct_out_known(c, 0, 1, &out, err);
}

static oct_status reduce_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *node = oct_in_node(c);
    oct_shape in = oct_in_shape(c, 0);
    int64_t axes[OCT_MAX_RANK];
    bool attr = axes_are_attribute(node->op, c->opset);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (in.rank < 0)
        return OCT_OK;
    int n = oct_arg_ints(c, attr ? "axes" : NULL, attr ? -1 : 1, axes, OCT_MAX_RANK);
    if (n == OCT_ARG_UNKNOWN) {
        oct_dim open[OCT_MAX_RANK];
        for (int i = 0; i < in.rank; i++)
            open[i] = (oct_dim){ -1, NULL };
        return oct_node_int(node, "keepdims", 1) != 0 ? oct_out_shape(c, 0, in.rank, open, err) : OCT_OK;
    }
    uint32_t mask;
    OCT_TRY(reduced_axes(node, axes, n, in.rank, &mask, err));
    OCT_TRY(reduced_shape(c, 0, &in, mask, err));
    return mask == 1 ? reduce_known(c, err) : OCT_OK;
}

/* ------------------------------------------------------------------ geometry */

/* Strides of the output per input dimension (0 where it is reduced), and how many elements go into one result. */
typedef struct geometry {
    uint32_t mask;
    int64_t n;
    int64_t so[OCT_MAX_RANK];
} geometry;

static oct_status geometry_of(const oct_operand *x, const oct_operand *y, uint32_t mask, geometry *g, oct_err *err)
{
    int64_t s[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(y, s);
    int kept = 0, all = x->rank;
    for (int i = 0; i < x->rank; i++)
        kept += !(mask >> i & 1);
    bool keep = y->rank == all;
    if (!keep && y->rank != kept)
        return oct_fail(err, OCT_EMALFORMED, "the output has %d dimensions", y->rank);
    *g = (geometry){ mask, 1, { 0 } };
    for (int i = 0, j = 0; i < all; i++) {
        int at = keep ? i : j;
        if (mask >> i & 1) {
            g->n *= x->dims[i];
            continue;
        }
        if (y->dims[at] != x->dims[i])
            return oct_fail(err, OCT_EMALFORMED, "axis %d of the output has %lld elements", at, (long long)y->dims[at]);
        g->so[i] = s[at];
        j++;
    }
    return OCT_OK;
}

/* Whether x lies as [outer][n][inner] with the results in the order of y. */
static bool lies_in_order(const oct_operand *x, const geometry *g, int64_t *inner)
{
    int64_t s[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(x, s);
    *inner = INT64_MAX;
    for (int i = 0; i < x->rank; i++)
        if (g->mask >> i & 1 && x->dims[i] > 1 && s[i] < *inner)
            *inner = s[i];
    if (*inner == INT64_MAX)
        *inner = 1;
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] <= 1)
            continue;
        if (g->mask >> i & 1) {
            if (s[i] * x->dims[i] > *inner * g->n)
                return false;
        } else if (s[i] < *inner ? g->so[i] != s[i] || s[i] * x->dims[i] > *inner
                                 : s[i] % g->n != 0 || g->so[i] != s[i] / g->n) {
            return false;
        }
    }
    return true;
}

typedef struct gather {
    const oct_operand *x;
    oct_dtype to;
    void *dst;
} gather;

static void gather_row(void *arg, const int64_t *o, const int64_t *st, int64_t n)
{
    const gather *w = arg;
    oct_chunk c;
    const void *v = oct_elem_load(w->x->dtype, w->x->data, o[1], st[1], n, &c);
    oct_elem_store(w->to, w->dst, o[0], st[0], n, oct_dom_of(w->x->dtype), v);
}

static oct_dtype gathered_type(oct_dtype t)
{
    return oct_dom_of(t) == OCT_DOM_F ? OCT_F32 : t;
}

/* Copies x to dst as [results in the order of y][n], half floats as f32. */
static void gather_rows(const oct_operand *x, const geometry *g, void *dst, const oct_run *r)
{
    oct_nd d = { .rank = x->rank, .arrays = 1 };
    int64_t step = 1, s[OCT_MAX_RANK] = { 0 };
    for (int i = x->rank - 1; i >= 0; i--) {
        d.dims[i] = x->dims[i];
        d.stride[0][i] = g->mask >> i & 1 ? step : g->so[i] * g->n;
        step *= g->mask >> i & 1 ? x->dims[i] : 1;
    }
    oct_operand_strides(x, s);
    oct_nd_add_strides(&d, s);
    gather w = { x, gathered_type(x->dtype), dst };
    oct_nd_run(&d, r->pool, gather_row, &w);
}

/* Scratch: the gathered input, then f32 results when the output is not f32. */
static oct_status rows_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    size_t in, out;
    if (oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    if (!oct_dtype_bytes(gathered_type(s->in[0]->dtype), s->in[0]->count, &in) ||
        !oct_dtype_bytes(OCT_F64, s->out[0]->count, &out) || !oct_add_size(oct_round_up(in, 64), out, &s->scratch))
        return oct_fail(err, OCT_EUNSUPPORTED, "the tensor is too large");
    return OCT_OK;
}

/* ------------------------------------------------------------------ other types than float */

static double reduce_double(oct_reduce_op op, const double *x, int64_t n)
{
    double a = op == OCT_REDUCE_PROD  ? 1
               : op == OCT_REDUCE_MAX ? -INFINITY
               : op == OCT_REDUCE_MIN ? INFINITY
                                      : 0,
           top = 0;
    if (op == OCT_REDUCE_LOG_SUM_EXP)
        top = reduce_double(OCT_REDUCE_MAX, x, n);
    if (!(fabs(top) < INFINITY))
        return top;
    for (int64_t i = 0; i < n; i++) {
        double v = x[i];
        switch (op) {
        case OCT_REDUCE_MAX: a = v > a || v != v ? v : a; break;
        case OCT_REDUCE_MIN: a = v < a || v != v ? v : a; break;
        case OCT_REDUCE_PROD: a *= v; break;
        case OCT_REDUCE_L1: a += fabs(v); break;
        case OCT_REDUCE_L2:
        case OCT_REDUCE_SUM_SQUARE: a += v * v; break;
        case OCT_REDUCE_LOG_SUM_EXP: a += oct_exp(v - top); break;
        default: a += v; break;
        }
    }
    switch (op) {
    case OCT_REDUCE_MEAN: return a / (double)n;
    case OCT_REDUCE_L2: return sqrt(a);
    case OCT_REDUCE_LOG_SUM: return oct_log(a);
    case OCT_REDUCE_LOG_SUM_EXP: return top + oct_log(a);
    default: return a;
    }
}

/* Sums, products and extremes are exact (modulo 2^64); means and the functions go through double. LogSumExp is
 * apart. */
static int64_t reduce_int(oct_reduce_op op, bool is_unsigned, const int64_t *x, int64_t n)
{
    uint64_t a = op == OCT_REDUCE_PROD ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = (uint64_t)x[i];
        bool less = is_unsigned ? v < a : (int64_t)v < (int64_t)a, negative = !is_unsigned && x[i] < 0;
        switch (op) {
        case OCT_REDUCE_MAX: a = i == 0 || !less ? v : a; break;
        case OCT_REDUCE_MIN: a = i == 0 || less ? v : a; break;
        case OCT_REDUCE_PROD: a *= v; break;
        case OCT_REDUCE_L1: a += negative ? 0 - v : v; break;
        case OCT_REDUCE_L2:
        case OCT_REDUCE_SUM_SQUARE: a += v * v; break;
        default: a += v; break;
        }
    }
    switch (op) {
    case OCT_REDUCE_MEAN: return n == 0 ? 0 : is_unsigned ? (int64_t)(a / (uint64_t)n) : (int64_t)a / n;
    case OCT_REDUCE_L2: return (int64_t)sqrt((double)a);
    case OCT_REDUCE_LOG_SUM: return oct_int_of_double(oct_log((double)a));
    default: return (int64_t)a;
    }
}

static double double_of(bool is_unsigned, int64_t x)
{
    return is_unsigned ? (double)(uint64_t)x : (double)x;
}

/* n integers of type t from `first` on; exponentials are taken below the largest. */
static int64_t log_sum_exp_int(oct_dtype t, const void *data, int64_t first, int64_t n)
{
    const bool is_unsigned = t == OCT_U64;
    oct_chunk c;
    double top = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t at = 0; at < n; at += OCT_ND_CHUNK) {
            const int64_t m = n - at < OCT_ND_CHUNK ? n - at : OCT_ND_CHUNK,
                          *x = oct_elem_load(t, data, first + at, 1, m, &c);
            for (int64_t i = 0; i < m; i++)
                if (pass == 0)
                    top = fmax(top, double_of(is_unsigned, x[i]));
                else
                    sum += oct_exp(double_of(is_unsigned, x[i]) - top);
        }
    return oct_int_of_double(n ? top + oct_log(sum) : top);
}

/* The largest or smallest number of an integer type. */
static int64_t limit_of(oct_dtype t, bool largest)
{
    const int bits = t == OCT_BOOL ? 1 : oct_dtype_bits(t);
    const uint64_t all = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (t == OCT_S8 || t == OCT_S16 || t == OCT_S32 || t == OCT_S64)
        return (int64_t)(largest ? all / 2 : ~(all / 2));
    return (int64_t)(largest ? all : 0);
}

typedef struct rows {
    const oct_operand *x, *y;
    const void *data; /* gathered */
    int64_t n;
    oct_reduce_op op;
    bool last, largest; /* ArgMax, ArgMin */
} rows;

/* One row in its domain; short integers are widened a chunk at a time, so results are joined over chunks. */
static void reduce_row(const rows *w, int64_t row)
{
    oct_dtype t = gathered_type(w->x->dtype);
    oct_dom dom = oct_dom_of(t);
    if (dom == OCT_DOM_D) {
        double v = reduce_double(w->op, (const double *)w->data + row * w->n, w->n);
        oct_elem_store(w->y->dtype, w->y->data, row, 1, 1, dom, &v);
        return;
    }
    int64_t v;
    if (w->op == OCT_REDUCE_LOG_SUM_EXP) {
        v = log_sum_exp_int(t, w->data, row * w->n, w->n);
    } else if (t == OCT_S64 || t == OCT_U64) {
        v = reduce_int(w->op, t == OCT_U64, (const int64_t *)w->data + row * w->n, w->n);
    } else {
        oct_reduce_op part_op = w->op == OCT_REDUCE_MEAN || w->op == OCT_REDUCE_LOG_SUM ? OCT_REDUCE_SUM
                                : w->op == OCT_REDUCE_L2                                ? OCT_REDUCE_SUM_SQUARE
                                                                                        : w->op;
        oct_reduce_op join = part_op == OCT_REDUCE_SUM_SQUARE || part_op == OCT_REDUCE_L1 ? OCT_REDUCE_SUM : part_op;
        oct_chunk c;
        int64_t pair[2] = { 0, 0 };
        for (int64_t at = 0; at < w->n; at += OCT_ND_CHUNK) {
            int64_t m = w->n - at < OCT_ND_CHUNK ? w->n - at : OCT_ND_CHUNK;
            const void *x = oct_elem_load(t, w->data, row * w->n + at, 1, m, &c);
            pair[1] = reduce_int(part_op, false, x, m);
            pair[0] = at == 0 ? pair[1] : reduce_int(join, false, pair, 2);
        }
        v = w->n == 0 ? reduce_int(w->op, false, pair, 0) : pair[0];
        if (w->op == OCT_REDUCE_MEAN)
            v = w->n == 0 ? 0 : v / w->n;
        else if (w->op == OCT_REDUCE_L2)
            v = oct_int_of_double(sqrt((double)v));
        else if (w->op == OCT_REDUCE_LOG_SUM)
            v = oct_int_of_double(oct_log((double)v));
    }
    if (w->n == 0 && (w->op == OCT_REDUCE_MAX || w->op == OCT_REDUCE_MIN))
        v = limit_of(t, w->op == OCT_REDUCE_MIN);
    oct_elem_store(w->y->dtype, w->y->data, row, 1, 1, dom, &v);
}

static oct_status reduce_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    bool attr = axes_are_attribute(s->op->type, s->opset);
    int64_t axes[OCT_MAX_RANK], inner;
    uint32_t mask;
    int n = oct_step_ints(s, attr ? "axes" : NULL, attr ? -1 : 1, axes, OCT_MAX_RANK);
    if (n == OCT_ARG_UNKNOWN)
        return oct_fail(err, OCT_EMALFORMED, "more axes than dimensions");
    OCT_TRY(reduced_axes(s->node, axes, n, x->rank, &mask, err));
    geometry g;
    OCT_TRY(geometry_of(x, y, mask, &g, err));
    oct_reduce_op op = op_of(s->op->type);
    if (y->count == 0)
        return OCT_OK;
    if (x->dtype == OCT_F32 && x->count > 0 && lies_in_order(x, &g, &inner)) {
        oct_reduce_f32(r->pool, op, x->data, (size_t)(x->count / (g.n * inner)), (size_t)g.n, (size_t)inner, y->data);
        return OCT_OK;
    }
    gather_rows(x, &g, r->scratch, r);
    if (oct_dom_of(x->dtype) != OCT_DOM_F) {
        rows w = { x, y, r->scratch, g.n, op, false, false };
        for (int64_t row = 0; row < y->count; row++)
            reduce_row(&w, row);
        return OCT_OK;
    }
    size_t in_bytes = oct_round_up((size_t)x->count * sizeof(float), 64);
    float *out = y->dtype == OCT_F32 ? y->data : (float *)(void *)((uint8_t *)r->scratch + in_bytes);
    oct_reduce_f32(r->pool, op, r->scratch, (size_t)y->count, (size_t)g.n, 1, out);
    if (y->dtype != OCT_F32)
        oct_elem_store(y->dtype, y->data, 0, 1, y->count, OCT_DOM_F, out);
    return OCT_OK;
}

/* Opset 13 made the axes of ReduceSum an input, opset 18 those of the others. */
static oct_status reduce_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    int64_t last = strcmp(g->node[node].op, "ReduceSum") == 0 ? 12 : 17;
    return from == last ? oct_raise_ints(g, node, "axes", 1, err) : OCT_OK;
}

/* Extremes of quantized values are quantized values of extremes when the parameters stay. */
static bool extreme_integer(const oct_step *s)
{
    return oct_q8(s->in[0]) && s->n_out == 1 && oct_q8(s->out[0]) && oct_q8_same(s->in[0], s->out[0]);
}

#define REDUCE(name, onnx, ...)                                         \
    const oct_op oct_op_##name = { OCT_SCHEMA(onnx, "", 1, 1, 2, 1, 1), \
                                   .infer = reduce_infer,               \
                                   .prepare = rows_prepare,             \
                                   .run = reduce_run,                   \
                                   .layout = OCT_RULE_ANY,              \
                                   .raise = reduce_raise,               \
                                   .reduces = true,                     \
                                   __VA_ARGS__ }

REDUCE(reduce_sum, "ReduceSum", .grows = OCT_GROWS_SUMS, .homogeneous = 1);
REDUCE(reduce_mean, "ReduceMean", .homogeneous = 1);
REDUCE(reduce_max, "ReduceMax", .integer = extreme_integer, .quant = OCT_QUANT_SAME, .homogeneous = 1);
REDUCE(reduce_min, "ReduceMin", .integer = extreme_integer, .quant = OCT_QUANT_SAME, .homogeneous = 1);
REDUCE(reduce_prod, "ReduceProd", .grows = OCT_GROWS);
REDUCE(reduce_l1, "ReduceL1", .grows = OCT_GROWS_SUMS);
REDUCE(reduce_l2, "ReduceL2", .grows = OCT_GROWS_SUMS);
REDUCE(reduce_sum_square, "ReduceSumSquare", .grows = OCT_GROWS);
REDUCE(reduce_log_sum, "ReduceLogSum", .delicate = 1, .compresses = true);
REDUCE(reduce_log_sum_exp, "ReduceLogSumExp", .compresses = true);

/* ------------------------------------------------------------------ ArgMax, ArgMin */

static oct_status arg_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    int axis;
    oct_out_dtype(c, 0, OCT_S64);
    if (in.rank < 0)
        return OCT_OK;
    if (in.rank == 0)
        return oct_fail(err, OCT_EMALFORMED, "the input is a scalar");
    OCT_TRY(oct_axis(oct_node_int(oct_in_node(c), "axis", 0), in.rank, &axis, err));
    return reduced_shape(c, 0, &in, 1u << axis, err);
}

typedef union scalar {
    float f;
    double d;
    int64_t i;
    uint64_t u;
} scalar;

#define BETTER(type, member)                                                                   \
    do {                                                                                       \
        const type *v = x;                                                                     \
        for (int64_t i = 0; i < m; i++) {                                                      \
            bool wins = at + i == 0 || (w->largest ? v[i] > best.member : v[i] < best.member); \
            if (wins || (w->last && v[i] == best.member)) {                                    \
                best.member = v[i];                                                            \
                found = at + i;                                                                \
            }                                                                                  \
        }                                                                                      \
    } while (0)

static int64_t best_of_row(const rows *w, int64_t row)
{
    oct_dtype t = gathered_type(w->x->dtype);
    oct_chunk c;
    scalar best = { 0 };
    int64_t found = 0;
    for (int64_t at = 0; at < w->n; at += OCT_ND_CHUNK) {
        int64_t m = w->n - at < OCT_ND_CHUNK ? w->n - at : OCT_ND_CHUNK;
        const void *x = oct_elem_load(t, w->data, row * w->n + at, 1, m, &c);
        switch (oct_dom_of(t)) {
        case OCT_DOM_F: BETTER(float, f); break;
        case OCT_DOM_D: BETTER(double, d); break;
        case OCT_DOM_U: BETTER(uint64_t, u); break;
        default: BETTER(int64_t, i); break;
        }
    }
    return found;
}

enum { COLUMNS = 1024 };

/* From the extremes: where each is found first, or last. Rows lie as x[outer][n][inner]. False where one is NaN, which
 * says nothing of the others. */
static bool arg_f32(const rows *w, int64_t outer, int64_t inner, float *top, const oct_run *r)
{
    const int64_t n = w->n;
    oct_reduce_f32(r->pool, w->largest ? OCT_REDUCE_MAX : OCT_REDUCE_MIN, w->data, (size_t)outer, (size_t)n,
                   (size_t)inner, top);
    for (int64_t i = 0; i < outer * inner; i++)
        if (top[i] != top[i])
            return false;
    for (int64_t row = 0; row < outer; row++)
        for (int64_t first = 0; first < inner; first += COLUMNS) {
            const float *x = (const float *)w->data + row * n * inner + first, *best = top + row * inner + first;
            int64_t *y = (int64_t *)w->y->data + row * inner + first, k = w->last ? n - 1 : 0;
            if (inner == 1) {
                while (x[k] != *best)
                    k += w->last ? -1 : 1;
                *y = k;
                continue;
            }
            const int64_t m = inner - first < COLUMNS ? inner - first : COLUMNS;
            for (int64_t step = 0; step < n; step++) { /* what is found later stays */
                k = w->last ? step : n - 1 - step;
                for (int64_t i = 0; i < m; i++)
                    y[i] = x[k * inner + i] == best[i] ? k : y[i];
            }
        }
    return true;
}

static oct_status arg_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    geometry g;
    int64_t inner;
    int axis;
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", 0), x->rank, &axis, err));
    OCT_TRY(geometry_of(x, y, 1u << axis, &g, err));
    if (g.n == 0 && y->count > 0)
        return oct_fail(err, OCT_EMALFORMED, "axis %d is empty", axis);
    rows w = { .x = x,
               .y = y,
               .data = x->data,
               .n = g.n,
               .largest = strcmp(s->op->type, "ArgMax") == 0,
               .last = oct_node_int(s->node, "select_last_index", 0) != 0 };
    if (x->dtype == OCT_F32 && y->count > 0 && lies_in_order(x, &g, &inner) &&
        arg_f32(&w, y->count / inner, inner, r->scratch, r))
        return OCT_OK;
    gather_rows(x, &g, r->scratch, r);
    w.data = r->scratch;
    for (int64_t row = 0; row < y->count; row++)
        ((int64_t *)y->data)[row] = best_of_row(&w, row);
    return OCT_OK;
}

#define ARG(name, onnx)                      \
    const oct_op oct_op_##name = {           \
        OCT_SCHEMA(onnx, "", 1, 1, 1, 1, 1), \
        .infer = arg_infer,                  \
        .prepare = rows_prepare,             \
        .run = arg_run,                      \
        .layout = OCT_RULE_ANY,              \
        .decision = OCT_DECIDES,             \
    }

ARG(argmax, "ArgMax");
ARG(argmin, "ArgMin");
