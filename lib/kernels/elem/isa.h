/* lib/kernels/elem/isa.h -- what the files compiled once per instruction set share (k_*.c).
 *
 * Such a file is plain C whose loops the compiler vectorises. The build compiles it once for the baseline
 * (OCT_KISA=ref, the definition) and once per faster level, with that level's flags and nothing that lets the
 * compiler change a result; K(name) gives each copy's functions their own names. */
#ifndef OCT_KERNELS_ELEM_ISA_H
#define OCT_KERNELS_ELEM_ISA_H

#include "kernels/elem/table.h"
#include "kernels/math.h"
#include "kernels/simd.h"

#ifndef OCT_KISA
#define OCT_KISA ref
#endif
#define OCT_KCAT_(a, b) a##__##b
#define OCT_KCAT(a, b) OCT_KCAT_(a, b)
#define K(name) OCT_KCAT(oct_##name, OCT_KISA)

/* In front of a loop whose iterations touch no other iteration's memory (y may be x itself). */
#if defined(__clang__)
#define OCT_EACH _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define OCT_EACH _Pragma("GCC ivdep")
#endif

/* Larger and smaller with NaN winning; once a is NaN it stays. Bitwise or: no branch. */
static inline float nan_max(float a, float x)
{
    return ((x > a) | (x != x)) ? x : a;
}
static inline float nan_min(float a, float x)
{
    return ((x < a) | (x != x)) ? x : a;
}

/* Whether the bits of every x[i * stride], after `mask`, are below `limit`: functions of floats have short forms for
 * most arguments. A block has few enough elements that one other argument does not slow many. */
enum { OCT_SCREEN_BLOCK = 256 };
static inline bool all_below(const float *x, ptrdiff_t stride, size_t n, uint32_t mask, float limit)
{
    uint32_t most = 0;
    if (stride == 1) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t b = (uint32_t)oct_bits_of(x[i]) & mask;
            most = b > most ? b : most;
        }
    } else {
        for (ptrdiff_t i = 0; i < (stride == 0 ? 1 : (ptrdiff_t)n); i++) {
            const uint32_t b = (uint32_t)oct_bits_of(x[i * stride]) & mask;
            most = b > most ? b : most;
        }
    }
    return most < (uint32_t)oct_bits_of(limit);
}

/* Round to the range of quantized values: v is clamped to [lo, hi] (NaN to lo), then rounded half to even. */
static inline int32_t round_clamped(float v, float lo, float hi)
{
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return oct_round_small(v);
}

#endif
