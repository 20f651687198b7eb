/* lib/kernels/bgemm/bgemm_int.h -- prototypes of the kernels in bgemm.inc. Internal. */
#ifndef OCT_KERNELS_BGEMM_INT_H
#define OCT_KERNELS_BGEMM_INT_H

#include "kernels/bgemm/bgemm.h"

#define OCT_BGEMM(isa, fn, mr, nr, panel)                                                                       \
    void fn(size_t, size_t, size_t, size_t, const float *const *, const float *, float *, size_t, bool, bool,   \
            const oct_sout *);
#include "kernels/bgemm/bgemm.inc"
#undef OCT_BGEMM

#endif
