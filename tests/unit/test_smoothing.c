/* Ranges shared between activations and weights. */
#include "converted.h"

TEST_GROUP(folder_make, folder_remove);

enum { CHANNELS = 16, TOKENS = 4 };

typedef enum normed { NORMED_ALONE, NORMED_AND_SUMMED, NORMED_SPELLED_OUT } normed;

/* Normalization with a factor that gives channel 3 a range of its own. */
static int build_norm(oct_graph *g, normed kind)
{
    float gamma[CHANNELS];
    for (int c = 0; c < CHANNELS; c++)
        gamma[c] = c == 3 ? 25 : 0.8f + 0.02f * (float)c;
    const int x = g->input[0], factor = net_const(g, "gamma", OCT_F32, "16", gamma),
              shift = net_random(g, "beta", "16", 51);
    if (kind != NORMED_SPELLED_OUT)
        return NET_NODE(g, "LayerNormalization", "norm", "n", x, factor, shift);
    const int m = NET_NODE(g, "ReduceMean", "mean", "m", x);
    NET_INTS(g, "axes", -1);
    const int d = NET_NODE(g, "Sub", "sub", "d", x, m), d2 = NET_NODE(g, "Mul", "square", "d2", d, d),
              v = NET_NODE(g, "ReduceMean", "var", "v", d2);
    NET_INTS(g, "axes", -1);
    const int e = NET_NODE(g, "Add", "eps", "e", v, NET_F32(g, "small", "", 1e-5f)),
              q = NET_NODE(g, "Sqrt", "sqrt", "q", e);
    const int u = NET_NODE(g, "Div", "div", "u", d, q);
    return NET_NODE(g, "Add", "shift", "n", NET_NODE(g, "Mul", "factor", "f", u, factor), shift);
}

/* Weights of a layer that counts channel 3 as much as the others. */
static int even_weights(oct_graph *g, const char *name, float larger, uint32_t seed)
{
    float w[CHANNELS * CHANNELS];
    net_fill(w, CHANNELS * CHANNELS, seed);
    for (int o = 0; o < CHANNELS; o++)
        w[3 * CHANNELS + o] /= larger;
    return net_const(g, name, OCT_F32, "16,16", w);
}

/* Two layers behind a normalization. `against`: the large channel makes most of their outputs, so that the others need
 * no finer steps. */
static work *smoothed(normed kind, bool against, oct_graph **before)
{
    work *w = new_work();
    oct_graph_destroy(w->m.graph);
    oct_graph *g = w->m.graph = net_graph(17);
    set_input(w, "1,4,16");
    const float larger = against ? 1 : 25;
    const int n = build_norm(g, kind), a = NET_NODE(g, "MatMul", "a", "ya", n, even_weights(g, "wa", larger, 52));
    const int b = NET_NODE(g, "MatMul", "b", "yb", n, even_weights(g, "wb", larger, 53));
    const int y = NET_NODE(g, "Add", "last", "y", a, b);
    net_output(g, kind == NORMED_AND_SUMMED ? NET_NODE(g, "Add", "sum", "z", y, n) : y);
    if (before)
        GOOD(oct_graph_clone(g, before, err));
    on(w, "smooth");
    decide(w);
    return w;
}

static void find_largest(const work *w, const oct_graph *before, float *x, float *weights)
{
    static float n[MOST];
    const float *const wa = before->value[oct_graph_find(before, "wa")].constant->data,
                       *const wb = before->value[oct_graph_find(before, "wb")].constant->data;
    for (int c = 0; c < CHANNELS; c++) {
        x[c] = weights[c] = 0;
        for (int o = 0; o < CHANNELS; o++)
            weights[c] = fmaxf(weights[c], fmaxf(fabsf(wa[c * CHANNELS + o]), fabsf(wb[c * CHANNELS + o])));
    }
    for (int k = 0; k < w->rows[0]; k++) {
        assert_int_equal(value_of(before, "n", w->x[w->row[0][k]], n), TOKENS * CHANNELS);
        for (int i = 0; i < TOKENS * CHANNELS; i++)
            x[i % CHANNELS] = fmaxf(x[i % CHANNELS], fabsf(n[i]));
    }
}

