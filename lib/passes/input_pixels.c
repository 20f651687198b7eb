/* Finds out which numbers a model takes for pixels. */
#include "passes/input_pixels.h"

#include "ops/op.h"

#include <math.h>
#include <stdlib.h>

enum {
    MOST_CHANNELS = 16,
    MOST_NODES = 32
}; /* a constant with more elements is no scale of channels; a longer chain is no preprocessing */

/* A walk from an input: v holds factor * x + term. */
typedef struct walk {
    const oct_graph *g;
    int v;
    double factor, term;
    bool scaled;
} walk;

/* The mean of a constant with a few real numbers. False: the value is something else. */
static bool mean_of(const walk *w, int value, double *mean)
{
    const oct_tensor *t = oct_graph_constant(w->g, value);
    if (!t || !t->data || t->count < 1 || t->count > MOST_CHANNELS ||
        (t->dtype != OCT_F32 && t->dtype != OCT_F64 && t->dtype != OCT_F16))
        return false;
    *mean = 0;
    for (int64_t i = 0; i < t->count; i++)
        *mean += (t->dtype == OCT_F32   ? (double)((const float *)t->data)[i]
                  : t->dtype == OCT_F64 ? ((const double *)t->data)[i]
                                        : (double)oct_f16_to_f32(((const uint16_t *)t->data)[i])) /
                 (double)t->count;
    return isfinite(*mean);
}

static bool scale(walk *w, double by, double plus)
{
    w->factor *= by;
    w->term = w->term * by + plus;
    w->scaled = true;
    return isfinite(w->factor) && isfinite(w->term);
}

static bool take_arithmetic(walk *w, const oct_node *n, int slot)
{
    double x;
    if (n->n_in != 2 || !mean_of(w, n->in[1 - slot], &x))
        return false;
    return oct_is_op(n, "Add")   ? scale(w, 1, x)
           : oct_is_op(n, "Mul") ? scale(w, x, 0)
           : oct_is_op(n, "Sub") ? scale(w, slot ? -1 : 1, slot ? x : -x)
           : oct_is_op(n, "Div") ? slot == 0 && scale(w, 1 / x, 0)
                                 : false;
}

static bool take_normalization(walk *w, const oct_node *n)
{
    double x[4]; /* scale, bias, mean, variance */
    if (!oct_is_op(n, "BatchNormalization") || n->n_in != 5)
        return false;
    for (int i = 0; i < 4; i++)
        if (!mean_of(w, n->in[i + 1], &x[i]))
            return false;
    const double by = x[0] / sqrt(x[3] + (double)oct_node_float(n, "epsilon", 1e-5f));
    return scale(w, by, x[1] - x[2] * by);
}

/* A convolution of each channel by itself, of single pixels. */
static bool take_convolution(walk *w, const oct_node *n)
{
    double by, plus = 0;
    const oct_tensor *t = oct_is_op(n, "Conv") && n->in[1] >= 0 ? w->g->value[n->in[1]].constant : NULL;
    if (!t || t->rank < 3 || t->count != t->dims[0] || oct_node_int(n, "group", 1) != t->dims[0] ||
        !mean_of(w, n->in[1], &by))
        return false;
    return (n->n_in < 3 || n->in[2] < 0 || mean_of(w, n->in[2], &plus)) && scale(w, by, plus);
}

static bool moves(const walk *w, const oct_use *u)
{
    const oct_op *op = oct_op_of(w->g, u->node);
    return op && (op->moves || op->alias || op->permutes || op->converts || oct_is_op(&w->g->node[u->node], "Pad"));
}

/* Takes the first reader. If there are several, each must move elements only, as the halves of a picture do. */
static bool take_node(walk *w)
{
    const oct_value *x = &w->g->value[w->v];
    for (size_t i = 0; i < x->n_uses; i++)
        if (x->uses[i].slot < 0 || (x->n_uses > 1 && !moves(w, &x->uses[i])))
            return false;
    if (x->n_uses == 0)
        return false;
    const oct_use u = x->uses[0];
    const oct_node *n = &w->g->node[u.node];
    if (n->domain[0] || n->n_out < 1 || n->out[0] < 0)
        return false;
    if (!moves(w, &u) && !take_arithmetic(w, n, u.slot) &&
        !(u.slot == 0 && (take_normalization(w, n) || take_convolution(w, n))))
        return false;
    w->v = n->out[0];
    return true;
}

oct_pixels oct_input_pixels(const oct_graph *g, int input)
{
    walk w = { .g = g, .v = input, .factor = 1 };
    if (g->value[input].dtype == OCT_U8)
        return OCT_PIXELS_BYTES;
    for (int i = 0; i < MOST_NODES && take_node(&w); i++)
        continue;
    if (!w.scaled || !(w.factor > 0))
        return OCT_PIXELS_UNKNOWN;
    const double mean = -w.term / w.factor;
    if (mean >= 8 || w.factor <= 1.0 / 16)
        return OCT_PIXELS_BYTES;
    if (mean > -1.1 && mean < -0.9 && w.factor >= 50)
        return OCT_PIXELS_SIGNED;
    return (w.factor >= 1 && mean > 0.05 && mean < 1.05) || (w.factor >= 100 && fabs(mean) <= 0.05)
               ? OCT_PIXELS_UNIT
               : OCT_PIXELS_UNKNOWN;
}

/* ---- the first normalization ---- */

/* The convolution that reads v, behind nodes that move elements; NULL: something else does. */
static const oct_node *first_convolution(walk *w)
{
    for (int i = 0; i < MOST_NODES; i++) {
        const oct_value *x = &w->g->value[w->v];
        if (x->n_uses != 1 || x->uses[0].slot != 0)
            return NULL;
        const oct_node *n = &w->g->node[x->uses[0].node];
        if (n->n_out < 1 || n->out[0] < 0)
            return NULL;
        w->v = n->out[0];
        if (oct_is_op(n, "Conv"))
            return n;
        if (!moves(w, &x->uses[0]))
            return NULL;
    }
    return NULL;
}

static double spread_of(const float *filter, int64_t n, double variance)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += (double)filter[i] * (double)filter[i];
    return sqrt(variance / square);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double oct_input_spread(const oct_graph *g, int input)
{
    enum { MOST_FILTERS = 512 };
    double spread[MOST_FILTERS];
    size_t n = 0;
    walk w = { .g = g, .v = input };
    const oct_node *conv = first_convolution(&w);
    const oct_value *x = &g->value[w.v];
    const oct_node *norm = conv && x->n_uses == 1 && x->uses[0].slot == 0 ? &g->node[x->uses[0].node] : NULL;
    if (!norm || !oct_is_op(norm, "BatchNormalization") || norm->n_in != 5 || conv->n_in < 2)
        return NAN;
    const oct_tensor *filters = oct_graph_floats(g, conv->in[1]), *variance = oct_graph_floats(g, norm->in[4]);
    if (!filters || !variance || filters->rank < 2 || filters->dims[0] != variance->count)
        return NAN;
    for (int64_t i = 0; i < variance->count && n < MOST_FILTERS; i++) {
        const int64_t size = filters->count / variance->count;
        const double s = spread_of((const float *)filters->data + i * size, size, ((const float *)variance->data)[i]);
        if (isfinite(s))
            spread[n++] = s;
    }
    qsort(spread, n, sizeof *spread, by_size);
    return n ? spread[n / 2] : NAN;
}
