/* Fusions of the runtime: each spelling becomes its operator and computes what the nodes compute one by one; what only
 * looks alike is left. The models testdata/models/spelled_... have ONNX Runtime's results. */
#include "unit.h"

#include "net.h"

enum { CAP = 1 << 14 };

static int made;

/* A node of one or two inputs with names of its own. */
static int op(oct_graph *g, const char *type, int a, int b)
{
    char out[24];
    snprintf(out, sizeof out, "v%d", made++);
    return b < 0 ? NET_NODE(g, type, out, out, a) : NET_NODE(g, type, out, out, a, b);
}

static int number(oct_graph *g, float v)
{
    return NET_F32(g, "c", "", v);
}

/* The graph's numbers, one node at a time and as it is planned by default, must agree within float rounding: 4 units of
 * the largest. */
static void same_numbers(const oct_graph *g)
{
    static float want[CAP], got[CAP];
    const oct_plan_opts raw = { .no_passes = true, .no_integer = true };
    size_t n = net_run_with(g, &raw, NULL, want, CAP);
    assert_int_equal(net_run(g, got, CAP), n);
    double e = net_error(want, got, n);
    if (!(e <= 5e-7))
        fail_msg("results are %g of their range off", e);
}

/* Fuses, and expects `count` nodes of `type`, and `all` nodes in all; frees the graph. */
static void expect(oct_graph *g, int out, const char *type, size_t count, size_t all)
{
    if (out >= 0)
        net_output(g, out);
    same_numbers(g);
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_fuse(g, NULL, err));
    GOOD(oct_graph_check(g, err));
    assert_int_equal(net_count(g, type), count);
    assert_int_equal(net_count(g, NULL), all);
    GOOD(oct_infer_shapes(g, err));
    oct_graph_destroy(g);
}

static oct_graph *start(int64_t opset, const char *dims, int *x)
{
    oct_graph *g = net_graph(opset);
    made = 0;
    *x = net_input(g, "x", OCT_F32, dims);
    *x = op(g, "Mul", *x, number(g, 6.0f)); /* inputs reach from -6 to 6 */
    return g;
}

/* ------------------------------------------------------------------ activations */

static int gelu_erf(oct_graph *g, int x, int form)
{
    int e =
        op(g, "Erf", form % 2 ? op(g, "Mul", number(g, 0.70710678f), x) : op(g, "Div", x, number(g, 1.41421356f)), -1);
    int half = number(g, 0.5f);
    if (form == 4)
        return op(g, "Mul", x, op(g, "Add", op(g, "Mul", e, half), half));
    int one = op(g, "Add", form % 3 ? e : number(g, 1), form % 3 ? number(g, 1) : e);
    switch (form) {
    case 0: return op(g, "Mul", op(g, "Mul", x, one), half);
    case 1: return op(g, "Mul", op(g, "Mul", x, half), one);
    case 2: return op(g, "Mul", half, op(g, "Mul", one, x));
    case 3: return op(g, "Mul", x, op(g, "Mul", one, half));
    default: return op(g, "Div", op(g, "Mul", one, x), number(g, 2));
    }
}

static int cube(oct_graph *g, int x, int form)
{
    switch (form) {
    case 0: return op(g, "Pow", x, number(g, 3));
    case 1: return op(g, "Mul", x, op(g, "Mul", x, x));
    default: return op(g, "Mul", op(g, "Pow", x, NET_S64(g, "two", "", 2)), x);
    }
}

static int gelu_tanh(oct_graph *g, int x, int form)
{
    int u =
        op(g, "Mul", number(g, 0.79788456f), op(g, "Add", x, op(g, "Mul", number(g, 0.044715f), cube(g, x, form % 3))));
    if (form == 3) /* factored */
        u = op(g, "Mul", op(g, "Mul", x, number(g, 0.7978845608f)),
               op(g, "Add", op(g, "Mul", op(g, "Mul", number(g, 0.044715f), x), x), number(g, 1)));
    int t = op(g, "Add", op(g, "Tanh", u, -1), number(g, 1));
    return form % 2 ? op(g, "Mul", op(g, "Mul", x, number(g, 0.5f)), t)
                    : op(g, "Mul", number(g, 0.5f), op(g, "Mul", x, t));
}

