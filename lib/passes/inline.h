/* lib/passes/inline.h -- replaces a node by the nodes of a graph: calls of functions, and branches of If. */
#ifndef OCT_PASSES_INLINE_H
#define OCT_PASSES_INLINE_H

#include "passes/pass.h"

/* Replaces a node by body's nodes; its outputs become those of body. map and fill are as for oct_graph_splice: map[v]
 * is set for values that body takes from outside, and is -2 for the rest. prefix: for the names of body's nodes and
 * values. */
oct_status oct_inline(oct_graph *g, int node, const oct_graph *body, const char *prefix, int *map, oct_fill_attr fill,
                      void *arg, oct_err *err);

#endif
