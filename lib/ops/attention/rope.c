/* Rotary position embedding. */
#include "ops/attention/rope.h"

#include <string.h>

typedef struct job {
    const oct_rope *r;
    const oct_heads *x;
    oct_attn_part y;
    const int64_t *at;
} job;

static void rotate(const oct_rope *r, const float *cos, const float *sin, const float *x, float *y, int64_t depth)
{
    const int64_t step = r->interleaved ? 2 : 1, other = r->interleaved ? 1 : r->half;
    for (int64_t i = 0; i < r->half; i++) {
        const float a = x[i * step], b = x[i * step + other];
        y[i * step] = cos[i] * a - sin[i] * b;
        y[i * step + other] = sin[i] * a + cos[i] * b;
    }
    if (y != x)
        memcpy(y + 2 * r->half, x + 2 * r->half, (size_t)(depth - 2 * r->half) * sizeof *y);
}

static void rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    const oct_heads *x = j->x;
    for (size_t item = begin; item < end; item++) {
        const int64_t h = (int64_t)item % x->heads, i = (int64_t)item / x->heads % x->length,
                      b = (int64_t)item / x->heads / x->length, row = j->at[b * x->length + i] * j->r->half;
        const float *from = (const float *)x->part.data + b * x->part.batch + h * x->part.head + i * x->part.row;
        float *to = (float *)j->y.data + b * j->y.batch + h * j->y.head + i * j->y.row;
        rotate(j->r, j->r->cos + row, j->r->sin + row, from, to, x->depth);
    }
}

oct_status oct_rope_run(const oct_rope *r, oct_pool *pool, const oct_heads *x, oct_attn_part y, const int64_t *at,
                        oct_err *err)
{
    job j = { r, x, y, at };
    for (int64_t i = 0; i < x->batch * x->length; i++)
        if (at[i] < 0 || at[i] >= r->positions)
            return oct_fail(err, OCT_EMALFORMED, "position %lld, but the tables have %lld", (long long)at[i],
                            (long long)r->positions);
    oct_pool_for(pool, (size_t)(x->batch * x->length * x->heads), 64, rows, &j);
    return OCT_OK;
}
