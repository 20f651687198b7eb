/* lib/tflite/schema.h -- what a .tflite file is made of: numbers of fields, of types and of operators (version 3 of
 * TensorFlow Lite's schema, file identifier "TFL3"). A file is one flatbuffer; a table's fields have slots, and a field
 * that is absent has its default. */
#ifndef OCT_TFLITE_SCHEMA_H
#define OCT_TFLITE_SCHEMA_H

#define OCT_TFL_IDENTIFIER "TFL3"
enum { OCT_TFL_SCHEMA_VERSION = 3 };

/* Slots of the tables' fields. */
enum {
    OCT_TFL_MODEL_VERSION = 0,
    OCT_TFL_MODEL_CODES = 1,
    OCT_TFL_MODEL_SUBGRAPHS = 2,
    OCT_TFL_MODEL_DESCRIPTION = 3,
    OCT_TFL_MODEL_BUFFERS = 4,
    OCT_TFL_MODEL_METADATA = 6,
    OCT_TFL_MODEL_SIGNATURES = 7,

    OCT_TFL_CODE_DEPRECATED = 0, /* the operator as a byte: at most 127 */
    OCT_TFL_CODE_CUSTOM = 1,     /* the name of an operator that the schema does not have */
    OCT_TFL_CODE_VERSION = 2,
    OCT_TFL_CODE_BUILTIN = 3,
    OCT_TFL_CODE_PLACEHOLDER = 127, /* of the byte, for operators with larger numbers */

    OCT_TFL_SUBGRAPH_TENSORS = 0,
    OCT_TFL_SUBGRAPH_INPUTS = 1,
    OCT_TFL_SUBGRAPH_OUTPUTS = 2,
    OCT_TFL_SUBGRAPH_OPERATORS = 3,
    OCT_TFL_SUBGRAPH_NAME = 4,

    OCT_TFL_TENSOR_SHAPE = 0,
    OCT_TFL_TENSOR_TYPE = 1,
    OCT_TFL_TENSOR_BUFFER = 2,
    OCT_TFL_TENSOR_NAME = 3,
    OCT_TFL_TENSOR_QUANTIZATION = 4,
    OCT_TFL_TENSOR_VARIABLE = 5, /* keeps its content from run to run */
    OCT_TFL_TENSOR_SPARSITY = 6,
    OCT_TFL_TENSOR_SIGNATURE = 7, /* the shape, -1 where a dimension is open */
    OCT_TFL_TENSOR_HAS_RANK = 8,

    OCT_TFL_QUANT_SCALE = 2,
    OCT_TFL_QUANT_ZERO_POINT = 3,
    OCT_TFL_QUANT_DETAILS_TYPE = 4, /* 0: scales are as the fields say */
    OCT_TFL_QUANT_AXIS = 6,

    OCT_TFL_OPERATOR_CODE = 0,
    OCT_TFL_OPERATOR_INPUTS = 1,
    OCT_TFL_OPERATOR_OUTPUTS = 2,
    OCT_TFL_OPERATOR_OPTIONS_TYPE = 3,
    OCT_TFL_OPERATOR_OPTIONS = 4,
    OCT_TFL_OPERATOR_INTERMEDIATES = 8, /* tensors that tell scales inside an LSTM */

    OCT_TFL_BUFFER_DATA = 0,
    OCT_TFL_BUFFER_OFFSET = 1, /* of data that stand in the file behind the flatbuffer */
    OCT_TFL_BUFFER_SIZE = 2,

    OCT_TFL_METADATA_NAME = 0,
    OCT_TFL_METADATA_BUFFER = 1,

    OCT_TFL_SIGNATURE_INPUTS = 0,
    OCT_TFL_SIGNATURE_OUTPUTS = 1,
    OCT_TFL_SIGNATURE_KEY = 2,
    OCT_TFL_SIGNATURE_SUBGRAPH = 4,

    OCT_TFL_MAP_NAME = 0,
    OCT_TFL_MAP_TENSOR = 1,
};

typedef enum oct_tfl_type {
#define TYPE(name, number, bits) OCT_TFL_##name = number,
#include "tflite/schema_types.inc"
#undef TYPE
} oct_tfl_type;

typedef enum oct_tfl_padding { OCT_TFL_SAME = 0, OCT_TFL_VALID = 1 } oct_tfl_padding;

typedef enum oct_tfl_activation {
    OCT_TFL_ACT_NONE = 0,
    OCT_TFL_ACT_RELU = 1,
    OCT_TFL_ACT_RELU_N1_TO_1 = 2,
    OCT_TFL_ACT_RELU6 = 3,
    OCT_TFL_ACT_TANH = 4,
} oct_tfl_activation;

