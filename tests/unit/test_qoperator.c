/* lib/forms/write/write_qlinear.c: operator form against QDQ form and against loops written out; what keeps QDQ form;
 * names and taps. */
#include "unit.h"

#include "net.h"
#include "forms/forms.h"
#include "quant/quant.h"

enum { CAP = 1 << 14 };

typedef struct qparams {
    oct_dtype dtype;
    float scale;
    int zero;
} qparams;

static const qparams A = { OCT_U8, 0.02f, 100 }, B = { OCT_U8, 0.025f, 90 }, S = { OCT_S8, 0.02f, -10 };

static const char *with(oct_graph *g, const char *name, const char *suffix)
{
    const char *s = oct_arena_printf(g->arena, "%s%s", name, suffix);
    assert_non_null(s);
    return s;
}

static void qparams_consts(oct_graph *g, const char *name, qparams q, int *scale, int *zero)
{
    uint8_t z = (uint8_t)q.zero;
    *scale = net_const(g, with(g, name, "_scale"), OCT_F32, "", &q.scale);
    *zero = net_const(g, with(g, name, "_zero_point"), q.dtype, "", &z);
}

/* v -> QuantizeLinear -> v_quantized -> DequantizeLinear -> the value returned. */
static int qdq(oct_graph *g, int v, qparams q)
{
    const char *name = g->value[v].name;
    int s, z;
    qparams_consts(g, name, q, &s, &z);
    int qvals = NET_NODE(g, "QuantizeLinear", with(g, name, "_Q"), with(g, name, "_quantized"), v, s, z);
    return NET_NODE(g, "DequantizeLinear", with(g, name, "_DQ"), with(g, name, "_dequantized"), qvals, s, z);
}

static int quantized_input(oct_graph *g, const char *name, const char *dims, qparams q)
{
    return qdq(g, net_input(g, name, OCT_F32, dims), q);
}

/* 8-bit weights, `channels` scales along axis, behind a DequantizeLinear. */
static int weights(oct_graph *g, const char *name, const char *dims, size_t n, int channels, int axis, qparams q)
{
    uint8_t qvals[256], zeros[16];
    float scales[16];
    char text[16];
    uint32_t seed = 5;
    assert_true(n <= sizeof qvals && channels <= 16);
    for (size_t i = 0; i < n; i++)
        qvals[i] = (uint8_t)((int)(net_next(&seed) % 121u) - 60 + q.zero);
    for (int i = 0; i < channels; i++) {
        scales[i] = q.scale * (float)(i + 1);
        zeros[i] = (uint8_t)q.zero;
    }
    snprintf(text, sizeof text, "%d", channels);
    int w = net_const(g, name, q.dtype, dims, qvals), s = net_const(g, with(g, name, "_scale"), OCT_F32, text, scales);
    int z = net_const(g, with(g, name, "_zero_point"), q.dtype, text, zeros);
    int v = NET_NODE(g, "DequantizeLinear", with(g, name, "_DQ"), with(g, name, "_dequantized"), w, s, z);
    net_int(g, "axis", axis);
    return v;
}

/* int32 at sx * scale of weights(), times `wrong`. */
static int bias(oct_graph *g, const char *name, int channels, qparams x, qparams w, float wrong)
{
    int32_t qvals[16], zeros[16] = { 0 };
    float scales[16];
    char text[16];
    for (int i = 0; i < channels; i++) {
        qvals[i] = 700 * i - 900;
        scales[i] = x.scale * (w.scale * (float)(i + 1)) * wrong;
    }
    snprintf(text, sizeof text, "%d", channels);
    int b = net_const(g, name, OCT_S32, text, qvals), s = net_const(g, with(g, name, "_scale"), OCT_F32, text, scales);
    int z = net_const(g, with(g, name, "_zero_point"), OCT_S32, text, zeros);
    int v = NET_NODE(g, "DequantizeLinear", with(g, name, "_DQ"), with(g, name, "_dequantized"), b, s, z);
    net_int(g, "axis", 0);
    return v;
}

/* Operators that read quantized values. */
static size_t on_qvals(const oct_graph *g)
{
    size_t found = 0;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        bool reads = false;
        for (int k = 0; k < n->n_in; k++)
            reads |= n->in[k] >= 0 && (g->value[n->in[k]].dtype == OCT_U8 || g->value[n->in[k]].dtype == OCT_S8);
        found += reads && !oct_is_op(n, "QuantizeLinear") && !oct_is_op(n, "DequantizeLinear");
    }
    return found;
}

