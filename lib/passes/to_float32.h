/* lib/passes/to_float32.h -- a graph that computes in 16-bit floats or in double computes in float32. */
#ifndef OCT_PASSES_TO_FLOAT32_H
#define OCT_PASSES_TO_FLOAT32_H

#include "graph/graph.h"

/* What there was. */
typedef struct oct_widened {
    oct_dtype widest; /* OCT_F64, OCT_BF16 or OCT_F16, the first of them that there was; OCT_UNDEFINED: none, and nothing changed */
    size_t constants;
    int64_t elements;
} oct_widened;

/* Every value of g and of its nested graphs that is of float16, bfloat16 or float64 becomes one of float32, with the constants and the attributes that
 * name a type; Casts that only change these types are left over as Casts of a type to itself. Inputs and outputs of g keep their types: a Cast stands
 * behind and in front of them, named after them. Types must have been inferred; shapes are to be inferred again.
 *
 * The numbers of 16-bit floats are float32's, so constants stay as they are; those of float64 are rounded, what is finite stays so. Results are
 * not those of the types: each operation is rounded to 24 bits, so 16-bit ones become more exact, and what goes beyond float16's 65504 is no longer
 * infinite. keeps_weights: constant second factors of products, in bfloat16, stay so: for runs alone, since no operator takes two types. Where the graph holds sequences or optionals of such types, nothing changes. */
oct_status oct_widen_floats(oct_graph *g, bool keeps_weights, oct_widened *done, oct_err *err);

/* Whether that would change anything. */
bool oct_has_narrow_floats(const oct_graph *g);

#endif
