/* lib/runtime/model_inputs.h -- passes arrays of samples to a model's inputs, converted to the element types of the
 * model. */
#ifndef OCT_RUNTIME_MODEL_INPUTS_H
#define OCT_RUNTIME_MODEL_INPUTS_H

#include "base/array.h"
#include "graph/graph.h"

typedef struct oct_model_inputs {
    const oct_graph *g; /* borrowed */
    size_t n;           /* inputs of g */
    size_t *from;       /* input i is array from[i] */
    const void **data;  /* data of input i, aligned to elements; borrowed from the arrays that were given last, or from
                           `converted` */
    oct_array *converted;
} oct_model_inputs;

/* feed[i] describes the i-th array (n_feed of them, borrowed for the call). They are matched with g's inputs by name,
 * or by position if no name fits; NULL: the arrays are g's inputs. All memory except converted arrays is in arena.
 * OCT_EMALFORMED names an input without an array. */
oct_status oct_model_inputs_match(oct_model_inputs *x, const oct_graph *g, const oct_input_desc *feed, size_t n_feed,
                                  oct_arena *arena, oct_err *err);
/* Fills x->data. Element types that differ from the model's are converted by oct_array_convert. Arrays that are not
 * aligned to their elements are copied, because operators read elements in place. */
oct_status oct_model_inputs_convert(oct_model_inputs *x, const oct_array *arrays, oct_err *err);
/* Releases the converted arrays. */
void oct_model_inputs_free(oct_model_inputs *x);

#endif
