/* lib/quant/methods/scaling.h -- channels whose values can be scaled without changing what the graph computes (positive
 * homogeneity: Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019,
 * section 4.1). A clamp from 0 to a bound (ReLU6) is homogeneous for channels that do not reach the bound, neither
 * before they are scaled nor after it.
 *
 * A scaling consists of everything that must get the same factors: the values that homogeneous operators connect (ReLU,
 * sums, pools), the layers that compute them, and the layers that read them. Factors are powers of two, so float
 * results do not change by a single bit. */
#ifndef OCT_QUANT_SCALING_H
#define OCT_QUANT_SCALING_H

#include "base/buf.h"
#include "ops/traits.h"

typedef struct oct_scaled {
    int value, axis; /* the dimension that holds its channels */
    bool clamped;    /* a clamp with a bound makes it */
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
    float bound; /* the least bound of its clamps: a scaled channel must not reach it; INFINITY: there is none */
} oct_scaling;

/* Finds all scalings of g that have at least one maker and one reader, in the order of the graph; in arena.
 * OCT_ENOMEM. */
oct_status oct_scalings_find(const oct_graph *g, oct_arena *arena, oct_scaling **found, size_t *n, oct_err *err);

/* Memory for scaled constants: tensors in arena, which must outlive g. was[n_value], or NULL: the original constants of
 * g, which are not changed; a value that has another constant by now is scaled in place. */
typedef struct oct_scaler {
    oct_graph *g;
    oct_arena *arena;
    const oct_tensor *const *was;
} oct_scaler;

enum { OCT_SCALING_MOST = 16 }; /* the largest exponent of a factor */
/* Multiplies channel c of what the makers compute by 2^exponent[c], |exponent| <= OCT_SCALING_MOST, and divides the
 * weights of the readers by it. Names do not change. OCT_ENOMEM. */
oct_status oct_scaling_apply(const oct_scaler *k, const oct_scaling *s, const int *exponent, oct_err *err);
/* Appends the factors 2^exponent[n] of a value to the metadata: a comparison with the original model must know them.
 * OCT_ENOMEM. */
oct_status oct_scaling_record(oct_buf *to, const oct_graph *g, const oct_scaled *v, int64_t n, const int *exponent,
                              oct_err *err);

/* Whether a part of a graph can get such factors. First: a float constant that only one node reads, whose elements are
 * small and large enough to be scaled exactly. Second: a layer with such weights and bias; then *l is set. */
bool oct_constant_scales(const oct_graph *g, int value);
bool oct_scaled_layer_of(const oct_graph *g, int node, oct_scaled_layer *l);
/* Divides the weights of a layer for input channel c by 2^exponent[c]. Multiplies element c of a constant by it. Memory
 * as in oct_scaling_apply. */
oct_status oct_scale_inputs(const oct_scaler *k, const oct_scaled_layer *l, const int *exponent, oct_err *err);
oct_status oct_scale_vector(const oct_scaler *k, int value, const int *exponent, oct_err *err);

#endif
