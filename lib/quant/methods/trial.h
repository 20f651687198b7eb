/* lib/quant/methods/trial.h -- a trial: a change of decisions that is kept only if it helps on samples that were not
 * used to choose it. */
#ifndef OCT_QUANT_TRIAL_H
#define OCT_QUANT_TRIAL_H

#include "quant/simulate/simulate.h"

typedef struct oct_trial oct_trial;
struct oct_trial {
    oct_sim_size size;
    const oct_sim_mask *mask; /* which part of the rounding is measured; NULL: all. act may change it. */
    /* The change concerns the graph, before the conversion has statistics: then decisions use statistics of a few
     * samples of the first half. act then ends with oct_conversion_reopen, and so does the trial. */
    bool graph;
    /* Changes decisions and announces that (oct_conversion_changed, oct_conversion_edited). If there is nothing to try,
     * it sets r->why. What it allocates in arena a lasts until the trial has ended. */
    oct_status (*act)(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err);
    void (*undo)(oct_trial *t, oct_conversion *c); /* undoes the change, and announces that */
    /* how many dB the smallest SQNR of an output must gain; a negative number: may lose; 0: the noise must fall. act
     * may set it. */
    double gain;
    double enough;         /* an SQNR in dB that suffices, whatever it was before; 0: none does */
    const char *worth;     /* what a loss that such a gain or SQNR allows is accepted for, as one clause */
    int attempts;          /* how often act is called until the change helps; 0: once. act may lower it. */
    int attempt;           /* the number of the attempt, from 0 */
    const char *otherwise; /* the name of the choice if the change does not help; NULL: the method sets it */
    void *arg;             /* for use by the method */
    bool won;              /* the result: the change was kept. false also if there was nothing to try */
    /* For the next trial of the method: the loss with the decisions as they are, if they are those of this revision. */
    oct_sim_loss loss;
    oct_eval_score score; /* by the metric that decides; metric NULL: none does */
    uint64_t revision;    /* of the conversion; 0: the loss is not known */
};

/* Measures on the second half, without the change and with it. If the change does not help, it is undone, and the next
 * attempt is made. Where labels or a rule say what counts (by_metric.h), the metric decides, and the SQNR only if the
 * metric does not tell. Fills r. */
oct_status oct_conversion_try(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err);

#endif
