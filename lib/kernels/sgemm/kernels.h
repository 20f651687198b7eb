/* lib/kernels/sgemm/kernels.h -- prototypes of the kernels in sgemm.inc, and the tile walk. Internal. */
#ifndef OCT_KERNELS_SGEMM_KERNELS_H
#define OCT_KERNELS_SGEMM_KERNELS_H

#include "kernels/conv/rows.h"
#include "kernels/sgemm/sout.h"

#define OCT_SGEMM(isa, fn, mr, nr)                                                                              \
    void fn(size_t, size_t, size_t, size_t, const float *const *, const float *, float *, size_t, bool, bool,   \
            const oct_sout *);
#include "kernels/sgemm/sgemm.inc"
#undef OCT_SGEMM

/* A product cut into work items: groups x blocks of rows x blocks of columns. */
typedef struct oct_stiles {
    const oct_sgemm_kernel *kernel;
    oct_rows rows;       /* of group 0 */
    bool gather;         /* copy rows first; taps is then 1 and kc the whole depth */
    size_t taps, kc;     /* as the kernel sees them */
    size_t n, groups;    /* columns of a group; groups */
    const float *packed; /* oct_spack_size floats a group */
    float *c;
    size_t ldc;
    oct_sout out;
    size_t block;        /* rows of an item */
    uint8_t *scratch;    /* oct_stiles_scratch bytes a thread */
} oct_stiles;

/* Bytes one thread needs; false when they overflow. */
bool oct_stiles_scratch(const oct_sgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, size_t *bytes);
void oct_stiles_run(const oct_stiles *t, oct_pool *pool);

/* Floats of the packed panels of a depth x n matrix. */
bool oct_spack_size(const oct_sgemm_kernel *k, size_t depth, size_t n, size_t *floats);
/* Packs element (tap, k, j) = b[tap * ts + k * ks + j * ns]. */
void oct_spack(const oct_sgemm_kernel *kn, const float *b, size_t taps, size_t kc, size_t n, ptrdiff_t ts, ptrdiff_t ks,
               ptrdiff_t ns, float *packed);

#endif
