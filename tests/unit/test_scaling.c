/* lib/quant/methods/scaling.h and what records say of homogeneity, against runs with factors put in by hand. */
#include "unit.h"
#include <stdlib.h>

#include "net.h"
#include "quant/methods/scaling.h"

enum { MOST = 4096 };

/* ---- operators ---- */

/* x and y of [2,4,3,3], or `shape`; what is made of them. */
typedef struct op_case {
    const char *op, *shape;
    bool first; /* dimension 0, not 1, has the channels, of which there are 4 */
    bool two;   /* reads y, too */
    int slope;  /* reads a constant of so many channels, 0: none */
} op_case;

static const op_case cases[] = {
    { .op = "Relu" },
    { .op = "LeakyRelu" },
    { .op = "Abs" },
    { .op = "Neg" },
    { .op = "PRelu", .slope = 4 },
    { .op = "Add", .two = true },
    { .op = "Sub", .two = true },
    { .op = "Sum", .two = true },
    { .op = "Max", .two = true },
    { .op = "Min", .two = true },
    { .op = "MaxPool" },
    { .op = "AveragePool" },
    { .op = "GlobalAveragePool" },
    { .op = "GlobalMaxPool" },
    { .op = "ReduceMean" },
    { .op = "ReduceMax" },
    { .op = "ReduceMin" },
    { .op = "ReduceSum" },
    { .op = "ReduceMean", .shape = "4,2,3,5", .first = true },
    { .op = "Flatten", .shape = "2,4,1,1" },
    { .op = "Squeeze", .shape = "2,4,1,1" },
    { .op = "Transpose" },
    { .op = "Clip" },
    { .op = "Identity" },
};

static void set_attributes(oct_graph *g, const op_case *k)
{
    const bool reduces = strncmp(k->op, "Reduce", 6) == 0;
    if (strstr(k->op, "Pool") && !strstr(k->op, "Global"))
        NET_INTS(g, "kernel_shape", 2, 2);
    if (reduces)
        net_int(g, "keepdims", k->shape != NULL);
    if (reduces && strcmp(k->op, "ReduceSum") != 0)
        NET_INTS(g, "axes", 2, 3);
    if (strcmp(k->op, "Transpose") == 0)
        NET_INTS(g, "perm", 0, 2, 3, 1);
}

static oct_graph *build(const op_case *k)
{
    oct_graph *g = net_graph(13);
    const char *dims = k->shape ? k->shape : "2,4,3,3";
    const int x = net_input(g, "x", OCT_F32, dims);
    int second = k->two ? net_input(g, "y", OCT_F32, dims) : k->slope ? net_random(g, "slope", "4,1,1", 3) : -1;
    if (strcmp(k->op, "ReduceSum") == 0 || strcmp(k->op, "Squeeze") == 0)
        second = NET_S64(g, "axes", "2", 2, 3);
    if (strcmp(k->op, "Clip") == 0)
        second = NET_F32(g, "least", "", 0);
    net_output(g, NET_NODE(g, k->op, "node", "out", x, second));
    set_attributes(g, k);
    GOOD(oct_infer_shapes(g, err));
    return g;
}

/* Runs it on inputs whose channel c, along `axis`, is multiplied by 2^(3 c - 4) where `scaled`. Returns how many
 * numbers. */
static size_t run(const oct_graph *g, int axis, bool scaled, float *to)
{
    static float x[2][MOST];
    const oct_shape *s = &g->value[g->input[0]].shape;
    size_t inner = 1, n = 1;
    for (int d = 0; d < s->rank; d++) {
        n *= (size_t)s->d[d].n;
        inner *= d > axis ? (size_t)s->d[d].n : 1;
    }
    for (int k = 0; k < 2; k++) {
        net_fill(x[k], n, 5u + (uint32_t)k);
        for (size_t i = 0; scaled && i < n; i++)
            x[k][i] = ldexpf(x[k][i], 3 * (int)(i / inner % 4) - 4);
    }
    oct_plan *p = net_plan(g, NULL, NULL);
    GOOD(oct_plan_run(p, (const void *[]){ x[0], x[1] }, err));
    n = (size_t)oct_plan_output(p, 0)->count;
    GOOD(oct_operand_to_f32(oct_plan_output(p, 0), to, err));
    oct_plan_destroy(p);
    return n;
}

