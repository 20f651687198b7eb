/* lib/ops/nn/op_group_norm.c -- normalizations over groups and axes: GroupNormalization, MeanVarianceNormalization,
 * LpNormalization. Sums are double. */
#include "kernels/reduce.h"
#include "ops/core/args.h"

#include <math.h>
#include <string.h>

/* float32 or float64 throughout. */
static oct_status float_only(const oct_step *s, oct_err *err)
{
    return oct_step_types(s, s->in[0]->dtype == OCT_F64 ? OCT_F64 : OCT_F32, 0, err);
}

/* ------------------------------------------------------------------ GroupNormalization */

static oct_status group_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0];
    int64_t groups = oct_node_int(s->node, "num_groups", 0);
    OCT_TRY(float_only(s, err));
    if (x->rank < 2 || groups < 1 || x->dims[1] % groups)
        return oct_fail(err, OCT_EMALFORMED, "%lld groups do not divide %lld channels", (long long)groups,
                        (long long)(x->rank > 1 ? x->dims[1] : 1));
    int64_t n = s->opset < 21 ? groups : x->dims[1]; /* opset 18: a scale for each group */
    if (s->in[1]->count != n || s->in[2]->count != n)
        return oct_fail(err, OCT_EMALFORMED, "scale and bias have %lld and %lld values, expected %lld",
                        (long long)s->in[1]->count, (long long)s->in[2]->count, (long long)n);
    return OCT_OK;
}

static void groups_double(const oct_step *s, const oct_group_norm *p)
{
    const double *from = s->in[0]->data, *gamma = s->in[1]->data, *beta = s->in[2]->data;
    double *to = s->out[0]->data;
    const size_t n = p->each * p->inner;
    for (size_t k = 0; k < p->rows; k++, from += n, to += n) {
        double mean = 0, var = 0;
        for (size_t i = 0; i < n; i++)
            mean += from[i];
        mean /= (double)n;
        for (size_t i = 0; i < n; i++)
            var += (from[i] - mean) * (from[i] - mean);
        const double rate = 1.0 / sqrt(var / (double)n + (double)p->eps);
        for (size_t i = 0; i < n; i++) {
            const size_t group = k % p->groups, at = p->shared ? group : group * p->each + i / p->inner;
            to[i] = fma((from[i] - mean) * rate, gamma[at], beta[at]);
        }
    }
}

static oct_status group_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    if (x->count == 0)
        return OCT_OK;
    const size_t n = (size_t)x->dims[0], c = (size_t)x->dims[1],
                 groups = (size_t)oct_node_int(s->node, "num_groups", 1);
    oct_group_norm p = {
        .rows = n * groups,
        .groups = groups,
        .each = c / groups,
        .inner = (size_t)x->count / n / c,
        .eps = oct_node_float(s->node, "epsilon", 1e-5f),
        .shared = s->opset < 21,
    };
    if (x->dtype == OCT_F64) {
        groups_double(s, &p);
        return OCT_OK;
    }
    p.gamma = s->in[1]->data;
    p.beta = s->in[2]->data;
    oct_group_norm_f32(r->pool, &p, x->data, s->out[0]->data);
    return OCT_OK;
}

/* One value a group (1-D) becomes one a channel. */
static oct_status spread_groups(oct_graph *g, int node, int slot, int64_t groups, int64_t channels, oct_err *err)
{
    const int64_t column[2] = { groups, 1 }, wide[2] = { groups, channels / groups }, flat[1] = { -1 }, two = 2,
                  one = 1;
    const oct_dtype t = g->value[g->node[node].in[slot]].dtype;
    int shape, value = g->node[node].in[slot], made;
    OCT_TRY(oct_graph_new_const_s64(g, "group_column", 1, &two, column, &shape, err));
    OCT_TRY(oct_raise_node(g, "Reshape", node, value, shape, "group_column", t, &value, &made, err));
    OCT_TRY(oct_graph_new_const_s64(g, "group_wide", 1, &two, wide, &shape, err));
    OCT_TRY(oct_raise_node(g, "Expand", node, value, shape, "group_wide", t, &value, &made, err));
    OCT_TRY(oct_graph_new_const_s64(g, "group_flat", 1, &one, flat, &shape, err));
    OCT_TRY(oct_raise_node(g, "Reshape", node, value, shape, "group_flat", t, &value, &made, err));
    return oct_graph_set_input(g, node, slot, value, err);
}

