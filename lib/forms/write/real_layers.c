/* Layers with float weights between quantizers, which a runtime would quantize.
 *
 * ONNX Runtime 1.32 (WeightBiasQuantization, before its fusions) rounds the constant weights of a Conv, ConvTranspose
 * or Gemm to 8 bits with one common scale if a DequantizeLinear with one scale computes the input and a single
 * QuantizeLinear reads the result, directly or after Relu and Clip. Conv and Gemm then run on integers, and sums
 * saturate without VNNI. It does so before it asks its providers (QNN, XNNPACK, NNAPI and others) what they take. So a
 * layer that stays float, because it would lose too much or is no faster on integers, would be quantized in a worse way
 * than any that was considered. The runtime does not change a layer whose DequantizeLinear has a scale for each
 * channel. Therefore the layer gets a DequantizeLinear of its own, with the same scale for each channel. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "passes/match.h"

#include <string.h>

enum { OPSET = 13 }; /* the first one with scales for channels */

static const oct_tensor *constant_of(const oct_graph *g, int v)
{
    const oct_tensor *t = v >= 0 && !g->value[v].quant ? g->value[v].constant : NULL;
    return t && t->data ? t : NULL;
}

/* Whether weights are known when the model is loaded: they are constant, or a Cast and a Mul compute them from
 * constants (oct_write_stored). */
static bool are_known(const oct_graph *g, int v, int depth)
{
    const int p = g->value[v].producer;
    if (p < 0 || depth == 0)
        return constant_of(g, v);
    const oct_node *n = &g->node[p];
    bool known = !g->value[v].quant && (oct_is_op(n, "Mul") || oct_is_op(n, "Cast"));
    for (int i = 0; i < n->n_in && known; i++)
        known = n->in[i] >= 0 && are_known(g, n->in[i], depth - 1);
    return known;
}

/* The dimension of a layer's input along which the scales are repeated, and its size. */
typedef struct channels {
    int axis;
    int64_t n;
} channels;

/* The runtime takes an array of one number for a single scale. So if there is only one channel, another dimension with
 * a known size is used. */
static void find_several(const oct_shape *s, channels *c)
{
    for (int i = 1; i < s->rank && c->n <= 1; i++)
        *c = (channels){ i, s->d[i].n };
}

static bool channels_of(const oct_graph *g, const oct_node *n, channels *c)
{
    enum { DEPTH = 2 };
    const oct_value *w = oct_input_at(n, 1) >= 0 ? &g->value[n->in[1]] : NULL;
    int64_t dims[OCT_MAX_RANK];
    if (!w || w->dtype != OCT_F32 || w->shape.rank < 2 || !oct_shape_known(&w->shape, dims) ||
        !are_known(g, n->in[1], DEPTH))
        return false;
    if (oct_is_op(n, "Conv"))
        *c = (channels){ 1, dims[1] * oct_node_int(n, "group", 1) };
    else if (oct_is_op(n, "ConvTranspose"))
        *c = (channels){ 1, dims[0] };
    else if (oct_is_op(n, "Gemm"))
        *c = (channels){ !oct_node_int(n, "transA", 0), dims[oct_node_int(n, "transB", 0) != 0] };
    else if (oct_is_op(n, "MatMul")) /* becomes a Gemm together with the Add after it */
        *c = (channels){ g->value[n->in[0]].shape.rank - 1, dims[w->shape.rank - 2] };
    else
        return false;
    return c->axis >= 0;
}

/* Whether the runtime may move quantizers and dequantizers across a node towards the layer. */
static bool is_passed(const oct_node *n)
{
    static const char *const ops[] = { "Relu",    "Clip",      "MaxPool", "Reshape", "Transpose",
                                       "Squeeze", "Unsqueeze", "Flatten", "Slice" };
    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        if (oct_is_op(n, ops[i]))
            return true;
    return false;
}

static bool is_quantized_behind(const oct_graph *g, int id)
{
    int next = oct_only_reader(g, g->node[id].out[0]);
    if (oct_is_op(&g->node[id], "MatMul"))
        next = next >= 0 && oct_is_op(&g->node[next], "Add") ? oct_only_reader(g, g->node[next].out[0]) : -1;
    while (next >= 0 && is_passed(&g->node[next]) && g->node[next].n_out == 1)
        next = oct_only_reader(g, g->node[next].out[0]);
    return next >= 0 && oct_edit_is_quantizer(&g->node[next], "QuantizeLinear");
}

