/* lib/quant/learned.h -- rounding learned from what a layer gives behind its clamp.
 *
 * Error-compensating rounding (rounding.c) minimizes the error of a product. Behind a ReLU much of that is cut off, so some steps are better
 * taken otherwise. As AdaRound (Nagel et al., Up or Down?, 2020) this minimizes the squared error of the clamped outputs on the layer's
 * inputs; but by whole steps of one weight after the other, each taken only where the error falls, from a solution that is good already. A
 * relaxation that Adam follows loses most of what compensation has won. */
#ifndef OCT_QUANT_LEARNED_H
#define OCT_QUANT_LEARNED_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct oct_learned {
    size_t depth, outs;
    size_t rows, held;  /* positions of the inputs; so many of them, the last ones, do not choose but judge: 0 none */
    const float *x;     /* [depth][rows] */
    const float *w;     /* [outs][depth] */
    const float *bias;  /* [outs], NULL: none */
    const float *scale; /* [outs], > 0 */
    float lo, hi;       /* of the clamp; -INFINITY and INFINITY where there is none */
    int limit;          /* quantized values lie within -limit..limit */
    const int64_t *pair; /* [depth]: the other weight of a pair, or -1; NULL: there are no pairs */
    int most;           /* what the magnitudes of a pair's weights of one sign add up to at most, where they do */
} oct_learned;

/* Improves quantized weights q[outs][depth]; an output keeps those it had where the others lose on the rows that judge. Deterministic to the
 * bit. OCT_ENOMEM. */
oct_status oct_learn_rounding(const oct_learned *l, int8_t *q);

#endif
