/* lib/passes/match.h -- finding nodes that together compute one operator, and replacing them by it.
 *
 * A match collects the nodes that the operator replaces. It holds when nothing else sees what they make in between: no other
 * node, no graph output, no nested graph. */
#ifndef OCT_PASSES_MATCH_H
#define OCT_PASSES_MATCH_H

#include "passes/pass.h"

enum { OCT_MATCH_NODES = 24, OCT_MATCH_INPUTS = 8 };

/* Nodes of a match; the last operator's node is its root. */
typedef struct oct_match {
    int node[OCT_MATCH_NODES];
    int n;
} oct_match;

/* The node that produces a value; -1 where there is none, or where the value is quantized (oct_value.quant), so that readers see it rounded. */
int oct_maker(const oct_graph *g, int value);
/* The same, if it is a node of operator `op` with exactly n_in inputs, none absent, and one output; else -1. */
int oct_made_by(const oct_graph *g, int value, const char *op, int n_in);
/* Input `slot` of a node, -1 when absent; the input of a node of two that is not `value`, -1 when there is none. */
int oct_input_at(const oct_node *n, int slot);
int oct_other_input(const oct_node *n, int value);
/* The only reader of a value, which reads it at one slot and not quantized, when the value is no graph output; else -1. */
int oct_only_reader(const oct_graph *g, int value);
/* The first node of operator `op` with n_out outputs, none absent, that reads a value; -1 where there is none. */
int oct_reader_of(const oct_graph *g, int value, const char *op, int n_out);
/* The number of a constant with one element, float32 or integer and not quantized; false if it is none. */
bool oct_number_of(const oct_graph *g, int value, double *v);
/* Whether values have the same known shape. */
bool oct_same_dims(const oct_graph *g, int a, int b);

/* Adds a node, once; false when there is no room. */
bool oct_match_add(oct_match *m, int node);
/* Whether all outputs of the match's nodes are read by these nodes only and not quantized, except output 0 of root. */
bool oct_match_holds(const oct_graph *g, const oct_match *m, int root);

/* The operator that replaces a match. */
typedef struct oct_fused {
    const char *op, *domain;
    int64_t opset; /* version of the operator, whatever the graph's is */
    int in[OCT_MATCH_INPUTS], n_in; /* -1: absent */
} oct_fused;
/* Puts the operator where root is, under the name of node `named`, with root's output 0; removes the nodes of the match. *node: the new one. */
oct_status oct_match_replace(oct_graph *g, const oct_match *m, int root, int named, const oct_fused *f, int *node, oct_err *err);
/* A new float32 value of these dimensions, named like another. */
oct_status oct_match_value(oct_graph *g, int like, int rank, const int64_t *dims, int *value, oct_err *err);
/* Makes value `to`, of known shape, a Reshape of `from`, by a node before node `before` (-1: at the end). */
oct_status oct_match_reshape(oct_graph *g, int from, int to, int before, oct_err *err);

#endif
