/* lib/ops/control/control.h -- what the operators with nested graphs share: shapes that go round a loop, results that
 * pile up. */
#ifndef OCT_OPS_CONTROL_H
#define OCT_OPS_CONTROL_H

#include "ops/core/infer.h"

/* ---- inference ---- */

/* Sets an input of a nested graph. Unknown types and ranks leave what is declared there. */
oct_status oct_body_input(oct_graph *body, size_t i, oct_dtype t, const oct_shape *s, oct_err *err);
/* Infers a body whose inputs [first, first + n) come from its outputs [from, from + n) of the iteration before, and at
 * first from the node's inputs [slot, slot + n). Their shapes are what holds for all iterations. */
oct_status oct_body_infer(const oct_infer *c, oct_graph *body, size_t first, size_t from, int slot, size_t n,
                          oct_err *err);
/* What is known of a body's output; NULL where it has none. */
const oct_value *oct_body_output(const oct_graph *body, size_t i);
/* Type and shape of output `slot` of the node: those of v, with a dimension `len` put in at `axis` (-1: none). */
oct_status oct_out_stacked(const oct_infer *c, int slot, const oct_value *v, int64_t axis, oct_dim len, oct_err *err);

/* ---- running ---- */

/* Ends an iteration: the body's outputs out[0, states) become in[0, states) for the next, and the results behind them,
 * n in all, go onto their piles. What is borrowed is copied, for the next iteration writes over it. out is all NULL
 * then. */
oct_status oct_carry(oct_datum **in, size_t states, oct_datum **out, size_t n, oct_datum **piled, oct_err *err);
/* Drops the references of a list and the list itself. */
void oct_release(oct_datum **list, size_t n);
#endif
