/* lib/quant: 16-bit floats: which nodes compute on them, what keeps others in float32, types and Casts of the written
 * graph. */
#include "unit.h"

#include "decision.h"
#include "net.h"
#include "targets.h"

typedef struct work {
    oct_graph *g;
    oct_policy *policy;
    oct_qjob *job;
} work;

static work start_for(const char *target, oct_graph *g, oct_scheme scheme, const char *rules, bool half_io)
{
    work w = { .g = g };
    GOOD(oct_policy_create(NULL, &w.policy, err));
    if (rules)
        GOOD(oct_policy_add(w.policy, rules, "test", err));
    oct_qjob_opts o = { .policy = w.policy, .target = target_named(target), .scheme = scheme, .half_io = half_io };
    GOOD(oct_qjob_create(g, &o, &w.job, err));
    return w;
}

/* For a target that has kernels of the scheme. */
static work start_with(oct_graph *g, oct_scheme scheme, const char *rules, bool half_io)
{
    return start_for(scheme == OCT_SCHEME_BF16 ? "octet" : "onnxruntime-x86", g, scheme, rules, half_io);
}

static work start(oct_graph *g)
{
    return start_with(g, OCT_SCHEME_FP16, NULL, false);
}

/* Decides, with the one value of the table reaching `top` where it is given, and writes. */
static void finish(work *w, const char *value, float top)
{
    oct_calib *c = oct_calib_create();
    oct_calib_tensor *t;
    if (value) {
        GOOD(oct_calib_add(c, value, &t, err));
        GOOD(oct_stats_update(&t->stats, (const float[]){ -1.0f, top }, 2, err));
    }
    GOOD(oct_qjob_decide(w->job, value ? c : NULL, err));
    GOOD(oct_qjob_rewrite(w->job, err));
    GOOD(oct_infer_shapes(w->g, err));
    oct_calib_destroy(c);
}

static void stop(work *w)
{
    oct_qjob_destroy(w->job);
    oct_policy_destroy(w->policy);
    oct_graph_destroy(w->g);
}

static const oct_layer_decision *layer(const work *w, const char *name)
{
    return decision_of(w->job, name);
}

static oct_dtype type_of(const work *w, const char *value)
{
    int v = oct_graph_find(w->g, value);
    if (v < 0)
        fail_msg("no value '%s'", value);
    return w->g->value[v].dtype;
}

#define SAYS(w, name, words)                                                             \
    do {                                                                                 \
        assert_int_equal(layer(w, name)->scheme, OCT_SCHEME_FLOAT);                      \
        if (!strstr(layer(w, name)->why, words))                                         \
            fail_msg("%s: '%s' says nothing of '%s'", name, layer(w, name)->why, words); \
    } while (0)

/* x -> Conv -> Relu -> Conv -> Softmax (float by the policy) -> y */
static oct_graph *classifier(void)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,3,6,6");
    int a = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "4,3,3,3", 3), net_random(g, "b1", "4", 4));
    int r = NET_NODE(g, "Relu", "relu", "r", a);
    int b = NET_NODE(g, "Conv", "second", "b", r, net_random(g, "w2", "2,4,3,3", 5), net_random(g, "b2", "2", 6));
    net_output(g, NET_NODE(g, "Softmax", "soft", "y", b));
    return g;
}

TEST(a_model_in_sixteen_bits)
{
    static float want[200], got[200];
    oct_graph *g = classifier(), *before;
    GOOD(oct_graph_clone(g, &before, err));
    size_t n = net_run_with(before, NULL, NULL, want, 200);
    work w = start(g);
    finish(&w, NULL, 0);
    assert_int_equal(type_of(&w, "x"), OCT_F32);
    assert_int_equal(type_of(&w, "y"), OCT_F32);
    static const char *const halves[] = { "w1", "b1", "w2", "b2", "a", "r", "b" };
    for (size_t i = 0; i < OCT_COUNT(halves); i++)
        assert_int_equal(type_of(&w, halves[i]), OCT_F16);
    assert_int_equal(net_count(g, "Cast"), 2); /* of x, and in front of Softmax */
    assert_string_equal(net_producer(g, "y")->op, "Softmax");
    assert_int_equal(layer(&w, "first")->weights, OCT_F16);
    assert_true(layer(&w, "first")->sqnr_weights > 60);
    SAYS(&w, "soft", "op:Softmax");
    assert_int_equal(net_run_with(g, NULL, NULL, got, 200), n);
    double e = net_error(want, got, n);
    assert_true(e > 0 && e < 2e-3);
    oct_graph_destroy(before);
    stop(&w);
}

