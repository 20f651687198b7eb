/* The reference kernels of TensorFlow Lite, which LiteRT, tflite-micro and CMSIS-NN share. */
#include "twins/twin_ops.h"

const oct_twin_rule oct_twin_builtin[] = {
    { OCT_TFL_ADD, OCT_TWIN_INT16, oct_twin_add_fixed, &oct_rescaling_double },
    { OCT_TFL_SUB, OCT_TWIN_INT16, oct_twin_add_fixed, &oct_rescaling_double },
    { OCT_TFL_CONV_2D, OCT_TWIN_INT8, oct_twin_conv, &oct_rescaling_double },
    { OCT_TFL_DEPTHWISE_CONV_2D, OCT_TWIN_INT8, oct_twin_depthwise, &oct_rescaling_double },
    { OCT_TFL_TRANSPOSE_CONV, OCT_TWIN_INT8, oct_twin_transpose_conv, &oct_rescaling_double },
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_INT8, oct_twin_dense, &oct_rescaling_single },
    { OCT_TFL_BATCH_MATMUL, OCT_TWIN_INT8, oct_twin_matmul, &oct_rescaling_double },
    { OCT_TFL_AVERAGE_POOL_2D, OCT_TWIN_INT8, oct_twin_average_pool, &oct_rescaling_double },
    { OCT_TFL_MAX_POOL_2D, OCT_TWIN_INT8, oct_twin_max_pool, &oct_rescaling_double },
    { OCT_TFL_ADD, OCT_TWIN_INT8, oct_twin_add_fixed, &oct_rescaling_double },
    { OCT_TFL_SUB, OCT_TWIN_INT8, oct_twin_add_fixed, &oct_rescaling_double },
    { OCT_TFL_MUL, OCT_TWIN_INT8, oct_twin_mul, &oct_rescaling_double },
    { OCT_TFL_PRELU, OCT_TWIN_INT8, oct_twin_prelu, &oct_rescaling_double_in_float },
    { OCT_TFL_MEAN, OCT_TWIN_INT8, oct_twin_mean_fixed, &oct_rescaling_double },
    { OCT_TFL_LOGISTIC, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_logistic_fixed },
    { OCT_TFL_TANH, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_tanh_fixed },
    { OCT_TFL_HARD_SWISH, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_hard_swish_fixed },
    { OCT_TFL_LEAKY_RELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_leaky_fixed },
    { OCT_TFL_RELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_fixed },
    { OCT_TFL_RELU6, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_fixed },
    { OCT_TFL_RELU_N1_TO_1, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_fixed },
    { OCT_TFL_ABS, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_abs_fixed },
    { OCT_TFL_SOFTMAX, OCT_TWIN_INT8, oct_twin_softmax_fixed, NULL },
    { OCT_TFL_RESIZE_BILINEAR, OCT_TWIN_INT8, oct_twin_bilinear_fixed, NULL },
    { OCT_TFL_QUANTIZE, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_requantize_fixed },
    { OCT_TFL_QUANTIZE, OCT_TWIN_WHOLE, oct_twin_requantize, &oct_rescaling_double },
    { OCT_TFL_QUANTIZE, OCT_TWIN_ANY, oct_twin_quantize_away, NULL },
    { 0, 0, NULL, NULL },
};

/* What LiteRT has on int8, and its version for microcontrollers does not. */
const oct_twin_rule oct_twin_large[] = {
    { OCT_TFL_GELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_away },
    { OCT_TFL_EXP, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_away },
    { OCT_TFL_LOG, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_away },
    { OCT_TFL_UNIDIRECTIONAL_SEQUENCE_LSTM, OCT_TWIN_INT8, oct_twin_lstm, &oct_twin_lstm_fixed },
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_INT16, oct_twin_dense, &oct_rescaling_exact },
    { OCT_TFL_MUL, OCT_TWIN_INT16, oct_twin_mul, &oct_rescaling_double_in_float },
    { OCT_TFL_SOFTMAX, OCT_TWIN_INT16, oct_twin_softmax_wide, &oct_twin_softmax_double },
    { 0, 0, NULL, NULL },
};

const oct_twin_rule oct_twin_micro[] = {
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_INT16, oct_twin_dense, &oct_rescaling_double },
    { OCT_TFL_MUL, OCT_TWIN_INT16, oct_twin_mul, &oct_rescaling_double },
    { OCT_TFL_SOFTMAX, OCT_TWIN_INT16, oct_twin_softmax_wide, &oct_twin_softmax_single },
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_INT8, oct_twin_dense, &oct_rescaling_double },
    { OCT_TFL_PRELU, OCT_TWIN_INT8, oct_twin_prelu, &oct_rescaling_double },
    { OCT_TFL_RELU6, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu6_clamp },
    { OCT_TFL_ELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_away },
    { 0, 0, NULL, NULL },
};
