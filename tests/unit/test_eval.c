/* lib/eval: statistics and metrics against numbers computed elsewhere (mpmath, numpy), and whole evaluations. */
#include "eval/metrics/error_sum.h"
#include "eval/run/denormal.h"
#include "eval/run/eval_int.h"
#include "eval/report/report.h"
#include "eval/run/outputs.h"
#include "eval/run/scaled.h"
#include "onnx/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#include "net.h"

#define NEAR(a, b, tol) assert_true(fabs((a) - (b)) <= (tol))

/* ---- statistics ---- */

TEST(denormals_are_flushed_when_asked)
{
    volatile float tiny = 1e-40f, one = 1;
    if (oct_flush_denormals(true)) {
        const float product = tiny * one;
        oct_flush_denormals(false);
        assert_true(product == 0);
    }
    assert_true(tiny * one > 0);
}

TEST(means)
{
    /* d = 1 2 3 4: mean 2.5, t(3, 0.975) = 3.182446, s = 1.290994: half 2.054260 */
    oct_paired p = { 0 };
    for (int i = 1; i <= 4; i++)
        oct_paired_add(&p, 10, 10 + i);
    oct_interval d = oct_paired_mean(&p);
    NEAR(d.mean, 2.5, 1e-15);
    NEAR(d.hi - d.mean, 2.0542603, 1e-6);
    NEAR(d.mean - d.lo, 2.0542603, 1e-6);
    /* 0..8: t(8, 0.975) = 2.306004, s = 2.738613: half 2.105091 */
    p = (oct_paired){ 0 };
    for (int i = 0; i < 9; i++)
        oct_paired_add(&p, 0, i);
    d = oct_paired_mean(&p);
    NEAR(d.hi - d.mean, 2.105091, 4e-4);
    p = (oct_paired){ 0 };
    oct_paired_add(&p, 0, 1);
    assert_true(isnan(oct_paired_mean(&p).lo));
}

TEST(quartiles)
{
    double v[] = { 5, 1, 4, 2 }; /* numpy.percentile: 1.75, 3, 4.25 */
    oct_quartiles q = oct_quartiles_of(v, 4);
    NEAR(q.q1, 1.75, 0);
    NEAR(q.median, 3, 0);
    NEAR(q.q3, 4.25, 0);
    double one[] = { 7 };
    assert_true(oct_quartiles_of(one, 1).q3 == 7);
}

TEST(decibels)
{
    for (double x = 1e-300; x < 1e300; x *= 3.7)
        NEAR(oct_log10(x), log10(x), 4e-16 * fabs(log10(x)) + 2e-16);
    assert_true(oct_log10(1) == 0);
    NEAR(oct_log10(1000), 3, 1e-15);
    assert_true(isnan(oct_log10(-1)) && isinf(oct_log10(0)));
    NEAR(oct_decibels(100, 1), 20, 1e-13);
    assert_true(isinf(oct_decibels(1, 0)) && oct_decibels(1, 0) > 0);
    assert_true(isinf(oct_decibels(0, 1)) && oct_decibels(0, 1) < 0);
    assert_true(isnan(oct_decibels(INFINITY, 1)));
}

/* ---- metrics ---- */

TEST(errors)
{
    const float y[] = { 1, -2, 3, 0.5f }, z[] = { 1, -1, 2.5f, 0.5f };
    oct_error e = { 0 };
    oct_error_add(&e, y, z, 4);
    NEAR(e.signal, 14.25, 0);
    NEAR(e.noise, 1.25, 0);
    NEAR(e.max_abs, 1, 0);
    NEAR(oct_error_sqnr(&e), 10.5690485, 1e-6);
    NEAR(oct_error_cosine(&e), 10.75 / sqrt(14.25 * 8.5), 1e-15);
    oct_error same = { 0 };
    const float odd[] = { INFINITY, NAN, -INFINITY, 2 };
    oct_error_add(&same, odd, odd, 4);
    assert_true(isinf(oct_error_sqnr(&same)) && same.broken == 0 && oct_error_cosine(&same) == 1);
    oct_error_add(&same, odd, y, 4);
    assert_int_equal(same.broken, 3);
    assert_true(isnan(oct_error_sqnr(&same)));
}

/* Doubles would lose the ones beside 2^60; a sum of parts is that of all. */
TEST(sums_of_errors)
{
    const double big = 0x1p60;
    const oct_error e[] = { { .signal = big, .noise = 1, .max_abs = 1, .n = 3 },
                            { .signal = 1, .dot = -big, .max_abs = 4, .n = 2, .broken = 1 },
                            { .signal = 255, .dot = big, .other = 0.5, .max_abs = 2, .n = 1 } };
    oct_error_sum all = { 0 }, part[2] = { 0 };
    for (size_t i = 0; i < 3; i++) {
        oct_error_sum_add(&all, &e[i]);
        oct_error_sum_add(&part[i % 2], &e[2 - i]);
    }
    oct_error_sum_merge(&part[1], &part[0]);
    const oct_error x = oct_error_sum_value(&all), y = oct_error_sum_value(&part[1]);
    assert_true(x.signal == big + 256 && x.noise == 1 && x.other == 0.5 && x.dot == 0 && x.max_abs == 4 && x.n == 6 &&
                x.broken == 1);
    assert_memory_equal(&x, &y, sizeof x);
}

static double score(const char *name, const oct_sample_view *v)
{
    const oct_metric *m;
    assert_int_equal(oct_metric_find(name, &m, NULL), OCT_OK);
    oct_sample_view of = *v;
    of.k = m->k;
    return m->score(&of);
}

