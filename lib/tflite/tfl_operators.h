/* lib/tflite/tfl_operators.h -- how operators of ONNX are written: one table, with a file for each family. */
#ifndef OCT_TFLITE_TFL_OPERATORS_H
#define OCT_TFLITE_TFL_OPERATORS_H

#include "tflite/tfl_tensors.h"

/* Which types an operator takes: real numbers, which may be quantized, or all that there are. */
typedef enum oct_tfl_takes {
    OCT_TFL_TAKES_REALS,
    OCT_TFL_TAKES_WIDE, /* the same, and kernels on int16 */
    OCT_TFL_TAKES_ALL
} oct_tfl_takes;

/* Which order of axes an operator asks for. */
typedef enum oct_tfl_asks {
    OCT_TFL_ASKS_PLAIN, /* ONNX's */
    OCT_TFL_ASKS_LAST,  /* the channels last */
    OCT_TFL_ASKS_STEPS, /* that in front of a Transpose which exchanges the first two: both have a kernel */
    OCT_TFL_ASKS_ANY    /* none: its result has that of its operands */
} oct_tfl_asks;

typedef struct oct_tfl_rule {
    const char *onnx;
    const char *as;     /* what it becomes, for people: "CONV_2D, DEPTHWISE_CONV_2D" */
    const char *limits; /* what of it cannot be written; "" if all can be */
    oct_tfl_asks asks;
    bool activates; /* an activation behind it can be fused into it */
    oct_tfl_takes takes;
    /* Writes the node w->node, whose first result is w->out. */
    oct_status (*write)(oct_tfl_writer *w, const oct_node *n, oct_err *err);
} oct_tfl_rule;

/* The rule for an operator; NULL: it cannot be written. */
const oct_tfl_rule *oct_tfl_rule_of(const oct_node *n);

/* The activation that a Relu or Clip is; NONE: it is none that .tflite has. */
oct_tfl_activation oct_tfl_clamp_of(const oct_tfl_writer *w, const oct_node *n);

/* tfl_stored.c: weights that are stored in 8 bits become quantized ones. */
oct_status oct_tfl_read_stored(oct_graph *g, oct_err *err);
/* tfl_parts.c: normalizations become the operators that they are made of; what spells a Gelu becomes one, when
 * constants are folded and quantized values read. */
oct_status oct_tfl_read_parts(oct_graph *g, oct_err *err);
oct_status oct_tfl_join_gelu(oct_graph *g, oct_err *err);

#define RULE(onnx, as, limits, asks, activates, types, write) \
    oct_status write(oct_tfl_writer *w, const oct_node *n, oct_err *err);
#include "tflite/tfl_operators.inc"
#undef RULE

#endif
