/* Numbers with units, as people read and write them. */
#include "base/number_text.h"

#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *not_finite(char dst[32], double x)
{
    snprintf(dst, 32, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    return dst;
}

/* Three digits that matter: 0.0123, 0.123, 1.23, 12.3, 123; below that what four decimals show. */
static void three(char dst[32], double x, const char *unit)
{
    double a = fabs(x);
    int decimals = a == 0 ? 2 : a < 0.09995 ? 4 : a < 0.9995 ? 3 : a < 9.995 ? 2 : a < 99.95 ? 1 : 0;
    snprintf(dst, 32, "%.*f %s", decimals, x, unit);
}

const char *oct_fmt_bytes(char dst[32], uint64_t bytes)
{
    static const char *const unit[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
    if (bytes < 1000) {
        snprintf(dst, 32, "%u B", (unsigned)bytes);
        return dst;
    }
    double x = (double)bytes / 1000;
    size_t u = 0;
    while (x >= 999.5 && u + 1 < OCT_COUNT(unit)) {
        x /= 1000;
        u++;
    }
    three(dst, x, unit[u]);
    return dst;
}

const char *oct_fmt_seconds(char dst[32], double seconds)
{
    if (!isfinite(seconds))
        return not_finite(dst, seconds);
    double a = fabs(seconds);
    if (a < 0.9995e-3)
        snprintf(dst, 32, "%.0f us", seconds * 1e6);
    else if (a < 0.9995)
        three(dst, seconds * 1e3, "ms");
    else if (a < 99.95)
        three(dst, seconds, "s");
    else if (a < 1e15)
        snprintf(dst, 32, "%" PRId64 " min %02d s", (int64_t)(seconds + 0.5) / 60,
                 (int)llabs((int64_t)(seconds + 0.5) % 60));
    else
        snprintf(dst, 32, "%.3g s", seconds);
    return dst;
}

const char *oct_fmt_ms(char dst[32], double seconds)
{
    if (!isfinite(seconds))
        return not_finite(dst, seconds);
    if (fabs(seconds) < 1e12)
        three(dst, seconds * 1e3, "ms");
    else
        snprintf(dst, 32, "%.3g ms", seconds * 1e3);
    return dst;
}

const char *oct_fmt_percent(char dst[32], double fraction)
{
    if (!isfinite(fraction))
        return not_finite(dst, fraction);
    snprintf(dst, 32, fabs(fraction) < 1e6 ? "%.2f %%" : "%.3g %%", fraction * 100);
    return dst;
}

const char *oct_fmt_db(char dst[32], double db)
{
    if (db == INFINITY)
        snprintf(dst, 32, "exact");
    else if (!isfinite(db))
        return not_finite(dst, db);
    else
        snprintf(dst, 32, fabs(db) < 1e6 ? "%.1f dB" : "%.3g dB", db);
    return dst;
}

const char *oct_fmt_count(char dst[32], int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0)
            dst[at++] = ' ';
        dst[at++] = digits[i];
    }
    dst[at] = 0;
    return dst;
}

const char *oct_fmt_clock(char dst[32], double seconds)
{
    if (!(seconds >= 0 && seconds < 360000)) {
        snprintf(dst, 32, "--:--");
        return dst;
    }
    int s = (int)(seconds + 0.5);
    if (s < 3600)
        snprintf(dst, 32, "%d:%02d", s / 60, s % 60);
    else
        snprintf(dst, 32, "%d:%02d:%02d", s / 3600, s / 60 % 60, s % 60);
    return dst;
}

bool oct_size_text(const char *text, uint64_t *bytes, double *share)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = { { "", 1 },     { "B", 1 },      { "kB", 1e3 },      { "MB", 1e6 },
                  { "GB", 1e9 }, { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 } };
    char *end;
    const double x = strtod(text, &end);
    const bool number = end != text && x > 0 && x <= 1e15;
    *bytes = 0;
    *share = 0;
    if (number && strcmp(end, "%") == 0 && x <= 1000)
        *share = x / 100;
    for (size_t i = 0; i < OCT_COUNT(units) && number; i++)
        if (strcmp(end, units[i].unit) == 0 && x * units[i].bytes >= 1)
            *bytes = (uint64_t)(x * units[i].bytes);
    return *share > 0 || *bytes;
}
