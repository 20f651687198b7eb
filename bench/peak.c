/* Loops in assembly, since a compiler would spill or merge what is to be measured. The registers are renamed by the
 * CPU, so products may take the same ones again and again; sums are spread, as each waits for the one before. */
#include "peak.h"

#include "base/mem.h"

#include <string.h>
#include <time.h>

enum { REPEATS = 100, LEAST_LOADED = 8 << 20 };
static const double REPEAT_SECONDS = 0.001; /* short, as others may empty the caches in between */

#if defined(__x86_64__)

#define ALL_REGISTERS                                                                                          \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15"
/* A function that runs the body n times on zeros; v is the kind of register. */
#define LOOP(name, v, body)                                                                                           \
    static void name(long n)                                                                                          \
    {                                                                                                                 \
        __asm__ volatile("vpxor %%xmm13,%%xmm13,%%xmm13\n vpxor %%xmm14,%%xmm14,%%xmm14\n"                            \
                         "vpxor %%xmm15,%%xmm15,%%xmm15\n .p2align 5\n 1:\n" body(v) "dec %0\n jnz 1b\n vzeroupper\n" \
                         : "+r"(n)::ALL_REGISTERS, "cc");                                                             \
    }
#define OP(op, v, a, b, to) op " %%" v #a ",%%" v #b ",%%" v #to "\n"
/* Operands in 14 and 15, ones in 13. */
#define FMA(v, to) OP("vfmadd231ps", v, 14, 15, to)
#define MADD(v, to) OP("vpmaddwd", v, 14, 15, to)
#define BYTES(v, to) OP("vpmaddubsw", v, 14, 15, to)
#define DOT(v, to) OP("vpdpbusd", v, 14, 15, to)
#define DOT_VEX(v, to) "%{vex%} " DOT(v, to)
#define WIDEN(v, at) OP("vpmaddwd", v, 13, at, at)
#define ADD16(v, from, to) OP("vpaddw", v, from, to, to)
#define ADD32(v, from, to) OP("vpaddd", v, from, to, to)

#define TWELVE(f, v) f(v, 0) f(v, 1) f(v, 2) f(v, 3) f(v, 4) f(v, 5) f(v, 6) f(v, 7) f(v, 8) f(v, 9) f(v, 10) f(v, 11)
#define FMA_BODY(v) TWELVE(FMA, v)
#define DOT_BODY(v) TWELVE(DOT, v)
#define DOT_VEX_BODY(v) TWELVE(DOT_VEX, v)
/* Six sums of one step each. */
#define SIX(step, v) step(v, 0, 6) step(v, 1, 7) step(v, 2, 8) step(v, 3, 9) step(v, 4, 10) step(v, 5, 11)
#define MADD_STEP(v, p, sum) MADD(v, p) ADD32(v, p, sum)
#define MADD_BODY(v) SIX(MADD_STEP, v)
#define CHAIN1(v, p, sum) BYTES(v, p) WIDEN(v, p) ADD32(v, p, sum)
#define CHAIN1_BODY(v) SIX(CHAIN1, v)
#define CHAIN2(v, p, sum) BYTES(v, p) BYTES(v, 12) ADD16(v, 12, p) WIDEN(v, p) ADD32(v, p, sum)
#define CHAIN2_BODY(v) SIX(CHAIN2, v)
#define CHAIN3(v, p, sum) \
    BYTES(v, p) BYTES(v, 12) ADD16(v, 12, p) BYTES(v, 12) ADD16(v, 12, p) WIDEN(v, p) ADD32(v, p, sum)
#define CHAIN3_BODY(v) SIX(CHAIN3, v)
#define CHAIN4(v, p, sum) \
    BYTES(v, p)           \
    BYTES(v, 12) ADD16(v, 12, p) BYTES(v, 12) ADD16(v, 12, p) BYTES(v, 12) ADD16(v, 12, p) WIDEN(v, p) ADD32(v, p, sum)
