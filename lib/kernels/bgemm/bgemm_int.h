/* lib/kernels/bgemm/bgemm_int.h -- prototypes of the kernels in bgemm.inc. Internal. */
#ifndef OCT_KERNELS_BGEMM_INT_H
#define OCT_KERNELS_BGEMM_INT_H

#include "kernels/bgemm/bgemm.h"

#include <float.h>
#include <math.h>

#define OCT_BGEMM(isa, fn, mr, nr, panel)                                                                     \
    void fn(size_t, size_t, size_t, size_t, const float *const *, const float *, float *, size_t, bool, bool, \
            const oct_sout *);
#include "kernels/bgemm/bgemm.inc"
#undef OCT_BGEMM

/* Whether the last step of a sum is the same where denormal numbers are zeros: sums are none, and there is nothing else
 * that could be. */
static inline bool oct_bgemm_ends_flushed(const oct_sout *o)
{
    return !o->residual &&
           (!o->clamp || (!(fabsf(o->lo) < FLT_MIN && o->lo != 0) && !(fabsf(o->hi) < FLT_MIN && o->hi != 0)));
}

#endif
