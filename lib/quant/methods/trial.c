/* A trial: measures, changes decisions, measures again, and keeps or undoes the change. */
#include "quant/methods/trial.h"

#include "quant/convert/convert_int.h"
#include "quant/methods/by_metric.h"
#include "quant/simulate/simulate_int.h"

#include <stdio.h>

static oct_status measure(oct_conversion *c, const oct_trial *t, oct_sim_loss *loss, oct_err *err)
{
    oct_sim *s;
    OCT_TRY(oct_conversion_sim(c, t->size, 1, &s, err));
    return oct_sim_measure(s, t->mask ? t->mask : &(oct_sim_mask){ .weights = OCT_SIM_ROUNDED_WEIGHTS }, loss, err);
}

static oct_status settle_with_few(oct_conversion *c, oct_err *err)
{
    size_t n;
    const int *axes;
    const char *const *values = oct_qjob_values(c->job, &axes, &n);
    oct_calib_destroy(c->calib);
    c->calib = NULL;
    OCT_TRY(oct_statistics_few(c, &(oct_few){ values, axes, n }, &c->calib, err));
    oct_conversion_changed(c);
    return OCT_OK;
}

/* Lets the metric overrule the SQNR. */
static oct_status judge(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err)
{
    oct_eval_score score;
    if (!t->score.metric)
        return OCT_OK;
    OCT_TRY(oct_metric_measure(c, &score, err));
    const int verdict = oct_metric_compare(&t->score, &score);
    t->won = verdict ? verdict > 0 : t->won;
    if (verdict)
        snprintf(r->choice, sizeof r->choice, "%s %s", score.metric->name,
                 verdict > 0 ? "is better" : "would be worse");
    if (verdict > 0)
        r->although = "the metric is better";
    t->score = t->won ? score : t->score;
    return OCT_OK;
}

/* One attempt. It is undone if it does not help. */
static oct_status attempt(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_arena *a, oct_err *err)
{
    const oct_sim_loss before = t->loss;
    oct_sim_loss after;
    *r->choice = 0;
    OCT_TRY(t->act(t, c, r, a, err));
    if (r->why)
        return OCT_OK;
    if (t->graph)
        OCT_TRY(settle_with_few(c, err));
    OCT_TRY(measure(c, t, &after, err));
    t->won = t->gain != 0 ? after.sqnr >= before.sqnr + t->gain : after.noise < before.noise;
    t->won |= t->enough > 0 && after.sqnr >= t->enough;
    r->although = t->gain < 0 || t->enough > 0 ? t->worth : "the noise of all outputs together is less";
    OCT_TRY(judge(c, t, r, err));
    t->loss = t->won ? after : t->loss;
    r->measure = "output SQNR";
    r->unit = "dB";
    if (t->won) {
        r->after = after.sqnr;
    } else {
        t->undo(t, c);
    }
    if (!t->won && t->otherwise)
        snprintf(r->choice, sizeof r->choice, "%s (%.1f dB)", t->otherwise, after.sqnr);
    return OCT_OK;
}

static oct_status measure_before(oct_conversion *c, oct_trial *t, oct_err *err)
{
    t->score = (oct_eval_score){ .metric = NULL };
    OCT_TRY(measure(c, t, &t->loss, err));
    return oct_metric_decides(c) ? oct_metric_measure(c, &t->score, err) : OCT_OK;
}

static oct_status try_with(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_arena *a, oct_err *err)
{
    OCT_TRY(oct_conversion_settle(c, err));
    if (t->revision == 0 || t->revision != c->revision || t->mask)
        OCT_TRY(measure_before(c, t, err));
    t->won = false;
    r->before = r->after = t->loss.sqnr;
    for (t->attempt = 0; !t->won && !r->why && (t->attempt == 0 || t->attempt < t->attempts); t->attempt++)
        OCT_TRY(attempt(c, t, r, a, err));
    t->revision = t->graph ? 0 : c->revision; /* what did not help was undone */
    return OCT_OK;
}

/* A trial of a changed graph, with statistics of its own over a few samples. */
static oct_status try_graph(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_arena *a, oct_err *err)
{
    oct_calib *own = c->calib;
    c->calib = NULL;
    oct_status s = settle_with_few(c, err);
    if (s == OCT_OK)
        s = try_with(c, t, r, a, err);
    oct_calib_destroy(c->calib);
    c->calib = own;
    return s == OCT_OK ? oct_conversion_reopen(c, err) : s;
}

oct_status oct_conversion_try(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    const oct_status s = !a ? oct_nomem(err) : t->graph ? try_graph(c, t, r, a, err) : try_with(c, t, r, a, err);
    if (c->sim)
        oct_sim_drop_runners(c->sim); /* the next steps need the memory, and mostly other graphs */
    oct_arena_destroy(a);
    return s;
}
