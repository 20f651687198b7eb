/* lib/runtime/model_inputs.h -- arrays of samples as a model's inputs: which feeds which, in the element type that the
 * model has. */
#ifndef OCT_RUNTIME_MODEL_INPUTS_H
#define OCT_RUNTIME_MODEL_INPUTS_H

#include "base/array.h"
#include "graph/graph.h"

typedef struct oct_model_inputs {
    const oct_graph *g; /* borrowed */
    size_t n;           /* inputs of g */
    size_t *from;       /* input i is array from[i] */
    const void **data; /* of input i, of the arrays that were converted last, aligned to elements; borrowed from them or
                          from `converted` */
    oct_array *converted;
} oct_model_inputs;

/* feed[i] says what the i-th array is (n_feed of them, borrowed for the call). They are matched to g's inputs by name,
 * and when no name fits by position; NULL: the arrays are g's inputs. Everything but what the arrays are converted to
 * is in arena. OCT_EMALFORMED names the input that nothing feeds. */
oct_status oct_model_inputs_match(oct_model_inputs *x, const oct_graph *g, const oct_input_desc *feed, size_t n_feed,
                                  oct_arena *arena, oct_err *err);
/* Fills x->data. Element types that differ from the model's are converted as oct_array_convert does. Arrays that are
 * not aligned to their elements are copied: operators read elements in place. */
oct_status oct_model_inputs_convert(oct_model_inputs *x, const oct_array *arrays, oct_err *err);
/* Releases what arrays were converted to. */
void oct_model_inputs_free(oct_model_inputs *x);

#endif
