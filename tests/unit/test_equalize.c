/* Equalization of channels. */
#include "converted.h"

#include "eval/run/scaled.h"

TEST_GROUP(folder_make, folder_remove);

/* Channel o of what a depthwise layer reads has 2^-o of the range of the first one where `unequal`, and counts as much;
 * else all are the same. */
static work *converted_depthwise(bool unequal, bool equalized)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,4,8,8");
    const int first = net_random(g, "aw", "8,4,1,1", 21), second = net_random(g, "bw", "8,1,3,3", 22);
    float *a = (float *)(uintptr_t)g->value[first].constant->data,
          *b = (float *)(uintptr_t)g->value[second].constant->data;
    for (int i = 0; i < 32; i++)
        a[i] = unequal ? ldexpf(a[i], -(i / 4)) : a[i % 4];
    for (int i = 0; i < 72; i++)
        b[i] = unequal ? ldexpf(b[i], i / 9) : b[i % 9];
    int y = NET_NODE(g, "LeakyRelu", "act", "r", NET_NODE(g, "Conv", "a", "a_out", g->input[0], first));
    y = NET_NODE(g, "Conv", "b", "b_out", y, second);
    net_int(g, "group", 8);
    net_output(g, NET_NODE(g, "Conv", "head", "y", y, net_random(g, "hw", "4,8,1,1", 23)));
    if (equalized)
        on(w, "equalize");
    decide(w);
    return w;
}

TEST(unequal_channels_are_equalized)
{
    static float y[2][256], r[2][512];
    work *w[2] = { converted_depthwise(true, false), converted_depthwise(true, true) };
    const oct_method_result *m = method(w[1], "equalize");
    const double before = to_db(real_noise(w[0], "y", 1)), after = to_db(real_noise(w[1], "y", 1));
    assert_true(m->ran && m->after > m->before + 6 && after > before + 6);
    assert_string_equal(m->choice, "equalized 1 pair of layers");
    for (int k = 0; k < 2; k++) {
        const size_t n = value_of(w[k]->c.job->g, "y", w[0]->x[0], y[k]);
        assert_int_equal(n, 4 * 36);
        assert_int_equal(value_of(w[k]->c.job->g, "r", w[0]->x[0], r[k]), 512);
    }
    assert_memory_equal(y[0], y[1], 4 * 36 * sizeof(float));
    /* What was recorded takes the factors back. */
    oct_scaled_channels *scaled;
    size_t n;
    GOOD(oct_scaled_read(oct_buf_str(&w[1]->c.scaled), w[1]->c.arena, &scaled, &n, err));
    assert_true(n == 2 && memcmp(r[0], r[1], sizeof r[0]) != 0);
    const oct_scaled_channels *s = oct_scaled_find(scaled, n, "r");
    assert_true(s && s->axis == 1 && s->n == 8 && s->factor[7] / s->factor[0] >= 16);
    oct_scaled_undo(s, 4, (const int64_t[]){ 1, 8, 8, 8 }, false, r[1]);
    assert_memory_equal(r[0], r[1], sizeof r[0]);
    free_work(w[0]);
    free_work(w[1]);
}

/* Two depthwise layers between 1x1 layers, with ReLU6 behind each but the last, as in MobileNet: random weights, with
 * which the channels reach from 0.16 to 6. */
static work *converted_relu6(uint32_t seed, bool equalized)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    char dims[30];
    const int channels = 8 + 4 * (int)(seed % 3);
    set_input(w, seed % 2 ? "1,3,12,12" : "1,4,9,11");
    for (int r = 0; r < ROWS; r++)
        net_fill(w->x[r], w->size, 1000 * seed + (uint32_t)r);
    const int six = NET_F32(g, "six", "", 6), least = NET_F32(g, "least", "", 0);
    int y = g->input[0];
    for (int k = 0; k < 4; k++) {
        char name[5][20];
        static const char *const what[] = { "w%d", "conv%d", "c%d", "act%d", "r%d" };
        for (int i = 0; i < 5; i++)
            snprintf(name[i], sizeof name[i], what[i], k);
        const bool depthwise = k == 1 || k == 2;
        snprintf(dims, sizeof dims, depthwise ? "%d,%d,3,3" : "%d,%d,1,1", k == 3 ? 5 : channels,
                 depthwise ? 1
                 : k == 0  ? (seed % 2 ? 3 : 4)
                           : channels);
        const int v = net_random(g, name[0], dims, 10 * seed + (uint32_t)k);
        const oct_tensor *t = g->value[v].constant;
        float *m = (float *)(uintptr_t)t->data;
        for (int64_t i = 0; k < 3 && i < t->count; i++) { /* a channel is up to 2^5 times another, and reads it so */
            const int c = (int)(i / (t->count / channels)), spread = (int)((uint32_t)c * 7 + seed) % 6;
            m[i] = ldexpf(fabsf(m[i]), k == 0 ? 3 - spread : k == 1 ? spread - 5 - spread / 2 : spread / 2 - 2);
        }
        y = NET_NODE(g, "Conv", name[1], k == 3 ? "y" : name[2], y, v);
        if (depthwise)
            net_int(g, "group", channels);
        if (k < 3)
            y = NET_NODE(g, "Clip", name[3], name[4], y, least, six);
    }
    net_output(g, y);
    if (equalized)
        on(w, "equalize-clamped");
    decide(w);
    return w;
}

/* The function stays the same to the bit on all samples, as no scaled channel reaches the bound. */
TEST(channels_are_equalized_through_relu6)
{
    static const uint32_t seeds[] = { 1, 3, 4, 5, 6 };
    for (size_t i = 0; i < OCT_COUNT(seeds); i++) {
        static float y[2][MOST];
        const uint32_t seed = seeds[i];
        work *w[2] = { converted_relu6(seed, false), converted_relu6(seed, true) };
        const oct_method_result *m = method(w[1], "equalize-clamped");
        const double before = to_db(real_noise(w[0], "y", 1)), after = to_db(real_noise(w[1], "y", 1));
        assert_true(m->ran && m->after > m->before + 1 && after > before + 1);
        float most = 0;
        for (int r = 0; r < ROWS; r++)
            for (size_t n = value_of(w[0]->c.job->g, "r0", w[0]->x[r], y[0]); n-- > 0;)
                most = fmaxf(most, y[0][n]);
        assert_true(most == 6);
        for (int r = 0; r < ROWS; r++) {
            const size_t n = value_of(w[0]->c.job->g, "y", w[0]->x[r], y[0]);
            assert_int_equal(value_of(w[1]->c.job->g, "y", w[0]->x[r], y[1]), n);
            assert_memory_equal(y[0], y[1], n * sizeof(float));
        }
        free_work(w[0]);
        free_work(w[1]);
    }
}

TEST(equal_channels_stay)
{
    work *w = converted_depthwise(false, true);
    const oct_method_result *m = method(w, "equalize");
    assert_true(!m->ran && strstr(m->why, "alike") && w->c.scaled.len == 0);
    free_work(w);
}
