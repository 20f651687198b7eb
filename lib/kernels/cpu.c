#define _DEFAULT_SOURCE
#include "kernels/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* A level and everything it stands on. */
static const struct {
    const char *name;
    oct_isa all;
} levels[] = {
    { "scalar", OCT_ISA_REF },
#define OCT_LEVEL(bit, name, below) { name, OCT_ISA_##bit | (below) },
#include "kernels/isas.inc"
#undef OCT_LEVEL
};

static _Atomic(const char *) no_amx = "this CPU has none";

#if defined(OCT_SIMDE)
/* Every instruction is there, in C. */
static oct_isa detect(void)
{
    return OCT_ISA_AVX2 | OCT_ISA_AVXVNNI | OCT_ISA_AVX512 | OCT_ISA_AVX512VNNI | OCT_ISA_AMX;
}
#elif defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static uint64_t xgetbv(void)
{
    uint32_t lo, hi;
    __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* Why there is no AMX, or NULL. It takes tiles and their products of bytes and of bf16; AVX-512 VNNI and VBMI, which
 * all CPUs with tiles have; a system that saves tiles; a palette of 8 tiles of 16 rows of 64 bytes (a hypervisor may
 * hide each of these); and the system's leave, which a process asks for once (arch/x86/xstate.rst of the Linux
 * kernel). */
static const char *why_no_amx(uint32_t features, uint32_t others, uint64_t os)
{
    enum { ALL = 1 << 22 | 1 << 24 | 1 << 25, VBMI = 1 << 1, VNNI = 1 << 11, SAVED = 3 << 17, PALETTES = 0x1d };
    uint32_t most, tile, row, rows, x;
    if ((others & (VBMI | VNNI)) != (VBMI | VNNI))
        return features & 1 << 24 ? "this CPU lacks AVX-512 VNNI or VBMI, which are used beside it"
                                  : "this CPU has none";
#if defined(OCT_TILES_TRAPPED) /* tests/check/trapped_tiles.c takes the CPU's place */
    return NULL;
#endif
    if ((features & ALL) != ALL)
        return "this CPU has none";
    if ((os & SAVED) != SAVED)
        return "the system does not save its tiles";
    if (!__get_cpuid_count(PALETTES, 0, &most, &x, &x, &x) || most < 1 ||
        !__get_cpuid_count(PALETTES, 1, &tile, &row, &rows, &x) || tile >> 16 != 1024 || (row & 0xffff) != 64 ||
        row >> 16 != 8 || (rows & 0xffff) != 16)
        return "this CPU has no palette of 8 tiles of 1024 bytes";
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ASK = 0x1023, TILES = 18 };
    if (syscall(SYS_arch_prctl, ASK, TILES) == 0)
        return NULL;
#endif
    return "the system refuses its tiles to this process";
}

static oct_isa detect(void)
{
    uint32_t a, b, c, d, a7, b7, c7, d7, a71 = 0, x;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return OCT_ISA_REF;
    uint64_t os = xgetbv();
    if ((os & 6) != 6 || !__get_cpuid_count(7, 0, &a7, &b7, &c7, &d7))
        return OCT_ISA_REF;
    if (a7 >= 1)
        __get_cpuid_count(7, 1, &a71, &x, &x, &x);
    if (!(c & bit_FMA) || !(c & bit_F16C) || !(b7 & bit_AVX2))
        return OCT_ISA_REF;
    oct_isa isa = OCT_ISA_AVX2;
    if (a71 & 1u << 4)
        isa |= OCT_ISA_AVXVNNI;
    const uint32_t need = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((os & 0xe6) == 0xe6 && (b7 & need) == need) {
        isa |= OCT_ISA_AVX512;
        if (c7 & 1u << 11)
            isa |= OCT_ISA_AVX512VNNI;
        no_amx = why_no_amx(d7, c7, os);
        if (!no_amx)
            isa |= OCT_ISA_AMX;
    }
    return isa;
}
#elif defined(__aarch64__) && !defined(__linux__)
static oct_isa detect(void)
{
    return OCT_ISA_NEON;
}
#elif defined(__aarch64__)
static oct_isa detect(void)
{
    /* Bits of AT_HWCAP and AT_HWCAP2 as the kernel documents them (arch/arm64 elf_hwcaps). */
    unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(26);
    oct_isa isa = OCT_ISA_NEON;
    if (cap & 1ul << 20)
        isa |= OCT_ISA_DOTPROD;
    if (cap2 & 1ul << 13)
        isa |= OCT_ISA_I8MM;
    return isa;
}
#else
static oct_isa detect(void)
{
    return OCT_ISA_REF;
}
#endif

