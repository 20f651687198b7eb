/* Gates: how they are read, and how results made by hand are judged. */
#include "base/number_text.h"
#include "eval/gates/baseline.h"
#include "eval/gates/gates.h"
#include "eval/report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static const oct_metric *metric_of(const char *name)
{
    const oct_metric *m;
    assert_int_equal(oct_metric_find(name, &m, NULL), OCT_OK);
    return m;
}

TEST(sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
        double share;
    } good[] = {
        { "80000", 80000, 0 }, { "12MB", 12000000, 0 }, { "1.5KiB", 1536, 0 }, { "25%", 0, 0.25 }, { "1B", 1, 0 }
    };
    static const char *const bad[] = { "", "x", "0", "-1", "5mb", "0.5", "nan", "1e16", "1001%", "0%", "12 MB", "5%%" };
    uint64_t bytes;
    double share;
    for (size_t i = 0; i < OCT_COUNT(good); i++) {
        assert_true(oct_size_text(good[i].text, &bytes, &share));
        assert_true(bytes == good[i].bytes && share == good[i].share);
    }
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        assert_false(oct_size_text(bad[i], &bytes, &share));
}

TEST(reading)
{
    oct_gates g = { 0 };
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(
        oct_gates_read(
            &g,
            "# what ships\r\n\nmax-drop top1 0.5%  # a comment\r\nmax-drop mse=10r%\nmax-drop 0.1\nmax-drop command 2\n"
            "min-agreement 99%\nmin-sqnr -3dB\nmin-speedup 1.2\nmax-latency 4.5ms\nmax-size 25%\n\tmax-memory 12MB",
            "g", &err),
        OCT_OK);
    assert_int_equal(g.n, 10);
    assert_true(g.v[0].metric == metric_of("top1") && g.v[0].limit.value == 0.005 && !g.v[0].limit.relative);
    assert_true(g.v[1].metric == metric_of("mse") && g.v[1].limit.value == 0.1 && g.v[1].limit.relative);
    assert_true(!g.v[2].metric && !g.v[2].command && g.v[2].limit.value == 0.1);
    assert_true(!g.v[3].metric && g.v[3].command && g.v[3].limit.value == 2);
    assert_true(g.v[4].metric == metric_of("agreement") && fabs(g.v[4].limit.value - 0.01) < 1e-15);
    assert_true(g.v[5].kind == OCT_GATE_SQNR && g.v[5].value == -3);
    assert_true(g.v[6].value == 1.2 && g.v[7].value == 4.5 && g.v[8].share == 0.25 && g.v[9].value == 12e6);
    assert_string_equal(oct_gates_timed(&g), "min-speedup");
    const oct_metric **needed;
    size_t n;
    assert_int_equal(oct_gates_metrics(&g, &needed, &n, &err), OCT_OK);
    assert_true(n == 4 && needed[0] == metric_of("top1") && needed[3] == metric_of("sqnr"));
    oct_gates_free(&g);
}

TEST(mistakes)
{
    static const struct {
        const char *text, *place, *words;
    } bad[] = { { "max-drop top1 0.5%\n  min-spedup 2", "g:2:3: ", "no gate 'min-spedup'" },
                { "min-sqnr", "g:1:9: ", "missing" },
                { "min-sqnr 30 dB", "g:1:13: ", "end of the line" },
                { "max-drop topp 1%", "g:1:10: ", "'topp'" },
                { "max-drop top1 0 2", "g:1:17: ", "end of the line" },
                { "max-drop top1=0 2", "g:1:17: ", "end of the line" },
                { "max-drop top1 1", "g:1:15: ", "100 points of top1" },
                { "min-agreement 0", "g:1:15: ", "share of samples" },
                { "max-drop top1 x", "g:1:15: ", "not a drop" },
                { "max-drop sqnr 1r%", "g:1:15: ", "relative" },
                { "min-agreement 101%", "g:1:15: ", "share of samples" },
                { "min-speedup 0", "g:1:13: ", "above 0" },
                { "min-speedup 0x2", "g:1:13: ", "above 0" },
                { "max-latency -1", "g:1:13: ", "above 0" },
                { "min-sqnr inf", "g:1:10: ", "not a number" },
                { "max-size 5mb", "g:1:10: ", "not a size" },
                { "\nmin-sqnr 3\nmin-sqnr 4", "g:3:10: ", "given twice: 3 and 4" },
                { "max-drop top1 0\nmax-drop top1 0", "g:2:15: ", "given twice: top1=0 and top1=0" } };
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_gates g = { 0 };
        oct_err err = OCT_ERR_INIT;
        assert_int_equal(oct_gates_read(&g, bad[i].text, "g", &err), OCT_EMALFORMED);
        assert_int_equal(strncmp(err.text, bad[i].place, strlen(bad[i].place)), 0);
        assert_non_null(strstr(err.text, bad[i].words));
        oct_gates_free(&g);
    }
}

