/* lib/eval/run/output_form.h -- what the elements of outputs are, from the operators that make them: real numbers,
 * answers, or rows in an order that values chose.
 *
 * A small error moves a real number a little. It leaves a truth value, a class or the place of a maximum as it is, or
 * changes it as a whole, and it exchanges rows that were sorted, or adds and drops some where a threshold chose them.
 * Such outputs have no signal-to-noise ratio: a ratio would be of places, not of values. */
#ifndef OCT_EVAL_OUTPUT_FORM_H
#define OCT_EVAL_OUTPUT_FORM_H

#include "graph/graph.h"

typedef enum oct_output_form {
    OCT_HOLDS_NUMBERS, /* real numbers, each in its place */
    OCT_HOLDS_SORTED,  /* the same in the order of their size, so that places mean nothing (TopK's values) */
    OCT_HOLDS_VARYING, /* real numbers, as many as values say (Tile, Range, Loop by a computed number): no list of
                          classes */
    OCT_HOLDS_CODES,   /* answers, each in its place: equal or not (Greater, ArgMax, and what only chooses constants by
                          them) */
    OCT_HOLDS_ROWS     /* rows whose number or order values chose (TopK, NonZero, NonMaxSuppression, Compress) */
} oct_output_form;

bool oct_output_is_numbers(oct_output_form f); /* in places that correspond, so that differences are errors */
/* "numbers", "sorted numbers", "varying numbers", "codes", "rows" */
const char *oct_output_form_name(oct_output_form f);

/* form[g->n_output]. The graph must be sorted, and its types and shapes inferred. */
oct_status oct_output_forms(const oct_graph *g, oct_output_form *form, oct_err *err);

/* Finds the real numbers behind the outputs: an output of real numbers itself, and for others the numbers that the
 * decisions are about, and those that are repeated or cut to a length together with the length, where only operators
 * without weights stand between. If weights stand behind a choice (the decoder of a detector that sorts its queries),
 * the output itself is named. value[g->n_value]: the values, each once; rows[g->n_value]: whether the rows of value[i]
 * are in an order that values chose; *n: how many: none if the decisions are about the inputs of the model. */
oct_status oct_output_reals(const oct_graph *g, int *value, bool *rows, size_t *n, oct_err *err);

#endif
