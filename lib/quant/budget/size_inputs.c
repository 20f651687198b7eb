/* What rounding a layer's inputs to 8 bits costs, where no run has measured it.
 *
 * 255 steps over a range R are off by R^2 / (12 * 255^2) in the mean square; beside the mean square of the values that
 * is the noise. With statistics both are known. Without, they follow from what makes the values, in standard
 * deviations: sums of many terms are normal: the extremes of some ten thousand values lie 8 apart, and 8^2 / (12 *
 * 255^2) = 8.2e-5; behind a clamp at 0 half of the range is left, 4, and of the mean square half, but zeros, half of
 * the values, are exact; products of two such values have long tails (their density falls as exp(-x), so that extremes
 * lie 17 apart); what an operator holds in an interval is taken to be spread evenly over it; factors by channel set
 * some channels apart: the largest one takes 5 of its own deviations, as the extremes of a hundred values lie apart,
 * and the mean square is that of all. */
#include "quant/budget/size_choice_int.h"

#include "observers/observer.h"
#include "observers/qparams.h"
#include "quant/job/placed.h"

#include <math.h>

enum { LEVELS = 255, MOST_STEPS = 32 };
#define NORMAL 8.0
#define ONE_CHANNEL 5.0
#define PRODUCT 17.0

typedef struct spread {
    double range, power; /* range: hi - lo; power: the mean square of those values that are not exact */
} spread;

static double noise_of(spread s)
{
    return s.power > 0 ? s.range * s.range / (12.0 * LEVELS * LEVELS * s.power) : 0;
}

/* The largest factor relative to the root mean square of all; 1 for a single factor, or if it is not a float array. */
static double largest_of(const oct_tensor *t)
{
    double squares = 0, most = 0;
    if (!t || !t->data || t->dtype != OCT_F32 || t->count < 2)
        return 1;
    const float *x = t->data;
    for (int64_t i = 0; i < t->count; i++) {
        squares += (double)x[i] * (double)x[i];
        most = fmax(most, fabs((double)x[i]));
    }
    const double mean = sqrt(squares / (double)t->count);
    return mean > 0 && isfinite(mean) ? most / mean : 1;
}

static int64_t last_dimension(const oct_graph *g, int value)
{
    const oct_shape *s = &g->value[value].shape;
    return s->rank > 0 ? s->d[s->rank - 1].n : s->rank == 0 ? 1 : -1;
}

static bool is_bounded(const oct_graph *g, int value)
{
    const int p = g->value[value].producer;
    const oct_op *op = p >= 0 ? oct_op_of(g, p) : NULL;
    return op && op->fixed_range;
}

/* The factor that has the shape of a product's result; the other one is a constant, a gate, or one number for each row.
 * -1: both have that shape. */
static int main_factor(const oct_graph *g, const oct_node *n, double *largest)
{
    for (int k = 0; k < 2; k++) {
        const int v = n->in[k], other = n->in[1 - k];
        if (g->value[v].constant)
            *largest = fmax(*largest, largest_of(g->value[v].constant));
        if (g->value[v].constant || is_bounded(g, v) || (last_dimension(g, v) == 1 && last_dimension(g, other) != 1))
            return other;
    }
    return -1;
}

/* Whether a node passes on the values of its first input, in number and size. */
static bool passes(const oct_op *op)
{
    return op->alias || op->permutes || op->picks || op->is_qdq || op->converts || op->quant == OCT_QUANT_SAME;
}

static spread spread_of(const oct_graph *g, int value)
{
    double largest = 1;
    for (int i = 0; i < MOST_STEPS && value >= 0; i++) {
        const int p = g->value[value].producer;
        const oct_node *n = p >= 0 ? &g->node[p] : NULL;
        const oct_op *op = n ? oct_op_of(g, p) : NULL;
        float lo, hi;
        if (!op || n->n_in < 1 || n->in[0] < 0)
            break;
        if (op->fixed_range) {
            const double a = (double)op->range_lo, b = (double)op->range_hi;
            return (spread){ b - a, (a * a + a * b + b * b) / 3 };
        }
        if (oct_op_clamp(g, p, &lo, &hi) && lo >= 0)
            return (spread){ fmax(NORMAL, ONE_CHANNEL * largest) / 2, 1 };
        if (op->multiplies && n->n_in == 2 && n->in[1] >= 0) {
            value = main_factor(g, n, &largest);
            if (value < 0)
                return (spread){ fmax(PRODUCT, ONE_CHANNEL * largest), 1 };
        } else if (op->compresses && oct_input_at(n, 1) >= 0) {
            largest = fmax(largest, largest_of(g->value[n->in[1]].constant));
            break;
        } else if (passes(op)) {
            value = n->in[0];
        } else {
            break;
        }
    }
    return (spread){ fmax(NORMAL, ONE_CHANNEL * largest), 1 };
}

/* The noise of rounding the whole range of a value to 8 bits, as layers do that quantize their inputs at run time. */
static double dynamic_noise(const oct_size_units *u, int value)
{
    const oct_graph *g = u->j->g;
    const oct_calib_tensor *t = u->c->calib ? oct_calib_find(u->c->calib, oct_value_name(g, value)) : NULL;
    oct_err ignored = { 0 };
    oct_selection s;
    if (t && oct_stats_finite(&t->stats) && t->stats.max > t->stats.min &&
        oct_observe_range(&t->stats, (oct_range){ t->stats.min, t->stats.max }, (oct_qrange){ 0, LEVELS }, &s,
                          &ignored) == OCT_OK &&
        s.signal > 0)
        return s.mse / s.signal;
    return noise_of(spread_of(g, value));
}

/* The noise of a value whose parameters are decided. */
static double static_noise(const oct_size_units *u, int value)
{
    const oct_qjob *j = u->j;
    const double sqnr = oct_value_sqnr(j, oct_params_root(j, value));
    if (isfinite(sqnr))
        return oct_size_ratio(sqnr);
    return noise_of(spread_of(j->g, value));
}

/* Whether a layer reads the value. Then the noise of rounding it is counted at that layer. */
static bool layer_reads(const oct_size_units *u, int value)
{
    const oct_value *v = &u->j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++)
        if (v->uses[i].slot == 0 && oct_is_product(u->j, v->uses[i].node))
            return true;
    return false;
}

double oct_size_input_noise(const oct_size_units *u, int node, oct_scheme scheme)
{
    const oct_node *n = &u->j->g->node[node];
    const int input = n->n_in ? n->in[0] : -1;
    if (input < 0 || u->j->g->value[input].constant)
        return 0;
    if (scheme == OCT_SCHEME_DYNAMIC)
        return dynamic_noise(u, input);
    if (scheme != OCT_SCHEME_STATIC || node >= (int)u->j->n_nodes)
        return 0;
    const int output = oct_quantized_output(u->j, node);
    return static_noise(u, input) +
           (output >= 0 && oct_is_wanted(u->j, output) && !layer_reads(u, output) ? static_noise(u, output) : 0);
}
