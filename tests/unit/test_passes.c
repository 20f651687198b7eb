/* lib/passes: each on graphs whose results are known, by structure, by numbers before and after, and run twice. */
#include "unit.h"

#include "net.h"
#include "passes/fuse.h"
#include "passes/input_chain.h"
#include "passes/opset.h"

enum { CAP = 1 << 14 };

static void count_change(void *arg, const char *pass, const char *what, const char *node)
{
    ++*(size_t *)arg;
}

/* Runs the passes twice: the second time nothing may change. Numbers must agree before and after. */
static void fuse(oct_graph *g)
{
    static float before[CAP], after[CAP];
    const oct_plan_opts raw = { .no_passes = true };
    size_t n = net_run_with(g, &raw, NULL, before, CAP), changes = 0;
    oct_pass_log log = { count_change, &changes };
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    GOOD(oct_graph_check(g, err));
    g->changed = false;
    GOOD(oct_passes_run(g, NULL, 0, &log, err));
    assert_int_equal(changes, 0);
    assert_false(g->changed);
    assert_int_equal(net_run_with(g, &raw, NULL, after, CAP), n);
    double e = net_error(before, after, n);
    if (!(e < 2e-6))
        fail_msg("results are %g of their range off", e);
}

static const float *const_data(const oct_graph *g, const oct_node *n, int slot)
{
    assert_true(n->n_in > slot && n->in[slot] >= 0);
    const oct_tensor *t = g->value[n->in[slot]].constant;
    assert_non_null(t);
    return t->data;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * (1.0 + fabs(want))))
        fail_msg("%.9g, expected %.9g", got, want);
}

static int batchnorm(oct_graph *g, const char *name, const char *out, int x, const char *channels, uint32_t seed)
{
    char c[8];
    snprintf(c, sizeof c, "%s", channels);
    float var[16];
    net_fill(var, 16, seed + 3);
    for (int i = 0; i < 16; i++)
        var[i] = 0.25f + fabsf(var[i]);
    int gamma = net_random(g, "gamma", c, seed), beta = net_random(g, "beta", c, seed + 1),
        mean = net_random(g, "mean", c, seed + 2);
    return NET_NODE(g, "BatchNormalization", name, out, x, gamma, beta, mean, net_const(g, "var", OCT_F32, c, var));
}

/* ------------------------------------------------------------------ BatchNormalization */

TEST(conv_bn_numbers)
{
    /* 1x1 weights 2, bias 3; BN gamma 4, beta 5, mean 6, var 7 - 1e-5: scale 4 / sqrt(7). */
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,1,2,2");
    int c = NET_NODE(g, "Conv", "conv", "c", x, NET_F32(g, "w", "1,1,1,1", 2), NET_F32(g, "b", "1", 3));
    int y = NET_NODE(g, "BatchNormalization", "bn", "y", c, NET_F32(g, "s", "1", 4), NET_F32(g, "o", "1", 5),
                     NET_F32(g, "m", "1", 6), NET_F32(g, "v", "1", 6));
    net_float(g, "epsilon", 1.0f);
    net_output(g, y);
    fuse(g);
    assert_int_equal(net_count(g, NULL), 1);
    oct_node *n = net_producer(g, "y");
    assert_string_equal(n->name, "conv");
    assert_int_equal(g->output[0], y);
    double s = 4.0 / sqrt(7.0);
    near(const_data(g, n, 1)[0], 2 * s);
    near(const_data(g, n, 2)[0], (3 - 6) * s + 5);
    assert_true(oct_graph_find(g, "c") < 0);
    oct_graph_destroy(g);
}

TEST(conv_bn_kinds)
{
    static const struct {
        const char *op, *w, *channels;
        int64_t group;
    } kinds[] = {
        { "Conv", "6,4,3,3", "6", 1 },          { "Conv", "6,2,3,3", "6", 2 },
        { "Conv", "4,1,3,3", "4", 4 },          { "ConvTranspose", "4,6,3,3", "6", 1 },
        { "ConvTranspose", "4,3,3,3", "6", 2 }, { "ConvTranspose", "4,1,3,3", "4", 4 },
    };
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        for (int bias = 0; bias < 2; bias++) {
            oct_graph *g = net_graph(13);
            int x = net_input(g, "x", OCT_F32, "2,4,6,5");
            int b = bias ? net_random(g, "b", kinds[i].channels, 9) : -1;
            int c = NET_NODE(g, kinds[i].op, "conv", "c", x, net_random(g, "w", kinds[i].w, 5), b);
            net_int(g, "group", kinds[i].group);
            NET_INTS(g, "pads", 1, 0, 1, 1);
            int y = NET_NODE(g, "Relu", "relu", "y", batchnorm(g, "bn", "n", c, kinds[i].channels, 40));
            net_output(g, y);
            fuse(g);
            assert_int_equal(net_count(g, NULL), 2);
            assert_string_equal(net_producer(g, "n")->op, kinds[i].op);
            oct_graph_destroy(g);
        }
}

TEST(bn_before_conv)
{
    for (int padded = 0; padded < 3; padded++)
        for (int group = 1; group <= 2; group++) {
            oct_graph *g = net_graph(13);
            int x = net_input(g, "x", OCT_F32, "2,4,6,5");
            int n = batchnorm(g, "bn", "n", x, "4", 3);
            int y = NET_NODE(g, "Conv", "conv", "y", n, net_random(g, "w", group == 1 ? "6,4,3,3" : "6,2,3,3", 5));
            net_int(g, "group", group);
            if (padded == 1)
                NET_INTS(g, "pads", 0, 0, 1, 0);
            if (padded == 2)
                net_str(g, "auto_pad", "SAME_UPPER");
            net_output(g, y);
            fuse(g);
            assert_int_equal(net_count(g, "BatchNormalization"), padded ? 1 : 0);
            oct_graph_destroy(g);
        }
}

/* What cannot be folded, as a convolution: y = x * s + (b - m * s) of each channel, s = g / sqrt(v + eps). */
TEST(bn_as_convolution)
{
    enum { CHANNELS = 3, PLANE = 20 };
    static const char *const dims[] = { "1,3,4,5", "1,3,20", "4,3" };
    for (int rank = 0; rank < 3; rank++) {
        static float got[CHANNELS * PLANE], x[CHANNELS * PLANE];
        oct_graph *g = net_graph(13);
        const int in = net_input(g, "x", OCT_F32, dims[rank]);
        net_output(g, NET_NODE(g, "BatchNormalization", "bn", "y", in, NET_F32(g, "gamma", "3", 1, 2, -3),
                               NET_F32(g, "beta", "3", 4, 5, 6), NET_F32(g, "mean", "3", 1, -1, 0),
                               NET_F32(g, "var", "3", 3, 8, 15)));
        net_float(g, "epsilon", 1.0f);
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_norms_to_convs(g, NULL, err));
        GOOD(oct_graph_check(g, err));
        assert_int_equal(net_count(g, "Conv"), rank < 2);
        assert_int_equal(net_count(g, "BatchNormalization"), rank == 2); /* a convolution has positions */
        if (rank < 2) {
            static const double scale[CHANNELS] = { 0.5, 2 / 3.0, -0.75 }, shift[CHANNELS] = { 3.5, 5 + 2 / 3.0, 6 };
            assert_string_equal(net_producer(g, "y")->name, "bn");
            net_fill(x, CHANNELS * PLANE, 77); /* what net_run gives its first input */
            assert_int_equal(net_run(g, got, CHANNELS * PLANE), CHANNELS * PLANE);
            for (int k = 0; k < CHANNELS * PLANE; k++)
                near(got[k], x[k] * scale[k / PLANE] + shift[k / PLANE]);
        }
        oct_graph_destroy(g);
    }
}

