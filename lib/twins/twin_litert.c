/* LiteRT as it runs by default: XNNPACK's kernels where it has them for int8, else the built-in optimized ones. */
#include "twins/twin_ops.h"

static const oct_twin_by_zero products = { &oct_rescaling_float, &oct_rescaling_double };

static const oct_twin_rule own[] = {
    { OCT_TFL_ADD, OCT_TWIN_INT16, oct_twin_add_sixteen, &oct_rescaling_double },
    { OCT_TFL_SUB, OCT_TWIN_INT16, oct_twin_add_fixed, &oct_rescaling_double },
    { OCT_TFL_CONV_2D, OCT_TWIN_INT8, oct_twin_conv, &oct_rescaling_float },
    { OCT_TFL_DEPTHWISE_CONV_2D, OCT_TWIN_INT8, oct_twin_depthwise, &oct_rescaling_float },
    { OCT_TFL_TRANSPOSE_CONV, OCT_TWIN_INT8, oct_twin_transpose_conv, &oct_rescaling_float },
    { OCT_TFL_FULLY_CONNECTED, OCT_TWIN_INT8, oct_twin_dense, &oct_rescaling_float },
    { OCT_TFL_BATCH_MATMUL, OCT_TWIN_INT8, oct_twin_matmul_by_zero, &products },
    { OCT_TFL_AVERAGE_POOL_2D, OCT_TWIN_INT8, oct_twin_average_pool, &oct_rescaling_float },
    { OCT_TFL_MAX_POOL_2D, OCT_TWIN_INT8, oct_twin_max_pool, &oct_rescaling_float },
    { OCT_TFL_ADD, OCT_TWIN_INT8, oct_twin_add_shift, &oct_rescaling_float },
    { OCT_TFL_SUB, OCT_TWIN_INT8, oct_twin_add_shift, &oct_rescaling_float },
    { OCT_TFL_MUL, OCT_TWIN_INT8, oct_twin_mul, &oct_rescaling_float },
    { OCT_TFL_PRELU, OCT_TWIN_INT8, oct_twin_prelu, &oct_rescaling_double_in_float },
    { OCT_TFL_MEAN, OCT_TWIN_INT8, oct_twin_mean_float, NULL },
    { OCT_TFL_LOGISTIC, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_logistic_float },
    { OCT_TFL_TANH, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_tanh_float },
    { OCT_TFL_HARD_SWISH, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_hard_swish_fixed },
    { OCT_TFL_LEAKY_RELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_leaky_shift },
    { OCT_TFL_RELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_fixed },
    { OCT_TFL_RELU6, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_fixed },
    { OCT_TFL_RELU_N1_TO_1, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_relu_fixed },
    { OCT_TFL_ABS, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_abs_fixed },
    { OCT_TFL_ELU, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_function_away },
    { OCT_TFL_SOFTMAX, OCT_TWIN_INT8, oct_twin_softmax_float, NULL },
    { OCT_TFL_RESIZE_BILINEAR, OCT_TWIN_INT8, oct_twin_bilinear_shift, NULL },
    { OCT_TFL_QUANTIZE, OCT_TWIN_INT8, oct_twin_apply_table, &oct_table_requantize_shift },
    { OCT_TFL_QUANTIZE, OCT_TWIN_WHOLE, oct_twin_requantize, &oct_rescaling_double },
    { OCT_TFL_QUANTIZE, OCT_TWIN_ANY, oct_twin_quantize_even, NULL },
    { 0, 0, NULL, NULL },
};

static const oct_twin_rule *const rules[] = { oct_twin_wide,        own, oct_twin_large, oct_twin_moves, oct_twin_reals,
                                              oct_twin_real_layers, NULL };

const oct_twin oct_twin_litert = { "litert", "LiteRT with XNNPACK", "ai-edge-litert 2.3.0 on x86-64", rules };
