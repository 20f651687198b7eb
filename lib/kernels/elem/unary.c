/* lib/kernels/elem/unary.c -- functions of one f32 over arrays: tiles over threads. */
#include "kernels/unary.h"

#include "kernels/elem/table.h"

#define TILE 8192

typedef struct unary_job {
    const oct_elem_table *k;
    const oct_unary *f;
    const float *x;
    float *y;
} unary_job;

static void unary_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const unary_job *j = arg;
    j->k->unary(j->f, j->x + begin, j->y + begin, end - begin);
}

void oct_unary_f32(oct_pool *pool, const oct_unary *f, const float *x, float *y, size_t n)
{
    unary_job j = { oct_elem(), f, x, y };
    oct_pool_for(pool, n, TILE, unary_tile, &j);
}

float oct_unary_value(const oct_unary *f, float x)
{
    float y;
    oct_unary__ref(f, &x, &y, 1);
    return y;
}