TEST(bn_stays)
{
    for (int why = 0; why < 4; why++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,4,6,5");
        int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "4,4,1,1", 5));
        if (why == 0) { /* used twice */
            int n = batchnorm(g, "bn", "n", c, "4", 3);
            net_output(g, NET_NODE(g, "Add", "", "y", c, n));
        } else if (why == 1) { /* shown */
            net_output(g, c);
            net_output(g, batchnorm(g, "bn", "n", c, "4", 3));
        } else if (why == 2) { /* statistics that are no constants */
            int s = net_input(g, "s", OCT_F32, "4"), k = NET_F32(g, "k", "4", 1, 2, 3, 4);
            net_output(g, NET_NODE(g, "BatchNormalization", "bn", "n", c, s, k, k, k));
        } else { /* captured by a nested graph */
            int n = batchnorm(g, "bn", "n", c, "4", 3);
            net_output(g, n);
            net_output(g, NET_NODE(g, "Custom", "nest", "z", x));
            net_capture(g, net_last, c);
        }
        if (why < 3) {
            fuse(g);
        } else {
            GOOD(oct_infer_shapes(g, err));
            GOOD(oct_passes_run(g, NULL, 0, NULL, err));
            assert_true(oct_graph_find(g, "c") >= 0);
        }
        assert_int_equal(net_count(g, "BatchNormalization"), 1);
        oct_graph_destroy(g);
    }
}

TEST(shared_weights)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4,6,5"), w = net_random(g, "w", "4,4,1,1", 5), b = net_random(g, "b", "4", 6);
    int c1 = NET_NODE(g, "Conv", "one", "c1", x, w, b), c2 = NET_NODE(g, "Conv", "two", "c2", x, w, b);
    net_output(g, batchnorm(g, "bn1", "y1", c1, "4", 3));
    net_output(g, batchnorm(g, "bn2", "y2", c2, "4", 30));
    net_output(g, NET_NODE(g, "Conv", "three", "y3", x, w, b)); /* keeps the original */
    fuse(g);
    assert_int_equal(net_count(g, NULL), 3);
    assert_int_equal(net_producer(g, "y3")->in[1], w);
    assert_int_not_equal(net_producer(g, "y1")->in[1], net_producer(g, "y2")->in[1]);
    oct_graph_destroy(g);
}

/* A kernel of 16 x 16 x 3 x 3 in two convolutions: what differs behind them stays; the same norm goes into both, and
 * their kernel stays one. */
TEST(shared_kernel)
{
    for (int same = 0; same < 2; same++) {
        oct_graph *g = net_graph(17);
        int w = net_random(g, "w", "16,16,3,3", 1), x = net_input(g, "x", OCT_F32, "1,16,6,6");
        int na = batchnorm(g, "norm_a", "na", NET_NODE(g, "Conv", "conv_a", "a", x, w), "16", 5),
            b = NET_NODE(g, "Conv", "conv_b", "b", na, w);
        const int *in = net_producer(g, "na")->in;
        net_output(g, same ? NET_NODE(g, "BatchNormalization", "norm_b", "nb", b, in[1], in[2], in[3], in[4])
                           : batchnorm(g, "norm_b", "nb", b, "16", 9));
        fuse(g);
        assert_int_equal(net_count(g, "BatchNormalization"), same ? 0 : 2);
        const oct_node *first = net_producer(g, same ? "na" : "a"), *second = net_producer(g, same ? "nb" : "b");
        assert_int_equal(first->in[1], second->in[1]);
        oct_graph_destroy(g);
    }
}

TEST(gemm_bn)
{
    for (int trans = 0; trans < 2; trans++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "3,5");
        int c = NET_NODE(g, "Gemm", "fc", "c", x, net_random(g, "w", trans ? "4,5" : "5,4", 5),
                         net_random(g, "b", "1,4", 6));
        net_int(g, "transB", trans);
        net_output(g, batchnorm(g, "bn", "y", c, "4", 3));
        fuse(g);
        assert_int_equal(net_count(g, NULL), 1);
        oct_graph_destroy(g);
    }
}

/* ------------------------------------------------------------------ Mul, Add and their like */

TEST(affine_numbers)
{
    /* ((2x + 1) * 3 - 4) / 2 = 3x - 0.5, of two channels the second with weight 5: 7.5x - 0.5 */
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,1,2,2");
    int c = NET_NODE(g, "Conv", "conv", "c", x, NET_F32(g, "w", "2,1,1,1", 2, 5));
    int a = NET_NODE(g, "Add", "add", "a", NET_F32(g, "one", "", 1), c);
    int m = NET_NODE(g, "Mul", "mul", "m", a, NET_F32(g, "three", "1,2,1,1", 3, 3));
    int s = NET_NODE(g, "Sub", "sub", "s", m, NET_F32(g, "four", "2,1,1", 4, 4));
    net_output(g, NET_NODE(g, "Div", "div", "y", s, NET_F32(g, "two", "1", 2)));
    fuse(g);
    assert_int_equal(net_count(g, NULL), 1);
    oct_node *n = net_producer(g, "y");
    assert_string_equal(n->name, "conv");
    near(const_data(g, n, 1)[0], 3.0);
    near(const_data(g, n, 1)[1], 7.5);
    near(const_data(g, n, 2)[0], -0.5);
    near(const_data(g, n, 2)[1], -0.5);
    oct_graph_destroy(g);
}

/* One node behind a Conv of 4 channels to [2,4,6,5], that must stay. */
TEST(affine_stays)
{
    for (int why = 0; why < 8; why++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,4,6,5"), y;
        int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "4,4,1,1", 5));
        int k = NET_F32(g, "k", "4,1,1", 2, 3, 4, 5);
        switch (why) {
        case 0: y = NET_NODE(g, "Sub", "t", "y", k, c); break;                                  /* k - x */
        case 1: y = NET_NODE(g, "Div", "t", "y", k, c); break;                                  /* k / x */
        case 2: y = NET_NODE(g, "Mul", "t", "y", c, c); break;                                  /* squares */
        case 3: y = NET_NODE(g, "Add", "t", "y", c, net_random(g, "r", "1,4,6,5", 8)); break;   /* per element */
        case 4: y = NET_NODE(g, "Mul", "t", "y", c, net_random(g, "r", "5", 8)); break;         /* per column */
        case 5: y = NET_NODE(g, "Add", "t", "y", c, net_random(g, "r", "2,1,1,1", 8)); break;   /* per image */
        case 6: y = NET_NODE(g, "Mul", "t", "y", c, net_random(g, "r", "1,1,4,1,1", 8)); break; /* raises the rank */
        default: y = NET_NODE(g, "Add", "t", "y", c, net_input(g, "z", OCT_F32, "1,4,1,1")); break; /* no constant */
        }
        net_output(g, y);
        fuse(g);
        assert_int_equal(net_count(g, NULL), 2);
        oct_graph_destroy(g);
    }
}

TEST(affine_div_zero)
{
    for (int i = 0; i < 2; i++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "1,1,2,2");
        int c = NET_NODE(g, "Conv", "conv", "c", x, NET_F32(g, "w", "1,1,1,1", 2));
        net_output(g, NET_NODE(g, "Div", "t", "y", c, NET_F32(g, "k", "", i ? 1e-45f : 0.0f)));
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_passes_run(g, NULL, 0, NULL, err));
        assert_int_equal(net_count(g, NULL), 2); /* its reciprocal is infinite */
        oct_graph_destroy(g);
    }
}

