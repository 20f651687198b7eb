/* lib/cli: sparklines. */
#include "cli/chart.h"

#include <math.h>

/* First count of mark i of m: floor(i * n / m), which must not overflow. */
static size_t mark_begin(size_t i, size_t n, size_t m)
{
    return i * (n / m) + i * (n % m) / m;
}

static double mark_sum(const uint64_t *count, size_t n, size_t i, size_t m)
{
    double sum = 0;
    for (size_t k = mark_begin(i, n, m); k < mark_begin(i + 1, n, m); k++)
        sum += (double)count[k];
    return sum;
}

void oct_chart_spark(oct_buf *b, const uint64_t *count, size_t n, int columns, bool log, bool utf8)
{
    static const char *const block[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const ascii[] = { " ", ".", ".", ":", "-", "=", "+", "*", "#" };
    size_t m = columns < 1 ? 0 : n < (size_t)columns ? n : (size_t)columns;
    double most = 0;
    for (size_t i = 0; i < m; i++)
        most = fmax(most, mark_sum(count, n, i, m));
    for (size_t i = 0; i < m; i++) {
        double sum = mark_sum(count, n, i, m);
        double share = most <= 0 ? 0 : log ? log1p(sum) / log1p(most) : sum / most;
        int h = sum > 0 ? (int)ceil(share * 8) : 0;
        h = h > 8 ? 8 : h;
        oct_buf_puts(b, utf8 ? block[h] : ascii[h]);
    }
}
