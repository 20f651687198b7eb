/* Ranges and observers, chosen by their loss at what decides of the outputs. */
#include "converted.h"

#include "quant/job/annotate.h"
#include "quant/job/placed.h"

TEST_GROUP(folder_make, folder_remove);

/* One value of each sample's first channel is 300 times as large as all others, and nothing reads that channel. */
static void build_unread_peaks(work *w)
{
    oct_graph *g = w->m.graph;
    set_input(w, "1,4,16,16");
    for (int r = 0; r < ROWS; r++)
        w->x[r][17 * r % 256] = 300;
    const int stem = net_random(g, "aw", "8,4,1,1", 5);
    for (int o = 0; o < 8; o++)
        ((float *)(uintptr_t)g->value[stem].constant->data)[4 * o] = 0;
    const int a = NET_NODE(g, "Conv", "a", "a_out", g->input[0], stem, net_random(g, "ab", "8", 6));
    const int r = NET_NODE(g, "Relu", "relu", "r", a);
    net_output(g, NET_NODE(g, "Conv", "b", "y", r, net_random(g, "bw", "4,8,3,3", 7)));
}

/* What a tensor's readers do not use is clipped, which by its own error no range should; no observer for the whole
 * model is better. */
TEST(unread_peaks_are_clipped)
{
    static const char *const observer[] = {
        NULL, "minmax", "hist-mse=4", "hist-mse", "hist-percentile=99.99", "hist-percentile=99.9"
    };
    double noise[OCT_COUNT(observer)];
    for (size_t k = 0; k < OCT_COUNT(observer); k++) {
        work *w = new_work();
        build_unread_peaks(w);
        w->o.observer = observer[k];
        on(w, "observer-search");
        decide(w);
        noise[k] = real_noise(w, "y", 0) + real_noise(w, "y", 1);
        const oct_method_result *r = method(w, "observer-search");
        assert_int_equal(r->ran, k == 0);
        if (k == 0) {
            const oct_quant *q = oct_quant_of(w->c.job, w->c.job->g->input[0]);
            assert_true(q->scale[0] < 4.0f / 255);
            /* Of ranges alone: weights are rounded as well. */
            assert_true(r->after > r->before + 10 && r->after > to_db(noise[0] / 2) &&
                        r->after < to_db(noise[0] / 2) + 6);
        }
        free_work(w);
    }
    for (size_t k = 1; k < OCT_COUNT(observer); k++)
        assert_true(noise[0] <= 1.02 * noise[k]);
    assert_true(100 * noise[0] < noise[1]);
}

/* Differences of channels that are nearly equal, so that the rounding of the input is what counts. One sample is half
 * as large again as others, and no value is rare. */
static void build_differences(work *w)
{
    enum { CHANNEL = 32 * 32 };
    oct_graph *g = w->m.graph;
    set_input(w, "1,8,32,32");
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 8 * CHANNEL; i++) {
            if (i / CHANNEL % 2)
                w->x[r][i] = 0.95f * w->x[r][i - CHANNEL] + 0.05f * w->x[r][i];
            w->x[r][i] *= r == 4 && i / CHANNEL % 2 == 0 ? 1.5f : 1.0f;
        }
    const int ones = net_random(g, "w", "4,8,1,1", 8);
    for (int i = 0; i < 32; i++)
        ((float *)(uintptr_t)g->value[ones].constant->data)[i] = i % 2 ? -1 : 1;
    net_output(g, NET_NODE(g, "Conv", "difference", "y", g->input[0], ones));
}

static float on_grid(float x, float lo, float hi)
{
    const float scale = (hi - lo) / 255, zp = rintf(-lo / scale);
    return (fminf(fmaxf(rintf(x / scale) + zp, 0), 255) - zp) * scale;
}

/* Output SQNR of a half of build_differences's samples with ranges from lo to hi. */
static double difference_sqnr(const work *w, int half, float lo, float hi)
{
    double noise = 0, signal = 0;
    for (int i = 0; i < w->rows[half]; i++)
        for (int p = 0; p < 32 * 32; p++) {
            double real = 0, got = 0;
            for (int c = 0; c < 8; c++) {
                const float x = w->x[w->row[half][i]][c * 32 * 32 + p];
                real += c % 2 ? -x : x;
                got += c % 2 ? -on_grid(x, lo, hi) : on_grid(x, lo, hi);
            }
            signal += real * real;
            noise += (real - got) * (real - got);
        }
    return to_db(noise / signal);
}

