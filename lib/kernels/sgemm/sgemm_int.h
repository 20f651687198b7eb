/* lib/kernels/sgemm/sgemm_int.h -- prototypes of the kernels in sgemm.inc, and the tile walk. Internal. */
#ifndef OCT_KERNELS_SGEMM_INT_H
#define OCT_KERNELS_SGEMM_INT_H

#include "kernels/rows.h"
#include "kernels/sgemm/sgemm.h"

#define OCT_SGEMM(isa, fn, mr, nr)                                                                              \
    void fn(size_t, size_t, size_t, size_t, const float *const *, const float *, float *, size_t, bool, bool,   \
            const oct_sout *);
#define OCT_SROW(isa, row, fn, mr, nr) void row(size_t, size_t, const float *, const float *, size_t, float *, const oct_sout *);
#include "kernels/sgemm/sgemm.inc"
#undef OCT_SGEMM
#undef OCT_SROW

/* A product cut into work items: groups x blocks of rows x blocks of columns. */
typedef struct oct_stiles {
    const oct_sgemm_kernel *kernel;
    oct_rows rows;       /* of group 0 */
    bool gather;         /* copy rows first; taps is then 1 and kc the whole depth */
    size_t taps, kc;     /* as the kernel sees them */
    size_t n, groups;    /* columns of a group; groups */
    const float *packed; /* oct_spack_size floats a group */
    /* Where B is kept in fewer bytes (packed is NULL then, taps and groups are 1): writes rows k0, a multiple of 64, to k0 + kc
     * of panel `panel` to `to`, f32[kc][nr]. Called once for each part of the depth of each block of rows. */
    void (*unpack)(const void *arg, size_t panel, size_t k0, size_t kc, float *to);
    const void *unpack_arg;
    float *c;
    size_t ldc;
    oct_sout out;
    size_t block;        /* rows of an item, at most */
    uint8_t *scratch;    /* oct_stiles_scratch bytes a thread */
} oct_stiles;

/* Bytes one thread needs; false when they overflow. unpacks: oct_stiles.unpack is set. */
bool oct_stiles_scratch(const oct_sgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, bool unpacks, size_t *bytes);
/* Whether chains pass through the kernel as a whole; else C holds them between the parts of the depth. */
bool oct_stiles_whole(const oct_sgemm_kernel *k, size_t taps, size_t kc);
void oct_stiles_run(const oct_stiles *t, oct_pool *pool);

/* Floats of the packed panels of a depth x n matrix. */
bool oct_spack_size(const oct_sgemm_kernel *k, size_t depth, size_t n, size_t *floats);
/* Packs element (tap, k, j) = b[tap * ts + k * ks + j * ns]. */
void oct_spack(const oct_sgemm_kernel *kn, const float *b, size_t taps, size_t kc, size_t n, ptrdiff_t ts, ptrdiff_t ks,
               ptrdiff_t ns, float *packed);

#endif
