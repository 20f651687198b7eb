/* lib/observers/chan.h -- the range and the exact mean of each channel of activations. */
#ifndef OCT_OBSERVERS_CHAN_H
#define OCT_OBSERVERS_CHAN_H

#include "observers/xsum.h"

/* One channel's finite values. mean = oct_xsum_value(&sum) / n. */
typedef struct oct_chan {
    uint64_t n;
    float min, max; /* 0 when n is 0; never -0 */
    oct_xsum sum;
} oct_chan;

typedef struct oct_chan_stats {
    size_t channels;
    oct_chan *c; /* owned, [channels] */
} oct_chan_stats;

oct_status oct_chan_init(oct_chan_stats *s, size_t channels, oct_err *err);
void oct_chan_free(oct_chan_stats *s);

/* Adds x, f32[outer][channels][inner]: for NCHW, outer = N and inner = H * W; for NHWC, outer = N * H * W and inner
 * = 1. Only every step-th of the outer ones counts, step >= 1. Infinities are left out. OCT_ENUMERIC: there is a NaN
 * (the message has its index); then a part of x has been added. */
oct_status oct_chan_update(oct_chan_stats *s, const float *x, size_t outer, size_t step, size_t inner, oct_err *err);
/* The result is, bit for bit, as if s had got the values of both. OCT_EUSAGE: the numbers of channels differ. */
oct_status oct_chan_merge(oct_chan_stats *s, const oct_chan_stats *o, oct_err *err);
double oct_chan_mean(const oct_chan *c); /* 0 if n is 0 */

#endif
