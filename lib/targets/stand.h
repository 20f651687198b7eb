/* lib/targets/stand.h -- what a target runs on integers of a file as it stands, whoever wrote it: the one answer that lint, reports and checks have.
 *
 *   OCT_TRY(oct_target_stands(t, g, arena, &stand, err));
 *   for (size_t i = 0; i < g->n_order; i++)
 *       if (stand[g->order[i]].kind == OCT_STANDS_FLOAT)
 *           ...                                 // .why: "nothing quantizes its result"
 */
#ifndef OCT_TARGETS_STAND_H
#define OCT_TARGETS_STAND_H

#include "ops/core/quantized.h"
#include "targets/target.h"

typedef enum oct_stand_kind {
    OCT_STANDS_FLOAT = 0, /* computes on real numbers */
    OCT_STANDS_INTEGER,   /* computes on integers, or moves them */
    OCT_STANDS_BLOCKS,    /* a product of real numbers and weights of few bits */
    OCT_STANDS_APART      /* there is no such question: it spells quantized values, or has no real numbers at all */
} oct_stand_kind;

typedef struct oct_stand {
    oct_stand_kind kind;
    const char *why; /* a clause, never NULL, that lasts as long as the target */
    int with;        /* the node with which it becomes one in the target; -1: none */
} oct_stand;

/* Of each node of g, by its index: *stand is in arena. Graphs that nodes hold are asked about apart. g: as a file spells it, with shapes inferred and
 * constants folded. */
oct_status oct_target_stands(const oct_target *t, const oct_graph *g, oct_arena *arena, oct_stand **stand, oct_err *err);

/* Whether g, or a graph that a node of it holds, has quantized values in any spelling. */
bool oct_has_quantized(const oct_graph *g);

/* How a node of a graph that has been read (forms/forms.h) computes where the target runs it; *why (may be NULL) says why on reals. */
oct_status oct_target_computes(const oct_target *t, const oct_graph *read, int node, oct_compute *how, const char **why, oct_err *err);

#endif
