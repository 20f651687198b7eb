/* lib/runtime/runnable.h -- the part of a graph that can be computed here, for models with operators that are
 * unknown. */
#ifndef OCT_RUNTIME_RUNNABLE_H
#define OCT_RUNTIME_RUNNABLE_H

#include "graph/graph.h"

/* *part becomes NULL when every node of g has an operator that runs. Otherwise it is a copy without the nodes that have
 * none and those that depend on them; its outputs are what is left of them. g must outlive it; release with
 * oct_graph_destroy. */
oct_status oct_runnable_part(const oct_graph *g, oct_graph **part, oct_err *err);

/* Whether all nodes can be run. */
bool oct_runnable_whole(const oct_graph *g);

/* Whether a part, or a graph that one of its nodes holds, still computes (or holds) a value of that name. */
bool oct_runnable_has(const oct_graph *part, const char *value);

#endif