TEST(scores)
{
    const float out[] = { 0.1f, 0.5f, 0.5f, 0.2f, 0.3f, 0.05f, 0.04f },
                ref[] = { 0.1f, 0.4f, 0.5f, 0.2f, 0.3f, 0.05f, 0.04f };
    oct_error e = { 0 };
    oct_error_add(&e, ref, out, 7);
    oct_sample_view v = { .out = out, .ref = ref, .n_out = 7, .errors = &e, .n_errors = 1, .label = 1 };
    assert_true(score("top1", &v) == 1); /* of equal values the first counts */
    v.label = 2;
    assert_true(score("top1", &v) == 0 && score("top5", &v) == 1);
    v.label = 5;
    assert_true(score("top5", &v) == 0);
    v.label = -1;
    assert_true(isnan(score("top1", &v)));
    assert_true(score("agreement", &v) == 0);
    NEAR(score("mse", &v), 0.01 / 7, 1e-9);
    const float in[] = { 0.1f, 0.5f, 0.5f, 0.2f, 0.3f, 0.05f, 1.04f };
    v.in = in;
    NEAR(score("mse", &v), 1.0 / 7, 1e-7);
    NEAR(score("cosine", &v), 0.9944634541, 1e-7);
    v.label = 4; /* the third largest */
    assert_true(score("top2", &v) == 0 && score("top3", &v) == 1);
    oct_err err = OCT_ERR_INIT;
    const oct_metric *m;
    assert_int_equal(oct_metric_find("topp", &m, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.hint, "top"));
}

/* NaN agrees with nothing, and neither do outputs without values. */
TEST(no_numbers)
{
    const float nan[] = { NAN, NAN, NAN }, some[] = { NAN, 1, NAN }, real[] = { 5, 0, 0 };
    oct_error empty = { 0 };
    oct_sample_view v = { .out = nan, .ref = real, .n_out = 3, .errors = &empty, .n_errors = 1, .label = 0 };
    assert_true(score("agreement", &v) == 0 && score("top1", &v) == 0);
    v.ref = nan;
    assert_true(score("agreement", &v) == 0);
    v.n_out = 1;
    assert_true(score("agreement", &v) == 0 && score("top1", &v) == 0 && score("top5", &v) == 0);
    v.n_out = 0;
    assert_true(score("agreement", &v) == 0 && isnan(score("cosine", &v)) && isnan(oct_metric_sqnr(&empty, 1)));
    v = (oct_sample_view){ .out = some, .ref = some, .n_out = 3, .errors = &empty, .n_errors = 1, .label = 1 };
    assert_true(score("agreement", &v) == 1 && score("top1", &v) == 1);
}

/* p 0.5 0.25 0.25, q 0.25 0.5 0.25: 0.25 log 2. As logits, moved by any constant, the same; and for one number of two
 * classes. */
TEST(divergences)
{
    const float p[] = { 0.5f, 0.25f, 0.25f, 0.5f, 0.5f, 0 }, q[] = { 0.25f, 0.5f, 0.25f, 0.5f, 0.5f, 0 };
    oct_sample_view v = { .out = q, .ref = p, .n_out = 6, .width = 3 };
    NEAR(score("kl", &v), 0.25 * log(2) / 2, 1e-15);
    float a[3], b[3];
    for (int i = 0; i < 3; i++) {
        a[i] = logf(p[i]) + 40;
        b[i] = logf(q[i]) - 3;
    }
    oct_sample_view l = { .out = b, .ref = a, .n_out = 3, .width = 3, .logits = true };
    NEAR(score("kl", &l), 0.25 * log(2), 1e-5);
    oct_sample_view one = { .out = q, .ref = p, .n_out = 1, .width = 1 };
    NEAR(score("kl", &one), 0.5 * log(2) + 0.5 * log(0.5 / 0.75), 1e-15);
    const float zero[] = { 0, 0.5f, 0.5f }, all[] = { 1, 0, 0 };
    oct_sample_view none = { .out = zero, .ref = all, .n_out = 3, .width = 3 };
    NEAR(score("kl", &none), log(1e7) + 2 * 1e-7 * log(1e-7 / 0.5), 1e-12);
}

TEST(limits)
{
    oct_drop_limit d;
    assert_int_equal(oct_drop_limit_parse("0.5%", &d, NULL), OCT_OK);
    assert_false(d.relative);
    NEAR(d.value, 0.005, 1e-17);
    assert_false(oct_drop_exceeds(&d, 0.9, 0.9 - 0.895));
    assert_true(oct_drop_exceeds(&d, 0.9, 0.9 - 0.8949));
    assert_true(oct_drop_exceeds(&d, 9.5, 9.51 - 9.5));
    assert_false(oct_drop_exceeds(&d, 9.5, 9.4 - 9.5));
    assert_true(oct_drop_exceeds(&d, 9.5, NAN));
    assert_int_equal(oct_drop_limit_parse("10r%", &d, NULL), OCT_OK);
    assert_true(d.relative);
    assert_false(oct_drop_exceeds(&d, 9.5, 10.4 - 9.5));
    assert_true(oct_drop_exceeds(&d, 9.5, 10.5 - 9.5));
    const char *bad[] = { "", "%", "x", "1%%", "1 ", "inf", "nan%" };
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        assert_int_equal(oct_drop_limit_parse(bad[i], &d, NULL), OCT_EUSAGE);
}

/* ---- test cases ---- */

/* Compares two arrays of a type and shape. */
static oct_check_result compared(oct_dtype t, int rank, const int64_t *dims, const void *want, const void *got)
{
    const oct_check_options o = { .rtol = 1e-3 };
    oct_check_result r = { 0 };
    oct_datum *w, *g;
    assert_int_equal(oct_datum_borrow(t, rank, dims, want, &w, NULL), OCT_OK);
    assert_int_equal(oct_datum_borrow(t, rank, dims, got, &g, NULL), OCT_OK);
    assert_int_equal(oct_check_compare("y", w, g, &o, &r, NULL), OCT_OK);
    oct_datum_unref(w);
    oct_datum_unref(g);
    return r;
}