/* Adds a constant of n elements, each of which is the only element of constant v. */
static oct_status repeat(oct_graph *g, int v, int64_t n, int *to, oct_err *err)
{
    const oct_tensor *one = constant_of(g, v);
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, one->dtype, 1, &n, &t, err));
    char *p = (char *)(uintptr_t)t->data;
    for (int64_t i = 0; i < n; i++)
        memcpy(p + (size_t)i * one->bytes, one->data, one->bytes);
    return oct_edit_refer(g, g->value[v].name, "_of_channels", t, to, err);
}

static oct_status give_channels(oct_graph *g, int id, int dequantizer, const channels *c, oct_err *err)
{
    const oct_node from = g->node[dequantizer];
    int in[3] = { from.in[0], -1, -1 }, real, node;
    for (int i = 1; i < from.n_in && i < 3; i++)
        if (from.in[i] >= 0)
            OCT_TRY(repeat(g, from.in[i], c->n, &in[i], err));
    const int out = from.out[0];
    OCT_TRY(oct_edit_value(g, g->value[out].name, "_of_channels", g->value[out].dtype, out, &real, err));
    OCT_TRY(oct_edit_node(g, from.op, in, in[2] >= 0 ? 3 : 2, real, id, &node, err));
    if (from.domain[0])
        OCT_TRY(oct_edit_become(g, node, from.op, from.domain, 0, err));
    OCT_TRY(oct_node_set_int(g, node, "axis", c->axis, err));
    return oct_graph_set_input(g, id, 0, real, err);
}

/* The node that computes the first input of a node; -1: there is none. */
static int maker_of(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    return n->n_in && n->in[0] >= 0 ? g->value[n->in[0]].producer : -1;
}

/* The DequantizeLinear with one scale that computes the first input of a node; -1: there is none. */
static int dequantizer_of(const oct_graph *g, int id)
{
    const int p = maker_of(g, id);
    if (p < 0 || !oct_edit_is_quantizer(&g->node[p], "DequantizeLinear"))
        return -1;
    const oct_tensor *scale = constant_of(g, g->node[p].in[1]);
    return scale && scale->count == 1 &&
                   (g->node[p].n_in < 3 || g->node[p].in[2] < 0 || constant_of(g, g->node[p].in[2]))
               ? p
               : -1;
}

/* The first of the nodes that move the layer's input, or the layer itself if there are none. The runtime may move a
 * dequantizer across all of them, so *c is set for the input of the first one; c->n is at most 1 if no dimension of
 * that input is known to have several elements. */
static int first_mover(const oct_graph *g, int id, channels *c)
{
    for (int p = maker_of(g, id); p >= 0 && is_passed(&g->node[p]) && g->node[p].n_out == 1; p = maker_of(g, id)) {
        if (!oct_is_op(&g->node[p], "MaxPool"))
            *c = (channels){ 0 };
        id = p;
    }
    if (c->n <= 1)
        find_several(&g->value[g->node[id].in[0]].shape, c);
    return id;
}

/* The DequantizeLinear because of which the runtime rounds the weights of a layer, and the node that reads it towards
 * the layer; -1: there is none. */
static int rounding_cause(const oct_graph *g, int id, channels *c, int *reader)
{
    const oct_node *n = &g->node[id];
    if (n->n_out != 1 || n->out[0] < 0 || n->n_in < 1 || n->in[0] < 0 || !channels_of(g, n, c) ||
        !is_quantized_behind(g, id))
        return -1;
    *reader = first_mover(g, id, c);
    return dequantizer_of(g, *reader);
}

bool oct_rounds_at_load(const oct_graph *g, int node)
{
    channels c;
    int reader;
    return rounding_cause(g, node, &c, &reader) >= 0;
}

bool oct_rounds_inputs_at_load(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const int p = oct_is_op(n, "MatMul") && n->n_in == 2 && n->in[1] >= 0 ? g->value[n->in[1]].producer : -1;
    const oct_node *blocks = p >= 0 ? &g->node[p] : NULL;
    return blocks && oct_is_op(blocks, "DequantizeLinear") && oct_node_int(blocks, "block_size", 0) > 0 &&
           blocks->in[0] >= 0 && oct_value_is_constant(&g->value[blocks->in[0]]);
}

oct_status oct_keep_real_layers(oct_graph *g, oct_err *err)
{
    const size_t n = g->n_order;
    const int *order = oct_arena_memdup(g->arena, g->order, n * sizeof *order);
    if (n && !order)
        return oct_nomem(err);
    for (size_t i = 0; i < n && oct_graph_opset(g, "") >= OPSET; i++) {
        channels c;
        int reader;
        const int p = rounding_cause(g, order[i], &c, &reader);
        if (p >= 0 && c.n > 1)
            OCT_TRY(give_channels(g, reader, p, &c, err));
    }
    oct_graph_prune(g); /* dequantizers that nothing reads any more */
    return oct_graph_sort(g, err);
}
