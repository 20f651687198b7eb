/* What to do after an evaluation: find what causes a loss, hold the models to what they reach, or make one. */
#include "api/evaluation_int.h"

#include "api/answer.h"
#include "base/io.h"
#include "eval/run/scaled.h"

#include <math.h>
#include <string.h>

#define A_POINT 0.01 /* a share of the samples that scores may lose */
#define AGREES 0.95  /* the share of the samples in which a model of close decisions agrees with float */
enum { USEFUL_DB = 20, LEAST_DB = 1 };

static void add(oct_buf *b, const char *option, const char *value)
{
    if (!value)
        return;
    oct_buf_printf(b, " %s ", option);
    oct_quote(b, value);
}

static void add_all(oct_buf *b, const char *option, octet_texts t)
{
    for (size_t i = 0; i < t.n; i++)
        add(b, option, t.v[i]);
}

static void add_samples(oct_buf *b, const octet_samples *x)
{
    add_all(b, "--data", x->data);
    add_all(b, "--preprocess", x->preprocess);
    if (x->samples)
        oct_buf_printf(b, " --samples %lld", (long long)x->samples);
    if (x->first)
        oct_buf_puts(b, " --first");
    if (x->seed > 0)
        oct_buf_printf(b, " --seed %lld", (long long)x->seed);
    add_all(b, "--state", x->states);
    if (x->skip_bad)
        oct_buf_puts(b, " --skip-bad");
}

/* How results are judged. */
static void add_judging(oct_buf *b, const octet_evaluate_options *x)
{
    if (x->samples.generate)
        oct_buf_printf(b, " --generate %lld", (long long)x->samples.generate);
    add(b, "--labels", x->samples.labels);
    add(b, "--decode", x->decode);
    add(b, "--truth", x->truth);
    add(b, "--metric-cmd", x->metric_command);
    if (x->less_is_better)
        oct_buf_puts(b, " --less-is-better");
    for (size_t i = 0; i < x->metrics.n; i++)
        oct_buf_printf(b, "%s%s", i ? "," : " --metric ", x->metrics.v[i]);
    add(b, "--as", x->twin);
    add(b, "--runner", x->runner);
    add(b, "--runner-for", x->runner_for);
}

/* ---- what was lost ---- */

/* The first score that truths decide; NULL: there is none. */
static const oct_eval_score *score_of_truth(const oct_evaluation *s, const oct_eval_model_result *m)
{
    for (size_t i = 0; i < s->result->n_scores; i++)
        if (!isnan(m->scores[i].drop) && !m->scores[i].metric->relative)
            return &m->scores[i];
    return NULL;
}

static bool has_lost(const oct_evaluation *s, size_t k)
{
    const oct_eval_model_result *m = &s->result->models[k];
    const oct_eval_score *x = score_of_truth(s, m);
    for (size_t i = 0; i < s->context.n_gates; i++) {
        const oct_gate_result *g = &s->context.gates[i];
        const oct_gate_kind of = g->gate->kind;
        if (g->model == k && !g->met && (of == OCT_GATE_DROP || of == OCT_GATE_AGREEMENT || of == OCT_GATE_SQNR))
            return true;
    }
    return m->sqnr_db < USEFUL_DB || (x && x->drop > 0 && x->lo > 0);
}

/* ---- the items ---- */

/* Nothing is measured part by part in a file that another runtime runs, or that has other scales. */
static void put_causes(const oct_evaluation *s, oct_json *j, oct_buf *text, oct_buf *command)
{
    const octet_evaluate_options *x = &s->x;
    for (size_t k = 1; k <= x->quantized.n; k++) {
        if (!has_lost(s, k) || x->runner || x->samples.generate || oct_model_meta(s->loaded[k], OCT_SCALED_KEY))
            continue;
        oct_buf_printf(text, "Which layers of %s lose it:", oct_path_base(x->quantized.v[k - 1]));
        oct_buf_puts(command, "qeval ");
        oct_quote(command, x->model);
        oct_buf_puts(command, " ");
        oct_quote(command, x->quantized.v[k - 1]);
        add_samples(command, &x->samples);
        oct_buf_puts(command, " --sensitivity");
        oct_answer_item(j, "try", text, command);
        return;
    }
}

