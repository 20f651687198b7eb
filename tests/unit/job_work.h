/* A job with statistics of one run of its float graph. Include after cmocka. */
#ifndef OCT_TESTS_JOB_WORK_H
#define OCT_TESTS_JOB_WORK_H

#include "net.h"
#include "quant/quant.h"

typedef struct work {
    oct_target *target; /* NULL: of targets.h */
    oct_policy *policy;
    oct_qjob *job;
    oct_calib *calib;
} work;

typedef struct recorder {
    oct_calib *calib;
    const char *const *names;
} recorder;

static inline oct_status record_tap(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    const recorder *r = arg;
    oct_calib_tensor *to;
    float *v = oct_alloc((size_t)t->count * sizeof *v);
    OCT_TRY(oct_calib_add(r->calib, r->names[tap], &to, err));
    OCT_TRY(oct_operand_to_f32(t, v, err));
    OCT_TRY(oct_stats_update(&to->stats, v, (size_t)t->count, err));
    if (t->rank >= 2) {
        size_t n = (size_t)t->dims[1], inner = (size_t)(t->count / t->dims[0] / t->dims[1]);
        if (to->chan.channels == 0)
            OCT_TRY(oct_chan_init(&to->chan, n, err));
        OCT_TRY(oct_chan_update(&to->chan, v, (size_t)t->dims[0], 1, inner, err));
    }
    oct_free(v);
    return OCT_OK;
}

/* Adds statistics of a run on x to the job's. */
static inline void take_statistics(work *w, const oct_graph *g, const float *x)
{
    oct_plan_opts p = { .no_passes = true };
    p.taps = oct_qjob_values(w->job, NULL, &p.n_taps);
    oct_plan *plan = net_plan(g, &p, NULL);
    oct_plan_set_tap(plan, record_tap, &(recorder){ w->calib, p.taps });
    GOOD(oct_plan_run(plan, (const void *[]){ x }, err));
    oct_plan_destroy(plan);
}

static inline void stop(work *w, oct_graph *g)
{
    oct_calib_destroy(w->calib);
    oct_qjob_destroy(w->job);
    oct_policy_destroy(w->policy);
    oct_target_close(w->target);
    oct_graph_destroy(g);
}

#endif
