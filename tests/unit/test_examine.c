/* lib/quant: what goes wrong in models as they stand, and which targets they fit. */
#include "unit.h"

#include "net.h"
#include "quant/lint/examine.h"
#include "targets.h"

static int real(oct_graph *g, const char *name, float v)
{
    return net_const(g, name, OCT_F32, "", &v);
}

static int code(oct_graph *g, const char *name, int8_t v)
{
    return net_const(g, name, OCT_S8, "", &v);
}

static oct_lint *examined(const oct_graph *g, const oct_calib *table)
{
    oct_lint *l;
    GOOD(oct_lint_open(g, table, &l, err));
    return l;
}

static const oct_finding *only(const oct_lint *l, oct_finding_kind kind)
{
    const oct_finding *found = NULL;
    for (size_t i = 0; i < l->n_finding; i++) {
        if (l->finding[i].kind != kind)
            continue;
        assert_null(found);
        found = &l->finding[i];
    }
    return found;
}

/* ---- shared scales ---- */

static bool fits(oct_lint *l, const char *target, const char **why)
{
    oct_target *t;
    oct_lint_verdict v;
    GOOD(oct_target_open(target, &t, err));
    GOOD(oct_lint_judge(l, t, &v, err));
    *why = v.n_trap ? v.trap[0].text : NULL;
    oct_target_close(t);
    return v.fits;
}

/* A file fits no target that lacks one of its operators, be it quantized or not. */
TEST(operators_of_other_domains)
{
    static const struct {
        const char *op, *domain, *target, *why; /* NULL: it fits */
    } each[] = {
        { "FastGelu", "com.microsoft", "onnxruntime-x86", NULL },
        { "FastGelu", "com.microsoft", "qnn", NULL },
        { "FastGelu", "com.microsoft", "tensorrt", "the target has only operators of ONNX's own domain" },
        { "FastGelu", "com.microsoft", "litert", "the target has only operators of ONNX's own domain" },
        { "FastGelu", "com.microsoft", "generic", "the target has only operators of ONNX's own domain" },
        { "Plugin", "com.example", "onnxruntime-x86",
          "the operator is unknown: it is neither ONNX's nor ONNX Runtime's" },
        { "Plugin", "com.example", "octet", "Octet does not have this operator" },
        { "CropAndResize", "com.microsoft", "onnxruntime-x86", NULL }, /* which has it, though Octet does not know it */
        { "CropAndResize", "com.microsoft", "octet", "Octet does not have this operator" },
        { "Gelu", "", "octet", NULL },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(20);
        const char *why;
        const int y = NET_NODE(g, each[i].op, "other", "y", net_input(g, "x", OCT_F32, "1,4"));
        GOOD(oct_graph_set_opset(g, each[i].domain[0] ? each[i].domain : "", each[i].domain[0] ? 1 : 20, err));
        g->node[g->value[y].producer].domain = each[i].domain;
        net_output(g, y);
        oct_lint *l = examined(g, NULL);
        const bool fit = fits(l, each[i].target, &why);
        if (fit != !each[i].why || (why && strcmp(why, each[i].why) != 0))
            print_error("%s of '%s' for %s: fits %d, '%s'; wanted '%s'\n", each[i].op, each[i].domain, each[i].target,
                        fit, why ? why : "", each[i].why ? each[i].why : "");
        assert_int_equal(fit, !each[i].why);
        assert_true(!why == !each[i].why && (!why || strcmp(why, each[i].why) == 0));
        oct_lint_close(l);
        oct_graph_destroy(g);
    }
}

/* A detector's head: boxes up to `most` and scores side by side, as a float model. */
static oct_graph *head(float most)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "1,4,8");
    const int scores = NET_NODE(g, "Sigmoid", "sigmoid", "scores", x);
    const int boxes =
        NET_NODE(g, "Mul", "mul", "boxes",
                 NET_NODE(g, "Sigmoid", "other", "share", net_input(g, "z", OCT_F32, "1,4,8")), real(g, "size", most));
    net_output(g, NET_NODE(g, "Concat", "cat", "y", boxes, scores));
    net_int(g, "axis", 1);
    return g;
}

