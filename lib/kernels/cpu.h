/* lib/kernels/cpu.h -- instruction sets: what this CPU has, and what we may use of it. */
#ifndef OCT_KERNELS_CPU_H
#define OCT_KERNELS_CPU_H

#include "base/status.h"

/* Which kernels a build has: those of its machine; with SIMDe underneath (kernels/simd.h), those of x86. */
#if defined(__x86_64__) || defined(OCT_SIMDE)
#define OCT_KERNELS_X86
#elif defined(__aarch64__)
#define OCT_KERNELS_ARM
#endif

/* A bit mask. A kernel states the bits it needs; it may run when all are in oct_isa_active(). */
typedef uint32_t oct_isa;
enum {
    OCT_ISA_REF = 0,             /* plain C, runs everywhere        */
    OCT_ISA_AVX2 = 1 << 0,       /* AVX2, FMA, F16C                 */
    OCT_ISA_AVX512 = 1 << 1,     /* AVX-512 F, BW, DQ, VL           */
    OCT_ISA_AVX512VNNI = 1 << 2,
    OCT_ISA_AVXVNNI = 1 << 3,
    OCT_ISA_NEON = 1 << 8,
    OCT_ISA_DOTPROD = 1 << 9,
    OCT_ISA_I8MM = 1 << 10,
    OCT_ISA_FP16 = 1 << 11,
};

/* What the CPU and the operating system support; detected once. */
oct_isa oct_isa_detect(void);

/* What kernels may use: detected, narrowed by oct_isa_limit() or by OCT_ISA in the environment. */
oct_isa oct_isa_active(void);

/* Narrows to a named level and all below it: "scalar", "avx2", "avx512", "avx512vnni", "avxvnni", "neon",
 * "dotprod", "i8mm", "native". OCT_EUSAGE for an unknown name, OCT_EUNSUPPORTED for one this CPU lacks.
 * Call it before any plan is made: plans keep the kernels they were made with. */
oct_status oct_isa_limit(const char *name, oct_err *err);

/* Name of the highest level in a mask, for reports. */
const char *oct_isa_name(oct_isa isa);
/* "scalar, avx2, ...", for --help. */
const char *oct_isa_names(void);

#endif
