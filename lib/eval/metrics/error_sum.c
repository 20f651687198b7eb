/* Exact sums of errors. The errors of a sample are sums of products of float32 values. So they are multiples of 2^-298,
 * and far below 2^320. */
#include "eval/metrics/error_sum.h"

void oct_error_sum_add(oct_error_sum *s, const oct_error *e)
{
    oct_xsum_add(&s->signal, e->signal);
    oct_xsum_add(&s->noise, e->noise);
    oct_xsum_add(&s->other, e->other);
    oct_xsum_add(&s->dot, e->dot);
    s->max_abs = e->max_abs > s->max_abs ? e->max_abs : s->max_abs;
    s->n += e->n;
    s->broken += e->broken;
}

void oct_error_sum_merge(oct_error_sum *s, const oct_error_sum *o)
{
    oct_xsum_merge(&s->signal, &o->signal);
    oct_xsum_merge(&s->noise, &o->noise);
    oct_xsum_merge(&s->other, &o->other);
    oct_xsum_merge(&s->dot, &o->dot);
    s->max_abs = o->max_abs > s->max_abs ? o->max_abs : s->max_abs;
    s->n += o->n;
    s->broken += o->broken;
}

oct_error oct_error_sum_value(const oct_error_sum *s)
{
    return (oct_error){ .signal = oct_xsum_value(&s->signal),
                        .noise = oct_xsum_value(&s->noise),
                        .other = oct_xsum_value(&s->other),
                        .dot = oct_xsum_value(&s->dot),
                        .max_abs = s->max_abs,
                        .n = s->n,
                        .broken = s->broken };
}