/* Opset 21: scale and bias are of the channels, no longer of the groups. */
static oct_status group_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_shape x = g->value[n->in[0]].shape;
    const int64_t groups = oct_node_int(n, "num_groups", 0), channels = x.rank > 1 ? x.d[1].n : -1;
    if (from != 20 || groups == channels)
        return OCT_OK;
    if (channels < 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "the number of channels is not known, which opset 21 needs");
    if (groups < 1 || channels % groups)
        return oct_fail(err, OCT_EMALFORMED, "%lld groups do not divide %lld channels", (long long)groups,
                        (long long)channels);
    OCT_TRY(spread_groups(g, node, 1, groups, channels, err));
    return spread_groups(g, node, 2, groups, channels, err);
}

const oct_op oct_op_group_norm = {
    OCT_SCHEMA("GroupNormalization", "", 18, 3, 3, 1, 1),
    .infer = oct_infer_like,
    .prepare = group_prepare,
    .run = group_run,
    .raise = group_raise,
    .widens = true,
    .compresses = true,
};

/* ------------------------------------------------------------------ MeanVarianceNormalization */

static oct_status axes_of(const oct_step *s, bool over[OCT_MAX_RANK], oct_err *err)
{
    static const int64_t usual[] = { 0, 2, 3 };
    int n, axis;
    const int64_t *axes = oct_node_ints(s->node, "axes", &n);
    if (!axes) {
        axes = usual;
        n = 3;
    }
    memset(over, 0, OCT_MAX_RANK * sizeof *over);
    for (int i = 0; i < n; i++) {
        OCT_TRY(oct_axis(axes[i], s->in[0]->rank, &axis, err));
        over[axis] = true;
    }
    return OCT_OK;
}

typedef struct mvn_state {
    double *mean, *var; /* one for each place of the axes that stay */
    int64_t places;
    int64_t stride[OCT_MAX_RANK]; /* of the places; 0 along normalized axes */
} mvn_state;

static oct_status mvn_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    mvn_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    bool over[OCT_MAX_RANK];
    if (!st)
        return oct_nomem(err);
    s->state = st;
    OCT_TRY(float_only(s, err));
    OCT_TRY(axes_of(s, over, err));
    st->places = 1;
    for (int i = s->in[0]->rank - 1; i >= 0; i--)
        if (!over[i]) {
            st->stride[i] = st->places;
            st->places *= s->in[0]->dims[i];
        }
    st->mean = oct_arena_calloc(p->arena, (size_t)st->places + 1, sizeof *st->mean);
    st->var = oct_arena_calloc(p->arena, (size_t)st->places + 1, sizeof *st->var);
    return st->mean && st->var ? OCT_OK : oct_nomem(err);
}

static int64_t place_of(const mvn_state *st, const oct_operand *x, int64_t e)
{
    int64_t at = 0;
    for (int k = x->rank - 1; k >= 0; k--) {
        at += e % x->dims[k] * st->stride[k];
        e /= x->dims[k];
    }
    return at;
}

