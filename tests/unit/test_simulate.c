/* lib/quant/simulate/simulate.h and what rests on it, against plans of really quantized graphs and sums written out
 * here. */
#include <stdlib.h>
#include <unistd.h>
#include "folder.h"
#include "unit.h"

#include "eval/metrics/summary.h"
#include "eval/run/scaled.h"
#include "net.h"
#include "onnx/model.h"
#include "quant/convert/convert_int.h"
#include "quant/inputs/norm_draw.h"
#include "quant/job/annotate.h"
#include "quant/job/placed.h"
#include "quant/simulate/sensitivity.h"
#include "quant/weights/constants.h"

TEST_GROUP(folder_make, folder_remove);

enum { ROWS = 16, MOST = 8192 }; /* samples; their elements */

/* A conversion of a network that was built here, with all methods off but those switched on. */
typedef struct work {
    oct_model m;
    char path[300];
    size_t size; /* of a sample */
    float x[ROWS][MOST];
    int rows[2], row[2][ROWS]; /* samples of each half: those that are not kept aside */
    oct_target *target;
    oct_source *src;
    oct_convert_opts o;
    oct_conversion c;
} work;

static work *new_work_for(const char *target)
{
    work *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->m = (oct_model){ .graph = net_graph(13), .path = "net" };
    snprintf(w->path, sizeof w->path, "%s/x.npy", folder);
    GOOD(oct_target_open(target, &w->target, err));
    w->o = (oct_convert_opts){ .name = "net", .job = { .target = w->target, .threads = 1 }, .observer = "minmax" };
    return w;
}

static work *new_work(void)
{
    return new_work_for("octet");
}

static void set_input(work *w, const char *dims)
{
    oct_dim d[OCT_MAX_RANK];
    const int rank = net_dims(w->m.graph, dims, d);
    net_input(w->m.graph, "x", OCT_F32, dims);
    w->size = 1;
    for (int i = 0; i < rank; i++)
        w->size *= (size_t)d[i].n;
    assert_true(w->size <= MOST);
    for (int r = 0; r < ROWS; r++)
        net_fill(w->x[r], w->size, 100u + (uint32_t)r);
}

/* Writes the samples as they are now, shape [ROWS, dims...] of an input [1, dims...]. */
static void write_samples(const work *w)
{
    const oct_shape *s = &w->m.graph->value[w->m.graph->input[0]].shape;
    FILE *f = fopen(w->path, "wb");
    char head[128], dims[80] = "";
    assert_non_null(f);
    for (int d = 1; d < s->rank; d++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%d, ", (int)s->d[d].n);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %s), }", ROWS, dims);
    head[10 + n] = ' ';
    head[127] = '\n';
    fwrite(head, 1, 128, f);
    for (int r = 0; r < ROWS; r++)
        fwrite(w->x[r], sizeof(float), w->size, f);
    fclose(f);
}

static void on(work *w, const char *method)
{
    GOOD(oct_methods_switch(&w->o.methods, method, true, err));
}

static void decide(work *w)
{
    const char *spec = w->path;
    oct_input_desc *in;
    size_t n_in;
    write_samples(w);
    GOOD(oct_eval_inputs(&(oct_eval_model){ "net", w->m.graph, 0 }, 1, w->m.graph->arena, &in, &n_in, err));
    GOOD(oct_source_open(&(oct_source_options){ .specs = &spec, .n_specs = 1, .inputs = in, .n_inputs = n_in }, &w->src,
                         err));
    GOOD(oct_conversion_open(&w->c, &w->o, err));
    oct_conversion_take(&w->c, &w->m);
    GOOD(oct_conversion_decide(&w->c, w->src, err));
    oct_batch b = OCT_BATCH_INIT;
    for (int half = 0; half < 2; half++) {
        GOOD(oct_source_pick(w->src, &(oct_pick){ .i = half, .n = 2, .mixed = true }, err));
        do {
            GOOD(oct_source_next(w->src, 1, &b, err));
            if (b.n)
                w->row[half][w->rows[half]++] = (int)b.indices[0];
        } while (b.n);
        assert_true(w->rows[half] > 3);
    }
    oct_batch_free(&b);
}

static void free_work(work *w)
{
    oct_conversion_close(&w->c);
    oct_target_close(w->target);
    oct_source_close(w->src);
    oct_graph_destroy(w->m.graph);
    free(w);
}

static const oct_method_result *method(const work *w, const char *name)
{
    for (size_t i = 0; i < w->c.n_methods; i++)
        if (strcmp(w->c.methods[i].method->name, name) == 0)
            return &w->c.methods[i];
    fail_msg("no method '%s'", name);
    return NULL;
}

static int node_named(const work *w, const char *name)
{
    const oct_graph *g = w->c.job->g;
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(g->node[g->order[i]].name, name) == 0)
            return g->order[i];
    fail_msg("no node '%s'", name);
    return -1;
}

/* ---- plans ---- */

typedef struct shown {
    float *to;
    size_t n;
} shown;

static oct_status keep_shown(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    shown *s = arg;
    s->n = (size_t)t->count;
    return oct_operand_to_f32(t, s->to, err);
}

/* Value `name` of g on a sample; returns how many numbers. */
static size_t value_of(const oct_graph *g, const char *name, const float *x, float *to)
{
    const oct_plan_opts o = { .taps = &name, .n_taps = 1, .no_passes = true };
    shown s = { to, 0 };
    oct_plan *p = net_plan(g, &o, NULL);
    oct_plan_set_tap(p, keep_shown, &s);
    GOOD(oct_plan_run(p, (const void *[]){ x }, err));
    oct_plan_destroy(p);
    assert_true(s.n > 0);
    return s.n;
}

/* Noise of the signal in a value of the really quantized model, on the samples of a half. */
static double real_noise(work *w, const char *name, int half)
{
    static float y[MOST], yq[MOST];
    double signal = 0, noise = 0;
    oct_graph *q;
    GOOD(oct_quantized_copy(w->c.job, &q, err));
    for (int k = 0; k < w->rows[half]; k++) {
        const float *x = w->x[w->row[half][k]];
        const size_t n = value_of(w->c.job->g, name, x, y);
        assert_int_equal(value_of(q, name, x, yq), n);
        for (size_t i = 0; i < n; i++) {
            signal += (double)y[i] * (double)y[i];
            noise += ((double)y[i] - (double)yq[i]) * ((double)y[i] - (double)yq[i]);
        }
    }
    oct_graph_destroy(q);
    return noise / signal;
}

static double to_db(double noise)
{
    return -10 * log10(noise);
}

static oct_sim_loss measured(work *w, int half, const oct_sim_mask *m)
{
    oct_sim *s;
    oct_sim_loss loss;
    GOOD(oct_conversion_sim(&w->c, (oct_sim_size){ 1 << 30, ROWS / 2, ROWS / 2 }, half, &s, err));
    GOOD(oct_sim_measure(s, m, &loss, err));
    return loss;
}

static const oct_sim_mask everything = { .weights = OCT_SIM_ROUNDED_WEIGHTS };

/* ---- networks ---- */

/* Two convolutions, a sum with a constant and a matrix product, then `last` (NULL: nothing). */
static void build_mixed(work *w, const char *last)
{
    oct_graph *g = w->m.graph;
    set_input(w, "1,3,6,7");
    const int a =
        NET_NODE(g, "Conv", "a", "a_out", g->input[0], net_random(g, "aw", "8,3,3,3", 1), net_random(g, "ab", "8", 2));
    const int r = NET_NODE(g, "Relu", "relu", "r", a);
    const int b = NET_NODE(g, "Conv", "b", "b_out", r, net_random(g, "bw", "4,8,1,1", 3));
    const int k = net_random(g, "k", "4,4,5", 4);
    for (int i = 0; i < 80; i++)
        ((float *)(uintptr_t)g->value[k].constant->data)[i] *= 30.3f; /* so that rounding it counts */
    const int s = NET_NODE(g, "Add", "add", "s", b, k);
    const int f = NET_NODE(g, "Flatten", "flat", "f", s);
    int y = NET_NODE(g, "MatMul", "product", "logits", f, net_random(g, "pw", "80,5", 6));
    if (last)
        y = NET_NODE(g, last, "last", "y", y);
    net_output(g, y);
}

/* ---- simulation ---- */

TEST(everything_rounded_is_the_quantized_model)
{
    for (int half = 0; half < 2; half++) {
        work *w = new_work();
        build_mixed(w, NULL);
        decide(w);
        const oct_sim_loss loss = measured(w, half, &everything);
        const double want = real_noise(w, "logits", half);
        assert_true(want > 1e-7 && fabs(loss.sqnr - to_db(want)) < 0.1);
        assert_true(fabs(to_db(loss.noise) - loss.sqnr) < 1e-6);
        free_work(w);
    }
}

TEST(nothing_rounded_is_no_noise)
{
    work *w = new_work();
    build_mixed(w, NULL);
    decide(w);
    const oct_sim_loss loss = measured(w, 0, &(oct_sim_mask){ .no_values = true, .weights = OCT_SIM_FLOAT_WEIGHTS });
    assert_true(loss.noise == 0 && isinf(loss.sqnr) && loss.sqnr > 0);
    free_work(w);
}

TEST(threads_change_no_bit)
{
    oct_sim_loss loss[2];
    for (int k = 0; k < 2; k++) {
        work *w = new_work();
        w->o.job.threads = k ? 4 : 1;
        build_mixed(w, NULL);
        decide(w);
        loss[k] = measured(w, 0, &everything);
        free_work(w);
    }
    assert_true(loss[0].noise > 0);
    assert_memory_equal(&loss[0].noise, &loss[1].noise, sizeof loss[0].noise);
    assert_memory_equal(&loss[0].sqnr, &loss[1].sqnr, sizeof loss[0].sqnr);
}

TEST(undivided_samples_are_the_same_twice)
{
    for (int whole = 0; whole < 2; whole++) {
        work *w = new_work();
        w->o.whole = whole;
        build_mixed(w, NULL);
        decide(w);
        const double first = measured(w, 0, &everything).noise, second = measured(w, 1, &everything).noise;
        assert_int_equal(first == second, whole);
        free_work(w);
    }
}

/* The noise relative to the signal of what a test makes of the numbers of a value, on the samples of a half. */
static double noise_seen(work *w, const char *name, int half, void (*see)(const float *real, float *x, size_t n))
{
    static float y[MOST], yq[MOST], real[MOST];
    double signal = 0, noise = 0;
    oct_graph *q;
    GOOD(oct_quantized_copy(w->c.job, &q, err));
    for (int k = 0; k < w->rows[half]; k++) {
        const float *x = w->x[w->row[half][k]];
        const size_t n = value_of(w->c.job->g, name, x, y);
        assert_int_equal(value_of(q, name, x, yq), n);
        memcpy(real, y, sizeof real);
        see(real, y, n);
        see(real, yq, n);
        for (size_t i = 0; i < n; i++) {
            signal += (double)y[i] * (double)y[i];
            noise += ((double)y[i] - (double)yq[i]) * ((double)y[i] - (double)yq[i]);
        }
    }
    oct_graph_destroy(q);
    return noise / signal;
}

/* Without the mean of each row of five, which a Softmax does not see; `step` numbers apart. */
static void without_means(float *x, size_t n, size_t step)
{
    for (size_t at = 0; at + 5 * step <= n; at += 5 * step)
        for (size_t i = 0; i < step; i++) {
            double sum = 0;
            for (size_t e = 0; e < 5; e++)
                sum += (double)x[at + e * step + i];
            for (size_t e = 0; e < 5; e++)
                x[at + e * step + i] -= (float)(sum / 5);
        }
}

