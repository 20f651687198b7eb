/* Numbers drawn so that a network has the moments that its normalizations remember. */
#include "converted.h"

#include "quant/inputs/norm_draw.h"

TEST_GROUP(folder_make, folder_remove);

/* Channels of which BatchNormalization remembers means of 0.5 k and deviations within twice what the samples give: in
 * the copy that takes them as the training data both are restored. */
TEST(remembered_moments_are_restored)
{
    static float y[MOST];
    work *w = new_work();
    oct_graph *g = w->m.graph, *like;
    double sum[4] = { 0 }, squares[4] = { 0 };
    oct_norm_target *t;
    size_t n;
    set_input(w, "1,3,6,6");
    const int c = NET_NODE(g, "Conv", "a", "a_out", g->input[0], net_random(g, "aw", "4,3,1,1", 51));
    const int k[] = { NET_F32(g, "gamma", "4", 0.6f, -0.8f, 1.1f, 1.4f), NET_F32(g, "beta", "4", 0, 0.5f, 1, 1.5f),
                      NET_F32(g, "mu", "4", 0.1f, 0.2f, 0.3f, 0.4f), NET_F32(g, "var", "4", 0.8f, 0.4f, 0.4f, 0.4f) };
    const int y0 = NET_NODE(g, "BatchNormalization", "bn", "y", c, k[0], k[1], k[2], k[3]);
    net_float(g, "epsilon", 0.4f);
    net_output(g, y0);
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_norm_targets(g, g->arena, &t, &n, err));
    assert_true(n == 1 && strcmp(t->value, "y") == 0 && t->channels == 4);
    assert_true(fabs((double)t->deviation[0] - 0.6 * sqrt(0.8 / 1.2)) < 1e-6 &&
                fabs((double)t->deviation[1] - 0.8 * sqrt(0.5)) < 1e-6);
    decide(w);
    GOOD(oct_synthetic_graph(w->m.graph, t, n, w->src, 1, &like, err));
    const int rows = w->rows[0] + w->rows[1];
    for (int r = 0; r < rows; r++) {
        const int row = r < w->rows[0] ? w->row[0][r] : w->row[1][r - w->rows[0]];
        assert_int_equal(value_of(like, "y", w->x[row], y), 4 * 36);
        for (int i = 0; i < 4 * 36; i++) {
            sum[i / 36] += (double)y[i] / (36 * rows);
            squares[i / 36] += (double)y[i] * (double)y[i] / (36 * rows);
        }
    }
    for (int o = 0; o < 4; o++) {
        assert_true(fabs(sum[o] - 0.5 * o) < 1e-3);
        const double ratio = sqrt(squares[o] - sum[o] * sum[o]) / (double)t->deviation[o];
        if (fabs(ratio - 1) > 1e-3)
            fail_msg("channel %d: %g of the deviation", o, ratio);
    }
    oct_graph_destroy(like);
    free_work(w);
}

/* A normalized layer y, what follows from it (r, its positive part; s, the sum of both; p, means over the positions)
 * and what does not: z, which a layer without a normalization makes, and a sum with that. */
static work *new_normalized(oct_norm_target **t, size_t *n)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,3,8,8");
    const int c = NET_NODE(g, "Conv", "a", "a_out", g->input[0], net_random(g, "aw", "3,3,1,1", 61));
    const int k[] = { NET_F32(g, "gamma", "3", 2, 0.5f, 1), NET_F32(g, "beta", "3", 0, 4, -8),
                      NET_F32(g, "mu", "3", 0.1f, 0.2f, 0.3f), NET_F32(g, "var", "3", 1, 1, 1) };
    const int y = NET_NODE(g, "BatchNormalization", "bn", "y", c, k[0], k[1], k[2], k[3]);
    net_float(g, "epsilon", 0);
    const int r = NET_NODE(g, "Relu", "relu", "r", y), s = NET_NODE(g, "Add", "add", "s", y, r);
    const int p = NET_NODE(g, "GlobalAveragePool", "pool", "p", r);
    const int z = NET_NODE(g, "Conv", "b", "z", s, net_random(g, "bw", "3,3,1,1", 62));
    net_output(g, NET_NODE(g, "Add", "end", "u", z, s));
    net_output(g, p);
    GOOD(oct_infer_shapes(g, err));
    GOOD(oct_norm_targets(g, g->arena, t, n, err));
    decide(w); /* folds the normalization */
    return w;
}

