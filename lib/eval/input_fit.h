/* lib/eval/input_fit.h -- whether samples lie in the ranges that a quantized model was calibrated for. Pixels of 0..255 in a model for -1..1, or the other way
 * round, give wrong answers without an error; the quantizers behind a model's inputs tell. */
#ifndef OCT_EVAL_INPUT_FIT_H
#define OCT_EVAL_INPUT_FIT_H

#include "data/data.h"
#include "graph/graph.h"

/* One float32 input with a quantizer of one scale and a constant zero point of 8 bits behind it, and the values that it was fed. */
typedef struct oct_input_fit {
    const char *input;  /* its name, of the graph */
    size_t at;          /* its place among the arrays */
    double lo, hi;      /* what the quantizer holds */
    double min, max;    /* of the values fed */
    uint64_t n, outside;
} oct_input_fit;

/* The inputs of g that such a quantizer reads, in arena; inputs[n_inputs] are what arrays are fed for, by name. */
oct_status oct_input_fit_find(const oct_graph *g, const oct_input_desc *inputs, size_t n_inputs, oct_arena *arena, oct_input_fit **fit, size_t *n,
                              oct_err *err);
/* Feeds the arrays of a batch. */
void oct_input_fit_add(oct_input_fit *fit, size_t n, const oct_array *arrays);

typedef enum oct_fit { OCT_FIT_GOOD, OCT_FIT_OUTSIDE, OCT_FIT_NARROW } oct_fit;
/* OUTSIDE: more than a twentieth of the values lie beyond the range; NARROW: they take less than a fifth of it. */
oct_fit oct_input_fit_judge(const oct_input_fit *fit);

#endif
