/* lib/kernels/bins.h -- counting float32 values in a histogram: a scan for the range, and the bin of each value. */
#ifndef OCT_KERNELS_BINS_H
#define OCT_KERNELS_BINS_H

#include "base/status.h"

typedef struct oct_scan {
    float min, max; /* NaN ignored; begin with INFINITY and -INFINITY */
    bool nan;       /* whether one was met */
    bool small;     /* whether a value other than zero is below `tiny` in magnitude */
} oct_scan;

/* Updates *s by the values of f32[n]. */
void oct_scan_f32(const float *x, size_t n, float tiny, oct_scan *s);

/* How many values of f32[n] equal v; n < 2^32. */
size_t oct_count_equal_f32(const float *x, size_t n, float v);

/* Bins per sign: with u = |x| * scale cut to an integer, 8 <= u < 2^14, the bin is base + u, for u >= 2^12 every second
 * step, for u >= 2^13 every fourth: so each of the three largest octaves has 2048 bins, and each below half of the one
 * above. Octaves below these have eight bins each, fine + (bits of |x| >> 20). */
typedef struct oct_bin_grid {
    float scale[2]; /* of positive and of negative values; a power of two, or 0: there are none, least is INT32_MAX */
    int32_t base[2], fine[2];
    int32_t top[2], off[2][16]; /* the same by octaves: r from the largest one, of exponent top, or 15, the bin is
                                   off[r] + (bits of |x| >> oct_bin_shift[r]) */
    int32_t least[2];           /* bits of the magnitude from which on the grid holds values; at least 1 */
    int32_t zero;  /* zeros are counted in turn in zero .. zero + OCT_ZERO_BINS - 1 (a single counter would wait for its
                      own stores) */
    int32_t small; /* bin of nonzero values below that magnitude */
} oct_bin_grid;
enum { OCT_ZERO_BINS = 8, OCT_GRID_TOP = 14, OCT_GRID_LEAST = 8 };

extern const int32_t oct_bin_shift[16];

/* Sets the grid for values of a sign (0: positive). `top` is the biased exponent of the largest, OCT_GRID_TOP <= top <=
 * 240. */
void oct_bin_lay(oct_bin_grid *g, int sign, int top, int32_t base, int32_t fine);

/* The bins of f32[n] in order, finite and with u < 2^14; n < 2^31. bin s32[n]. Zeros may be omitted where this is
 * faster than counting them. Returns the number of bins; *small: how many of them are g->small. */
size_t oct_bin_index_f32(const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small);

#endif
