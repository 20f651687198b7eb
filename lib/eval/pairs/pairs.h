/* lib/eval/pairs/pairs.h -- finds out which values of two models correspond: a float model, and a model that any tool
 * quantized from it.
 *
 * Values correspond if they have the same name and are computed by the same operators. Others are found by structure:
 * both graphs are walked from corresponding values through the same operators, whatever was renamed. What quantizers
 * change in between is passed over: roundings, casts, reshapes and transposes that only one model has, and a
 * normalization, bias or clamp that is a node in one model and part of the layer before it in the other. Layers that
 * cannot be reached in this way are matched by their weights, which must be equal except for rounding. */
#ifndef OCT_EVAL_PAIRS_H
#define OCT_EVAL_PAIRS_H

#include "eval/pairs/layer_pairs.h"
#include "graph/graph.h"

typedef struct oct_pair {
    const char *value, *other; /* the names in the two models */
    /* the name under which the other model's runtime shows the values that its readers read: `other`, or its rounded
     * form if all readers read that */
    const char *shown;
    const char *held; /* the name of the value with these numbers after the other model's quantization was read
                         (forms/forms.h) */
    oct_pair_how how;
    size_t order;           /* the position of value among all values that the float model computes, bodies included */
    int rank;               /* the rank of both, if the other has its dimensions in another order; else 0 */
    int axes[OCT_MAX_RANK]; /* dimension i of the other is dimension axes[i] of the value */
    const oct_quant *quant; /* the quantization of the other, if its parameters are constants; else NULL */
    oct_eval_weights weights; /* the weights of the layer that computes it */
} oct_pair;

typedef struct oct_pairs {
    oct_arena *arena; /* all memory of the result */
    oct_pair *pair;   /* in the order of the float model */
    size_t n;
    oct_graph *read[3]; /* graphs that own the quantization parameters */
} oct_pairs;

/* Finds the pairs of two models whose inputs have the same names, or else the same order. Both graphs are borrowed, and
 * must outlive the pairs. If the shapes or the quantization of a model are not understood, only names count.
 * OCT_ENOMEM. */
oct_status oct_pairs_find(const oct_graph *real, const oct_graph *other, oct_pairs *p, oct_err *err);
void oct_pairs_free(oct_pairs *p); /* *p may be all zeros */

/* A value in a graph or in a subgraph of it. */
typedef struct oct_value_location {
    const oct_graph *g;
    int value;
    size_t n; /* how many values with the name are computed; 0: none, and the other members are not set */
} oct_value_location;
/* Finds where a name is computed. path (may be NULL): the path to that graph is appended. */
oct_value_location oct_value_location_of(const oct_graph *g, const char *name, oct_buf *path);

#endif