static int hard_swish(oct_graph *g, int x, int form)
{
    int six = op(g, "Add", x, number(g, 3)), y;
    if (form == 3) {
        y = op(g, "HardSigmoid", x, -1);
        net_float(g, "alpha", 1.0f / 6.0f);
        return op(g, "Mul", x, y);
    }
    if (form == 4) {
        y = NET_NODE(g, "Clip", "clip", "clipped", op(g, "Add", op(g, "Div", x, number(g, 6)), number(g, 0.5f)),
                     number(g, 0), number(g, 1));
        return op(g, "Mul", y, x);
    }
    y = NET_NODE(g, "Clip", "clip", "clipped", six, number(g, 0), number(g, 6));
    return form == 0   ? op(g, "Div", op(g, "Mul", x, y), number(g, 6))
           : form == 1 ? op(g, "Mul", x, op(g, "Div", y, number(g, 6)))
                       : op(g, "Mul", op(g, "Mul", y, number(g, 1 / 6.0f)), x);
}

TEST(activations)
{
    oct_graph *g;
    int x;
    for (int form = 0; form < 6; form++) {
        g = start(13, "2,3,40", &x);
        expect(g, gelu_erf(g, x, form), "Gelu", 1, 2);
    }
    for (int form = 0; form < 4; form++) {
        g = start(13, "2,3,40", &x);
        expect(g, gelu_tanh(g, x, form), "Gelu", 1, 2);
    }
    for (int form = 0; form < 5; form++) {
        g = start(13, "2,3,40", &x);
        expect(g, hard_swish(g, x, form), "HardSwish", 1, 2);
    }
    for (int form = 0; form < 2; form++) {
        g = start(9, "2,3,40", &x);
        int s = op(g, "Sigmoid", form ? op(g, "Mul", x, number(g, 1.702f)) : x, -1);
        expect(g, op(g, "Mul", form ? s : x, form ? x : s), "Swish", 1, 2);
    }
    g = start(9, "2,3,40", &x);
    expect(g, op(g, "Mul", x, op(g, "Tanh", op(g, "Softplus", x, -1), -1)), "Mish", 1, 2);
    g = start(13, "2,3,40", &x); /* Gelu by tanh, by sigmoid(2 u) */
    int u = op(g, "Mul", op(g, "Add", x, op(g, "Mul", cube(g, x, 1), number(g, 0.044715f))), number(g, 1.5957691216f));
    expect(g, op(g, "Mul", x, op(g, "Sigmoid", u, -1)), "Gelu", 1, 2);
}

/* What the operator would not compute, or what others see. */
TEST(no_activation)
{
    oct_graph *g;
    int x, e;
    g = start(13, "2,40", &x); /* another factor in erf */
    e = op(g, "Add", op(g, "Erf", op(g, "Mul", x, number(g, 0.7f)), -1), number(g, 1));
    expect(g, op(g, "Mul", op(g, "Mul", x, e), number(g, 0.5f)), "Gelu", 0, 6);
    g = start(13, "2,40", &x); /* 1.5 in the place of 1 */
    e = op(g, "Add", op(g, "Erf", op(g, "Div", x, number(g, 1.41421356f)), -1), number(g, 1.5f));
    expect(g, op(g, "Mul", op(g, "Mul", x, e), number(g, 0.5f)), "Gelu", 0, 6);
    g = start(13, "2,40", &x); /* erf is shown */
    e = op(g, "Erf", op(g, "Div", x, number(g, 1.41421356f)), -1);
    net_output(g, e);
    expect(g, op(g, "Mul", op(g, "Mul", x, op(g, "Add", e, number(g, 1))), number(g, 0.5f)), "Gelu", 0, 6);
    g = start(13, "2,40", &x); /* the middle product has another reader */
    e = op(g, "Erf", op(g, "Div", x, number(g, 1.41421356f)), -1);
    e = op(g, "Mul", x, op(g, "Add", e, number(g, 1)));
    net_output(g, op(g, "Neg", e, -1));
    expect(g, op(g, "Mul", e, number(g, 0.5f)), "Gelu", 0, 7);
    g = start(13, "1,40", &x); /* the half is a tensor: the result is wider than x */
    e = op(g, "Add", op(g, "Erf", op(g, "Div", x, number(g, 1.41421356f)), -1), number(g, 1));
    expect(g, op(g, "Mul", op(g, "Mul", x, e), NET_F32(g, "halves", "2,1", 0.5f, 0.5f)), "Gelu", 0, 6);
    g = start(13, "2,40", &x); /* the sigmoid of another value */
    int y = op(g, "Neg", x, -1);
    expect(g, op(g, "Mul", x, op(g, "Sigmoid", y, -1)), "Swish", 0, 4);
    g = start(13, "2,40", &x); /* relu6(x + 2) */
    e = NET_NODE(g, "Clip", "clip", "clipped", op(g, "Add", x, number(g, 2)), number(g, 0), number(g, 6));
    expect(g, op(g, "Mul", x, op(g, "Div", e, number(g, 6))), "HardSwish", 0, 5);
}

