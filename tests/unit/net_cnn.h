/* A generated convolutional network with most shapes of layers, float or quantized (QDQ). Include after net.h. */
#ifndef OCT_TESTS_NET_CNN_H
#define OCT_TESTS_NET_CNN_H

#include "net.h"

typedef struct net_cnn {
    oct_graph *g;
    bool qdq;
    int count; /* of layers, for names and seeds */
} net_cnn;

static inline const char *net_name(net_cnn *n, const char *base)
{
    return oct_arena_printf(n->g->arena, "%s%d", base, n->count);
}

/* Q and DQ behind a value, u8. */
static inline int net_qdq(net_cnn *n, int v, float scale, int zp)
{
    if (!n->qdq)
        return v;
    oct_graph *g = n->g;
    const uint8_t z = (uint8_t)zp;
    int s = NET_F32(g, net_name(n, "s"), "", scale), zv = net_const(g, net_name(n, "z"), OCT_U8, "", &z);
    const char *base = g->value[v].name;
    int q = NET_NODE(g, "QuantizeLinear", "", oct_arena_printf(g->arena, "%s_q", base), v, s, zv);
    return NET_NODE(g, "DequantizeLinear", "", oct_arena_printf(g->arena, "%s_dq", base), q, s, zv);
}

/* Weights of `dims`, `channels` outputs along axis 0; quantized per channel behind a DequantizeLinear. */
static inline int net_weights(net_cnn *n, const char *dims, int channels)
{
    oct_graph *g = n->g;
    if (!n->qdq)
        return net_random(g, net_name(n, "w"), dims, 100u + (uint32_t)n->count);
    int8_t q[4096];
    float scale[64];
    oct_dim d[OCT_MAX_RANK];
    size_t size = 1;
    uint32_t seed = 100u + (uint32_t)n->count;
    int rank = net_dims(g, dims, d);
    for (int i = 0; i < rank; i++)
        size *= (size_t)d[i].n;
    assert_true(size <= sizeof q && channels <= 64);
    for (size_t i = 0; i < size; i++)
        q[i] = (int8_t)((int)(net_next(&seed) % 255u) - 127);
    for (int i = 0; i < channels; i++)
        scale[i] = 0.003f + 0.0007f * (float)(i % 11);
    char c[12];
    snprintf(c, sizeof c, "%d", channels);
    int w = NET_NODE(g, "DequantizeLinear", "", net_name(n, "w"), net_const(g, net_name(n, "wq"), OCT_S8, dims, q),
                     net_const(g, net_name(n, "ws"), OCT_F32, c, scale));
    net_int(g, "axis", 0);
    return w;
}

static inline int net_bias(net_cnn *n, int channels, float x_scale)
{
    char c[12];
    snprintf(c, sizeof c, "%d", channels);
    if (!n->qdq)
        return net_random(n->g, net_name(n, "b"), c, 900u + (uint32_t)n->count);
    int32_t b[64];
    float s[64];
    uint32_t seed = 7u + (uint32_t)n->count;
    for (int i = 0; i < channels; i++) {
        b[i] = (int32_t)(net_next(&seed) % 4000u) - 2000;
        s[i] = x_scale * (0.003f + 0.0007f * (float)(i % 11));
    }
    int v = NET_NODE(n->g, "DequantizeLinear", "", net_name(n, "b"), net_const(n->g, net_name(n, "bq"), OCT_S32, c, b),
                     net_const(n->g, net_name(n, "bs"), OCT_F32, c, s));
    net_int(n->g, "axis", 0);
    return v;
}

/* Conv [+ Relu] with its quantizer; scales: of the input and the output. */
static inline int net_conv(net_cnn *n, int x, const char *w, int channels, int group, int stride, int pad, float xs,
                           float ys, bool relu)
{
    oct_graph *g = n->g;
    n->count++;
    int weights = net_weights(n, w, channels), bias = net_bias(n, channels, xs);
    int y = NET_NODE(g, "Conv", net_name(n, "conv"), net_name(n, "c"), x, weights, bias);
    net_int(g, "group", group);
    NET_INTS(g, "strides", stride, stride);
    NET_INTS(g, "pads", pad, pad, pad, pad);
    if (relu)
        y = NET_NODE(g, "Relu", net_name(n, "relu"), net_name(n, "r"), y);
    return net_qdq(n, y, ys, relu ? 0 : 128);
}

/* Input x [N,3,H,W] (dims as given), output y [N,10]; `mid` is a value in the middle, a graph output as well when
 * shown. */
static inline oct_graph *net_cnn_make(const char *dims, bool qdq)
{
    net_cnn n = { net_graph(13), qdq, 0 };
    oct_graph *g = n.g;
    int x = net_qdq(&n, net_input(g, "x", OCT_F32, dims), 1.0f / 64, 128);
    int a = net_conv(&n, x, "13,3,3,3", 13, 1, 2, 1, 1.0f / 64, 0.02f, true);
    int b = net_conv(&n, a, "32,13,1,1", 32, 1, 1, 0, 0.02f, 0.05f, true);
    int c = net_conv(&n, b, "32,1,3,3", 32, 32, 1, 1, 0.05f, 0.04f, true); /* depthwise */
    int d = net_conv(&n, c, "13,32,1,1", 13, 1, 1, 0, 0.04f, 0.05f, false);
    n.count++;
    int e = net_qdq(&n, NET_NODE(g, "Add", "residual", "res", a, d), 0.06f, 120);
    n.count++;
    int p = NET_NODE(g, "MaxPool", "pool", "pool", e);
    NET_INTS(g, "kernel_shape", 3, 3);
    NET_INTS(g, "strides", 2, 2);
    NET_INTS(g, "pads", 1, 1, 1, 1);
    p = net_qdq(&n, p, 0.06f, 120);
    int f = net_conv(&n, p, "6,13,3,3", 6, 1, 1, 1, 0.06f, 0.06f, false);
    int h = net_conv(&n, p, "10,13,1,1", 10, 1, 1, 0, 0.06f, 0.06f, false);
    n.count++;
    int cat = net_qdq(&n, (NET_NODE(g, "Concat", "cat", "cat", f, p, h)), 0.06f, 124);
    GOOD(oct_node_set_int(g, g->value[oct_graph_find(g, "cat")].producer, "axis", 1, err));
    int k = net_conv(&n, cat, "29,29,1,1", 29, 1, 1, 0, 0.06f, 0.09f, true);
    n.count++;
    int gap = net_qdq(&n, NET_NODE(g, "GlobalAveragePool", "gap", "gap", k), 0.05f, 0);
    n.count++;
    int flat = net_qdq(&n, NET_NODE(g, "Flatten", "flat", "flat", gap), 0.05f, 0);
    n.count++;
    int fc = NET_NODE(g, "Gemm", "fc", "fc", flat, net_weights(&n, "10,29", 10), net_bias(&n, 10, 0.05f));
    net_int(g, "transB", 1);
    fc = net_qdq(&n, fc, 0.05f, 100);
    net_output(g, fc);
    net_output(g, NET_NODE(g, "Softmax", "soft", "y", fc));
    return g;
}

#endif