TEST(ends_may_be_sixteen_bits_too)
{
    work w = start_with(classifier(), OCT_SCHEME_FP16, NULL, true);
    finish(&w, NULL, 0);
    assert_int_equal(type_of(&w, "x"), OCT_F16);
    assert_int_equal(type_of(&w, "y"), OCT_F16);
    assert_int_equal(net_count(w.g, "Cast"), 2); /* around Softmax */
    stop(&w);
}

TEST(bfloat16_asks_for_opset_22)
{
    work w = start_with(classifier(), OCT_SCHEME_BF16, NULL, false);
    finish(&w, NULL, 0);
    assert_int_equal(type_of(&w, "w1"), OCT_BF16);
    assert_int_equal(type_of(&w, "r"), OCT_BF16);
    assert_int_equal(oct_graph_opset(w.g, ""), 22);
    stop(&w);
}

/* Without kernels of bfloat16 large constants alone are of that type, once for all readers, and all is computed on
 * float32. */
TEST(bfloat16_may_be_stored_alone)
{
    static float want[300], got[300];
    oct_graph *g = net_graph(13), *before;
    int x = net_input(g, "x", OCT_F32, "2,32"), shared = net_random(g, "w", "32,32", 3);
    int a = NET_NODE(g, "Relu", "relu", "r", NET_NODE(g, "MatMul", "first", "a", x, shared));
    int b = NET_NODE(g, "Add", "bias", "b", NET_NODE(g, "MatMul", "second", "s", a, shared),
                     net_random(g, "small", "32", 4));
    net_output(g, NET_NODE(g, "MatMul", "third", "y", b, net_random(g, "few", "32,4", 5)));
    GOOD(oct_graph_clone(g, &before, err));
    size_t n = net_run_with(before, NULL, NULL, want, 300);
    work w = start_for("onnxruntime-x86", g, OCT_SCHEME_BF16, NULL, false);
    finish(&w, NULL, 0);
    assert_int_equal(oct_graph_opset(w.g, ""), 13);
    assert_int_equal(type_of(&w, "w_bfloat16"), OCT_BF16);
    assert_int_equal(layer(&w, "second")->weights, OCT_BF16);
    SAYS(&w, "relu", "no bfloat16 kernels");
    SAYS(&w, "third", "no constant large enough");
    static const char *const floats[] = { "a", "r", "b", "few", "y" };
    for (size_t i = 0; i < OCT_COUNT(floats); i++)
        assert_int_equal(type_of(&w, floats[i]), OCT_F32);
    assert_int_equal(net_count(g, "Cast"), 1);
    assert_int_equal(oct_graph_find(g, "w"), -1);
    assert_int_equal(net_run_with(g, NULL, NULL, got, 300), n);
    assert_true(net_error(want, got, n) == 0); /* bfloat16 holds these weights, and nothing else is rounded */
    oct_graph_destroy(before);
    stop(&w);
}

/* A constant that float16 does not hold keeps its node in float32, and a large one all behind it, until something
 * settles its size. */