/* ------------------------------------------------------------------ normalisation */

static int mean(oct_graph *g, int x, int64_t axis)
{
    int v;
    if (oct_graph_opset(g, "") >= 18)
        return op(g, "ReduceMean", x, NET_S64(g, "axes", "1", axis));
    v = op(g, "ReduceMean", x, -1);
    NET_INTS(g, "axes", axis);
    return v;
}

static int centered(oct_graph *g, int x, int64_t axis)
{
    return op(g, "Sub", x, mean(g, x, axis));
}

/* d / sqrt(mean(d d) + eps) in five forms. */
static int normalised(oct_graph *g, int d, int e, int64_t axis, int form, float eps)
{
    int square = form % 2 ? op(g, "Mul", e, e) : op(g, "Pow", e, number(g, 2));
    int var = op(g, "Add", mean(g, square, axis), number(g, eps));
    switch (form) {
    case 0: return op(g, "Div", d, op(g, "Sqrt", var, -1));
    case 1: return op(g, "Mul", d, op(g, "Reciprocal", op(g, "Sqrt", var, -1), -1));
    case 2: return op(g, "Mul", op(g, "Div", number(g, 1), op(g, "Sqrt", var, -1)), d);
    case 3: return op(g, "Mul", d, op(g, "Pow", var, number(g, -0.5f)));
    default: return op(g, "Div", d, op(g, "Pow", var, number(g, 0.5f)));
    }
}

static int scaled(oct_graph *g, int y, int form)
{
    int gamma = net_random(g, "gamma", "48", 3);
    return form % 2 ? op(g, "Mul", gamma, y) : op(g, "Mul", y, gamma);
}

static int shifted(oct_graph *g, int y, int form)
{
    int beta = net_random(g, "beta", "48", 4);
    return form % 2 ? op(g, "Add", beta, y) : op(g, "Add", y, beta);
}

TEST(layer_norms)
{
    oct_graph *g;
    int x;
    for (int form = 0; form < 5; form++)
        for (int opset = 13; opset <= 18; opset += 5) {
            g = start(opset, "2,5,48", &x);
            int d = centered(g, x, form % 2 ? 2 : -1);
            expect(g, shifted(g, scaled(g, normalised(g, d, d, -1, form, 1e-5f), form), form), "LayerNormalization", 1,
                   2);
            g = start(opset, "2,5,48", &x); /* the difference twice */
            int y = normalised(g, centered(g, x, -1), centered(g, x, 2), -1, form, 1e-5f);
            expect(g, scaled(g, y, form), "LayerNormalization", 1, 2);
            g = start(opset, "2,5,48", &x); /* neither scale nor shift */
            d = centered(g, x, -1);
            expect(g, normalised(g, d, d, -1, form, 1e-5f), "LayerNormalization", 1, 2);
            g = start(opset, "2,5,48", &x);
            expect(g, scaled(g, normalised(g, x, x, -1, form, 1e-6f), form), "RMSNormalization", 1, 2);
        }
    /* x r + (beta - mean r) */
    for (int form = 0; form < 2; form++) {
        g = start(13, "2,5,48", &x);
        int m = mean(g, x, -1), d = op(g, "Sub", x, m);
        int var = op(g, "Add", mean(g, op(g, "Mul", d, d), -1), number(g, 1e-3f));
        int r = scaled(g, op(g, "Reciprocal", op(g, "Sqrt", var, -1), -1), form), beta = net_random(g, "beta", "48", 4);
        int shift = op(g, "Sub", beta, form ? op(g, "Mul", r, m) : op(g, "Mul", m, r));
        expect(g, op(g, "Add", form ? shift : op(g, "Mul", r, x), form ? op(g, "Mul", x, r) : shift),
               "LayerNormalization", 1, 2);
    }
    /* the same where means of all axes but two are poolings, as tf2onnx writes them */
    g = start(13, "2,5,48", &x);
    int pooled = op(g, "GlobalAveragePool", x, -1), diff = op(g, "Sub", x, pooled);
    int pooled_var = op(g, "Add", op(g, "GlobalAveragePool", op(g, "Mul", diff, diff), -1), number(g, 1e-3f));
    int root = scaled(g, op(g, "Reciprocal", op(g, "Sqrt", pooled_var, -1), -1), 0);
    int rest = op(g, "Sub", net_random(g, "beta", "48", 4), op(g, "Mul", pooled, root));
    expect(g, op(g, "Add", op(g, "Mul", x, root), rest), "LayerNormalization", 1, 2);
    g = start(13, "2,4,6,8", &x); /* two axes, and a scale along the last alone */
    int m = op(g, "ReduceMean", x, -1);
    NET_INTS(g, "axes", 2, 3);
    int d = op(g, "Sub", x, m), v = op(g, "ReduceMean", op(g, "Mul", d, d), -1);
    NET_INTS(g, "axes", -1, -2);
    v = op(g, "Sqrt", op(g, "Add", v, number(g, 1e-5f)), -1);
    expect(g, op(g, "Mul", op(g, "Div", d, v), net_random(g, "gamma", "8", 3)), "LayerNormalization", 1, 2);
}

