/* lib/kernels/cpu.h -- instruction sets: those that this CPU has, and those that may be used. */
#ifndef OCT_KERNELS_CPU_H
#define OCT_KERNELS_CPU_H

#include "base/status.h"

/* A build has the kernels of its machine or, built on SIMDe (kernels/simd.h), those of x86. */
#if defined(__x86_64__) || defined(OCT_SIMDE)
#define OCT_KERNELS_X86
#elif defined(__aarch64__)
#define OCT_KERNELS_ARM
#endif

/* A bit mask. A kernel states the bits it needs; it may run when all are in oct_isa_active(). */
typedef uint32_t oct_isa;
enum {
#define OCT_LEVEL(bit, name, below) OCT_ISA_PLACE_##bit,
#include "kernels/isas.inc"
#undef OCT_LEVEL
    OCT_ISA_COUNT
};
enum {
    OCT_ISA_REF = 0, /* plain C, runs everywhere */
#define OCT_LEVEL(bit, name, below) OCT_ISA_##bit = 1 << OCT_ISA_PLACE_##bit,
#include "kernels/isas.inc"
#undef OCT_LEVEL
};

/* What the CPU and the operating system support; detected once. */
oct_isa oct_isa_detect(void);

/* The reason why OCT_ISA_AMX is not among them, as part of a sentence; NULL if it is. */
const char *oct_isa_no_amx(void);

/* What kernels may use: detected, narrowed by oct_isa_limit() or by OCT_ISA in the environment. */
oct_isa oct_isa_active(void);

/* Restricts kernels to a named level and those that it includes; "scalar": plain C; "native": everything that is
 * detected. OCT_EUSAGE for an unknown name, OCT_EUNSUPPORTED for one this CPU lacks. Call it before any plan is made:
 * plans keep the kernels they were made with. */
oct_status oct_isa_limit(const char *name, oct_err *err);

/* Name of the highest level in a mask, for reports. */
const char *oct_isa_name(oct_isa isa);
/* Name of the i-th level, "scalar" first; NULL behind the last. */
const char *oct_isa_level(size_t i);
/* CPUs of one level whose instructions have other timings: Zen 4 does 512 bits in two halves, Zen 5 at once. */
typedef enum oct_cpu_maker { OCT_CPU_OTHER, OCT_CPU_AMD, OCT_CPU_ZEN4, OCT_CPU_MAKERS } oct_cpu_maker;
oct_cpu_maker oct_cpu_made_by(void);
/* "native, scalar, avx2, ...", for --help. */
const char *oct_isa_names(void);

#endif