TEST(operators_scale_as_records_say)
{
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        static float plain[MOST], scaled[MOST];
        oct_graph *g = build(&cases[i]);
        const int axis = cases[i].first ? 0 : 1, kept = oct_kept_axis(g, net_last, 0, axis);
        const oct_shape *y = &g->value[g->output[0]].shape;
        if (kept < 0 || !(oct_homogeneous_in(g, net_last) & 1) ||
            (cases[i].two && !(oct_homogeneous_in(g, net_last) & 2)))
            fail_msg("%s", cases[i].op);
        size_t inner = 1;
        for (int d = kept + 1; d < y->rank; d++)
            inner *= (size_t)y->d[d].n;
        const size_t n = run(g, axis, false, plain);
        assert_int_equal(run(g, axis, true, scaled), n);
        for (size_t e = 0; e < n; e++)
            if (scaled[e] != ldexpf(plain[e], 3 * (int)(e / inner % 4) - 4))
                fail_msg("%s: element %zu is %g of %g", cases[i].op, e, (double)scaled[e], (double)plain[e]);
        oct_graph_destroy(g);
    }
}

/* Normalizations take factors by their constants: of 4 channels, which are the last dimension. */
static const struct {
    const char *op;
    int opset, data;
    bool shift;
} norms[] = {
    { "LayerNormalization", 17, 1, true },
    { "RMSNormalization", 23, 1, false },
    { "SimplifiedLayerNormalization", 17, 1, false },
    { "com.microsoft.SkipLayerNormalization", 17, 2, true },
    { "com.microsoft.SkipSimplifiedLayerNormalization", 17, 2, false },
};

TEST(every_such_record_has_a_case)
{
    size_t n;
    const oct_op *const *all = oct_op_all(&n);
    for (size_t i = 0; i < n; i++) {
        bool found = !all[i]->homogeneous;
        for (size_t k = 0; k < OCT_COUNT(cases); k++)
            found |= strcmp(cases[k].op, all[i]->type) == 0;
        for (size_t k = 0; k < OCT_COUNT(norms); k++)
            found |= strcmp(norms[k].op + (*all[i]->domain ? strlen(all[i]->domain) + 1 : 0), all[i]->type) == 0;
        if (!found)
            fail_msg("%s", all[i]->type);
    }
}

TEST(others_do_not)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "2,4,3,3"), six = NET_F32(g, "six", "", 6),
              least = NET_F32(g, "least", "", 0);
    NET_NODE(g, "Sigmoid", "s", "s_out", x);
    assert_int_equal(oct_homogeneous_in(g, net_last), 0);
    NET_NODE(g, "Mul", "m", "m_out", x, x);
    assert_int_equal(oct_homogeneous_in(g, net_last), 0);
    assert_true(oct_op_of(g, net_last)->multiplies);
    NET_NODE(g, "Clip", "c", "c_out", x, least, six);
    assert_int_equal(oct_homogeneous_in(g, net_last), 0);
    NET_NODE(g, "PRelu", "p", "p_out", x, x);
    assert_int_equal(oct_homogeneous_in(g, net_last), 1); /* not in the slope */
    oct_graph_destroy(g);
}

