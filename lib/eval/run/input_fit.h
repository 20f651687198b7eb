/* lib/eval/run/input_fit.h -- checks whether samples lie in the ranges for which a quantized model was calibrated.
 * Pixels of 0..255 in a model for -1..1 give wrong results without an error. The quantizers after a model's inputs show
 * the expected range. */
#ifndef OCT_EVAL_INPUT_FIT_H
#define OCT_EVAL_INPUT_FIT_H

#include "data/data.h"
#include "graph/graph.h"

/* A float32 input that is read by a quantizer with one scale and a constant 8-bit zero point, and the range of the
 * values that it got. */
typedef struct oct_input_fit {
    const char *input; /* its name; belongs to the graph */
    size_t at;         /* its index among the arrays */
    double lo, hi;     /* the range that the quantizer can represent */
    double min, max;   /* the values that the input got */
    uint64_t n, outside;
} oct_input_fit;

/* Finds the inputs of g with such a quantizer, in arena. inputs[n_inputs]: the inputs that arrays are fed for, by
 * name. */
oct_status oct_input_fit_find(const oct_graph *g, const oct_input_desc *inputs, size_t n_inputs, oct_arena *arena,
                              oct_input_fit **fit, size_t *n, oct_err *err);
/* Adds the arrays of a batch. */
void oct_input_fit_add(oct_input_fit *fit, size_t n, const oct_array *arrays);

typedef enum oct_fit { OCT_FIT_GOOD, OCT_FIT_OUTSIDE, OCT_FIT_NARROW } oct_fit;
/* OUTSIDE: more than a twentieth of the values lie outside the range. NARROW: the values take less than a fifth of the
 * range. */
oct_fit oct_input_fit_judge(const oct_input_fit *fit);

#endif
