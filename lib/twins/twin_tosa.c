/* TOSA's operators, as the converter for .tflite files writes them. */
#include "twins/twin_ops.h"

static const oct_twin_rule own[] = {
    { OCT_TFL_CONV_2D, OCT_TWIN_INT8, oct_twin_conv, &oct_rescaling_tosa },
    { OCT_TFL_DEPTHWISE_CONV_2D, OCT_TWIN_INT8, oct_twin_depthwise, &oct_rescaling_tosa },
    { OCT_TFL_TRANSPOSE_CONV, OCT_TWIN_INT8, oct_twin_transpose_conv, &oct_rescaling_tosa },
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_INT8, oct_twin_dense, &oct_rescaling_tosa },
    { OCT_TFL_BATCH_MATMUL, OCT_TWIN_INT8, oct_twin_matmul, &oct_rescaling_tosa },
    { OCT_TFL_AVERAGE_POOL_2D, OCT_TWIN_INT8, oct_twin_average_pool_tosa, NULL },
    { OCT_TFL_MAX_POOL_2D, OCT_TWIN_INT8, oct_twin_max_pool, NULL },
    { OCT_TFL_ADD, OCT_TWIN_INT8, oct_twin_add_fixed, &oct_rescaling_tosa },
    { OCT_TFL_SUB, OCT_TWIN_INT8, oct_twin_add_fixed, &oct_rescaling_tosa },
    { OCT_TFL_MUL, OCT_TWIN_INT8, oct_twin_mul, &oct_rescaling_tosa_in_float },
    { OCT_TFL_PRELU, OCT_TWIN_INT8, oct_twin_prelu, &oct_rescaling_tosa },
    { OCT_TFL_MEAN, OCT_TWIN_INT8, oct_twin_mean_fixed, &oct_rescaling_tosa },
    { OCT_TFL_LOGISTIC, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_tosa },
    { OCT_TFL_TANH, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_tosa },
    { OCT_TFL_HARD_SWISH, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_hard_swish_fixed },
    { OCT_TFL_ELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_tosa },
    { OCT_TFL_EXP, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_tosa },
    { OCT_TFL_LEAKY_RELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_leaky_tosa },
    { OCT_TFL_RELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_tosa },
    { OCT_TFL_RELU6, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_tosa },
    { OCT_TFL_RELU_N1_TO_1, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_tosa },
    { OCT_TFL_SOFTMAX, OCT_TWIN_INT8, oct_twin_softmax_tosa, NULL },
    { OCT_TFL_RESIZE_BILINEAR, OCT_TWIN_INT8, oct_twin_bilinear_tosa, NULL },
    { OCT_TFL_RESIZE_NEAREST_NEIGHBOR, OCT_TWIN_ANY, oct_twin_nearest_tosa, NULL },
    { OCT_TFL_QUANTIZE, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_requantize_tosa },
    { OCT_TFL_DIV, OCT_TWIN_REAL, oct_twin_div_tosa, NULL },
    { OCT_TFL_QUANTIZE, OCT_TWIN_ANY, oct_twin_quantize_wrap, NULL },
    { 0, 0, NULL, NULL },
};

static const oct_twin_rule *const rules[] = { oct_twin_tosa_wide,   own, oct_twin_moves, oct_twin_reals,
                                              oct_twin_real_layers, NULL };

const oct_twin oct_twin_tosa = { "tosa", "TOSA by its converter for .tflite files",
                                 "tosa-tools 2026.8.0 (reference model), tosa-converter-for-tflite 2026.2.0", rules };
