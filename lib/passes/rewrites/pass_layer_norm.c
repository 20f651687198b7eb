/* Fusion: LayerNormalization and RMSNormalization that a model expresses by ReduceMean, or by GlobalAveragePool, which
 * is the mean over all axes but two, and by elementwise nodes.
 *
 * d = x - mean(x), or d = x for RMS; v = mean(d d); then d / sqrt(v + eps) in one of its forms. A factor may follow,
 * and a shift unless it is RMS; both vary only along the normalized axes. TensorFlow's form first multiplies the factor
 * and 1 / sqrt(v + eps): x r + (beta - mean r). */
#include "passes/match.h"

#include "ops/core/args.h"

#include <math.h>
#include <string.h>

typedef struct norm {
    oct_match m;
    int root; /* the node that computes the result */
    int x, axis;
    int d, mean;     /* values: the one that is squared, and the mean in it; mean is -1 for RMS */
    int gamma, beta; /* values or -1 */
    double eps;
} norm;

/* ------------------------------------------------------------------ parts */

/* The first axis of a ReduceMean over the last axes that keeps dimensions; else -1. */
static int first_axis(oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const int rank = g->value[n->in[0]].shape.rank;
    const oct_infer c = { .g = g, .node = id, .opset = oct_node_opset(g, n) };
    int64_t axes[OCT_MAX_RANK];
    uint32_t mask = 0;
    oct_err why = OCT_ERR_INIT;
    const int count = oct_arg_ints(&c, c.opset < 18 ? "axes" : NULL, c.opset < 18 ? -1 : 1, axes, OCT_MAX_RANK);
    if (rank < 1 || count < 1 || !oct_node_int(n, "keepdims", 1) ||
        oct_axes_mask(axes, count, rank, &mask, &why) != OCT_OK)
        return -1;
    int first = rank;
    while (first > 0 && mask >> (first - 1) & 1)
        first--;
    return first < rank && mask >> first << first == mask && (mask & ((1u << first) - 1)) == 0 ? first : -1;
}

/* The node that computes `mean` as the mean of *value over the last axes, from *axis on; -1: there is none. */
static int mean_of(oct_graph *g, int mean, int *value, int *axis)
{
    const int id = oct_maker(g, mean);
    const bool pools = id >= 0 && oct_is_op(&g->node[id], "GlobalAveragePool");
    if (id < 0 || (!pools && !oct_is_op(&g->node[id], "ReduceMean")) || g->node[id].n_in < 1 || g->node[id].in[0] < 0 ||
        g->node[id].n_out != 1)
        return -1;
    *value = g->node[id].in[0];
    *axis = !pools ? first_axis(g, id) : g->value[*value].shape.rank > 2 ? 2 : -1;
    return *axis >= 0 ? id : -1;
}

/* The node that computes a value as a square; -1: there is none. *d: the value that is squared. */
static int square_of(const oct_graph *g, int value, int *d)
{
    const int pow = oct_made_by(g, value, "Pow", 2), mul = oct_made_by(g, value, "Mul", 2);
    double two;
    if (pow >= 0 && oct_number_of(g, g->node[pow].in[1], &two) && two == 2.0) {
        *d = g->node[pow].in[0];
        return pow;
    }
    if (mul < 0 || g->node[mul].in[0] != g->node[mul].in[1])
        return -1;
    *d = g->node[mul].in[0];
    return mul;
}

/* Matches mean(d d) + eps, and adds all its nodes. */
static bool match_variance(oct_graph *g, int value, norm *y)
{
    const int add = oct_made_by(g, value, "Add", 2);
    if (add < 0)
        return false;
    const int *in = g->node[add].in, slot = oct_number_of(g, in[1], &y->eps) ? 0 : 1;
    int square;
    if ((slot == 1 && !oct_number_of(g, in[0], &y->eps)) || !(y->eps >= 0.0 && y->eps < 1.0))
        return false;
    const int mean = mean_of(g, in[slot], &square, &y->axis), squares = mean >= 0 ? square_of(g, square, &y->d) : -1;
    return squares >= 0 && oct_match_add(&y->m, add) && oct_match_add(&y->m, mean) && oct_match_add(&y->m, squares);
}

