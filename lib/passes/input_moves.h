/* lib/passes/input_moves.h -- the values behind an input that hold its elements: in another order after a Transpose,
 * with a border after a Pad. */
#ifndef OCT_PASSES_INPUT_MOVES_H
#define OCT_PASSES_INPUT_MOVES_H

#include "graph/graph.h"

typedef struct oct_input_position {
    int value;
    int axis; /* the dimension of its channels */
} oct_input_position;

/* Lists value v, whose channels are along `axis`, and all values that nodes make of it by moving its elements; each
 * follows the one that it is made of. The list is in the arena. Shapes must have been inferred. OCT_ENOMEM. */
oct_status oct_input_positions(const oct_graph *g, int v, int axis, oct_arena *a, oct_input_position **places,
                               size_t *n, oct_err *err);

typedef struct oct_border {
    bool constant; /* it has one value; otherwise it repeats elements of the picture */
    double value;
} oct_border;

/* Whether a node is a Pad that leaves the channels of its input, along `axis`, as they are, and what its border is. */
bool oct_input_border(const oct_graph *g, const oct_node *n, int axis, oct_border *b);

#endif
