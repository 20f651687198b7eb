/* bench/peaks.c -- prints what one core of this machine can do at most; start it pinned: taskset -c 0 build/bench/peaks */
#include "base/dtype.h"
#include "peak.h"

#include <stdio.h>

static void print_loads(void)
{
    static const struct { const char *name; size_t kb; } blocks[] = {
        { "16 KB", 16 }, { "256 KB", 256 }, { "4 MB", 4 << 10 }, { "16 MB", 16 << 10 }, { "128 MB", 128 << 10 },
    };
    printf("\n%-32s %9s\n", "loads from a block of", "GB/s");
    for (size_t i = 0; i < OCT_COUNT(blocks); i++)
        printf("%-32s %9.1f\n", blocks[i].name, oct_peak_load(blocks[i].kb << 10) * 1e-9);
}

int main(void)
{
    static const char *const kinds[] = { "f32", "bytes, exact", "bytes, exact where weights allow", "" };
    const oct_isa have = oct_isa_detect();
    const double clock = oct_peak_clock();
    size_t n;
    const oct_peak *p = oct_peaks(&n);
    printf("%s, %.2f GHz\n\n%-32s %9s %9s\n", oct_isa_name(have), clock * 1e-9, "instructions", "GMAC/s", "MAC/cycle");
    for (size_t i = 0; i < n; i++) {
        if (p[i].isa & ~have)
            continue;
        const double rate = oct_peak_measure(&p[i]);
        printf("%-32s %9.1f %9.1f  %s\n", p[i].name, rate * 1e-9, clock > 0 ? rate / clock : 0, kinds[p[i].kind]);
    }
    print_loads();
    return 0;
}