TEST(comparing)
{
    float want[] = { 1, 2, INFINITY, NAN }, got[] = { 1, 2.001f, INFINITY, NAN };
    const int64_t dims[] = { 2, 2 }, flat[] = { 1, 4 };
    oct_check_result r = compared(OCT_F32, 2, dims, want, got);
    assert_string_equal(r.first, "");
    got[1] = 2.5f;
    got[2] = 7;
    r = compared(OCT_F32, 2, dims, want, got);
    assert_string_equal(r.first, "output 'y'[0,1] is 2.5, expected 2");
    assert_int_equal(r.differ, 2);
    NEAR(r.max_abs, 0.5, 0);
    const oct_check_options o = { .rtol = 1e-3 };
    oct_datum *w, *g;
    assert_int_equal(oct_datum_borrow(OCT_F32, 2, dims, want, &w, NULL), OCT_OK);
    assert_int_equal(oct_datum_borrow(OCT_F32, 2, flat, want, &g, NULL), OCT_OK);
    r = (oct_check_result){ 0 };
    assert_int_equal(oct_check_compare("y", w, g, &o, &r, NULL), OCT_OK);
    assert_string_equal(r.first, "output 'y' is float32[1,4], expected float32[2,2]");
    oct_datum_unref(w);
    oct_datum_unref(g);
}

/* 1.0, 1.125 and NaN in float8e4m3fn; 3 and -2 in int4; 16-bit floats within two units in the last place. */
TEST(comparing_small)
{
    uint8_t want[] = { 0x38, 0x39, 0x7f }, got[] = { 0x38, 0x39, 0x7f }, packed[] = { 0xe3 }, other[] = { 0xd3 };
    const int64_t three = 3, two = 2, single = 1;
    assert_string_equal(compared(OCT_F8E4M3FN, 1, &three, want, got).first, "");
    got[1] = 0x3a;
    assert_string_equal(compared(OCT_F8E4M3FN, 1, &three, want, got).first, "output 'y'[1] is 1.25, expected 1.125");
    assert_string_equal(compared(OCT_S4, 1, &two, packed, other).first, "output 'y'[1] is -3, expected -2");
    uint16_t one[] = { 0x3f80 }, near[] = { 0x3f82 },
             far[] = { 0x3f83 }; /* of bfloat16: 1, 1 + 2^-6 and half as much more */
    assert_string_equal(compared(OCT_BF16, 1, &single, one, near).first, "");
    assert_int_equal(compared(OCT_BF16, 1, &single, one, far).differ, 1);
}

TEST(comparing_strings)
{
    const oct_str want[] = { { "a", 1 }, { "bc", 2 } }, got[] = { { "a", 1 }, { "bcd", 3 } };
    const int64_t two = 2;
    assert_string_equal(compared(OCT_STRING, 1, &two, want, want).first, "");
    oct_check_result r = compared(OCT_STRING, 1, &two, want, got);
    assert_string_equal(r.first, "output 'y'[1] is 'bcd', expected 'bc'");
    assert_int_equal(r.values, 2);
    assert_int_equal(r.differ, 1);
}

/* A sequence of n scalars 0, 1, ... */
static oct_datum *counted(const float *v, size_t n)
{
    oct_datum *s, *x;
    assert_int_equal(oct_datum_sequence(OCT_F32, &s, NULL), OCT_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(oct_datum_borrow(OCT_F32, 0, NULL, &v[i], &x, NULL), OCT_OK);
        assert_int_equal(oct_datum_push(s, x, NULL), OCT_OK);
        oct_datum_unref(x);
    }
    return s;
}

TEST(comparing_sequences)
{
    const float a[] = { 0, 1, 2 }, b[] = { 0, 3, 2 };
    const oct_check_options o = { .rtol = 1e-3 };
    oct_datum *three = counted(a, 3), *two = counted(a, 2), *other = counted(b, 3), *none;
    assert_int_equal(oct_datum_none(&none, NULL), OCT_OK);
    const struct {
        const oct_datum *want, *got;
        const char *text;
    } cases[] = {
        { three, three, "" },
        { three, other, "output 'y/1' is 3, expected 1" },
        { three, two, "output 'y' is a sequence of 2 tensors, expected a sequence of 3 tensors" },
        { none, two, "output 'y' is a sequence of 2 tensors, expected an empty optional" },
        { none, none, "" },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_check_result r = { 0 };
        assert_int_equal(oct_check_compare("y", cases[i].want, cases[i].got, &o, &r, NULL), OCT_OK);
        assert_string_equal(r.first, cases[i].text);
        assert_int_equal(r.outputs, 1);
    }
    oct_datum_unref(three);
    oct_datum_unref(two);
    oct_datum_unref(other);
    oct_datum_unref(none);
}

/* ---- the bundled model ---- */

static char paths[8][512];

static const char *at(int slot, const char *name)
{
    const char *root = getenv("OCT_SOURCE");
    snprintf(paths[slot], sizeof paths[slot], "%s/testdata/%s", root ? root : ".", name);
    return paths[slot];
}

typedef struct pair {
    oct_model *model[2];
    oct_eval_model m[2];
    oct_arena *arena;
    oct_source *src;
} pair;

static void open_pair(pair *p, int64_t limit)
{
    static const char *const files[] = { "demo.onnx", "models/demo_qdq.onnx" };
    static const char *const steps[] = { "mean=127.5:std=127.5" };
    oct_err err = OCT_ERR_INIT;
    p->arena = oct_arena_create();
    for (int k = 0; k < 2; k++) {
        if (oct_model_load(at(k, files[k]), &p->model[k], &err) != OCT_OK)
            fail_msg("%s", err.text);
        p->m[k] = (oct_eval_model){ files[k], p->model[k]->graph, p->model[k]->size };
    }
    const char *spec = at(2, "images/eval.csv");
    oct_input_desc *in;
    size_t n;
    assert_int_equal(oct_eval_inputs(p->m, 2, p->arena, &in, &n, &err), OCT_OK);
    oct_source_options o = { .specs = &spec,
                             .n_specs = 1,
                             .preprocess = steps,
                             .n_preprocess = 1,
                             .inputs = in,
                             .n_inputs = n,
                             .samples = limit,
                             .first = true };
    if (oct_source_open(&o, &p->src, &err) != OCT_OK)
        fail_msg("%s", err.text);
}

static void close_pair(pair *p)
{
    oct_source_close(p->src);
    oct_model_free(p->model[0]);
    oct_model_free(p->model[1]);
    oct_arena_destroy(p->arena);
}

static const oct_eval_score *find_score(const oct_eval_result *r, size_t k, const char *name)
{
    for (size_t i = 0; i < r->n_scores; i++)
        if (strcmp(r->models[k].scores[i].metric->name, name) == 0)
            return &r->models[k].scores[i];
    fail_msg("no score %s", name);
    return NULL;
}