TEST(constants_that_do_not_fit)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4");
    int a = NET_NODE(g, "MatMul", "m", "a", x, net_random(g, "w", "4,4", 3));
    int b = NET_NODE(g, "Add", "epsilon", "b", a, NET_F32(g, "eps", "", 1e-9f));
    int c = NET_NODE(g, "Mul", "mask", "c", b, NET_F32(g, "huge", "", -1e9f));
    int d = NET_NODE(g, "Where", "choose", "d", NET_NODE(g, "Less", "less", "neg", a, NET_F32(g, "zero", "", 0.0f)),
                     NET_F32(g, "minus_inf", "", -INFINITY), c);
    int e = NET_NODE(g, "Sigmoid", "settled", "e", NET_NODE(g, "MatMul", "wide", "f", d, net_random(g, "u", "4,4", 6)));
    int i = NET_NODE(g, "Max", "floor", "i", e, NET_F32(g, "minus_infinity", "", -INFINITY));
    net_output(g, NET_NODE(g, "MatMul", "n", "y", i, net_random(g, "v", "4,4", 5)));
    work w = start(g);
    finish(&w, NULL, 0);
    SAYS(&w, "epsilon", "too small for float16");
    SAYS(&w, "mask", "'huge' reaches 1e+09");
    SAYS(&w, "choose", "whether float16 holds 'c'");
    SAYS(&w, "wide", "whether float16 holds 'd'");
    SAYS(&w, "settled", "whether float16 holds 'f'");
    assert_int_equal(layer(&w, "floor")->scheme, OCT_SCHEME_FP16); /* infinity is exact */
    assert_int_equal(layer(&w, "m")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(layer(&w, "n")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(type_of(&w, "eps"), OCT_F32);
    assert_int_equal(type_of(&w, "minus_infinity"), OCT_F16);
    assert_int_equal(type_of(&w, "a"), OCT_F16);
    assert_int_equal(type_of(&w, "a_float32"), OCT_F32);
    assert_int_equal(net_count(g, "Cast"), 4); /* of x, a, e and y */
    stop(&w);
}

/* A bias is rounded no more than the sum it joins, so one that vanishes keeps no layer in float32, unless a logarithm
 * reads the sum. */
TEST(biases_that_vanish)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4");
    int a = NET_NODE(g, "Gemm", "first", "a", x, net_random(g, "w", "4,4", 3),
                     NET_F32(g, "dust", "4", 1e-9f, 2e-9f, -1e-9f, 3e-9f));
    int b = NET_NODE(g, "Gemm", "read", "b", a, net_random(g, "u", "4,4", 5),
                     NET_F32(g, "floor", "4", 1e-9f, 1e-9f, 1e-9f, 1e-9f));
    net_output(g, NET_NODE(g, "Log", "log", "y", b));
    work w = start(g);
    finish(&w, NULL, 0);
    assert_int_equal(layer(&w, "first")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(type_of(&w, "dust"), OCT_F16);
    SAYS(&w, "read", "'floor' is too small for float16");
    stop(&w);
}

/* A value beyond the range keeps all that touch it in float32; one within keeps none. */
TEST(ranges_that_do_not_fit)
{
    static const struct {
        float top;
        oct_scheme scheme;
        const char *why;
    } cases[] = { { 30000, OCT_SCHEME_FP16, "" },
                  { 40000, OCT_SCHEME_FLOAT, "too near" },
                  { 70000, OCT_SCHEME_FLOAT, "beyond" } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,4");
        int a = NET_NODE(g, "MatMul", "m", "a", x, net_random(g, "w", "4,4", 3));
        int b = NET_NODE(g, "Mul", "square", "b", a, a);
        int c = NET_NODE(g, "Sqrt", "root", "c", b);
        net_output(g, NET_NODE(g, "MatMul", "n", "y", c, net_random(g, "v", "4,4", 5)));
        work w = start(g);
        finish(&w, "b", cases[i].top);
        assert_int_equal(layer(&w, "square")->scheme, cases[i].scheme);
        assert_int_equal(layer(&w, "root")->scheme, cases[i].scheme);
        assert_non_null(strstr(layer(&w, "root")->why, cases[i].why));
        assert_int_equal(layer(&w, "m")->scheme, OCT_SCHEME_FP16);
        assert_int_equal(layer(&w, "n")->scheme, OCT_SCHEME_FP16);
        stop(&w);
    }
}

/* Without statistics squares are not taken to fit, nor what follows from them; x / sqrt(mean(x * x) + eps) is of
 * moderate size again. */
TEST(squares_of_unknown_range)
{
    for (int multiplied = 0; multiplied < 2; multiplied++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "2,4");
        int a = NET_NODE(g, "MatMul", "m", "a", x, net_random(g, "w", "4,4", 3));
        int b = NET_NODE(g, "Pow", "square", "b", a, NET_F32(g, "two", "", 2));
        int c = NET_NODE(g, "ReduceMean", "mean", "c", b);
        int d = NET_NODE(g, "Sqrt", "root", "d", NET_NODE(g, "Add", "epsilon", "c1", c, NET_F32(g, "eps", "", 1e-3f)));
        int e = multiplied ? NET_NODE(g, "Mul", "div", "e", a, NET_NODE(g, "Reciprocal", "turned", "r", d))
                           : NET_NODE(g, "Div", "div", "e", a, d);
        net_output(g, NET_NODE(g, "MatMul", "n", "y", e, net_random(g, "v", "4,4", 5)));
        work w = start(g);
        finish(&w, NULL, 0);
        SAYS(&w, "square", "without samples");
        SAYS(&w, "mean", "whether float16 holds 'b'");
        SAYS(&w, "epsilon", "whether float16 holds 'c'");
        SAYS(&w, "root", "whether float16 holds 'c1'");
        SAYS(&w, "div", multiplied ? "whether float16 holds 'r'" : "small values of 'd'");
        assert_int_equal(layer(&w, "m")->scheme, OCT_SCHEME_FP16);
        assert_int_equal(layer(&w, "n")->scheme, OCT_SCHEME_FP16);
        assert_int_equal(net_count(g, "Cast"), 4); /* of x, a, e and y */
        stop(&w);
    }
}

