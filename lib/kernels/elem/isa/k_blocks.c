/* lib/kernels/elem/isa/k_blocks.c -- rows quantized block by block (kernels/quantize.h), compiled once per instruction
 * set. */
#include "kernels/elem/isa.h"

#include <string.h>

/* The largest magnitude, as its bits: those of NaN and infinity are above all others'. */
static uint32_t largest(const float *x, size_t n)
{
    int32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        const int32_t magnitude = (int32_t)(bits & 0x7fffffffu);
        most = magnitude > most ? magnitude : most;
    }
    return (uint32_t)most;
}

static float quantize_block(const float *x, size_t n, int8_t *q, int32_t *sum)
{
    const uint32_t most = largest(x, n), least = 27u << 23 /* 2^-100 */, infinite = 0x7f800000, nan = 0x7fc00000;
    float top, none = 0;
    memcpy(&top, &most, sizeof top);
    *sum = 0;
    if (most < least || most >= infinite) {
        memset(q, 0, n);
        if (most >= infinite)
            memcpy(&none, &nan, sizeof none);
        return none;
    }
    const float inverse = 127.0f / top;
    int32_t all = 0;
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)oct_round_small(x[i] * inverse);
    for (size_t i = 0; i < n; i++)
        all += q[i];
    *sum = all;
    return top / 127.0f;
}

void K(quantize_blocks)(const float *x, size_t n, size_t block, int8_t *q, float *scale, int32_t *sum)
{
    for (size_t at = 0, b = 0; at < n; at += block, b++) {
        const size_t here = n - at < block ? n - at : block;
        scale[b] = quantize_block(x + at, here, q + at, &sum[b]);
        memset(q + at + here, 0, block - here);
    }
}