static oct_eval_result *evaluate(pair *p, size_t batch, double seconds)
{
    oct_eval_options o = { .batch = batch, .layer_samples = 5, .latency_seconds = seconds, .latency_runs = 2 };
    oct_eval_result *r = NULL;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_source_reset(p->src, &err), OCT_OK);
    if (oct_eval(p->m, 2, p->src, &o, &r, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return r;
}

TEST(whole_evaluation)
{
    pair p;
    open_pair(&p, 30);
    oct_eval_result *r = evaluate(&p, 1, 1e-6), *eight = evaluate(&p, 8, 0);
    assert_int_equal(r->samples, 30);
    assert_int_equal(r->layer_samples, 5);
    const oct_eval_score *f = find_score(r, 0, "top1"), *q = find_score(r, 1, "top1");
    assert_true(f->value > 0.8 && q->value > 0.8 && f->n == 30);
    NEAR(q->drop, f->value - q->value, 1e-15);
    assert_true(isnan(f->drop) && isnan(find_score(r, 0, "sqnr")->value));
    assert_true(r->models[1].sqnr_db > 20 && r->models[1].sqnr_db < 60);
    assert_true(r->models[0].latency.runs >= 2 && eight->models[0].latency.runs == 0);
    assert_true(r->models[1].integer_steps == r->models[1].weighted_steps && r->models[1].integer_steps > 0);
    assert_true(r->models[1].n_layers > 10);
    for (size_t i = 1; i < r->models[1].n_layers; i++)
        assert_true(r->models[1].layers[i - 1].own_sqnr_db <= r->models[1].layers[i].own_sqnr_db);
    /* The batch changes nothing. */
    for (size_t i = 0; i < r->n_scores; i++)
        assert_memory_equal(&r->models[1].scores[i].value, &eight->models[1].scores[i].value, sizeof(double));
    assert_int_equal(r->models[1].n_layers, eight->models[1].n_layers);
    for (size_t i = 0; i < r->models[1].n_layers; i++)
        assert_memory_equal(&r->models[1].layers[i].sqnr_db, &eight->models[1].layers[i].sqnr_db, sizeof(double)),
            assert_memory_equal(&r->models[1].layers[i].own_sqnr_db, &eight->models[1].layers[i].own_sqnr_db,
                                sizeof(double));
    oct_eval_free(r);
    oct_eval_free(eight);
    close_pair(&p);
}

/* Evaluates with kept outputs, and compares with an evaluation without. */
static void evaluate_kept(pair *p, oct_kept_outputs *kept, bool timed)
{
    const oct_eval_options o = {
        .kept = kept, .time_samples = timed, .latency_seconds = timed ? 1e-6 : 0, .latency_runs = timed ? 10 : 0
    };
    oct_eval_result *without = evaluate(p, 1, 0), *r = NULL;
    assert_int_equal(oct_source_reset(p->src, NULL), OCT_OK);
    assert_int_equal(oct_eval(p->m, 2, p->src, &o, &r, NULL), OCT_OK);
    assert_int_equal(r->samples, without->samples);
    assert_int_equal(r->n_scores, without->n_scores);
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < r->n_scores; i++) {
            const oct_eval_score *a = &r->models[k].scores[i], *b = &without->models[k].scores[i];
            assert_ptr_equal(a->metric, b->metric);
            assert_memory_equal(&a->value, &b->value, sizeof a->value);
            assert_memory_equal(&a->drop, &b->drop, sizeof a->drop);
            assert_memory_equal(&a->lo, &b->lo, sizeof a->lo);
        }
    assert_memory_equal(&r->models[1].sqnr_db, &without->models[1].sqnr_db, sizeof(double));
    assert_true(timed == (r->models[0].latency.runs >= 10));
    oct_eval_free(r);
    oct_eval_free(without);
}

TEST(the_reference_runs_once)
{
    pair p;
    open_pair(&p, 30);
    oct_kept_outputs *kept = oct_kept_create(1 << 20);
    const oct_kept_count *n = oct_kept_counted(kept);
    evaluate_kept(&p, kept, false);
    assert_true(n->runs == 30 && n->taken == 0);
    evaluate_kept(&p, kept, false);
    assert_true(n->runs == 30 && n->taken == 30);
    evaluate_kept(&p, kept, true); /* ten runs have times, and the others none; the first one makes plans */
    assert_true(n->runs == 30 + 11 && n->taken == 30 + 19);
    oct_kept_forget(kept);
    assert_null(oct_kept_find(kept, 0));
    evaluate_kept(&p, kept, false);
    assert_true(n->runs == 41 + 30 && n->taken == 49);
    oct_kept_destroy(kept);

    /* 1 KB has room for some of the samples of 10 numbers. The model runs on the others again. */
    kept = oct_kept_create(1024);
    n = oct_kept_counted(kept);
    evaluate_kept(&p, kept, false);
    evaluate_kept(&p, kept, false);
    assert_true(n->taken > 0 && n->taken < 1024 / (10 * sizeof(float)) && n->runs == 60 - n->taken);
    oct_kept_destroy(kept);
    close_pair(&p);
}

TEST(a_model_equals_itself)
{
    pair p;
    open_pair(&p, 3);
    p.m[1] = p.m[0];
    oct_eval_result *r = evaluate(&p, 2, 0);
    assert_true(isinf(r->models[1].sqnr_db) && r->models[1].agreement == 1);
    oct_buf b = OCT_BUF_INIT;
    const oct_report_context c = { 0 };
    oct_document *report = oct_document_create();
    oct_report_document(r, &c, report);
    oct_json_text(oct_document_root(report), &b);
    assert_non_null(strstr(oct_buf_str(&b), "\"output_sqnr_db\": null"));
    assert_non_null(strstr(oct_buf_str(&b), "\"exact\": true"));
    oct_buf_free(&b);
    oct_report_html(oct_document_root(report), &b);
    assert_non_null(strstr(oct_buf_str(&b), "</html>"));
    assert_null(strstr(oct_buf_str(&b), "<script src"));
    oct_document_destroy(report);
    oct_buf_free(&b);
    oct_eval_free(r);
    close_pair(&p);
}