TEST(no_layer_norm)
{
    oct_graph *g;
    int x, d, v;
    g = start(13, "2,5,48", &x); /* a middle axis */
    d = centered(g, x, 1);
    expect(g, normalised(g, d, d, 1, 0, 1e-5f), "LayerNormalization", 0, 8);
    g = start(13, "2,5,48", &x); /* epsilon is computed */
    d = centered(g, x, -1);
    v = op(g, "Add", mean(g, op(g, "Mul", d, d), -1), op(g, "Abs", mean(g, x, 2), -1));
    expect(g, op(g, "Div", d, op(g, "Sqrt", v, -1)), "LayerNormalization", 0, 10);
    g = start(13, "2,5,48", &x); /* the variance is shown */
    d = centered(g, x, -1);
    v = mean(g, op(g, "Mul", d, d), -1);
    net_output(g, v);
    expect(g, op(g, "Div", d, op(g, "Sqrt", op(g, "Add", v, number(g, 1e-5f)), -1)), "LayerNormalization", 0, 8);
    g = start(13, "2,5,48", &x); /* the difference is shown: what is left is RMS */
    d = centered(g, x, -1);
    net_output(g, d);
    expect(g, normalised(g, d, d, -1, 0, 1e-5f), "RMSNormalization", 1, 4);
    g = start(13, "2,5,48", &x); /* mean over one axis, variance over another */
    d = centered(g, x, 1);
    expect(g, normalised(g, d, d, -1, 0, 1e-5f), "LayerNormalization", 0, 4);
    g = start(13, "2,5,48", &x); /* a scale a row: it stays behind */
    d = centered(g, x, -1);
    v = normalised(g, d, d, -1, 0, 1e-5f);
    expect(g, op(g, "Mul", v, net_random(g, "gamma", "5,1", 3)), "Mul", 2, 3);
    g = start(13, "2,5,1", &x); /* a scale that widens the rows */
    d = centered(g, x, -1);
    v = normalised(g, d, d, -1, 0, 1e-2f);
    expect(g, op(g, "Mul", v, net_random(g, "gamma", "48", 3)), "Mul", 2, 3);
}

static int norm(oct_graph *g, const char *type, int x)
{
    int gamma = net_random(g, "gamma", "48", 3);
    return strcmp(type, "LayerNormalization") != 0
               ? NET_NODE(g, type, "norm", "normed", x, gamma)
               : NET_NODE(g, type, "norm", "normed", x, gamma, net_random(g, "beta", "48", 4));
}

