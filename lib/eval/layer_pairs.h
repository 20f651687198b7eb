/* lib/eval/layer_pairs.h -- what is found of a value that a float model and a quantized one both compute.
 *
 * Everything is over oct_eval_result.layer_samples, gathered as the samples come: memory does not depend on their number. What does not
 * apply, or is not known, is 0, NULL or NaN, as each member says. */
#ifndef OCT_EVAL_LAYER_PAIRS_H
#define OCT_EVAL_LAYER_PAIRS_H

#include "base/dtype.h"
#include "eval/metric.h"

/* How the two values were found to be one. */
typedef enum oct_pair_how {
    OCT_PAIR_NAME = 0,  /* they have the same name, and the same operators make them */
    OCT_PAIR_STRUCTURE, /* the same operators make them from paired values, up to what quantizers fuse, split and insert */
    OCT_PAIR_WEIGHTS    /* layers make them whose weights are the same but for rounding */
} oct_pair_how;
/* "name", "structure", "weights". */
const char *oct_pair_word(oct_pair_how how);

/* How a value is quantized, where its parameters are constants. */
typedef struct oct_eval_range {
    oct_dtype dtype; /* of the codes; OCT_UNDEFINED: the value is not quantized, or its parameters are found when the model runs */
    double scale;    /* NaN: not quantized, or there is one for each channel */
    int32_t zero;    /* zero point */
    double lo, hi;   /* the reals of the smallest and the largest code; NaN: as scale */
} oct_eval_range;

/* The float model's values. Edges are equally far apart. Counts are exact but for values near an edge, which lie within the resolution of
 * observers/stats.h on one side of it or the other. */
enum { OCT_LAYER_BINS = 64 };
typedef struct oct_eval_histogram {
    uint64_t n;            /* finite values; 0: none, and the rest is 0 */
    double min, max;       /* of these */
    double lo, hi;         /* edges of the first and of the last bin */
    uint64_t bin[OCT_LAYER_BINS];
    uint64_t below, above; /* below lo, above hi: far out of the range, or of what nearly all values take */
} oct_eval_histogram;

/* One output channel of a layer's weights. */
typedef struct oct_eval_channel {
    double scale;   /* NaN: several, as of weights in blocks */
    double sqnr_db; /* INFINITY: equal */
    double clipped; /* share of the float weights that saturate; NaN: in blocks */
} oct_eval_channel;

typedef struct oct_eval_weights {
    const char *name;  /* in the quantized model; NULL: the layer has none that are quantized, or they have no counterpart. Then the rest is 0 */
    oct_dtype dtype;
    int64_t count;
    bool per_channel;  /* scales differ by output channel */
    int64_t block;     /* elements that share a scale; 0: not in blocks */
    double sqnr_db, clipped; /* of all */
    const oct_eval_channel *channel; /* [n_channel] */
    size_t n_channel;
} oct_eval_weights;

/* A value that both models compute. */
typedef struct oct_eval_layer {
    const char *value;  /* its name in the float model */
    const char *other;  /* and in this one */
    oct_pair_how how;
    size_t order;       /* its place in the float model's order of nodes, from 0 */
    const char *name;   /* of the node that computes it in this model; the value's when it has none */
    const char *op, *scheme;
    oct_error error;    /* over layer_samples, of everything before it too */
    double sqnr_db;     /* of it */
    double own_sqnr_db; /* of the layer alone: with inputs as the float model's, as far as their parameters can hold these */
    bool has_own;       /* known, as the model does not run in stages */
    oct_eval_range range;
    oct_eval_histogram histogram;
    double clipped;     /* share of the float model's values that saturate: beyond the range by more than the half step that rounding bridges; NaN: no range */
    double saturated;   /* share of elements at the smallest or the largest code whose float value saturates; NaN: no range */
    double used;        /* share of the codes that were seen at least once; NaN: no range, or codes of 16 bits and more */
    int64_t channels;   /* of dimension 1, or of the last of two and less; 0: not told apart */
    int64_t dead;       /* of these: all values are one here, but not in the float model */
    oct_eval_weights weights;
} oct_eval_layer;

#endif
