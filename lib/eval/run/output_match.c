/* Answers by equality, rows by their nearest rows. */
#include "eval/run/output_match.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define NEAR 0.1 /* of the columns' largest magnitudes: a box moved by less than that is the same box */

oct_match_count oct_match_codes(const float *ref, size_t n_ref, const float *other, size_t n_other)
{
    const size_t both = n_ref < n_other ? n_ref : n_other;
    oct_match_count c = { 0, n_ref < n_other ? n_other : n_ref };
    for (size_t i = 0; i < both; i++)
        c.found += ref[i] == other[i];
    return c;
}

static bool is_whole(const float *v, size_t n, size_t columns)
{
    for (size_t i = 0; i < n; i++)
        if (v[i * columns] != floorf(v[i * columns]))
            return false;
    return true;
}

/* What a difference in a column is multiplied by; 0: values must be equal. */
static float scale_of(const float *ref, size_t n_ref, const float *other, size_t n_other, size_t columns)
{
    float most = 0;
    if (is_whole(ref, n_ref, columns) && is_whole(other, n_other, columns))
        return 0;
    for (size_t i = 0; i < n_ref; i++)
        most = fabsf(ref[i * columns]) > most ? fabsf(ref[i * columns]) : most;
    return most > 0 && isfinite(most) ? 1 / most : 0;
}

static bool is_near(const float *a, const float *b, size_t columns, const float *scale)
{
    double sum = 0;
    size_t n = 0;
    for (size_t k = 0; k < columns; k++) {
        if (scale[k] == 0 && a[k] != b[k])
            return false;
        const double d = ((double)a[k] - (double)b[k]) * (double)scale[k];
        sum += scale[k] == 0 ? 0 : d * d;
        n += scale[k] != 0;
    }
    return sum <= NEAR * NEAR * (double)n;
}

/* The row of the other that is like row i, or n_other. */
static size_t find_row(const float *row, size_t i, const float *other, size_t n_other, size_t columns,
                       const uint8_t *taken, const float *scale)
{
    for (size_t d = 0; d <= OCT_MATCH_REACH && (d <= i || i + d < n_other); d++) {
        if (i + d < n_other && !taken[i + d] && is_near(row, other + (i + d) * columns, columns, scale))
            return i + d;
        if (d && d <= i && i - d < n_other && !taken[i - d] && is_near(row, other + (i - d) * columns, columns, scale))
            return i - d;
    }
    return n_other;
}

enum { MOST_STEPS = 1 << 24 }; /* differences of two values */

static double distance(const float *a, const float *b, const float *scale, size_t columns)
{
    double sum = 0;
    for (size_t k = 0; k < columns; k++) {
        const double d = ((double)a[k] - (double)b[k]) * (double)scale[k];
        sum += d * d;
    }
    return isnan(sum) ? INFINITY : sum;
}

void oct_rows_by_nearest(const float *ref, const float *other, size_t n, size_t columns, float *to, uint8_t *taken)
{
    const size_t all = n * columns, reach = all ? MOST_STEPS / all / 2 + 1 : 0;
    float *scale = to + all - columns; /* the last row is written last */
    memset(taken, 0, n);
    for (size_t k = 0; k < columns && n; k++) {
        float most = 0;
        for (size_t i = 0; i < n; i++)
            most = fabsf(ref[i * columns + k]) > most ? fabsf(ref[i * columns + k]) : most;
        scale[k] = most > 0 && isfinite(most) ? 1 / most : 1;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t from = i > reach ? i - reach : 0, end = n - i > reach ? i + reach : n;
        size_t best = n;
        double least = INFINITY;
        for (size_t j = from; j < end; j++) {
            const double d = taken[j] ? INFINITY : distance(ref + i * columns, other + j * columns, scale, columns);
            if (!taken[j] && (best == n || d < least)) {
                best = j;
                least = d;
            }
        }
        for (size_t j = 0; j < n && best == n; j++) /* all near ones are taken */
            best = taken[j] ? n : j;
        taken[best] = 1;
        memcpy(to + i * columns, other + best * columns, columns * sizeof *to);
    }
}

oct_match_count oct_match_rows(const float *ref, size_t n_ref, const float *other, size_t n_other, size_t columns,
                               uint8_t *taken, float *scale)
{
    oct_match_count c = { 0, n_ref < n_other ? n_other : n_ref };
    memset(taken, 0, n_other);
    for (size_t k = 0; k < columns; k++)
        scale[k] = scale_of(ref + k, n_ref, other + k, n_other, columns);
    for (size_t i = 0; i < n_ref; i++) {
        const size_t at = find_row(ref + i * columns, i, other, n_other, columns, taken, scale);
        if (at < n_other) {
            taken[at] = 1;
            c.found++;
        }
    }
    return c;
}