/* A Conv over one dimension, as exporters write it: Squeeze, bias and Relu behind it. */
TEST(moved_conv)
{
    for (int opset = 11; opset <= 13; opset += 2) {
        oct_graph *g = net_graph(opset);
        int x = net_input(g, "x", OCT_F32, "2,3,1,6"), s;
        int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "4,3,1,1", 5));
        if (opset < 13) {
            s = NET_NODE(g, "Squeeze", "squeeze", "s", c);
            NET_INTS(g, "axes", -2);
        } else
            s = NET_NODE(g, "Squeeze", "squeeze", "s", c, NET_S64(g, "two", "1", 2));
        int a = NET_NODE(g, "Add", "add", "a", s, NET_F32(g, "k", "1,4,1", 1, -2, 3, 4));
        net_output(g, NET_NODE(g, "Relu", "relu", "y", a));
        fuse(g);
        assert_int_equal(net_count(g, NULL), 3);
        const oct_node *n = net_producer(g, "y");
        assert_string_equal(n->op, "Squeeze");
        n = &g->node[g->value[n->in[0]].producer];
        assert_string_equal(n->op, "Relu");
        n = &g->node[g->value[n->in[0]].producer];
        assert_string_equal(n->name, "conv");
        near(const_data(g, n, 2)[1], -2);
        near(const_data(g, n, 2)[3], 4);
        oct_graph_destroy(g);
    }
}

/* A product of which the columns become heads, each with a bias of its own. */
TEST(moved_heads)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "6,5");
    int c = NET_NODE(g, "Gemm", "fc", "c", x, net_random(g, "w", "5,4", 5));
    int r = NET_NODE(g, "Reshape", "reshape", "r", c, NET_S64(g, "to", "4", 3, 2, 2, 2));
    int a = NET_NODE(g, "Add", "add", "a", r, NET_F32(g, "k", "1,2,2", 1, -2, 3, 4));
    net_output(g, NET_NODE(g, "Mul", "mul", "y", a, NET_F32(g, "half", "", 0.5f)));
    fuse(g);
    assert_int_equal(net_count(g, NULL), 2);
    const oct_node *n = net_producer(g, "y");
    assert_string_equal(n->op, "Reshape");
    n = &g->node[g->value[n->in[0]].producer];
    near(const_data(g, n, 2)[1], -1);
    near(const_data(g, n, 2)[2], 1.5);
    oct_graph_destroy(g);
}

/* What must stay behind a reshaped layer of 2 images, 4 channels, 4 columns. */
TEST(moved_stays)
{
    for (int why = 0; why < 5; why++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, why == 0 ? "1,3,4,1" : "2,3,1,4"), y;
        int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "4,3,1,1", 5));
        switch (why) {
        case 0: /* the axis of the images: the second dimension becomes that of the rows */
            y = NET_NODE(g, "Squeeze", "move", "s", c, NET_S64(g, "axis", "1", 0));
            y = NET_NODE(g, "Add", "add", "y", y, NET_F32(g, "k", "4,1", 1, 2, 3, 4));
            break;
        case 1: /* a constant for each column */
            y = NET_NODE(g, "Squeeze", "move", "s", c, NET_S64(g, "axis", "1", 2));
            y = NET_NODE(g, "Add", "add", "y", y, NET_F32(g, "k", "4", 1, 2, 3, 4));
            break;
        case 2: /* rows of 16 */
            y = NET_NODE(g, "Reshape", "move", "s", c, NET_S64(g, "to", "2", 2, 16));
            y = NET_NODE(g, "Add", "add", "y", y, NET_F32(g, "k", "2,1", 1, 2));
            break;
        case 3: /* the squeezed value is an output, too */
            y = NET_NODE(g, "Squeeze", "move", "s", c, NET_S64(g, "axis", "1", 2));
            net_output(g, y);
            y = NET_NODE(g, "Relu", "relu", "y", y);
            break;
        default: /* axes that only the samples know */
            y = NET_NODE(g, "Squeeze", "move", "s", c, net_input(g, "axis", OCT_S64, "1"));
            y = NET_NODE(g, "Relu", "relu", "y", y);
        }
        net_output(g, y);
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_passes_run(g, NULL, 0, NULL, err));
        assert_int_equal(net_count(g, NULL), 3);
        assert_string_not_equal(net_producer(g, "y")->op, "Squeeze");
        assert_string_equal(g->node[g->value[net_producer(g, "y")->in[0]].producer].name, "move");
        oct_graph_destroy(g);
    }
}

TEST(gemm_alpha_beta)
{
    static const struct {
        float alpha, beta;
        bool bias;
        size_t nodes;
    } cases[] = {
        { 1, 1, true, 1 }, { 2, 1, true, 2 }, { 1, 0.5f, true, 2 }, { 1, 0.5f, false, 1 }, { 0.5f, 1, false, 2 }
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "3,5"), b = cases[i].bias ? net_random(g, "b", "4", 6) : -1;
        int c = NET_NODE(g, "Gemm", "fc", "c", x, net_random(g, "w", "5,4", 5), b);
        net_float(g, "alpha", cases[i].alpha);
        net_float(g, "beta", cases[i].beta);
        net_output(g, NET_NODE(g, "Add", "add", "y", c, net_random(g, "k", "4", 8)));
        fuse(g);
        assert_int_equal(net_count(g, NULL), cases[i].nodes);
        oct_graph_destroy(g);
    }
}

TEST(chains)
{
    /* Each fusion opens the way for the next: Conv + Mul + BN + Add, MatMul + Mul + Add + BN. */
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4,6,5");
    int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "4,4,1,1", 5));
    int n = batchnorm(g, "bn", "n", NET_NODE(g, "Mul", "m", "m1", c, NET_F32(g, "k", "", 3)), "4", 20);
    net_output(g, NET_NODE(g, "Add", "a", "y", n, net_random(g, "r", "4,1,1", 8)));
    fuse(g);
    assert_int_equal(net_count(g, NULL), 1);
    oct_graph_destroy(g);
    g = net_graph(13);
    x = net_input(g, "x", OCT_F32, "3,5");
    int p = NET_NODE(g, "MatMul", "fc", "p", x, net_random(g, "w", "5,4", 5));
    int m = NET_NODE(g, "Mul", "m", "m1", p, NET_F32(g, "k", "4", 1, 2, 3, 4));
    int a = NET_NODE(g, "Add", "a", "a1", net_random(g, "b", "1,4", 2), m);
    net_output(g, batchnorm(g, "bn", "y", a, "4", 20));
    fuse(g);
    assert_int_equal(net_count(g, NULL), 1);
    assert_string_equal(net_producer(g, "y")->op, "Gemm");
    assert_string_equal(net_producer(g, "y")->name, "fc");
    oct_graph_destroy(g);
}

TEST(matmul_rank)
{
    static const struct {
        const char *x, *bias;
        size_t nodes;
    } cases[] = { { "3,5", "4", 1 },   { "3,5", "1,4", 1 }, { "3,5", "", 1 }, { "3,5", "3,4", 2 },
                  { "3,5", "3,1", 2 }, { "2,3,5", "4", 2 }, { "5", "4", 2 },  { "3,5", "1,1,4", 2 } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, cases[i].x);
        int p = NET_NODE(g, "MatMul", "fc", "p", x, net_random(g, "w", "5,4", 5));
        net_output(g, NET_NODE(g, "Add", "add", "y", p, net_random(g, "b", cases[i].bias, 8)));
        fuse(g);
        assert_int_equal(net_count(g, NULL), cases[i].nodes);
        oct_graph_destroy(g);
    }
}

/* ------------------------------------------------------------------ Pad */