/* x + 1 (1 + shift in the model that is compared), times 3, rounded there to steps of `step` by 8 bits, plus 0.5.
 * by: what the channels of the first sum are scaled by, as equalization does. */
static oct_graph *chain(float shift, float step, float by)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "1,4");
    const int sum = NET_NODE(g, "Add", "n_sum", "sum", x, NET_F32(g, "one", "", 1 + shift));
    const int a = NET_NODE(g, "Mul", "n_a", "a", sum, NET_F32(g, "by", "", by)),
              three = NET_F32(g, "three", "", 3 / by);
    int b;
    if (step > 0) {
        const int s = NET_F32(g, "step", "", step), z = net_const(g, "zero", OCT_U8, "", (const uint8_t[]){ 100 });
        const int raw = NET_NODE(g, "Mul", "n_b", "b_raw", a, three);
        const int q = NET_NODE(g, "QuantizeLinear", "n_q", "b_q", raw, s, z);
        b = NET_NODE(g, "DequantizeLinear", "n_dq", "b", q, s, z);
    } else {
        b = NET_NODE(g, "Mul", "n_b", "b", a, three);
    }
    net_output(g, NET_NODE(g, "Add", "n_c", "c", b, NET_F32(g, "half", "", 0.5f)));
    GOOD(oct_graph_sort(g, err));
    return g;
}

static const oct_eval_layer *find_layer(const oct_eval_layer *l, size_t n, const char *value)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(l[i].value, value) == 0)
            return &l[i];
    fail_msg("no layer %s", value);
    return NULL;
}

/* Of x = 0 1 2 4: a is 1 2 3 5 and 1.5 2.5 3.5 5.5, b 3 6 9 15 and, in steps of 2, 4 8 10 16. The layer of b alone
 * rounds 3 6 9 15 to 4 6 8 16 (halves to even), and that of c reads 3 6 9 15. */
static void check_own_errors(float by)
{
    oct_graph *g[2] = { chain(0, 0, 1), chain(0.5f, 2, by) };
    oct_buf scaled = OCT_BUF_INIT;
    oct_scaled_put(&scaled, &(oct_scaled_channels){ "a", 1, 4, (const float[]){ by, by, by, by } });
    const oct_eval_model m[2] = { { .name = "float", .graph = g[0] },
                                  { .name = "quant", .graph = g[1], .scaled = by == 1 ? NULL : oct_buf_str(&scaled) } };
    float x[4] = { 0, 1, 2, 4 };
    const oct_array in = { .dtype = OCT_F32, .rank = 2, .dims = { 1, 4 }, .data = x, .bytes = sizeof x };
    oct_arena *arena = oct_arena_create();
    oct_input_desc *feed;
    size_t n_feed, n;
    ev_layers *l;
    oct_eval_layer *list;
    GOOD(oct_eval_inputs(m, 2, arena, &feed, &n_feed, err));
    GOOD(ev_layers_create(m, 2, NULL, feed, n_feed, &l, err));
    for (int k = 0; k < 2; k++) /* sums of two equal samples */
        GOOD(ev_layers_feed(l, (const oct_array *const[]){ &in, &in }, 1, 1, err));
    GOOD(ev_layers_result(l, 1, arena, &list, &n, err));
    assert_int_equal(n, 4);
    const oct_eval_layer *a = find_layer(list, n, "sum"), *b = find_layer(list, n, "b"), *c = find_layer(list, n, "c");
    assert_true(a->has_own && b->has_own && c->has_own);
    NEAR(a->own_sqnr_db, 10 * log10((1 + 4 + 9 + 25) / (4 * 0.25)), 1e-9);
    NEAR(a->sqnr_db, a->own_sqnr_db, 1e-9);
    NEAR(b->own_sqnr_db, 10 * log10((9 + 36 + 81 + 225) / (1.0 + 0 + 1 + 1)), 1e-9);
    NEAR(b->sqnr_db, 10 * log10((9 + 36 + 81 + 225) / (1.0 + 4 + 1 + 1)), 1e-9);
    assert_true(isinf(c->own_sqnr_db) && c->own_sqnr_db > 0);
    NEAR(c->sqnr_db, 10 * log10((3.5 * 3.5 + 6.5 * 6.5 + 9.5 * 9.5 + 15.5 * 15.5) / (1.0 + 4 + 1 + 1)), 1e-9);
    /* By their own errors c is behind them, whose sum of errors is worse than that of the first. */
    assert_true(list[0].own_sqnr_db <= list[1].own_sqnr_db && c > b);
    assert_true(x[0] == 0 && x[1] == 1 && x[2] == 2 && x[3] == 4);
    ev_layers_destroy(l);
    oct_arena_destroy(arena);
    oct_buf_free(&scaled);
    oct_graph_destroy(g[0]);
    oct_graph_destroy(g[1]);
}

TEST(own_errors)
{
    check_own_errors(1);
    check_own_errors(2);
}

/* Three times h' = 2 h + by, in a Loop. */
static oct_graph *rounds(float by)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1,2"), y = NET_NODE(g, "Loop", "loop", "y", NET_S64(g, "three", "", 3), -1, x),
        at = net_last;
    oct_graph *b = net_nested(g);
    net_input(b, "i", OCT_S64, "");
    int go = net_input(b, "go", OCT_BOOL, ""), h = net_input(b, "h", OCT_F32, "1,2");
    int twice = NET_NODE(b, "Mul", "double", "twice", h, NET_F32(b, "two", "", 2));
    net_output(b, go);
    net_output(b, NET_NODE(b, "Add", "add", "next", twice, NET_F32(b, "by", "", by)));
    net_give(g, at, "body", b);
    net_output(g, y);
    GOOD(oct_infer_shapes(g, err));
    return g;
}

/* From x = 1 2: a body's values are 2 4, 6 10, 14 22, then 3 5, 7 11, 15 23, against 2 4, 7 11, 17 25
 * and 3.5 5.5, 8.5 12.5, 18.5 26.5. */