TEST(skips)
{
    static const char *const types[] = { "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization" };
    static const char *const fused[] = { "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
                                         "SkipSimplifiedLayerNormalization" };
    oct_graph *g;
    int x, sum;
    for (int i = 0; i < 3; i++) {
        g = start(23, "2,5,48", &x);
        expect(g, norm(g, types[i], op(g, "Add", x, net_input(g, "y", OCT_F32, "2,5,48"))), fused[i], 1, 2);
        g = start(23, "2,5,48", &x); /* others read the sum */
        sum = op(g, "Add", x, net_input(g, "y", OCT_F32, "2,5,48"));
        net_output(g, sum);
        net_output(g, op(g, "Neg", sum, -1));
        expect(g, norm(g, types[i], sum), fused[i], 1, 3);
        g = start(23, "2,5,48", &x); /* a constant row is the bias of what is before */
        expect(g, norm(g, types[i], op(g, "Add", x, net_random(g, "bias", "48", 9))), fused[i], 0, 3);
        g = start(23, "2,5,48", &x); /* the sum is wider than x */
        expect(g, norm(g, types[i], op(g, "Add", op(g, "Neg", x, -1), net_input(g, "y", OCT_F32, "3,1,1,48"))),
               fused[i], 0, 4);
    }
    g = start(17, "2,5,48", &x); /* another axis */
    sum = op(g, "Add", x, net_input(g, "y", OCT_F32, "2,5,48"));
    sum = NET_NODE(g, "LayerNormalization", "norm", "normed", sum, net_random(g, "gamma", "5,48", 3));
    net_int(g, "axis", 1);
    expect(g, sum, "SkipLayerNormalization", 0, 3);
}

/* ------------------------------------------------------------------ attention */

enum { B = 2, H = 3, S = 5, T = 7, D = 4 };

static int transpose(oct_graph *g, int x, int a, int b, int c, int d)
{
    int v = op(g, "Transpose", x, -1);
    if (d < 0)
        NET_INTS(g, "perm", a, b, c);
    else
        NET_INTS(g, "perm", a, b, c, d);
    return v;
}

static int input(oct_graph *g, const char *name, const char *dims)
{
    return net_input(g, name, OCT_F32, dims);
}

static int split(oct_graph *g, int x, int64_t length)
{
    return op(g, "Reshape", x, NET_S64(g, "shape", "4", B, length, H, D));
}

static int softmax(oct_graph *g, int x)
{
    int v = op(g, "Softmax", x, -1);
    net_int(g, "axis", -1);
    return v;
}

/* As BERT has it: keys transposed at once, the quotient, the mask, the heads joined. */
TEST(attention_flat)
{
    static const char *const masks[] = { NULL, "2,1,1,7", "1,3,5,7", "5,7", "7" };
    for (size_t i = 0; i < OCT_COUNT(masks); i++)
        for (int joins = 0; joins < 2; joins++) {
            oct_graph *g = net_graph(13);
            made = 0;
            int q = transpose(g, split(g, input(g, "q", "2,5,12"), S), 0, 2, 1, 3),
                k = split(g, input(g, "k", "2,7,12"), T);
            int v = transpose(g, split(g, input(g, "v", "2,7,12"), T), 0, 2, 1, 3);
            int s = op(g, "Div", op(g, "MatMul", q, transpose(g, k, 0, 2, 3, 1)), number(g, 2));
            if (masks[i])
                s = i % 2 ? op(g, "Add", s, input(g, "mask", masks[i])) : op(g, "Add", input(g, "mask", masks[i]), s);
            int y = transpose(g, op(g, "MatMul", softmax(g, s), v), 0, 2, 1, 3);
            if (joins)
                y = op(g, "Reshape", y, NET_S64(g, "joined", "3", B, S, H * D));
            expect(g, y, "Attention", 1, joins ? 1 : 2);
        }
}

