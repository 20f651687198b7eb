/* tests/check/check_count.c -- histogram bins and sums of columns: every instruction set against the definition. */
#include "check.h"
#include "kernels/elem/table.h"
#include "kernels/math.h"

#include <math.h>

static const size_t sizes[] = { 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 255, 513, 1100 };

/* Where bins.h says that a value other than zero is counted. */
static int32_t bin_of(const oct_bin_grid *g, float x)
{
    const int sign = x < 0;
    int e;
    const double m = frexp(fabs((double)x), &e), u = floor(fabs((double)x) * (double)g->scale[sign]);
    if (g->least[sign] == INT32_MAX || fabsf(x) < oct_float_of(g->least[sign]))
        return g->small;
    if (u < OCT_GRID_LEAST)
        return g->fine[sign] + 8 * (e + 126) + (int32_t)(m * 16) -
               8; /* 2 m is 1 and more, and e - 1 + 127 the exponent's bits */
    const double step = u < 4096 ? u : u < 8192 ? 4096 + floor((u - 4096) / 2) : 6144 + floor((u - 8192) / 4);
    return g->base[sign] + (int32_t)step;
}

/* Takes zeros out of a list of bins, as a kernel may. */
static size_t without_zeros(const oct_bin_grid *g, int32_t *bin, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (bin[i] < g->zero || bin[i] >= g->zero + OCT_ZERO_BINS)
            bin[k++] = bin[i];
    return k;
}

/* With and without negative values on the grid. */
static void check_bins(oct_check *t, const oct_elem_table *k, bool negative)
{
    oct_bin_grid g = { .least = { oct_bits_of(0x1p-12f), negative ? oct_bits_of(0x1p-14f) : INT32_MAX },
                       .zero = 30000,
                       .small = 30008 };
    oct_bin_lay(&g, 0, 129, 100, 20000); /* values below 8, and below 0.5 */
    if (negative)
        oct_bin_lay(&g, 1, 125, 9000, 22000);
    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        const size_t n = sizes[i];
        float *x = oct_check_buffer(t, n * sizeof *x);
        int32_t *want = oct_check_buffer(t, n * sizeof *want), *got = oct_check_buffer(t, n * sizeof *got);
        size_t small = 0, n_want = 0, n_got, found;
        for (size_t c = 0; c < n; c++) {
            const float v = (float)(oct_check_below(t, 1 << 24) * 0x1p-24) * (oct_check_below(t, 4)   ? 1.0f
                                                                              : oct_check_below(t, 2) ? 0.001f
                                                                                                      : 1e-5f);
            x[c] = oct_check_below(t, 3) == 0           ? (oct_check_below(t, 2) ? 0.0f : -0.0f)
                   : oct_check_below(t, 2) || !negative ? v * 8.0f
                                                        : v * -0.5f;
            if (x[c] == 0)
                continue;
            want[n_want] = bin_of(&g, x[c]);
            small += want[n_want++] == g.small;
        }
        k->bin_index(x, n, &g, got, &n_got, &found);
        n_got = without_zeros(&g, got, n_got);
        oct_check_same(t, &n_want, &n_got, sizeof n_want, sizeof n_want, "values other than zero n %zu", n);
        oct_check_same(t, want, got, n_want * sizeof *want, sizeof *want, "bins n %zu", n);
        oct_check_same(t, &small, &found, sizeof small, sizeof small, "small values n %zu", n);
        oct_fill_f32_wild(t, x, n);
        x[n / 2] = i % 3 == 0 ? NAN : x[n / 2];
        oct_scan seen = { INFINITY, -INFINITY, false, false }, all = seen;
        size_t equal = 0;
        for (size_t c = 0; c < n; c++) {
            seen.min = x[c] < seen.min ? x[c] : seen.min;
            seen.max = x[c] > seen.max ? x[c] : seen.max;
            seen.nan |= x[c] != x[c];
            seen.small |= x[c] != 0 && fabsf(x[c]) < 0.01f;
            equal += x[c] == x[0];
        }
        k->scan(x, n, 0.01f, &all);
        k->count_equal(x, n, x[0], &found);
        oct_check_wrong(t, all.min != seen.min || all.max != seen.max, "extremes n %zu: %g, %g", n, (double)all.min,
                        (double)all.max);
        oct_check_wrong(t, all.nan != seen.nan || all.small != seen.small, "NaN %d and small values %d seen, n %zu",
                        all.nan, all.small, n);
        oct_check_same(t, &equal, &found, sizeof equal, sizeof equal, "equal values n %zu", n);
        oct_check_release(t);
    }
}

/* Values that are multiples of 2^-10 below 2^10: their sums are exact in a double however they are taken. */
static void check_columns(oct_check *t, const oct_elem_table *k)
{
    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        const size_t rows = sizes[i], stride = OCT_COLUMNS + oct_check_below(t, 5);
        float *x = oct_check_buffer(t, rows * stride * sizeof *x);
        oct_columns c;
        for (size_t e = 0; e < rows * stride; e++)
            x[e] = (float)(int)(oct_check_below(t, 1 << 21) - (1 << 20)) * 0x1p-10f;
        k->columns(x, rows, stride, &c);
        oct_check_wrong(t, c.inexact, "sums of %zu rows are called inexact", rows);
        size_t bad = 0;
        for (size_t col = 0; col < OCT_COLUMNS; col++) {
            double sum = 0;
            float min = x[col], max = x[col];
            for (size_t r = 0; r < rows; r++) {
                const float v = x[r * stride + col];
                sum += (double)v;
                min = v < min ? v : min;
                max = v > max ? v : max;
            }
            bad += c.min[col] != min || c.max[col] != max || c.sum[0][col] + c.sum[1][col] != sum;
        }
        oct_check_wrong(t, bad, "extremes or sums of %zu columns of %zu rows", bad, rows);
        x[rows / 2 * stride + 3] = 0x1p-80f;
        k->columns(x, rows, stride, &c);
        oct_check_wrong(t, !c.inexact, "a value that fits no part in %zu rows", rows);
        x[rows / 2 * stride + 3] = INFINITY;
        k->columns(x, rows, stride, &c);
        oct_check_wrong(t, !c.inexact, "infinity in %zu rows", rows);
        oct_check_release(t);
    }
}

void check_count(oct_check *t)
{
    size_t n;
    const oct_elem_table *k = oct_elem_tables(&n);
    for (size_t i = 0; i < n; i++)
        if ((k[i].isa & ~oct_isa_active()) == 0) {
            check_bins(t, &k[i], true);
            check_bins(t, &k[i], false);
            check_columns(t, &k[i]);
        }
}