/* Returns the operators on quantized values that were made. */
static size_t rewrite(oct_graph *g)
{
    const size_t before = on_qvals(g);
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_forms_write(g, &(oct_forms_write_opts){ .operators = true }, err));
    GOOD(oct_infer_shapes(g, err));
    return on_qvals(g) - before;
}

/* Runs both forms of a graph and compares every bit. Returns the operators made. */
static size_t compare(oct_graph *g)
{
    static float before[CAP], after[CAP];
    GOOD(oct_infer_shapes(g, err));
    size_t n = net_run(g, before, CAP), made = rewrite(g);
    assert_int_equal(net_run(g, after, CAP), n);
    assert_memory_equal(before, after, n * sizeof *before);
    return made;
}

static const qparams W = { OCT_S8, 0.004f, 0 };

static oct_node *node_named(oct_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(g->node[g->order[i]].name, name) == 0)
            return &g->node[g->order[i]];
    fail_msg("there is no node '%s'", name);
    return NULL;
}

static void is_node(oct_graph *g, const char *name, const char *domain, const char *op, const char *out)
{
    const oct_node *n = node_named(g, name);
    assert_string_equal(n->op, op);
    assert_string_equal(n->domain, domain);
    assert_string_equal(g->value[n->out[0]].name, out);
}

/* A net in which everything has an operator form but the last Softmax. */
static oct_graph *make_net(qparams a, qparams b)
{
    oct_graph *g = net_graph(13);
    int x = quantized_input(g, "x", "2,3,8,8", a), w = weights(g, "w", "4,3,3,3", 108, 4, 0, W),
        y = bias(g, "b", 4, a, W, 1);
    y = NET_NODE(g, "Conv", "conv", "conv_y", x, w, y);
    NET_INTS(g, "pads", 1, 1, 1, 1);
    int c = qdq(g, y, b);
    y = NET_NODE(g, "MaxPool", "pool", "pool_y", c);
    NET_INTS(g, "kernel_shape", 2, 2);
    NET_INTS(g, "strides", 2, 2);
    int p = qdq(g, y, b);
    y = NET_NODE(g, "LeakyRelu", "leaky", "leaky_y", p);
    net_float(g, "alpha", 0.1f);
    y = qdq(g, y, a);
    y = qdq(g, NET_NODE(g, "Add", "add", "add_y", y, p), b);
    y = qdq(g, NET_NODE(g, "Mul", "mul", "mul_y", y, p), a);
    int cat = NET_NODE(g, "Concat", "cat", "cat_y", y, p);
    net_int(g, "axis", 1);
    cat = qdq(g, cat, b);
    int same = NET_NODE(g, "Concat", "same", "same_y", cat, p);
    net_int(g, "axis", 1);
    same = qdq(g, same, b);
    y = NET_NODE(g, "AveragePool", "avg", "avg_y", same);
    NET_INTS(g, "kernel_shape", 2, 2);
    y = qdq(g, y, a);
    y = qdq(g, NET_NODE(g, "Sigmoid", "sig", "sig_y", y), a);
    y = qdq(g, NET_NODE(g, "GlobalAveragePool", "gap", "gap_y", y), b);
    y = qdq(g, NET_NODE(g, "Flatten", "flat", "flat_y", y), b);
    int m = weights(g, "m", "12,12", 144, 12, 1, W);
    y = qdq(g, NET_NODE(g, "MatMul", "mat", "mat_y", y, m), a);
    int k = weights(g, "k", "5,12", 60, 5, 0, W), kb = bias(g, "kb", 5, a, W, 1);
    y = NET_NODE(g, "Gemm", "fc", "fc_y", y, k, kb);
    net_int(g, "transB", 1);
    net_float(g, "beta", 1);
    net_output(g, NET_NODE(g, "Softmax", "soft", "y", y));
    return g;
}

