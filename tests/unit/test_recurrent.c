/* GRU and RNN with quantized matrices: as the operator computes them, and as they are written, products and a Scan,
 * gives the same bits. */
#include "unit.h"

#include "net.h"
#include "quant/job/annotate.h"
#include "targets.h"

enum { STEPS = 6, INPUTS = 9, HIDDEN = 16, CAP = 4000 };

typedef struct variant {
    const char *op, *direction, *activations[4];
    int batch, late, layout;
    bool lens, state, bias;
    float clip;
} variant;

static const variant variants[] = {
    { "GRU", "forward", .batch = 1, .bias = true },
    { "GRU", "forward", .batch = 3, .bias = true },
    { "GRU", "bidirectional", .batch = 1, .late = 1, .bias = true },
    { "GRU", "bidirectional", .batch = 3, .late = 1, .lens = true, .state = true },
    { "GRU", "reverse", .batch = 3, .lens = true, .bias = true, .clip = 0.5f },
    { "GRU", "forward", { "softsign", "Softsign" }, .batch = 3, .layout = 1, .state = true, .lens = true },
    { "RNN", "bidirectional", { "Softplus", "Sigmoid" }, .batch = 3, .layout = 1, .bias = true, .state = true },
    { "RNN", "reverse", .batch = 1, .bias = true, .clip = 0.3f },
    { "RNN", "forward", .batch = 3, .lens = true },
};

static void set_activations(oct_graph *g, const char *const *names, int n)
{
    const char **copy = oct_arena_memdup(g->arena, names, (size_t)n * sizeof *names);
    net_int(g, "activations", 0);
    for (size_t i = 0; i < g->node[net_last].n_attr; i++)
        if (strcmp(g->node[net_last].attr[i].name, "activations") == 0)
            g->node[net_last].attr[i] =
                (oct_attr){ .name = "activations", .type = OCT_ATTR_STRINGS, .strings = copy, .n = n };
}

static oct_graph *layer_of(const variant *v)
{
    static const int32_t lens[3] = { 4, 6, 1 };
    const bool gru = strcmp(v->op, "GRU") == 0, two = strcmp(v->direction, "bidirectional") == 0;
    const int rows = (gru ? 3 : 1) * HIDDEN, dirs = 1 + two;
    char x[40], w[40], r[40], b[40], h[40];
    oct_graph *g = net_graph(14);
    int y_h;
    snprintf(x, sizeof x, v->layout ? "%d,%d,%d" : "%2$d,%1$d,%3$d", v->batch, STEPS, INPUTS);
    snprintf(w, sizeof w, "%d,%d,%d", dirs, rows, INPUTS);
    snprintf(r, sizeof r, "%d,%d,%d", dirs, rows, HIDDEN);
    snprintf(b, sizeof b, "%d,%d", dirs, 2 * rows);
    snprintf(h, sizeof h, v->layout ? "%2$d,%1$d,%3$d" : "%d,%d,%d", dirs, v->batch, HIDDEN);
    const int y =
        NET_NODE(g, v->op, "layer", "y", net_input(g, "x", OCT_F32, x), net_random(g, "w", w, 1),
                 net_random(g, "r", r, 2), v->bias ? net_random(g, "b", b, 3) : -1,
                 v->lens ? net_const(g, "lens", OCT_S32, "3", lens) : -1, v->state ? net_random(g, "h", h, 4) : -1);
    net_int(g, "hidden_size", HIDDEN);
    net_int(g, "layout", v->layout);
    net_int(g, "linear_before_reset", v->late);
    net_str(g, "direction", v->direction);
    if (v->clip > 0)
        net_float(g, "clip", v->clip);
    if (v->activations[0])
        set_activations(g, v->activations, 2);
    GOOD(oct_graph_add_value(g, "y_h", OCT_UNDEFINED, &y_h, err));
    GOOD(oct_graph_set_output(g, net_last, 1, y_h, err));
    net_output(g, y);
    net_output(g, y_h);
    return g;
}

/* The definition's default has two functions, which ONNX Runtime writes out for one direction as well: the first
 * counts. */
TEST(a_default_that_is_written_out_counts)
{
    static const char *const usual[2] = { "Tanh", "Tanh" }, *const other[2] = { "Relu", "Tanh" };
    static float want[CAP], got[CAP];
    const variant v = { .op = "RNN", .direction = "forward", .batch = 3 };
    oct_graph *g = layer_of(&v);
    const size_t n = net_run(g, want, CAP);
    oct_graph_destroy(g);
    for (int i = 0; i < 2; i++) {
        g = layer_of(&v);
        set_activations(g, i ? other : usual, 2);
        assert_int_equal(net_run(g, got, CAP), n);
        assert_true((memcmp(got, want, n * sizeof *got) == 0) == (i == 0));
        oct_graph_destroy(g);
    }
}

static oct_policy *open_job_with(oct_graph *g, const char *rules, const char *target, bool data, oct_qjob **job)
{
    oct_policy *p;
    GOOD(oct_policy_create(NULL, &p, err));
    GOOD(oct_policy_add(p, rules, "test", err));
    oct_qjob_opts o = { .policy = p, .target = target_named(target), .scheme = OCT_SCHEME_AUTO, .have_data = data };
    GOOD(oct_qjob_create(g, &o, job, err));
    GOOD(oct_qjob_decide(*job, NULL, err));
    return p;
}

static oct_policy *open_job(oct_graph *g, const char *rules, const char *target, oct_qjob **job)
{
    return open_job_with(g, rules, target, false, job);
}