/* The SQNR of the mean of the noise that two SQNRs stand for. */
static double mean_of(double db, double other)
{
    return to_db((pow(10, -db / 10) + pow(10, -other / 10)) / 2);
}

/* The statistics of each half are those of its own samples, both together those of all; what is judged on one is the
 * mean noise with ranges of the other and of all. */
TEST(ranges_are_judged_on_other_samples)
{
    work *w = new_work();
    build_differences(w);
    w->o.observer = NULL;
    on(w, "observer-search");
    decide(w);
    const char *name = w->m.graph->value[w->m.graph->input[0]].name;
    float lo[2] = { INFINITY, INFINITY }, hi[2] = { -INFINITY, -INFINITY };
    oct_stats both;
    oct_stats_init(&both);
    for (int half = 0; half < 2; half++) {
        const oct_stats *s = &oct_calib_find(w->c.half[half], name)->stats;
        for (int i = 0; i < w->rows[half]; i++)
            for (int k = 0; k < 8 * 32 * 32; k++) {
                lo[half] = fminf(lo[half], w->x[w->row[half][i]][k]);
                hi[half] = fmaxf(hi[half], w->x[w->row[half][i]][k]);
            }
        assert_true(s->min == lo[half] && s->max == hi[half] && s->samples == (uint64_t)w->rows[half]);
        GOOD(oct_stats_merge(&both, s, err));
    }
    assert_true(oct_stats_equal(&both, &oct_calib_find(w->c.calib, name)->stats));
    oct_stats_free(&both);
    const oct_method_result *r = method(w, "observer-search");
    assert_string_equal(r->choice, "minmax");
    double other[2], own[2], all[2];
    for (int half = 0; half < 2; half++) {
        other[half] = difference_sqnr(w, half, lo[!half], hi[!half]);
        own[half] = difference_sqnr(w, half, lo[half], hi[half]);
        all[half] = difference_sqnr(w, half, fminf(lo[0], lo[1]), fmaxf(hi[0], hi[1]));
    }
    const double judged = (mean_of(other[0], all[0]) + mean_of(other[1], all[1])) / 2;
    assert_true(fabs(r->after - judged) < 0.1);
    assert_true(fabs(r->after - (own[0] + own[1]) / 2) > 0.5 && fabs(r->after - (all[0] + all[1]) / 2) > 0.5);
    free_work(w);
}

/* Inputs whose tails differ from sample to sample, and a network of another shape for each seed. */
static void build_tails(work *w, uint32_t seed)
{
    oct_graph *g = w->m.graph;
    char wide[20], narrow[20];
    const int channels = 4 + 2 * (int)(seed % 4);
    set_input(w, seed % 2 ? "1,4,16,16" : "1,4,9,12");
    for (int r = 0; r < ROWS; r++) {
        net_fill(w->x[r], w->size, 1000 * seed + (uint32_t)r);
        for (size_t i = 0; i < w->size; i++)
            w->x[r][i] = powf(w->x[r][i], 9) * (1 + (float)(r % 3));
    }
    snprintf(wide, sizeof wide, "%d,4,3,3", channels);
    snprintf(narrow, sizeof narrow, "4,%d,1,1", channels);
    const int a = NET_NODE(g, "Conv", "a", "a_out", g->input[0], net_random(g, "aw", wide, seed));
    const int r = NET_NODE(g, "Relu", "relu", "r", a);
    net_output(g, NET_NODE(g, "Conv", "b", "y", r, net_random(g, "bw", narrow, seed + 1)));
}

/* What the search chooses is by its own number no worse than the usual observer. Wide ranges were kept unless chance
 * was excluded. */
TEST(observers_are_chosen_by_their_number)
{
    for (uint32_t seed = 1; seed <= 12; seed++) {
        work *w = new_work();
        build_tails(w, seed);
        w->o.observer = NULL;
        on(w, "observer-search");
        decide(w);
        const oct_method_result *r = method(w, "observer-search");
        assert_true(r->ran && r->after >= r->before - 0.1 && r->next);
        free_work(w);
    }
}

