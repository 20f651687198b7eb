/* bench/peaks.c -- prints what one core of this machine can do at most; start it pinned: taskset -c 0 build/bench/peaks
 *
 * With --kinds: a line each, a tab between name and value, for programs: the highest level of the CPU, its clock in
 * GHz, and the peaks in GMAC/s of float32, of bytes and of bf16 that OCT_ISA leaves; 0 where there is none. */
#include "base/dtype.h"
#include "kernels/cpu.h"
#include "peak.h"

#include <stdio.h>
#include <string.h>

static void print_loads(void)
{
    static const struct {
        const char *name;
        size_t kb;
    } blocks[] = {
        { "16 KB", 16 }, { "256 KB", 256 }, { "4 MB", 4 << 10 }, { "16 MB", 16 << 10 }, { "128 MB", 128 << 10 },
    };
    printf("\n%-32s %9s\n", "loads from a block of", "GB/s");
    for (size_t i = 0; i < OCT_COUNT(blocks); i++)
        printf("%-32s %9.1f\n", blocks[i].name, oct_peak_load(blocks[i].kb << 10) * 1e-9);
}

static void print_kinds(void)
{
    const oct_isa isa = oct_isa_active();
    printf("class\t%s\nclock\t%.3f\n", oct_isa_name(oct_isa_detect()), oct_peak_clock() * 1e-9);
    printf("float\t%.1f\nbytes\t%.1f\n", oct_peak_of(OCT_PEAK_FLOAT, isa) * 1e-9,
           oct_peak_of(OCT_PEAK_BYTES, isa) * 1e-9);
    printf("bf16\t%.1f\n", oct_peak_of(OCT_PEAK_BF16, isa) * 1e-9);
}

static void print_all(void)
{
    static const char *const kinds[] = { "f32", "bytes, exact", "bytes, exact where weights allow", "bf16", "" };
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
}

int main(int argc, char **argv)
{
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--kinds") != 0)) {
        fprintf(stderr, "usage: peaks [--kinds]\n");
        return OCT_EUSAGE;
    }
    if (argc == 2)
        print_kinds();
    else
        print_all();
    return 0;
}