static void run_norm(size_t i, bool scaled, float *to)
{
    float c[2][4];
    oct_graph *g = net_graph(norms[i].opset);
    GOOD(oct_graph_set_opset(g, "com.microsoft", 1, err));
    for (int k = 0; k < 8; k++)
        c[k / 4][k % 4] = ldexpf(1 + 0.3f * (float)k, scaled ? 3 * (k % 4) - 4 : 0);
    const int x = net_input(g, "x", OCT_F32, "2,3,4"), y = norms[i].data > 1 ? net_input(g, "y", OCT_F32, "2,3,4") : -1;
    const int gamma = net_const(g, "gamma", OCT_F32, "4", c[0]),
              beta = norms[i].shift ? net_const(g, "beta", OCT_F32, "4", c[1]) : -1;
    net_output(g, y >= 0 ? NET_NODE(g, norms[i].op, "node", "out", x, y, gamma, beta)
                         : NET_NODE(g, norms[i].op, "node", "out", x, gamma, beta));
    assert_int_equal(oct_homogeneous_in(g, net_last), (norms[i].shift ? 3u : 1u) << norms[i].data);
    assert_int_equal(net_run(g, to, MOST), 24);
    oct_graph_destroy(g);
}

TEST(normalizations_scale_with_their_constants)
{
    for (size_t i = 0; i < OCT_COUNT(norms); i++) {
        float plain[MOST], scaled[MOST];
        run_norm(i, false, plain);
        run_norm(i, true, scaled);
        for (int e = 0; e < 24; e++)
            if (scaled[e] != ldexpf(plain[e], 3 * (e % 4) - 4))
                fail_msg("%s: element %d is %g of %g", norms[i].op, e, (double)scaled[e], (double)plain[e]);
    }
}

/* Where channels end, or cannot be told from others, none is kept. */
TEST(mixed_dimensions_are_not_kept)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "2,4,4,3"), flat = NET_S64(g, "flat", "2", 2, 48);
    NET_NODE(g, "Reshape", "reshape", "r", x, flat);
    const int reshape = net_last;
    NET_NODE(g, "ReduceMean", "mean", "m", x);
    NET_INTS(g, "axes", 2, 3);
    net_int(g, "keepdims", 0);
    GOOD(oct_infer_shapes(g, err));
    assert_int_equal(oct_kept_axis(g, reshape, 0, 0), 0);
    assert_int_equal(oct_kept_axis(g, reshape, 0, 1), -1);
    assert_int_equal(oct_kept_axis(g, net_last, 0, 1), -1);
    assert_int_equal(oct_kept_axis(g, net_last, 0, 0), 0);
    oct_graph_destroy(g);
}

/* ---- sets of layers ---- */

static int conv(oct_graph *g, const char *name, const char *out, int x, const char *dims, int group, int pad)
{
    char w[16], b[16], channels[4] = "";
    snprintf(w, sizeof w, "%s_w", name);
    snprintf(b, sizeof b, "%s_b", name);
    strncat(channels, dims, strcspn(dims, ","));
    const int weights = net_random(g, w, dims, 3u + (uint32_t)name[0]),
              bias = net_random(g, b, channels, 90u + (uint32_t)name[0]);
    const int y = NET_NODE(g, "Conv", name, out, x, weights, bias);
    net_int(g, "group", group);
    NET_INTS(g, "pads", pad, pad, pad, pad);
    return y;
}

/* A stem, a depthwise layer, a residual around a third, pools, a product. */
static oct_graph *residual_net(void)
{
    oct_graph *g = net_graph(13);
    int x = conv(g, "a", "a_out", net_input(g, "x", OCT_F32, "1,3,8,8"), "8,3,3,3", 1, 1);
    x = NET_NODE(g, "PRelu", "prelu", "p", x, net_random(g, "slope", "8,1,1", 2));
    const int d = NET_NODE(g, "Relu", "relu", "d", conv(g, "dw", "dw_out", x, "8,1,3,3", 8, 1));
    x = NET_NODE(g, "Add", "add", "s", conv(g, "c", "c_out", d, "8,8,1,1", 1, 0), d);
    x = NET_NODE(g, "MaxPool", "pool", "m", x);
    NET_INTS(g, "kernel_shape", 2, 2);
    x = NET_NODE(g, "Flatten", "flat", "f", NET_NODE(g, "GlobalAveragePool", "gap", "h", x));
    x = NET_NODE(g, "Gemm", "fc", "y", x, net_random(g, "fc_w", "5,8", 7), net_random(g, "fc_b", "5", 8));
    net_int(g, "transB", 1);
    net_output(g, x);
    GOOD(oct_infer_shapes(g, err));
    return g;
}

