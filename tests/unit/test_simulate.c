/* lib/quant/simulate/simulate.h, against plans of really quantized graphs. */
#include "converted.h"

#include "quant/job/placed.h"
#include "quant/weights/constants.h"

TEST_GROUP(folder_make, folder_remove);

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
