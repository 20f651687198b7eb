/* lib/graph/graph_text.h -- a graph as text, for reading and for line-by-line comparison. */
#ifndef OCT_GRAPH_GRAPH_TEXT_H
#define OCT_GRAPH_GRAPH_TEXT_H

#include "graph/graph.h"

/* Appends a line for each input, node in order, and output. No line has a number of a node or value, so that lines stay
 * the same where others are added. A value is written with its type and shape where it is produced, constants where
 * they are read; quantized values with the type of their integers and their scales. Nested graphs follow their node,
 * indented. Names are cleaned (base/utf8.h). */
void oct_graph_put_text(const oct_graph *g, oct_buf *b);
/* Appends the graph in the language of Graphviz: nodes with their operators, edges with names, types and shapes. */
void oct_graph_put_dot(const oct_graph *g, oct_buf *b);

#endif
