/* TensorFlow Lite for microcontrollers with its reference kernels. */
#include "twins/twin_ops.h"

static const oct_twin_rule own[] = {
    { OCT_TFL_UNIDIRECTIONAL_SEQUENCE_LSTM, OCT_TWIN_INT8, oct_twin_lstm, &oct_twin_lstm_table },
    { 0, 0, NULL, NULL },
};

static const oct_twin_rule *const rules[] = {
    own, oct_twin_wide, oct_twin_micro, oct_twin_builtin, oct_twin_moves, oct_twin_reals, oct_twin_real_layers, NULL
};

const oct_twin oct_twin_tflm = { "tflm", "TensorFlow Lite for microcontrollers",
                                 "tflite-micro 0.dev20261023182759 on x86-64", rules };
