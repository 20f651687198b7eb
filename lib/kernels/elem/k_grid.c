/* lib/kernels/elem/k_grid.c -- how well a grid fits a short row, and the row's codes on it; compiled once per instruction set. */
#include "kernels/elem/isa.h"

#define LANES 8

static inline float step_of(float x, float inverse, float lo, float hi)
{
    return (float)round_clamped(x * inverse, lo, hi);
}

/* Lane l takes the elements l, l + 8, ...; joined l with l + 4, then 2, 1. Products of a float and a step are exact in double. */
void K(grid_sums)(const float *x, size_t n, float scale, float lo, float hi, double sums[2])
{
    double xd[LANES] = { 0 }, dd[LANES] = { 0 };
    const float inverse = 1.0f / scale;
    for (size_t i = 0; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double d = (double)step_of(x[i + l], inverse, lo, hi);
            xd[l] += (double)x[i + l] * d;
            dd[l] += d * d;
        }
    for (size_t l = 0; l < n % LANES; l++) {
        const float v = x[n / LANES * LANES + l];
        const double d = (double)step_of(v, inverse, lo, hi);
        xd[l] += (double)v * d;
        dd[l] += d * d;
    }
    for (size_t w = LANES / 2; w; w /= 2)
        for (size_t l = 0; l < w; l++) {
            xd[l] += xd[l + w];
            dd[l] += dd[l + w];
        }
    sums[0] = xd[0];
    sums[1] = dd[0];
}

void K(grid_codes)(const float *x, size_t n, float scale, float lo, float hi, int32_t zero, uint8_t *q)
{
    const float inverse = 1.0f / scale;
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        q[i] = (uint8_t)(round_clamped(x[i] * inverse, lo, hi) + zero);
}