static void in_rows(const float *real, float *x, size_t n)
{
    without_means(x, n, 1);
}

static void in_maps(const float *real, float *x, size_t n)
{
    without_means(x, n, 20);
}

/* Where outputs end in a Sigmoid its input counts, and where they end in a Softmax what it compares. */
TEST(logits_are_judged)
{
    static const char *const last[] = { "Softmax", "Sigmoid", "LogSoftmax" };
    for (size_t k = 0; k < OCT_COUNT(last); k++) {
        work *w = new_work();
        build_mixed(w, last[k]);
        decide(w);
        const oct_sim_loss loss = measured(w, 0, &everything);
        const double raw = to_db(real_noise(w, "logits", 0)), compared = to_db(noise_seen(w, "logits", 0, in_rows));
        assert_true(fabs(raw - compared) > 0.15);
        assert_true(fabs(loss.sqnr - (k == 1 ? raw : compared)) < 0.1);
        assert_true(fabs(loss.sqnr - to_db(real_noise(w, "y", 0))) > 0.5);
        free_work(w);
    }
}

/* A Sigmoid's map counts as it is, a Softmax's by what it compares. */
TEST(maps_of_a_sigmoid_are_judged_as_they_are)
{
    static const char *const last[] = { "Softmax", "Sigmoid" };
    for (size_t k = 0; k < OCT_COUNT(last); k++) {
        work *w = new_work();
        oct_graph *g = w->m.graph;
        set_input(w, "1,3,6,7");
        const int a = NET_NODE(g, "Conv", "a", "logits", g->input[0], net_random(g, "aw", "5,3,3,3", 1),
                               NET_F32(g, "ab", "5", 9, 9.3f, 8.5f, 9.1f, 8.8f));
        const int y = NET_NODE(g, last[k], "last", "y", a);
        if (k == 0)
            net_int(g, "axis", 1);
        net_output(g, y);
        decide(w);
        const oct_sim_loss loss = measured(w, 0, &everything);
        const double compared = to_db(noise_seen(w, "logits", 0, in_maps));
        assert_true(fabs(loss.sqnr - (k ? to_db(real_noise(w, "y", 0)) : compared)) < 0.1);
        assert_true(fabs(loss.sqnr - to_db(real_noise(w, "logits", 0))) > 0.15);
        free_work(w);
    }
}

enum { INS = 24, OUTS = 10 };

static const float *build_product(work *w)
{
    oct_graph *g = w->m.graph;
    set_input(w, "1,24");
    const int m = net_random(g, "w", "24,10", 9);
    net_output(g, NET_NODE(g, "MatMul", "product", "y", g->input[0], m));
    return g->value[m].constant->data;
}

static double rounded(double x, double scale, int zp)
{
    return (fmin(fmax(rint(x / scale) + zp, 0), 255) - zp) * scale;
}

TEST(one_value_is_rounded_alone)
{
    work *w = new_work();
    const float *m = build_product(w);
    decide(w);
    const oct_qjob *j = w->c.job;
    const int x = j->g->input[0];
    bool *on = calloc(j->n_values, sizeof *on);
    on[oct_params_root(j, x)] = true;
    const oct_sim_loss loss = measured(w, 1, &(oct_sim_mask){ .value = on, .weights = OCT_SIM_FLOAT_WEIGHTS });
    const oct_quant *q = oct_quant_of(j, x);
    double signal = 0, noise = 0;
    for (int k = 0; k < w->rows[1]; k++)
        for (int o = 0; o < OUTS; o++) {
            double y = 0, e = 0;
            for (int i = 0; i < INS; i++) {
                const double v = (double)w->x[w->row[1][k]][i];
                y += v * (double)m[i * OUTS + o];
                e += (rounded(v, (double)q->scale[0], q->zp[0]) - v) * (double)m[i * OUTS + o];
            }
            signal += y * y;
            noise += e * e;
        }
    assert_true(noise > 0 && fabs(loss.noise - noise / signal) < 1e-3 * loss.noise);
    free(on);
    free_work(w);
}

/* What a measurement begins with leaves no trace: in whatever order values are measured, each gets what it gets in a
 * new simulation. */
TEST(order_changes_no_loss)
{
    enum { MOST_VALUES = 64 };
    work *w = new_work();
    oct_sim_loss alone[MOST_VALUES];
    bool on[MOST_VALUES] = { false };
    oct_sim *sim = NULL;
    build_mixed(w, "Softmax");
    decide(w);
    const oct_qjob *j = w->c.job;
    const oct_sim_mask m = { .value = on, .weights = OCT_SIM_FLOAT_WEIGHTS };
    int root[MOST_VALUES], n = 0;
    assert_true(j->n_values <= MOST_VALUES);
    for (size_t v = 0; v < j->n_values; v++)
        if (oct_quant_of(j, v) && !j->g->value[v].constant && oct_params_root(j, (int)v) == (int)v)
            root[n++] = (int)v;
    assert_true(n > 3);
    for (int i = 0; i < n; i++) {
        on[root[i]] = true;
        alone[i] = measured(w, 0, &m);
        on[root[i]] = false;
        assert_true(alone[i].noise > 0);
        oct_conversion_end_sim(&w->c);
    }
    GOOD(oct_conversion_sim(&w->c, (oct_sim_size){ 1 << 30, ROWS / 2, ROWS / 2 }, 0, &sim, err));
    for (int k = 0; k < 3 * n; k++) { /* upwards, downwards, and in leaps */
        const int i = k < n ? k : k < 2 * n ? 2 * n - 1 - k : k * 5 % n;
        oct_sim_loss loss;
        on[root[i]] = true;
        GOOD(oct_sim_measure(sim, &m, &loss, err));
        on[root[i]] = false;
        assert_true(loss.noise == alone[i].noise && loss.sqnr == alone[i].sqnr);
    }
    free_work(w);
}

/* A bias that is replaced is what the next measurement has, on the same samples. */
TEST(simulations_follow_decisions)
{
    work *w = new_work();
    build_mixed(w, "Softmax");
    decide(w);
    oct_qjob *j = w->c.job;
    const oct_sim_loss before = measured(w, 0, &everything);
    int id = -1;
    for (size_t i = 0; i < j->n_layer && id < 0; i++)
        id = j->constants[j->layer[i]].bias ? j->layer[i] : -1;
    assert_true(id >= 0);
    int32_t *bias = (int32_t *)(uintptr_t)j->constants[id].bias->qvals->data;
    bias[0] += 100000;
    oct_conversion_edited(&w->c);
    const oct_sim_loss worse = measured(w, 0, &everything);
    assert_true(worse.noise > 2 * before.noise);
    bias[0] -= 100000;
    oct_conversion_edited(&w->c);
    const oct_sim_loss after = measured(w, 0, &everything);
    assert_true(after.noise == before.noise && after.sqnr == before.sqnr);
    free_work(w);
}

/* ---- ranges ---- */

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

/* ---- what decides ---- */

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

/* ---- sensitivity and mixed precision ---- */

/* A 1x1 layer reads an input whose first channel is `outlier` times as large and counts as much less; `wide`: it has
 * much of the multiply-accumulates. */
static void build_planted(work *w, float outlier, bool wide)
{
    oct_graph *g = w->m.graph;
    set_input(w, "1,4,8,8");
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 64; i++)
            w->x[r][i] *= outlier;
    const int stem = net_random(g, "sw", wide ? "8,4,3,3" : "8,4,1,1", 11);
    float *v = (float *)(uintptr_t)g->value[stem].constant->data;
    const int taps = wide ? 9 : 1;
    for (int o = 0; o < 8; o++)
        for (int i = 0; i < taps; i++)
            v[o * 4 * taps + i] /= outlier;
    int y = NET_NODE(g, "Conv", "stem", "s", g->input[0], stem);
    if (wide)
        NET_INTS(g, "pads", 1, 1, 1, 1);
    y = NET_NODE(g, "Conv", "body", "b", NET_NODE(g, "Relu", "r1", "r", y), net_random(g, "bw", "32,8,3,3", 12));
    y = NET_NODE(g, "Conv", "head", "y", NET_NODE(g, "Relu", "r2", "t", y), net_random(g, "hw", "8,32,1,1", 13));
    net_output(g, y);
}

TEST(planted_value_is_first)
{
    work *w = new_work();
    oct_arena *a = oct_arena_create();
    oct_sensitivity s;
    oct_sim *sim;
    build_planted(w, 100, false);
    decide(w);
    GOOD(oct_conversion_sim(&w->c, (oct_sim_size){ 1 << 30, ROWS / 2, ROWS / 2 }, 0, &sim, err));
    GOOD(oct_sensitivity_measure(sim, w->c.job, 0, true, NULL, a, &s, err));
    assert_true(s.n >= 5 && s.site[0].node < 0 && s.site[0].value == w->c.job->g->input[0]);
    double values = 0, weights = 0;
    for (size_t i = 0; i < s.n; i++) {
        assert_true(i == 0 || s.site[i].noise <= s.site[i - 1].noise);
        *(s.site[i].node < 0 ? &values : &weights) += s.site[i].noise;
    }
    assert_true(s.site[0].noise > 0.8 * values);
    assert_true(fabs(to_db(values) - to_db(s.values.noise)) < 1);
    assert_true(fabs(to_db(weights) - to_db(s.weights.noise)) < 2);
    assert_true(fabs(to_db(values + weights) - to_db(s.all.noise)) < 1);
    oct_arena_destroy(a);
    free_work(w);
}

/* What causes a share of the loss, or of what is left without that, is found with the noise that it has alone. */
TEST(worst_values_are_found)
{
    const double share =
        6.5e-4; /* of all: the planted value alone; of the rest, most of which weights cause: one more */
    work *w = new_work();
    oct_arena *a = oct_arena_create();
    oct_sensitivity all, worst;
    oct_sim *sim;
    build_planted(w, 100, false);
    decide(w);
    GOOD(oct_conversion_sim(&w->c, (oct_sim_size){ 1 << 30, ROWS / 2, ROWS / 2 }, 0, &sim, err));
    GOOD(oct_sensitivity_measure(sim, w->c.job, 0, false, NULL, a, &all, err));
    GOOD(oct_sensitivity_find_worst(sim, w->c.job, share, NULL, a, &worst, err));
    assert_true(all.n == worst.n && all.n >= 3 && all.all.noise == worst.all.noise);
    double left = all.all.noise;
    size_t n = 0;
    for (; n < all.n && all.site[n].noise >= share * left; n++) {
        assert_true(worst.site[n].value == all.site[n].value && worst.site[n].noise == all.site[n].noise);
        left -= all.site[n].noise;
    }
    assert_true(n == 2 && n < all.n);
    oct_arena_destroy(a);
    free_work(w);
}

static int64_t float_layers(const work *w, double *share)
{
    const oct_qjob *j = w->c.job;
    int64_t n = 0;
    *share = 0;
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_scheme_of(j, j->layer[i]) == OCT_SCHEME_FLOAT) {
            *share += (double)oct_node_macs(j->g, j->layer[i]) / (double)oct_graph_macs(j->g);
            n += oct_op_of(j->g, j->layer[i])->quant == OCT_QUANT_WEIGHTED;
        }
    return n;
}

static double planted(float outlier, bool wide, bool mixed, work **w)
{
    *w = new_work();
    build_planted(*w, outlier, wide);
    if (mixed)
        on(*w, "mixed-precision");
    decide(*w);
    return to_db(real_noise(*w, "y", 0));
}