#define CHAIN4_BODY(v) SIX(CHAIN4, v)
#define SHORT_STEP(v, p, sum) BYTES(v, p) ADD16(v, p, sum)
#define SHORT_BODY(v) SIX(SHORT_STEP, v)

LOOP(fma_ymm, "ymm", FMA_BODY)
LOOP(madd_ymm, "ymm", MADD_BODY)
LOOP(chain1_ymm, "ymm", CHAIN1_BODY)
LOOP(chain2_ymm, "ymm", CHAIN2_BODY)
LOOP(chain3_ymm, "ymm", CHAIN3_BODY)
LOOP(chain4_ymm, "ymm", CHAIN4_BODY)
LOOP(short_ymm, "ymm", SHORT_BODY)
LOOP(dot_vex_ymm, "ymm", DOT_VEX_BODY)
LOOP(fma_zmm, "zmm", FMA_BODY)
LOOP(madd_zmm, "zmm", MADD_BODY)
LOOP(chain1_zmm, "zmm", CHAIN1_BODY)
LOOP(chain4_zmm, "zmm", CHAIN4_BODY)
LOOP(dot_ymm, "ymm", DOT_BODY)
LOOP(dot_zmm, "zmm", DOT_BODY)

/* Products of 16 rows of 64 bytes and 16 columns; loading the configuration clears the tiles. */
#define TILES(name, op)                                                                                         \
    static void name(long n)                                                                                    \
    {                                                                                                           \
        __asm__ volatile("ldtilecfg %1\n .p2align 5\n 1:\n" op " %%tmm7,%%tmm6,%%tmm0\n" op                     \
                         " %%tmm7,%%tmm6,%%tmm1\n" op " %%tmm7,%%tmm6,%%tmm2\n" op " %%tmm7,%%tmm6,%%tmm3\n" op \
                         " %%tmm7,%%tmm6,%%tmm4\n" op " %%tmm7,%%tmm6,%%tmm5\n dec %0\n jnz 1b\n tilerelease\n" \
                         : "+r"(n)                                                                              \
                         : "m"(whole_tiles)                                                                     \
                         : "cc");                                                                               \
    }
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} whole_tiles = { .palette = 1,
                  .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
                  .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };
TILES(dot_tiles, "tdpbusd")
TILES(bf16_tiles, "tdpbf16ps")

static const oct_peak peaks[] = {
    { "fma ymm", OCT_PEAK_FLOAT, OCT_ISA_AVX2, 12 * 8, fma_ymm },
    { "maddwd+add ymm", OCT_PEAK_WIDE, OCT_ISA_AVX2, 6 * 16, madd_ymm },
    { "maddubs+madd+add ymm", OCT_PEAK_OTHER, OCT_ISA_AVX2, 6 * 32, chain1_ymm },
    { "2 maddubs in 16 bits ymm", OCT_PEAK_BYTES, OCT_ISA_AVX2, 6 * 64, chain2_ymm },
    { "3 maddubs in 16 bits ymm", OCT_PEAK_BYTES, OCT_ISA_AVX2, 6 * 96, chain3_ymm },
    { "4 maddubs in 16 bits ymm", OCT_PEAK_BYTES, OCT_ISA_AVX2, 6 * 128, chain4_ymm },
    { "maddubs, all in 16 bits ymm", OCT_PEAK_OTHER, OCT_ISA_AVX2, 6 * 32, short_ymm },
    { "dpbusd ymm (AVX-VNNI)", OCT_PEAK_WIDE, OCT_ISA_AVXVNNI, 12 * 32, dot_vex_ymm },
    { "fma zmm", OCT_PEAK_FLOAT, OCT_ISA_AVX512, 12 * 16, fma_zmm },
    { "maddwd+add zmm", OCT_PEAK_WIDE, OCT_ISA_AVX512, 6 * 32, madd_zmm },
    { "maddubs+madd+add zmm", OCT_PEAK_OTHER, OCT_ISA_AVX512, 6 * 64, chain1_zmm },
    { "4 maddubs in 16 bits zmm", OCT_PEAK_BYTES, OCT_ISA_AVX512, 6 * 256, chain4_zmm },
    { "dpbusd ymm", OCT_PEAK_WIDE, OCT_ISA_AVX512VNNI, 12 * 32, dot_ymm },
    { "dpbusd zmm", OCT_PEAK_WIDE, OCT_ISA_AVX512VNNI, 12 * 64, dot_zmm },
    { "tdpbusd", OCT_PEAK_WIDE, OCT_ISA_AMX, 6 * 16 * 16 * 64, dot_tiles },
    { "tdpbf16ps", OCT_PEAK_BF16, OCT_ISA_AMX, 6 * 16 * 16 * 32, bf16_tiles },
};