static bool has(const oct_graph *g, const oct_scaled_layer *l, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(g->node[l[i].node].name, name) == 0)
            return true;
    return false;
}

TEST(sets_hold_all_that_takes_a_factor)
{
    oct_graph *g = residual_net();
    oct_scaling *s;
    size_t n;
    GOOD(oct_scalings_find(g, g->arena, &s, &n, err));
    assert_int_equal(n, 2);
    assert_true(s[0].n_values == 2 && s[0].n_makers == 1 && s[0].n_readers == 1);
    assert_true(has(g, s[0].maker, 1, "a") && has(g, s[0].reader, 1, "dw"));
    assert_true(s[1].n_values == 7 && s[1].n_makers == 2 && s[1].n_readers == 2);
    assert_true(has(g, s[1].maker, 2, "dw") && has(g, s[1].maker, 2, "c") && has(g, s[1].reader, 2, "c") &&
                has(g, s[1].reader, 2, "fc"));
    oct_graph_destroy(g);
}

static oct_status keep_shown(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    return oct_operand_to_f32(t, arg, err);
}

/* Value `name` and the output. */
static void outputs_of(const oct_graph *g, const char *name, float *value, float *out)
{
    static float x[192];
    net_fill(x, OCT_COUNT(x), 61);
    oct_plan *p = net_plan(g, &(oct_plan_opts){ .taps = &name, .n_taps = 1 }, NULL);
    oct_plan_set_tap(p, keep_shown, value);
    GOOD(oct_plan_run(p, (const void *[]){ x }, err));
    GOOD(oct_operand_to_f32(oct_plan_output(p, 0), out, err));
    oct_plan_destroy(p);
}

TEST(factors_leave_the_function)
{
    static float p[2][512], m[2][8 * 49];
    float y[4][5];
    int exponent[2][8];
    oct_graph *g = residual_net();
    oct_scaling *s;
    size_t n;
    uint32_t seed = 71;
    const oct_tensor **was = calloc(g->n_value, sizeof *was); /* a layer that both scale is copied once */
    for (size_t v = 0; v < g->n_value; v++)
        was[v] = g->value[v].constant;
    GOOD(oct_scalings_find(g, g->arena, &s, &n, err));
    outputs_of(g, "p", p[0], y[0]);
    outputs_of(g, "m", m[0], y[1]);
    for (int k = 0; k < 2; k++) {
        for (int c = 0; c < 8; c++)
            exponent[k][c] = (int)(net_next(&seed) % 25) - 12;
        GOOD(oct_scaling_apply(&(oct_scaler){ g, g->arena, was }, &s[k], exponent[k], err));
    }
    outputs_of(g, "p", p[1], y[2]);
    outputs_of(g, "m", m[1], y[3]);
    for (int k = 1; k < 4; k++)
        assert_memory_equal(y[0], y[k], sizeof y[0]);
    for (int i = 0; i < 512; i++)
        assert_true(p[1][i] == ldexpf(p[0][i], exponent[0][i / 64]));
    for (int i = 0; i < 8 * 49; i++)
        assert_true(m[1][i] == ldexpf(m[0][i], exponent[1][i / 49]));
    free(was);
    oct_graph_destroy(g);
}

/* ---- what stands in the way ---- */

