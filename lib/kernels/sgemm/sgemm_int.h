/* lib/kernels/sgemm/sgemm_int.h -- prototypes of the kernels in sgemm.inc, and the tile walk. Internal. */
#ifndef OCT_KERNELS_SGEMM_INT_H
#define OCT_KERNELS_SGEMM_INT_H

#include "kernels/rows.h"
#include "kernels/sgemm/sgemm.h"

#define OCT_SGEMM(isa, fn, mr, nr, masks)                                                                     \
    void fn(size_t, size_t, size_t, size_t, const float *const *, const float *, float *, size_t, bool, bool, \
            const oct_sout *);
#define OCT_SROW(isa, row, fn, mr, nr) \
    void row(size_t, size_t, const float *, const float *, size_t, float *, const oct_sout *);
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
    /* Where B is kept in fewer bytes (packed is NULL then, taps and groups are 1): writes rows k0, a multiple of 64, to
     * k0 + kc of panel `panel` to `to`, f32[kc][nr]. Called once for each part of the depth of each block of rows. */
    void (*unpack)(const void *arg, size_t panel, size_t k0, size_t kc, float *to);
    const void *unpack_arg;
    float *c;
    size_t ldc;
    oct_sout out;
    size_t block;     /* rows of an item, at most */
    uint8_t *scratch; /* oct_stiles_scratch bytes a thread */
} oct_stiles;

/* Bytes one thread needs; false when they overflow. unpacks: oct_stiles.unpack is set. */
bool oct_stiles_scratch(const oct_sgemm_kernel *k, size_t block, size_t taps, size_t kc, bool gather, bool unpacks,
                        size_t *bytes);
/* Whether the kernel computes whole chains; otherwise C holds partial chains between sections of the depth. */
bool oct_stiles_whole(const oct_sgemm_kernel *k, size_t taps, size_t kc);
void oct_stiles_run(const oct_stiles *t, oct_pool *pool);

/* Plans with that kernel, as oct_sgemm_prepare does. */
oct_status oct_sgemm_plan(oct_sgemm *p, const oct_sgemm_kernel *kernel, size_t n, size_t k, int threads, oct_err *err);

/* Floats that kc values of a tap, for all columns of a panel, take in it; where a part of them ends before the last, kc
 * is a multiple of 32. */
static inline size_t oct_spanel_floats(const oct_sgemm_kernel *k, size_t kc)
{
    return (k->panel == OCT_SPANEL_PAIRS ? oct_round_up(kc, 32) / 2 : kc) * k->nr;
}

/* Floats of the packed panels of a matrix of n columns; false when they overflow. */
bool oct_spack_size(const oct_sgemm_kernel *k, size_t taps, size_t kc, size_t n, size_t *floats);
/* Packs element (tap, k, j) = b[tap * ts + k * ks + j * ns]. joined: as one tap of taps * kc values, which their size
 * is of, too. */
void oct_spack(const oct_sgemm_kernel *kn, const float *b, size_t taps, size_t kc, size_t n, ptrdiff_t ts, ptrdiff_t ks,
               ptrdiff_t ns, bool joined, float *packed);

#endif