oct_cpu_maker oct_cpu_made_by(void)
{
#if defined(__x86_64__) && !defined(OCT_SIMDE)
    uint32_t most, name[3], version, rest[3];
    if (!__get_cpuid(0, &most, &name[0], &name[2], &name[1]) || memcmp(name, "AuthenticAMD", sizeof name) != 0)
        return OCT_CPU_OTHER;
    if (oct_isa_detect() & OCT_ISA_AVX512 && __get_cpuid(1, &version, &rest[0], &rest[1], &rest[2])) {
        const uint32_t family = (version >> 8 & 15) + (version >> 20 & 255); /* the base is 15 where there is more */
        return family == 25 ? OCT_CPU_ZEN4 : OCT_CPU_AMD;
    }
    return OCT_CPU_AMD;
#else
    return OCT_CPU_OTHER;
#endif
}

/* cpuid is slow, and a trap in virtual machines: asked once. Threads that race store the same value. */
oct_isa oct_isa_detect(void)
{
    static atomic_uint found;
    const unsigned known = 1u << 31;
    unsigned isa = atomic_load_explicit(&found, memory_order_relaxed);
    if (!(isa & known)) {
        isa = detect() | known;
        atomic_store_explicit(&found, isa, memory_order_relaxed);
    }
    return isa & ~known;
}

const char *oct_isa_no_amx(void)
{
    return oct_isa_detect() & OCT_ISA_AMX ? NULL : no_amx;
}

/* Set once, by whichever thread asks first; limited only after limit. */
static _Atomic oct_isa limit = ~(oct_isa)0;
static atomic_bool limited;

oct_status oct_isa_limit(const char *name, oct_err *err)
{
    if (strcmp(name, "native") == 0) {
        limit = ~(oct_isa)0;
        limited = true;
        return OCT_OK;
    }
    for (size_t i = 0; i < OCT_COUNT(levels); i++)
        if (strcmp(name, levels[i].name) == 0) {
            if (levels[i].all & ~oct_isa_detect())
                return oct_fail(err, OCT_EUNSUPPORTED, "instruction set '%s': this CPU has only up to '%s'", name,
                                oct_isa_name(oct_isa_detect()));
            limit = levels[i].all;
            limited = true;
            return OCT_OK;
        }
    return oct_fail(err, OCT_EUSAGE, "instruction set '%s' is not one of %s", name, oct_isa_names());
}

oct_isa oct_isa_active(void)
{
    if (!limited) {
        const char *env = getenv("OCT_ISA");
        if (!env || oct_isa_limit(env, NULL) != OCT_OK)
            limited = true;
    }
    return oct_isa_detect() & limit;
}

const char *oct_isa_name(oct_isa isa)
{
    const char *best = "scalar";
    for (size_t i = 0; i < OCT_COUNT(levels); i++)
        if (levels[i].all && (levels[i].all & ~isa) == 0)
            best = levels[i].name;
    return best;
}

const char *oct_isa_level(size_t i)
{
    return i < OCT_COUNT(levels) ? levels[i].name : NULL;
}

const char *oct_isa_names(void)
{
    return "native, scalar"
#define OCT_LEVEL(bit, name, below) ", " name
#include "kernels/isas.inc"
#undef OCT_LEVEL
        ;
}
