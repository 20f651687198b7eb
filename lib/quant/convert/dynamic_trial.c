/* Tries the scheme dynamic in place of static where the target has it for most of the weights or of the work. Samples
 * whose sizes differ much (loud and quiet spectra) have ranges of their own, which no given range fits. The trial
 * decides nothing: a warning or a notice names the option with what was measured (loss.c).
 *
 * It is made when all is decided, against what the methods have recovered. Then decisions are as they were. */
#include "quant/convert/convert_int.h"

#include "quant/job/decisions.h"
#include "quant/job/placed.h"
#include "quant/methods/by_metric.h"
#include "quant/place/place.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/constants.h"

#include <string.h>

#define MOST 0.5 /* share of the weights or of the multiply-accumulates that have a dynamic form */

static double count_weights(const oct_qjob *j, int id)
{
    const oct_tensor *w = oct_layer_weights(j->g, id);
    return w ? (double)w->count : 0;
}

static bool has_dynamic_form(const oct_qjob *j, int id)
{
    const char *why;
    return oct_op_of(j->g, id) && oct_op_of(j->g, id)->dynamic && oct_layer_weights(j->g, id) &&
           !oct_row_of(j, id)->asked && oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_DYNAMIC, &why);
}

/* Whether layers that are static and could be dynamic are most of the model. */
static bool are_most(const oct_qjob *j)
{
    double all = 0, could = 0, all_work = 0, work = 0;
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        const bool may = oct_is_static(j, id) && has_dynamic_form(j, id);
        all += count_weights(j, id);
        all_work += oct_work_share(j, id);
        could += may ? count_weights(j, id) : 0;
        work += may ? oct_work_share(j, id) : 0;
    }
    return could > 0 && (could >= MOST * all || work >= MOST * all_work);
}

/* Schemes that were asked for, or chosen for a size, have no alternative. Decisions of bodies are not kept
 * (decisions.h). */
static bool is_open(const oct_conversion *c)
{
    const oct_size_limit *l = &c->o.size;
    return c->src && c->calib && !c->o.whole && !(c->fold && c->fold->trial) &&
           (c->o.job.scheme == OCT_SCHEME_AUTO || c->o.job.scheme == OCT_SCHEME_STATIC) && !l->bytes &&
           !(l->share > 0) && !(l->bits > 0) && !oct_no_running(c) && c->job->n_body == 0 && are_most(c->job);
}

/* Bytes of the weights as they are placed, without scales. */
static double weight_bytes(const oct_qjob *j)
{
    double bytes = 0;
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        const int each = oct_scheme_of(j, id) != OCT_SCHEME_FLOAT ? 1 : oct_half_type(j, id) ? 2 : 4;
        bytes += count_weights(j, id) * each;
    }
    return bytes;
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

/* Measures with everything dynamic that can be. What costs and mixed precision chose for static layers does not hold
 * for these. */
static oct_status measure_dynamic(oct_conversion *c, double before, oct_dynamic_trial *x, oct_err *err)
{
    oct_qjob *j = c->job;
    const double bytes = weight_bytes(j);
    double sqnr;
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_COST, OCT_FROM_COSTS, -1);
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_FLOAT, OCT_FROM_MIXED_PRECISION, -1);
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_WIDE, OCT_FROM_MIXED_PRECISION, -1);
    memset(j->constants, 0, j->n_nodes * sizeof *j->constants); /* weights are made safe and rounded from the start */
    OCT_TRY(oct_qjob_set_scheme(j, OCT_SCHEME_DYNAMIC, err));
    oct_conversion_changed(c);
    OCT_TRY(measure(c, &sqnr, err));
    x->larger = weight_bytes(j) / bytes;
    x->gains = sqnr >= before + OCT_DYNAMIC_GAIN;
    if (!x->gains)
        return OCT_OK;
    OCT_TRY(oct_conversion_at_outputs(c, &x->sqnr, err));
    return oct_metric_decides(c) ? oct_metric_measure(c, &x->score, err) : OCT_OK;
}

/* Decisions before the trial. The weights that were rounded then still exist. */
static oct_status restore(oct_conversion *c, const oct_decisions *was, oct_scheme scheme, oct_err *err)
{
    OCT_TRY(oct_decisions_restore(c->job, was, err)); /* the constraints, by which nodes are placed */
    OCT_TRY(oct_qjob_set_scheme(c->job, scheme, err));
    OCT_TRY(oct_decisions_restore(c->job, was, err));
    oct_expect(c->job);
    oct_conversion_edited(c);
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
    OCT_TRY(measure(c, &before, err));
    OCT_TRY(oct_decisions_keep(c->job, c->arena, &was, err));
    OCT_TRY(measure_dynamic(c, before, x, err));
    OCT_TRY(restore(c, &was, scheme, err));
    if (!x->gains || !x->score.metric)
        return OCT_OK;
    OCT_TRY(oct_metric_measure(c, &score, err));
    x->gains = oct_metric_compare(&score, &x->score) >= 0;
    return OCT_OK;
}