/* With scales of rows and one for each direction, s8 and u8. */
TEST(written_is_what_was_annotated)
{
    static const char *const rules[] = { "op:GRU,RNN dynamic - - -\n", "op:GRU,RNN dynamic s8/tensor/sym - -\n",
                                         "op:GRU,RNN dynamic u8 - -\n" };
    static float want[CAP], operator_[CAP], scan[CAP];
    for (size_t i = 0; i < OCT_COUNT(variants) * OCT_COUNT(rules); i++) {
        const variant *v = &variants[i / OCT_COUNT(rules)];
        oct_graph *g = layer_of(v), *copy;
        oct_qjob *job;
        const size_t n = net_run(g, want, CAP);
        oct_policy *p = open_job(g, rules[i % OCT_COUNT(rules)], "octet", &job);
        assert_int_equal(oct_qjob_layer(job, 0)->scheme, OCT_SCHEME_DYNAMIC);
        assert_int_equal(oct_qjob_layer(job, 0)->weights, i % OCT_COUNT(rules) == 2 ? OCT_U8 : OCT_S8);
        GOOD(oct_quantized_copy(job, &copy, err));
        assert_int_equal(net_count(copy, v->op), 1);
        assert_int_equal(net_run(copy, operator_, CAP), n);
        oct_graph_destroy(copy);
        GOOD(oct_qjob_rewrite(job, err));
        assert_int_equal(net_count(g, v->op), 0);
        assert_int_equal(net_count(g, "Scan"), 1 + (strcmp(v->direction, "bidirectional") == 0));
        assert_int_equal(net_run(g, scan, CAP), n);
        assert_memory_equal(operator_, scan, n * sizeof *scan);
        const double error = net_error(want, scan, n);
        assert_true(error > 0 && error < 0.06);
        oct_qjob_destroy(job);
        oct_policy_destroy(p);
        oct_graph_destroy(g);
    }
}

/* Without a rule that asks for it, only from a state of 256 on, or 320 where weights may have to be u8. What has no
 * such body keeps its operator, with the reason. */
TEST(stored_with_a_reason)
{
    static const struct {
        const char *rules, *target, *why;
        int hidden;
        const char *function;
        oct_scheme scheme;
    } each[] = { { "first - - - -\n", "octet", "", 256, NULL, OCT_SCHEME_DYNAMIC },
                 { "first - - - -\n", "octet", "too narrow to gain time", 255, NULL, OCT_SCHEME_WEIGHT_ONLY },
                 { "first - - - -\n", "onnxruntime-x86", "", 320, NULL, OCT_SCHEME_DYNAMIC },
                 { "first - - - -\n", "onnxruntime-x86", "too narrow to gain time", 319, NULL, OCT_SCHEME_WEIGHT_ONLY },
                 { "op:RNN dynamic\n", "octet", "", 64, NULL, OCT_SCHEME_DYNAMIC },
                 { "op:RNN dynamic\n", "octet", "no coefficients", 256, "Affine", OCT_SCHEME_WEIGHT_ONLY },
                 { "op:RNN dynamic\n", "openvino", "no integer form", 256, NULL, OCT_SCHEME_WEIGHT_ONLY },
                 { "op:RNN weight-only\n", "octet", "its matrices are stored", 256, NULL, OCT_SCHEME_WEIGHT_ONLY },
                 { "op:RNN dynamic\n", "openvino", "its matrices are small", 16, NULL, OCT_SCHEME_FLOAT },
                 { "op:RNN static\n", "octet", "dynamically or not at all", 256, NULL, OCT_SCHEME_FLOAT } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        char w[40], r[40];
        oct_graph *g = net_graph(14);
        oct_qjob *job;
        snprintf(w, sizeof w, "1,%d,%d", each[i].hidden, INPUTS);
        snprintf(r, sizeof r, "1,%d,%d", each[i].hidden, each[i].hidden);
        net_output(g, NET_NODE(g, "RNN", "layer", "y", net_input(g, "x", OCT_F32, "2,1,9"), net_random(g, "w", w, 1),
                               net_random(g, "r", r, 2)));
        net_int(g, "hidden_size", each[i].hidden);
        if (each[i].function)
            set_activations(g, &each[i].function, 1);
        oct_policy *p = open_job(g, each[i].rules, each[i].target, &job);
        const oct_layer_decision *d = oct_qjob_layer(job, 0);
        assert_int_equal(d->scheme, each[i].scheme);
        assert_non_null(strstr(d->why, each[i].why));
        oct_qjob_destroy(job);
        oct_policy_destroy(p);
        oct_graph_destroy(g);
    }
}

/* OpenVINO does not load a GRU whose matrices are made real beside quantized activations; an RNN it does. */
TEST(matrices_stay_float_where_they_are_not_loaded)
{
    for (int i = 0; i < 4; i++) {
        const bool gru = i & 1, data = i & 2, refused = gru && data;
        oct_graph *g = net_graph(14);
        oct_qjob *job;
        const int x = net_input(g, "x", OCT_F32, "2,1,9");
        net_output(g,
                   NET_NODE(g, gru ? "GRU" : "RNN", "layer", "y", x, net_random(g, "w", gru ? "1,192,9" : "1,64,9", 1),
                            net_random(g, "r", gru ? "1,192,64" : "1,64,64", 2)));
        net_int(g, "hidden_size", 64);
        oct_policy *p = open_job_with(g, "first - - - -\n", "openvino", data, &job);
        const oct_layer_decision *d = oct_qjob_layer(job, 0);
        assert_int_equal(d->scheme, refused ? OCT_SCHEME_FLOAT : OCT_SCHEME_WEIGHT_ONLY);
        assert_int_equal(strstr(d->why, "OpenVINO does not load") != NULL, refused);
        oct_qjob_destroy(job);
        oct_policy_destroy(p);
        oct_graph_destroy(g);
    }
}
