/* lib/kernels/simd.h -- the one place intrinsics come from. A build with OCT_SIMDE puts SIMDe underneath, so that every
 * x86 kernel can be checked on a machine without its instructions; what SIMDe lacks is in simd_portable.h. */
#ifndef OCT_KERNELS_SIMD_H
#define OCT_KERNELS_SIMD_H

#if defined(OCT_SIMDE)
#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_INLINE
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Kernel bodies take constants (tile height, sign flip) as arguments and are inlined once per value. */
#define OCT_INLINE static inline __attribute__((always_inline))

/* OCT_RELOAD(p): the compiler must reload *p from here on. Constants of a loop are then memory operands, which cost
 * nothing and leave registers for its values. OCT_KEEP(v): makes the compiler compute v here, into a register; it would
 * otherwise regroup sums and run out of registers. */
#if defined(OCT_SIMDE)
#define OCT_KEEP(v) ((void)(v))
#define OCT_RELOAD(p) ((void)(p))
#include "kernels/simd_portable.h"
#else
#define OCT_KEEP(v) __asm__("" : "+v"(v))
#define OCT_RELOAD(p) __asm__("" : "+r"(p))
#endif

#endif
