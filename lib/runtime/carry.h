/* lib/runtime/carry.h -- states that pass from one run of a model to the next: an output becomes an input.
 *
 *   const oct_array *x = oct_carry_arrays(c, arrays, follows);
 *   OCT_TRY(oct_runner_run(r, x, &plan, err));
 *   OCT_TRY(oct_carry_keep(c, oct_carry_plan, plan, err)); */
#ifndef OCT_RUNTIME_CARRY_H
#define OCT_RUNTIME_CARRY_H

#include "base/array.h"
#include "runtime/plan.h"

typedef struct oct_state {
    size_t input;  /* index among the arrays that are given to the runner */
    size_t output; /* of the model */
} oct_state;

typedef struct oct_carry oct_carry;

/* For n states among n_arrays; the list of states is copied. If n is 0, arrays are passed unchanged. */
oct_status oct_carry_create(const oct_state *states, size_t n, size_t n_arrays, oct_carry **c, oct_err *err);
void oct_carry_destroy(oct_carry *c); /* NULL allowed */

/* The arrays for the next run; if follows is true, the states are those that the last run returned. Valid until the run
 * after the next. c NULL: returns arrays. */
const oct_array *oct_carry_arrays(oct_carry *c, const oct_array *arrays, bool follows);

/* Output i of what has run. */
typedef const oct_operand *(*oct_carry_output_fn)(const void *from, size_t i);
const oct_operand *oct_carry_plan(const void *from, size_t i); /* from: an oct_plan */

/* Copies the states that a run has returned. One that is returned without elements stays what it was: merged decoders
 * return none of the encoder's keys and values behind the prompt. c NULL: does nothing. OCT_EUNSUPPORTED for a state
 * that is not a tensor of numbers; OCT_ENOMEM. */
oct_status oct_carry_keep(oct_carry *c, oct_carry_output_fn output, const void *from, oct_err *err);

#endif
