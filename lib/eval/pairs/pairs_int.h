/* lib/eval/pairs/pairs_int.h -- internals of finding pairs: pairs.c (names, and the list), pair_walk.c (structure),
 * pair_behind.c (nodes), pair_weights.c (weights). */
#ifndef OCT_EVAL_PAIRS_INT_H
#define OCT_EVAL_PAIRS_INT_H

#include "eval/pairs/pairs.h"
#include "ops/op.h"

enum {
    PAIR_REAL,
    PAIR_OTHER,
    PAIR_FUSED
}; /* the float model; the other model; the float model after the passes, with the same indices */

/* The order of dimensions: dimension i is dimension at[i] of the counterpart. */
typedef struct pair_way {
    int rank; /* 0: the same order */
    int at[OCT_MAX_RANK];
    bool reshaped; /* the dimensions differ, but the elements have the same order */
} pair_way;

/* A search in the outermost graphs, after their quantization was read (forms/forms.h). */
typedef struct pair_search {
    oct_arena *arena;
    oct_graph *g[3]; /* g[PAIR_FUSED] may be NULL */
    int *mate[2];    /* by value: the value of the other graph with the same numbers, or -1 */
    pair_way *way;   /* by value of the float graph: the order of its counterpart's dimensions */
    uint8_t *how;    /* by value of the float graph: oct_pair_how */
    bool *taken[2];  /* by node */
} pair_search;

enum { PAIR_HOPS = 12 }; /* the most nodes that are passed over in sequence; also the most data inputs of a node */

/* ---- pair_behind.c ---- */

/* Whether output 0 of a node equals its input 0 except for rounding: the same elements in the same places. */
bool pair_is_same(const oct_graph *g, int node);
/* Whether the integers of a value are not quantized values, and so represent no real numbers. */
bool pair_is_integer(const oct_value *v);
/* The inputs of a node that are not constants. Returns how many there are. */
int pair_data_inputs(const oct_graph *g, const oct_node *n, int in[PAIR_HOPS]);
/* Whether nodes of the two graphs have the same operator, if changes by quantizers are ignored. */
bool pair_same_operator(const pair_search *s, int real, int other);
/* Moves both values forward over nodes that only one of the graphs has: clamps and affine functions that the other
 * graph applies earlier. folded: some of the float graph's are folded into the weights of the other, so that values are
 * equal only after all affine functions. */
void pair_advance(const pair_search *s, bool folded, int *real, int *other);
/* The value after all affine functions that follow this one. */
int pair_behind_affine(const oct_graph *g, int value);
/* The node of graph k that computes a value, where nodes that round, cast, clamp, shift or scale it are passed over;
 * -1: there is none, or the node scales integers. */
int pair_layer_of(const pair_search *s, int k, int value);
/* Whether the same operators compute two values, as far as a name can be trusted. */
bool pair_alike(const pair_search *s, int real, int other);

/* ---- pair_walk.c ---- */

/* Pairs two values, unless one of them has a counterpart already. */
void pair_join(pair_search *s, int real, int other, oct_pair_how how, const pair_way *way);
/* Pairs all values that can be reached from pairs. */
oct_status pair_walk(pair_search *s, oct_err *err);

/* ---- pair_weights.c ---- */

/* The SQNR in dB of a layer's weights compared with those of a float layer; -INFINITY: their shapes differ; NaN: a
 * layer has none. *folded: nodes after the float layer are folded into them. */
oct_status pair_compare_weights(const pair_search *s, int real, int other, double *db, bool *folded, oct_err *err);
/* Pairs the outputs of layers that have no counterparts yet. *any: some were paired. */
oct_status pair_by_weights(pair_search *s, bool *any, oct_err *err);
/* Compares the weights of the layer that computes a pair. */
oct_status pair_fill_weights(const pair_search *s, oct_pair *p, int real, int other, oct_err *err);

#endif