/* A float model and a quantized one, by hand. */
typedef struct results {
    oct_eval_result r;
    oct_eval_model_result m[2];
    oct_eval_score s[2][2];
} results;

static void make(results *x)
{
    *x =
        (results){ .r = { .arena = oct_arena_create(), .models = x->m, .n_models = 2, .n_scores = 2, .samples = 400 } };
    x->m[0] = (oct_eval_model_result){ .name = "f", .scores = x->s[0], .size_bytes = 1001, .peak_bytes = 4000 };
    x->m[1] = (oct_eval_model_result){ .name = "q",
                                       .scores = x->s[1],
                                       .size_bytes = 250,
                                       .peak_bytes = 3000,
                                       .speed = { 1.5, 1.4, 1.6, 40 },
                                       .latency = { 0.004, 0.0039, 0.0042, 40 } };
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            x->s[k][i] = (oct_eval_score){ .metric = metric_of(i ? "sqnr" : "agreement"),
                                           .value = NAN,
                                           .reference = NAN,
                                           .drop = NAN,
                                           .lo = NAN,
                                           .hi = NAN };
    x->s[1][0] = (oct_eval_score){ .metric = metric_of("agreement"),
                                   .value = 0.99,
                                   .reference = 1,
                                   .drop = 0.01,
                                   .lo = -0.002,
                                   .hi = 0.03,
                                   .n = 400 };
    x->s[1][1].value = 31;
    x->s[1][1].drop = 1e-3;
    assert_non_null(x->r.arena);
}

static oct_gate_result judged(results *x, const char *name, const char *value, char words[OCT_GATE_TEXT])
{
    static oct_gates g; /* results point into it */
    const oct_gate_result *found;
    size_t n;
    oct_gates_free(&g);
    assert_int_equal(oct_gates_add(&g, name, value, NULL), OCT_OK);
    assert_int_equal(oct_gates_judge(&g, &x->r, &found, &n, NULL), OCT_OK);
    assert_true(n == 1 && found->model == 1);
    oct_report_gate_result(words, found);
    return *found;
}

/* A limit that names no metric stays with the first one: that another has a value does not meet it, for any model. */
TEST(no_value)
{
    results x;
    char words[OCT_GATE_TEXT];
    make(&x);
    x.s[1][0].drop = x.s[1][0].value = NAN;
    const oct_gate_result g = judged(&x, "max-drop", "1%", words);
    assert_true(g.score == &x.s[1][0] && !g.met);
    oct_arena_destroy(x.r.arena);
}

