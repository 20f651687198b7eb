/* lib/passes/match.h -- finds nodes that together compute one operator, and replaces them by it.
 *
 * A match collects the nodes that the operator replaces. It holds if their intermediate results are visible nowhere
 * else: to no other node, no graph output and no subgraph. */
#ifndef OCT_PASSES_MATCH_H
#define OCT_PASSES_MATCH_H

#include "passes/pass.h"

enum { OCT_MATCH_NODES = 24, OCT_MATCH_INPUTS = 8 };

/* The nodes of a match. Its root is the node of the last operator. */
typedef struct oct_match {
    int node[OCT_MATCH_NODES];
    int n;
} oct_match;

/* The node that computes a value. -1: there is none, or the value is quantized (oct_value.quant), so that readers see
 * it rounded. */
int oct_maker(const oct_graph *g, int value);
/* The same, if the node has operator `op`, exactly n_in inputs, none absent, and one output; else -1. */
int oct_made_by(const oct_graph *g, int value, const char *op, int n_in);
/* The other input of a node with two inputs, beside `value`; -1: there is none. */
int oct_other_input(const oct_node *n, int value);
/* The only reader of a value. It reads the value at one slot and not quantized, and the value is not a graph output;
 * else -1. */
int oct_only_reader(const oct_graph *g, int value);
/* The first node with operator `op` and n_out outputs, none absent, that reads a value; -1: there is none. */
int oct_reader_of(const oct_graph *g, int value, const char *op, int n_out);
/* Reads a constant with one element, float32 or integer, that is not quantized. False: the value is something else. */
bool oct_number_of(const oct_graph *g, int value, double *v);
/* Whether two values have the same known shape. */
bool oct_same_dims(const oct_graph *g, int a, int b);

/* Adds a node, if it is not there. False: there is no room. */
bool oct_match_add(oct_match *m, int node);
/* Whether all outputs of the match's nodes, except output 0 of root, are read only by these nodes, and not
 * quantized. */
bool oct_match_holds(const oct_graph *g, const oct_match *m, int root);

/* The operator that replaces a match. */
typedef struct oct_fused {
    const char *op, *domain;
    int64_t opset;                  /* the version of the operator, independent of the graph's opset */
    int in[OCT_MATCH_INPUTS], n_in; /* -1: absent */
} oct_fused;
/* Puts the operator in the place of root, with the name of node `named` and root's output 0, and removes the nodes of
 * the match. *node: the new node. */
oct_status oct_match_replace(oct_graph *g, const oct_match *m, int root, int named, const oct_fused *f, int *node,
                             oct_err *err);
/* Makes a new float32 value with these dimensions, named after another one. */
oct_status oct_match_value(oct_graph *g, int like, int rank, const int64_t *dims, int *value, oct_err *err);
/* Makes value `to`, of known shape, a Reshape of `from`, by a new node before node `before` (-1: at the end). */
oct_status oct_match_reshape(oct_graph *g, int from, int to, int before, oct_err *err);

#endif
