/* lib/eval/engines/engine.h -- a model under evaluation together with the runtime that runs it: ours, that of a
 * command, or the twin of one.
 */
#ifndef OCT_EVAL_ENGINE_H
#define OCT_EVAL_ENGINE_H

#include "base/pool.h"
#include "eval/engines/remote.h"
#include "eval/engines/twin_engine.h"
#include "runtime/runner.h"

typedef struct oct_engine_opts {
    oct_pool *pool;
    bool bf16;                     /* as in oct_plan_opts.bf16 */
    const oct_remote_opts *remote; /* the other runtime; borrowed; NULL: ours */
    const char *path;              /* the model's file, for the other runtime and the twin; NULL: the twin has none */
    const oct_twin *twin;          /* whose arithmetic the model is computed with; NULL: ours */
} oct_engine_opts;

typedef struct oct_engine {
    oct_runner *here;    /* NULL: the other runtime runs the model */
    oct_remote *there;   /* NULL: our runtime runs the model */
    oct_twin_engine *as; /* NULL: it is not computed as another runtime does */
    oct_plan *plan;      /* the plan of the last run in our runtime */
} oct_engine;

/* g, and what o refers to, are borrowed and must outlive e. feed: as for oct_runner_create. Errors are those of
 * oct_runner_create and oct_remote_start. */
oct_status oct_engine_open(oct_engine *e, const oct_graph *g, const oct_engine_opts *o, const oct_input_desc *feed,
                           size_t n_feed, oct_err *err);
void oct_engine_close(oct_engine *e);
/* *seconds: the time of the run alone, as far as the runtime reports it. */
oct_status oct_engine_run(oct_engine *e, const oct_array *arrays, double *seconds, oct_err *err);
/* Output i of the last run, in the order of the model. Borrowed until the next run. */
const oct_operand *oct_engine_output(const oct_engine *e, size_t i);
const oct_operand *oct_engine_left(const void *e, size_t i); /* the same, for oct_carry_keep */
/* Name and version of the other runtime, or whose twin it is; NULL: ours. Borrowed. */
const char *oct_engine_name(const oct_engine *e);

#endif
