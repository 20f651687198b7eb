/* lib/kernels/bgemm/flushing.h -- the mode of an x86 CPU in which vector instructions treat denormal numbers as
 * denormals.h says (FTZ and DAZ). What is to be computed in it stands in a function that is not inlined: compilers move
 * arithmetic across changes of the mode, but not across calls. Over SIMDe, which has no such mode, the four macros are
 * functions that flush. Internal. */
#ifndef OCT_KERNELS_FLUSHING_H
#define OCT_KERNELS_FLUSHING_H

#include "kernels/simd.h"

#define OCT_OUTLINE static __attribute__((noinline))

#if defined(OCT_SIMDE)
#define OCT_FMA256 oct_flushed_fma256
#define OCT_ADD256 oct_flushed_add256
#define OCT_FMA512 oct_flushed_fma512
#define OCT_ADD512 oct_flushed_add512
#define OCT_FLUSHING(call) call
#elif defined(__x86_64__)
#define OCT_FMA256 _mm256_fmadd_ps
#define OCT_ADD256 _mm256_add_ps
#define OCT_FMA512 _mm512_fmadd_ps
#define OCT_ADD512 _mm512_add_ps
#define OCT_FLUSHING(call)                  \
    do {                                    \
        const unsigned mode = _mm_getcsr(); \
        _mm_setcsr(mode | 0x8040);          \
        call;                               \
        _mm_setcsr(mode);                   \
    } while (0)
#endif

#endif