/* Matches sqrt(v + eps), or with `inverse` 1 / sqrt(v + eps). */
static bool match_root(oct_graph *g, int value, bool inverse, norm *y)
{
    const int sqrt = oct_made_by(g, value, "Sqrt", 1), pow = oct_made_by(g, value, "Pow", 2);
    double v;
    if (!inverse && sqrt >= 0)
        return oct_match_add(&y->m, sqrt) && match_variance(g, g->node[sqrt].in[0], y);
    if (pow >= 0 && oct_number_of(g, g->node[pow].in[1], &v) && v == (inverse ? -0.5 : 0.5))
        return oct_match_add(&y->m, pow) && match_variance(g, g->node[pow].in[0], y);
    if (!inverse)
        return false;
    const int flip = oct_made_by(g, value, "Reciprocal", 1), div = oct_made_by(g, value, "Div", 2);
    if (flip >= 0)
        return oct_match_add(&y->m, flip) && match_root(g, g->node[flip].in[0], false, y);
    return div >= 0 && oct_number_of(g, g->node[div].in[0], &v) && v == 1.0 && oct_match_add(&y->m, div) &&
           match_root(g, g->node[div].in[1], false, y);
}

/* Whether a value is x minus its mean over the axes. Its nodes join the match. */
static bool match_centered(oct_graph *g, int value, int axis, oct_match *m, int *x, int *mean)
{
    const int sub = oct_made_by(g, value, "Sub", 2);
    int of, first;
    if (sub < 0)
        return false;
    const int id = mean_of(g, g->node[sub].in[1], &of, &first);
    *x = g->node[sub].in[0];
    *mean = g->node[sub].in[1];
    return id >= 0 && of == *x && first == axis && oct_match_add(m, sub) && oct_match_add(m, id);
}

/* ------------------------------------------------------------------ the quotient */

/* Finds what is divided: the value that is squared, or the same difference computed a second time. It is RMS if the
 * value is not a difference, or is one that other nodes need. */
static bool match_dividend(oct_graph *g, int value, norm *y)
{
    oct_match with = y->m;
    int x, again, mean;
    y->mean = -1;
    y->x = y->d;
    if (match_centered(g, y->d, y->axis, &with, &x, &mean) &&
        (value == y->d || (match_centered(g, value, y->axis, &with, &again, &mean) && again == x)) &&
        oct_match_holds(g, &with, y->root)) {
        y->m = with;
        y->mean = mean;
        y->x = x;
        return true;
    }
    return value == y->d && oct_match_holds(g, &y->m, y->root);
}

