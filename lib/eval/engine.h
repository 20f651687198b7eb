/* lib/eval/engine.h -- a model under evaluation and what runs it: our runtime, or that of a command. */
#ifndef OCT_EVAL_ENGINE_H
#define OCT_EVAL_ENGINE_H

#include "base/pool.h"
#include "eval/remote.h"
#include "runtime/runner.h"

typedef struct oct_engine_opts {
    oct_pool *pool;
    bool bf16;                     /* as oct_plan_opts.bf16 says */
    const oct_remote_opts *remote; /* NULL: our runtime; borrowed */
    const char *path;              /* of the model's file, for the other */
} oct_engine_opts;

typedef struct oct_engine {
    oct_runner *here;  /* NULL: the model runs there */
    oct_remote *there; /* NULL: the model runs here */
    oct_plan *plan;    /* of the last run here */
} oct_engine;

/* g and what o names are borrowed and must outlive e; feed as for oct_runner_create. Statuses of oct_runner_create and oct_remote_start. */
oct_status oct_engine_open(oct_engine *e, const oct_graph *g, const oct_engine_opts *o, const oct_input_desc *feed, size_t n_feed, oct_err *err);
void oct_engine_close(oct_engine *e);
/* *seconds: of the run alone, as far as what runs it says so. */
oct_status oct_engine_run(oct_engine *e, const oct_array *arrays, double *seconds, oct_err *err);
/* Output i of the last run, in the model's order; borrowed until the next. */
const oct_operand *oct_engine_output(const oct_engine *e, size_t i);
const oct_operand *oct_engine_left(const void *e, size_t i); /* the same, for oct_carry_keep */
/* The other runtime's name and version; NULL: ours. Borrowed. */
const char *oct_engine_name(const oct_engine *e);

#endif
