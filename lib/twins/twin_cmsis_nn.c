/* TensorFlow Lite for microcontrollers with CMSIS-NN's kernels, which are stated to equal its reference kernels. */
#include "twins/twin_ops.h"

static const oct_twin_rule *const rules[] = { oct_twin_micro, oct_twin_builtin,     oct_twin_moves,
                                              oct_twin_reals, oct_twin_real_layers, NULL };

const oct_twin oct_twin_cmsis_nn = { "cmsis-nn", "TensorFlow Lite for microcontrollers with CMSIS-NN", NULL, rules };
