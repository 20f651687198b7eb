/* Pass: BatchNormalization into the layer before it, or into the convolution after it.
 *
 * BN(x) = x * s + b per channel, s = gamma / sqrt(var + eps), b = beta - mean * s (Ioffe and Szegedy, 2015,
 * section 3.1). After a layer: weights times s, bias times s plus b. Before a convolution: weights of input channel c
 * times s[c], and the bias gains the sum over taps of w * b[c]. This is exact only if no padding is read, because BN(0)
 * is not 0. */
#include "passes/fuse.h"

#include <math.h>
#include <string.h>

extern const oct_pass oct_pass_batchnorm; /* below, and in the table */

static bool is_batchnorm(const oct_graph *g, const oct_node *n)
{
    if (!oct_is_op(n, "BatchNormalization") || n->n_in != 5 || oct_node_int(n, "training_mode", 0) ||
        oct_node_int(n, "spatial", 1) == 0)
        return false;
    for (int i = 1; i < 5; i++) {
        const oct_tensor *t = n->in[i] >= 0 ? g->value[n->in[i]].constant : NULL;
        if (!t || t->dtype != OCT_F32 || !t->data || t->count != g->value[n->in[1]].constant->count)
            return false;
    }
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0 && (g->value[n->out[i]].n_uses || g->value[n->out[i]].is_output))
            return false;
    return true;
}

int64_t oct_norm_channels(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    return is_batchnorm(g, n) && n->out[0] >= 0 ? g->value[n->in[1]].constant->count : 0;
}

void oct_norm_moments(const oct_graph *g, int node, float *mean, float *deviation)
{
    const oct_node *n = &g->node[node];
    const float *gamma = g->value[n->in[1]].constant->data, *beta = g->value[n->in[2]].constant->data,
                *var = g->value[n->in[4]].constant->data;
    const double eps = oct_node_float(n, "epsilon", 1e-5f);
    for (int64_t c = 0; c < g->value[n->in[1]].constant->count; c++) {
        mean[c] = beta[c];
        deviation[c] = (float)(fabs((double)gamma[c]) * sqrt((double)var[c] / ((double)var[c] + eps)));
    }
}

static oct_status affine_of(oct_graph *g, const oct_node *n, int64_t channels, float **scale, float **shift,
                            oct_err *err)
{
    *scale = oct_arena_calloc(g->arena, (size_t)channels, sizeof(float));
    *shift = oct_arena_calloc(g->arena, (size_t)channels, sizeof(float));
    if (!*scale || !*shift)
        return oct_nomem(err);
    const float *gamma = g->value[n->in[1]].constant->data, *beta = g->value[n->in[2]].constant->data;
    const float *mean = g->value[n->in[3]].constant->data, *var = g->value[n->in[4]].constant->data;
    double eps = oct_node_float(n, "epsilon", 1e-5f);
    for (int64_t i = 0; i < channels; i++) {
        double s = (double)gamma[i] / sqrt((double)var[i] + eps);
        (*scale)[i] = (float)s;
        (*shift)[i] = (float)((double)beta[i] - (double)mean[i] * s);
    }
    return OCT_OK;
}

static oct_status after_layer(oct_graph *g, int bn, bool *fused, oct_err *err)
{
    const oct_node *n = &g->node[bn];
    oct_layer l;
    int slot, p = n->in[0] >= 0 ? g->value[n->in[0]].producer : -1;
    *fused = false;
    if (p < 0 || oct_sole_reader(g, n->in[0], &slot) != bn || !oct_layer_of(g, p, &l) ||
        l.channels != g->value[n->in[1]].constant->count)
        return OCT_OK;
    /* The result of a MatMul with rank above 2 has its channels last, while BatchNormalization has them in dimension
     * 1. */
    if (!l.conv && g->value[n->in[0]].shape.rank != 2)
        return OCT_OK;
    if (strcmp(g->node[p].op, "MatMul") == 0)
        return OCT_OK; /* a MatMul has no bias, and becomes a Gemm first */
    if (!oct_layer_scalable(g, &l, bn))
        return OCT_OK;
    float *scale, *shift;
    OCT_TRY(affine_of(g, n, l.channels, &scale, &shift, err));
    OCT_TRY(oct_layer_affine(g, &l, scale, shift, err));
    OCT_TRY(oct_layer_absorb(g, p, bn, err));
    *fused = true;
    return OCT_OK;
}

static bool reads_padding(const oct_node *n)
{
    int count;
    const int64_t *pads = oct_node_ints(n, "pads", &count);
    const char *mode = oct_node_str(n, "auto_pad", "NOTSET");
    for (int i = 0; i < count; i++)
        if (pads[i])
            return true;
    return strncmp(mode, "SAME", 4) == 0;
}

