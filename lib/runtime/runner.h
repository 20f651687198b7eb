/* lib/runtime/runner.h -- a model that runs batches of any shape: plans are made when a shape comes first, and kept. */
#ifndef OCT_RUNTIME_RUNNER_H
#define OCT_RUNTIME_RUNNER_H

#include "base/array.h"
#include "runtime/plan.h"

typedef struct oct_runner oct_runner;

/* g and opts (may be NULL) with its taps are borrowed and must outlive the runner. feed[i] names what the i-th array
 * given to run is (the reference model's inputs); n_feed of them, borrowed for the call. They are matched to g's inputs
 * by name, and when no name fits by position; NULL: the arrays are g's inputs. OCT_EMALFORMED names the input that
 * nothing feeds. */
oct_status oct_runner_create(const oct_graph *g, const oct_plan_opts *opts, const oct_input_desc *feed, size_t n_feed,
                             oct_runner **r, oct_err *err);
void oct_runner_destroy(oct_runner *r); /* NULL allowed */

/* The plan for arrays of these shapes, made now if it is not there; borrowed, valid until the next call. */
oct_status oct_runner_plan(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err);
/* Runs the arrays. Element types that differ from the model's are converted as oct_array_convert does. Results are read
 * from *plan, until the next call. */
oct_status oct_runner_run(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err);

/* The same up to oct_plan_begin: *plan goes on by oct_plan_advance. The arrays are borrowed until it has ended. */
oct_status oct_runner_begin(oct_runner *r, const oct_array *arrays, oct_plan **plan, oct_err *err);

/* Shown what every plan of this runner computes from its next run on (oct_plan_set_tap); fn NULL: nothing. */
void oct_runner_set_tap(oct_runner *r, oct_tap_fn fn, void *arg);

/* The inputs that samples fill for all of n graphs at once: names and types of g[0], dimensions known where any of them
 * fixes one, unread where nothing in any of them reads one. Strings always count as read. Allocated in arena. */
oct_status oct_inputs_describe(const oct_graph *const *g, size_t n, oct_arena *arena, oct_input_desc **inputs,
                               size_t *n_inputs, oct_err *err);

#endif