TEST(pads)
{
    static const struct {
        int64_t p[8];
        float value;
        const char *mode, *auto_pad;
        bool own, fuses;
    } cases[] = {
        { { 0, 0, 1, 2, 0, 0, 3, 0 }, 0, NULL, NULL, false, true },
        { { 0, 0, 1, 2, 0, 0, 3, 0 }, 0, NULL, NULL, true, true },
        { { 0, 0, 1, 2, 0, 0, 3, 0 }, 0, NULL, "VALID", false, true },
        { { 0, 0, 1, 2, 0, 0, 3, 0 }, 0, NULL, "SAME_UPPER", false, false },
        { { 0, 0, 1, 2, 0, 0, 3, 0 }, 0.5f, NULL, NULL, false, false },
        { { 0, 0, 1, 2, 0, 0, 3, 0 }, 0, "edge", NULL, false, false },
        { { 0, 0, -1, 0, 0, 0, 0, 0 }, 0, NULL, NULL, true, false }, /* crops what the own pads would bring back */
        { { 1, 0, 1, 2, 0, 0, 3, 0 }, 0, NULL, NULL, false, false }, /* pads the batch */
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        for (int64_t opset = 10; opset <= 18; opset += 4) {
            oct_graph *g = net_graph(opset);
            int x = net_input(g, "x", OCT_F32, "2,4,6,5"), y;
            if (opset == 10) {
                y = NET_NODE(g, "Pad", "pad", "p", x);
                GOOD(oct_node_set_ints(g, net_last, "pads", cases[i].p, 8, err));
                net_float(g, "value", cases[i].value);
            } else {
                int k = net_const(g, "k", OCT_S64, "8", cases[i].p),
                    v = net_const(g, "v", OCT_F32, "", &cases[i].value);
                y = NET_NODE(g, "Pad", "pad", "p", x, k, v);
            }
            if (cases[i].mode)
                net_str(g, "mode", cases[i].mode);
            y = NET_NODE(g, "Conv", "conv", "y", y, net_random(g, "w", "4,4,3,2", 5));
            NET_INTS(g, "strides", 2, 1);
            if (cases[i].own)
                NET_INTS(g, "pads", 1, 1, 0, 2);
            if (cases[i].auto_pad)
                net_str(g, "auto_pad", cases[i].auto_pad);
            net_output(g, y);
            fuse(g);
            assert_int_equal(net_count(g, "Pad"), cases[i].fuses ? 0 : 1);
            oct_graph_destroy(g);
        }
}

TEST(pad_used_twice)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4,6,5");
    int p = NET_NODE(g, "Pad", "pad", "p", x, NET_S64(g, "k", "8", 0, 0, 1, 1, 0, 0, 1, 1));
    net_output(g, NET_NODE(g, "Conv", "one", "y1", p, net_random(g, "w", "4,4,3,3", 5)));
    net_output(g, NET_NODE(g, "Relu", "two", "y2", p));
    fuse(g);
    assert_int_equal(net_count(g, "Pad"), 1);
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ Identity, folding */

TEST(identities)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4");
    int i1 = NET_NODE(g, "Identity", "i1", "a", x), r = NET_NODE(g, "Relu", "relu", "b", i1);
    int i2 = NET_NODE(g, "Identity", "i2", "c", r), d = NET_NODE(g, "Dropout", "drop", "d", i2);
    int s = NET_NODE(g, "Reshape", "shape", "e", d, NET_S64(g, "k", "2", 0, -1));
    int cast = NET_NODE(g, "Cast", "cast", "y", s);
    net_int(g, "to", OCT_F32);
    net_output(g, cast);
    net_output(g, NET_NODE(g, "Identity", "i3", "z", x)); /* an input shown as an output stays */
    fuse(g);
    assert_int_equal(net_count(g, NULL), 2);
    assert_string_equal(net_producer(g, "y")->name, "relu");
    assert_string_equal(net_producer(g, "z")->op, "Identity");
    assert_string_equal(g->value[g->output[0]].name, "y");
    oct_graph_destroy(g);
}

TEST(identity_of_output)
{
    /* Both names are outputs: neither may go. And an output that others read, too. */
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4"), a = NET_NODE(g, "Relu", "relu", "a", x);
    int b = NET_NODE(g, "Identity", "i1", "b", a);
    net_output(g, a);
    net_output(g, b);
    net_output(g, NET_NODE(g, "Neg", "neg", "c", b));
    net_output(g, a); /* the same value twice */
    fuse(g);
    assert_string_equal(g->value[g->output[1]].name, "b");
    assert_string_equal(net_producer(g, "b")->op, "Identity");
    oct_graph_destroy(g);
    g = net_graph(13);
    x = net_input(g, "x", OCT_F32, "2,4"), a = NET_NODE(g, "Relu", "relu", "a", x);
    b = NET_NODE(g, "Identity", "i1", "b", a);
    net_output(g, b);
    net_output(g, NET_NODE(g, "Neg", "neg", "c", a));
    fuse(g);
    assert_int_equal(net_count(g, "Identity"), 0);
    assert_string_equal(net_producer(g, "b")->name, "relu");
    assert_int_equal(net_producer(g, "c")->in[0], b);
    oct_graph_destroy(g);
}

TEST(captured_identity)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4"), a = NET_NODE(g, "Relu", "relu", "a", x);
    int b = NET_NODE(g, "Identity", "i1", "b", a);
    net_output(g, NET_NODE(g, "Custom", "nest", "z", b));
    net_capture(g, net_last, b);
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    assert_int_equal(oct_graph_find(g, "b"), -1);
    const oct_graph *nested = oct_node_graph(net_producer(g, "z"), "body");
    assert_string_equal(oct_value_name(nested, nested->output[0]), "a"); /* the nested graph follows */
    GOOD(oct_graph_check(g, err));
    oct_graph_destroy(g);
}

TEST(folding)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,12");
    int k = NET_NODE(g, "Mul", "mul", "k", NET_F32(g, "a", "3", 1, 2, 3), NET_F32(g, "b", "1", 10));
    int u = NET_NODE(g, "Unsqueeze", "u", "u1", k, NET_S64(g, "axes", "1", 0));
    int s = NET_NODE(g, "Shape", "s", "s1", x),
        first = NET_NODE(g, "Gather", "ga", "g1", s, NET_S64(g, "zero", "1", 0));
    int to = NET_NODE(g, "Concat", "cc", "to", first, NET_S64(g, "rest", "2", 4, 3));
    net_int(g, "axis", 0);
    int r = NET_NODE(g, "Reshape", "r", "r1", x, to);
    net_output(g, NET_NODE(g, "Add", "add", "y", r, u));
    int shown = NET_NODE(g, "Neg", "neg", "n", NET_F32(g, "e", "1", 5)); /* an output keeps its producer */
    net_output(g, shown);
    fuse(g);
    assert_int_equal(net_count(g, NULL), 3); /* Reshape, Add, Neg */
    const oct_node *add = net_producer(g, "y");
    const float *v = const_data(g, add, 1);
    assert_true(v[0] == 10 && v[1] == 20 && v[2] == 30);
    assert_string_equal(g->value[add->in[1]].name, "u1");
    const oct_tensor *shape = g->value[net_producer(g, "r1")->in[1]].constant;
    assert_non_null(shape);
    assert_int_equal(((const int64_t *)shape->data)[0], 2);
    assert_int_equal(((const int64_t *)shape->data)[1], 4);
    oct_graph_destroy(g);
}

/* A table of 20 MB that the file has is moved and converted as smaller ones are; what makes as much from less, or
 * computes, is left. */
TEST(large_tables_move)
{
    enum { ROWS = 5 << 10, COLUMNS = 1 << 10 };
    oct_graph *g = net_graph(17);
    int x = net_input(g, "x", OCT_F32, "1,1024");
    int16_t *half = oct_arena_calloc(g->arena, ROWS * COLUMNS, sizeof *half);
    assert_non_null(half);
    half[1] = 0x3c00; /* 1 */
    int t = net_const(g, "t", OCT_F16, "5120,1024", half);
    int wide = NET_NODE(g, "Cast", "cast", "wide", t);
    net_int(g, "to", OCT_F32);
    int turned = NET_NODE(g, "Transpose", "turn", "turned", wide);
    NET_INTS(g, "perm", 1, 0);
    net_output(g, NET_NODE(g, "MatMul", "fc", "y", x, turned));
    int spread = NET_NODE(g, "Expand", "spread", "e", NET_F32(g, "s", "1", 2), NET_S64(g, "n", "1", ROWS * COLUMNS));
    net_output(g, NET_NODE(g, "ReduceSum", "sum", "z", spread));
    net_output(g, NET_NODE(g, "ReduceSum", "sum2", "u", NET_NODE(g, "Neg", "neg", "v", wide)));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    assert_int_equal(net_count(g, "Cast") + net_count(g, "Transpose"), 0);
    assert_int_equal(net_count(g, "Expand"), 1);
    assert_int_equal(net_count(g, "Neg"), 1);
    const oct_tensor *w = g->value[net_producer(g, "y")->in[1]].constant;
    assert_non_null(w);
    assert_true(w->dims[0] == COLUMNS && w->dims[1] == ROWS);
    assert_true(((const float *)w->data)[ROWS] == 1 && ((const float *)w->data)[1] == 0);
    oct_graph_destroy(g);
}

