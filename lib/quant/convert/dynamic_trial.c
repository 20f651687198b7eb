/* Tries the scheme dynamic in place of static where the target has it for most of the weights or of the work. Samples
 * whose sizes differ much (loud and quiet spectra) have ranges of their own, which no given range fits.
 *
 * It is made when all is decided, against what the methods have recovered. It is taken where nothing else is lost: the
 * scheme is free, the outputs are not fine yet, the file is as large, and by all tables of costs of the target it takes
 * as long. Then the methods that round run again. Otherwise decisions are as they were, and a warning or a notice names
 * the option with what was measured (loss.c). */
#include "quant/convert/convert_int.h"

#include "quant/job/decisions.h"
#include "quant/job/placed.h"
#include "quant/methods/by_metric.h"
#include "quant/place/place.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/constants.h"

#include <math.h>
#include <string.h>

#define MOST 0.5      /* share of the weights or of the multiply-accumulates that have a dynamic form */
#define FINE_DB 40    /* of the static form: above this, a gain is no reason for scales that depend on the batch */
#define AS_LARGE 1.02 /* bytes of the weights, as a factor */
#define AS_LONG 1.05  /* expected time, as a factor: tables are not more exact */

static double count_weights(const oct_qjob *j, int id)
{
    const oct_tensor *w = oct_layer_weights(j->g, id);
    return w ? (double)w->count : 0;
}

static bool has_dynamic_form(const oct_qlayer *l)
{
    const oct_qjob *j = l->job;
    const int id = l->node;
    const char *why;
    return oct_op_of(j->g, id) && oct_op_of(j->g, id)->dynamic && oct_layer_weights(j->g, id) &&
           !oct_row_of(j, id)->asked && oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_DYNAMIC, &why);
}

/* Whether layers that are static and could be dynamic are most of the model, its bodies included. */
static bool are_most(const oct_qjob *j)
{
    double all = 0, could = 0, all_work = 0, work = 0;
    for (size_t k = 0; k < j->n_all; k++) {
        const oct_qlayer *l = &j->all[k];
        const bool may = oct_is_static(l->job, l->node) && has_dynamic_form(l);
        all += count_weights(l->job, l->node);
        all_work += l->job->work[l->node];
        could += may ? count_weights(l->job, l->node) : 0;
        work += may ? l->job->work[l->node] : 0;
    }
    return could > 0 && (could >= MOST * all || work >= MOST * all_work);
}

/* Schemes that were asked for, or chosen for a size, have no alternative. */
static bool is_open(const oct_conversion *c)
{
    const oct_size_limit *l = &c->o.size;
    return c->src && c->calib && !c->o.whole && !(c->fold && c->fold->trial) &&
           (c->o.job.scheme == OCT_SCHEME_AUTO || c->o.job.scheme == OCT_SCHEME_STATIC) && !l->bytes &&
           !(l->share > 0) && !(l->bits > 0) && !oct_no_running(c) && are_most(c->job);
}

double oct_weight_bytes(const oct_qjob *j)
{
    double bytes = 0;
    for (size_t k = 0; k < j->n_all; k++) {
        const oct_qlayer *l = &j->all[k];
        const int each = oct_half_type(l->job, l->node)                       ? 2
                         : oct_scheme_of(l->job, l->node) != OCT_SCHEME_FLOAT ? 1
                                                                              : 4;
        bytes += count_weights(l->job, l->node) * each;
    }
    return bytes;
}

double oct_size_with(const oct_conversion *c, const oct_qjob *j)
{
    double weights = 0;
    for (size_t k = 0; k < j->n_all; k++)
        weights += count_weights(j->all[k].job, j->all[k].node);
    const double size = (double)c->size_before - sizeof(float) * weights + oct_weight_bytes(j);
    return j->opts.source != OCT_F16 && j->opts.source != OCT_BF16 && size > 0 ? size : 0;
}

static oct_status measure(oct_conversion *c, double *sqnr, oct_err *err)
{
    oct_sim *s;
    oct_sim_loss loss;
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_JUDGES, 1, &s, err));
    OCT_TRY(oct_sim_measure(s, &(oct_sim_mask){ .weights = OCT_SIM_ROUNDED_WEIGHTS }, &loss, err));
    oct_sim_drop_runners(c->sim);
    *sqnr = loss.sqnr;
    return OCT_OK;
}

/* The static layers on samples that calibrated, and on samples that did not: with the ranges of the other half. The
 * worse number counts. */
static oct_status measure_static(oct_conversion *c, double *sqnr, oct_err *err)
{
    oct_calib *all = c->calib;
    double others;
    OCT_TRY(measure(c, sqnr, err));
    if (!c->half[0])
        return OCT_OK;
    c->calib = c->half[0];
    oct_conversion_changed(c);
    const oct_status s = measure(c, &others, err);
    c->calib = all;
    *sqnr = s == OCT_OK ? fmin(*sqnr, others) : *sqnr;
    return s;
}

