/* lib/graph/graph_int.h -- captures of nested graphs, as editing needs them (inside lib/graph only). */
#ifndef OCT_GRAPH_GRAPH_INT_H
#define OCT_GRAPH_GRAPH_INT_H

#include "graph/graph.h"

/* Records or removes one use of a value. */
oct_status oct_graph_add_use(oct_graph *g, int value, int node, int slot, oct_err *err);
void oct_graph_drop_use(oct_graph *g, int value, int node, int slot);

/* Removes the captures of node for which no nested graph has a value any more. */
void oct_graph_drop_captures(oct_graph *g, int node);

/* The set of names of live values in the outermost graph and all graphs nested in it. taken makes the set on the first
 * call; add and drop keep it current, and do nothing before that. name must live as long as the graph. add: false when
 * out of memory. */
oct_status oct_names_taken(oct_graph *g, const char *name, bool *taken, oct_err *err);
bool oct_names_add(oct_graph *g, const char *name);
void oct_names_drop(oct_graph *g, const char *name);

/* Copies a node's nested graphs into g, which already owns the node's other lists. */
oct_status oct_graph_clone_nested(oct_graph *g, oct_node *n, oct_err *err);

#endif
