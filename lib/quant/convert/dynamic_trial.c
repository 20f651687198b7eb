/* Tries the scheme dynamic in place of static where the target has it for most of the weights or of the work. Samples
 * whose sizes differ much (loud and quiet spectra) have ranges of their own, which no given range fits. The trial
 * decides nothing: a warning or a notice names the option with what was measured (loss.c).
 *
 * It is made when schemes are chosen and before weights are rounded, so that what it changes is simply decided anew.
 * The result is measured again at the end, as methods may have recovered by then what dynamic would gain. */
#include "quant/convert/convert_int.h"

#include "quant/job/placed.h"
#include "quant/methods/by_metric.h"
#include "quant/place/place.h"
#include "quant/simulate/simulate_int.h"

#include <math.h>
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

/* Whether layers with a dynamic form are most of the model. decided: of these, only layers that are static count. */
static bool are_most(const oct_qjob *j, bool decided)
{
    double all = 0, could = 0, all_work = 0, work = 0;
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        const bool may = has_dynamic_form(j, id) && (!decided || oct_is_static(j, id));
        all += count_weights(j, id);
        all_work += oct_work_share(j, id);
        could += may ? count_weights(j, id) : 0;
        work += may ? oct_work_share(j, id) : 0;
    }
    return could > 0 && (could >= MOST * all || work >= MOST * all_work);
}

/* Schemes that were asked for, or chosen for a size, have no alternative. */
static bool is_open(const oct_conversion *c)
{
    const oct_size_limit *l = &c->o.size;
    return c->src && c->calib && !c->o.whole && !(c->fold && c->fold->trial) &&
           (c->o.job.scheme == OCT_SCHEME_AUTO || c->o.job.scheme == OCT_SCHEME_STATIC) && !l->bytes &&
           !(l->share > 0) && !(l->bits > 0) && !oct_no_running(c) && are_most(c->job, false);
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
    *sqnr = loss.sqnr;
    return OCT_OK;
}

/* Measures with everything dynamic that can be. What costs and mixed precision chose for static layers does not hold
 * for these. */
static oct_status measure_dynamic(oct_conversion *c, oct_dynamic_trial *x, oct_err *err)
{
    oct_qjob *j = c->job;
    const double bytes = weight_bytes(j);
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_COST, OCT_FROM_COSTS, -1);
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_FLOAT, OCT_FROM_MIXED_PRECISION, -1);
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_WIDE, OCT_FROM_MIXED_PRECISION, -1);
    OCT_TRY(oct_qjob_set_scheme(j, OCT_SCHEME_DYNAMIC, err));
    oct_conversion_changed(c);
    OCT_TRY(measure(c, &x->sqnr, err));
    x->larger = weight_bytes(j) / bytes;
    return x->sqnr >= x->before + OCT_DYNAMIC_GAIN && oct_metric_decides(c) ? oct_metric_measure(c, &x->score, err)
                                                                            : OCT_OK;
}

oct_status oct_dynamic_try(oct_conversion *c, oct_err *err)
{
    oct_dynamic_trial *x = &c->dynamic;
    if (!is_open(c))
        return OCT_OK;
    OCT_TRY(oct_conversion_settle(c, err));
    if (!are_most(c->job, true))
        return OCT_OK;
    OCT_TRY(measure(c, &x->before, err));
    oct_qjob *j = c->job;
    const oct_scheme scheme = j->opts.scheme;
    const size_t n = j->constraints.n;
    oct_constraint *kept = oct_arena_calloc(c->arena, n + 1, sizeof *kept);
    if (!kept)
        return oct_nomem(err);
    if (n)
        memcpy(kept, j->constraints.v, n * sizeof *kept);
    OCT_TRY(measure_dynamic(c, x, err));
    OCT_TRY(oct_constraints_set(&j->constraints, kept, n, err));
    OCT_TRY(oct_qjob_set_scheme(j, scheme, err));
    oct_conversion_changed(c);
    x->gains = x->sqnr >= x->before + OCT_DYNAMIC_GAIN;
    return OCT_OK;
}

oct_status oct_dynamic_compare(oct_conversion *c, oct_err *err)
{
    oct_dynamic_trial *x = &c->dynamic;
    oct_eval_score now;
    if (!x->gains)
        return OCT_OK;
    OCT_TRY(measure(c, &x->before, err));
    x->gains = x->sqnr >= x->before + OCT_DYNAMIC_GAIN;
    if (!x->gains || !x->score.metric)
        return OCT_OK;
    OCT_TRY(oct_metric_measure(c, &now, err));
    x->gains = oct_metric_compare(&now, &x->score) >= 0;
    return OCT_OK;
}
