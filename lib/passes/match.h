/* lib/passes/match.h -- finding an operator that a model spells with several nodes, and putting it in their place.
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

/* The node whose result a value is, as it comes: -1 where there is none, and where it is rounded behind the node (oct_value.quant). */
int oct_maker(const oct_graph *g, int value);
/* The node of this operator that makes a value, as it comes, with n_in inputs, all there, and one output; -1 otherwise. */
int oct_made_by(const oct_graph *g, int value, const char *op, int n_in);
/* Input `slot` of a node, -1 when absent; the input of a node of two that is not `value`, -1 when there is none. */
int oct_input_at(const oct_node *n, int slot);
int oct_other_input(const oct_node *n, int value);
/* The node that alone reads a value, at one slot and as it comes, when nothing else shows the value; -1 otherwise. */
int oct_only_reader(const oct_graph *g, int value);
/* A constant of one element, not rounded: float32 or an integer. */
bool oct_number_of(const oct_graph *g, int value, double *v);
/* Whether values have the same known shape. */
bool oct_same_dims(const oct_graph *g, int a, int b);

/* Takes a node in, once; false when there is no room. */
bool oct_match_add(oct_match *m, int node);
/* Whether only nodes of the match use what they make, as it comes, but for output 0 of root. */
bool oct_match_holds(const oct_graph *g, const oct_match *m, int root);

/* The operator that takes the place of a match. */
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
