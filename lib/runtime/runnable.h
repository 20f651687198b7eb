/* lib/runtime/runnable.h -- the part of a graph that can be computed here, for models with unknown operators. */
#ifndef OCT_RUNTIME_RUNNABLE_H
#define OCT_RUNTIME_RUNNABLE_H

#include "graph/graph.h"

/* *part is NULL if the operators of all nodes of g can be run. Otherwise it is a copy of g without nodes that cannot be
 * run and those that depend on them; of the outputs, those that can be computed remain. g must outlive it; release it
 * with oct_graph_destroy. */
oct_status oct_runnable_part(const oct_graph *g, oct_graph **part, oct_err *err);

/* Whether all nodes can be run. */
bool oct_runnable_whole(const oct_graph *g);

/* Whether a part, or a graph nested in it, still has a value of that name. */
bool oct_runnable_has(const oct_graph *part, const char *value);

#endif
