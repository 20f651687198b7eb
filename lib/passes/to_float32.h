/* lib/passes/to_float32.h -- makes a graph that computes in 16-bit floats or in double compute in float32. */
#ifndef OCT_PASSES_TO_FLOAT32_H
#define OCT_PASSES_TO_FLOAT32_H

#include "graph/graph.h"

/* What the graph contained. */
typedef struct oct_widened {
    oct_dtype widest; /* the first of OCT_F64, OCT_BF16 and OCT_F16 that occurred; OCT_UNDEFINED: none did, and nothing
                         was changed */
    size_t constants;
    int64_t elements;
} oct_widened;

/* What becomes of large constants. */
typedef enum oct_widen_how {
    OCT_WIDEN_ALL,
    OCT_WIDEN_BUT_WEIGHTS, /* bfloat16 constants that are second factors of products keep their type; this is only for
                              running the graph, since no operator accepts two types */
    OCT_WIDEN_LATE         /* numbers of large matrices that products multiply by, or of which rows are picked, wait
                              (ops/core/waiting.h) */
} oct_widen_how;

/* Changes all values of g and its subgraphs from float16, bfloat16 or float64 to float32, together with constants and
 * with attributes that give a type. A Cast between these types becomes a Cast of a type to itself. Inputs and outputs
 * of g keep their types: a Cast is added after or before each of them, with a name derived from theirs. Types must have
 * been inferred before; shapes must be inferred again.
 *
 * All numbers of 16-bit floats are numbers of float32, so these constants keep their values. Constants of float64 are
 * rounded, and finite ones stay finite. Results differ from those in the original types: each operation rounds to 24
 * bits. So 16-bit results become more exact, and numbers beyond float16's 65504 are no longer infinite. If the graph
 * contains sequences or optionals of such types, nothing is changed. */
oct_status oct_widen_floats(oct_graph *g, oct_widen_how how, oct_widened *done, oct_err *err);

/* Whether that would change anything. */
bool oct_has_narrow_floats(const oct_graph *g);

#endif
