/* lib/ops/nn/einsum.h -- equations of Einsum: the label of each dimension of each operand.
 *
 * Labels are small numbers: letters in ASCII order, then the dimensions that "..." stands for, counted from the last
 * one. */
#ifndef OCT_OPS_EINSUM_H
#define OCT_OPS_EINSUM_H

#include "ops/op.h"

enum { OCT_EINSUM_LETTERS = 52, OCT_EINSUM_LABELS = OCT_EINSUM_LETTERS + OCT_MAX_RANK, OCT_EINSUM_INPUTS = 16 };

typedef struct oct_einsum_term {
    int n;
    int8_t label[OCT_MAX_RANK];
} oct_einsum_term;

typedef struct oct_einsum {
    int n; /* operands */
    oct_einsum_term in[OCT_EINSUM_INPUTS], out;
} oct_einsum;

/* Parses `equation` for n operands of the given ranks; ellipses are expanded. OCT_EMALFORMED when it breaks the rules
 * of ONNX Einsum-12 or does not fit the operands, OCT_EUNSUPPORTED for more than OCT_EINSUM_INPUTS. */
oct_status oct_einsum_parse(const char *equation, const int *rank, int n, oct_einsum *e, oct_err *err);

/* Whether a term has a label. */
bool oct_einsum_has(const oct_einsum_term *t, int label);

#endif
