/* What a conversion says of the causes of a loss, and what would lose less. */
#include "converted.h"

#include "eval/metrics/summary.h"
#include "quant/simulate/sensitivity.h"

TEST_GROUP(folder_make, folder_remove);

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
                    "12 samples cannot exclude a loss of 24.2 points of agreement (95 %); about 59 could " },
                  { "agreement", 0, 0, 0.049, 75, NULL },
                  { "top1", 0.02, -0.02, 0.06, 100,
                    "100 samples cannot exclude a loss of 6.0 points of top1 (95 %); about 1600 could " },
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