static void same_function(const work *w, const oct_graph *before, const char *output)
{
    static float want[MOST], got[MOST];
    for (int r = 0; r < ROWS; r++) {
        const size_t n = value_of(before, output, w->x[r], want);
        assert_int_equal(value_of(w->c.job->g, output, w->x[r], got), n);
        assert_memory_equal(got, want, n * sizeof *got);
    }
}

static const float *constant_of(const oct_graph *g, const char *node, int slot)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(g->node[g->order[i]].name, node) == 0)
            return g->value[g->node[g->order[i]].in[slot]].constant->data;
    fail_msg("no node '%s'", node);
    return NULL;
}

/* The factors, from the definition; their constants are on both sides of the layers. */
TEST(smoothing_shares_ranges)
{
    static const char *const factor[] = { "norm", "n_smoothed_Mul", "factor" }, *const shift[] = { "norm", NULL,
                                                                                                   "shift" };
    for (normed kind = NORMED_ALONE; kind <= NORMED_SPELLED_OUT; kind++) {
        oct_graph *before;
        float x[CHANNELS], weights[CHANNELS];
        work *w = smoothed(kind, false, &before);
        const oct_method_result *r = method(w, "smooth");
        const oct_graph *g = w->c.job->g;
        assert_true(r->ran && r->after > r->before + 3);
        same_function(w, before, kind == NORMED_AND_SUMMED ? "z" : "y");
        find_largest(w, before, x, weights);
        double mean = 0;
        for (int c = 0; c < CHANNELS; c++)
            mean += 0.5 * log2((double)(x[c] / weights[c])) / CHANNELS;
        const float *now = constant_of(g, factor[kind], 1), *wa = constant_of(g, "a", 1), *wb = constant_of(g, "b", 1);
        const float *old = before->value[oct_graph_find(before, "gamma")].constant->data,
                    *was = constant_of(before, "a", 1), *wbs = constant_of(before, "b", 1);
        for (int c = 0; c < CHANNELS; c++) {
            const float f = (float)exp2(rint(mean - 0.5 * log2((double)(x[c] / weights[c]))));
            assert_true(now[c] == f * (kind == NORMED_AND_SUMMED ? 1 : old[c]));
            for (int o = 0; o < CHANNELS; o++)
                assert_true(wa[c * CHANNELS + o] * f == was[c * CHANNELS + o] &&
                            wb[c * CHANNELS + o] * f == wbs[c * CHANNELS + o]);
            if (shift[kind])
                assert_true(constant_of(g, shift[kind], kind == NORMED_ALONE ? 2 : 1)[c] ==
                            f * ((const float *)before->value[oct_graph_find(before, "beta")].constant->data)[c]);
        }
        if (kind == NORMED_AND_SUMMED) /* the sum reads what it read */
            assert_int_equal(g->node[node_named(w, "sum")].in[1], oct_graph_find(g, "n"));
        oct_buf policy = OCT_BUF_INIT; /* read again it is checked before the product is there */
        oct_conversion_put_policy(&w->c, &policy);
        assert_true(strstr(oct_buf_str(&policy), "name:a ") && !strstr(oct_buf_str(&policy), "name:n_smoothed_Mul"));
        assert_true(!!strstr(oct_buf_str(&policy), "value:n_smoothed ") == (kind == NORMED_AND_SUMMED));
        oct_buf_free(&policy);
        oct_graph_destroy(before);
        free_work(w);
    }
}

TEST(smoothing_stays_where_a_check_says_so)
{
    for (normed kind = NORMED_ALONE; kind <= NORMED_SPELLED_OUT; kind++) {
        oct_graph *before;
        work *w = smoothed(kind, true, &before);
        const oct_method_result *r = method(w, "smooth");
        assert_true(r->ran && strstr(r->choice, "channels stay") && r->after == r->before);
        same_function(w, before, kind == NORMED_AND_SUMMED ? "z" : "y");
        assert_int_equal(oct_graph_find(w->c.job->g, "n_smoothed"), -1);
        assert_memory_equal(constant_of(w->c.job->g, "a", 1), constant_of(before, "a", 1),
                            CHANNELS * CHANNELS * sizeof(float));
        oct_graph_destroy(before);
        free_work(w);
    }
}
