/* lib/eval/parts/part_sums.h -- exact sums of errors in a part's file. Private to lib/eval. */
#ifndef OCT_EVAL_PART_SUMS_H
#define OCT_EVAL_PART_SUMS_H

#include "eval/metrics/error_sum.h"
#include "eval/parts/part_bytes.h"

static inline void ev_put_xsum(oct_buf *b, const oct_xsum *s)
{
    for (int i = 0; i < OCT_XSUM_LIMBS; i++)
        ev_put_u64(b, s->limb[i]);
}

static inline void ev_take_xsum(ev_bytes *r, oct_xsum *s)
{
    for (int i = 0; i < OCT_XSUM_LIMBS; i++)
        s->limb[i] = ev_take_u64(r);
}

static inline void ev_put_sum(oct_buf *b, const oct_error_sum *s)
{
    ev_put_xsum(b, &s->signal);
    ev_put_xsum(b, &s->noise);
    ev_put_xsum(b, &s->other);
    ev_put_xsum(b, &s->dot);
    ev_put_f64(b, s->max_abs);
    ev_put_u64(b, s->n);
    ev_put_u64(b, s->broken);
}

/* Adds a saved sum to s. */
static inline void ev_take_sum(ev_bytes *r, oct_error_sum *s)
{
    oct_error_sum x = { 0 };
    ev_take_xsum(r, &x.signal);
    ev_take_xsum(r, &x.noise);
    ev_take_xsum(r, &x.other);
    ev_take_xsum(r, &x.dot);
    x.max_abs = ev_take_f64(r);
    x.n = ev_take_u64(r);
    x.broken = ev_take_u64(r);
    if (!r->bad)
        oct_error_sum_merge(s, &x);
}

#endif
