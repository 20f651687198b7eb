/* lib/forms/recurrent_int.h -- shared by write_recurrent.c and recurrent_body.c. */
#ifndef OCT_FORMS_RECURRENT_INT_H
#define OCT_FORMS_RECURRENT_INT_H

#include "forms/build.h"

typedef struct oct_recurrent {
    oct_builder b;     /* of the outer graph */
    const oct_node *n; /* its inputs and attributes, which are needed after it is removed */
    const char *base;
    bool gru, late, batch_first; /* late: the reset gate is applied after the product of the state */
    int64_t dirs, gates, hidden;
    int x, quantized, mask; /* X with steps as the first dimension; the same after its border; [steps][sequences]:
                               whether a step counts (-1: all do) */
} oct_recurrent;

/* The operator for the i-th function of direction d; NULL: the function has coefficients, or does not exist. */
const char *oct_recurrent_function(const oct_node *n, int64_t d, int i);

/* The value after the border where it is quantized at run time. All readers of that kind share it. */
int oct_recurrent_border(oct_builder *b, int x, const char *base);
/* The product of such a value and the transpose of `count` rows, from `first` on, of direction d of a matrix in ONNX's
 * layout. It becomes a layer with this name. */
int oct_recurrent_product(oct_builder *b, int x, const oct_quant *q, int64_t d, int64_t first, int64_t count,
                          const char *name);
/* y + bias[n]; bias NULL: y. */
int oct_recurrent_bias(oct_builder *b, int y, const float *bias, int64_t n, const char *name);

/* Adds the Scan for direction d, starting with state h0, over xp, the products of X. bias: for the products of the
 * state, or NULL. out: the last state, and the states of all steps. */
void oct_recurrent_scan(oct_recurrent *l, int64_t d, const char *name, int h0, int xp, float *bias, int out[2]);

#endif