/* As PyTorch's scaled_dot_product_attention: both factors scaled, heads first. */
TEST(attention_heads)
{
    for (int form = 0; form < 3; form++) {
        oct_graph *g = net_graph(13);
        made = 0;
        int q = input(g, "q", "2,3,5,4"), k = input(g, "k", "2,3,7,4"), v = input(g, "v", "2,3,7,6"),
            f = number(g, 0.70710678f);
        int kt =
            form == 2 ? transpose(g, op(g, "Mul", k, f), 0, 1, 3, 2) : op(g, "Mul", transpose(g, k, 0, 1, 3, 2), f);
        int s = op(g, "MatMul", op(g, "Mul", q, f), kt);
        if (form)
            s = op(g, "Add", s, input(g, "mask", "1,1,5,7"));
        expect(g, op(g, "MatMul", softmax(g, s), v), "Attention", 1, 1);
    }
    /* keys that an output shows too */
    oct_graph *g = net_graph(13);
    made = 0;
    int k = transpose(g, split(g, input(g, "k", "2,7,12"), T), 0, 2, 1, 3);
    net_output(g, k);
    int s = op(g, "MatMul", input(g, "q", "2,3,5,4"), transpose(g, k, 0, 1, 3, 2));
    expect(g, op(g, "MatMul", softmax(g, s), input(g, "v", "2,3,7,4")), "Attention", 1, 3);
    /* queries that lie heads first, a result that does not */
    g = net_graph(13);
    made = 0;
    s = op(g, "MatMul", input(g, "q", "2,3,5,4"), transpose(g, input(g, "k", "2,3,7,4"), 0, 1, 3, 2));
    int y = transpose(g, op(g, "MatMul", softmax(g, s), input(g, "v", "2,3,7,4")), 0, 2, 1, 3);
    expect(g, op(g, "Reshape", y, NET_S64(g, "joined", "3", B, S, H * D)), "Attention", 1, 3);
}

/* Products of three dimensions. */
TEST(attention_batched)
{
    for (int masked = 0; masked < 2; masked++) {
        oct_graph *g = net_graph(13);
        made = 0;
        int s = op(g, "MatMul", input(g, "q", "6,5,4"), transpose(g, input(g, "k", "6,7,4"), 0, 2, 1, -1));
        s = op(g, "Mul", s, number(g, 0.5f));
        if (masked)
            s = op(g, "Add", s, input(g, "mask", "6,1,7"));
        expect(g, op(g, "MatMul", softmax(g, s), input(g, "v", "6,7,4")), "Attention", 1, masked ? 6 : 5);
    }
}

TEST(no_attention)
{
    for (int form = 0; form < 5; form++) {
        oct_graph *g = net_graph(13);
        made = 0;
        int k = input(g, "k", form == 3 ? "1,3,7,4" : "2,3,7,4"), q = input(g, "q", "2,3,5,4"),
            v = input(g, "v", "2,3,7,4");
        int s = op(g, "MatMul", q, transpose(g, k, 0, 1, 3, 2));
        if (form == 0) /* the mask is scaled as well */
            s = op(g, "Mul", op(g, "Add", s, input(g, "mask", "1,1,5,7")), number(g, 0.5f));
        if (form == 1) /* one number for all keys: Attention would take it for the first key */
            s = op(g, "Add", s, input(g, "mask", "2,1,5,1"));
        int p = op(g, "Softmax", s, -1);
        net_int(g, "axis", form == 2 ? 2 : -1);
        if (form == 4) /* the weights are shown */
            net_output(g, p);
        expect(g, op(g, "MatMul", p, v), "Attention", 0, form == 0 ? 6 : form == 1 ? 5 : 4);
    }
}

/* ------------------------------------------------------------------ rotary embedding */

static int half_of(oct_graph *g, int x, int64_t from, int64_t to)
{
    char out[24];
    snprintf(out, sizeof out, "v%d", made++);
    return NET_NODE(g, "Slice", out, out, x, NET_S64(g, "from", "1", from), NET_S64(g, "to", "1", to),
                    NET_S64(g, "axes", "1", 3), NET_S64(g, "steps", "1", 1));
}

static int joined(oct_graph *g, int a, int b)
{
    int v = op(g, "Concat", a, b);
    net_int(g, "axis", -1);
    return v;
}

static int rotated(oct_graph *g, int x, int form)
{
    if (form)
        return joined(g, op(g, "Neg", half_of(g, x, 4, INT64_MAX), -1), half_of(g, x, 0, 4));
    int lo = op(g, "Split", x, -1), hi, node = net_last;
    net_int(g, "axis", -1);
    GOOD(oct_graph_add_value(g, "second", OCT_UNDEFINED, &hi, err));
    GOOD(oct_graph_set_output(g, node, 1, hi, err));
    return joined(g, op(g, "Neg", hi, -1), lo);
}

static int unsqueezed(oct_graph *g, int x)
{
    return op(g, "Unsqueeze", x, NET_S64(g, "axes", "1", 1));
}