static oct_status scale_inputs(oct_graph *g, const oct_layer *l, const float *scale, const float *shift, oct_err *err)
{
    const oct_value *old = &g->value[g->node[l->node].in[1]];
    const oct_tensor *w = old->constant;
    const int64_t row = w->count / w->dims[0];
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, w->rank, w->dims, &t, err));
    float *add = oct_arena_calloc(g->arena, (size_t)l->channels, sizeof *add);
    if (!add)
        return oct_nomem(err);
    for (int64_t o = 0; o < w->dims[0]; o++) {
        double sum = 0;
        for (int64_t at = o * row; at < (o + 1) * row; at++) {
            const int64_t c = oct_input_channel(&l->weights, at);
            double x = ((const float *)w->data)[at];
            ((float *)(uintptr_t)t->data)[at] = (float)(x * (double)scale[c]);
            sum += x * (double)shift[c];
        }
        add[o] = (float)sum;
    }
    int v;
    OCT_TRY(oct_graph_new_value(g, old->name, OCT_F32, &v, err));
    oct_graph_set_const(g, v, t);
    OCT_TRY(oct_graph_set_input(g, l->node, 1, v, err));
    return oct_layer_affine(g, l, NULL, add, err);
}

static oct_status before_conv(oct_graph *g, int bn, bool *fused, oct_err *err)
{
    const oct_node *n = &g->node[bn];
    int slot, id = n->out[0] >= 0 ? oct_sole_reader(g, n->out[0], &slot) : -1;
    oct_layer l;
    *fused = false;
    if (id < 0 || slot != 0 || !oct_layer_of(g, id, &l) || strcmp(g->node[id].op, "Conv") != 0 ||
        reads_padding(&g->node[id]))
        return OCT_OK;
    const int64_t c = g->value[n->in[1]].constant->count;
    if (l.weights.ins != c || !oct_layer_scalable(g, &l, -1))
        return OCT_OK;
    float *scale, *shift;
    int x = n->in[0], y = n->out[0];
    OCT_TRY(affine_of(g, n, c, &scale, &shift, err));
    OCT_TRY(scale_inputs(g, &l, scale, shift, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, x, err));
    oct_graph_remove_node(g, bn);
    oct_graph_remove_value(g, y);
    *fused = true;
    return OCT_OK;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order;) {
        int id = g->order[i];
        bool fused = false;
        const char *name = g->node[id].name;
        if (is_batchnorm(g, &g->node[id])) {
            OCT_TRY(after_layer(g, id, &fused, err));
            if (!fused)
                OCT_TRY(before_conv(g, id, &fused, err));
            if (fused)
                oct_pass_note(log, self, "BatchNormalization", name);
        }
        i += !fused;
    }
    return OCT_OK;
}

/* ---- as a convolution ---- */

/* [C,1,1..], as a convolution that multiplies each channel by one number. */
static oct_status make_depthwise(oct_graph *g, int id, int rank, oct_err *err)
{
    static const char *const own[] = { "epsilon", "momentum", "training_mode", "spatial" };
    const int64_t channels = g->value[g->node[id].in[1]].constant->count;
    const char *base = g->value[g->node[id].in[1]].name, *base_of_shift = g->value[g->node[id].in[2]].name;
    int64_t dims[OCT_MAX_RANK] = { channels };
    float *scale, *shift;
    int v;
    for (int i = 1; i < rank; i++)
        dims[i] = 1;
    OCT_TRY(affine_of(g, &g->node[id], channels, &scale, &shift, err));
    OCT_TRY(oct_graph_new_const_f32(g, base, rank, dims, scale, &v, err));
    OCT_TRY(oct_graph_set_input(g, id, 1, v, err));
    OCT_TRY(oct_graph_new_const_f32(g, base_of_shift, 1, &channels, shift, &v, err));
    OCT_TRY(oct_graph_set_input(g, id, 2, v, err));
    oct_graph_cut_inputs(g, id, 3);
    for (int k = 1; k < g->node[id].n_out; k++)
        OCT_TRY(oct_graph_set_output(g, id, k, -1, err));
    g->node[id].n_out = 1;
    for (size_t i = 0; i < OCT_COUNT(own); i++)
        oct_node_drop_attr(g, id, own[i]);
    g->node[id].op = "Conv";
    g->node[id].changed = g->changed = true;
    return oct_node_set_int(g, id, "group", channels, err);
}

oct_status oct_norms_to_convs(oct_graph *g, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_nested; i++)
        OCT_TRY(oct_norms_to_convs(g->nested[i], log, err));
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i], rank = oct_norm_channels(g, id) && g->node[id].in[0] >= 0
                                               ? g->value[g->node[id].in[0]].shape.rank
                                               : 0;
        if (rank < 3)
            continue;
        OCT_TRY(make_depthwise(g, id, rank, err));
        oct_pass_note(log, &oct_pass_batchnorm, "BatchNormalization as depthwise Conv", g->node[id].name);
    }
    oct_graph_prune(g);
    return oct_infer_shapes(g, err);
}

const oct_pass oct_pass_batchnorm = { "batchnorm", "fold BatchNormalization into Conv, ConvTranspose and Gemm", run };
