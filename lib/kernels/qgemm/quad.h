/* lib/kernels/qgemm/quad.h -- four bytes of a row as one word, to be broadcast. Internal. */
#ifndef OCT_KERNELS_QGEMM_QUAD_H
#define OCT_KERNELS_QGEMM_QUAD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t oct_quad(const uint8_t *a)
{
    uint32_t v;
    memcpy(&v, a, 4);
    return v;
}

/* The last 1 to 3 bytes of a row, nothing beyond them is read; the weights beside the rest are zero. */
static inline uint32_t oct_quad_part(const uint8_t *a, size_t n)
{
    return a[0] | (n > 1 ? (uint32_t)a[1] << 8 : 0) | (n > 2 ? (uint32_t)a[2] << 16 : 0);
}

#endif