/* A gate that all models meet; false: there is none. */
static bool find_gate(const oct_evaluation *s, oct_buf *b)
{
    const oct_eval_result *r = s->result;
    bool drop = true, agreement = true;
    double db = INFINITY;
    for (size_t k = 1; k < r->n_models; k++) {
        const oct_eval_model_result *m = &r->models[k];
        const oct_eval_score *x = score_of_truth(s, m);
        drop &= x && oct_metric_in_percent(x->metric) && x->drop < A_POINT;
        agreement &= m->agreement >= AGREES;
        db = fmin(db, m->sqnr_db);
    }
    if (drop)
        oct_buf_puts(b, " --max-drop 1%");
    else if (agreement)
        oct_buf_puts(b, " --min-agreement 95%");
    else if (isfinite(db) && db >= LEAST_DB)
        oct_buf_printf(b, " --min-sqnr %.0f", floor(db));
    else
        return false;
    return true;
}

static void put_gate(const oct_evaluation *s, oct_json *j, oct_buf *text, oct_buf *command)
{
    const octet_evaluate_options *x = &s->x;
    oct_buf_puts(command, "qeval ");
    oct_quote(command, x->model);
    for (size_t i = 0; i < x->quantized.n; i++) {
        oct_buf_puts(command, " ");
        oct_quote(command, x->quantized.v[i]);
    }
    add_samples(command, &x->samples);
    add_judging(command, x);
    if (find_gate(s, command))
        oct_buf_puts(text, "To keep it so, as a check that fails with exit 1:");
    oct_answer_item(j, "next", text, command);
}

static void put_conversion(const oct_evaluation *s, oct_json *j, oct_buf *text, oct_buf *command)
{
    oct_buf_puts(text, "To quantize it:");
    oct_buf_puts(command, "qconvert ");
    oct_quote(command, s->x.model);
    add_samples(command, &s->x.samples);
    oct_answer_item(j, "next", text, command);
}

/* Nothing is to be done with numbers of a float model that guesses. */
static bool is_guess(const oct_evaluation *s)
{
    const oct_eval_result *r = s->result;
    for (size_t i = 0; i < r->n_scores; i++)
        if (oct_eval_is_guess(&r->models[0].scores[i]))
            return true;
    return false;
}

/* Whether a command could read the same again. */
static bool is_repeatable(const oct_evaluation *s)
{
    const octet_evaluate_options *x = &s->x;
    bool is = !x->shards && !x->samples.get && strcmp(x->model, "-") != 0;
    for (size_t i = 0; i < x->samples.data.n; i++)
        is &= !oct_path_is_stream(x->samples.data.v[i]);
    for (size_t i = 0; i < x->quantized.n; i++)
        is &= strcmp(x->quantized.v[i], "-") != 0;
    return is;
}

static void put_answer(const void *of, oct_json *j)
{
    const oct_evaluation *s = of;
    oct_buf text = OCT_BUF_INIT, command = OCT_BUF_INIT;
    bool lost = false;
    oct_json_open(j, "answer", '[');
    for (size_t k = 1; k < s->result->n_models; k++)
        lost |= has_lost(s, k);
    if (!is_repeatable(s) || is_guess(s))
        ; /* nothing is known that helps */
    else if (lost)
        put_causes(s, j, &text, &command);
    else if (s->result->n_models > 1 && !s->context.n_gates)
        put_gate(s, j, &text, &command);
    else if (s->result->n_models == 1)
        put_conversion(s, j, &text, &command);
    oct_json_close(j);
    oct_buf_free(&text);
    oct_buf_free(&command);
}

void oct_evaluation_put_answer(oct_json *j, const void *evaluation)
{
    put_answer(evaluation, j);
    oct_answer_next(j, put_answer, evaluation);
}
