/* lib/quant/rounding/ldlq_int.h -- internals of rounding by second moments, shared by ldlq.c and ldlq_blocks.c. */
#ifndef OCT_QUANT_LDLQ_INT_H
#define OCT_QUANT_LDLQ_INT_H

#include "kernels/sgemm/sgemm.h"
#include "quant/rounding/ldlq.h"

enum { OCT_LDLQ_TOGETHER = 64 }; /* inputs of a block */

struct oct_ldlq {
    size_t depth, outs, rows;
    float *moments; /* [depth][depth] */
    float *h;      /* [depth][depth], permuted: D on the diagonal and U' below it; the identity if there are no moments;
                      before that, the packed inputs */
    float *given;  /* [depth][outs]: weights in the order of the inputs */
    float *w, *e;  /* [depth][outs], permuted: first the weights, then their rounding errors */
    float *sum;    /* [OCT_LDLQ_TOGETHER][outs] */
    int8_t *qvals; /* [depth][outs] in the order of the inputs */
    size_t *order; /* [depth] */
    const int64_t *pair; /* [depth], or NULL */
    uint8_t *scratch;
    oct_sgemm gemm;
};

/* c[m][n] = a[m][depth] b[depth][n]; lda and ldb are the distances between rows of a and of b. OCT_ENOMEM. */
oct_status oct_ldlq_multiply(size_t m, size_t n, size_t depth, const float *a, size_t lda, const float *b, size_t ldb,
                             float *c);
/* sum[n][outs]: what inputs from..from + n have to compensate of the errors e of the inputs before `from`. */
oct_status oct_ldlq_carry_over(oct_ldlq *k, size_t from, size_t n);
/* Adds to the sum of input i what it has to compensate of the errors of inputs from..end. */
void oct_ldlq_carry(oct_ldlq *k, size_t from, size_t end, size_t i);

#endif