TEST(float_head_would_collapse)
{
    oct_graph *g = head(640);
    oct_lint *l = examined(g, NULL);
    const oct_finding *f = only(l, OCT_FINDING_COLLAPSE);
    assert_false(l->quantized);
    assert_non_null(f);
    assert_string_equal(f->name, "cat");
    assert_non_null(strstr(f->text, "'scores' reaches from 0 to 1"));
    assert_non_null(strstr(f->text, "would share has steps of 2.51: 1 of 256")); /* 640 / 255 */
    oct_lint_close(l);
    oct_graph_destroy(g);
    l = examined(g = head(4), NULL);
    assert_null(only(l, OCT_FINDING_COLLAPSE)); /* 64 of 256 are enough */
    oct_lint_close(l);
    oct_graph_destroy(g);
}

static void put_range(oct_calib *c, const char *name, float lo, float hi)
{
    oct_calib_tensor *t;
    assert_non_null(c);
    GOOD(oct_calib_add(c, name, &t, err));
    GOOD(oct_stats_update(&t->stats, (const float[]){ lo, hi }, 2, err));
}

/* Without what is known of their range, nothing is said; a table says it. */
TEST(tables_have_ranges)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "1,4,8"), z = net_input(g, "z", OCT_F32, "1,4,8");
    net_output(g, NET_NODE(g, "Concat", "cat", "y", x, z));
    net_int(g, "axis", 1);
    oct_lint *l = examined(g, NULL);
    assert_int_equal(l->n_finding, 0);
    oct_lint_close(l);
    oct_calib *table = oct_calib_create();
    put_range(table, "x", 0, 640);
    put_range(table, "z", -0.5f, 0.5f);
    l = examined(g, table);
    assert_non_null(only(l, OCT_FINDING_COLLAPSE));
    assert_non_null(strstr(l->finding[0].text, "'z' reaches from -0.5 to 0.5"));
    oct_lint_close(l);
    oct_calib_destroy(table);
    oct_graph_destroy(g);
}

static int quantized(oct_graph *g, int value, const char *name, float scale)
{
    char a[40], b[40], c[40];
    snprintf(a, sizeof a, "%s_scale", name);
    snprintf(b, sizeof b, "%s_codes", name);
    snprintf(c, sizeof c, "%s_zero", name);
    const int s = real(g, a, scale), z = code(g, c, -128);
    return NET_NODE(g, "DequantizeLinear", name, name, NET_NODE(g, "QuantizeLinear", b, b, value, s, z), s, z);
}

TEST(quantized_scores_collapse)
{
    oct_graph *g = net_graph(13);
    const int scores = NET_NODE(g, "Sigmoid", "sigmoid", "scores", net_input(g, "x", OCT_F32, "1,4,8"));
    net_output(g, quantized(g, scores, "wide", 2.5f));
    net_output(g, quantized(g, NET_NODE(g, "Tanh", "tanh", "t", net_input(g, "z", OCT_F32, "1,4,8")), "narrow",
                            2.0f / 255));
    oct_lint *l = examined(g, NULL);
    const oct_finding *f = only(l, OCT_FINDING_COLLAPSE);
    assert_true(l->quantized);
    assert_non_null(f);
    assert_non_null(
        strstr(f->text, "'scores' reaches from 0 to 1, and the scale that it has has steps of 2.5: 1 of 256"));
    oct_lint_close(l);
    oct_graph_destroy(g);
}

/* A Conv of float weights between quantizers would be rounded by ONNX Runtime, unless each channel has a scale of its
 * own. */
TEST(real_layers_are_rounded)
{
    for (int channels = 0; channels < 2; channels++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", OCT_F32, "1,2,4,4");
        const int s = real(g, "s", 0.02f), z = code(g, "z", 0);
        const int q = NET_NODE(g, "QuantizeLinear", "xq", "xq", x, s, z);
        const int ss = channels ? net_const(g, "ss", OCT_F32, "2", (const float[]){ 0.02f, 0.02f }) : s;
        const int d = NET_NODE(g, "DequantizeLinear", "xd", "xd", q, ss,
                               channels ? net_const(g, "zz", OCT_S8, "2", (const int8_t[]){ 0, 0 }) : z);
        const int y = NET_NODE(g, "Conv", "conv", "y", d, net_random(g, "w", "3,2,1,1", 5));
        net_output(g, quantized(g, y, "out", 0.1f));
        oct_lint *l = examined(g, NULL);
        const oct_finding *f = only(l, OCT_FINDING_ROUNDS);
        assert_int_equal(f == NULL, channels);
        if (f) {
            assert_string_equal(f->name, "conv");
            assert_true(oct_finding_concerns(f, target_named("qnn")) &&
                        oct_finding_concerns(f, target_named("onnxruntime-x86")));
            assert_false(oct_finding_concerns(f, target_named("tensorrt")) ||
                         oct_finding_concerns(f, target_named("openvino")));
        }
        oct_lint_close(l);
        oct_graph_destroy(g);
    }
}

