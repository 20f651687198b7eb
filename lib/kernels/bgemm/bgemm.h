/* lib/kernels/bgemm/bgemm.h -- the matrix product of sgemm.h in the arithmetic of AMX's tiles of bf16.
 *
 * A sum begins at the bias. To it are added, in order, blocks of 32 values of k (fewer in the last): in each two chains
 * of fused multiply-adds from +0, of even and of odd k, then their sum. Denormal numbers are zero before and after each
 * of these operations (denormals.h); what follows is sgemm.h's output pipeline. Results are the same bits on every
 * instruction set.
 *
 * A and B are float32: A holds values of bf16, B is rounded to bf16 when it is packed. */
#ifndef OCT_KERNELS_BGEMM_H
#define OCT_KERNELS_BGEMM_H

#include "kernels/sgemm/sgemm.h"

enum { OCT_BGEMM_BLOCK = 32 };

/* All kernels; *n is their number. Parts of k that a kernel is called with are whole blocks, but for the last of a
 * tap. */
const oct_sgemm_kernel *oct_bgemm_kernels(size_t *n);
/* The kernel (oct_sgemm_kernel) that needs nothing outside `have` and is expected to be the fastest. */
oct_choice oct_bgemm_choose(oct_isa have, const oct_extent *e);

/* As oct_sgemm_prepare; packed and run by the functions of sgemm.h. */
oct_status oct_bgemm_prepare(oct_sgemm *p, size_t rows, size_t n, size_t k, int threads, oct_err *err);

#endif
