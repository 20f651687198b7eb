/* lib/eval/pairs/layer_pairs.h -- results for a value that both a float model and a quantized one compute.
 *
 * All results are over oct_eval_result.layer_samples, and are gathered while the samples come: memory does not depend
 * on their number. A member that does not apply, or is not known, is 0, NULL or NaN, as its comment says. */
#ifndef OCT_EVAL_LAYER_PAIRS_H
#define OCT_EVAL_LAYER_PAIRS_H

#include "base/dtype.h"
#include "eval/metrics/metric.h"

/* How it was found that two values correspond. */
typedef enum oct_pair_how {
    OCT_PAIR_NAME = 0,  /* they have the same name, and the same operators make them */
    OCT_PAIR_STRUCTURE, /* the same operators compute them from values that correspond, if what quantizers fuse, split
                           and insert is ignored */
    OCT_PAIR_WEIGHTS    /* they are outputs of layers whose weights are equal except for rounding */
} oct_pair_how;
/* The name of it: "name", "structure" or "weights". */
const char *oct_pair_word(oct_pair_how how);

/* The quantization of a value, if its parameters are constants. */
typedef struct oct_eval_range {
    oct_dtype dtype; /* type of the quantized values; OCT_UNDEFINED: the value is not quantized, or its parameters are
                        computed at run time */
    double scale;    /* NaN: the value is not quantized, or each channel has its own scale */
    int32_t zero;    /* zero point */
    double lo, hi;   /* the real numbers of the smallest and the largest quantized value; NaN: as for scale */
} oct_eval_range;

/* A histogram of the float model's values. All bins have the same width. Counts are exact, except that a value near an
 * edge may be counted on the other side of it, within the resolution of observers/stats.h. */
enum { OCT_LAYER_BINS = 64 };
typedef struct oct_eval_histogram {
    uint64_t n;      /* how many finite values there are; if 0, everything else is 0 */
    double min, max; /* the smallest and the largest of these */
    double lo, hi;   /* the lower edge of the first bin and the upper edge of the last */
    uint64_t bin[OCT_LAYER_BINS];
    uint64_t below,
        above; /* how many are below lo and above hi: far outside the range, or outside that of nearly all values */
} oct_eval_histogram;

/* One output channel of a layer's weights. */
typedef struct oct_eval_channel {
    double scale;   /* NaN: there are several, as in blocks */
    double sqnr_db; /* INFINITY: the weights are equal */
    double clipped; /* share of the float weights that saturate; NaN: the weights are in blocks */
} oct_eval_channel;

typedef struct oct_eval_weights {
    const char *name; /* name in the quantized model; NULL: the layer has no quantized weights, or they have no
                         counterpart, and everything else is 0 */
    oct_dtype dtype;
    int64_t count;
    bool per_channel;                /* each output channel has its own scale */
    int64_t block;                   /* how many elements share a scale; 0: the weights are not in blocks */
    double sqnr_db, clipped;         /* of all weights */
    const oct_eval_channel *channel; /* [n_channel] */
    size_t n_channel;
} oct_eval_weights;

/* A value that both models compute. */
typedef struct oct_eval_layer {
    const char *value; /* its name in the float model */
    const char *other; /* its name in the quantized model */
    oct_pair_how how;
    size_t order;     /* its position in the float model's order of nodes, from 0 */
    const char *name; /* the name of the node that computes it in the quantized model; if that has none, the name of the
                         value */
    const char *op, *scheme;
    oct_error error;    /* the error over layer_samples, including that of everything before it */
    double sqnr_db;     /* the SQNR of that, in dB */
    double own_sqnr_db; /* the error of the layer alone: with the float model's inputs, as far as the quantization
                           parameters can represent them */
    bool has_own;       /* `own` is known: the model does not run in stages */
    oct_eval_range range;
    oct_eval_histogram histogram;
    double clipped; /* share of the float model's values that saturate: they exceed the range by more than half a step;
                       NaN: there is no range */
    double saturated; /* share of elements with the smallest or the largest quantized value whose float value saturates;
                         NaN: there is no range */
    double used; /* share of the quantized values that occur; NaN: there is no range, or there are 16 bits or more */
    int64_t channels; /* the number of channels in dimension 1, or in the last one if there are at most two dimensions;
                         0: not distinguished */
    int64_t dead;     /* how many of them are constant here, but not in the float model */
    oct_eval_weights weights;
} oct_eval_layer;

#endif