/* ---- sums, and what fits ---- */

/* A product of so many terms whose weights are all `w`, between quantizers. */
static oct_graph *product(int depth, int8_t w)
{
    char dims[30];
    oct_graph *g = net_graph(13);
    int8_t *codes = oct_arena_alloc(g->arena, (size_t)depth);
    const uint8_t zero = 0;
    assert_non_null(codes);
    memset(codes, w, (size_t)depth);
    const int s = real(g, "s", 0.02f), z = net_const(g, "zero", OCT_U8, "", &zero);
    snprintf(dims, sizeof dims, "1,%d", depth);
    const int x = NET_NODE(g, "DequantizeLinear", "xr", "xr",
                           NET_NODE(g, "QuantizeLinear", "xq", "xq", net_input(g, "x", OCT_F32, dims), s, z), s, z);
    snprintf(dims, sizeof dims, "%d,1", depth);
    const int m = NET_NODE(g, "DequantizeLinear", "wr", "wr", net_const(g, "w", OCT_S8, dims, codes),
                           real(g, "ws", 0.1f), code(g, "wz", 0));
    const int y = NET_NODE(g, "MatMul", "product", "m", x, m);
    net_output(g,
               NET_NODE(g, "DequantizeLinear", "yr", "yr", NET_NODE(g, "QuantizeLinear", "yq", "yq", y, s, z), s, z));
    return g;
}

TEST(sums_wrap_and_saturate)
{
    static const struct {
        int depth;
        int8_t w;
        bool wraps, saturates;
    } each[] = {
        { 8, 64, false, false },     /* 255 * (64 + 64) = 32640 */
        { 8, 65, false, true },      /* 33150 is beyond 32767 */
        { 66311, 127, false, true }, /* 66311 * 127 * 255 = 2147481735, just below 2^31 */
        { 66312, 127, true, true },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = product(each[i].depth, each[i].w);
        oct_lint *l = examined(g, NULL);
        oct_lint_verdict v;
        assert_int_equal(only(l, OCT_FINDING_WRAPS) != NULL, each[i].wraps);
        assert_int_equal(only(l, OCT_FINDING_SATURATES) != NULL, each[i].saturates);
        GOOD(oct_lint_judge(l, target_named("onnxruntime-x86"), &v, err));
        assert_int_equal(v.fits, !each[i].saturates);
        GOOD(oct_lint_judge(l, target_named("onnxruntime-vnni"), &v, err));
        assert_true(v.fits && v.layers == 1 && v.lost == 0 && v.integer == 1);
        oct_lint_close(l);
        oct_graph_destroy(g);
    }
}

/* A Conv of 3 channels and 3 taps with two weights that are not 0. */
static oct_graph *two_weights(int a, int b)
{
    oct_graph *g = net_graph(13);
    int8_t w[9] = { 0 };
    const uint8_t zero = 0;
    w[a] = w[b] = 127;
    const int s = real(g, "s", 0.02f), z = net_const(g, "zero", OCT_U8, "", &zero);
    const int x =
        NET_NODE(g, "DequantizeLinear", "xr", "xr",
                 NET_NODE(g, "QuantizeLinear", "xq", "xq", net_input(g, "x", OCT_F32, "1,3,1,9"), s, z), s, z);
    const int m = NET_NODE(g, "DequantizeLinear", "wr", "wr", net_const(g, "w", OCT_S8, "1,3,1,3", w),
                           real(g, "ws", 0.1f), code(g, "wz", 0));
    const int y = NET_NODE(g, "Conv", "product", "m", x, m);
    net_output(g,
               NET_NODE(g, "DequantizeLinear", "yr", "yr", NET_NODE(g, "QuantizeLinear", "yq", "yq", y, s, z), s, z));
    return g;
}