/* A chain that would fold to 64 times 16 MB. */
TEST(folding_has_an_end)
{
    enum { MB = 1 << 20, LINKS = 64 };
    char name[2][16];
    size_t changes = 0;
    oct_pass_log log = { count_change, &changes };
    oct_graph *g = net_graph(13);
    int x = NET_NODE(g, "ConstantOfShape", "c", "v", NET_S64(g, "n", "1", 4 * MB));
    for (int i = 0; i < LINKS; i++) {
        snprintf(name[0], sizeof name[0], "not%d", i);
        snprintf(name[1], sizeof name[1], "v%d", i);
        x = NET_NODE(g, "Neg", name[0], name[1], x);
    }
    net_output(g, NET_NODE(g, "ReduceSum", "sum", "z", x));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    assert_true(oct_arena_bytes(g->arena) < (256 + 17) * (size_t)MB);
    const int left = net_count(g, "Neg");
    assert_in_range(left, LINKS - 16, LINKS - 1);
    GOOD(oct_passes_run(g, NULL, 0, &log, err));
    assert_int_equal(changes, 0);
    assert_int_equal(net_count(g, "Neg"), left);
    oct_graph_destroy(g);
}

/* Small files can ask for long computations: windows of a whole image, products of what ConstantOfShape makes. */
TEST(long_work_stays)
{
    oct_graph *g = net_graph(13);
    int x = NET_NODE(g, "ConstantOfShape", "c", "x", NET_S64(g, "n", "4", 1, 4, 256, 256));
    int w = NET_NODE(g, "ConstantOfShape", "d", "w", NET_S64(g, "m", "4", 16, 4, 256, 256));
    int big = NET_NODE(g, "Conv", "big", "y", x, w); /* 2^36 with these pads */
    NET_INTS(g, "pads", 128, 128, 128, 128);
    int small = NET_NODE(g, "Conv", "small", "z", x,
                         NET_NODE(g, "ConstantOfShape", "e", "u", NET_S64(g, "k", "4", 1, 4, 1, 1)));
    net_output(g, NET_NODE(g, "ReduceSum", "sum", "s", big));
    net_output(g, NET_NODE(g, "ReduceSum", "sum2", "t", small));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    assert_int_equal(net_count(g, "Conv"), 1);
    assert_string_equal(net_producer(g, "y")->name, "big");
    oct_graph_destroy(g);
}

TEST(weights_stay_small)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,3");
    int q = net_const(g, "q", OCT_S8, "3,2", (const int8_t[]){ 1, -2, 3, -4, 5, -6 });
    int d = NET_NODE(g, "DequantizeLinear", "dq", "w", q, NET_F32(g, "s", "", 0.5f));
    net_output(g, NET_NODE(g, "MatMul", "fc", "y", x, d));
    fuse(g);
    assert_int_equal(net_count(g, "DequantizeLinear"), 1);
    int big = NET_NODE(g, "ConstantOfShape", "c", "big", NET_S64(g, "n", "1", 32 << 20));
    net_output(g, NET_NODE(g, "ReduceSum", "sum", "z", big));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    assert_int_equal(net_count(g, "ConstantOfShape"), 1); /* 128 MB are not folded */
    oct_graph_destroy(g);
}

/* ------------------------------------------------------------------ the table, opsets */

TEST(disabling)
{
    size_t n;
    const oct_pass *const *all = oct_pass_all(&n);
    assert_true(n >= 6);
    for (size_t i = 0; i < n; i++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,4,6,5");
        int c = NET_NODE(g, "Conv", "conv", "c", x, net_random(g, "w", "4,4,1,1", 5));
        net_output(g, NET_NODE(g, "Relu", "relu", "y",
                               batchnorm(g, "bn", "n", NET_NODE(g, "Identity", "", "i", c), "4", 9)));
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_passes_run(g, &all[i]->name, 1, NULL, err));
        bool identity = strcmp(all[i]->name, "identity") == 0, bn = strcmp(all[i]->name, "batchnorm") == 0;
        assert_int_equal(net_count(g, "Identity"), identity);
        assert_int_equal(net_count(g, "BatchNormalization"), identity || bn);
        oct_graph_destroy(g);
    }
    oct_graph *g = net_graph(13);
    oct_err e = OCT_ERR_INIT;
    const char *wrong = "batchnrm";
    assert_int_equal(oct_passes_run(g, &wrong, 1, NULL, &e), OCT_EUSAGE);
    assert_non_null(strstr(e.hint, "batchnorm"));
    oct_graph_destroy(g);
}

TEST(raising)
{
    static float before[CAP], after[CAP];
    oct_graph *g = net_graph(7);
    int x = net_input(g, "x", OCT_F32, "2,4,6,6");
    int c = NET_NODE(g, "Clip", "clip", "c", x);
    net_float(g, "max", 0.5f);
    int sq = NET_NODE(g, "ReduceMean", "mean", "m", c);
    NET_INTS(g, "axes", 2, 3);
    int s = NET_NODE(g, "Squeeze", "sq", "s", sq);
    NET_INTS(g, "axes", 2, 3);
    int f = NET_NODE(g, "Softmax", "soft", "y", NET_NODE(g, "Unsqueeze", "un", "u", s));
    NET_INTS(g, "axes", 0);
    net_output(g, f);
    /* the Unsqueeze is not the node that NET_INTS changed last: set it */
    GOOD(oct_node_set_ints(g, g->value[oct_graph_find(g, "u")].producer, "axes", (int64_t[]){ 0 }, 1, err));
    oct_node_drop_attr(g, g->value[f].producer, "axes");
    const oct_plan_opts raw = { .no_passes = true };
    size_t n = net_run_with(g, &raw, NULL, before, CAP);
    for (int64_t to = 8; to <= 18; to++) {
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_raise_opset(g, to, err));
        GOOD(oct_graph_check(g, err));
        assert_int_equal(oct_graph_opset(g, ""), to);
        assert_int_equal(net_run_with(g, &raw, NULL, after, CAP), n);
        assert_true(net_error(before, after, n) < 1e-6);
    }
    GOOD(oct_raise_opset(g, 13, err)); /* never lowers */
    assert_int_equal(oct_graph_opset(g, ""), 18);
    assert_null(oct_node_attr(net_producer(g, "c"), "max"));
    oct_graph_destroy(g);
}

TEST(raising_refuses)
{
    oct_err e = OCT_ERR_INIT;
    oct_graph *g = net_graph(11);
    int x = net_input(g, "x", OCT_F32, "2");
    net_output(g, NET_NODE(g, "NoSuchOperator", "odd", "y", x));
    assert_int_equal(oct_raise_opset(g, 13, &e), OCT_EUNSUPPORTED);
    assert_non_null(strstr(e.text, "'odd'"));
    oct_graph_destroy(g);
    g = net_graph(11);
    x = net_input(g, "x", OCT_F32, "2");
    net_output(g, NET_NODE(g, "my.domain.Thing", "mine", "y", x)); /* other domains are left alone */
    GOOD(oct_raise_opset(g, 13, err));
    oct_graph_destroy(g);
}

