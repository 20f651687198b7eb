/* lib/kernels/conv/qwinograd.h -- exact 8-bit convolution of 3x3 taps by Winograd's F(4x4, 3x3), in integers. Internal.
 *
 * 4x4 output pixels of a channel take 36 products instead of 144: Y = A' [ (G w G') * (B' d B) ] A, with d the 6x6
 * pixels under them, * element by element and summed over channels (Lavin and Gray, "Fast algorithms for convolutional
 * neural networks", section 4.3). The rows of G have fractions; here each is multiplied by what makes it whole, A takes
 * the rest:
 *
 *        | 4  0 -5  0  1  0 |        |  6  0  0 |
 *        | 0 -4 -4  1  1  0 |        | -1 -1 -1 |         | 1  4  4  1  1  0 |  24 y0
 *   B' = | 0  4 -4 -1  1  0 |    G = | -1  1 -1 |    A' = | 0  2 -2  1 -1  0 |  12 y1
 *        | 0 -2 -1  2  1  0 |        |  1  2  4 |         | 0  1  1  1  1  0 |   6 y2
 *        | 0  2 -1 -2  1  0 |        |  1 -2  4 |         | 0  1 -1  2 -2  1 |   6 y3
 *        | 0  4  0 -5  0  1 |        |  0  0  6 |
 *
 * Why it is exact: d is a byte as s8, so |B' d B| <= 10 * 10 * 128 and |G w G'| <= 7 * 7 * 128 fit 16 bits, and
 * vpmaddwd adds products of those in 32 bits. From there all is done modulo 2^32, where sums may wrap. What comes out
 * is 3 * 3 * 2^s times the result modulo 2^32, s = 6 at most: multiplying by the inverse of 9 and shifting by s, the
 * sign kept, leaves the result if it fits 26 bits. It does when 128 * (sum of |w| of an output channel) < 2^25, which
 * the packer looks at; else it declines. */
#ifndef OCT_KERNELS_QWINOGRAD_H
#define OCT_KERNELS_QWINOGRAD_H

#include "kernels/cpu.h"

#include <stddef.h>

enum {
    OCT_WINOGRAD_IN = 6, /* pixels of a tile on either axis */
    OCT_WINOGRAD_OUT = 4,
    OCT_WINOGRAD_POINTS = 36,
    OCT_WINOGRAD_COLUMNS = 16, /* output channels of a panel; input channels are a multiple of this too */
    OCT_WINOGRAD_GROUP = 8,    /* input channels that lie together */
    OCT_WINOGRAD_PANELS = 2    /* panels whose products are computed together, at most */
};

/* The three steps.
 *   input    one tile: x[36] points to its pixels; `flip` makes their bytes s8. Channels 8 i to 8 i + 7 of point p go
 *            to v + p * point + i * group
 *   product  one point, 16 output channels of each of one or two panels: m[panel][tile][16] = sum over c of
 *            v[c / 8][tile][8] * u[panel][c / 2][16][2]
 *   output   one tile, 16 output channels: point p at m + p * point; line i of the sums, [4][16], goes to acc + i *
 * line */
typedef struct oct_qwinograd_kernel {
    const char *name;
    oct_isa isa;
    void (*input)(size_t channels, const uint8_t *const *x, uint8_t flip, int16_t *v, size_t point, size_t group);
    void (*product)(size_t tiles, size_t channels, size_t panels, const int16_t *v,
                    const int16_t *const u[OCT_WINOGRAD_PANELS], int32_t *const m[OCT_WINOGRAD_PANELS]);
    void (*output)(const int32_t *m, size_t point, int32_t *acc, size_t line);
} oct_qwinograd_kernel;

extern const oct_qwinograd_kernel oct_qwinograd__avx2, oct_qwinograd__avx512vnni;
const oct_qwinograd_kernel *const *oct_qwinograd_kernels(size_t *count);
void oct_qwinograd_input__avx2(size_t channels, const uint8_t *const *x, uint8_t flip, int16_t *v, size_t point,
                               size_t group);

#endif
