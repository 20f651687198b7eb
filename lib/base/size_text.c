/* Sizes as people write them. */
#include "base/size_text.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

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
