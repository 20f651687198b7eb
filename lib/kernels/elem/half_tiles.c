/* lib/kernels/elem/half_tiles.c -- 16-bit floats to float32 and back over whole tensors: tiles over threads. */
#include "kernels/half.h"

#include "kernels/elem/table.h"

#define TILE 8192

typedef struct half_job {
    const oct_elem_table *k;
    oct_dtype t;
    const void *x;
    void *y;
} half_job;

static void widen_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const half_job *j = arg;
    j->k->widen(j->t, (const uint16_t *)j->x + begin, end - begin, (float *)j->y + begin);
}

void oct_widen(oct_pool *pool, oct_dtype t, const void *x, size_t n, float *y)
{
    half_job j = { oct_elem(), t, x, y };
    oct_pool_for(pool, n, TILE, widen_tile, &j);
}

static void narrow_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const half_job *j = arg;
    j->k->narrow(j->t, (const float *)j->x + begin, end - begin, (uint16_t *)j->y + begin);
}

void oct_narrow(oct_pool *pool, oct_dtype t, const float *x, size_t n, void *y)
{
    half_job j = { oct_elem(), t, x, y };
    oct_pool_for(pool, n, TILE, narrow_tile, &j);
}

static void round_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const half_job *j = arg;
    j->k->round_half(j->t, (const float *)j->x + begin, end - begin, (float *)j->y + begin);
}

void oct_round_half(oct_pool *pool, oct_dtype t, const float *x, size_t n, float *y)
{
    half_job j = { oct_elem(), t, x, y };
    oct_pool_for(pool, n, TILE, round_tile, &j);
}