TEST(planted_cause_stays_float)
{
    for (int wide = 0; wide < 2; wide++) {
        work *plain, *mixed;
        double share;
        const double before = planted(wide ? 400 : 100, wide, false, &plain),
                     after = planted(wide ? 400 : 100, wide, true, &mixed);
        const int stem = node_named(mixed, "stem");
        assert_true(oct_scheme_of(mixed->c.job, stem) == OCT_SCHEME_FLOAT &&
                    strstr(oct_why_of(mixed->c.job, stem), "rounding 'x' alone"));
        assert_int_equal(oct_scheme_of(mixed->c.job, node_named(mixed, "body")), OCT_SCHEME_STATIC);
        assert_true(float_layers(mixed, &share) <= 4 && (wide ? share > 0.03 && before < 20 : share <= 0.03));
        assert_true(after > before + 3);
        const oct_method_result *r = method(mixed, "mixed-precision");
        assert_true(r->ran && r->after > r->before + 3 && strstr(r->choice, "stay float"));
        double spent = 0;
        for (size_t i = 0; i < mixed->c.n_promoted; i++) {
            const oct_promotion *p = &mixed->c.promoted[i];
            assert_true(strcmp(p->value, "x") == 0 && p->loss > 0.3 && p->gain > 1 && p->beyond_budget == (wide != 0));
            assert_string_equal(p->layer, "stem");
            spent += p->macs;
        }
        assert_true(mixed->c.n_promoted == 1 && fabs(spent - share) < 1e-12);
        free_work(plain);
        free_work(mixed);
    }
}

static float *weights_in(const work *w, const char *name)
{
    return (float *)(uintptr_t)w->m.graph->value[oct_graph_find(w->m.graph, name)].constant->data;
}

/* Two values beyond the budget. The first, the input, causes nearly all of the loss; the second, behind the stem, has a
 * channel `wide` times larger than the others. The weights of the head are rounded by a channel that is all but 0, but
 * has `large` weights. */
static work *converted_with_two_causes(float wide, float large)
{
    work *w = new_work();
    build_planted(w, 400, true);
    float *stem = weights_in(w, "sw"), *body = weights_in(w, "bw"), *head = weights_in(w, "hw");
    for (int i = 0; i < 4 * 9; i++)
        stem[i] *= wide;
    for (int i = 0; i < 32 * 9; i++)
        body[i / 9 * 72 + i % 9] /= wide;
    for (int i = 0; i < 8 * 9; i++)
        body[i] *= 1e-6f;
    for (int o = 0; o < 8; o++)
        head[o * 32] = large;
    on(w, "mixed-precision");
    decide(w);
    return w;
}

/* Each must win on its own: the second does not where the weights of the head cost more than it does. */
TEST(values_beyond_the_budget_win_alone)
{
    work *w = converted_with_two_causes(64, 80);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_true(w->c.n_promoted == 1 && w->c.promoted[0].beyond_budget);
    assert_string_equal(w->c.promoted[0].value, "x");
    assert_int_equal(oct_scheme_of(w->c.job, node_named(w, "body")), OCT_SCHEME_STATIC);
    assert_true(r->ran && r->after > r->before + 6 && r->after < 20);
    free_work(w);
}

/* In the place of float 16 bits, where the target takes such activations and its costs do not say that they take
 * longer. */
TEST(planted_cause_gets_16_bits)
{
#define COSTS(kind, wide) \
    "cost " kind " float mac=10\ncost " kind " static mac=5\ncost " kind " static16 mac=" wide "\n"
#define ALL_COSTS(wide) COSTS("conv", wide) COSTS("conv-few", wide) COSTS("conv-1x1", wide)
    static const struct {
        const char *text;
        bool wide;
    } each[] = { { "types u8*s8 u16*s8\nop Conv static\n", true },
                 { "types u8*s8 u16*s8\nop Conv static\n" ALL_COSTS("9"), true },
                 { "types u8*s8 u16*s8\nop Conv static\n" ALL_COSTS("11"), false },
                 { "types u8*s8\nop Conv static\n" ALL_COSTS("9"), false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        work *w = new_work();
        char text[1000];
        snprintf(text, sizeof text, "name mine\nsummary a board\n%s", each[i].text);
        oct_target_close(w->target);
        GOOD(oct_target_parse(text, "t", &w->target, err));
        w->o.job.target = w->target;
        build_planted(w, 100, false);
        for (int o = 0; o < 8; o++) /* the large channel counts for nothing, so that rounded weights cost little */
            weights_in(w, "sw")[o * 4] = 0;
        on(w, "mixed-precision");
        decide(w);
        const oct_qjob *j = w->c.job;
        const int stem = node_named(w, "stem"), body = node_named(w, "body");
        const oct_quant *x = oct_quant_of(j, j->g->input[0]);
        const oct_method_result *r = method(w, "mixed-precision");
        assert_true(w->c.n_promoted == 1 && w->c.promoted[0].wide == each[i].wide);
        assert_string_equal(w->c.promoted[0].value, "x");
        assert_int_equal(oct_scheme_of(j, stem), each[i].wide ? OCT_SCHEME_STATIC : OCT_SCHEME_FLOAT);
        assert_non_null(strstr(oct_why_of(j, stem), each[i].wide ? "activations of 16 bits: rounding 'x' alone"
                                                                 : "left float: rounding 'x' alone"));
        assert_true(each[i].wide ? x && x->dtype == OCT_U16 : !x);
        assert_true(oct_scheme_of(j, body) == OCT_SCHEME_STATIC && oct_row_of(j, body)->activations == OCT_U8);
        assert_true(r->ran && r->after > r->before + 3 && fabs(r->after - to_db(real_noise(w, "y", 1))) < 1);
        free_work(w);
    }
}

/* The weights of the head cost so much that the value within the budget, worth a try, does not win 1 dB; nothing is
 * beyond the budget. */
TEST(what_was_not_measured_does_not_stay)
{
    work *w = new_work();
    build_planted(w, 25, false);
    float *body = weights_in(w, "bw"), *head = weights_in(w, "hw");
    for (int i = 0; i < 8 * 9; i++)
        body[i] *= 1e-6f;
    for (int o = 0; o < 8; o++)
        head[o * 32] = 80;
    on(w, "mixed-precision");
    decide(w);
    double share;
    const oct_sensitivity *s = w->c.sensitivity;
    assert_true(s->site[0].noise > 0.08 * s->all.noise && s->site[0].noise < 0.2 * s->all.noise); /* 1 dB is a fifth */
    assert_true(w->c.n_promoted == 0 && float_layers(w, &share) == 0 && !method(w, "mixed-precision")->ran);
    free_work(w);
}

/* Beside the first the second causes too little to be seen; without it, nearly all. */
TEST(hidden_cause_stays_float)
{
    work *w = converted_with_two_causes(40, 1);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_int_equal(w->c.n_promoted, 2);
    assert_string_equal(w->c.promoted[0].value, "x");
    assert_string_equal(w->c.promoted[1].value, "r");
    assert_true(r->ran && r->after > 40 && fabs(r->after - to_db(real_noise(w, "y", 1))) < 1);
    free_work(w);
}

/* A Conv of 4 channels to 4 that does not mix the first one with the others. */
static int keep_first_apart(oct_graph *g, const char *name, const char *weights, const char *out, int x)
{
    const int w = net_random(g, weights, "4,4,3,3", 5);
    float *v = (float *)(uintptr_t)g->value[w].constant->data;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 9 && (i / 4 == 0) != (i % 4 == 0); k++)
            v[i * 9 + k] = 0;
    const int y = NET_NODE(g, "Conv", name, out, x, w);
    NET_INTS(g, "pads", 1, 1, 1, 1);
    return y;
}

/* Three values in a row have the same channel, far larger than the others, beside which those are lost in each: none
 * wins alone. */
TEST(values_win_together)
{
    enum { LARGE = 400 };
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,4,8,8");
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 64; i++)
            w->x[r][i] *= LARGE;
    const int stem = net_random(g, "sw", "8,4,3,3", 11);
    for (int o = 0; o < 8; o++)
        for (int i = 0; i < 9; i++)
            ((float *)(uintptr_t)g->value[stem].constant->data)[o * 36 + i] /= LARGE;
    int y = keep_first_apart(g, "second", "w2", "v", keep_first_apart(g, "first", "w1", "u", g->input[0]));
    y = NET_NODE(g, "Conv", "stem", "s", y, stem);
    y = NET_NODE(g, "Conv", "body", "b", NET_NODE(g, "Relu", "r1", "r", y), net_random(g, "bw", "32,8,3,3", 12));
    net_output(g, y);
    on(w, "mixed-precision");
    decide(w);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_int_equal(w->c.n_promoted, 3);
    for (int k = 0; k < 3; k++)
        assert_true(strcmp(w->c.promoted[k].layer, ((const char *const[]){ "first", "second", "stem" })[k]) == 0 &&
                    w->c.promoted[k].beyond_budget);
    assert_true(r->ran && r->before < 15 && r->after > 30);
    free_work(w);
}

/* A chain of 1x1 layers, between which a first channel is far larger than the others, and nothing reads it behind the
 * chain. Each value causes the same share of the loss. The layer behind the chain has most of the
 * multiply-accumulates. */
static work *converted_row(uint32_t seed, int layers, int channels, int outs, const double *budget)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    char dims[30];
    snprintf(dims, sizeof dims, "1,%d,8,8", channels);
    set_input(w, dims);
    const float large = 40 + 10 * (float)(seed % 3);
    for (int r = 0; r < ROWS; r++) {
        net_fill(w->x[r], w->size, 100 * seed + (uint32_t)r);
        for (int i = 0; i < 64; i++)
            w->x[r][i] *= large;
    }
    int y = g->input[0];
    for (int k = 0; k < layers; k++) {
        char name[3][20];
        snprintf(dims, sizeof dims, "%d,%d,1,1", channels, channels);
        snprintf(name[0], sizeof name[0], "w%d", k);
        snprintf(name[1], sizeof name[1], "chain%d", k);
        snprintf(name[2], sizeof name[2], "c%d", k);
        const int v = net_random(g, name[0], dims, seed + (uint32_t)k);
        float *m = (float *)(uintptr_t)g->value[v].constant->data;
        for (int i = 0; i < channels * channels; i++) /* as it is, but for little of other small channels */
            m[i] = i / channels == 0 || i % channels == 0 ? i == 0 && k + 1 < layers
                   : i / channels == i % channels         ? 1
                                                          : m[i] / 8;
        y = NET_NODE(g, "Conv", name[1], name[2], y, v);
    }
    snprintf(dims, sizeof dims, "%d,%d,3,3", outs, channels);
    const int body = net_random(g, "bw", dims, seed + 50);
    net_output(g, NET_NODE(g, "Conv", "body", "y", y, body));
    w->o.budget = budget;
    on(w, "mixed-precision");
    decide(w);
    return w;
}

/* Values of which none is worth its layers, but all together are, for 6 dB for each 5 % of the multiply-accumulates
 * beyond the budget. */
