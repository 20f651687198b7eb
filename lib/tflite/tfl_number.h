/* lib/tflite/tfl_number.h -- operators of a tensor and a number. */
#ifndef OCT_TFLITE_TFL_NUMBER_H
#define OCT_TFLITE_TFL_NUMBER_H

#include "tflite/tfl_operators.h"

/* Whether anything of the graph is quantized. */
bool oct_tfl_has_integers(const oct_tfl_writer *w);
/* HardSwish on reals as sums and products: compilers of accelerators refuse files with HARD_SWISH on reals. */
oct_status oct_tfl_write_hard_swish(oct_tfl_writer *w, const oct_node *n, oct_err *err);
/* Whether a node on int8 is the product of its operand with a number: Neg, and Div by a constant. */
bool oct_tfl_is_product(const oct_tfl_writer *w, const oct_node *n);
oct_status oct_tfl_write_product(oct_tfl_writer *w, const oct_node *n, oct_err *err);

#endif