/* What a Log or a divisor reads is made in float32, unless samples show that it has no small values; a layer that makes
 * it, too. */
TEST(small_values_that_decide)
{
    static const struct {
        float least; /* seen; 0: there are no samples */
        oct_scheme scheme;
        const char *why;
    } cases[] = { { 0, OCT_SCHEME_FLOAT, "without samples" },
                  { 1e-6f, OCT_SCHEME_FLOAT, "has values from" },
                  { 1e-3f, OCT_SCHEME_FP16, "" } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        for (int divides = 0; divides < 2; divides++) {
            oct_graph *g = net_graph(13);
            int a = NET_NODE(g, "MatMul", "mel", "a", net_input(g, "x", OCT_F32, "2,4"), net_random(g, "w", "4,4", 3));
            int b = NET_NODE(g, "Abs", "size", "b", a);
            int c = divides ? NET_NODE(g, "Div", "last", "c", a, b) : NET_NODE(g, "Log", "last", "c", b);
            net_output(g, NET_NODE(g, "MatMul", "n", "y", NET_NODE(g, "Tanh", "tanh", "t", c),
                                   net_random(g, "v", "4,4", 5)));
            work w = start(g);
            oct_calib *table = oct_calib_create();
            static const char *const seen[] = { "x", "a", "b", "c", "t", "y" };
            for (size_t k = 0; k < OCT_COUNT(seen) && cases[i].least > 0; k++) {
                oct_calib_tensor *t;
                GOOD(oct_calib_add(table, seen[k], &t, err));
                GOOD(oct_stats_update(&t->stats, (const float[]){ cases[i].least, 2.0f }, 2, err));
            }
            GOOD(oct_qjob_decide(w.job, table, err));
            for (size_t k = 0; k < 3; k++) {
                const oct_layer_decision *d = layer(&w, (const char *const[]){ "last", "size", "mel" }[k]);
                assert_int_equal(d->scheme, cases[i].scheme);
                assert_non_null(strstr(d->why, cases[i].why));
            }
            assert_int_equal(layer(&w, "n")->scheme, OCT_SCHEME_FP16);
            oct_calib_destroy(table);
            stop(&w);
        }
}

/* A spectrum whose powers, or the roots of these, are filtered before a Log: what makes it stays float32, and what
 * comes behind the Log does not. */
TEST(spectra_stay_float)
{
    for (int root = 0; root < 2; root++) {
        oct_graph *g = net_graph(13);
        int a = NET_NODE(g, "MatMul", "dft", "a", net_input(g, "x", OCT_F32, "4,4"), net_random(g, "w", "4,4", 3));
        int p = NET_NODE(g, "Mul", "power", "p", a, a);
        int b = NET_NODE(g, "MatMul", "mel", "b", net_random(g, "u", "4,4", 4),
                         root ? NET_NODE(g, "Sqrt", "root", "r", p) : p);
        int c = NET_NODE(g, "Log", "log", "c", NET_NODE(g, "Abs", "size", "e", b));
        net_output(g, NET_NODE(g, "MatMul", "n", "y", c, net_random(g, "v", "4,4", 5)));
        work w = start(g);
        finish(&w, NULL, 0);
        static const char *const floats[] = { "dft", "power", "mel", "size", "log" };
        for (size_t i = 0; i < OCT_COUNT(floats); i++)
            assert_int_equal(layer(&w, floats[i])->scheme, OCT_SCHEME_FLOAT);
        SAYS(&w, "dft", "small values of 'a'");
        assert_int_equal(layer(&w, "n")->scheme, OCT_SCHEME_FP16);
        assert_int_equal(net_count(g, "Cast"), 2); /* of c and y */
        stop(&w);
    }
}

/* What samples show to be tiny throughout. */
TEST(tiny_values)
{
    oct_graph *g = net_graph(13);
    int a = NET_NODE(g, "MatMul", "m", "a", net_input(g, "x", OCT_F32, "2,4"), net_random(g, "w", "4,4", 3));
    net_output(g, NET_NODE(g, "MatMul", "n", "y", a, net_random(g, "v", "4,4", 5)));
    work w = start(g);
    oct_calib *table = oct_calib_create();
    oct_calib_tensor *t;
    GOOD(oct_calib_add(table, "a", &t, err));
    GOOD(oct_stats_update(&t->stats, (const float[]){ -1e-6f, 1e-6f }, 2, err));
    GOOD(oct_qjob_decide(w.job, table, err));
    SAYS(&w, "m", "stays below 1e-06");
    SAYS(&w, "n", "stays below 1e-06");
    oct_calib_destroy(table);
    stop(&w);
}

/* One Cast for all float readers of a value, one for all 16-bit ones; a weight that both sides read is there in both
 * types. */
TEST(casts_are_shared)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "4,4"), v = net_random(g, "w", "4,4", 3);
    int a = NET_NODE(g, "MatMul", "m", "a", x, v);
    int b = NET_NODE(g, "MatMul", "n", "b", x, v);
    int s = NET_NODE(g, "Softmax", "soft1", "s", a), t = NET_NODE(g, "LogSoftmax", "soft2", "t", a);
    int u = NET_NODE(g, "MatMul", "keep", "u", s, v);
    net_output(g, NET_NODE(g, "Add", "sum", "y", u, NET_NODE(g, "Add", "sum2", "z", b, t)));
    work w = start_with(g, OCT_SCHEME_FP16, "name:keep float - - -\n", false);
    finish(&w, NULL, 0);
    assert_int_equal(net_count(g, "Cast"), 5); /* x, a, t and u there, y back */
    assert_int_equal(type_of(&w, "w"), OCT_F32);
    assert_int_equal(type_of(&w, "w_float16"), OCT_F16);
    assert_int_equal(g->value[oct_graph_find(g, "x_float16")].n_uses, 2);
    assert_int_equal(g->value[oct_graph_find(g, "a_float32")].n_uses, 2);
    stop(&w);
}

