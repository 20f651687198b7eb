/* Finds preprocessing at the beginning of a model. */
#include "passes/input_chain.h"

#include "passes/input_moves.h"
#include "passes/match.h"

#include <math.h>
#include <string.h>

#define LEAST_OF_PIXELS \
    2 /* at least the mean or std of one channel of pixels; for inputs between -1 and 1 these are smaller */

/* The state of a walk along the chain: channels are along `axis`, and hold factor * x + term. */
typedef struct walk {
    const oct_graph *g;
    int v, axis, n, steps;
    double factor[OCT_CHAIN_CHANNELS], term[OCT_CHAIN_CHANNELS];
    bool reversed;
} walk;

/* Reads a constant with one number, or one for each channel. */
static bool spread(const walk *w, int value, double *x)
{
    const oct_tensor *t = oct_graph_constant(w->g, value);
    const int rank = 4;
    if (!t || !t->data || t->dtype != OCT_F32 || t->rank > rank || (t->count != 1 && t->count != w->n))
        return false;
    for (int i = 0; t->count > 1 && i < t->rank; i++)
        if (t->dims[i] != (i == w->axis - (rank - t->rank) ? w->n : 1))
            return false;
    for (int c = 0; c < w->n; c++)
        x[c] = (double)((const float *)t->data)[t->count > 1 ? c : 0];
    return true;
}

static bool take_affine(walk *w, const oct_node *n, int slot)
{
    const bool add = oct_is_op(n, "Add"), sub = oct_is_op(n, "Sub") && slot == 0, mul = oct_is_op(n, "Mul"),
               div = oct_is_op(n, "Div") && slot == 0;
    double x[OCT_CHAIN_CHANNELS];
    if (n->n_in != 2 || !(add || sub || mul || div) || !spread(w, n->in[1 - slot], x))
        return false;
    for (int c = 0; c < w->n; c++) {
        const double by = mul ? x[c] : div ? 1 / x[c] : 1;
        w->factor[c] = div ? w->factor[c] / x[c] : w->factor[c] * by;
        w->term[c] = add ? w->term[c] + x[c] : sub ? w->term[c] - x[c] : div ? w->term[c] / x[c] : w->term[c] * by;
    }
    w->steps++;
    return true;
}

/* Accepts indices that reverse the channels. */
static bool take_reversal(walk *w, const oct_node *n)
{
    const oct_tensor *t = n->n_in == 2 && n->in[1] >= 0 ? w->g->value[n->in[1]].constant : NULL;
    const int64_t axis = oct_node_int(n, "axis", 0);
    if (!oct_is_op(n, "Gather") || !t || !t->data || t->dtype != OCT_S64 || t->rank != 1 || t->count != w->n ||
        (axis < 0 ? axis + 4 : axis) != w->axis)
        return false;
    for (int c = 0; c < w->n; c++)
        if (((const int64_t *)t->data)[c] != w->n - 1 - c)
            return false;
    for (int c = 0; c < w->n / 2; c++) {
        const double factor = w->factor[c], term = w->term[c];
        w->factor[c] = w->factor[w->n - 1 - c];
        w->term[c] = w->term[w->n - 1 - c];
        w->factor[w->n - 1 - c] = factor;
        w->term[w->n - 1 - c] = term;
    }
    w->reversed = !w->reversed;
    return true;
}

static bool take_transpose(walk *w, const oct_node *n)
{
    static const int64_t first[] = { 0, 3, 1, 2 };
    int count;
    const int64_t *perm = oct_node_ints(n, "perm", &count);
    if (!oct_is_op(n, "Transpose") || w->axis != 3 || count != 4 || memcmp(perm, first, sizeof first) != 0)
        return false;
    w->axis = 1;
    return true;
}

static bool take_node(walk *w)
{
    const oct_value *x = &w->g->value[w->v];
    const oct_use u = x->n_uses == 1 ? x->uses[0] : (oct_use){ -1, -1 };
    const oct_node *n = u.node >= 0 && u.slot >= 0 && !x->is_output ? &w->g->node[u.node] : NULL;
    if (!n || n->domain[0] || n->n_out != 1 || n->out[0] < 0)
        return false;
    const bool same = oct_is_op(n, "Cast") && oct_node_int(n, "to", 0) == OCT_F32 && x->dtype == OCT_F32;
    if (!same && !take_transpose(w, n) && !take_affine(w, n, u.slot) && !(u.slot == 0 && take_reversal(w, n)))
        return false;
    w->v = n->out[0];
    return true;
}

static bool walk_from(const oct_graph *g, int input, int axis, oct_input_chain *c)
{
    const oct_dim channels = g->value[input].shape.d[axis];
    walk w = { .g = g, .v = input, .axis = axis, .n = (int)channels.n };
    bool pixels = false;
    if (channels.n < 1 || channels.n > OCT_CHAIN_CHANNELS)
        return false;
    for (int i = 0; i < w.n; i++)
        w.factor[i] = 1;
    while (take_node(&w))
        continue;
    *c = (oct_input_chain){
        .input = input, .end = w.v, .n = w.n, .last = axis == 3, .axis = w.axis, .reversed = w.reversed
    };
    for (int i = 0; i < w.n; i++) {
        c->std[i] = 1 / w.factor[i];
        c->mean[i] = -w.term[i] / w.factor[i];
        if (!(w.factor[i] > 0) || !isfinite(c->std[i]) || !isfinite(c->mean[i]))
            return false;
        pixels |= c->std[i] >= LEAST_OF_PIXELS || c->mean[i] >= LEAST_OF_PIXELS;
    }
    return w.steps > 0 && pixels;
}