TEST(layers_of_bodies)
{
    oct_graph *g[2] = { rounds(1), rounds(1.5f) };
    const oct_eval_model m[2] = { { .name = "float", .graph = g[0] }, { .name = "quant", .graph = g[1] } };
    float x[2] = { 1, 2 };
    const oct_array in = { .dtype = OCT_F32, .rank = 2, .dims = { 1, 2 }, .data = x, .bytes = sizeof x };
    oct_arena *arena = oct_arena_create();
    oct_input_desc *feed;
    size_t n_feed, n;
    ev_layers *l;
    oct_eval_layer *list;
    GOOD(oct_eval_inputs(m, 2, arena, &feed, &n_feed, err));
    GOOD(ev_layers_create(m, 2, NULL, feed, n_feed, &l, err));
    for (int k = 0; k < 2; k++)
        GOOD(ev_layers_feed(l, (const oct_array *const[]){ &in, &in }, 1, 1, err));
    GOOD(ev_layers_result(l, 1, arena, &list, &n, err));
    assert_int_equal(n, 3);
    const oct_eval_layer *twice = find_layer(list, n, "twice"), *next = find_layer(list, n, "next");
    assert_string_equal(twice->name, "loop/body/double");
    assert_string_equal(next->name, "loop/body/add");
    assert_false(next->has_own);
    NEAR(twice->sqnr_db, 10 * log10((4 + 16 + 36 + 100 + 196 + 484) / (2 * (0 + 1 + 9.0))), 1e-9);
    NEAR(next->sqnr_db, 10 * log10((9 + 25 + 49 + 121 + 225 + 529) / (2 * (0.25 + 2.25 + 12.25))), 1e-9);
    assert_string_equal(find_layer(list, n, "y")->name, "loop");
    ev_layers_destroy(l);
    oct_arena_destroy(arena);
    oct_graph_destroy(g[0]);
    oct_graph_destroy(g[1]);
}

TEST(metrics_that_cannot_be)
{
    pair p;
    open_pair(&p, 3);
    const oct_metric *m;
    oct_metric_find("sqnr", &m, NULL);
    oct_eval_options o = { .metrics = &m, .n_metrics = 1 };
    oct_eval_result *r = NULL;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_eval(p.m, 1, p.src, &o, &r, &err), OCT_EUSAGE);
    close_pair(&p);
}

/* kept NULL: two samples run together, and layers are compared. */
static void fail_everywhere(pair *p, oct_kept_outputs *kept)
{
    oct_eval_options o = { .batch = kept ? 1 : 2, .layer_samples = kept ? 0 : 2, .kept = kept };
    oct_alloc_fail_at(0);
    bool done = false;
    for (size_t n = 1; n < 4000 && !done; n += n < 60 ? 1 : 37) {
        oct_eval_result *r = NULL;
        oct_err err = OCT_ERR_INIT;
        assert_int_equal(oct_source_reset(p->src, &err), OCT_OK);
        if (kept)
            oct_kept_forget(kept);
        oct_alloc_fail_at(n);
        oct_status s = oct_eval(p->m, 2, p->src, &o, &r, &err);
        oct_alloc_fail_at(0);
        assert_true(s == OCT_OK || s == OCT_ENOMEM);
        done = s == OCT_OK;
        oct_eval_free(r);
    }
}

TEST(failing_memory)
{
    pair p;
    open_pair(&p, 2);
    oct_kept_outputs *kept = oct_kept_create(1 << 20);
    fail_everywhere(&p, NULL);
    fail_everywhere(&p, kept);
    oct_kept_destroy(kept);
    close_pair(&p);
}

static const oct_metric *metric_of(const char *name)
{
    const oct_metric *m;
    assert_int_equal(oct_metric_find(name, &m, NULL), OCT_OK);
    return m;
}

TEST(differences_in_words)
{
    const oct_metric *top1 = metric_of("top1"), *mse = metric_of("mse");
    char text[OCT_DROP_TEXT];
    /* One of 400 gained: the change is 0.25 points, in [-0.75, 1.44]; as a drop it has the other sign. */
    oct_eval_score s = {
        .metric = top1, .drop = -0.0025, .lo = -0.01444, .hi = 0.00753, .n = 400, .within_noise = true
    };
    assert_string_equal(oct_report_drop(text, &s), "+0.25 points (95 %: -0.75 to 1.44, n = 400), within noise");
    s = (oct_eval_score){ .metric = top1, .drop = 0.02, .lo = 0.005, .hi = 0.035, .n = 300 };
    assert_string_equal(oct_report_drop(text, &s), "-2.00 points (95 %: -3.50 to -0.50, n = 300), worse");
    s = (oct_eval_score){ .metric = top1, .drop = 0, .lo = -0.005, .hi = 0.005, .n = 800, .within_noise = true };
    assert_string_equal(oct_report_drop(text, &s), "0.00 points (95 %: -0.50 to 0.50, n = 800), within noise");
    s = (oct_eval_score){ .metric = mse, .drop = -1.5, .lo = -2, .hi = -1, .n = 20 };
    assert_string_equal(oct_report_drop(text, &s), "-1.5 (95 %: -2 to -1, n = 20), better");
    s = (oct_eval_score){ .metric = mse, .n = 7, .within_noise = true };
    assert_string_equal(oct_report_drop(text, &s), "the same on every sample (95 %: 0 to 0, n = 7)");
    s.drop = NAN;
    assert_string_equal(oct_report_drop(text, &s), "");
}

/* Whichever way a metric is better, the number is the value minus the reference, and lies within its interval. */
TEST(changes_have_one_sign)
{
    static const char *const names[] = { "top1", "ap50", "map", "f1", "mse", "perplexity", "spearman" };
    char text[OCT_DROP_TEXT];
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const oct_metric *m = metric_of(names[i]);
            const double reference = 0.5, value = 0.5 + 0.02 * sign,
                         drop = m->larger_is_better ? reference - value : value - reference;
            const oct_eval_score s = { .metric = m,
                                       .value = value,
                                       .reference = reference,
                                       .drop = drop,
                                       .lo = drop - 0.01,
                                       .hi = drop + 0.01,
                                       .n = 50 };
            const double unit = oct_metric_in_percent(m) ? 100 : 1;
            double said, lo, hi;
            oct_report_drop(text, &s);
            assert_int_equal(sscanf(strchr(text, ':') ? text : "",
                                    oct_metric_in_percent(m) ? "%lf points (95 %%: %lf to %lf"
                                                             : "%lf (95 %%: %lf to %lf",
                                    &said, &lo, &hi),
                             3);
            if (fabs(said - (value - reference) * unit) > 1e-9 || !(lo < said && said < hi))
                fail_msg("%s of %g after %g: '%s'", names[i], value, reference, text);
            assert_non_null(strstr(text, (sign > 0) == m->larger_is_better ? ", better" : ", worse"));
        }
}

