/* lib/targets/claim.h -- which nodes of a graph that another runtime holds are worth computing here.
 *
 * The other runtime asks once, for its whole graph, and hands each part over as one node. So a part is convex: no path
 * leaves it and returns into it. No two parts wait for each other either: edges only lead from parts of lower numbers
 * to parts of higher ones. */
#ifndef OCT_TARGETS_CLAIM_H
#define OCT_TARGETS_CLAIM_H

#include "graph/graph.h"

/* What is claimed. */
typedef enum oct_claim_what {
    OCT_CLAIM_INTEGERS, /* parts whose work on integers pays for them */
    OCT_CLAIM_FLOAT,    /* parts whose work pays, in float as well */
    OCT_CLAIM_ALL       /* everything that can be computed, whether it pays or not */
} oct_claim_what;

typedef struct oct_claim {
    int part;           /* from 0; -1: the other runtime keeps the node */
    const char *reason; /* why it keeps it, as one clause; "" otherwise */
} oct_claim;

/* Assigns the nodes of g to parts. *claim, in arena, is indexed by node; *n_parts is how many parts there are. g is as
 * in a file, with shapes inferred, and an outermost graph; nodes with nested graphs are claimed with these or not at
 * all.
 *
 * Every part has enough work on integers to pay for what it costs to enter and to leave it, which is counted with one
 * sample, and 128 for any other dimension that is open. */
oct_status oct_claim_nodes(const oct_graph *g, oct_claim_what what, oct_arena *arena, oct_claim **claim, int *n_parts,
                           oct_err *err);

/* Nanoseconds that a run of g gains on one thread if the other runtime is ONNX Runtime and hands over the parts of
 * OCT_CLAIM_INTEGERS: what these were chosen by, on the CPU of the table with this name. 0: there are no parts. */
#define OCT_CLAIM_COSTS "onnxruntime-avx512vnni"
oct_status oct_claim_gain(const oct_graph *g, double *gain, oct_err *err);

#endif
