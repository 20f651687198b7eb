/* lib/observers/chan.h -- per channel: range and exact mean of activations. */
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

/* Feeds x, f32[outer][channels][inner]: NCHW is outer = N, inner = H * W; NHWC is outer = N * H * W,
 * inner = 1. Of the outer ones every step-th counts, step >= 1. Infinities are left out. OCT_ENUMERIC on NaN (index given): a part
 * of x has been counted. */
oct_status oct_chan_update(oct_chan_stats *s, const float *x, size_t outer, size_t step, size_t inner, oct_err *err);
/* Bit for bit what s would be had it seen both. OCT_EUSAGE when the channels differ. */
oct_status oct_chan_merge(oct_chan_stats *s, const oct_chan_stats *o, oct_err *err);
double oct_chan_mean(const oct_chan *c); /* 0 when n is 0 */

#endif
