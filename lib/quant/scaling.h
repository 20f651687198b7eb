/* lib/quant/scaling.h -- channels that layers can be scaled by without changing what the graph computes (positive homogeneity: Nagel et
 * al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019, section 4.1).
 *
 * A scaling is all that must take a factor together: values that homogeneous operators join (ReLU, sums, pools), the layers that make them and
 * those that read them. Factors are powers of two, so float results stay as they are to the bit. */
#ifndef OCT_QUANT_SCALING_H
#define OCT_QUANT_SCALING_H

#include "base/buf.h"
#include "ops/traits.h"

typedef struct oct_scaled {
    int value, axis; /* the dimension of its channels */
} oct_scaled;

typedef struct oct_scaled_layer {
    int node;
    oct_weight_layout weights;
} oct_scaled_layer;

typedef struct oct_scaling {
    int64_t channels;
    oct_scaled *value;
    oct_scaled_layer *maker, *reader;
    size_t n_values, n_makers, n_readers;
} oct_scaling;

/* Every scaling of g with at least one maker and one reader, in the order of the graph; in arena. OCT_ENOMEM. */
oct_status oct_scalings_find(const oct_graph *g, oct_arena *arena, oct_scaling **found, size_t *n, oct_err *err);

/* Where scaled constants go: tensors in arena, which must outlive g or what it has then. was[n_value], or NULL: constants of g that stay as they
 * are; a value that has another one by now is scaled in place. */
typedef struct oct_scaler {
    oct_graph *g;
    oct_arena *arena;
    const oct_tensor *const *was;
} oct_scaler;

enum { OCT_SCALING_MOST = 16 }; /* bits of a factor */
/* Multiplies channel c of what the makers make by 2^exponent[c], |exponent| <= OCT_SCALING_MOST, and divides that of what the readers multiply.
 * Names stay. OCT_ENOMEM. */
oct_status oct_scaling_apply(const oct_scaler *k, const oct_scaling *s, const int *exponent, oct_err *err);
/* Appends the factors 2^exponent[n] of a value to the metadata, since comparisons with the model as it was must know of them. OCT_ENOMEM. */
oct_status oct_scaling_record(oct_buf *to, const oct_graph *g, const oct_scaled *v, int64_t n, const int *exponent, oct_err *err);

/* What of a graph can take such factors: a float constant that only one node reads, and whose elements are small and large enough that a
 * factor costs no bit; a layer of such weights and bias, then *l is set. */
bool oct_constant_scales(const oct_graph *g, int value);
bool oct_scaled_layer_of(const oct_graph *g, int node, oct_scaled_layer *l);
/* Divides what a layer multiplies with input channel c by 2^exponent[c]; multiplies element c of a constant by it. As oct_scaling_apply. */
oct_status oct_scale_inputs(const oct_scaler *k, const oct_scaled_layer *l, const int *exponent, oct_err *err);
oct_status oct_scale_vector(const oct_scaler *k, int value, const int *exponent, oct_err *err);

#endif
