/* lib/quant/rounding/learned.h -- rounding that minimizes the error of a layer's outputs after its clamp.
 *
 * Error-compensating rounding (rounding.c) minimizes the error of a product. A ReLU after it cuts off much of that
 * error, so that other choices may be better. Like AdaRound (Nagel et al., Up or Down?, 2020), this minimizes the
 * squared error of the clamped outputs on the layer's inputs. Unlike AdaRound, it starts from a good solution and
 * changes one quantized value at a time by one, only if the error falls. A relaxation optimized by Adam loses most of
 * what compensation has gained. */
#ifndef OCT_QUANT_LEARNED_H
#define OCT_QUANT_LEARNED_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct oct_learned {
    size_t depth, outs;
    size_t rows, held;  /* the number of input rows, and how many of them, at the end, only judge the result; 0: none */
    const float *x;     /* [depth][rows] */
    const float *w;     /* [outs][depth] */
    const float *bias;  /* [outs]; NULL: no bias */
    const float *scale; /* [outs], > 0 */
    float lo, hi;       /* bounds of the clamp; -INFINITY and INFINITY if there is none */
    int limit;          /* quantized values lie within -limit..limit */
    const int64_t *pair; /* [depth]: the other weight of the pair, or -1; NULL: there are no pairs */
    int most;            /* the largest sum of magnitudes of a pair's weights of the same sign */
} oct_learned;

/* Improves quantized weights q[outs][depth]. An output keeps its old weights if the new ones are worse on the rows that
 * judge. Deterministic to the bit. OCT_ENOMEM. */
oct_status oct_learn_rounding(const oct_learned *l, int8_t *q);

#endif
