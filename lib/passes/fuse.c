/* What fusions share. */
#include "passes/fuse.h"

#include <string.h>

static const oct_tensor *float_const(const oct_graph *g, int value)
{
    const oct_tensor *t = value >= 0 ? g->value[value].konst : NULL;
    return t && t->dtype == OCT_F32 && t->data ? t : NULL;
}

static bool bias_fits(const oct_graph *g, const oct_node *n, int64_t channels)
{
    if (n->n_in < 3 || n->in[2] < 0)
        return true;
    const oct_tensor *b = float_const(g, n->in[2]);
    return b && b->count == channels && b->rank >= 1 && b->dims[b->rank - 1] == channels;
}

bool oct_layer_of(const oct_graph *g, int node, oct_layer *l)
{
    const oct_node *n = &g->node[node];
    const oct_tensor *w = n->n_in > 1 ? float_const(g, n->in[1]) : NULL;
    if (!w || n->n_out < 1 || n->out[0] < 0)
        return false;
    *l = (oct_layer){ .node = node, .groups = 1 };
    if (oct_is_op(n, "Conv") && w->rank >= 3) {
        l->conv = true;
        l->channels = w->dims[0];
    } else if (oct_is_op(n, "ConvTranspose") && w->rank >= 3) {
        l->conv = true;
        l->axis = 1;
        l->groups = oct_node_int(n, "group", 1);
        if (l->groups < 1 || w->dims[0] % l->groups || __builtin_mul_overflow(w->dims[1], l->groups, &l->channels))
            return false;
    } else if (oct_is_op(n, "Gemm") && w->rank == 2) {
        if (oct_node_float(n, "alpha", 1.0f) != 1.0f || (n->n_in > 2 && n->in[2] >= 0 && oct_node_float(n, "beta", 1.0f) != 1.0f))
            return false;
        l->axis = oct_node_int(n, "transB", 0) ? 0 : 1;
        l->channels = w->dims[l->axis];
    } else if (oct_is_op(n, "MatMul") && w->rank == 2) {
        l->axis = 1;
        l->channels = w->dims[1];
    } else {
        return false;
    }
    return bias_fits(g, n, l->channels);
}

int oct_sole_reader(const oct_graph *g, int value, int *slot)
{
    const oct_value *v = &g->value[value];
    if (!oct_value_used_once(v) || v->uses[0].slot < 0)
        return -1;
    *slot = v->uses[0].slot;
    return v->uses[0].node;
}

bool oct_channel_const(oct_graph *g, int value, const oct_layer *l, int rank, float **v)
{
    const oct_tensor *t = float_const(g, value);
    if (!t || t->rank > rank || t->count < 1)
        return false;
    /* All dimensions 1 but the channels'. */
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

static oct_status scaled_weights(oct_graph *g, const oct_layer *l, const float *scale, oct_err *err)
{
    const oct_value *old = &g->value[g->node[l->node].in[1]];
    const oct_tensor *w = old->konst;
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, w->rank, w->dims, &t, err));
    const float *src = w->data;
    float *dst = (float *)(uintptr_t)t->data;
    int64_t inner = 1, n = w->dims[l->axis];
    for (int i = l->axis + 1; i < w->rank; i++)
        inner *= w->dims[i];
    /* ConvTranspose: input channel i belongs to group i / (inputs / groups), whose outputs start at group * n. */
    int64_t per_group = l->axis == 1 && l->groups > 1 ? w->dims[0] / l->groups : 0;
    for (int64_t i = 0; i < w->count; i++) {
        int64_t c = i / inner % n, row = i / (inner * n);
        if (per_group)
            c += row / per_group * n;
        dst[i] = (float)((double)src[i] * (double)scale[c]);
    }
    int v;
    OCT_TRY(oct_graph_new_value(g, old->name, OCT_F32, &v, err));
    oct_graph_set_const(g, v, t);
    return oct_graph_set_input(g, l->node, 1, v, err);
}

static oct_status affine_bias(oct_graph *g, const oct_layer *l, const float *scale, const float *shift, oct_err *err)
{
    const oct_node *n = &g->node[l->node];
    int old = n->n_in > 2 ? n->in[2] : -1;
    if (old < 0 && !shift)
        return OCT_OK;
    const float *b = old >= 0 ? g->value[old].konst->data : NULL;
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, 1, &l->channels, &t, err));
    float *dst = (float *)(uintptr_t)t->data;
    for (int64_t i = 0; i < l->channels; i++)
        dst[i] = (float)((b ? (double)b[i] * (scale ? (double)scale[i] : 1.0) : 0.0) + (shift ? (double)shift[i] : 0.0));
    int v;
    const char *base = old >= 0 ? g->value[old].name
                                : oct_arena_printf(g->arena, "%s_bias", n->name[0] ? n->name : g->value[n->out[0]].name);
    if (!base)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(g, base, OCT_F32, &v, err));
    oct_graph_set_const(g, v, t);
    /* A Gemm without a bias may have any beta. */
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