/* The operators, by their numbers. */
typedef enum oct_tfl_code {
#define CODE(name, number) OCT_TFL_##name = number,
#define NAME(name, number)
#include "tflite/schema_codes.inc"
#undef CODE
#undef NAME
} oct_tfl_code;

/* Slots of the operators' options; those that are not named here stay at their defaults. */
enum {
    OCT_TFL_CONV_PADDING = 0,
    OCT_TFL_CONV_STRIDE_W = 1,
    OCT_TFL_CONV_STRIDE_H = 2,
    OCT_TFL_CONV_ACTIVATION = 3,
    OCT_TFL_CONV_DILATION_W = 4,
    OCT_TFL_CONV_DILATION_H = 5,

    OCT_TFL_DEPTHWISE_PADDING = 0,
    OCT_TFL_DEPTHWISE_STRIDE_W = 1,
    OCT_TFL_DEPTHWISE_STRIDE_H = 2,
    OCT_TFL_DEPTHWISE_MULTIPLIER = 3,
    OCT_TFL_DEPTHWISE_ACTIVATION = 4,
    OCT_TFL_DEPTHWISE_DILATION_W = 5,
    OCT_TFL_DEPTHWISE_DILATION_H = 6,

    OCT_TFL_TRANSPOSE_CONV_PADDING = 0,
    OCT_TFL_TRANSPOSE_CONV_STRIDE_W = 1,
    OCT_TFL_TRANSPOSE_CONV_STRIDE_H = 2,
    OCT_TFL_TRANSPOSE_CONV_ACTIVATION = 3,

    OCT_TFL_POOL_PADDING = 0,
    OCT_TFL_POOL_STRIDE_W = 1,
    OCT_TFL_POOL_STRIDE_H = 2,
    OCT_TFL_POOL_FILTER_W = 3,
    OCT_TFL_POOL_FILTER_H = 4,
    OCT_TFL_POOL_ACTIVATION = 5,

    OCT_TFL_DENSE_ACTIVATION = 0,
    OCT_TFL_DENSE_FORMAT = 1, /* of the weights; 0: row by row */
    OCT_TFL_DENSE_KEEP_DIMS = 2,

    OCT_TFL_BINARY_ACTIVATION = 0, /* ADD, SUB, MUL, DIV */
    OCT_TFL_BINARY_POWERS = 1,     /* ADD, SUB: scales of int16 are powers of two; by default they are */
    OCT_TFL_SOFTMAX_BETA = 0,
    OCT_TFL_CONCAT_AXIS = 0,
    OCT_TFL_CONCAT_ACTIVATION = 1,
    OCT_TFL_L2_ACTIVATION = 0,
    OCT_TFL_REDUCE_KEEP_DIMS = 0,
    OCT_TFL_BLOCK_SIZE = 0, /* DEPTH_TO_SPACE, SPACE_TO_DEPTH */
    OCT_TFL_SPLIT_PARTS = 0,
    OCT_TFL_GATHER_AXIS = 0,
    OCT_TFL_GATHER_BATCHES = 1,
    OCT_TFL_PACK_AXIS = 1, /* PACK, UNPACK */
    OCT_TFL_MATMUL_ADJ_X = 0,
    OCT_TFL_MATMUL_ADJ_Y = 1,
    OCT_TFL_LEAKY_RELU_ALPHA = 0,
    OCT_TFL_MIRROR_PAD_MODE = 0, /* 0: reflect, the edge is not repeated */
    OCT_TFL_GELU_APPROXIMATE = 0,
    OCT_TFL_MATMUL_ADJOINT_X = 0,
    OCT_TFL_MATMUL_ADJOINT_Y = 1,
    OCT_TFL_LSTM_ACTIVATION = 0,
    OCT_TFL_LSTM_CELL_CLIP = 1, /* 0: none */
    OCT_TFL_LSTM_PROJECTION_CLIP = 2,
    OCT_TFL_LSTM_TIME_MAJOR = 3,
    OCT_TFL_LSTM_DIAGONAL = 5, /* recurrent weights that are diagonals */
    OCT_TFL_STRIDED_SLICE_BEGIN_MASK = 0,
    OCT_TFL_STRIDED_SLICE_END_MASK = 1,
    OCT_TFL_STRIDED_SLICE_ELLIPSIS_MASK = 2,
    OCT_TFL_STRIDED_SLICE_NEW_MASK = 3,
    OCT_TFL_STRIDED_SLICE_SHRINK_MASK = 4,
    OCT_TFL_STRIDED_SLICE_OFFSET = 5,
    OCT_TFL_BILINEAR_ALIGN_CORNERS = 2,
    OCT_TFL_BILINEAR_HALF_PIXEL = 3,
    OCT_TFL_NEAREST_ALIGN_CORNERS = 0,
    OCT_TFL_NEAREST_HALF_PIXEL = 1,
};

#endif