/* A detector's scores: most of few places per sample run far below 0, because of what is rare in the input, and only
 * those near 0 decide. */
static void build_scores(work *w, uint32_t seed, const char *last)
{
    static const char *const shapes[] = { "1,3,20,20", "1,4,16,18", "1,6,14,14" };
    oct_graph *g = w->m.graph;
    const int channels = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 4 : 6;
    char dims[30];
    set_input(w, shapes[seed % 3]);
    for (int r = 0; r < ROWS; r++) {
        uint32_t state = 77 * seed + (uint32_t)r;
        net_fill(w->x[r], w->size, 1000 * seed + (uint32_t)r);
        for (size_t i = 0; i < w->size; i++)
            w->x[r][i] = fabsf(w->x[r][i]) * (net_next(&state) % 3001 < 2 ? 150 + 20 * (float)(seed % 4) : 1);
    }
    snprintf(dims, sizeof dims, "2,%d,1,1", channels);
    const int v = net_random(g, "hw", dims, seed);
    for (int i = 0; i < 2 * channels; i++) {
        float *m = (float *)(uintptr_t)g->value[v].constant->data + i;
        *m = -0.5f - fabsf(*m);
    }
    const float half = 0.4f * (float)channels;
    int y = NET_NODE(g, "Conv", "head", "logits", g->input[0], v, NET_F32(g, "hb", "2", half, half + 0.2f));
    y = NET_NODE(g, "Flatten", "flat", "scores", y);
    if (last)
        y = NET_NODE(g, last, "last", "y", y);
    net_output(g, y);
}

/* How many scores of all samples are on the other side of 0 than the float model's, of how many that are above it. */
static int flips(work *w, int *above)
{
    static float y[MOST], yq[MOST];
    int n = 0;
    oct_graph *q;
    GOOD(oct_quantized_copy(w->c.job, &q, err));
    *above = 0;
    for (int r = 0; r < ROWS; r++) {
        const size_t count = value_of(w->c.job->g, "scores", w->x[r], y);
        assert_int_equal(value_of(q, "scores", w->x[r], yq), count);
        for (size_t i = 0; i < count; i++) {
            n += (y[i] > 0) != (yq[i] > 0);
            *above += y[i] > 0;
        }
    }
    oct_graph_destroy(q);
    return n;
}

/* Raw SQNR prefers ranges that hold what is rare; what decides is lost in them. */
TEST(one_sided_logits_are_judged_by_what_decides)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        int n[2], above;
        for (int k = 0; k < 2; k++) {
            work *w = new_work();
            build_scores(w, seed, seed % 2 ? "Sigmoid" : NULL);
            w->o.observer = k ? "minmax" : NULL;
            on(w, "observer-search");
            decide(w);
            n[k] = flips(w, &above);
            assert_true(k || strstr(method(w, "observer-search")->choice, "hist-percentile"));
            assert_true(above > 100);
            free_work(w);
        }
        assert_true(5 * n[0] < n[1]);
    }
}

static void behind_a_sigmoid(const float *real, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 1 / (1 + expf(-x[i] / 2));
}

TEST(one_sided_logits_are_seen_behind_a_sigmoid)
{
    for (uint32_t seed = 1; seed <= 5; seed++) {
        work *w = new_work();
        build_scores(w, seed, seed % 2 ? "Sigmoid" : NULL);
        decide(w);
        const oct_sim_loss loss = measured(w, 0, &everything);
        assert_true(fabs(loss.sqnr - to_db(noise_seen(w, "scores", 0, behind_a_sigmoid))) < 0.1);
        assert_true(fabs(loss.sqnr - to_db(real_noise(w, "scores", 0))) > 0.3);
        free_work(w);
    }
}

static void behind_a_softmax_of_two(const float *real, float *x, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        x[i + 1] = 1 / (1 + expf((x[i] - x[i + 1]) / 2));
        x[i] = 1 - x[i + 1];
    }
}