/* A limit is not plainly met by so few samples that there is no interval. */
TEST(few_samples_are_said)
{
    static const char *const names[] = { "ap50", "map", "f1", "top1" };
    char text[OCT_GATE_TEXT];
    const oct_drop_limit limit = { 0.1, false };
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        oct_eval_score s = {
            .metric = metric_of(names[i]), .value = 0.5, .reference = 0.5, .lo = NAN, .hi = NAN, .n = 9
        };
        const oct_eval_gate g = oct_eval_judge(&s, &limit);
        assert_true(!g.missed && g.unsure);
        if (!strstr(oct_report_gate(text, &s, &limit),
                    "met, but 9 samples are too few for an interval: at least 10 are needed"))
            fail_msg("%s", text);
        s.n = 10;
        s.lo = s.hi = 0;
        assert_false(oct_eval_judge(&s, &limit).unsure);
    }
}

TEST(goals_in_words)
{
    char text[OCT_GATE_TEXT];
    oct_eval_score s = { .metric = metric_of("top1"),
                         .reference = 0.9,
                         .drop = 0.004,
                         .lo = -0.002,
                         .hi = 0.01,
                         .n = 400,
                         .within_noise = true };
    /* The limit is 0.001 beyond the drop, the bound 0.006: 36 times as many. */
    oct_drop_limit limit = { 0.005, false };
    oct_eval_gate g = oct_eval_judge(&s, &limit);
    assert_true(!g.missed && g.unsure && g.samples == 15000 && g.allowed == 0.005);
    assert_string_equal(
        oct_report_gate(text, &s, &limit),
        "top1: -0.40 points (95 %: -1.00 to 0.20, n = 400), within noise, at most 0.5 points worse are allowed: met, but the "
        "limit lies inside the interval: 400 samples cannot tell, about 15000 would");
    limit.value = 0.001;
    g = oct_eval_judge(&s, &limit);
    assert_true(g.missed && g.unsure && g.samples == 1600);
    limit.value = 0.00401; /* 400 (0.006 / 0.00001)^2 = 1.4e8 */
    g = oct_eval_judge(&s, &limit);
    assert_true(!g.missed && g.unsure && g.samples == 0);
    assert_non_null(strstr(oct_report_gate(text, &s, &limit), "400 samples cannot tell, nor would 100000"));
    limit.value = 0.02;
    g = oct_eval_judge(&s, &limit);
    assert_true(!g.missed && !g.unsure && g.samples == 0);
    assert_non_null(
        strstr(oct_report_gate(text, &s, &limit), "allowed: met, and the whole interval is within the limit"));
    limit.value = 0.01;
    assert_non_null(strstr(oct_report_gate(text, &s, &limit), "at most 1 point worse is allowed"));
    limit = (oct_drop_limit){ -0.01, true }; /* better by 0.9 points at least */
    g = oct_eval_judge(&s, &limit);
    assert_true(g.missed && !g.unsure && fabs(g.allowed + 0.009) < 1e-15);
    assert_non_null(strstr(oct_report_gate(text, &s, &limit), "missed, and the whole interval is beyond the limit"));
    s = (oct_eval_score){
        .metric = metric_of("sqnr"), .value = 19, .reference = NAN, .drop = 0.0126, .lo = NAN, .hi = NAN, .n = 9
    };
    limit = (oct_drop_limit){ 0.01, false };
    assert_string_equal(oct_report_gate(text, &s, &limit),
                        "sqnr: 0.0126 of the signal is noise, at most 0.01 is allowed: missed");
    s.drop = NAN;
    assert_string_equal(oct_report_gate(text, &s, &limit), "sqnr is not a number: missed");
    limit.relative = true;
    assert_int_equal(oct_drop_limit_check(&limit, s.metric, NULL), OCT_EUSAGE);
    assert_int_equal(oct_drop_limit_check(&limit, metric_of("top1"), NULL), OCT_OK);
    for (int relative = 0; relative < 2; relative++) { /* 1 is 100 points: nobody means that */
        limit = (oct_drop_limit){ 1, relative };
        assert_int_equal(oct_drop_limit_check(&limit, metric_of("top1"), NULL), OCT_EUSAGE);
        limit.value = 0.99;
        assert_int_equal(oct_drop_limit_check(&limit, metric_of("top1"), NULL), OCT_OK);
    }
    limit = (oct_drop_limit){ 1, false };
    assert_int_equal(oct_drop_limit_check(&limit, metric_of("mse"), NULL), OCT_OK);
}

/* Without an interval nothing is called better or worse. */
TEST(few_samples_in_words)
{
    char text[OCT_GATE_TEXT];
    oct_eval_score s = { .metric = metric_of("top1"), .reference = 0.9, .drop = 0.02, .lo = NAN, .hi = NAN, .n = 4 };
    const oct_drop_limit limit = { 0.01, false };
    assert_string_equal(oct_report_drop(text, &s), "-2.00 points, too few samples to tell");
    assert_string_equal(
        oct_report_gate(text, &s, &limit),
        "top1: -2.00 points, at most 1 point worse is allowed: missed, but 4 samples are too few for an "
        "interval: at least 10 are needed");
    s.n = 400; /* one number of a command for all of them */
    assert_string_equal(oct_report_drop(text, &s), "-2.00 points");
    s.lo = 0.01;
    s.hi = 0.03;
    assert_string_equal(oct_report_drop(text, &s), "-2.00 points (95 %: -3.00 to -1.00, n = 400), worse");
}