/* What turns into integers keeps its precision, up to the next product; scales of Resize stay float32. */
TEST(positions_stay_float)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,4,4,4"), none = NET_F32(g, "roi", "0", 0);
    int a = NET_NODE(g, "Conv", "conv", "a", x, net_random(g, "w", "4,4,1,1", 3));
    int m = NET_NODE(g, "Mul", "scale", "m", a, NET_F32(g, "k", "", 16.0f));
    int f = NET_NODE(g, "Floor", "floor", "f", m);
    int i = NET_NODE(g, "Cast", "cast", "i", f);
    net_int(g, "to", OCT_S64);
    int r = NET_NODE(g, "Resize", "resize", "r", a, none, NET_F32(g, "scales", "4", 1, 1, 2, 2));
    net_output(g, i);
    net_output(g, r);
    work w = start(g);
    finish(&w, NULL, 0);
    SAYS(&w, "scale", "becomes integers");
    SAYS(&w, "floor", "becomes integers");
    assert_int_equal(layer(&w, "conv")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(layer(&w, "resize")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(type_of(&w, "scales"), OCT_F32);
    assert_int_equal(type_of(&w, "i"), OCT_S64);
    stop(&w);
}

/* Between float nodes alone nothing is gained; and an operator without float16 stays as it is. */
TEST(islands_stay_float)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,4");
    int a = NET_NODE(g, "Sigmoid", "sigmoid", "a", x);
    int s = NET_NODE(g, "Softmax", "soft", "s", a);
    int m = NET_NODE(g, "MatMul", "m", "b", s, net_random(g, "w", "4,4", 3));
    net_output(g, NET_NODE(g, "Celu", "celu", "y", m));
    work w = start(g);
    finish(&w, NULL, 0);
    SAYS(&w, "sigmoid", "neighbours has weights");
    SAYS(&w, "celu", "takes no float16");
    assert_int_equal(layer(&w, "m")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(net_count(g, "Cast"), 2);
    stop(&w);
}

/* A Cast to float32 that the model has gives the 16-bit type itself; Shape reads any type. */
TEST(casts_of_the_model_are_used)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_S32, "2,4");
    int c = NET_NODE(g, "Cast", "cast", "c", x);
    net_int(g, "to", OCT_F32);
    net_output(g, NET_NODE(g, "Shape", "shape", "s", c));
    net_output(g, NET_NODE(g, "MatMul", "m", "y", c, net_random(g, "w", "4,4", 3)));
    work w = start(g);
    finish(&w, NULL, 0);
    assert_int_equal(type_of(&w, "c"), OCT_F16);
    assert_int_equal(oct_node_int(net_producer(g, "c"), "to", 0), OCT_F16);
    assert_int_equal(net_count(g, "Cast"), 2); /* that one, and of the output */
    stop(&w);
}