TEST(whole_net)
{
    oct_graph *g = make_net(A, B);
    assert_int_equal(compare(g), 13);
    is_node(g, "conv", "", "QLinearConv", "conv_y_quantized");
    is_node(g, "pool", "", "MaxPool", "pool_y_quantized");
    is_node(g, "leaky", "com.microsoft", "QLinearLeakyRelu", "leaky_y_quantized");
    is_node(g, "add", "com.microsoft", "QLinearAdd", "add_y_quantized");
    is_node(g, "mul", "com.microsoft", "QLinearMul", "mul_y_quantized");
    is_node(g, "cat", "com.microsoft", "QLinearConcat", "cat_y_quantized");
    is_node(g, "same", "", "Concat", "same_y_quantized");
    is_node(g, "avg", "com.microsoft", "QLinearAveragePool", "avg_y_quantized");
    is_node(g, "sig", "com.microsoft", "QLinearSigmoid", "sig_y_quantized");
    is_node(g, "gap", "com.microsoft", "QLinearGlobalAveragePool", "gap_y_quantized");
    is_node(g, "flat", "", "Flatten", "flat_y_quantized");
    is_node(g, "mat", "", "QLinearMatMul", "mat_y_quantized");
    is_node(g, "fc", "com.microsoft", "QGemm", "fc_y");
    assert_null(oct_node_attr(node_named(g, "fc"), "beta"));
    assert_int_equal(oct_node_int(node_named(g, "fc"), "transB", 0), 1);
    assert_int_equal(node_named(g, "fc")->n_in, 7); /* a real output has no parameters */
    /* Nothing is left but the quantizer of the input and what is real. */
    assert_int_equal(net_count(g, NULL), 15);
    assert_int_equal(net_count(g, "QuantizeLinear"), 1);
    assert_int_equal(net_count(g, "DequantizeLinear"), 0);
    assert_int_equal(oct_graph_opset(g, "com.microsoft"), 1);
    const char *const want[] = { "x_quantized",  "x_scale",      "x_zero_point",      "w", "w_scale",
                                 "w_zero_point", "conv_y_scale", "conv_y_zero_point", "b" };
    const oct_node *n = node_named(g, "conv");
    assert_int_equal(n->n_in, OCT_COUNT(want));
    for (int i = 0; i < n->n_in; i++)
        assert_string_equal(g->value[n->in[i]].name, want[i]);
    assert_int_equal(rewrite(g), 0); /* once more changes nothing */
    oct_graph_destroy(g);
}

/* The same from values that carry their quantization. Nodes that are to compute on 16-bit floats stay. */
TEST(whole_net_of_values)
{
    static float before[CAP], after[CAP];
    for (int half = 0; half < 2; half++) {
        oct_graph *g = make_net(A, B);
        oct_dtype type[64] = { OCT_UNDEFINED };
        GOOD(oct_infer_shapes(g, err));
        const size_t n = net_run(g, before, CAP);
        GOOD(oct_forms_read(g, NULL, NULL, err));
        oct_graph_prune(g);
        assert_int_equal(net_count(g, "DequantizeLinear"), 0);
        type[(size_t)(node_named(g, "avg") - g->node)] = half ? OCT_F16 : OCT_UNDEFINED;
        const oct_half_opts halves = { type, OCT_COUNT(type), OCT_UNDEFINED };
        GOOD(oct_forms_write(g, &(oct_forms_write_opts){ .operators = true, .half = &halves }, err));
        GOOD(oct_infer_shapes(g, err));
        assert_int_equal(on_qvals(g), 13 - half);
        assert_int_equal(net_count(g, "QuantizeLinear"), 1 + half);
        assert_string_equal(node_named(g, "avg")->op, half ? "AveragePool" : "QLinearAveragePool");
        is_node(g, "same", "", "Concat", "same_y_quantized");
        assert_int_equal(net_run(g, after, CAP), n);
        assert_memory_equal(before, after, n * sizeof *before);
        oct_graph_destroy(g);
    }
}

TEST(signed_qvals)
{
    oct_graph *g = make_net(S, (qparams){ OCT_S8, 0.025f, 7 });
    assert_int_equal(compare(g), 13);
    oct_graph_destroy(g);
}