/* Which weights are added together depends on the target. */
TEST(sums_saturate_in_some_targets)
{
    static const struct {
        int a, b; /* ic * 3 + tap */
        bool along_k, in_taps;
    } each[] = { { 0, 3, true, true }, { 6, 1, true, false }, { 1, 4, false, true }, { 0, 1, false, false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = two_weights(each[i].a, each[i].b);
        oct_lint *l = examined(g, NULL);
        oct_lint_verdict v;
        GOOD(oct_lint_judge(l, target_named("onnxruntime-x86"), &v, err));
        assert_int_equal(v.saturating, each[i].along_k);
        GOOD(oct_lint_judge(l, target_named("openvino"), &v, err));
        assert_int_equal(v.saturating, each[i].in_taps);
        GOOD(oct_lint_judge(l, target_named("openvino-vnni"), &v, err));
        assert_int_equal(v.saturating, 0);
        oct_lint_close(l);
        oct_graph_destroy(g);
    }
}

/* Two activations: OpenVINO multiplies them on integers if both zero points are in the middle, or that of the first at
 * the end. */
TEST(products_of_activations_saturate)
{
    static const struct {
        uint8_t a, b;
        bool saturates;
    } each[] = { { 128, 128, true }, { 0, 128, true },    { 128, 0, false },
                 { 0, 0, false },    { 100, 128, false }, { 128, 127, false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        int in[2];
        for (int k = 0; k < 2; k++) {
            const char *const names[2][5] = { { "a", "az", "aq", "ar", "as" }, { "b", "bz", "bq", "br", "bs" } };
            const int s = real(g, names[k][4], 0.02f),
                      z = net_const(g, names[k][1], OCT_U8, "", k ? &each[i].b : &each[i].a);
            in[k] = NET_NODE(g, "DequantizeLinear", names[k][3], names[k][3],
                             NET_NODE(g, "QuantizeLinear", names[k][2], names[k][2],
                                      net_input(g, names[k][0], OCT_F32, "4,4"), s, z),
                             s, z);
        }
        net_output(g, NET_NODE(g, "MatMul", "product", "m", in[0], in[1]));
        oct_lint *l = examined(g, NULL);
        oct_lint_verdict v;
        GOOD(oct_lint_judge(l, target_named("openvino"), &v, err));
        assert_int_equal(v.saturating, each[i].saturates);
        GOOD(oct_lint_judge(l, target_named("onnxruntime-x86"), &v, err));
        assert_int_equal(v.saturating, 0);
        oct_lint_close(l);
        oct_graph_destroy(g);
    }
}

/* An s8 activation that two nodes read stays s8 in ONNX Runtime. */
TEST(products_of_signed_activations_saturate)
{
    const int8_t zero = 0;
    for (int readers = 1; readers < 3; readers++) {
        oct_graph *g = net_graph(13);
        const int s = real(g, "s", 0.02f), z = net_const(g, "z", OCT_S8, "", &zero);
        const int a =
            NET_NODE(g, "DequantizeLinear", "ar", "ar",
                     NET_NODE(g, "QuantizeLinear", "aq", "aq", net_input(g, "a", OCT_F32, "4,4"), s, z), s, z);
        const int b =
            NET_NODE(g, "DequantizeLinear", "br", "br",
                     NET_NODE(g, "QuantizeLinear", "bq", "bq", net_input(g, "b", OCT_F32, "4,4"), s, z), s, z);
        net_output(g, NET_NODE(g, "MatMul", "product", "m", a, b));
        if (readers > 1)
            net_output(g, NET_NODE(g, "Relu", "relu", "r", b));
        oct_lint *l = examined(g, NULL);
        oct_lint_verdict v;
        GOOD(oct_lint_judge(l, target_named("onnxruntime-x86"), &v, err));
        assert_int_equal(v.saturating, readers > 1);
        GOOD(oct_lint_judge(l, target_named("onnxruntime-vnni"), &v, err));
        assert_int_equal(v.saturating, 0);
        oct_lint_close(l);
        oct_graph_destroy(g);
    }
}