/* Matches d / sqrt(v + eps) or d * (1 / sqrt(v + eps)) at node id. */
static bool match_quotient(oct_graph *g, int id, norm *y)
{
    const oct_node *n = &g->node[id];
    if (n->n_in != 2 || n->n_out != 1 || n->in[0] < 0 || n->in[1] < 0 || n->out[0] < 0)
        return false;
    const bool divides = oct_is_op(n, "Div");
    if (!divides && !oct_is_op(n, "Mul"))
        return false;
    for (int slot = 0; slot < (divides ? 1 : 2); slot++) {
        *y = (norm){ .m = { { id }, 1 }, .root = id, .gamma = -1, .beta = -1 };
        if (match_root(g, n->in[!slot], !divides, y) && match_dividend(g, n->in[slot], y))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ factor and shift */

/* Whether a value is a float tensor that varies only along the normalized axes. */
static bool is_factor(const oct_graph *g, const norm *y, int value)
{
    const oct_value *x = &g->value[y->x], *f = value >= 0 ? &g->value[value] : NULL;
    int64_t dx[OCT_MAX_RANK], df[OCT_MAX_RANK];
    if (!f || f->dtype != OCT_F32 || !oct_shape_known(&x->shape, dx) || !oct_shape_known(&f->shape, df) ||
        f->shape.rank > x->shape.rank)
        return false;
    for (int i = 0; i < f->shape.rank; i++) {
        const int at = x->shape.rank - f->shape.rank + i;
        if (df[i] != 1 && (at < y->axis || df[i] != dx[at]))
            return false;
    }
    return true;
}

/* Adds the node after the root that multiplies by a factor, or adds a shift, if it is the only reader. Returns the
 * factor or shift; -1: there is none. */
static int match_behind(const oct_graph *g, const char *op, norm *y)
{
    const int out = g->node[y->root].out[0], id = oct_only_reader(g, out);
    const int other =
        id >= 0 && oct_is_op(&g->node[id], op) && g->node[id].n_out == 1 ? oct_other_input(&g->node[id], out) : -1;
    if (!is_factor(g, y, other) || !oct_match_add(&y->m, id))
        return -1;
    y->root = id;
    return other;
}

/* Matches x r + (beta - mean r), r = gamma / sqrt(v + eps), at an Add. */
static bool match_spread(oct_graph *g, int id, norm *y)
{
    if (oct_made_by(g, g->node[id].n_out == 1 ? g->node[id].out[0] : -1, "Add", 2) != id)
        return false;
    for (int slot = 0; slot < 2; slot++) {
        const int *in = g->node[id].in, sub = oct_made_by(g, in[!slot], "Sub", 2),
                  mul = oct_made_by(g, in[slot], "Mul", 2);
        const int shift = sub >= 0 ? oct_made_by(g, g->node[sub].in[1], "Mul", 2) : -1;
        for (int k = 0; mul >= 0 && shift >= 0 && k < 2; k++) {
            const int x = g->node[mul].in[k], r = g->node[mul].in[!k], mean = oct_other_input(&g->node[shift], r);
            const int rate = oct_made_by(g, r, "Mul", 2);
            for (int e = 0; rate >= 0 && e < 2; e++) {
                int of;
                *y = (norm){ .m = { { id, sub, mul, shift, rate }, 5 }, .root = id, .beta = g->node[sub].in[0] };
                y->gamma = g->node[rate].in[!e];
                if (match_root(g, g->node[rate].in[e], true, y) &&
                    match_centered(g, y->d, y->axis, &y->m, &y->x, &of) && y->x == x && of == mean &&
                    is_factor(g, y, y->gamma) && is_factor(g, y, y->beta) && oct_match_holds(g, &y->m, id)) {
                    y->mean = mean;
                    return true;
                }
            }
        }
    }
    return false;
}

/* ------------------------------------------------------------------ rewriting */

static oct_status ones(oct_graph *g, const norm *y, int *value, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK], count;
    const int rank = g->value[y->x].shape.rank - y->axis;
    oct_tensor *t;
    if (!oct_shape_known(&g->value[y->x].shape, dims) || !oct_count(dims + y->axis, rank, &count))
        return oct_fail(err, OCT_EINTERNAL, "a normalisation of open shape");
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, rank, dims + y->axis, &t, err));
    for (int64_t i = 0; i < count; i++)
        ((float *)(uintptr_t)t->data)[i] = 1.0f;
    OCT_TRY(oct_graph_new_value(g, "norm_scale", OCT_F32, value, err));
    OCT_TRY(oct_graph_set_dims(g, *value, rank, dims + y->axis, err));
    oct_graph_set_const(g, *value, t);
    return OCT_OK;
}

static oct_status replace(oct_graph *g, norm *y, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    const bool rms = y->mean < 0;
    const int64_t axis = y->axis;
    int made;
    if (y->gamma < 0)
        OCT_TRY(ones(g, y, &y->gamma, err));
    const oct_fused f = { rms ? "RMSNormalization" : "LayerNormalization",
                          "",
                          rms ? 23 : 17,
                          { y->x, y->gamma, y->beta },
                          y->beta >= 0 ? 3 : 2 };
    OCT_TRY(oct_match_replace(g, &y->m, y->root, y->root, &f, &made, err));
    OCT_TRY(oct_node_set_int(g, made, "axis", axis, err));
    OCT_TRY(oct_node_set_float(g, made, "epsilon", (float)y->eps, err));
    oct_pass_note(log, self, f.op, g->node[made].name);
    return OCT_OK;
}

static bool match(oct_graph *g, int id, norm *y)
{
    if (match_spread(g, id, y))
        return true;
    if (!match_quotient(g, id, y))
        return false;
    y->gamma = match_behind(g, "Mul", y);
    if (y->mean >= 0)
        y->beta = match_behind(g, "Add", y);
    return true;
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    norm y;
    if (match(g, id, &y) && g->value[y.x].dtype == OCT_F32 && oct_same_dims(g, y.x, g->node[y.root].out[0]))
        return replace(g, &y, self, log, err);
    return OCT_OK;
}

const oct_pass oct_pass_layer_norm = { "layer-norm", "make nodes that spell a layer or RMS normalisation one operator",
                                       .at = at };
