/* lib/forms/write_int.h -- what the files that write share. */
#ifndef OCT_FORMS_WRITE_INT_H
#define OCT_FORMS_WRITE_INT_H

#include "forms/edit.h"
#include "forms/forms_write.h"
#include "forms/qlinear.h"

/* How a node is written. */
typedef enum oct_spelling {
    OCT_SPELLED_REAL,    /* as it is, between QuantizeLinear and DequantizeLinear */
    OCT_SPELLED_QVALS,   /* as it is: it moves quantized values */
    OCT_SPELLED_QLINEAR, /* as an operator on integers */
    OCT_SPELLED_DYNAMIC, /* these, by their weights, which they write themselves */
    OCT_SPELLED_LSTM,
    OCT_SPELLED_BLOCKS
} oct_spelling;

typedef struct oct_node_plan {
    oct_spelling spelling;
    const oct_qlinear *f; /* of QLINEAR: what it becomes, and its inputs, filled in as their values are written */
    int *in, n_in;
} oct_node_plan;

typedef struct oct_value_plan {
    const oct_quant *q; /* of what a file's DequantizeLinear makes, and of the quantized values that its QuantizeLinear makes */
    int maker;          /* the node that makes the quantized values itself, or -1: a QuantizeLinear does */
    int written[2];     /* constants of the matrix in blocks, or of one for MatMulInteger, as it is and transposed, that are written already, or -1 */
} oct_value_plan;

/* The constants of scales and zero points. */
typedef struct oct_params_consts {
    const oct_quant *of; /* whose they are; NULL: no entry */
    int scale, zero;
} oct_params_consts;

typedef struct oct_writer {
    oct_graph *g;
    const oct_forms_write_opts *o;
    oct_node_plan *node;   /* [n_node], of the graph as it was */
    size_t n_node;
    oct_value_plan *value; /* by value of the graph as it was */
    oct_params_consts *params; /* [n_params], a power of two: open addressing by address */
    size_t n_params;
} oct_writer;

/* X, for a quantized constant that is named "X_quantized" or "X_quantized_2". */
oct_status oct_write_base(const oct_writer *w, int value, const char **base, oct_err *err);

/* A constant of quantized values in the place of annotated constant v, which is removed, but for its uses; under its name where that is of quantized
 * values. */
oct_status oct_write_qvals(oct_writer *w, int v, const oct_tensor *t, int *qvals, oct_err *err);
/* Readers of annotated value v take its quantized values, when they can, or read the real value `to`. quantized value: quantized values, scale and
 * zero point. */
oct_status oct_write_readers(oct_writer *w, int v, const int qval[3], int to, oct_err *err);
/* The real value that other readers of v, which stands for `base`, have from now on; to be made by a DequantizeLinear. */
oct_status oct_write_real(oct_writer *w, int v, const char *base, const int qval[3], int *real, oct_err *err);

/* write_qdq.c. Constants of scale and zero point, made once for all values that share them: rank 0, or 1 per channel. */
oct_status oct_write_params(oct_writer *w, const oct_quant *q, const char *base, int *scale, int *zero, oct_err *err);
/* Zero points alone, in any rank. */
oct_status oct_write_zeros(oct_graph *g, const oct_quant *q, const char *base, int rank, const int64_t *dims, int *v, oct_err *err);
/* The quantized values of an annotated constant and a DequantizeLinear in front of node `before`, for all that read it. */
oct_status oct_write_constant(oct_writer *w, int v, int before, oct_err *err);
/* An annotated activation, which an operator makes or the QuantizeLinear that is its border: quantized and dequantized behind that. */
oct_status oct_write_activation(oct_writer *w, int v, oct_err *err);

/* write_qlinear.c. Which nodes take quantized values and make quantized values. */
oct_status oct_write_plan_operators(oct_writer *w, oct_err *err);
/* Whether a use is of quantized values; then its place in what the node becomes is filled in. */
bool oct_write_input_qvals(const oct_writer *w, oct_use u, const int qval[3]);
/* The node makes quantized values in the place of value `real`. */
oct_status oct_write_output_qvals(oct_writer *w, int id, int real, const int qval[3], oct_err *err);

/* The same for readers and makers at each QuantizeLinear and DequantizeLinear that was in the file. order: the nodes that were. */
oct_status oct_write_given_pairs(oct_writer *w, const int *order, size_t n, oct_err *err);
/* A MatMul on quantized values with a real result: lets ONNX Runtime see that it is none of reals. */
oct_status oct_write_matmul(oct_writer *w, int id, oct_err *err);

/* Nodes of the other spellings. */
oct_status oct_write_qlinear(oct_writer *w, int id, oct_err *err);
oct_status oct_write_dynamic(oct_writer *w, int id, oct_err *err);
oct_status oct_write_lstm(oct_writer *w, int id, oct_err *err);
oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err);
/* A GRU or RNN whose matrices are annotated becomes products and Scans, annotated in turn; to be called before anything else is written. */
oct_status oct_write_recurrent(oct_graph *g, int id, oct_err *err);
/* oct_write_constant for a matrix in blocks. */
oct_status oct_write_block_constant(oct_writer *w, int v, int before, oct_err *err);

#endif
