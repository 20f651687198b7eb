/* TensorFlow Lite for microcontrollers with its reference kernels. */
#include "twins/twin_ops.h"

static const oct_twin_rule *const rules[] = { oct_twin_micro, oct_twin_builtin,     oct_twin_moves,
                                              oct_twin_reals, oct_twin_real_layers, NULL };

const oct_twin oct_twin_tflm = { "tflm", "TensorFlow Lite for microcontrollers",
                                 "tflite-micro 0.dev20261023182759 on x86-64", rules };
