/* lib/ops/nn/matmul.h -- the shapes of matrix products as NumPy's matmul has them: leading dimensions broadcast, 1-D
 * operands are a row (A) or a column (B) whose dimension the result lacks. */
#ifndef OCT_OPS_MATMUL_H
#define OCT_OPS_MATMUL_H

#include "ops/core/infer.h"

typedef struct oct_matmul {
    int64_t m, n, k;
    int64_t batch;        /* products; 1 when B is one matrix and A's leading dimensions were joined into m */
    int64_t *at_a, *at_b; /* indices of the matrices of A and B in each product */
    int64_t n_b;          /* matrices of B */
} oct_matmul;

/* Shape of output 0 for operands of shapes a and b. OCT_EMALFORMED when they do not fit. */
oct_status oct_matmul_infer(const oct_infer *c, oct_shape a, oct_shape b, oct_err *err);

/* The same of concrete operands that inference has accepted; only their dimensions are read. */
oct_status oct_matmul_read(oct_matmul *g, const oct_operand *a, const oct_operand *b, oct_arena *arena, oct_err *err);

#endif
