/* lib/kernels/conv/qproduct.h -- what the 8-bit convolutions by matrix products share: dense, indirect, gather, flat.
 * Internal. */
#ifndef OCT_KERNELS_CONV_QPRODUCT_H
#define OCT_KERNELS_CONV_QPRODUCT_H

#include "kernels/conv/algorithm.h"
#include "kernels/qgemm/qgemm_int.h"

/* Whether the kernel needs gathered rows: because its chunks of k would cross taps, or because it needs equidistant
 * rows. */
bool oct_qproduct_gathers(const oct_qgemm_kernel *k, const oct_conv_geom *g);

/* Functions of the record. sizes: fold is the number of taps that the kernel treats as one; gather: whether rows are
 * gathered. */
bool oct_qproduct_sizes(oct_qconv *p, const void *kernel, size_t fold, bool gather, oct_conv_sizes *s);
bool oct_qproduct_pack(const oct_qconv *p, const void *w, const int32_t *zw, size_t zw_step, void *packed);
/* Runs the product. g: the geometry of the taps in x; NULL: pixels are rows. */
oct_qtiles oct_qproduct_tiles(const oct_qconv_job *j, const oct_conv_geom *g, bool gather);

#endif