/* Forgets what costs and mixed precision chose for static layers. Weights are made safe and rounded from the start. */
static void forget_choices(oct_qjob *j)
{
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_COST, OCT_FROM_COSTS, -1);
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_FLOAT, OCT_FROM_MIXED_PRECISION, -1);
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_WIDE, OCT_FROM_MIXED_PRECISION, -1);
    memset(j->constants, 0, j->n_nodes * sizeof *j->constants);
    for (size_t i = 0; i < j->n_body; i++)
        forget_choices(j->body[i].job);
}

void oct_add_expected(const oct_qjob *j, oct_target_times *sum)
{
    for (size_t t = 0; t < OCT_COST_TABLES; t++) {
        sum->decided[t] += j->expected.decided[t];
        sum->on_floats[t] += j->expected.on_floats[t];
    }
    for (size_t i = 0; i < j->n_body; i++)
        oct_add_expected(j->body[i].job, sum);
}

/* Whether the scheme may replace the static one without a question. */
static bool costs_nothing(const oct_conversion *c, const oct_target_times *was, double before,
                          const oct_dynamic_trial *x)
{
    const size_t tables = oct_target_n_costs(c->o.job.target);
    oct_target_times now = { 0 };
    bool as_fast = tables > 0;
    oct_add_expected(c->job, &now);
    for (size_t t = 0; t < tables; t++)
        as_fast &= now.decided[t] <= AS_LONG * was->decided[t];
    return as_fast && c->o.job.scheme == OCT_SCHEME_AUTO && !c->o.n_goals && !c->o.writable && before < FINE_DB &&
           x->larger <= AS_LARGE;
}

/* Everything is dynamic that can be. */
static oct_status be_dynamic(oct_conversion *c, oct_err *err)
{
    forget_choices(c->job);
    OCT_TRY(oct_qjob_set_scheme(c->job, OCT_SCHEME_DYNAMIC, err));
    oct_conversion_changed(c);
    return OCT_OK;
}

static oct_status measure_dynamic(oct_conversion *c, double before, oct_dynamic_trial *x, oct_err *err)
{
    const double bytes = oct_weight_bytes(c->job);
    oct_target_times was = { 0 };
    double sqnr;
    oct_add_expected(c->job, &was);
    OCT_TRY(be_dynamic(c, err));
    OCT_TRY(measure(c, &sqnr, err));
    x->larger = oct_weight_bytes(c->job) / bytes;
    x->size = oct_size_with(c, c->job);
    x->better = sqnr - before;
    x->gains = x->better >= OCT_DYNAMIC_GAIN;
    if (!x->gains)
        return OCT_OK;
    x->free = costs_nothing(c, &was, before, x);
    OCT_TRY(oct_conversion_at_outputs(c, &x->sqnr, err));
    return oct_metric_decides(c) ? oct_metric_measure(c, &x->score, err) : OCT_OK;
}

static void expect_all(oct_qjob *j)
{
    oct_expect(j);
    for (size_t i = 0; i < j->n_body; i++)
        expect_all(j->body[i].job);
}

/* Decisions before the trial. The weights that were rounded then still exist. */
static oct_status restore(oct_conversion *c, const oct_decisions *was, oct_scheme scheme, oct_err *err)
{
    OCT_TRY(oct_decisions_restore(c->job, was, err)); /* the constraints, by which nodes are placed */
    OCT_TRY(oct_qjob_set_scheme(c->job, scheme, err));
    OCT_TRY(oct_decisions_restore(c->job, was, err));
    expect_all(c->job);
    oct_conversion_edited(c);
    return OCT_OK;
}

/* What was chosen and measured for static layers says nothing of dynamic ones. */
static oct_status take(oct_conversion *c, oct_err *err)
{
    OCT_TRY(be_dynamic(c, err));
    OCT_TRY(oct_conversion_settle(c, err));
    for (int step = OCT_STEP_CHOICE + 1; step < OCT_STEP_COUNT; step++)
        OCT_TRY(c->run_methods(c, (oct_method_step)step, err));
    OCT_TRY(oct_conversion_settle(c, err));
    c->sensitivity = NULL;
    c->n_promoted = 0;
    c->remedy = (oct_remedy){ 0 };
    oct_conversion_say(
        c, 0,
        "layers are dynamic: with ranges of each sample %.0f dB are lost less than with given ones, which "
        "--scheme static keeps, for no more time and bytes",
        c->dynamic.better);
    return OCT_OK;
}

oct_status oct_dynamic_try(oct_conversion *c, oct_err *err)
{
    oct_dynamic_trial *x = &c->dynamic;
    oct_decisions was;
    oct_eval_score score;
    double before;
    if (!is_open(c))
        return OCT_OK;
    const oct_scheme scheme = c->job->opts.scheme;
    x->scaled = oct_conversion_is_scaled(c);
    OCT_TRY(oct_decisions_keep(c->job, c->arena, &was, err));
    OCT_TRY(measure_static(c, &before, err));
    OCT_TRY(measure_dynamic(c, before, x, err));
    OCT_TRY(restore(c, &was, scheme, err));
    if (x->gains && x->score.metric) {
        OCT_TRY(oct_metric_measure(c, &score, err));
        x->gains = oct_metric_compare(&score, &x->score) >= 0;
    }
    x->taken = x->gains && x->free;
    x->gains &= !x->taken;
    return x->taken ? take(c, err) : OCT_OK;
}