TEST(xml_is_safe)
{
    oct_buf b = OCT_BUF_INIT;
    oct_xml_text(&b, "a<b>&\"c\"\x01\u2028\xff\uffff");
    assert_string_equal(oct_buf_str(&b), "a&lt;b&gt;&amp;&quot;c&quot;\\x01\\u2028\\xff\\uffff");
    oct_buf_free(&b);
}

/* Sums of -log of shares, by the C library; what does not count is left out, and a token that cannot be is infinite. */
TEST(tokens_are_surprising)
{
    const float logits[] = { 1, 2, 3, 0.5f, 0.25f, -1, 4, 4, 4, 0, 0, 0 };
    const int64_t next[] = { 2, 0, -1, -1 };
    oct_sample_view v = { .out = logits, .ref = logits, .n_out = OCT_COUNT(logits), .next = next, .tokens = 4 };
    const double sum[2] = { exp(1.0) + exp(2.0) + exp(3.0), exp(0.5) + exp(0.25) + exp(-1.0) };
    const oct_metric *m;
    assert_int_equal(oct_metric_find("perplexity", &m, NULL), OCT_OK);
    assert_float_equal(m->score(&v), log(sum[0]) - 3 + log(sum[1]) - 0.5, 1e-12);
    assert_true(m->weight(&v) == 2 && m->kind == OCT_METRIC_TOKENS && !m->larger_is_better);
    v.next = (const int64_t[]){ -1, -1, -1, -1 };
    assert_true(isnan(m->score(&v)) && m->weight(&v) == 0);
    v.next = (const int64_t[]){ 3, -1, -1, -1 };
    assert_true(isinf(m->score(&v)));
    v.tokens = 0;
    assert_true(isnan(m->score(&v)));
}

/* A speed is said only where the runs carry it. */
TEST(speeds)
{
    const oct_eval_speed faster = { 2.3, 2.2, 2.4, 20 }, slower = { 0.5, 0.45, 0.6, 20 }, same = { 1.1, 0.97, 1.2, 20 },
                         few = { 2.3, 2.2, 2.4, 4 }, noisy = { 27, 3, 40, 20 }, none = { 0 };
    assert_int_equal(oct_eval_speed_judge(&faster), OCT_SPEED_FASTER);
    assert_int_equal(oct_eval_speed_judge(&slower), OCT_SPEED_SLOWER);
    assert_int_equal(oct_eval_speed_judge(&same), OCT_SPEED_SAME);
    assert_int_equal(oct_eval_speed_judge(&few), OCT_SPEED_UNKNOWN);
    assert_int_equal(oct_eval_speed_judge(&noisy), OCT_SPEED_UNKNOWN);
    assert_int_equal(oct_eval_speed_judge(&none), OCT_SPEED_UNKNOWN);
    char text[OCT_SPEED_TEXT];
    assert_string_equal(oct_report_speed(text, &faster),
                        "2.30 times faster (middle half of 20 pairs of runs: 2.20 to 2.40)");
    assert_string_equal(oct_report_speed(text, &slower),
                        "2.00 times slower (middle half of 20 pairs of runs: 1.67 to 2.22)");
    assert_string_equal(oct_report_speed(text, &same),
                        "as fast (middle half of 20 pairs of runs: 0.97 to 1.20 times float's speed)");
    assert_string_equal(oct_report_speed(text, &noisy), "the times are too few or vary too much");
    assert_string_equal(oct_report_speed(text, &none), "");
}

/* ---- scaled channels ---- */

TEST(scaled_channels_are_read_back)
{
    const float factors[] = { 1, 0.25f, 3.14159274f }, want[] = { 2, 4, 8, 8, 64 / 3.14159274f, 128 / 3.14159274f };
    float x[] = { 2, 4, 2, 2, 64, 128 };
    oct_buf b = OCT_BUF_INIT;
    oct_arena *a = oct_arena_create();
    oct_scaled_channels *list;
    size_t n;
    oct_scaled_put(&b, &(oct_scaled_channels){ "a name, with 1,2 blanks", 1, 3, factors });
    oct_scaled_put(&b, &(oct_scaled_channels){ "two\nlines", 0, 3, factors });
    oct_scaled_put(&b, &(oct_scaled_channels){ "y", 0, 1, factors });
    assert_string_equal(oct_buf_str(&b), "1 1,0.25,3.14159274 a name, with 1,2 blanks\n0 1 y\n");
    assert_int_equal(oct_scaled_read(oct_buf_str(&b), a, &list, &n, NULL), OCT_OK);
    assert_int_equal(n, 2);
    const oct_scaled_channels *s = oct_scaled_find(list, n, "a name, with 1,2 blanks");
    assert_true(s && s->axis == 1 && s->n == 3 && !oct_scaled_find(list, n, "z"));
    assert_memory_equal(s->factor, factors, sizeof factors);
    oct_scaled_undo(s, 3, (const int64_t[]){ 1, 3, 2 }, false, x);
    assert_memory_equal(x, want, sizeof want);
    oct_scaled_undo(s, 3, (const int64_t[]){ 1, 2, 3 }, false, x); /* other dimensions */
    assert_memory_equal(x, want, sizeof want);
    oct_buf_free(&b);
    oct_arena_destroy(a);
}

TEST(hostile_factors_are_passed_over)
{
    static const char *const lines[] = { "",         "\n",        "1\n",      "1 \n",      "-1 1 y\n",    "99 1 y\n",
                                         "1 1, y\n", "1 0 y\n",   "1 -2 y\n", "1 nan y\n", "1 inf,1 y\n", "1 1,2\n",
                                         "1 1,2 \n", "1 1;2 y\n", "x 1 y\n",  "1 1 y" };
    oct_arena *a = oct_arena_create();
    oct_scaled_channels *list;
    size_t n;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(oct_scaled_read(lines[i], a, &list, &n, NULL), OCT_OK);
        assert_int_equal(n, 0);
    }
    assert_int_equal(oct_scaled_read(NULL, a, &list, &n, NULL), OCT_OK);
    assert_int_equal(n, 0);
    oct_arena_destroy(a);
}
