/* lib/passes/infer_types.h -- element types from signatures, as a part of shape inference. */
#ifndef OCT_PASSES_INFER_TYPES_H
#define OCT_PASSES_INFER_TYPES_H

#include "graph/graph.h"

/* Sets element types that were unknown and follow from those of operands that must have the same type, in either
 * direction, or from what subgraphs found about values that they capture. Returns whether a type was set. */
bool oct_infer_types(oct_graph *g);

#endif
