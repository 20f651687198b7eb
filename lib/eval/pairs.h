/* lib/eval/pairs.h -- which values of two models are one: of a float model, and of one that any tool quantized from it.
 *
 * Values pair by their names, where the same operators make them. Others pair by structure: the two graphs are walked from what is paired already
 * through the same operators, whatever is renamed. What quantizers do in between is looked through: roundings, casts, reshapes and transposes that one
 * model has alone, a normalization, bias or clamp that one has as a node and the other in the layer before. Layers that cannot be reached so pair by their
 * weights: those that are the same but for rounding. */
#ifndef OCT_EVAL_PAIRS_H
#define OCT_EVAL_PAIRS_H

#include "eval/layer_pairs.h"
#include "graph/graph.h"

typedef struct oct_pair {
    const char *value, *other; /* the names in the two models */
    const char *shown;         /* the name under which the other's runtime shows what its readers read: other, or what rounds it for all of them */
    const char *held;          /* the name of the value that holds these numbers once what the other spells of quantization is read (forms/forms.h) */
    oct_pair_how how;
    size_t order;              /* of value, among all that the float model computes, bodies too */
    int rank;                  /* of both, where the other has dimensions in another order; else 0 */
    int axes[OCT_MAX_RANK];    /* dimension i of the other is dimension axes[i] of the value */
    const oct_quant *quant;    /* of the other, where its parameters are constants; else NULL */
    oct_eval_weights weights;  /* of the layer that makes it */
} oct_pair;

typedef struct oct_pairs {
    oct_arena *arena; /* all of it */
    oct_pair *pair;   /* in the order of the float model */
    size_t n;
    oct_graph *read[3]; /* what quantization borrows from */
} oct_pairs;

/* The pairs of two models whose inputs have the same names, or else the same order. Both graphs are borrowed, and must outlive the pairs. Where
 * shapes or spelled quantization of a model are not understood, names alone count. OCT_ENOMEM. */
oct_status oct_pairs_find(const oct_graph *real, const oct_graph *other, oct_pairs *p, oct_err *err);
void oct_pairs_free(oct_pairs *p); /* all zeros allowed */

/* A value in a graph or in one that is nested in it. */
typedef struct oct_value_place {
    const oct_graph *g;
    int value;
    size_t n; /* how many of them compute one of that name; 0: none, and the rest is not set */
} oct_value_place;
/* Where a name is computed. path (may be NULL): the path to that graph is added. */
oct_value_place oct_value_place_of(const oct_graph *g, const char *name, oct_buf *path);

#endif