/* ((x + c along axis 1) * s along axis 0), then PRelu with a slope a channel: as opset 6 has them. */
static oct_graph *early_net(void)
{
    oct_graph *g = net_graph(6);
    int x = net_input(g, "x", OCT_F32, "2,3,4");
    int a = NET_NODE(g, "Add", "add", "a", x, NET_F32(g, "c", "3", 1.0f, -2.0f, 3.0f));
    net_int(g, "broadcast", 1);
    net_int(g, "axis", 1);
    int m = NET_NODE(g, "Mul", "mul", "m", a, NET_F32(g, "s", "2,3", 1.0f, 2.0f, 0.5f, -1.0f, 4.0f, -0.25f));
    net_int(g, "broadcast", 1);
    net_int(g, "axis", 0);
    int p = NET_NODE(g, "PRelu", "prelu", "p", m, NET_F32(g, "slope", "3", 0.5f, 0.25f, 2.0f));
    int last =
        NET_NODE(g, "Sub", "sub", "y", p, NET_F32(g, "row", "4", 1.0f, 2.0f, 3.0f, 4.0f)); /* no axis: the last ones */
    net_int(g, "broadcast", 1);
    net_output(g, last);
    return g;
}

TEST(early_operands)
{
    static const float c[3] = { 1.0f, -2.0f, 3.0f }, s[6] = { 1.0f, 2.0f, 0.5f, -1.0f, 4.0f, -0.25f },
                       slope[3] = { 0.5f, 0.25f, 2.0f };
    static float x[24], want[24], got[24];
    oct_graph *g = early_net();
    net_fill(x, 24, 77); /* what net_run gives its first input */
    for (int i = 0; i < 24; i++) {
        const float v = (x[i] + c[i / 4 % 3]) * s[i / 4];
        want[i] = (v < 0.0f ? v * slope[i / 4 % 3] : v) - (float)(i % 4 + 1);
    }
    for (int64_t to = 6; to <= 18; to++) {
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_raise_opset(g, to, err));
        assert_int_equal(net_run(g, got, 24), 24);
        assert_true(net_error(want, got, 24) < 1e-7);
    }
    oct_graph_destroy(g);
    fuse(g = early_net());
    assert_int_equal(net_count(g, "Unsqueeze"), 0); /* of constants: folded */
    oct_graph_destroy(g);
}

/* Which dimensions an operand lies at is not known: an error that says so. */
TEST(early_unknown)
{
    oct_err e = OCT_ERR_INIT;
    oct_graph *g = net_graph(6);
    int x = net_input(g, "x", OCT_F32, "2,3,4"), b;
    GOOD(oct_graph_add_value(g, "b", OCT_F32, &b, err));
    net_output(g, NET_NODE(g, "Add", "add", "y", x, b));
    net_int(g, "broadcast", 1);
    net_int(g, "axis", 1);
    assert_int_equal(oct_raise_opset(g, 7, &e), OCT_EUNSUPPORTED);
    assert_non_null(strstr(e.text, "'add'"));
    oct_graph_destroy(g);
}

/* A function that there is no operator for: the node stays, and running it is refused. */
TEST(fused_conv_stays)
{
    static const char *const activations[] = { "Wave", "HardSwish", "" }; /* HardSwish came with opset 14 */
    for (int i = 0; i < 3; i++) {
        oct_graph *g = net_graph(13);
        oct_plan *p = NULL;
        oct_err e = OCT_ERR_INIT;
        GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
        int x = net_input(g, "x", OCT_F32, "1,4,6,6");
        int y = NET_NODE(g, "com.microsoft.FusedConv", "fused", "y", x, net_random(g, "w", "4,4,1,1", 3));
        net_str(g, "activation", activations[i]);
        net_output(g, y);
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_passes_run(g, NULL, 0, NULL, err));
        assert_int_equal(net_count(g, "FusedConv"), i < 2);
        assert_string_equal(net_producer(g, "y")->name, "fused");
        assert_int_equal(oct_plan_create(g, NULL, NULL, &p, &e), i < 2 ? OCT_EUNSUPPORTED : OCT_OK);
        oct_plan_destroy(p);
        oct_graph_destroy(g);
    }
}

/* Two heads of queries share one of keys; the scores get a bias from outside of the graph that changes them. */
static oct_graph *flex_net(const char *q, const char *k)
{
    oct_graph *g = net_graph(22);
    GOOD(oct_graph_set_opset(g, "ai.onnx.preview", 1, err));
    int x = net_input(g, "q", OCT_F32, q), b = NET_F32(g, "b", "2,1,3", 0.5f, -1.0f, 0.25f, 2.0f, 0.0f, -0.5f);
    int keys = net_input(g, "k", OCT_F32, k),
        y = NET_NODE(g, "ai.onnx.preview.FlexAttention", "flex", "y", x, keys, net_random(g, "v", "1,1,3,5", 4));
    const int at = net_last;
    oct_graph *score = net_nested(g), *prob = net_nested(g);
    int s = net_input(score, "s", OCT_F32, "1,2,2,3"), p = net_input(prob, "p", OCT_F32, "1,2,2,3");
    net_output(score, NET_NODE(score, "Add", "add", "s_out", s, net_take(score, b)));
    net_output(prob, NET_NODE(prob, "Mul", "mul", "p_out", p, NET_F32(prob, "two", "", 2.0f)));
    net_give(g, at, "score_mod", score);
    net_give(g, at, "prob_mod", prob);
    net_output(g, y);
    return g;
}

TEST(flex_attention)
{
    static const float bias[6] = { 0.5f, -1.0f, 0.25f, 2.0f, 0.0f, -0.5f };
    float q[16], k[12], v[15], want[20], got[20];
    oct_graph *g = flex_net("1,2,2,4", "1,1,3,4");
    net_fill(q, 16, 77);
    net_fill(k, 12, 78);
    net_fill(v, 15, 4);
    for (int row = 0; row < 4; row++) { /* of two heads and two queries */
        double e[3], sum = 0;
        for (int j = 0; j < 3; j++) {
            double s = 0;
            for (int i = 0; i < 4; i++)
                s += (double)q[row * 4 + i] * (double)k[j * 4 + i];
            sum += e[j] = exp(s / 2 + (double)bias[row / 2 * 3 + j]);
        }
        for (int d = 0; d < 5; d++) {
            double y = 0;
            for (int j = 0; j < 3; j++)
                y += 2 * e[j] / sum * (double)v[j * 5 + d];
            want[row * 5 + d] = (float)y;
        }
    }
    assert_int_equal(net_run(g, got, 20), 20);
    assert_true(net_error(want, got, 20) < 1e-6);
    fuse(g);
    assert_int_equal(net_count(g, "FlexAttention"), 0);
    assert_int_equal(net_count(g, "Softmax"), 1);
    oct_graph_destroy(g);
    g = flex_net("N,2,L,D", "1,1,3,D"); /* the size of a head is not known: it stays until it is */
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_passes_run(g, NULL, 0, NULL, err));
    assert_int_equal(net_count(g, "FlexAttention"), 1);
    assert_int_equal(net_run_with(g, NULL, (const char *const[]){ "1,2,2,4", "1,1,3,4" }, got, 20), 20);
    assert_true(net_error(want, got, 20) < 1e-6);
    oct_graph_destroy(g);
    g = flex_net("1,3,2,4", "1,2,3,4");
    oct_err e = OCT_ERR_INIT;
    assert_int_equal(oct_infer_shapes(g, &e), OCT_EMALFORMED);
    assert_non_null(strstr(e.text, "'flex'"));
    oct_graph_destroy(g);
}

static oct_graph *einsum_net(const char *equation, const char *x, const char *w, bool first)
{
    oct_graph *g = net_graph(17);
    const int data = net_input(g, "x", OCT_F32, x), weights = net_random(g, "w", w, 9);
    const int y = first ? NET_NODE(g, "Einsum", "einsum", "y", weights, data)
                        : NET_NODE(g, "Einsum", "einsum", "y", data, weights);
    GOOD(oct_node_set_str(g, net_last, "equation", equation, err));
    net_output(g, y);
    GOOD(oct_infer_shapes(g, err));
    return g;
}

