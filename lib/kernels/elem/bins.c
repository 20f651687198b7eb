/* lib/kernels/elem/bins.c -- histogram bins: the table's kernels. */
#include "kernels/bins.h"

#include "kernels/elem/table.h"

#include <math.h>

void oct_scan_f32(const float *x, size_t n, float tiny, oct_scan *s)
{
    oct_elem()->scan(x, n, tiny, s);
}

size_t oct_count_equal_f32(const float *x, size_t n, float v)
{
    size_t count;
    oct_elem()->count_equal(x, n, v, &count);
    return count;
}

/* 23 bits of mantissa, less the bits that an octave's bins take: 11 of the three largest, and 3 from the eleventh
 * on. */
const int32_t oct_bin_shift[16] = { 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 20, 20, 20, 20, 20, 20 };

void oct_bin_lay(oct_bin_grid *g, int sign, int top, int32_t base, int32_t fine)
{
    g->scale[sign] = ldexpf(1.0f, 127 + OCT_GRID_TOP - 1 - top);
    g->base[sign] = base;
    g->fine[sign] = fine;
    g->top[sign] = top;
    for (int r = 0; r < 16; r++) {
        const int32_t u = 1 << (OCT_GRID_TOP - 1) >> r, step = u < 4096 ? u : u < 8192 ? 4096 : 6144;
        g->off[sign][r] = u < OCT_GRID_LEAST ? fine : base + step - ((top - r) << (23 - oct_bin_shift[r]));
    }
}

size_t oct_bin_index_f32(const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small)
{
    size_t n_bin;
    oct_elem()->bin_index(x, n, g, bin, &n_bin, small);
    return n_bin;
}
