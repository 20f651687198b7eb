/* What fusions share. */
#include "passes/fuse.h"

#include "ops/core/waiting.h"

#include <string.h>

static const oct_tensor *float_const(const oct_graph *g, int value)
{
    const oct_tensor *t = value >= 0 && !g->value[value].quant ? g->value[value].constant : NULL;
    return t && t->dtype == OCT_F32 && t->data ? t : NULL;
}

static bool bias_fits(const oct_graph *g, const oct_node *n, int slot, int64_t channels)
{
    if (!slot || oct_input_at(n, slot) < 0)
        return true;
    const oct_tensor *b = float_const(g, n->in[slot]);
    return b && b->count == channels && b->rank >= 1 && b->dims[b->rank - 1] == channels &&
           oct_node_float(n, "beta", 1.0f) == 1.0f;
}

bool oct_layer_of(const oct_graph *g, int node, oct_layer *l)
{
    const oct_tensor *w = oct_layer_weights(g, node);
    return w && w->dtype == OCT_F32 && oct_biased_layer_of(g, node, l);
}

bool oct_biased_layer_of(const oct_graph *g, int node, oct_layer *l)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    const oct_tensor *w = oct_layer_weights(g, node);
    if (!w || op->quant != OCT_QUANT_WEIGHTED || (w->dtype != OCT_F32 && w->dtype != OCT_BF16) || !oct_has_floats(w) ||
        n->n_out < 1 || n->out[0] < 0)
        return false;
    *l = (oct_layer){ .node = node, .conv = op->weights.kernel };
    if ((l->conv ? w->rank < 3 : w->rank != 2) || !w->count || !oct_layer_layout(g, node, &l->weights))
        return false;
    l->channels = l->weights.outs;
    return oct_node_float(n, "alpha", 1.0f) == 1.0f && bias_fits(g, n, op->weights.bias, l->channels);
}

int oct_sole_reader(const oct_graph *g, int value, int *slot)
{
    const oct_value *v = &g->value[value];
    if (v->quant || !oct_value_used_once(v) || v->uses[0].slot < 0)
        return -1;
    *slot = v->uses[0].slot;
    return v->uses[0].node;
}

bool oct_channel_const(oct_graph *g, int value, const oct_layer *l, int rank, float **v)
{
    const oct_tensor *t = float_const(g, value);
    if (!t || t->rank > rank || t->count < 1)
        return false;
    /* All dimensions must be 1, except that of the channels. */
    int channel = t->rank - rank + (l->conv ? 1 : rank - 1);
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] != 1 && (i != channel || t->dims[i] != l->channels))
            return false;
    float *out = oct_arena_calloc(g->arena, (size_t)l->channels, sizeof *out);
    if (!out)
        return false;
    for (int64_t i = 0; i < l->channels; i++)
        out[i] = ((const float *)t->data)[t->count == 1 ? 0 : i];
    *v = out;
    return true;
}

enum { SMALL_WEIGHTS = 4096 }; /* bytes */

/* Whether two nodes with the same operator do the same with their first inputs. */
static bool same_but_input(const oct_graph *g, int a, int b)
{
    const oct_node *x = &g->node[a], *y = &g->node[b];
    bool same = a == b || (strcmp(x->op, y->op) == 0 && x->n_in == y->n_in && x->n_attr == y->n_attr &&
                           oct_node_float(x, "epsilon", 0) == oct_node_float(y, "epsilon", 0));
    for (int i = 1; i < x->n_in && same; i++)
        same = x->in[i] == y->in[i];
    return same;
}

/* Whether a graph around g also reads the outer value that a value of g stands for. */
static bool read_outside(const oct_graph *g, int value)
{
    bool read = false;
    for (int v = value, outer; (outer = g->value[v].outer) >= 0 && !read; v = outer) {
        g = g->outer;
        read = !oct_value_used_once(&g->value[outer]);
    }
    return read;
}

/* The only reader of a layer's output, if u is the layer's use of its weights; -1: there is none, or the use is of
 * another kind. */
static int tail_of(const oct_graph *g, oct_use u)
{
    int slot;
    return u.slot == 1 && g->node[u.node].n_out == 1 && g->node[u.node].out[0] >= 0
               ? oct_sole_reader(g, g->node[u.node].out[0], &slot)
               : -1;
}

bool oct_layer_scalable(const oct_graph *g, const oct_layer *l, int tail)
{
    const int v = g->node[l->node].in[1];
    const oct_value *w = &g->value[v];
    oct_sources from;
    bool alone =
        !w->is_output && !read_outside(g, v) && !(oct_graph_sources(g, v, &from) && from.bytes < w->constant->bytes);
    for (size_t i = 0; i < w->n_uses && alone; i++) {
        const int other = tail_of(g, w->uses[i]);
        alone = w->uses[i].node == l->node || (tail >= 0 && other >= 0 && same_but_input(g, other, tail));
    }
    return alone || w->constant->bytes < SMALL_WEIGHTS;
}

static oct_status scaled_weights(oct_graph *g, const oct_layer *l, const float *scale, oct_err *err)
{
    const oct_value *old = &g->value[g->node[l->node].in[1]];
    const oct_tensor *w = old->constant;
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, w->rank, w->dims, &t, err));
    OCT_TRY(oct_floats_make(g->arena, w, err));
    const float *src = w->data;
    float *dst = (float *)(uintptr_t)t->data;
    for (int64_t e = 0; e < w->count; e++)
        dst[e] = (float)((double)src[e] * (double)scale[oct_output_channel(&l->weights, e)]);
    int v;
    OCT_TRY(oct_graph_new_value(g, old->name, OCT_F32, &v, err));
    oct_graph_set_const(g, v, t);
    return oct_graph_set_input(g, l->node, 1, v, err);
}

static oct_status affine_bias(oct_graph *g, const oct_layer *l, const float *scale, const float *shift, oct_err *err)
{
    const oct_node *n = &g->node[l->node];
    int old = oct_input_at(n, 2);
    if (old < 0 && !shift)
        return OCT_OK;
    const float *b = old >= 0 ? g->value[old].constant->data : NULL;
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, 1, &l->channels, &t, err));
    float *dst = (float *)(uintptr_t)t->data;
    for (int64_t i = 0; i < l->channels; i++)
        dst[i] =
            (float)((b ? (double)b[i] * (scale ? (double)scale[i] : 1.0) : 0.0) + (shift ? (double)shift[i] : 0.0));
    int v;
    const char *base = old >= 0
                           ? g->value[old].name
                           : oct_arena_printf(g->arena, "%s_bias", n->name[0] ? n->name : g->value[n->out[0]].name);
    if (!base)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(g, base, OCT_F32, &v, err));
    oct_graph_set_const(g, v, t);
    /* For a Gemm without a bias, beta does not matter. */
    oct_node_drop_attr(g, l->node, "beta");
    return oct_graph_set_input(g, l->node, 2, v, err);
}

oct_status oct_layer_affine(oct_graph *g, const oct_layer *l, const float *scale, const float *shift, oct_err *err)
{
    if (scale)
        OCT_TRY(scaled_weights(g, l, scale, err));
    return affine_bias(g, l, scale, shift, err);
}

oct_status oct_layer_absorb(oct_graph *g, int layer, int tail, oct_err *err)
{
    int value = g->node[tail].out[0];
    OCT_TRY(oct_graph_set_output(g, tail, 0, -1, err));
    oct_graph_remove_node(g, tail);
    return oct_graph_set_output(g, layer, 0, value, err);
}