/* Whether the channels, last here, are moved to dimension 1 behind nodes that only surround the picture. */
static bool is_turned_later(const oct_graph *g, int v)
{
    walk w = { .g = g, .axis = 3 };
    oct_border b;
    while (oct_value_used_once(&g->value[v])) {
        const oct_node *n = &g->node[g->value[v].uses[0].node];
        if (take_transpose(&w, n))
            return true;
        if (n->n_out != 1 || n->out[0] < 0 || !oct_input_border(g, n, w.axis, &b))
            return false;
        v = n->out[0];
    }
    return false;
}

bool oct_input_chain_find(const oct_graph *g, int input, oct_input_chain *c)
{
    const oct_value *v = &g->value[input];
    if (v->dtype != OCT_F32 || v->shape.rank != 4)
        return false;
    const bool last = walk_from(g, input, 3, c);
    oct_input_chain first;
    if (last && c->axis == 1)
        return true;
    if (!walk_from(g, input, 1, &first))
        return last && is_turned_later(g, c->end);
    *c = first;
    return true;
}

/* The output of a Cast to float32 that is the only reader of a uint8 input, directly or after a Transpose; or -1. */
static int cast_of(const oct_graph *g, int input)
{
    const oct_value *v = &g->value[input];
    const oct_node *n = v->dtype == OCT_U8 && v->n_uses == 1 && v->uses[0].slot == 0 && !v->is_output
                            ? &g->node[v->uses[0].node]
                            : NULL;
    if (!n || n->n_out != 1 || n->out[0] < 0)
        return -1;
    if (oct_is_op(n, "Transpose"))
        return v->is_input ? cast_of(g, n->out[0]) : -1;
    return oct_is_op(n, "Cast") && oct_node_int(n, "to", 0) == OCT_F32 && !g->value[n->out[0]].is_output ? n->out[0]
                                                                                                         : -1;
}

bool oct_input_chain_of_bytes(const oct_graph *g, int input)
{
    oct_input_chain c;
    const int real = cast_of(g, input);
    return real >= 0 && oct_input_chain_find(g, real, &c);
}

/* ---- changing the chain ---- */

oct_status oct_input_chain_widen(oct_graph *g, int input, oct_err *err)
{
    const int real = cast_of(g, input), bytes = g->node[g->value[real].producer].in[0];
    OCT_TRY(oct_graph_replace_uses(g, real, bytes, err));
    for (int i = 0; i < 2; i++) {
        oct_value *v = &g->value[i ? bytes : input];
        v->dtype = OCT_F32;
        v->origin = NULL;
    }
    g->changed = true;
    oct_graph_prune(g);
    return OCT_OK;
}

static oct_status append(oct_graph *g, const char *op, int a, int b, int before, int *out, oct_err *err)
{
    int id;
    const char *name = oct_arena_printf(g->arena, "%s_%s", g->value[a].name, op);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_add_node(g, op, "", name, b >= 0 ? 2 : 1, 1, before, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, a, err));
    if (b >= 0)
        OCT_TRY(oct_graph_set_input(g, id, 1, b, err));
    if (*out < 0)
        OCT_TRY(oct_graph_new_value(g, name, OCT_F32, out, err));
    if (strcmp(op, "Transpose") == 0)
        OCT_TRY(oct_node_set_ints(g, id, "perm", (const int64_t[]){ 0, 3, 1, 2 }, 4, err));
    return oct_graph_set_output(g, id, 0, *out, err);
}

oct_status oct_input_chain_replace(oct_graph *g, const oct_input_chain *c, float zero, float std, oct_err *err)
{
    const int first = g->value[c->input].uses[0].node;
    int at = c->input, end = c->end, shifted = -1, constant[2];
    OCT_TRY(oct_graph_new_const_f32(g, "input_mean", 0, NULL, &zero, &constant[0], err));
    OCT_TRY(oct_graph_new_const_f32(g, "input_std", 0, NULL, &std, &constant[1], err));
    if (c->last && c->axis == 1) {
        int turned = -1;
        OCT_TRY(append(g, "Transpose", at, -1, first, &turned, err));
        at = turned;
    }
    OCT_TRY(append(g, "Sub", at, constant[0], first, &shifted, err));
    OCT_TRY(append(g, "Div", shifted, constant[1], first, &end, err));
    oct_graph_prune(g);
    return oct_graph_sort(g, err);
}

oct_status oct_input_chain_drop(oct_graph *g, const char *input, const char *end, oct_err *err)
{
    const int from = oct_graph_find(g, input), to = oct_graph_find(g, end);
    int v = to;
    while (v >= 0 && v != from && g->value[v].producer >= 0) {
        const oct_node *n = &g->node[g->value[v].producer];
        if (n->n_in != 2 || n->in[0] < 0 || n->in[1] < 0 || !g->value[n->in[1]].constant)
            break;
        v = n->in[0];
    }
    if (to < 0 || v < 0 || v == to)
        return OCT_OK;
    OCT_TRY(oct_graph_replace_uses(g, to, v, err));
    oct_graph_prune(g);
    return oct_graph_sort(g, err);
}