/* Means behind clamps are those of the drawn distribution: amplitudes are uniform in 0.4 to 1.497, so that of the
 * positive part of a channel with mean 0 is its deviation times 0.9485 / sqrt(2 pi). Numbers stay below six
 * amplitudes. */
TEST(drawn_numbers_follow_the_graph)
{
    static const char *const names[] = { "x", "y", "r", "s", "p", "z", "u" };
    static const int axes[OCT_COUNT(names)] = { 0, 1, 1, 1, 1, 1, 1 };
    static const double beta[] = { 0, 4, -8 }, gamma[] = { 2, 0.5, 1 };
    const oct_norm_draw_opts o = { .values = names, .axes = axes, .n = OCT_COUNT(names), .threads = 2 };
    oct_norm_target *t;
    size_t n;
    work *w = new_normalized(&t, &n);
    oct_calib *drawn = oct_calib_create();
    GOOD(oct_norm_draw(w->m.graph, t, n, &o, drawn, err));
    assert_int_equal(drawn->n_tensors, 4);
    assert_null(oct_calib_find(drawn, "x"));
    assert_null(oct_calib_find(drawn, "z"));
    assert_null(oct_calib_find(drawn, "u"));
    const oct_calib_tensor *y = oct_calib_find(drawn, "y"), *r = oct_calib_find(drawn, "r"),
                           *s = oct_calib_find(drawn, "s"), *p = oct_calib_find(drawn, "p");
    const double clamped[] = { 2 * 0.9485 * 0.39894, 4, 0 };
    for (int i = 0; i < 3; i++) {
        const double mean = oct_chan_mean(&y->chan.c[i]), positive = oct_chan_mean(&r->chan.c[i]);
        assert_true(fabs(mean - beta[i]) < 1e-4 * gamma[i]);
        assert_true(fabs(positive - clamped[i]) < 0.2 * gamma[i]);
        assert_true(fabs(oct_chan_mean(&s->chan.c[i]) - mean - positive) < 1e-4);
        assert_true(fabs(oct_chan_mean(&p->chan.c[i]) - positive) < 1e-4);
        assert_true((double)y->chan.c[i].max > beta[i] + 2 * gamma[i] &&
                    (double)y->chan.c[i].max < beta[i] + 6 * 1.5 * gamma[i]);
        assert_true((double)y->chan.c[i].min < beta[i] - 2 * gamma[i] &&
                    (double)y->chan.c[i].min > beta[i] - 6 * 1.5 * gamma[i]);
    }
    assert_true(p->chan.c[0].max < r->chan.c[0].max && p->chan.c[0].max > 2 * p->chan.c[0].min);
    oct_calib_destroy(drawn);
    free_work(w);
}

/* The same bits from one thread and from several; nothing where nothing is remembered. */
TEST(drawn_numbers_are_the_same)
{
    static const char *const names[] = { "y", "s" };
    static const int axes[] = { 1, 1 };
    oct_norm_draw_opts o = { .values = names, .axes = axes, .n = 2, .threads = 1 };
    oct_calib *c[3];
    oct_norm_target *t;
    size_t n;
    work *w = new_normalized(&t, &n);
    for (int i = 0; i < 3; i++, o.threads = 3) {
        c[i] = oct_calib_create();
        GOOD(oct_norm_draw(w->m.graph, t, i < 2 ? n : 0, &o, c[i], err));
    }
    assert_int_equal(c[2]->n_tensors, 0);
    for (size_t i = 0; i < 2; i++) {
        const oct_calib_tensor *a = oct_calib_find(c[0], names[i]), *b = oct_calib_find(c[1], names[i]);
        assert_true(oct_stats_equal(&a->stats, &b->stats));
        for (int k = 0; k < 3; k++)
            assert_true(oct_chan_mean(&a->chan.c[k]) == oct_chan_mean(&b->chan.c[k]));
    }
    for (int i = 0; i < 3; i++)
        oct_calib_destroy(c[i]);
    free_work(w);
}
