/* lib/kernels/conv/algorithm.h -- an algorithm of convolution as a record. Internal.
 *
 * Each has a file of its own and a line in algorithms.inc. A plan uses the cheapest one that supports its shape; the
 * cost of others is not asked. */
#ifndef OCT_KERNELS_CONV_ALGORITHM_H
#define OCT_KERNELS_CONV_ALGORITHM_H

#include "kernels/conv/conv.h"
#include "kernels/conv/shape.h"

/* Bytes that an algorithm needs. */
typedef struct oct_conv_sizes {
    size_t packed; /* of packed weights */
    size_t shared; /* of scratch for all threads together, a multiple of 64, */
    size_t thread; /* and for each of them */
} oct_conv_sizes;

/* ---- float ---- */

/* A run. In scratch, `pad` is a pixel of padding with all channels; `shared` and `threads` have the sizes that `sizes`
 * has asked for, the latter once for each thread, rounded up to 64. */
typedef struct oct_sconv_job {
    const oct_sconv *p;
    oct_pool *pool;
    const float *x;
    const void *packed;
    float *y;
    oct_sout out;
    const uint8_t *pad;
    uint8_t *shared, *threads;
} oct_sconv_job;

typedef struct oct_sconv_algorithm {
    const char *name;
    bool bf16; /* it has products of bf16, too, or none that bf16 is for (depthwise) */
    /* Whether the algorithm supports the shape. Here and below, g is checked, and its ldx and ldy are set. */
    bool (*suits)(const oct_conv_geom *g);
    /* The cheapest of its kernels, with its total cost including preparation. No record: none can run. */
    oct_choice (*cost)(const oct_conv_geom *g, oct_isa have, bool bf16);
    /* Uses the kernel of that choice, and sets the algorithm's members of the plan. False if sizes overflow. */
    bool (*sizes)(oct_sconv *p, const void *kernel, oct_conv_sizes *s);
    void (*pack)(const oct_sconv *p, const float *w, void *packed);
    void (*run)(const oct_sconv_job *j);
    bool (*in_place)(const oct_sconv *p); /* as oct_sconv_in_place; NULL: never */
} oct_sconv_algorithm;

/* In the order of algorithms.inc. */
const oct_sconv_algorithm *const *oct_sconv_algorithms(size_t *n);
/* The choice of oct_sconv_prepare if the instruction sets `have` may be used; *kernel: its kernel. */
const oct_sconv_algorithm *oct_sconv_choose(const oct_conv_geom *g, oct_isa have, bool bf16, oct_choice *kernel);

/* ---- 8 bits ---- */

typedef struct oct_qconv_job {
    const oct_qconv *p;
    oct_pool *pool;
    const uint8_t *x;
    int32_t zx;
    const void *packed;
    const int32_t *bias;
    const oct_qout *out;
    uint8_t *y;
    const uint8_t *pad; /* a pixel of bytes zx */
    uint8_t *shared, *threads;
} oct_qconv_job;

typedef struct oct_qconv_algorithm {
    const char *name;
    bool picky; /* pack declines some weights: the plan has another algorithm for these */
    bool (*suits)(const oct_conv_geom *g);
    oct_choice (*cost)(const oct_conv_geom *g, oct_isa have);
    bool (*sizes)(oct_qconv *p, const void *kernel, oct_conv_sizes *s);
    /* As oct_qconv_pack. False: the weights are declined. */
    bool (*pack)(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed);
    void (*run)(const oct_qconv_job *j);
} oct_qconv_algorithm;

const oct_qconv_algorithm *const *oct_qconv_algorithms(size_t *n);
/* The cheapest but `without` (NULL: of all). */
const oct_qconv_algorithm *oct_qconv_choose(const oct_conv_geom *g, oct_isa have, const oct_qconv_algorithm *without,
                                            oct_choice *kernel);

#define OCT_SCONV(name) extern const oct_sconv_algorithm oct_sconv_##name;
#define OCT_QCONV(name) extern const oct_qconv_algorithm oct_qconv_##name;
#include "kernels/conv/algorithms.inc"
#undef OCT_SCONV
#undef OCT_QCONV

#endif
