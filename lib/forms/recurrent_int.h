/* lib/forms/recurrent_int.h -- what write_recurrent.c and recurrent_body.c share. */
#ifndef OCT_FORMS_RECURRENT_INT_H
#define OCT_FORMS_RECURRENT_INT_H

#include "forms/build.h"

typedef struct oct_recurrent {
    oct_builder b;       /* of the graph around */
    const oct_node *n;   /* its inputs and attributes, also when it is gone */
    const char *base;
    bool gru, late, batch_first; /* late: resets behind the product of the state */
    int64_t dirs, gates, hidden;
    int x, quantized, mask;      /* X with steps in front; the same behind its border; by steps and sequences, whether a step counts (-1: all do) */
} oct_recurrent;

/* The operator of the i-th function of direction d; NULL: it has coefficients, or does not exist. */
const char *oct_recurrent_function(const oct_node *n, int64_t d, int i);

/* What a value is behind the border where it is quantized when run, which all share that read it so. */
int oct_recurrent_border(oct_builder *b, int x, const char *base);
/* Such a value times the transpose of `count` rows from `first` on of direction d of a matrix as ONNX has it; it is a layer by this name. */
int oct_recurrent_product(oct_builder *b, int x, const oct_quant *q, int64_t d, int64_t first, int64_t count, const char *name);
/* y + bias[n], or y for NULL. */
int oct_recurrent_bias(oct_builder *b, int y, const float *bias, int64_t n, const char *name);

/* The Scan of direction d from state h0 over xp, the products of X; bias: of those of the state, or NULL. out: the last state, and those of all steps. */
void oct_recurrent_scan(oct_recurrent *l, int64_t d, const char *name, int h0, int xp, float *bias, int out[2]);

#endif