TEST(judging)
{
    static const struct {
        const char *name, *value;
        double estimate, limit;
        bool met, unsure;
        const char *words;
    } cases[] = {
        { "min-sqnr", "31", 31, 31, true, false, "sqnr: 31.00 dB, at least 31 dB are asked: met" },
        { "min-sqnr", "31.5", 31, 31.5, false, false, "missed" },
        { "max-size", "25%", 250, 250, true, false,
          "size: 250 bytes, at most 250 are allowed: met" }, /* 250.25, rounded down */
        { "max-size", "249", 250, 249, false, false, "size: 250 bytes, at most 249 are allowed: missed" },
        { "max-memory", "75%", 3000, 3000, true, false, "memory" },
        { "max-memory", "2.9kB", 3000, 2900, false, false, "memory: 3000 bytes, at most 2900 are allowed: missed" },
        { "min-speedup", "1.3", 1.5, 1.3, true, false,
          "speed: 1.5 times float's (quartiles: 1.4 to 1.6), at least 1.3 times is asked: met" },
        { "min-speedup", "1.45", 1.5, 1.45, true, true, "met, but the limit lies between the quartiles" },
        { "min-speedup", "1.55", 1.5, 1.55, false, true, "missed, but the limit lies between the quartiles" },
        { "min-speedup", "2", 1.5, 2, false, false, "missed" },
        { "max-latency", "4.5", 4, 4.5, true, false,
          "latency: 4 ms (quartiles: 3.9 to 4.2), at most 4.5 ms is allowed: met" },
        { "max-latency", "3.95", 4, 3.95, false, true, "between the quartiles" },
        { "min-agreement", "98%", 0.99, 0.98, true, true,
          "agreement: 99.00 % (95 %: 97.00 to 100.00, n = 400), at least 98 % is asked: met, but" },
        { "min-agreement", "0.995", 0.99, 0.995, false, true,
          "400 samples cannot tell, about 2400 would" }, /* 400 (0.012 / 0.005)^2 = 2304 */
        { "min-agreement", "0.9", 0.99, 0.9, true, false, "the whole interval is within the limit" },
        { "max-drop", "0.5%", 0.01, 0.005, false, true, "agreement: -1.00 points" },
        { "max-drop", "sqnr=0.2%", 1e-3, 2e-3, true, false, "sqnr: 0.001 of the signal is noise" },
    };
    char words[OCT_GATE_TEXT];
    results x;
    make(&x);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const oct_gate_result g = judged(&x, cases[i].name, cases[i].value, words);
        assert_true(fabs(g.estimate - cases[i].estimate) < 1e-12 && fabs(g.limit - cases[i].limit) < 1e-12);
        assert_true(g.met == cases[i].met && g.unsure == cases[i].unsure);
        if (!strstr(words, cases[i].words))
            fail_msg("'%s' is not in '%s'", cases[i].words, words);
    }
    oct_arena_destroy(x.r.arena);
}

/* What was not measured, or too widely, is never met by silence. */
TEST(unknown)
{
    char words[OCT_GATE_TEXT];
    results x;
    make(&x);
    x.m[1].speed = (oct_eval_speed){ 1.5, 0.9, 2.1, 40 };
    oct_gate_result g = judged(&x, "min-speedup", "0.5", words);
    assert_true(g.met && g.unsure && strstr(words, "vary too much"));
    x.m[1].speed = (oct_eval_speed){ 0 };
    x.m[1].latency = (oct_eval_latency){ 0 };
    g = judged(&x, "min-speedup", "0.5", words);
    assert_true(!g.met && g.unsure && strstr(words, "not timed"));
    g = judged(&x, "max-latency", "1000", words);
    assert_true(!g.met && g.unsure);
    x.s[1][1].value = NAN;
    assert_false(judged(&x, "min-sqnr", "-1000", words).met);
    x.s[1][1].value = INFINITY;
    assert_true(judged(&x, "min-sqnr", "1000", words).met && strstr(words, "equal"));
    x.s[1][0].drop = x.s[1][0].value = NAN;
    assert_false(judged(&x, "min-agreement", "0.01", words).met);
    oct_arena_destroy(x.r.arena);
}

TEST(nothing_to_judge)
{
    const oct_gate_result *found;
    size_t n;
    oct_gates g = { 0 };
    results x;
    make(&x);
    assert_int_equal(oct_gates_judge(&g, &x.r, &found, &n, NULL), OCT_OK);
    assert_true(n == 0 && !found);
    assert_int_equal(oct_gates_add(&g, "max-drop", "1%", NULL), OCT_OK);
    x.r.n_models = 1;
    assert_int_equal(oct_gates_judge(&g, &x.r, &found, &n, NULL), OCT_EUSAGE);
    x.r.n_models = 2;
    x.s[1][0].drop = x.s[1][1].drop = NAN; /* metrics without a value are judged; without metrics there is nothing */
    assert_int_equal(oct_gates_judge(&g, &x.r, &found, &n, NULL), OCT_OK);
    assert_true(n == 1 && !found->met);
    x.r.n_scores = 0;
    assert_int_equal(oct_gates_judge(&g, &x.r, &found, &n, NULL), OCT_EUSAGE);
    oct_gates_free(&g);
    oct_arena_destroy(x.r.arena);
}

/* ---- an earlier report ---- */