TEST(sets_win_together)
{
    const double none = 0;
    for (uint32_t seed = 1; seed <= 6; seed++) {
        const int layers = 4 + (int)(seed % 3), channels = 4 + (int)(seed % 2);
        work *plain = converted_row(seed, layers, channels, 9 * channels, &none),
             *w = converted_row(seed, layers, channels, 9 * channels, NULL);
        const double before = to_db(real_noise(plain, "y", 1)), after = to_db(real_noise(w, "y", 1));
        double share, none_share;
        assert_true(float_layers(plain, &none_share) == 0 && float_layers(w, &share) == layers);
        for (size_t i = 0; i < w->c.n_promoted; i++)
            assert_true(strcmp(w->c.promoted[i].layer, "body") != 0);
        assert_true(before < 20 && share > 0.08 && share < 0.12);
        assert_true(after > 20 && after - before >= 6 * (share - 0.03) / 0.05);
        assert_true(w->c.remedy.budget == 0);
        free_work(plain);
        free_work(w);
    }
}

/* What would be too dear stays on integers, and the record has a budget with which the outputs are of use. */
TEST(larger_budgets_are_tried)
{
    for (uint32_t seed = 1; seed <= 5; seed++) {
        const int layers = 6 + (int)(seed % 3), channels = 4 + (int)(seed % 2);
        work *w = converted_row(seed, layers, channels, 2, NULL);
        double share;
        assert_true(float_layers(w, &share) == 0 && to_db(real_noise(w, "y", 1)) < 20);
        const oct_remedy found = w->c.remedy;
        assert_true(found.budget > 0.28 && found.budget < 1 && found.sqnr >= 20);
        free_work(w);
        w = converted_row(seed, layers, channels, 2, &found.budget);
        assert_true(float_layers(w, &share) > 0 && fabs(share - found.budget) < 1e-9);
        assert_true(fabs(to_db(real_noise(w, "y", 1)) - found.sqnr) < 1);
        free_work(w);
    }
}

/* A layer of 64 channels reads an input of which the first channel is far larger than the others, and four that have
 * most of the multiply-accumulates follow. read: the layer reads the first channel, by weights that are as much
 * smaller. */
static work *converted_stem(uint32_t seed, bool read)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    const float large = 200 + 50 * (float)(seed % 3);
    set_input(w, "1,64,4,4");
    for (int r = 0; r < ROWS; r++) {
        net_fill(w->x[r], w->size, 100 * seed + (uint32_t)r);
        for (int i = 0; i < 16; i++)
            w->x[r][i] *= large;
    }
    const int stem = net_random(g, "sw", "64,64,1,1", seed);
    for (int o = 0; o < 64; o++) {
        float *v = (float *)(uintptr_t)g->value[stem].constant->data + (size_t)o * 64;
        v[0] = read ? 8 * v[0] / large : 0;
    }
    int y = NET_NODE(g, "Conv", "stem", "s", g->input[0], stem);
    for (int k = 0; k < 4; k++) {
        char name[3][20];
        snprintf(name[0], sizeof name[0], "body%d", k);
        snprintf(name[1], sizeof name[1], "b%d", k);
        snprintf(name[2], sizeof name[2], "w%d", k);
        y = NET_NODE(g, "Conv", name[0], name[1], y, net_random(g, name[2], "64,64,3,3", seed + 7 + (uint32_t)k));
        NET_INTS(g, "pads", 1, 1, 1, 1);
    }
    net_output(g, y);
    on(w, "mixed-precision");
    decide(w);
    return w;
}

/* A layer that is float for the sake of what it reads has weights in 8 bits, unless these cause the loss, too. */
TEST(float_layers_have_stored_weights)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        const bool read = seed % 2;
        work *w = converted_stem(seed, read);
        const int stem = node_named(w, "stem");
        assert_true(w->c.n_promoted == 1 && strcmp(w->c.promoted[0].layer, "stem") == 0);
        assert_non_null(strstr(oct_why_of(w->c.job, stem), "left float: rounding 'x' alone"));
        assert_int_equal(oct_scheme_of(w->c.job, stem), read ? OCT_SCHEME_FLOAT : OCT_SCHEME_STORED);
        assert_true(fabs(to_db(real_noise(w, "b3", 1)) - method(w, "mixed-precision")->after) < 1);
        free_work(w);
    }
}

/* Without a budget nothing is left float, and one that is large enough needs no exception. */
TEST(budgets)
{
    for (int k = 0; k < 2; k++) {
        const double budget = k;
        work *w = new_work();
        double share;
        build_planted(w, 400, true);
        w->o.budget = &budget;
        on(w, "mixed-precision");
        decide(w);
        assert_int_equal(float_layers(w, &share), k);
        assert_true(k ? w->c.n_promoted > 0 && !w->c.promoted[0].beyond_budget : w->c.n_promoted == 0);
        /* What may not be float is told. */
        const oct_culprits *x = &w->c.culprits;
        assert_true(k ? !x->names : x->names && strcmp(x->names, "stem") == 0 && x->n == 1);
        assert_true(k || (x->gain > 6 && fabs(x->macs * (double)oct_graph_macs(w->c.job->g) - 8 * 4 * 9 * 64) < 1));
        free_work(w);
    }
}

/* What is written as decisions is decided again, as its rules say by name what a layer is. */
TEST(layers_with_rules_of_their_own_are_left_alone)
{
    const double none = 0;
    char path[300];
    double share;
    oct_buf rows = OCT_BUF_INIT;
    work *w = new_work();
    snprintf(path, sizeof path, "%s/p.txt", folder);
    for (int again = 0; again < 2; again++) {
        build_planted(w, 400, true);
        w->o.budget = again ? NULL : &none;
        w->o.policy = again ? path : NULL;
        on(w, "mixed-precision");
        decide(w);
        assert_int_equal(float_layers(w, &share), 0);
        if (!again) {
            oct_conversion_put_policy(&w->c, &rows);
            FILE *f = fopen(path, "w");
            assert_true(f && fputs(oct_buf_str(&rows), f) >= 0 && fclose(f) == 0);
            free_work(w);
            w = new_work();
        }
    }
    assert_int_equal(w->c.n_promoted, 0);
    unlink(path);
    oct_buf_free(&rows);
    free_work(w);
}

TEST(harmless_network_stays_integer)
{
    work *w;
    double share;
    planted(1, false, true, &w);
    assert_int_equal(float_layers(w, &share), 0);
    const oct_method_result *r = method(w, "mixed-precision");
    assert_true(!r->ran && strstr(r->why, "no few values") && !r->measure && !w->c.culprits.names);
    free_work(w);
}

/* ---- equalization ---- */

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

/* ---- goals ---- */

/* A conversion of the planted network that is to reach so many dB. */
static work *with_goal(double db, int trials, oct_goal *goal)
{
    work *w = new_work();
    build_planted(w, 100, false);
    *goal = (oct_goal){ .option = "--min-sqnr", .metric = "sqnr", .limit = { pow(10, -db / 10), false } };
    w->o.goals = goal;
    w->o.n_goals = 1;
    w->o.trials = trials;
    decide(w);
    return w;
}

TEST(goal_leaves_the_culprit_float)
{
    oct_goal goal;
    work *plain;
    double share;
    const double before = planted(100, false, false, &plain);
    work *w = with_goal(before + 4, 8, &goal);
    const oct_qjob *j = w->c.job;
    assert_int_equal(w->c.n_trials, 2);
    assert_true(!w->c.trials[0].met && !w->c.trials[0].taken && w->c.trials[1].met && w->c.trials[1].taken);
    assert_true(fabs(w->c.trials[0].sqnr - before) < 2 && w->c.trials[1].sqnr > before + 4);
    assert_int_equal(w->c.trials[1].layers, 1);
    assert_int_equal(float_layers(w, &share), 1);
    assert_true(fabs(share - w->c.trials[1].macs) < 1e-12 && share > 0);
    assert_int_equal(oct_scheme_of(j, node_named(w, "stem")), OCT_SCHEME_FLOAT);
    assert_non_null(strstr(oct_why_of(j, node_named(w, "stem")), "to reach the goal: rounding the value 'x'"));
    assert_int_equal(oct_scheme_of(j, node_named(w, "body")), OCT_SCHEME_STATIC);
    assert_true(to_db(real_noise(w, "y", 0)) > before + 4); /* of other samples, by really quantized graphs */
    free_work(w);
    free_work(plain);
}

/* Around a value 16 bits come before float, where the target takes them and its costs do not say that they take longer;
 * weights that are the cause become float all the same. */
TEST(goals_widen_before_they_leave_float)
{
    static const struct {
        const char *target;
        bool wide;
        double db;
        float channel; /* of the head's weights, beside those below 1; 0: values of the stem are the cause */
    } each[] = { { "types u8*s8 u16*s8\nop Conv static\n", true, 30, 0 },
                 { "types u8*s8 u16*s8\nop Conv static\n" ALL_COSTS("11"), false, 30, 0 },
                 { "types u8*s8\nop Conv static\n", false, 30, 0 },
                 { "types u8*s8 u16*s8\nop Conv static per-tensor\n", false, 34, 80 } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        work *w = new_work();
        char text[1000];
        snprintf(text, sizeof text, "name mine\nsummary a board\n%s", each[i].target);
        oct_target_close(w->target);
        GOOD(oct_target_parse(text, "t", &w->target, err));
        w->o.job.target = w->target;
        build_planted(w, each[i].channel > 0 ? 1 : 100, false);
        for (int o = 0; o < 8; o++) { /* the large channel counts for nothing, so that rounded weights cost little */
            weights_in(w, "sw")[o * 4] = 0;
            if (each[i].channel > 0)
                weights_in(w, "hw")[o * 32] = each[i].channel;
        }
        oct_goal goal = { .option = "--min-sqnr", .metric = "sqnr", .limit = { pow(10, -each[i].db / 10), false } };
        w->o.goals = &goal;
        w->o.n_goals = 1;
        w->o.trials = 8;
        decide(w);
        const oct_qjob *j = w->c.job;
        const char *culprit = each[i].channel > 0 ? "head" : "stem";
        const oct_goal_trial *first = &w->c.trials[0], *taken = &w->c.trials[1];
        assert_true(w->c.n_trials >= 2 && !first->met && taken->met && taken->taken);
        assert_true(first->layers + first->wide == 0 && taken->layers == !each[i].wide && taken->wide == each[i].wide);
        assert_true((taken->macs > 0) == !each[i].wide);
        const int q = node_named(w, culprit);
        assert_int_equal(oct_scheme_of(j, q), each[i].wide ? OCT_SCHEME_STATIC : OCT_SCHEME_FLOAT);
        assert_true(strncmp(oct_why_of(j, q),
                            each[i].wide ? "activations of 16 bits to reach the goal" : "left float to reach the goal",
                            28) == 0);
        assert_non_null(strstr(oct_why_of(j, q),
                               each[i].channel > 0 ? "rounding the weights of 'head'" : "rounding the value 'x'"));
        assert_true(!each[i].wide || oct_quant_of(j, j->g->input[0])->dtype == OCT_U16);
        assert_true(oct_row_of(j, node_named(w, "body"))->activations == OCT_U8);
        assert_true(to_db(real_noise(w, "y", 0)) > each[i].db); /* of other samples, by really quantized graphs */
        free_work(w);
    }
}

/* What is out of reach is left at the best that the trials found; what is reached at once takes none. */
TEST(goals_end_with_their_trials)
{
    static const struct {
        double db;
        int trials;
        size_t want;
    } cases[] = {
        { 300, 0, 0 }, { 300, 1, 2 }, { 300, 8, 4 }, { -50, 8, 1 }
    }; /* all float is equal: the second trial; a third wants to do with less */
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_goal goal;
        work *w = with_goal(cases[i].db, cases[i].trials, &goal);
        double best = -INFINITY;
        size_t taken = 0;
        assert_int_equal(w->c.n_trials, cases[i].want);
        for (size_t k = 0; k < w->c.n_trials; k++) {
            taken += w->c.trials[k].taken;
            best = fmax(best, w->c.trials[k].sqnr);
        }
        assert_int_equal(taken, cases[i].want > 0);
        for (size_t k = 0; k < w->c.n_trials; k++)
            assert_int_equal(w->c.trials[k].taken, w->c.trials[k].sqnr == best);
        assert_int_equal(isinf(best) && best > 0, cases[i].want == 4);
        free_work(w);
    }
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

