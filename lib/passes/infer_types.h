/* lib/passes/infer_types.h -- element types from signatures, as a part of shape inference. */
#ifndef OCT_PASSES_INFER_TYPES_H
#define OCT_PASSES_INFER_TYPES_H

#include "graph/graph.h"

/* Sets element types that are not known yet and follow from those of operands that must be of one type, in either direction, and from what
 * nested graphs found of values that they capture. Returns whether it set one. */
bool oct_infer_types(oct_graph *g);

#endif
