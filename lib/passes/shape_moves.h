/* lib/passes/shape_moves.h -- nodes behind a layer that change the shape of its output, and leave its channels where
 * they are. */
#ifndef OCT_PASSES_SHAPE_MOVES_H
#define OCT_PASSES_SHAPE_MOVES_H

#include "passes/fuse.h"

/* In how many of the last dimensions of a value the channels of a product are, as heads and what each has; 0: in
 * none. */
int oct_channel_dims(const oct_graph *g, const oct_layer *l, int value);

/* The only reader of a layer's output behind such nodes, which may be none, as oct_sole_reader; -1: there is none.
 * *last: the node that it reads, a move or the layer. */
int oct_reader_past_moves(const oct_graph *g, const oct_layer *l, int *last, int *slot);

#endif