/* ---- causes in the record ---- */

static oct_causes *causes_of(const char *file, float outlier, work **w)
{
    *w = new_work();
    build_planted(*w, outlier, false);
    (*w)->o.sensitivity = true;
    (*w)->o.sensitivity_file = file;
    decide(*w);
    return &(*w)->c.causes;
}

TEST(causes_are_ranked)
{
    work *w;
    const oct_causes *x = causes_of(NULL, 1, &w);
    assert_true(x->n >= 5 && x->weights && x->samples == (size_t)w->rows[0]);
    /* The input, whatever layer reads it; other values by their makers, and weights by their layers. */
    bool input = false, body = false, weights = false;
    double sum = 0, shares = 0;
    for (size_t i = 0; i < x->n; i++)
        sum += x->cause[i].noise;
    const double whole = fmax(sum, pow(10, -x->all / 10));
    assert_true(fabs(x->sum - to_db(sum)) < 1e-9);
    for (size_t i = 0; i < x->n; i++) {
        const oct_cause *k = &x->cause[i];
        shares += k->share;
        assert_true(i == 0 || k->noise <= x->cause[i - 1].noise);
        assert_true(fabs(k->share - k->noise / whole) < 1e-9 && fabs(k->sqnr - to_db(k->noise)) < 1e-9);
        assert_true(k->share >= 1 ? isinf(k->gain) : fabs(k->gain - (to_db(1 - k->share))) < 1e-9);
        input |= k->value && strcmp(k->value, "x") == 0 && !*k->layer;
        body |= k->value && strcmp(k->value, "t") == 0 && strcmp(k->layer, "body") == 0;
        weights |= !k->value && strcmp(k->layer, "head") == 0 && strcmp(k->op, "Conv") == 0;
    }
    assert_true(input && body && weights && shares < 1 + 1e-9);
    free_work(w);
}

/* The float model's score in verdicts that are about the other. */
static oct_eval_score of_float = { .value = 0.9, .chance = 0.1, .n = 400 };

/* Labels count from 0 on; other classes than float's where surely more than a tenth of the samples have them. */
TEST(close_calls_are_no_loss)
{
    static const struct {
        const char *metric;
        double drop, lo, hi;
        bool lossy;
    } cases[] = { { "agreement", 4.0 / 64, 0.020, 0.152, false }, { "agreement", 9.0 / 64, 0.076, 0.248, false },
                  { "agreement", 16.0 / 64, 0.160, 0.369, true }, { "top1", 0.05, 0.01, 0.09, true },
                  { "top1", 0.05, -0.01, 0.11, false },           { "agreement", 1, NAN, NAN, false } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_eval_score score = {
            .drop = cases[i].drop, .lo = cases[i].lo, .hi = cases[i].hi, .within_noise = cases[i].lo <= 0
        };
        oct_eval_model_result models[2] = { { .scores = &of_float }, { .scores = &score } };
        oct_eval_result r = { .models = models, .n_models = 2, .n_scores = 1 };
        oct_conversion c = { .verdict = &r, .sqnr = 25, .arena = oct_arena_create() };
        GOOD(oct_metric_find(cases[i].metric, &score.metric, err));
        oct_conversion_warn_of_loss(&c);
        assert_true(c.lossy == cases[i].lossy && c.n_warnings == cases[i].lossy);
        oct_arena_destroy(c.arena);
    }
}

/* Every loss that is warned of, and nothing else, is one to --strict. */
TEST(losses_are_warned_of)
{
    static const struct {
        double sqnr;
        const char *culprits, *says;
        bool judged;
    } cases[] = { { 25, NULL, NULL, true },         { 20, NULL, NULL, true },
                  { 11.9, NULL, "below 12", true }, { -INFINITY, NULL, "below 12", true },
                  { INFINITY, NULL, NULL, true },   { NAN, NULL, "infinite or NaN", true },
                  { NAN, NULL, NULL, false },       { 25, "conv", "conv", true } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_eval_model_result models[2] = { { 0 } };
        oct_eval_result r = { .models = models, .n_models = 2 };
        models[1].broken = isnan(cases[i].sqnr);
        oct_conversion c = { .verdict = cases[i].judged ? &r : NULL,
                             .sqnr = cases[i].sqnr,
                             .arena = oct_arena_create(),
                             .culprits = { .names = cases[i].culprits, .n = 1, .gain = 7 } };
        oct_conversion_warn_of_loss(&c);
        assert_int_equal(c.lossy, cases[i].says != NULL);
        assert_int_equal(c.n_warnings, cases[i].says != NULL);
        assert_true(!cases[i].says || strstr(c.warnings[0], cases[i].says));
        oct_arena_destroy(c.arena);
    }
}

static oct_status never_asked(const oct_graph *g, oct_err *err)
{
    return oct_fail(err, OCT_EUNSUPPORTED, "nothing is written here");
}