/* A Softmax says the same as a Sigmoid if it compares each score with 0: rows that are decided by far do not count. */
TEST(decided_rows_are_seen_behind_a_softmax)
{
    for (uint32_t seed = 1; seed <= 5; seed++) {
        work *w = new_work();
        oct_graph *g = w->m.graph;
        build_scores(w, seed, NULL);
        const int scores = g->output[0], n = (int)w->size / (seed % 3 == 0 ? 3 : seed % 3 == 1 ? 4 : 6) * 2;
        float *zeros = calloc((size_t)n, sizeof *zeros);
        char dims[40];
        snprintf(dims, sizeof dims, "1,%d,1", n);
        int y = NET_NODE(g, "Unsqueeze", "apart", "column", scores, NET_S64(g, "two", "1", 2));
        y = NET_NODE(g, "Concat", "join", "pairs", net_const(g, "zeros", OCT_F32, dims, zeros), y);
        net_int(g, "axis", 2);
        g->n_output = 0;
        g->value[scores].is_output = false;
        net_output(g, NET_NODE(g, seed % 2 ? "Softmax" : "LogSoftmax", "last", "y", y));
        decide(w);
        const oct_sim_loss loss = measured(w, 0, &everything);
        const double seen = to_db(noise_seen(w, "pairs", 0, behind_a_softmax_of_two));
        assert_true(fabs(loss.sqnr - seen) < 0.1);
        assert_true(fabs(loss.sqnr - to_db(real_noise(w, "pairs", 0))) > 0.12);
        free(zeros);
        free_work(w);
    }
}

/* Corners x1 y1 x2 y2 of 24 boxes, of a centre and a side; the sides are of very different lengths (`alike`: of one).
 */
static void build_boxes(work *w, uint32_t seed, bool alike)
{
    static const float corners[2][4] = { { 1, 1, 1, 1 }, { -0.5f, -0.5f, 0.5f, 0.5f } };
    oct_graph *g = w->m.graph;
    set_input(w, "1,24,2");
    for (int r = 0; r < ROWS; r++) {
        uint32_t state = 99 * seed + (uint32_t)r;
        for (int i = 0; i < 24; i++) {
            w->x[r][2 * i] = (float)(net_next(&state) % 600);
            w->x[r][2 * i + 1] = alike ? 50 : 5 * powf(2, (float)(net_next(&state) % 7));
        }
    }
    net_output(g, NET_NODE(g, "MatMul", "corners", "boxes", g->input[0], net_const(g, "cw", OCT_F32, "2,4", corners)));
}

static void by_their_size(const float *real, float *x, size_t n)
{
    double size[600];
    for (size_t r = 0; r < n / 4; r++)
        size[r] = ((double)real[4 * r + 2] - (double)real[4 * r]) * ((double)real[4 * r + 3] - (double)real[4 * r + 1]);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] / sqrt(size[i / 4]));
}

TEST(boxes_are_seen_by_their_size)
{
    for (uint32_t seed = 1; seed <= 5; seed++)
        for (int alike = 0; alike < 2; alike++) {
            work *w = new_work();
            build_boxes(w, seed, alike);
            decide(w);
            const oct_sim_loss loss = measured(w, 0, &everything);
            const double plain = to_db(real_noise(w, "boxes", 0)),
                         seen = to_db(noise_seen(w, "boxes", 0, by_their_size));
            assert_true(fabs(loss.sqnr - (alike ? plain : seen)) < 0.1 && (alike || fabs(plain - seen) > 0.3));
            free_work(w);
        }
}

/* Levels in dB run as far below 0, but all of them count. */
TEST(levels_are_judged_as_they_are)
{
    for (uint32_t seed = 1; seed <= 5; seed++) {
        work *w = new_work();
        oct_graph *g = w->m.graph;
        float offset[20];
        set_input(w, "1,24");
        for (int i = 0; i < 20; i++)
            offset[i] = -30 - 2 * (float)seed - (float)i / 2;
        const int v = net_random(g, "w", "24,20", seed);
        for (int i = 0; i < 480; i++)
            ((float *)(uintptr_t)g->value[v].constant->data)[i] *= 6;
        const int b = net_const(g, "b", OCT_F32, "20", offset);
        net_output(g, NET_NODE(g, "Gemm", "levels", "y", g->input[0], v, b));
        decide(w);
        assert_true(fabs(measured(w, 0, &everything).sqnr - to_db(real_noise(w, "y", 0))) < 0.1);
        free_work(w);
    }
}