/* A layer, what `spoil` puts behind it, and a layer. */
typedef enum spoil {
    NOTHING,
    SIGMOID,
    HARD_TANH,
    SUM_WITH_CONSTANT,
    SHOWN,
    SHARED_WEIGHTS,
    JOINED,
    CAPTURED,
    TINY
} spoil;

static size_t sets_with(spoil how)
{
    oct_graph *g = net_graph(13);
    oct_scaling *s;
    size_t n;
    int v = conv(g, "a", "a_out", net_input(g, "x", OCT_F32, "1,4,6,6"), "4,4,1,1", 1, 0);
    const int own = g->node[net_last].in[1];
    if (how == TINY)
        *(float *)(uintptr_t)g->value[own].constant->data = 0x1p-120f;
    if (how == SHOWN)
        net_output(g, v);
    if (how == CAPTURED) {
        const int less = NET_NODE(g, "Relu", "holds", "held", v);
        net_capture(g, net_last, v);
        GOOD(oct_graph_set_captures(g, net_last, err));
        net_output(g, less);
    }
    v = how == SIGMOID     ? NET_NODE(g, "Sigmoid", "act", "r", v)
        : how == HARD_TANH ? NET_NODE(g, "Clip", "act", "r", v, NET_F32(g, "least", "", -1), NET_F32(g, "most", "", 6))
        : how == SUM_WITH_CONSTANT ? NET_NODE(g, "Add", "act", "r", v, net_random(g, "k", "4,1,1", 9))
                                   : NET_NODE(g, "Relu", "act", "r", v);
    if (how == JOINED) {
        net_output(g, NET_NODE(g, "Concat", "join", "both", v, v));
        net_int(g, "axis", 1);
    }
    v = how == SHARED_WEIGHTS ? NET_NODE(g, "Conv", "b", "y", v, own) : conv(g, "b", "y", v, "4,4,1,1", 1, 0);
    net_output(g, v);
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_scalings_find(g, g->arena, &s, &n, err));
    oct_graph_destroy(g);
    return n;
}

TEST(readers_that_cannot_scale_stand_in_the_way)
{
    assert_int_equal(sets_with(NOTHING), 1);
    for (spoil how = SIGMOID; how <= TINY; how++)
        if (sets_with(how) != 0)
            fail_msg("case %d", (int)how);
}

/* The least bound counts, and what clamps make is known: in each channel values are 0 or more. */
TEST(bounds_of_clamps_are_kept)
{
    static const struct {
        float first, second, bound;
    } pair[] = { { 6, 20, 6 }, { 20, 1, 1 }, { 6, INFINITY, 6 }, { INFINITY, INFINITY, INFINITY } };
    for (size_t i = 0; i < OCT_COUNT(pair); i++) {
        oct_graph *g = net_graph(13);
        oct_scaling *s;
        size_t n, clamped = 0;
        int v = conv(g, "a", "a_out", net_input(g, "x", OCT_F32, "1,4,6,6"), "4,4,1,1", 1, 0);
        const float bound[2] = { pair[i].first, pair[i].second };
        for (int k = 0; k < 2; k++) {
            const int least = NET_F32(g, k ? "l1" : "l0", "", 0);
            const int most = isfinite(bound[k]) ? net_const(g, k ? "m1" : "m0", OCT_F32, "", &bound[k]) : -1;
            v = NET_NODE(g, "Clip", k ? "c1" : "c0", k ? "v1" : "v0", v, least, most);
        }
        net_output(g, conv(g, "b", "y", v, "4,4,1,1", 1, 0));
        GOOD(oct_infer_shapes(g, err));
        GOOD(oct_scalings_find(g, g->arena, &s, &n, err));
        assert_true(n == 1 && s[0].n_values == 3 && s[0].bound == pair[i].bound);
        for (size_t k = 0; k < 3; k++)
            clamped += s[0].value[k].clamped;
        assert_int_equal(clamped, isfinite(bound[0]) + isfinite(bound[1]));
        oct_graph_destroy(g);
    }
}