/* By rules of the table: an integer Conv, one in float16, one in bfloat16, and the Casts between. */
TEST(rules_mix_types)
{
    static float want[300], got[300];
    oct_graph *g = net_graph(22), *before;
    int x = net_input(g, "x", OCT_F32, "2,3,6,6");
    int a = NET_NODE(g, "Conv", "one", "a", x, net_random(g, "w1", "4,3,3,3", 3));
    int b = NET_NODE(g, "Conv", "two", "b", a, net_random(g, "w2", "4,4,1,1", 5));
    int c = NET_NODE(g, "Conv", "three", "c", b, net_random(g, "w3", "4,4,1,1", 6));
    net_output(g, NET_NODE(g, "Conv", "four", "y", c, net_random(g, "w4", "4,4,1,1", 7)));
    GOOD(oct_graph_clone(g, &before, err));
    work w = { .g = g };
    GOOD(oct_policy_create(NULL, &w.policy, err));
    GOOD(oct_policy_add(w.policy, "name:two fp16 - - -\nname:three bf16 - - -\n", "test", err));
    oct_qjob_opts o = { .policy = w.policy, .target = target_named("octet"), .have_data = true };
    GOOD(oct_qjob_create(g, &o, &w.job, err));
    oct_calib *table = oct_calib_create();
    size_t n;
    const char *const *names = oct_qjob_values(w.job, NULL, &n);
    for (size_t i = 0; i < n; i++) {
        oct_calib_tensor *t;
        GOOD(oct_calib_add(table, names[i], &t, err));
        GOOD(oct_stats_update(&t->stats, (const float[]){ -20.0f, 20.0f }, 2, err));
    }
    GOOD(oct_qjob_decide(w.job, table, err));
    GOOD(oct_qjob_rewrite(w.job, err));
    GOOD(oct_infer_shapes(g, err));
    assert_true(layer(&w, "one")->integer && layer(&w, "four")->integer);
    assert_int_equal(layer(&w, "two")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(layer(&w, "three")->scheme, OCT_SCHEME_BF16);
    assert_int_equal(type_of(&w, "b"), OCT_F16);
    assert_int_equal(type_of(&w, "b_bfloat16"), OCT_BF16);
    assert_int_equal(type_of(&w, "c"), OCT_BF16);
    assert_int_equal(net_count(g, "Cast"), 3);
    assert_int_equal(net_count(g, "QuantizeLinear"), 2);
    size_t size = net_run_with(before, NULL, NULL, want, 300);
    assert_int_equal(net_run_with(g, NULL, NULL, got, 300), size);
    assert_true(net_error(want, got, size) < 0.05);
    oct_calib_destroy(table);
    oct_graph_destroy(before);
    stop(&w);
}

/* Recurrent layers are asked for 16 bits like others, though they have no integer form. */
TEST(recurrent_layers)
{
    oct_graph *g = net_graph(14);
    int x = net_input(g, "x", OCT_F32, "5,1,4");
    int a = NET_NODE(g, "LSTM", "lstm", "a", x, net_random(g, "w", "1,12,4", 3), net_random(g, "r", "1,12,3", 4));
    net_int(g, "hidden_size", 3);
    int s = NET_NODE(g, "Squeeze", "squeeze", "s", a, NET_S64(g, "axes", "1", 1));
    int b = NET_NODE(g, "GRU", "gru", "b", s, net_random(g, "v", "1,9,3", 5), net_random(g, "u", "1,9,3", 6));
    net_int(g, "hidden_size", 3);
    net_output(g, b);
    work w = start(g);
    finish(&w, NULL, 0);
    assert_int_equal(layer(&w, "lstm")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(layer(&w, "gru")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(type_of(&w, "w"), OCT_F16);
    assert_int_equal(type_of(&w, "u"), OCT_F16);
    assert_int_equal(net_count(g, "Cast"), 2);
    stop(&w);
}

/* One table for what picks rows of it and, transposed, for a product is stored once; where the first stays float32, so
 * does what is stored. */
TEST(tied_tables_are_stored_once)
{
    static const char *const rules[] = { "op:MatMul,Gather fp16 - - -\n",
                                         "op:MatMul fp16 - - -\nop:Gather float - - -\n" };
    for (size_t i = 0; i < OCT_COUNT(rules); i++) {
        static float want[400], got[400];
        oct_graph *g = net_graph(17), *before;
        int x = net_input(g, "x", OCT_F32, "4,100"), t = net_random(g, "t", "100,100", 5);
        int ids = NET_NODE(g, "ArgMax", "most", "ids", x);
        net_int(g, "axis", 1);
        net_int(g, "keepdims", 0);
        int rows = NET_NODE(g, "Gather", "pick", "rows", t, ids);
        int back = NET_NODE(g, "Transpose", "turn", "turned", t);
        NET_INTS(g, "perm", 1, 0);
        net_output(g, NET_NODE(g, "MatMul", "fc", "y", NET_NODE(g, "Add", "sum", "a", x, rows), back));
        GOOD(oct_graph_clone(g, &before, err));
        work w = start_with(g, OCT_SCHEME_AUTO, rules[i], false);
        finish(&w, NULL, 0);
        size_t bytes = 0;
        for (size_t v = 0; v < g->n_value; v++)
            bytes += !g->value[v].dead && g->value[v].constant && g->value[v].n_uses ? g->value[v].constant->bytes : 0;
        assert_int_equal(bytes, 100 * 100 * (i ? 4 : 2));
        assert_int_equal(net_count(g, "Transpose"), 1);
        size_t size = net_run_with(before, NULL, NULL, want, 400);
        assert_int_equal(net_run_with(g, NULL, NULL, got, 400), size);
        assert_true(net_error(want, got, size) < 0.002);
        oct_graph_destroy(before);
        stop(&w);
    }
}

/* What the model has quantized stays as it is. */
TEST(quantized_layers_stay)
{
    oct_graph *g = net_graph(13);
    const uint8_t zero = 128;
    int s = NET_F32(g, "s", "", 0.02f), z = net_const(g, "z", OCT_U8, "", &zero);
    int x = net_input(g, "x", OCT_F32, "2,4");
    int a = NET_NODE(g, "MatMul", "plain", "a", x, net_random(g, "w", "4,4", 3));
    int d = NET_NODE(g, "DequantizeLinear", "", "d", NET_NODE(g, "QuantizeLinear", "", "q", a, s, z), s, z);
    int b = NET_NODE(g, "MatMul", "coded", "b", d, net_random(g, "v", "4,4", 5));
    net_output(g, NET_NODE(g, "MatMul", "last", "y", b, net_random(g, "u", "4,4", 6)));
    work w = start(g);
    finish(&w, NULL, 0);
    SAYS(&w, "plain", "quantized already");
    SAYS(&w, "coded", "quantized already");
    assert_int_equal(layer(&w, "last")->scheme, OCT_SCHEME_FP16);
    assert_int_equal(type_of(&w, "s"), OCT_F32);
    assert_int_equal(net_count(g, "Cast"), 2);
    stop(&w);
}

/* What an operator of another domain makes is float32 where that follows from what reads it; it gets what it got, and
 * Casts stand around it. */
TEST(types_follow_from_readers)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        oct_graph *g = net_graph(22);
        GOOD(oct_graph_set_opset(g, "mine", 1, err));
        int x = net_input(g, "x", OCT_F32, "4,64");
        int a = NET_NODE(g, "MatMul", "first", "a", x, net_random(g, "w1", "64,64", 1));
        int b = NET_NODE(g, "mine.Swirl", "swirl", "b", a);
        int r = NET_NODE(g, "Neg", "minus", "r", b);
        net_output(g, NET_NODE(g, "MatMul", "second", "y", r, net_random(g, "w2", "64,64", 2)));
        work w = start_with(g, bf16 ? OCT_SCHEME_BF16 : OCT_SCHEME_FP16, NULL, false);
        finish(&w, NULL, 0);
        assert_int_equal(type_of(&w, "b"), OCT_F32);
        assert_int_equal(g->value[net_producer(g, "b")->in[0]].dtype, OCT_F32);
        assert_int_equal(type_of(&w, "w2"), bf16 ? OCT_BF16 : OCT_F16);
        assert_int_equal(type_of(&w, "r"), bf16 ? OCT_BF16 : OCT_F16);
        assert_int_equal(net_count(g, "Cast"), 4); /* behind x, around the operator, in front of y */
        GOOD(oct_check_types(g, err));
        stop(&w);
    }
}

/* Where nothing says what it makes, all beside it stays float32, as no Cast can stand between. */
TEST(unknown_types_stay_float)
{
    oct_graph *g = net_graph(22);
    GOOD(oct_graph_set_opset(g, "mine", 1, err));
    int x = net_input(g, "x", OCT_F32, "64,64");
    int a = NET_NODE(g, "MatMul", "first", "a", x, net_random(g, "w1", "64,64", 1));
    int b = NET_NODE(g, "mine.Swirl", "swirl", "b", a);
    int y = NET_NODE(g, "MatMul", "square", "y", NET_NODE(g, "Neg", "minus", "r", b), b);
    net_output(g, y);
    work w = start(g);
    finish(&w, NULL, 0);
    SAYS(&w, "square", "type of an input is not known");
    assert_int_equal(g->value[net_producer(g, "b")->in[0]].dtype, OCT_F32);
    assert_int_equal(type_of(&w, "w1"), OCT_F16);
    assert_int_equal(type_of(&w, "y"), OCT_UNDEFINED);
    stop(&w);
}

TEST(out_of_memory_is_reported)
{
    bool done = false;
    for (size_t n = 1; !done; n++) {
        oct_err e = OCT_ERR_INIT;
        work w = start(classifier());
        oct_alloc_fail_at(n);
        oct_status s = oct_qjob_decide(w.job, NULL, &e);
        if (s == OCT_OK)
            s = oct_qjob_rewrite(w.job, &e);
        done = oct_alloc_fail_at(0) < n;
        assert_int_equal(s, done ? OCT_OK : OCT_ENOMEM);
        stop(&w);
        assert_true(n < 1000);
    }
}