/* Those that are products with one matrix become it, with what they computed; the others stay. */
TEST(einsum_is_matmul)
{
    static const struct {
        const char *equation, *x, *w;
        bool first;
        size_t products, moves;
    } cases[] = {
        { "bsd,dhk->bshk", "2,3,8", "8,2,5", false, 1, 0 }, { "bshk,hkd->bsd", "2,3,2,4", "2,4,5", false, 1, 0 },
        { "dk,bds->bsk", "2,8,3", "8,5", true, 1, 1 },      { "bhsk,hdk->bds", "2,3,4,5", "3,6,5", false, 1, 2 },
        { "bsd,dk->kbs", "2,3,8", "8,5", false, 1, 1 },     { "...d,dk->...k", "2,3,8", "8,5", false, 1, 0 },
        { "bhs,hsd->bhd", "2,3,4", "3,4,5", false, 0, 0 },  { "bsd,dk->bk", "2,3,8", "8,5", false, 0, 0 },
        { "bsd,dk->bs", "2,3,8", "8,5", false, 0, 0 },      { "bdd,dk->bk", "2,8,8", "8,5", false, 0, 0 },
        { "bsd,dk->bsk", "2,3,D", "8,5", false, 0, 0 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = einsum_net(cases[i].equation, cases[i].x, cases[i].w, cases[i].first);
        float want[240], got[240];
        const bool open = strchr(cases[i].x, 'D');
        const size_t n = open ? 0 : net_run(g, want, OCT_COUNT(want));
        GOOD(oct_passes_run(g, NULL, 0, NULL, err));
        assert_int_equal(net_count(g, "MatMul"), cases[i].products);
        assert_int_equal(net_count(g, "Einsum"), !cases[i].products);
        assert_int_equal(net_count(g, "Transpose"), cases[i].moves);
        if (!open) {
            assert_int_equal(net_run(g, got, OCT_COUNT(got)), n);
            assert_true(n > 0 && net_error(want, got, n) < 1e-6);
        }
        oct_graph_destroy(g);
    }
}

/* Attention of two heads; `stays` in one of the ways in which it does. */
enum { PLAIN, SIZES, CAUSAL, WITH_PAST, ROTATED, OLD_OPSET, STARTS };

static oct_graph *attention_net(int how)
{
    oct_graph *g = net_graph(how == OLD_OPSET ? 12 : 17);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    const int x = net_input(g, "x", OCT_F32, "2,3,4"), columns = how == SIZES ? 8 : 12;
    const int w = net_random(g, "w", columns == 8 ? "4,8" : "4,12", 3),
              b = net_random(g, "b", columns == 8 ? "8" : "12", 4);
    const int32_t lengths[] = { 3, 2, 0, 0 };
    const int mask = net_const(g, "mask", OCT_S32, how == STARTS ? "4" : "2", lengths);
    const int y = how == WITH_PAST ? NET_NODE(g, "com.microsoft.Attention", "attn", "y", x, w, b, mask,
                                              net_random(g, "past", "2,2,2,1,2", 5))
                                   : NET_NODE(g, "com.microsoft.Attention", "attn", "y", x, w, b, mask);
    net_int(g, "num_heads", 2);
    if (how == SIZES)
        NET_INTS(g, "qkv_hidden_sizes", 2, 2, 4);
    if (how == CAUSAL)
        net_int(g, "unidirectional", 1);
    if (how == ROTATED)
        net_int(g, "do_rotary", 1);
    net_output(g, y);
    return g;
}

TEST(attention_apart)
{
    for (int how = PLAIN; how <= CAUSAL; how++) {
        oct_graph *g = attention_net(how);
        fuse(g);
        assert_int_equal(net_count(g, "Attention"), 0);
        assert_int_equal(net_count(g, "MatMul"), 1);
        assert_int_equal(net_count(g, "MultiHeadAttention"), 1);
        oct_graph_destroy(g);
    }
    for (int how = WITH_PAST; how <= STARTS; how++) {
        oct_graph *g = attention_net(how);
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_passes_run(g, NULL, 0, NULL, err));
        assert_int_equal(net_count(g, "Attention"), 1);
        oct_graph_destroy(g);
    }
}

/* ------------------------------------------------------------------ operators and types */

/* x - mean and / std of channels, moved to dimension 1 and put in the opposite order, are one Sub and Div behind the
 * Transpose; in reals without. */
TEST(chains_of_pixels)
{
    enum { N = 1 * 3 * 2 * 3 };
    static float want[N], got[N];
    oct_graph *g = net_graph(13);
    oct_input_chain c;
    int x = net_input(g, "x", OCT_F32, "1,2,3,3"),
        y = NET_NODE(g, "Sub", "sub", "a", x, NET_F32(g, "m", "3", 10, 20, 30));
    y = NET_NODE(g, "Transpose", "turn", "b", y);
    GOOD(oct_node_set_ints(g, net_last, "perm", (const int64_t[]){ 0, 3, 1, 2 }, 4, err));
    y = NET_NODE(g, "Gather", "order", "c", y, NET_S64(g, "i", "3", 2, 1, 0));
    net_int(g, "axis", 1);
    y = NET_NODE(g, "Mul", "mul", "d", y, NET_F32(g, "s", "3,1,1", 0.5f, 0.25f, 0.125f));
    net_output(g, NET_NODE(g, "Relu", "relu", "y", y));
    GOOD(oct_infer_shapes(g, err));
    assert_true(oct_input_chain_find(g, x, &c));
    assert_true(c.end == y && c.last && c.reversed && c.n == 3);
    for (int i = 0; i < 3; i++) { /* in the order of the end */
        assert_float_equal(c.mean[i], 30 - 10 * i, 1e-6);
        assert_float_equal(c.std[i], (float)(2 << i), 1e-6);
    }
    GOOD(oct_input_chain_replace(g, &c, 20, 4, err));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_graph_check(g, err));
    assert_int_equal(net_count(g, "Gather") + net_count(g, "Mul"), 0);
    assert_int_equal(net_run(g, got, N), N);
    float in[N];
    net_fill(in, N, 77u);
    for (int i = 0; i < N; i++) {
        const float v = (in[i % 6 * 3 + i / 6] - 20) / 4;
        want[i] = v > 0 ? v : 0;
    }
    assert_memory_equal(got, want, sizeof got);
    GOOD(oct_input_chain_drop(g, "x", "d", err));
    GOOD(oct_graph_check(g, err));
    assert_int_equal(net_count(g, "Sub") + net_count(g, "Div"), 0);
    assert_int_equal(net_count(g, "Transpose"), 1);
    oct_graph_destroy(g);
}

/* Steps of numbers below 2, channels that are not told apart, a value that something else reads, and factors below 0
 * are none. */
TEST(other_chains)
{
    static const float step[5] = { 100, 0.5f, 100, 100, -100 };
    for (int i = 0; i < 5; i++) {
        oct_graph *g = net_graph(13);
        oct_input_chain c;
        int x = net_input(g, "x", OCT_F32, i == 2 ? "1,5,3,4" : "1,3,5,4"),
            y = NET_NODE(g, "Div", "div", "a", x, NET_F32(g, "s", "", step[i]));
        net_output(g, NET_NODE(g, "Relu", "relu", "y", y));
        if (i == 3)
            net_output(g, NET_NODE(g, "Neg", "neg", "z", x));
        GOOD(oct_infer_shapes(g, err));
        assert_int_equal(oct_input_chain_find(g, x, &c), i == 0);
        oct_graph_destroy(g);
    }
}

