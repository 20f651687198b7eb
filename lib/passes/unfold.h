/* lib/passes/unfold.h -- which constants that folding made are not written, because what they were computed from is smaller. */
#ifndef OCT_PASSES_UNFOLD_H
#define OCT_PASSES_UNFOLD_H

#include "graph/graph.h"

enum { OCT_UNFOLD_LEAST = 256 }; /* bytes of a constant */

/* What becomes of a constant in the file that will be written. */
typedef struct oct_stored {
    size_t bytes; /* in all forms together */
    bool real;    /* it stands there as it is */
    bool needed;  /* it has a form that only a constant has, as quantized weights do */
} oct_stored;

typedef struct oct_unfold_opts {
    oct_stored (*stored)(const void *arg, const oct_graph *g, int value); /* of a constant of g or of a graph nested in it */
    size_t (*source)(const void *arg, const oct_tensor *t);               /* bytes of one that is written to compute others from; NULL: its own */
    const void *arg;
} oct_unfold_opts;

/* Makes constants of g and of its nested graphs values that nodes compute, where the file gets smaller by that: what a source takes that stands there
 * anyway does not count, and what several are computed from counts once. Values of fewer than 256 bytes, of graph outputs and those that nested graphs
 * capture stay. *n: how many; *saved: bytes, less some for nodes. Shapes are inferred again. */
oct_status oct_unfold(oct_graph *g, const oct_unfold_opts *o, size_t *n, size_t *saved, oct_err *err);

/* Makes constants that hold the numbers of another one, moved (Transpose, Reshape), values that nodes compute, with the same exceptions: what changes types of
 * constants then changes one, and folding afterwards knows again where they come from. */
oct_status oct_unfold_moves(oct_graph *g, oct_err *err);

/* To be called once oct_graph_unfold is done in g and its nested graphs: sorts them, settles captures, infers shapes. */
oct_status oct_settle_unfolded(oct_graph *g, oct_err *err);

#endif
