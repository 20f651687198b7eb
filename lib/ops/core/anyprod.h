/* lib/ops/core/anyprod.h -- matrix products of element types without kernels (float64 and integers), and the clamp
 * after them. */
#ifndef OCT_OPS_ANYPROD_H
#define OCT_OPS_ANYPROD_H

#include "ops/core/elem.h"

/* A matrix of elements of one type: element (i, j) at data[i * row + j * col]; strides in elements. */
typedef struct oct_any_matrix {
    const void *data;
    int64_t row, col;
} oct_any_matrix;

/* c[i * ldc + j] = sum over x < k of a(i, x) * b(x, j), for i < m, j < n, of type t: added in ascending order (integers
 * wrap; products of floats are rounded). t: any type with a domain (oct_dom_of). c must overlap neither operand. */
void oct_any_product(oct_pool *pool, oct_dtype t, int64_t m, int64_t n, int64_t k, oct_any_matrix a, oct_any_matrix b,
                     void *c, int64_t ldc);

/* The clamp of an epilogue on a tensor of any type with a domain, in place. */
void oct_any_clamp(const oct_epilogue *e, const oct_operand *t);

#endif
