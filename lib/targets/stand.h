/* lib/targets/stand.h -- which nodes of a file a target runs on integers, whoever wrote the file. Lint, reports and
 * checks all take their answer from here.
 *
 *   OCT_TRY(oct_target_stands(t, g, arena, &stand, err));
 *   for (size_t i = 0; i < g->n_order; i++)
 *       if (stand[g->order[i]].kind == OCT_STANDS_FLOAT)
 *           ...                                 // .why: "nothing quantizes the
 * result" */
#ifndef OCT_TARGETS_STAND_H
#define OCT_TARGETS_STAND_H

#include "ops/core/quantized.h"
#include "targets/target.h"

typedef enum oct_stand_kind {
    OCT_STANDS_FLOAT = 0, /* it computes in float */
    OCT_STANDS_INTEGER,   /* it computes on integers, or moves them */
    OCT_STANDS_BLOCKS,    /* a product of float activations and weights of few bits */
    OCT_STANDS_LEFT, /* the target is an execution provider of another runtime and leaves the node to that runtime */
    OCT_STANDS_APART /* the question does not apply: the node expresses quantization, or has no float values at all */
} oct_stand_kind;

typedef struct oct_stand {
    oct_stand_kind kind;
    const char *why; /* the reason, as one clause, never NULL; it exists as long as the target and the arena */
    int with;        /* the node into which the target fuses this one; -1: none */
} oct_stand;

/* Judges each node of g, by index: *stand is in arena. Subgraphs must be judged separately; what the target leaves with
 * the node that holds them is not seen there. g: as in a file, with
 * shapes inferred and constants folded. */
oct_status oct_target_stands(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand **stand,
                             oct_err *err);

/* Whether a node of g only expresses quantization: it was removed when the graph was read, or became a border. read:
 * the graph that was read (forms/forms.h), whose nodes have the same indices. */
bool oct_is_spelling(const oct_graph *g, const oct_graph *read, int node);

/* Whether g or a subgraph has quantized values in any form. */
bool oct_has_quantized(const oct_graph *g);

/* How a node of a graph that was read (forms/forms.h) computes if the target runs it. *why (may be NULL): the reason
 * for float. */
oct_status oct_target_computes(const oct_target *t, const oct_graph *read, int node, oct_compute *how, const char **why,
                               oct_err *err);

#endif