/* Channels that are last at the end of a chain, and moved behind a Pad. */
TEST(chains_before_a_pad)
{
    static const int64_t pads[3][8] = { { 0, 1, 1, 0, 0, 1, 1, 0 }, { 0, 1, 1, 1, 0, 1, 1, 0 }, { 0 } };
    for (int i = 0; i < 3; i++) {
        oct_graph *g = net_graph(13);
        oct_input_chain c;
        const int x = net_input(g, "x", OCT_F32, "1,5,4,3"),
                  y = NET_NODE(g, "Div", "div", "a", x, NET_F32(g, "s", "", 100));
        const int p = NET_NODE(g, "Pad", "pad", "p", y, net_const(g, "pads", OCT_S64, "8", pads[i]));
        const int t = i == 2 ? NET_NODE(g, "Relu", "relu", "t", p) : NET_NODE(g, "Transpose", "turn", "t", p);
        if (i < 2)
            GOOD(oct_node_set_ints(g, net_last, "perm", (const int64_t[]){ 0, 3, 1, 2 }, 4, err));
        net_output(g, t);
        GOOD(oct_infer_shapes(g, err));
        assert_int_equal(oct_input_chain_find(g, x, &c), i == 0); /* 1: it adds a channel; 2: nothing moves them */
        if (i == 0)
            assert_true(c.end == y && c.axis == 3 && c.last && c.std[1] == 100);
        oct_graph_destroy(g);
    }
}

/* An input of bytes whose Cast goes. */
TEST(chains_of_bytes)
{
    oct_graph *g = net_graph(13);
    oct_input_chain c;
    int x = net_input(g, "x", OCT_U8, "1,5,4,3"), y = NET_NODE(g, "Transpose", "turn", "b", x);
    GOOD(oct_node_set_ints(g, net_last, "perm", (const int64_t[]){ 0, 3, 1, 2 }, 4, err));
    y = NET_NODE(g, "Cast", "cast", "r", y);
    net_int(g, "to", OCT_F32);
    y = NET_NODE(g, "Div", "div", "a", y, NET_F32(g, "s", "", 64));
    net_output(g, NET_NODE(g, "Relu", "relu", "y", y));
    GOOD(oct_infer_shapes(g, err));
    assert_true(oct_input_chain_of_bytes(g, x));
    assert_false(oct_input_chain_find(g, x, &c));
    GOOD(oct_input_chain_widen(g, x, err));
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_graph_check(g, err));
    assert_true(oct_input_chain_find(g, x, &c) && c.last && c.std[2] == 64);
    assert_false(oct_input_chain_of_bytes(g, x));
    oct_graph_destroy(g);
}

/* A quantizer whose scale and zero point have one dimension of one element. Between these stands a constant of one
 * channel, and one of four. */
TEST(scalars_per_tensor)
{
    static const int8_t data[8] = { 1, 2, 3, 4, -5, -6, -7, -8 };
    const uint8_t zero[1] = { 128 };
    oct_graph *g = net_graph(17);
    const int x = net_input(g, "x", OCT_F32, "1,2,2,2"), s = NET_F32(g, "s", "1", 0.05f),
              z = net_const(g, "z", OCT_U8, "1", zero);
    const int q = NET_NODE(g, "QuantizeLinear", "q", "x_q", x, s, z);
    net_int(g, "axis", 0);
    const int d = NET_NODE(g, "DequantizeLinear", "dq", "x_dq", q, s, z);
    const int one = NET_NODE(g, "DequantizeLinear", "one", "w1", net_const(g, "w1_q", OCT_S8, "1,2,2,2", data),
                             NET_F32(g, "s1", "1", 0.5f));
    net_int(g, "axis", 0);
    const int all = NET_NODE(g, "DequantizeLinear", "all", "w2", net_const(g, "w2_q", OCT_S8, "1,2,2,2", data),
                             NET_F32(g, "s2", "1", 0.25f));
    const int each = NET_NODE(g, "DequantizeLinear", "each", "w3", net_const(g, "w3_q", OCT_S8, "1,2,2,2", data),
                              NET_F32(g, "s3", "2", 0.5f, 0.25f));
    net_output(g, NET_NODE(g, "Sum", "sum", "y", d, one, all, each));
    net_output(g, NET_NODE(g, "Mul", "scaled", "y2", x, s)); /* reads the scale as it is */
    fuse(g);
    static const struct {
        const char *made;
        int rank;
    } want[] = { { "x_q", 0 }, { "x_dq", 0 }, { "w1", 1 }, { "w2", 0 }, { "w3", 1 } };
    for (size_t i = 0; i < OCT_COUNT(want); i++) {
        const oct_node *n = net_producer(g, want[i].made);
        for (int slot = 1; slot < n->n_in; slot++)
            assert_int_equal(g->value[n->in[slot]].constant->rank, want[i].rank);
    }
    assert_int_equal(net_producer(g, "x_q")->in[1], net_producer(g, "x_dq")->in[1]); /* still one */
    assert_int_equal(g->value[net_producer(g, "y2")->in[1]].constant->rank, 1);
    oct_graph_destroy(g);
}

TEST(operators_are_known)
{
    static const struct {
        const char *op;
        int64_t opset;
        oct_status want;
        const char *hint;
    } cases[] = {
        { "Convv", 17, OCT_EMALFORMED, "'Conv'" },
        { "Gelu", 19, OCT_EMALFORMED, "opset 20" },
        { "Gelu", 20, OCT_OK, NULL },
        { "Zzyzx", 17, OCT_EMALFORMED, "domain" },
        { "Zzyzx", 900, OCT_OK, "Zzyzx" },
        { "SimplifiedLayerNormalization", 17, OCT_OK, NULL },
        { "my.domain.Zzyzx", 17, OCT_OK, NULL },
        { "ImageScaler", 8, OCT_OK, NULL },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(cases[i].opset);
        const char *newer;
        oct_err e = OCT_ERR_INIT;
        net_output(g, NET_NODE(g, cases[i].op, "odd", "y", net_input(g, "x", OCT_F32, "2")));
        assert_int_equal(oct_check_operators(g, &newer, &e), cases[i].want);
        const char *said = cases[i].want ? e.hint : newer;
        if (cases[i].hint ? !said || !strstr(said, cases[i].hint) : said != NULL)
            fail_msg("%s: %s", cases[i].op, said ? said : "nothing is said");
        if (cases[i].want)
            assert_non_null(strstr(e.text, "'odd'"));
        oct_graph_destroy(g);
    }
}

TEST(types_must_fit)
{
    static const struct {
        const char *op;
        oct_dtype a, b;
        const char *fault;
    } cases[] = {
        { "Add", OCT_F32, OCT_F32, NULL },
        { "Add", OCT_F16, OCT_F32, "'a' is float16 and 'b' is float32" },
        { "MatMul", OCT_BF16, OCT_F32, "one type" },
        { "Add", OCT_UNDEFINED, OCT_F32, NULL },
        { "And", OCT_F32, OCT_F32, "'a' is float32" },
        { "Concat", OCT_F32, OCT_S64, "one type" },
        { "Gather", OCT_STRING, OCT_S64, NULL },
        { "Pow", OCT_F32, OCT_S32, NULL },
        { "com.microsoft.BiasGelu", OCT_F16, OCT_F32, "one type" },
        { "my.Thing", OCT_F16, OCT_F32, NULL },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(17);
        oct_err e = OCT_ERR_INIT;
        GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
        int a = net_input(g, "a", cases[i].a, "2"), b = net_input(g, "b", cases[i].b, "2");
        net_output(g, NET_NODE(g, cases[i].op, "odd", "y", a, b));
        assert_int_equal(oct_check_types(g, &e), cases[i].fault ? OCT_EMALFORMED : OCT_OK);
        if (cases[i].fault && (!strstr(e.text, cases[i].fault) || !strstr(e.text, "'odd'")))
            fail_msg("%s: %s", cases[i].op, e.text);
        oct_graph_destroy(g);
    }
}