/* Quantized values of a random input as QuantizeLinear gives them. */
static int qval_of(float x, qparams q)
{
    float v = rintf(x / q.scale) + (float)q.zero;
    return v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

TEST(conv_by_hand)
{
    /* 1x1 convolution of 3 channels to 4: integers, one float multiplier a channel, half to even. */
    oct_graph *g = net_graph(13);
    int x = quantized_input(g, "x", "1,3,4,4", A), w = weights(g, "w", "4,3,1,1", 12, 4, 0, W),
        b = bias(g, "b", 4, A, W, 1);
    net_output(g, qdq(g, NET_NODE(g, "Conv", "conv", "y", x, w, b), B));
    assert_int_equal(rewrite(g), 1);
    float in[48], got[64];
    net_fill(in, 48, 77);
    assert_int_equal(net_run(g, got, 64), 64);
    const int8_t *qvals = g->value[oct_graph_find(g, "w")].constant->data;
    for (int o = 0; o < 4; o++)
        for (int i = 0; i < 16; i++) {
            int32_t acc = 700 * o - 900;
            for (int c = 0; c < 3; c++)
                acc += (qval_of(in[c * 16 + i], A) - A.zero) * qvals[o * 3 + c];
            float m = A.scale * (W.scale * (float)(o + 1)) / B.scale, v = rintf((float)acc * m);
            int q = (int)v + B.zero;
            q = q < 0 ? 0 : q > 255 ? 255 : q;
            assert_true(got[o * 16 + i] == (float)(q - B.zero) * B.scale);
        }
    oct_graph_destroy(g);
}

/* Builds x -> op -> y between quantizers and says how many operators were made of it. */
static size_t made_of(oct_graph *g, int y, qparams q)
{
    net_output(g, q.dtype == OCT_UNDEFINED ? y : qdq(g, y, q));
    size_t made = compare(g);
    if (made == 0)
        assert_int_equal(oct_graph_opset(g, "com.microsoft"), 0);
    oct_graph_destroy(g);
    return made;
}

static size_t conv_with(qparams x, qparams w, qparams y, float wrong, bool lone_zero)
{
    oct_graph *g = net_graph(13);
    int in = quantized_input(g, "x", "1,3,6,6", x), k = weights(g, "w", "4,3,3,3", 108, 4, 0, w),
        b = bias(g, "b", 4, x, w, wrong);
    if (lone_zero)
        ((uint8_t *)(uintptr_t)g->value[oct_graph_find(g, "w_zero_point")].constant->data)[2] = 1;
    return made_of(g, NET_NODE(g, "Conv", "op", "y", in, k, b), y);
}

TEST(products_that_stay)
{
    const qparams real = { OCT_UNDEFINED, 0, 0 }, u8 = { OCT_U8, 0.004f, 128 };
    assert_int_equal(conv_with(A, W, B, 1, false), 1);
    assert_int_equal(conv_with(A, u8, B, 1, false), 1);
    assert_int_equal(conv_with(S, W, S, 1, false), 1);
    assert_int_equal(conv_with(S, u8, S, 1, false), 0); /* no kernel in the deployment runtime */
    assert_int_equal(conv_with(A, W, S, 1, false), 0);
    assert_int_equal(conv_with(A, W, real, 1, false), 0);
    assert_int_equal(conv_with(A, W, B, 1.5f, false), 0); /* the bias is on another scale */
    assert_int_equal(conv_with(A, W, B, 1, true), 0);     /* zero points of weights differ */
    oct_graph *g = net_graph(13);
    int x = quantized_input(g, "x", "5,12", A), m = weights(g, "m", "12,7", 84, 7, 1, W);
    assert_int_equal(made_of(g, NET_NODE(g, "MatMul", "op", "y", x, m), real), 0);
    g = net_graph(13);
    x = quantized_input(g, "x", "5,12", A), m = weights(g, "m", "12,7", 84, 7, 1, W);
    int y = NET_NODE(g, "Gemm", "op", "y", x, m);
    net_float(g, "alpha", 2);
    assert_int_equal(made_of(g, y, B), 0);
    /* Two activations. */
    g = net_graph(13);
    x = quantized_input(g, "x", "2,5,12", A), m = quantized_input(g, "z", "2,12,3", B);
    assert_int_equal(made_of(g, NET_NODE(g, "MatMul", "op", "y", x, m), B), 1);
}

static size_t move(const char *op, int64_t opset, qparams x, qparams y, const char *mode)
{
    oct_graph *g = net_graph(opset);
    int in = quantized_input(g, "x", "1,4,6,6", x), v;
    if (strcmp(op, "Resize") == 0) {
        v = NET_NODE(g, op, "op", "y", in, -1, NET_F32(g, "scales", "4", 1, 1, 2, 2));
        net_str(g, "mode", mode);
    } else if (strcmp(op, "Pad") == 0) {
        v = NET_NODE(g, op, "op", "y", in, NET_S64(g, "pads", "8", 0, 0, 1, 1, 0, 0, 1, 1));
    } else {
        v = NET_NODE(g, op, "op", "y", in);
        NET_INTS(g, "kernel_shape", 2, 2);
    }
    return made_of(g, v, y);
}

TEST(moves_that_stay)
{
    assert_int_equal(move("Resize", 13, A, A, "nearest"), 1);
    assert_int_equal(move("Resize", 13, A, A, "linear"), 0);
    assert_int_equal(move("Resize", 13, A, B, "nearest"), 0); /* quantized values would change */
    assert_int_equal(move("MaxPool", 13, A, A, NULL), 1);
    assert_int_equal(move("MaxPool", 11, A, A, NULL), 0); /* floats only */
    assert_int_equal(move("MaxPool", 13, A, (qparams){ OCT_U8, A.scale, A.zero + 1 }, NULL), 0);
    assert_int_equal(move("Pad", 13, A, A, NULL), 0); /* its padding is a real number */
}

TEST(shared_output)
{
    /* A real reader beside the quantizer: the operator must stay real. */
    oct_graph *g = net_graph(13);
    int x = quantized_input(g, "x", "1,4,6,6", A), y = NET_NODE(g, "Sigmoid", "sig", "y", x);
    net_output(g, qdq(g, y, B));
    net_output(g, NET_NODE(g, "Exp", "exp", "e", y));
    assert_int_equal(compare(g), 0);
    is_node(g, "sig", "", "Sigmoid", "y");
    oct_graph_destroy(g);
}

TEST(softmax_scale)
{
    for (int exact = 0; exact < 2; exact++) {
        oct_graph *g = net_graph(13);
        int x = quantized_input(g, "x", "4,9", A), y = NET_NODE(g, "Softmax", "op", "y", x);
        net_output(g, qdq(g, y, (qparams){ OCT_U8, exact ? 1.0f / 256.0f : 1.0f / 255.0f, 0 }));
        assert_int_equal(compare(g), exact);
        if (exact) {
            assert_int_equal(oct_node_int(node_named(g, "op"), "opset", 0), 13);
            assert_int_equal(oct_node_int(node_named(g, "op"), "axis", 7), -1);
        }
        oct_graph_destroy(g);
    }
}

/* ---- taps ---- */

typedef struct seen {
    char name[32][32];
    float first[32];
    bool quantized[32];
    int n;
} seen;

static const char *const names[] = { "conv_y", "pool_y", "leaky_y", "cat_y",  "same_y",
                                     "flat_y", "mat_y",  "fc_y",    "part_0", "part_1" };

static oct_status on_tap(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    seen *s = arg;
    static float all[CAP];
    assert_true(s->n < 32 && t->count <= CAP);
    OCT_TRY(oct_operand_to_f32(t, all, err));
    snprintf(s->name[s->n], sizeof s->name[0], "%s", names[tap]);
    s->first[s->n] = all[0];
    s->quantized[s->n++] = t->q != NULL;
    return OCT_OK;
}

static void show(const oct_graph *g, seen *s)
{
    float x[2 * 3 * 8 * 8];
    oct_plan_opts opts = { .taps = names, .n_taps = OCT_COUNT(names) };
    oct_plan *p = net_plan(g, &opts, NULL);
    oct_plan_set_tap(p, on_tap, s);
    net_fill(x, OCT_COUNT(x), 77);
    GOOD(oct_plan_run(p, (const void *[]){ x }, err));
    oct_plan_destroy(p);
}

/* Values are shown under their real names in both forms. */
TEST(taps_by_real_name)
{
    oct_graph *g = make_net(A, B);
    int both = oct_graph_find(g, "same_y_dequantized"), part[2];
    GOOD(oct_graph_add_node(g, "Split", "", "split", 1, 2, -1, &net_last, err));
    int split = net_last;
    GOOD(oct_graph_set_input(g, split, 0, both, err));
    net_int(g, "axis", 1);
    for (int k = 0; k < 2; k++) {
        GOOD(oct_graph_add_value(g, k ? "part_1" : "part_0", OCT_UNDEFINED, &part[k], err));
        GOOD(oct_graph_set_output(g, split, k, part[k], err));
    }
    for (int k = 0; k < 2; k++)
        net_output(g, qdq(g, part[k], B));
    seen a = { .n = 0 }, b = { .n = 0 };
    GOOD(oct_infer_shapes(g, err));
    show(g, &a);
    assert_int_equal(rewrite(g), 14);
    show(g, &b);
    assert_int_equal(a.n, OCT_COUNT(names));
    assert_int_equal(b.n, OCT_COUNT(names));
    for (int i = 0; i < a.n; i++) {
        assert_string_equal(a.name[i], b.name[i]);
        assert_true(a.first[i] == b.first[i]);
        assert_int_equal(a.quantized[i], b.quantized[i]);
    }
    oct_graph_destroy(g);
}
