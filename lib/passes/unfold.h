/* lib/passes/unfold.h -- chooses folded constants that are not written, because the constants they were computed from
 * are smaller. */
#ifndef OCT_PASSES_UNFOLD_H
#define OCT_PASSES_UNFOLD_H

#include "graph/graph.h"

enum { OCT_UNFOLD_LEAST = 256 }; /* bytes: smaller constants are always written */

/* The form of a constant in the file that will be written. */
typedef struct oct_stored {
    size_t bytes; /* the bytes of all its forms together */
    bool real;    /* it is written unchanged */
    bool needed;  /* a form of it must be a constant, such as quantized weights */
} oct_stored;

typedef struct oct_unfold_opts {
    oct_stored (*stored)(const void *arg, const oct_graph *g, int value); /* for a constant of g or of a subgraph */
    /* the bytes of a constant that is written because others are computed from it; NULL: its own size */
    size_t (*source)(const void *arg, const oct_tensor *t);
    const void *arg;
} oct_unfold_opts;

/* Makes constants of g and its subgraphs values that nodes compute, where that makes the file smaller. A source that is
 * in the file anyway costs nothing, and a source of several constants counts once. Constants of fewer than 256 bytes,
 * graph outputs, and values captured by subgraphs are not changed. *n: how many were changed; *saved: bytes, minus an
 * estimate for the nodes. Shapes are inferred again. */
oct_status oct_unfold(oct_graph *g, const oct_unfold_opts *o, size_t *n, size_t *saved, oct_err *err);

/* Makes constants that hold the numbers of another one, moved by Transpose or Reshape, values that nodes compute, with
 * the same exceptions. A pass that changes the types of constants then changes only one, and later folding knows again
 * where the others come from. */
oct_status oct_unfold_moves(oct_graph *g, oct_err *err);

/* Call it after oct_graph_unfold in g and its subgraphs: sorts them, resolves captured values and infers shapes. */
oct_status oct_settle_unfolded(oct_graph *g, oct_err *err);

#endif