TEST(rotary)
{
    for (int form = 0; form < 2; form++)
        for (int batch = 1; batch <= 2; batch++) { /* tables for all samples, and for each */
            oct_graph *g = net_graph(13);
            made = 0;
            int x = input(g, "x", "2,3,5,8"), angles = input(g, "angles", batch == 2 ? "2,5,4" : "1,5,4"),
                both = joined(g, angles, angles);
            int c = unsqueezed(g, op(g, "Cos", both, -1)), s = unsqueezed(g, op(g, "Sin", both, -1));
            int a = form ? op(g, "Mul", x, c) : op(g, "Mul", c, x), b = op(g, "Mul", rotated(g, x, form), s);
            expect(g, form ? op(g, "Add", a, b) : op(g, "Add", b, a), "RotaryEmbedding", 1, 10);
        }
    float table[40], other[40];
    net_fill(table, 40, 5);
    for (int i = 0; i < 40; i++)
        other[i] = table[i - (i & 4)];
    for (int equal = 0; equal < 2; equal++) { /* constant tables, of equal halves and not */
        oct_graph *g = net_graph(13);
        made = 0;
        int x = input(g, "x", "2,3,5,8"), c = net_const(g, "cos", OCT_F32, "5,8", other);
        int s = net_const(g, "sin", OCT_F32, "1,1,5,8", equal ? other : table);
        int y = op(g, "Add", op(g, "Mul", x, c), op(g, "Mul", rotated(g, x, 1), s));
        expect(g, y, "RotaryEmbedding", (size_t)equal, equal ? 5 : 7);
    }
    oct_graph *g = net_graph(13); /* the halves the other way round */
    made = 0;
    int x = input(g, "x", "2,3,5,8"), c = net_const(g, "cos", OCT_F32, "5,8", other);
    int wrong = joined(g, half_of(g, x, 4, 8), op(g, "Neg", half_of(g, x, 0, 4), -1));
    expect(g, op(g, "Add", op(g, "Mul", x, c), op(g, "Mul", wrong, c)), "RotaryEmbedding", 0, 7);
}

/* ------------------------------------------------------------------ biases */

TEST(biases)
{
    static const struct {
        const char *bias;
        size_t fused;
    } cases[] = { { "16", 1 }, { "1,1,16", 1 }, { "", 1 }, { "3,16", 0 }, { "2,1,1,16", 0 } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        for (int shown = 0; shown < 2; shown++) {
            oct_graph *g = net_graph(13);
            made = 0;
            int y = op(g, "MatMul", input(g, "x", "2,3,8"), net_random(g, "w", "8,16", 4)),
                b = net_random(g, "b", cases[i].bias, 5);
            if (shown)
                net_output(g, y);
            const size_t fused = shown ? 0 : cases[i].fused;
            expect(g, shown ? op(g, "Add", b, y) : op(g, "Add", y, b), "Gemm", fused, fused ? 3 : 2);
        }
    oct_graph *g = net_graph(13); /* one that is computed */
    made = 0;
    int y = op(g, "MatMul", input(g, "x", "2,3,8"), net_random(g, "w", "8,16", 4));
    expect(g, op(g, "Add", y, input(g, "b", "16")), "Gemm", 0, 2);
}

/* ------------------------------------------------------------------ plans */

static oct_status note(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    *(bool *)arg = true;
    return OCT_OK;
}

/* A tapped value is not fused away. */
TEST(taps)
{
    int x;
    oct_graph *g = start(13, "2,3,40", &x);
    net_output(g, gelu_erf(g, x, 0));
    const char *names[1] = { "v2" }; /* of Erf */
    bool seen = false;
    assert_string_equal(net_producer(g, "v2")->op, "Erf");
    oct_plan *p = net_plan(g, &(oct_plan_opts){ .taps = names, .n_taps = 1 }, NULL);
    oct_plan_set_tap(p, note, &seen);
    float in[240];
    net_fill(in, 240, 1);
    GOOD(oct_plan_run(p, (const void *const[]){ in }, err));
    assert_true(seen);
    oct_plan_destroy(p);
    p = net_plan(g, NULL, NULL);
    assert_int_equal(oct_plan_n_steps(p), 2);
    assert_string_equal(oct_plan_step(p, 1).op, "Gelu");
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}
