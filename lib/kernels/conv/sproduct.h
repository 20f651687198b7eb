/* lib/kernels/conv/sproduct.h -- what the float convolutions by matrix products share: dense, indirect, gather, folded.
 * Internal. */
#ifndef OCT_KERNELS_CONV_SPRODUCT_H
#define OCT_KERNELS_CONV_SPRODUCT_H

#include "kernels/conv/algorithm.h"
#include "kernels/sgemm/sgemm_int.h"

/* Functions of the record. sizes: fold is the number of taps that the kernel treats as one; gather: whether rows are
 * gathered. */
oct_choice oct_sproduct_cost(const oct_conv_geom *g, oct_isa have, bool bf16);
bool oct_sproduct_sizes(oct_sconv *p, const void *kernel, size_t fold, bool gather, oct_conv_sizes *s);
/* gather: taps are joined. */
void oct_sproduct_pack(const oct_sconv *p, const float *w, bool gather, void *packed);
bool oct_sproduct_in_place(const oct_sconv *p);
/* g: what stands under the taps in x; NULL: pixels are rows. */
void oct_sproduct_run(const oct_sconv_job *j, const float *x, const oct_conv_geom *g, bool gather);

#endif