/* Below 20 dB there is a warning that fails nothing, and it names what was tried, or marks a guess. */
TEST(remedies_are_named)
{
    oct_sensitivity weak = { .weights = { .sqnr = 19 } }, good = { .weights = { .sqnr = 31.24 } };
    const struct {
        oct_remedy found;
        const oct_sensitivity *s;
        const char *says;
        oct_dynamic_trial dynamic;
    } cases[] = {
        { { 0.312, 22.04 }, &good, "--budget 32 leaves more layers float, with 22.0 dB", { 0 } },
        { { 0, 0 }, &good, "--scheme stored leaves activations float, and loses less (a guess)", { 0 } },
        { { 0, 0 }, &weak, "--scheme fp16 loses less (a guess)", { 0 } },
        { { 0, 0 }, NULL, "--scheme fp16 loses less (a guess)", { 0 } },
        { { 0.312, 22.04 },
          &good,
          "--scheme dynamic has 27.1 dB when it was tried, instead of 1",
          { .gains = true, .sqnr = 27.1, .larger = 1.01 } },
        { { 0.312, 22.04 },
          &good,
          "--scheme dynamic loses less (a guess)",
          { .gains = true, .sqnr = 27.1, .scaled = true, .larger = 1 } },
        { { 0, 0 }, &weak, "dB when it was tried, instead of 1", { .gains = true, .sqnr = 22.5, .larger = 1.5 } },
        { { 0.312, 22.04 }, NULL, "--budget 32 ", { .gains = true, .sqnr = 19, .larger = 1 } },
        { { 0.312, 10 }, NULL, "--scheme fp16 ", { .gains = true, .sqnr = 13.9, .larger = 1 } },
        { { 0, 0 }, &good, "--scheme stored ", { .gains = true, .sqnr = 19, .larger = 1 } },
        { { 0, 0 }, &good, "--scheme stored ", { .sqnr = 24, .larger = 1 } }
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        for (int poor = 0; poor < 2; poor++) {
            oct_conversion c = { .sqnr = poor ? 11 : 19.4,
                                 .arena = oct_arena_create(),
                                 .remedy = cases[i].found,
                                 .dynamic = cases[i].dynamic,
                                 .sensitivity = cases[i].s };
            oct_conversion_warn_of_loss(&c);
            assert_true(c.n_warnings == 1 && c.lossy == poor);
            assert_non_null(strstr(c.warnings[0], cases[i].says));
            assert_true(poor || strstr(c.warnings[0], "output SQNR 19.4 dB is below 20; "));
            oct_arena_destroy(c.arena);
        }
    for (size_t i = 0; i < OCT_COUNT(cases); i++) { /* a file of another form than ONNX's has no other scheme */
        oct_conversion c = { .o.writable = never_asked,
                             .sqnr = 19.4,
                             .arena = oct_arena_create(),
                             .remedy = cases[i].found,
                             .dynamic = cases[i].dynamic,
                             .sensitivity = cases[i].s };
        oct_conversion_warn_of_loss(&c);
        assert_true(c.n_warnings == 1 && !strstr(c.warnings[0], "--scheme"));
        assert_int_equal(strstr(c.warnings[0], "--budget 32 ") != NULL, cases[i].found.sqnr > c.sqnr);
        oct_arena_destroy(c.arena);
    }
}

static void keep_note(void *arg, int level, const char *text)
{
    assert_int_equal(level, 0);
    snprintf(arg, 400, "%s", text);
}

/* Dynamic ranges that gain are said without a warning below 40 dB, and above where a score has lost. */
TEST(dynamic_is_said)
{
    static const struct {
        double sqnr, drop, hi;
        bool gains, says;
    } cases[] = { { 39.9, 0, 0.04, true, true },     { 39.9, 0, 0.04, false, false },  { 40.1, 0, 0.04, true, false },
                  { 40.1, 0.02, 0.051, true, true }, { 42, 0.02, 0.051, true, false }, /* it gains less than 3 dB at the
                                                                                          outputs */
                  { 40.1, 0.02, 0.049, true, false } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char said[400] = "";
        oct_eval_score score = { .drop = cases[i].drop, .lo = 0, .hi = cases[i].hi, .n = 100, .within_noise = true };
        oct_eval_model_result models[2] = { { .scores = &of_float }, { .scores = &score } };
        oct_eval_result r = { .models = models, .n_models = 2, .n_scores = 1 };
        oct_conversion c = { .verdict = &r,
                             .sqnr = cases[i].sqnr,
                             .arena = oct_arena_create(),
                             .dynamic = { .gains = cases[i].gains, .sqnr = 44.25, .larger = 0.9 } };
        c.o.listener.note = keep_note;
        c.o.listener.arg = said;
        GOOD(oct_metric_find("agreement", &score.metric, err));
        oct_conversion_warn_of_loss(&c);
        assert_true(!c.lossy && c.n_warnings == 0 && c.curable == cases[i].says);
        if (cases[i].says)
            assert_string_equal(said, cases[i].sqnr < 40 ? "--scheme dynamic has 44.2 dB when it was tried, instead of "
                                                           "39.9, in a file about 10 % smaller"
                                                         : "--scheme dynamic has 44.2 dB when it was tried, instead of "
                                                           "40.1, in a file about 10 % smaller");
        else
            assert_null(strstr(said, "dynamic"));
        oct_arena_destroy(c.arena);
    }
}

/* A float model of ten classes that guesses is 5.3 points above 10 % once in 20 times with 128 samples. */
TEST(guesses_are_said)
{
    static const struct {
        double value;
        uint64_t n;
        bool says;
    } cases[] = { { 0.1, 128, true }, { 0.15, 128, true }, { 0.16, 128, false }, { 0.1, 19, false }, { 0, 20, true } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_eval_score of[2] = { { .value = cases[i].value, .chance = 0.1, .n = cases[i].n, .drop = NAN },
                                 { .n = cases[i].n, .lo = NAN, .hi = NAN } };
        oct_eval_model_result models[2] = { { .scores = &of[0] }, { .scores = &of[1] } };
        oct_eval_result r = { .models = models, .n_models = 2, .n_scores = 1 };
        oct_conversion c = { .verdict = &r, .sqnr = 50, .arena = oct_arena_create() };
        GOOD(oct_metric_find("top1", &of[0].metric, err));
        of[1].metric = of[0].metric;
        oct_conversion_warn_of_loss(&c);
        assert_int_equal(c.n_warnings, cases[i].says);
        assert_true(!cases[i].says || strstr(c.warnings[0], "and guessing has 10 %: "));
        assert_false(c.lossy);
        oct_arena_destroy(c.arena);
    }
}

/* Intervals that allow a loss which counts are said, with how many samples would exclude it: of 12 samples without a
 * change 5 points would need 12 * 24.2 / 5 = 58, of 100 with one of 2 points 100 * ((6 - 2) / 1)^2 = 1600. */
TEST(few_samples_are_said)
{
    static const struct {
        const char *metric;
        double drop, lo, hi;
        uint64_t n;
        const char *says;
    } cases[] = { { "agreement", 0, 0, 0.242, 12,
                    "12 samples cannot exclude a loss of agreement of up to 24.2 points (95 %): about 59 " },
                  { "agreement", 0, 0, 0.049, 75, NULL },
                  { "top1", 0.02, -0.02, 0.06, 100,
                    "100 samples cannot exclude a loss of top1 of up to 6.0 points (95 %): about 1600 " },
                  { "top1", -0.02, -0.05, 0.02, 100, "about 1600 " },
                  { "top1", 0, -0.005, 0.009, 900, NULL },
                  { "agreement", 0, NAN, NAN, 2, NULL } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char said[400] = "";
        oct_eval_score score = {
            .drop = cases[i].drop, .lo = cases[i].lo, .hi = cases[i].hi, .n = cases[i].n, .within_noise = true
        };
        oct_eval_model_result models[2] = { { .scores = &of_float }, { .scores = &score } };
        oct_eval_result r = { .models = models, .n_models = 2, .n_scores = 1 };
        oct_conversion c = { .verdict = &r, .sqnr = 35, .arena = oct_arena_create() };
        c.o.listener.note = keep_note;
        c.o.listener.arg = said;
        GOOD(oct_metric_find(cases[i].metric, &score.metric, err));
        oct_conversion_warn_of_loss(&c);
        assert_true(!c.lossy && c.n_warnings == 0);
        if (cases[i].says ? !strstr(said, cases[i].says) : *said)
            fail_msg("case %zu: %s", i, said);
        oct_arena_destroy(c.arena);
    }
}

/* As many samples judge a small model as show that 5 points were not lost, where nothing has changed; fewer could not.
 */
TEST(enough_samples_judge)
{
    work *w = new_work();
    build_product(w);
    const int64_t enough = oct_enough_to_judge(w->m.graph);
    oct_paired p[2] = { { 0 }, { 0 } };
    for (int64_t i = 0; i < enough; i++)
        oct_paired_add(&p[0], 1, 1);
    for (int i = 0; i < 64; i++)
        oct_paired_add(&p[1], 1, 1);
    assert_true(oct_paired_proportion(&p[0]).lo > -0.05 && oct_paired_proportion(&p[1]).lo < -0.05);
    oct_graph_destroy(w->m.graph);
    oct_target_close(w->target);
    free(w);
}

/* A method's measurements are recorded without weights, and without what is float now. */
TEST(causes_of_a_method)
{
    work *w;
    planted(100, false, true, &w);
    const oct_causes *x = &w->c.causes;
    assert_true(x->samples > 0 && !x->weights && x->all > 0);
    for (size_t i = 0; i < x->n; i++)
        assert_true(x->cause[i].value && strcmp(x->cause[i].value, "x") != 0);
    free_work(w);
}

static void rewrite(const char *path, const char *from, const char *to)
{
    char text[20000];
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    char *at = strstr(text, from);
    assert_true(at && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    rewind(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

TEST(measurements_are_kept)
{
    char path[300];
    work *w;
    snprintf(path, sizeof path, "%s/kept", folder);
    const double all = causes_of(path, 100, &w)->all;
    free_work(w);
    assert_true(causes_of(path, 100, &w)->all == all);
    free_work(w);
    /* What the file has is taken from it; what it lacks is measured. */
    rewrite(path, "\nall 0 0 0.", "\nall 0 0 9.");
    assert_true(causes_of(path, 100, &w)->all < 0);
    free_work(w);
    rewrite(path, "\nall 0 0 9.", "\nall 9 9 9.");
    assert_true(causes_of(path, 100, &w)->all == all);
    free_work(w);
    /* Another model and other samples have another key. */
    rewrite(path, "\nall 9 9 9.", "\nall 0 0 9.");
    const oct_causes *x = causes_of(path, 50, &w);
    assert_true(x->all > 0 && x->all != all);
    free_work(w);
    rewrite(path, "octet sens", "octet sins");
    oct_memo *m;
    size_t known;
    oct_err fault = OCT_ERR_INIT;
    oct_arena *a = oct_arena_create();
    assert_int_equal(oct_memo_open(path, 1, a, &m, &known, &fault), OCT_EMALFORMED);
    assert_non_null(strstr(fault.text, "left as it is"));
    oct_arena_destroy(a);
    unlink(path);
}

/* ---- compensated rounding ---- */

enum { DEPTH = 100, NEURONS = 5, LATENT = 3, POSITIONS = 1024 }; /* the last: that are drawn for a layer as deep */

/* Samples of few sources: inputs go together, in all halves alike. Position p of `positions` has channels by rows of
 * one matrix. */
static void correlate(work *w, size_t channels, size_t positions)
{
    uint32_t seed = 41;
    float *mix = calloc(channels * LATENT, sizeof *mix);
    net_fill(mix, channels * LATENT, 43);
    for (int r = 0; r < ROWS; r++)
        for (size_t p = 0; p < positions; p++) {
            float z[LATENT];
            for (int k = 0; k < LATENT; k++)
                z[k] = (float)(net_next(&seed) % 2001) / 1000.0f - 1;
            for (size_t c = 0; c < channels; c++) {
                float v = 0.02f * ((float)(net_next(&seed) % 2001) / 1000.0f - 1);
                for (int k = 0; k < LATENT; k++)
                    v += mix[c * LATENT + (size_t)k] * z[k];
                w->x[r][c * positions + p] = v;
            }
        }
    free(mix);
}

/* x of A x = b for the n by n matrix a, which is positive definite; both are overwritten. */
static void solve(double *a, double *b, int n)
{
    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++) {
            const double f = a[i * n + k] / a[k * n + k];
            for (int j = k; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
            b[i] -= f * b[k];
        }
    for (int k = n; k-- > 0;) {
        for (int j = k + 1; j < n; j++)
            b[k] -= a[k * n + j] * b[j];
        b[k] /= a[k * n + k];
    }
}

/* How far, in steps, the rounded weights q[n] of one output are at most from what they should be, with moments h[n][n]:
 * input after input in the given order, where those that are left could still be anything. The least error with the
 * errors e of the earlier ones has H_LL d = H_LE e for the changes d of those left. */
static double farthest(const float *w, const double *h, const int *order, int n, double scale, int limit,
                       const int8_t *q)
{
    double *a = calloc((size_t)(n * n), sizeof *a), *b = calloc((size_t)n, sizeof *b),
           *e = calloc((size_t)n, sizeof *e), most = 0;
    for (int k = 0; k < n; k++) {
        const int left = n - k;
        for (int i = 0; i < left; i++) {
            b[i] = 0;
            for (int j = 0; j < k; j++)
                b[i] += h[order[k + i] * n + order[j]] * e[j];
            for (int j = 0; j < left; j++)
                a[i * left + j] = h[order[k + i] * n + order[k + j]];
        }
        solve(a, b, left);
        const double want = fmin(fmax(((double)w[order[k]] + b[0]) / scale, -limit), limit);
        most = fmax(most, fabs(want - q[order[k]]));
        e[k] = (double)w[order[k]] - q[order[k]] * scale;
    }
    free(a);
    free(b);
    free(e);
    return most;
}

/* Samples of one position each, which is drawn again and again, so that the moments are known: sum of x x', and a
 * hundredth of the mean of its diagonal. */
TEST(rounding_is_that_of_the_reference)
{
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,100");
    correlate(w, DEPTH, 1);
    const int m = net_random(g, "w", "5,100", 17);
    float *v = (float *)(uintptr_t)g->value[m].constant->data;
    uint32_t seed = 19;
    for (int i = 0; i < NEURONS * DEPTH; i++)
        v[i] += (float)(net_next(&seed) % 1000) * 1e-5f;
    net_output(g, NET_NODE(g, "Gemm", "layer", "y", g->input[0], m));
    net_int(g, "transB", 1);
    on(w, "compensated-rounding");
    decide(w);
    assert_string_equal(method(w, "compensated-rounding")->choice, "");
    const int node = node_named(w, "layer");
    const qweights *q = w->c.job->constants[node].weights[0];
    const float *real = oct_layer_weights(w->c.job->g, node)->data;
    static double h[DEPTH * DEPTH];
    int order[DEPTH], moved = 0;
    double trace = 0;
    memset(h, 0, sizeof h);
    for (int k = 0; k < w->rows[0]; k++) {
        const float *x = w->x[w->row[0][k]];
        const int times = (k + 1) * POSITIONS / w->rows[0] - k * POSITIONS / w->rows[0];
        for (int i = 0; i < DEPTH * DEPTH; i++)
            h[i] += times * (double)x[i / DEPTH] * (double)x[i % DEPTH];
    }
    for (int i = 0; i < DEPTH; i++) {
        int at = i;
        for (; at > 0 && h[order[at - 1] * (DEPTH + 1)] < h[i * (DEPTH + 1)]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        trace += h[i * (DEPTH + 1)];
    }
    for (int i = 0; i < DEPTH; i++)
        h[i * (DEPTH + 1)] += 0.01 * trace / DEPTH;
    for (int o = 0; o < NEURONS; o++) {
        const double scale = (double)q->quant.scale[o];
        const int8_t *got = (const int8_t *)q->qvals->data + o * DEPTH;
        assert_true(farthest(real + o * DEPTH, h, order, DEPTH, scale, q->limit, got) < 0.51);
        for (int i = 0; i < DEPTH; i++)
            moved += got[i] != (int)rint((double)real[o * DEPTH + i] / scale);
    }
    assert_true(moved > 20); /* from the nearest value */
    free_work(w);
}

typedef struct conv_case {
    const char *input, *weights;
    int group, stride, dilation, pad;
} conv_case;

/* Sum of the squares of what a convolution makes of the weights' errors, at all positions of the samples of the first
 * half. */
static double patch_error(const work *w, const conv_case *k, const float *real, const qweights *q)
{
    oct_dim in[4], kernel[4];
    net_dims(w->m.graph, k->input, in);
    net_dims(w->m.graph, k->weights, kernel);
    const int ins = (int)in[1].n, high = (int)in[2].n, wide = (int)in[3].n, outs = (int)kernel[0].n,
              depth = (int)kernel[1].n, side = (int)kernel[2].n;
    const int reach = (side - 1) * k->dilation + 1;
    double sum = 0;
    assert_int_equal(depth * k->group, ins);
    for (int n = 0; n < w->rows[0]; n++)
        for (int o = 0; o < outs; o++)
            for (int y0 = -k->pad; y0 + reach <= high + k->pad; y0 += k->stride)
                for (int x0 = -k->pad; x0 + reach <= wide + k->pad; x0 += k->stride) {
                    double e = 0;
                    for (int c = 0; c < depth; c++)
                        for (int t = 0; t < side * side; t++) {
                            const int at = (o * depth + c) * side * side + t, y = y0 + t / side * k->dilation,
                                      x = x0 + t % side * k->dilation;
                            const int channel = o / (outs / k->group) * depth + c;
                            if (y >= 0 && y < high && x >= 0 && x < wide)
                                e += ((double)real[at] -
                                      ((const int8_t *)q->qvals->data)[at] * (double)q->quant.scale[o]) *
                                     (double)w->x[w->row[0][n]][(channel * high + y) * wide + x];
                        }
                    sum += e * e;
                }
    return sum;
}

/* method, other: methods that are on, or NULL. */
static work *converted_conv(const conv_case *k, const char *target, const char *method, const char *other)
{
    work *w = new_work_for(target);
    oct_graph *g = w->m.graph;
    oct_dim in[4];
    set_input(w, k->input);
    net_dims(g, k->input, in);
    correlate(w, (size_t)in[1].n, (size_t)(in[2].n * in[3].n));
    const int y = NET_NODE(g, "Conv", "layer", "y", g->input[0], net_random(g, "w", k->weights, 23));
    net_int(g, "group", k->group);
    NET_INTS(g, "strides", k->stride, k->stride);
    NET_INTS(g, "dilations", k->dilation, k->dilation);
    NET_INTS(g, "pads", k->pad, k->pad, k->pad, k->pad);
    net_output(g, y);
    if (method)
        on(w, method);
    if (other)
        on(w, other);
    decide(w);
    return w;
}

TEST(rounding_helps_convolutions)
{
    static const conv_case cases[] = {
        { "1,12,8,8", "6,12,1,1", 1, 1, 1, 0 }, { "1,6,9,9", "8,6,3,3", 1, 1, 1, 1 },
        { "1,8,9,9", "6,4,3,3", 2, 1, 1, 0 },   { "1,6,11,11", "6,6,3,3", 1, 2, 1, 1 },
        { "1,6,11,11", "4,6,3,3", 1, 1, 2, 2 }, { "1,12,11,11", "8,6,3,3", 2, 2, 2, 1 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        work *w[2];
        double error[2];
        for (int k = 0; k < 2; k++) {
            w[k] = converted_conv(&cases[i], "octet", k ? "compensated-rounding" : NULL, NULL);
            const int node = node_named(w[k], "layer");
            error[k] = patch_error(w[k], &cases[i], oct_layer_weights(w[k]->c.job->g, node)->data,
                                   w[k]->c.job->constants[node].weights[0]);
        }
        const qweights *a = w[0]->c.job->constants[node_named(w[0], "layer")].weights[0];
        const qweights *b = w[1]->c.job->constants[node_named(w[1], "layer")].weights[0];
        if (!(error[1] < 0.7 * error[0]))
            fail_msg("case %zu: %g of %g (%s)", i, error[1], error[0], method(w[1], "compensated-rounding")->choice);
        assert_memory_equal(a->quant.scale, b->quant.scale, (size_t)a->quant.n * sizeof(float));
        for (int64_t e = 0; e < b->qvals->count; e++)
            assert_in_range(((const int8_t *)b->qvals->data)[e] + b->limit, 0, 2 * b->limit);
        free_work(w[0]);
        free_work(w[1]);
    }
}

/* Elements of a convolution's weights in the order in which they are multiplied, (ky, kx, ic): two in a row are added
 * in 16 bits. */
static bool pairs_fit(const qweights *q, const oct_dim *kernel)
{
    const int8_t *v = q->qvals->data;
    const int ins = (int)kernel[1].n, taps = (int)(kernel[2].n * kernel[3].n);
    for (int o = 0; o < (int)kernel[0].n; o++)
        for (int at = 0; at + 1 < ins * taps; at += 2) {
            const int a = v[(o * ins + at % ins) * taps + at / ins],
                      b = v[(o * ins + (at + 1) % ins) * taps + (at + 1) / ins];
            const int positive = (a > 0 ? a : 0) + (b > 0 ? b : 0), negative = (a < 0 ? a : 0) + (b < 0 ? b : 0);
            if (255 * positive > 32767 || 255 * negative < -32768)
                return false;
        }
    return true;
}

/* Where sums of pairs saturate: s8 weights whose pairs fit, at steps of one to two times their own. Weights that are
 * spread evenly lose most by it, about the 6 dB that are allowed where so little is lost by rounding. Also with groups
 * of several channels, an odd number of which makes pairs of different taps. */
TEST(rounding_keeps_pairs_safe)
{
    static const conv_case cases[] = {
        { "1,12,8,8", "6,12,1,1", 1, 1, 1, 0 },
        { "1,7,9,9", "8,7,3,3", 1, 1, 1, 1 },
        { "1,10,9,9", "6,5,3,3", 2, 1, 1, 0 },
        { "1,6,9,9", "12,1,3,3", 6, 1, 1, 1 },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        work *w[2] = { converted_conv(&cases[i], "onnxruntime-x86", "compensated-rounding", NULL),
                       converted_conv(&cases[i], "onnxruntime-x86", "compensated-rounding", "safe-pairs") };
        const qweights *q[2];
        oct_dim kernel[4];
        double error[2];
        net_dims(w[0]->m.graph, cases[i].weights, kernel);
        for (int k = 0; k < 2; k++) {
            const int node = node_named(w[k], "layer");
            q[k] = w[k]->c.job->constants[node].weights[0];
            error[k] = patch_error(w[k], &cases[i], oct_layer_weights(w[k]->c.job->g, node)->data, q[k]);
        }
        assert_false(pairs_fit(q[0], kernel));
        assert_int_equal(q[0]->quant.dtype, OCT_U8);
        assert_true(pairs_fit(q[1], kernel));
        assert_int_equal(q[1]->quant.dtype, OCT_S8);
        assert_non_null(strstr(q[1]->remedy, "made safe"));
        assert_true(error[1] < 5 * error[0]);
        for (int c = 0; c < q[0]->quant.n; c++)
            assert_true(q[1]->quant.scale[c] >= q[0]->quant.scale[c] &&
                        q[1]->quant.scale[c] <= 2 * q[0]->quant.scale[c]);
        oct_conversion_changed(&w[1]->c);
        GOOD(oct_conversion_settle(&w[1]->c, err));
        assert_ptr_equal(w[1]->c.job->constants[node_named(w[1], "layer")].weights[0]->qvals,
                         q[1]->qvals); /* decided again, they stay */
        free_work(w[0]);
        free_work(w[1]);
    }
}

/* Each channel of a depthwise convolution alone, where neighbours are alike. */
TEST(rounding_helps_depthwise)
{
    static const conv_case k = { "1,6,10,10", "6,1,3,3", 6, 1, 1, 1 };
    double error[2];
    for (int c = 0; c < 2; c++) {
        work *w = new_work();
        oct_graph *g = w->m.graph;
        set_input(w, k.input);
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < 600; i++)
                w->x[r][i] = sinf(0.2f * (float)(i % 100 / 10 + r) + 0.15f * (float)(i % 10) + (float)(i / 100)) +
                             0.05f * w->x[r][i];
        const int y = NET_NODE(g, "Conv", "layer", "y", g->input[0], net_random(g, "w", k.weights, 29));
        net_int(g, "group", 6);
        NET_INTS(g, "pads", 1, 1, 1, 1);
        net_output(g, y);
        if (c)
            on(w, "compensated-rounding");
        decide(w);
        const int node = node_named(w, "layer");
        error[c] = patch_error(w, &k, oct_layer_weights(w->c.job->g, node)->data, w->c.job->constants[node].weights[0]);
        free_work(w);
    }
    assert_true(error[1] < 0.7 * error[0]);
}

/* Rows of a matrix with more than one dimension before its channels. */
TEST(rounding_helps_products)
{
    enum { IN = 20, OUT = 6, ROW = 7 };
    double error[2] = { 0, 0 };
    for (int c = 0; c < 2; c++) {
        work *w = new_work();
        oct_graph *g = w->m.graph;
        static float by_channel[ROWS][IN * ROW];
        set_input(w, "1,7,20");
        correlate(w, IN, ROW);
        for (int r = 0; r < ROWS; r++) {
            memcpy(by_channel[r], w->x[r], sizeof by_channel[r]);
            for (int i = 0; i < IN * ROW; i++)
                w->x[r][i] = by_channel[r][i % IN * ROW + i / IN];
        }
        net_output(g, NET_NODE(g, "MatMul", "layer", "y", g->input[0], net_random(g, "w", "20,6", 37)));
        if (c)
            on(w, "compensated-rounding");
        decide(w);
        const int node = node_named(w, "layer");
        const qweights *q = w->c.job->constants[node].weights[0];
        const float *real = oct_layer_weights(w->c.job->g, node)->data;
        for (int k = 0; k < w->rows[0] * ROW * OUT; k++) {
            const float *x = w->x[w->row[0][k / (ROW * OUT)]] + k / OUT % ROW * IN;
            double e = 0;
            for (int i = 0; i < IN; i++) {
                const int at = i * OUT + k % OUT;
                e += ((double)real[at] -
                      ((const int8_t *)q->qvals->data)[at] * (double)q->quant.scale[q->quant.n > 1 ? k % OUT : 0]) *
                     (double)x[i];
            }
            error[c] += e * e;
        }
        free_work(w);
    }
    assert_true(error[1] < 0.7 * error[0]);
}

/* ---- pixels to pixels ---- */

/* Pictures: waves of long periods, as neighbouring pixels are alike. */
static void paint(work *w, int channels, int side)
{
    uint32_t seed = 91;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < channels; c++) {
            double f[6], *a = f;
            for (int k = 0; k < 6; k++)
                f[k] = (double)(net_next(&seed) % 1000) / 1000;
            for (int y = 0; y < side; y++)
                for (int x = 0; x < side; x++)
                    w->x[r][(c * side + y) * side + x] =
                        (float)(0.5 + 0.3 * a[0] * cos(0.3 * a[1] * x + 0.3 * a[2] * y) +
                                0.2 * a[3] * sin(0.5 * a[4] * x - 0.4 * a[5] * y));
        }
}

typedef struct pixel_conv {
    int outs, kernel;
} pixel_conv;
typedef struct pixel_net {
    int channels;
    pixel_conv conv[4];
} pixel_net;

/* What rounded weights leave at the output, with the biases corrected; compensated: and rounded so. */
static double weight_noise(const pixel_net *net, bool compensated)
{
    enum { SIDE = 20 };
    static const char *const name[] = { "c0", "c1", "c2", "c3" }, *const weights[] = { "w0", "w1", "w2", "w3" },
                             *const out[] = { "y0", "y1", "y2", "y3" };
    static const char *const act[] = { "a0", "a1", "a2" }, *const relu[] = { "r0", "r1", "r2" };
    work *w = new_work();
    oct_graph *g = w->m.graph;
    char dims[40];
    snprintf(dims, sizeof dims, "1,%d,%d,%d", net->channels, SIDE, SIDE);
    set_input(w, dims);
    paint(w, net->channels, SIDE);
    int v = g->input[0], ins = net->channels;
    for (int k = 0; k < 4 && net->conv[k].outs; k++) {
        const pixel_conv *c = &net->conv[k];
        const int pad = c->kernel / 2;
        snprintf(dims, sizeof dims, "%d,%d,%d,%d", c->outs, ins, c->kernel, c->kernel);
        v = NET_NODE(g, "Conv", name[k], out[k], v, net_random(g, weights[k], dims, 95u + (uint32_t)k));
        NET_INTS(g, "pads", pad, pad, pad, pad);
        if (k < 3 && net->conv[k + 1].outs)
            v = NET_NODE(g, "Relu", relu[k], act[k], v);
        ins = c->outs;
    }
    net_output(g, v);
    on(w, "bias-weights");
    on(w, "bias-inputs");
    on(w, "bias-sequence");
    if (compensated)
        on(w, "compensated-rounding");
    decide(w);
    const oct_sim_mask alone = { .no_values = true, .weights = OCT_SIM_ROUNDED_WEIGHTS };
    const double noise = measured(w, 1, &alone).noise;
    free_work(w);
    return noise;
}

/* Of small networks that map pixels to pixels, rounded weights cost at most half of what they cost with corrected
 * biases alone. */
TEST(rounding_helps_pixels)
{
    static const pixel_net nets[] = {
        { 1, { { 12, 5 }, { 8, 1 }, { 4, 3 } } },          /* super-resolution: pixels of each in four channels */
        { 3, { { 16, 3 }, { 16, 3 }, { 3, 3 } } },         /* what a picture lacks */
        { 1, { { 8, 3 }, { 8, 3 }, { 8, 3 }, { 2, 3 } } }, /* colours of grey pictures */
    };
    for (size_t i = 0; i < OCT_COUNT(nets); i++) {
        const double with = weight_noise(&nets[i], true), without = weight_noise(&nets[i], false);
        if (!(with <= 0.5 * without))
            fail_msg("network %zu: %g of %g", i, with, without);
    }
}

/* ---- made samples ---- */

/* ---- bias sequence ---- */

enum { WIDTH = 48, LEVELS = 3, SPOTS = 16 };

/* 1x1 convolutions: means of outputs follow from means of inputs. `against`: the second half has the opposite sign. */
static work *converted_chain(bool against)
{
    static const char *const out[] = { "y0", "y1", "y2" }, *const name[] = { "l0", "l1", "l2" },
                             *const weights[] = { "w0", "w1", "w2" };
    work *w = new_work();
    oct_graph *g = w->m.graph;
    set_input(w, "1,48,4,4");
    for (int r = 0; r < ROWS; r++)
        for (size_t i = 0; i < w->size; i++)
            w->x[r][i] = (against && r % 2 ? -1 : 1) * (1 + 0.05f * w->x[r][i]);
    int v = g->input[0];
    for (int k = 0; k < LEVELS; k++)
        v = NET_NODE(g, "Conv", name[k], out[k], v, net_random(g, weights[k], "48,48,1,1", 31u + (uint32_t)k));
    net_output(g, v);
    on(w, "bias-sequence");
    decide(w);
    return w;
}

/* Means of the inputs of layer k in graph g for sample n of the first half; rounds: as integers have the model's input.
 */
static void input_means(const work *w, const oct_graph *g, int k, bool rounds, int n, double mean[WIDTH])
{
    static const char *const in[] = { NULL, "y0", "y1" };
    static float v[MOST];
    const oct_quant *q = oct_quant_of(w->c.job, w->c.job->g->input[0]);
    const float *first = w->x[w->row[0][n]];
    memset(mean, 0, WIDTH * sizeof *mean);
    if (k > 0)
        value_of(g, in[k], first, v);
    for (int i = 0; i < WIDTH * SPOTS; i++) {
        const double x = k > 0    ? (double)v[i]
                         : rounds ? rounded((double)first[i], (double)q->scale[0], q->zp[0])
                                  : (double)first[i];
        mean[i / SPOTS] += x / SPOTS;
    }
}

/* What is to be added, of what each sample lacks: the mean, less the share of its square that chance explains. */
static double shrunk_mean(const double *lacks, int n)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++)
        mean += lacks[i] / n;
    for (int i = 0; i < n; i++)
        squares += (lacks[i] - mean) * (lacks[i] - mean);
    return fmax(0, 1 - squares / (n - 1) / n / (mean * mean)) * mean;
}

TEST(biases_keep_means)
{
    static const char *const name[] = { "l0", "l1", "l2" };
    work *w = converted_chain(false);
    const oct_method_result *r = method(w, "bias-sequence");
    const oct_qjob *j = w->c.job;
    oct_graph *copy;
    double worst_without = 0;
    assert_true(r->ran && r->after > r->before && !*r->choice);
    GOOD(oct_quantized_copy(w->c.job, &copy, err));
    for (int k = 0; k < LEVELS; k++) {
        double real[ROWS][WIDTH], quant[ROWS][WIDTH];
        const int node = node_named(w, name[k]), rows = w->rows[0];
        const qweights *q = j->constants[node].weights[0];
        const oct_quant *bias = j->constants[node].bias;
        const float *weights = oct_layer_weights(j->g, node)->data;
        for (int n = 0; n < rows; n++) {
            input_means(w, j->g, k, false, n, real[n]);
            input_means(w, copy, k, true, n, quant[n]);
        }
        assert_non_null(bias);
        for (int o = 0; o < WIDTH; o++) {
            const double step = (double)bias->scale[bias->n > 1 ? o : 0];
            double lacks[ROWS] = { 0 };
            for (int n = 0; n < rows; n++)
                for (int i = 0; i < WIDTH; i++)
                    lacks[n] +=
                        (double)weights[o * WIDTH + i] * real[n][i] -
                        ((const int8_t *)q->qvals->data)[o * WIDTH + i] * (double)q->quant.scale[o] * quant[n][i];
            const double want = shrunk_mean(lacks, rows);
            worst_without = fmax(worst_without, fabs(want) / step);
            const double off = ((const int32_t *)bias->qvals->data)[o] * step - want;
            if (fabs(off) > step)
                fail_msg("layer %d, channel %d: off by %g steps", k, o, off / step);
        }
    }
    assert_true(worst_without > 20);
    oct_graph_destroy(copy);
    free_work(w);
}

TEST(biases_stay_where_a_check_says_so)
{
    work *w = converted_chain(true);
    const oct_method_result *r = method(w, "bias-sequence");
    assert_true(r->ran && strstr(r->choice, "biases stay") && r->after == r->before);
    assert_null(w->c.job->constants[node_named(w, "l0")].bias);
    free_work(w);
}

/* ---- smoothing ---- */

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

/* ---- runs in parts ---- */

typedef struct changer {
    size_t tap;
    const oct_operand *at;
    int after; /* values shown since */
} changer;

static oct_status remember(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    changer *c = arg;
    c->after += c->at != NULL;
    if (tap == c->tap)
        c->at = t;
    return OCT_OK;
}

static const char *const chain_taps[] = { "a", "b", "never shown" };
enum { TAP_A, TAP_B, TAP_NEVER };
static const oct_plan_opts chain_opts = { .taps = chain_taps, .n_taps = OCT_COUNT(chain_taps), .no_passes = true };

/* x[1,12] -> a[1,7] = x w -> b = -a; both are shown. */
static oct_graph *start_chain(int *a, int *b)
{
    oct_graph *g = net_graph(13);
    *a = NET_NODE(g, "MatMul", "first", "a", net_input(g, "x", OCT_F32, "1,12"), net_random(g, "w", "12,7", 3));
    *b = NET_NODE(g, "Neg", "second", "b", *a);
    return g;
}

TEST(runs_go_on_in_parts)
{
    int a, b;
    oct_graph *g = start_chain(&a, &b);
    net_output(g, NET_NODE(g, "MatMul", "third", "y", b, net_random(g, "v", "7,3", 4)));
    float in[12], want[3];
    const void *inputs[] = { in };
    net_fill(in, 12, 5);
    oct_plan *p = net_plan(g, &chain_opts, NULL);
    GOOD(oct_plan_run(p, inputs, err));
    memcpy(want, oct_plan_output(p, 0)->data, sizeof want);
    changer c = { TAP_A, NULL, 0 };
    bool seen;
    oct_plan_set_tap(p, remember, &c);
    GOOD(oct_plan_begin(p, inputs, err));
    assert_null(c.at);
    GOOD(oct_plan_advance(p, TAP_A, &seen, err));
    assert_true(seen && c.at && c.after == 0);
    GOOD(oct_plan_advance(p, OCT_NO_TAP, &seen, err));
    assert_true(!seen && c.after == 1);
    assert_memory_equal(want, oct_plan_output(p, 0)->data, sizeof want);
    /* A change in between is what follows reads: a doubled, so the output is. */
    GOOD(oct_plan_begin(p, inputs, err));
    GOOD(oct_plan_advance(p, TAP_A, &seen, err));
    for (int64_t i = 0; i < c.at->count; i++)
        ((float *)c.at->data)[i] *= 2;
    GOOD(oct_plan_advance(p, TAP_NEVER, &seen, err));
    assert_false(seen);
    for (int i = 0; i < 3; i++)
        assert_true(((const float *)oct_plan_output(p, 0)->data)[i] == 2 * want[i]);
    oct_plan_destroy(p);
    oct_graph_destroy(g);
}

/* What is kept of a run goes on in another plan, which had another input, even when tensors of the first one have
 * changed since. */
TEST(runs_go_on_from_what_was_kept)
{
    int a, b;
    oct_graph *g = start_chain(&a, &b);
    net_output(g, NET_NODE(g, "Add", "third", "y", NET_NODE(g, "Mul", "square", "s", b, b),
                           a)); /* a is still read later */
    float in[12], other[12];
    const void *inputs[] = { in }, *others[] = { other };
    net_fill(in, 12, 5);
    net_fill(other, 12, 6);
    oct_plan *p = net_plan(g, &chain_opts, NULL), *q = net_plan(g, &chain_opts, NULL);
    oct_plan_state kept = { .at = 0 };
    changer c = { TAP_B, NULL, 0 };
    bool seen;
    GOOD(oct_plan_run(q, others, err));
    GOOD(oct_plan_begin(p, inputs, err));
    GOOD(oct_plan_advance(p, TAP_B, &seen, err));
    assert_true(seen && oct_plan_save(p, &kept));
    GOOD(oct_plan_run(p, others, err));
    oct_plan_set_tap(q, remember, &c);
    GOOD(oct_plan_begin(q, inputs, err));
    GOOD(oct_plan_restore(q, &kept, err));
    assert_true(c.at && c.after == 0); /* b is shown once more, and a is not */
    GOOD(oct_plan_advance(q, OCT_NO_TAP, &seen, err));
    const float *w = g->value[oct_graph_find(g, "w")].constant->data;
    for (int k = 0; k < 7; k++) {
        double sum = 0;
        for (int i = 0; i < 12; i++)
            sum += (double)in[i] * (double)w[i * 7 + k];
        assert_true(fabs((double)((const float *)oct_plan_output(q, 0)->data)[k] - (sum * sum + sum)) < 1e-4);
    }
    oct_plan_state_free(&kept);
    oct_plan_destroy(p);
    oct_plan_destroy(q);
    oct_graph_destroy(g);
}

TEST(stages_have_no_parts)
{
    char path[300];
    oct_model *m;
    oct_plan *p;
    oct_err fault = OCT_ERR_INIT;
    snprintf(path, sizeof path, "%s/testdata/models/nested_functions.onnx", getenv("OCT_SOURCE"));
    GOOD(oct_model_load(path, &m, err));
    p = net_plan(m->graph, NULL, (const char *const[]){ "1,3,4,4" });
    assert_int_equal(oct_plan_begin(p, (const void *[]){ NULL }, &fault), OCT_EUNSUPPORTED);
    assert_non_null(strstr(fault.text, "stages"));
    oct_plan_destroy(p);
    oct_model_free(m);
}
