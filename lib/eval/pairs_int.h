/* lib/eval/pairs_int.h -- the parts of pairing: pairs.c (names, and the list), pair_walk.c (structure), pair_behind.c (nodes), pair_weights.c (weights). */
#ifndef OCT_EVAL_PAIRS_INT_H
#define OCT_EVAL_PAIRS_INT_H

#include "eval/pairs.h"
#include "ops/op.h"

enum { PAIR_REAL, PAIR_OTHER, PAIR_FUSED }; /* the float model; the other; the float model behind the passes, with the same indices */

/* How dimensions lie: dimension i is dimension at[i] of something else. */
typedef struct pair_way {
    int rank; /* 0: as they are */
    int at[OCT_MAX_RANK];
    bool reshaped; /* other dimensions, elements in the same order */
} pair_way;

/* A search in the outermost graphs, whose quantization has been read (forms/forms.h). */
typedef struct pair_search {
    oct_arena *arena;
    oct_graph *g[3];   /* g[PAIR_FUSED] may be NULL */
    int *mate[2];      /* by value: that of the other graph with the same numbers, or -1 */
    pair_way *way;     /* by value of the float graph: how its mate's dimensions lie */
    uint8_t *how;      /* by value of the float graph: oct_pair_how */
    bool *taken[2];    /* by node */
} pair_search;

enum { PAIR_HOPS = 12 }; /* nodes that are looked through one behind the other; and most data inputs of a node */

/* ---- pair_behind.c ---- */

/* Whether output 0 of a node is its input 0, but for rounding: the same elements in the same place. */
bool pair_is_same(const oct_graph *g, int node);
/* Whether a value is of integers that are no quantized values: they stand for no reals. */
bool pair_is_integer(const oct_value *v);
/* The inputs of a node that are no constants: how many there are, and the first of them. */
int pair_data_inputs(const oct_graph *g, const oct_node *n, int in[PAIR_HOPS]);
/* Whether nodes of the two graphs are of one operator, as far as quantizers leave it. */
bool pair_same_operator(const pair_search *s, int real, int other);
/* Moves behind what one of the graphs alone has behind a value: clamps and affine functions that the other has before its one. folded: some of those
 * of the float graph are in the weights of the other, so that its values are equal behind all affine functions alone. */
void pair_advance(const pair_search *s, bool folded, int *real, int *other);
/* The node of graph k that computes a value: not what rounds, casts, clamps, shifts or scales it; -1: none, or integers that
 * are scaled there. */
int pair_layer_of(const pair_search *s, int k, int value);
/* Whether the same operators make two values, as far as a name can be believed. */
bool pair_alike(const pair_search *s, int real, int other);

/* ---- pair_walk.c ---- */

/* Pairs two values, unless one has a mate. */
void pair_join(pair_search *s, int real, int other, oct_pair_how how, const pair_way *way);
/* Pairs what follows from what is paired. */
oct_status pair_walk(pair_search *s, oct_err *err);

/* ---- pair_weights.c ---- */

/* SQNR of a layer's weights against those of a float layer, in dB; -INFINITY where they are of other shapes, NaN where one has none. *folded: what
 * follows the float layer is in them. */
oct_status pair_compare_weights(const pair_search *s, int real, int other, double *db, bool *folded, oct_err *err);
/* Pairs the results of layers that have no mates yet. *any: there are some. */
oct_status pair_by_weights(pair_search *s, bool *any, oct_err *err);
/* What became of the weights of the layer that makes a pair. */
oct_status pair_fill_weights(const pair_search *s, oct_pair *p, int real, int other, oct_err *err);

#endif