/* 8 loads of 32 bytes a step; bytes is a multiple of 256. */
static bool load_all(const uint8_t *p, size_t bytes)
{
    if (!(oct_isa_detect() & OCT_ISA_AVX2))
        return false;
    const uint8_t *end = p + bytes;
    __asm__ volatile(
        ".p2align 5\n 1:\n vmovdqa (%0),%%ymm0\n vmovdqa 32(%0),%%ymm1\n vmovdqa 64(%0),%%ymm2\n"
        "vmovdqa 96(%0),%%ymm3\n vmovdqa 128(%0),%%ymm4\n vmovdqa 160(%0),%%ymm5\n vmovdqa 192(%0),%%ymm6\n"
        "vmovdqa 224(%0),%%ymm7\n add $256,%0\n cmp %1,%0\n jne 1b\n vzeroupper\n"
        : "+r"(p)
        : "r"(end)
        : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc", "memory");
    return true;
}

/* Eight additions that wait for each other. What is added is a register, since CPUs from Golden Cove on merge additions
 * of small constants before they are executed. */
static bool count_cycles(long n)
{
    long x = 0;
    const long step = 1;
    __asm__ volatile(
        "1:\n add %2,%1\n add %2,%1\n add %2,%1\n add %2,%1\n add %2,%1\n add %2,%1\n add %2,%1\n add %2,%1\n"
        "dec %0\n jnz 1b\n"
        : "+&r"(n), "+&r"(x)
        : "r"(step)
        : "cc");
    return true;
}

#elif defined(__aarch64__)

#define ALL_REGISTERS                                                                                            \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v30", "v31"
#define LOOP(name, arch, body)                                                                                \
    static void name(long n)                                                                                  \
    {                                                                                                         \
        __asm__ volatile(arch "movi v30.16b, #0\n movi v31.16b, #0\n 1:\n" body "subs %0, %0, #1\n b.ne 1b\n" \
                         : "+r"(n)::ALL_REGISTERS, "cc");                                                     \
    }
#define TWELVE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define FMLA(to) "fmla v" #to ".4s, v30.4s, v31.4s\n"
#define MLAL(to) "smlal v" #to ".4s, v30.4h, v31.4h\n"
#define SDOT(to) "sdot v" #to ".4s, v30.16b, v31.16b\n"
#define MMLA(to) "smmla v" #to ".4s, v30.16b, v31.16b\n"

LOOP(fmla, "", TWELVE(FMLA))
LOOP(mlal, "", TWELVE(MLAL))
LOOP(sdot, ".arch armv8.2-a+dotprod\n", TWELVE(SDOT))
LOOP(mmla, ".arch armv8.2-a+i8mm\n", TWELVE(MMLA))

static const oct_peak peaks[] = {
    { "fmla 4s", OCT_PEAK_FLOAT, OCT_ISA_NEON, 12 * 4, fmla },
    { "smlal 4s", OCT_PEAK_WIDE, OCT_ISA_NEON, 12 * 4, mlal },
    { "sdot 4s", OCT_PEAK_WIDE, OCT_ISA_DOTPROD, 12 * 16, sdot },
    { "smmla 4s", OCT_PEAK_WIDE, OCT_ISA_I8MM, 12 * 32, mmla },
};

static bool load_all(const uint8_t *p, size_t bytes)
{
    const uint8_t *end = p + bytes;
    __asm__ volatile("1:\n ldp q0, q1, [%0]\n ldp q2, q3, [%0, #32]\n ldp q4, q5, [%0, #64]\n ldp q6, q7, [%0, #96]\n"
                     "add %0, %0, #128\n cmp %0, %1\n b.ne 1b\n"
                     : "+r"(p)
                     : "r"(end)
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "cc", "memory");
    return true;
}

static bool count_cycles(long n)
{
    long x = 0;
    const long step = 1; /* a register, as on x86 */
    __asm__ volatile(
        "1:\n add %1, %1, %2\n add %1, %1, %2\n add %1, %1, %2\n add %1, %1, %2\n add %1, %1, %2\n add %1, %1, %2\n"
        "add %1, %1, %2\n add %1, %1, %2\n subs %0, %0, #1\n b.ne 1b\n"
        : "+&r"(n), "+&r"(x)
        : "r"(step)
        : "cc");
    return true;
}

#else

static const oct_peak peaks[] = { { NULL } };

static bool load_all(const uint8_t *p, size_t bytes)
{
    return false;
}

static bool count_cycles(long n)
{
    return false;
}

#endif

double oct_peak_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

const oct_peak *oct_peaks(size_t *n)
{
    *n = peaks[0].name ? OCT_COUNT(peaks) : 0;
    return peaks;
}

double oct_peak_measure(const oct_peak *p)
{
    long n = 1000;
    double best = 0, seconds;
    for (;; n *= 2) {
        const double begin = oct_peak_seconds();
        p->pass(n);
        if (oct_peak_seconds() - begin > REPEAT_SECONDS)
            break;
    }
    for (int i = 0; i < REPEATS; i++) {
        const double begin = oct_peak_seconds();
        p->pass(n);
        seconds = oct_peak_seconds() - begin;
        if ((double)n * p->macs / seconds > best)
            best = (double)n * p->macs / seconds;
    }
    return best;
}

double oct_peak_of(oct_peak_kind kind, oct_isa have)
{
    size_t n;
    double best = 0;
    const oct_peak *p = oct_peaks(&n);
    for (size_t i = 0; i < n; i++) {
        const bool fits = p[i].kind == kind || (kind == OCT_PEAK_BYTES && p[i].kind == OCT_PEAK_WIDE);
        const double rate = fits && (p[i].isa & ~have) == 0 ? oct_peak_measure(&p[i]) : 0;
        best = rate > best ? rate : best;
    }
    return best;
}

double oct_peak_load(size_t bytes)
{
    bytes = (bytes + 1023) / 1024 * 1024;
    uint8_t *p = oct_alloc(bytes);
    if (!p)
        return 0;
    memset(p, 1, bytes);
    const size_t times = bytes < LEAST_LOADED ? LEAST_LOADED / bytes : 1;
    double best = 0;
    bool known = true;
    for (int i = 0; i < REPEATS && known; i++) {
        const double begin = oct_peak_seconds();
        for (size_t k = 0; k < times && known; k++)
            known = load_all(p, bytes);
        const double rate = known ? (double)times * (double)bytes / (oct_peak_seconds() - begin) : 0;
        best = rate > best ? rate : best;
    }
    oct_free(p);
    return best;
}

double oct_peak_clock(void)
{
    const long n = 400000;
    double best = 0;
    for (int i = 0; i < REPEATS; i++) {
        const double begin = oct_peak_seconds();
        if (!count_cycles(n))
            return 0;
        const double rate = 8 * (double)n / (oct_peak_seconds() - begin);
        best = rate > best ? rate : best;
    }
    return best;
}
