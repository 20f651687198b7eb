/* lib/kernels/elem/bins.c -- histogram bins: the table's kernels. */
#include "kernels/bins.h"

#include "kernels/elem/table.h"

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

size_t oct_bin_index_f32(const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small)
{
    size_t n_bin;
    oct_elem()->bin_index(x, n, g, bin, &n_bin, small);
    return n_bin;
}
