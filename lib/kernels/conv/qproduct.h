/* lib/kernels/conv/qproduct.h -- what 8-bit convolutions that are products of rows have in common: dense, indirect,
 * gather, flat. Internal. */
#ifndef OCT_KERNELS_CONV_QPRODUCT_H
#define OCT_KERNELS_CONV_QPRODUCT_H

#include "kernels/conv/algorithm.h"
#include "kernels/qgemm/qgemm_int.h"

/* Whether the kernel must have rows copied together: it picks from chunks of k that would cross from tap to tap, or
 * takes rows that lie equally far from each other alone. */
bool oct_qproduct_gathers(const oct_qgemm_kernel *k, const oct_conv_geom *g);

/* As the record says. sizes: fold is how many taps the kernel sees as one, gather whether rows are copied together. */
bool oct_qproduct_sizes(oct_qconv *p, const void *kernel, size_t fold, bool gather, oct_conv_sizes *s);
bool oct_qproduct_pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed);
/* The product. g: what stands under the taps in x; NULL: pixels are rows. */
oct_qtiles oct_qproduct_tiles(const oct_qconv_job *j, const oct_conv_geom *g, bool gather);

#endif
