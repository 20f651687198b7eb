/* lib/quant/trial.h -- a change of decisions that stays only where it wins on samples that did not choose it. */
#ifndef OCT_QUANT_TRIAL_H
#define OCT_QUANT_TRIAL_H

#include "quant/simulate.h"

typedef struct oct_trial oct_trial;
struct oct_trial {
    oct_sim_size size;
    const oct_sim_mask *mask; /* what of the rounding is measured, NULL: all. act may change it. */
    /* What is changed is the graph, before the conversion has statistics: decisions rest on those of a few samples of the first half. act then
     * ends with oct_conversion_reopen, and so does the trial. */
    bool graph;
    /* Changes decisions and tells of it (oct_conversion_changed, oct_conversion_edited), or sets r->why: there is nothing to try. What it puts
     * into the arena a lasts until the trial has ended. */
    oct_status (*act)(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err);
    void (*undo)(oct_trial *t, oct_conversion *c); /* and tells of that */
    /* dB that the smallest SQNR of an output must win, below 0: may lose; 0: the noise must fall. act may set it. */
    double gain;
    double enough;         /* dB that are enough whatever they were before; 0: none are */
    int attempts;          /* how often act is called until it wins, 0: once. act may lower it. */
    int attempt;           /* which of them it is, from 0 */
    const char *otherwise; /* what is chosen where it does not win; NULL: the method says it */
    void *arg;             /* the method's own */
    bool won;              /* the result; false also where there was nothing to try */
};

/* Measures on the second half without the change and with it, undoes what does not win, and tries the next attempt; fills r. */
oct_status oct_conversion_try(oct_conversion *c, oct_trial *t, oct_method_result *r, oct_err *err);

#endif
