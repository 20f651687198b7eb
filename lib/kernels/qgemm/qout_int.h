/* lib/kernels/qgemm/qout_int.h -- prototypes of the last steps in qout.inc. Internal. */
#ifndef OCT_KERNELS_QOUT_INT_H
#define OCT_KERNELS_QOUT_INT_H

#include "kernels/qgemm/qout.h"

#define OCT_QOUT(isa, fn)                                                                               \
    void fn(size_t, size_t, const int32_t *, size_t, const int32_t *, const int32_t *, const int32_t *, \
            const oct_qout *, void *, size_t);
#include "kernels/qgemm/qout.inc"
#undef OCT_QOUT

#endif
