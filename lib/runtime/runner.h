/* lib/runtime/runner.h -- runs a model on batches of any shape: a plan is made for each new shape, and kept. */
#ifndef OCT_RUNTIME_RUNNER_H
#define OCT_RUNTIME_RUNNER_H

#include "base/array.h"
#include "runtime/plan.h"

typedef struct oct_runner oct_runner;

/* g and opts (may be NULL) with its taps are borrowed and must outlive the runner. feed[i] describes the i-th array
 * that run gets (the inputs of the reference model); n_feed of them, borrowed for the call. They are matched with g's
 * inputs by name, or by position if no name fits; NULL: the arrays are g's inputs. OCT_EMALFORMED names an input
 * without an array. */
oct_status oct_runner_create(const oct_graph *g, const oct_plan_opts *opts, const oct_input_desc *feed, size_t n_feed,
                             oct_runner **r, oct_err *err);
void oct_runner_destroy(oct_runner *r); /* NULL allowed */

/* The plan for arrays of these shapes, made if necessary; borrowed, valid until the next call. */
oct_status oct_runner_plan(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err);
/* Runs the model on the arrays. Element types that differ from the model's are converted by oct_array_convert. Results
 * can be read from *plan until the next call. */
oct_status oct_runner_run(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err);

/* The same, but only up to oct_plan_begin: oct_plan_advance continues *plan. The arrays are borrowed until the run has
 * ended. */
oct_status oct_runner_begin(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err);

/* Profiles all plans of this runner (oct_plan_profile), also those to come. */
void oct_runner_profile(oct_runner *r, bool on);
/* The plans that are kept, in any order; NULL behind the last. */
const oct_plan *oct_runner_kept(const oct_runner *r, size_t i);

/* Sets the tap of all plans of this runner, from the next run on (oct_plan_set_tap); fn NULL: none. */
void oct_runner_set_tap(oct_runner *r, oct_tap_fn fn, void *arg);

/* The inputs that samples fill, for n graphs together: names and types are those of g[0]; a dimension is known if one
 * of the graphs fixes it; an input is unread if no graph reads it. Strings always count as read. Allocated in arena. */
oct_status oct_inputs_describe(const oct_graph *const *g, size_t n, oct_arena *arena, oct_input_desc **inputs,
                               size_t *n_inputs, oct_err *err);

#endif
