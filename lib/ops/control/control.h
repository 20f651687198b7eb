/* lib/ops/control/control.h -- what operators with nested graphs share: shapes of loop states, results that are
 * accumulated. */
#ifndef OCT_OPS_CONTROL_H
#define OCT_OPS_CONTROL_H

#include "ops/core/infer.h"

/* ---- inference ---- */

/* Sets type and shape of an input of a nested graph. If they are unknown, those that are declared there stay. */
oct_status oct_body_input(oct_graph *body, size_t i, oct_dtype t, const oct_shape *s, oct_err *err);
/* Infers a body whose inputs [first, first + n) are the outputs [from, from + n) of the previous iteration, and in the
 * first iteration the node's inputs [slot, slot + n). The inferred shapes hold for all iterations. */
oct_status oct_body_infer(const oct_infer *c, oct_graph *body, size_t first, size_t from, int slot, size_t n,
                          oct_err *err);
/* An output of a body; NULL if it does not exist. */
const oct_value *oct_body_output(const oct_graph *body, size_t i);
/* Sets type and shape of output `slot` of the node to those of v, with a dimension `len` inserted at `axis` (-1: none).
 */
oct_status oct_out_stacked(const oct_infer *c, int slot, const oct_value *v, int64_t axis, oct_dim len, oct_err *err);

/* ---- running ---- */

/* Ends an iteration: the body's outputs out[0, states) become in[0, states) of the next one; the other outputs, up to
 * out[n], are appended to their sequences. Borrowed data are copied, because the next iteration overwrites them.
 * Afterwards all of out is NULL. */
oct_status oct_carry(oct_datum **in, size_t states, oct_datum **out, size_t n, oct_datum **piled, oct_err *err);
/* Releases the references of a list, and the list. */
void oct_release(oct_datum **list, size_t n);
#endif
