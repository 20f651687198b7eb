/* lib/eval/parts/part_sums.h -- exact sums of errors in a part's file. Private to lib/eval. */
#ifndef OCT_EVAL_PART_SUMS_H
#define OCT_EVAL_PART_SUMS_H

#include "eval/metrics/error_sum.h"
#include "base/bytes.h"

static inline void ev_put_xsum(oct_buf *b, const oct_xsum *s)
{
    for (int i = 0; i < OCT_XSUM_LIMBS; i++)
        oct_buf_add_u64(b, s->limb[i]);
}

static inline void ev_take_xsum(oct_bytes *r, oct_xsum *s)
{
    for (int i = 0; i < OCT_XSUM_LIMBS; i++)
        s->limb[i] = oct_bytes_u64(r);
}

static inline void ev_put_sum(oct_buf *b, const oct_error_sum *s)
{
    ev_put_xsum(b, &s->signal);
    ev_put_xsum(b, &s->noise);
    ev_put_xsum(b, &s->other);
    ev_put_xsum(b, &s->dot);
    oct_buf_add_f64(b, s->max_abs);
    oct_buf_add_u64(b, s->n);
    oct_buf_add_u64(b, s->broken);
}

/* Adds a saved sum to s. */
static inline void ev_take_sum(oct_bytes *r, oct_error_sum *s)
{
    oct_error_sum x = { 0 };
    ev_take_xsum(r, &x.signal);
    ev_take_xsum(r, &x.noise);
    ev_take_xsum(r, &x.other);
    ev_take_xsum(r, &x.dot);
    x.max_abs = oct_bytes_f64(r);
    x.n = oct_bytes_u64(r);
    x.broken = oct_bytes_u64(r);
    if (!r->bad)
        oct_error_sum_merge(s, &x);
}

#endif