#define SPREAD(real, root)                                                                            \
    static void spread_##real(const mvn_state *st, const oct_operand *x, real *to)                    \
    {                                                                                                 \
        const real *from = x->data;                                                                   \
        const int64_t joined = st->places ? x->count / st->places : 0;                                \
        const double n = (double)joined;                                                              \
        for (int64_t e = 0; e < x->count; e++)                                                        \
            st->mean[place_of(st, x, e)] += (double)from[e] / n;                                      \
        for (int64_t e = 0; e < x->count; e++) {                                                      \
            const int64_t at = place_of(st, x, e);                                                    \
            const double d = (double)from[e] - st->mean[at];                                          \
            st->var[at] += d * d / n;                                                                 \
        }                                                                                             \
        for (int64_t e = 0; e < x->count; e++) {                                                      \
            const int64_t at = place_of(st, x, e);                                                    \
            to[e] = (real)((double)from[e] - st->mean[at]) / (root((real)st->var[at]) + (real)1e-9f); \
        }                                                                                             \
    }
SPREAD(float, sqrtf)
SPREAD(double, sqrt)

static oct_status mvn_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const mvn_state *st = s->state;
    for (int64_t i = 0; i < st->places; i++)
        st->mean[i] = st->var[i] = 0;
    if (s->in[0]->dtype == OCT_F64)
        spread_double(st, s->in[0], s->out[0]->data);
    else
        spread_float(st, s->in[0], s->out[0]->data);
    return OCT_OK;
}

const oct_op oct_op_mean_variance_norm = {
    OCT_SCHEMA("MeanVarianceNormalization", "", 9, 1, 1, 1, 1),
    .infer = oct_infer_like,
    .prepare = mvn_prepare,
    .run = mvn_run,
    .widens = true,
    .compresses = true,
};

/* ------------------------------------------------------------------ along one axis */

static oct_status along(const oct_step *s, int64_t *outer, int64_t *n, int64_t *inner, oct_err *err)
{
    const oct_operand *x = s->in[0];
    int axis;
    *outer = *n = *inner = 1;
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", -1), x->rank, &axis, err));
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? outer : i == axis ? n : inner) *= x->dims[i];
    return OCT_OK;
}

static oct_status lp_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    int64_t order = oct_node_int(s->node, "p", 2);
    if (order != 1 && order != 2)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'p' is %lld", (long long)order);
    return float_only(s, err);
}

#define LENGTH(real)                                                                               \
    static double length_##real(const real *x, int64_t n, int64_t step, bool square)               \
    {                                                                                              \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            sum += square ? (double)x[i * step] * (double)x[i * step] : fabs((double)x[i * step]); \
        return square ? sqrt(sum) : sum;                                                           \
    }
LENGTH(float)
LENGTH(double)

/* A zero norm gives zeros (LpNormalization-22). */
#define SHORTEN(real)                                                                      \
    static void shorten_##real(const real *x, int64_t n, int64_t step, real norm, real *y) \
    {                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                    \
            y[i * step] = norm == 0 ? 0 : x[i * step] / norm;                              \
    }
SHORTEN(float)
SHORTEN(double)

static oct_status lp_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    int64_t outer, n, inner;
    bool square = oct_node_int(s->node, "p", 2) == 2;
    OCT_TRY(along(s, &outer, &n, &inner, err));
    for (int64_t k = 0; k < outer * inner; k++) {
        const int64_t at = k / inner * n * inner + k % inner;
        if (s->in[0]->dtype == OCT_F64) {
            const double *x = (const double *)s->in[0]->data + at;
            shorten_double(x, n, inner, length_double(x, n, inner, square), (double *)s->out[0]->data + at);
        } else {
            const float *x = (const float *)s->in[0]->data + at;
            const double norm =
                square && inner == 1 ? sqrt(oct_sum_squares_f32(x, (size_t)n)) : length_float(x, n, inner, square);
            shorten_float(x, n, inner, (float)norm, (float *)s->out[0]->data + at);
        }
    }
    return OCT_OK;
}

const oct_op oct_op_lp_norm = {
    OCT_SCHEMA("LpNormalization", "", 1, 1, 1, 1, 1),
    .infer = oct_infer_like,
    .prepare = lp_prepare,
    .run = lp_run,
    .widens = true,
    .compresses = true,
};