#define MODEL(path, size, drop)                                                                            \
    "{\"path\": \"" path "\", \"size_bytes\": " size ", \"peak_bytes\": 3000, \"output_sqnr_db\": 31.05, " \
    "\"drop\": {\"agreement\": {\"value\": " drop "}, \"none\": {\"value\": 1}, \"mse\": {\"value\": null}}}"
#define REPORT(models) "{\"schema\": \"octet-eval-1\", \"samples\": 400, \"models\": [{}, " models "]}"

static oct_status read_baseline(const char *text, oct_arena *a, oct_baseline **b, oct_err *err)
{
    *b = NULL;
    return oct_baseline_read(text, strlen(text), "old.json", a, b, err);
}

TEST(held_against_before)
{
    static const struct {
        const char *text;
        bool met[4], unsure; /* agreement, sqnr, size, memory */
    } cases[] = {
        { REPORT(MODEL("q", "250", "0.01")), { true, true, true, true }, false },
        { REPORT(MODEL("d/q", "248", "0.005")),
          { true, true, true, true },
          true }, /* 0.01 is worse, but the interval begins at -0.002 */
        { REPORT(MODEL("other", "247", "-0.003")), { false, true, false, true }, false }, /* 247 * 1.01 = 249.47 */
        { REPORT(MODEL("other", "1", "0") ", " MODEL("q", "1000", "0.5")), { true, true, true, true }, false },
    };
    oct_err err = OCT_ERR_INIT;
    char words[OCT_GATE_TEXT];
    results x;
    oct_baseline *b;
    make(&x);
    x.m[1].sqnr_db = 31; /* 0.05 less */
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const oct_gate_result *found = NULL;
        size_t n = 0;
        if (read_baseline(cases[i].text, x.r.arena, &b, &err) == OCT_EUNSUPPORTED) {
            print_message("# skipped: a build without jansson\n");
            return;
        }
        assert_non_null(b);
        assert_int_equal(oct_baseline_judge(b, &x.r, &found, &n, &err), OCT_OK);
        assert_int_equal(n, 4);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(found[k].met, cases[i].met[k]);
            assert_non_null(strstr(oct_report_gate_result(words, &found[k]), "last time"));
        }
        assert_int_equal(found[0].unsure, cases[i].unsure);
    }
    assert_int_equal(read_baseline(REPORT(MODEL("a", "1", "0") ", " MODEL("b", "1", "0")), x.r.arena, &b, &err),
                     OCT_OK);
    const oct_gate_result *found = NULL;
    size_t n = 0;
    assert_int_equal(oct_baseline_judge(b, &x.r, &found, &n, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.text, "no model in it is 'q'"));
    oct_arena_destroy(x.r.arena);
}

TEST(hostile_reports)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{}",
        "{\"schema\": 1}",
        "{\"schema\": 1, \"models\": [{}, {}]}",
        "{\"schema\": \"octet-eval-2\", \"models\": [{}, {}]}",
        "{\"schema\": \"octet-sensitivity-1\", \"models\": [{}, {}]}",
        "{\"schema\": \"octet-eval-1\", \"models\": {}}",
        "{\"schema\": \"octet-eval-1\", \"models\": [{}]}",
        "{\"schema\": \"octet-eval-1\", \"models\": [{}, 5]}",
        "{\"schema\": \"octet-eval-1\", \"schema\": \"octet-eval-1\"}",
        REPORT("{\"path\": 3}"),
        REPORT("{\"path\": \"q\"}"),
        REPORT("{\"path\": \"q\", \"size_bytes\": -1, \"peak_bytes\": 1}"),
        REPORT("{\"path\": \"q\", \"size_bytes\": 1, \"peak_bytes\": \"1\"}"),
        REPORT("{\"path\": \"q\", \"size_bytes\": 1e999, \"peak_bytes\": 1}"),
    };
    oct_arena *a = oct_arena_create();
    oct_baseline *b;
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_err err = OCT_ERR_INIT;
        const oct_status s = read_baseline(bad[i], a, &b, &err);
        if (s == OCT_EUNSUPPORTED)
            break;
        if (s != OCT_EMALFORMED || strncmp(err.text, "old.json:", 9) != 0)
            fail_msg("%s: status %d, '%s'", bad[i], (int)s, err.text);
    }
    oct_arena_destroy(a);
}
