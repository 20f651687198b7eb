/* lib/forms/write/write_int.h -- shared by the files that write forms. */
#ifndef OCT_FORMS_WRITE_INT_H
#define OCT_FORMS_WRITE_INT_H

#include "forms/edit.h"
#include "forms/write/forms_write.h"
#include "forms/qlinear.h"

/* How a node is written. */
typedef enum oct_spelling {
    OCT_SPELLED_REAL,    /* in float, between QuantizeLinear and DequantizeLinear */
    OCT_SPELLED_QVALS,   /* unchanged: it moves quantized values */
    OCT_SPELLED_QLINEAR, /* as an integer operator */
    OCT_SPELLED_DYNAMIC, /* in one of these forms, which depend on its weights and write them themselves */
    OCT_SPELLED_LSTM,
    OCT_SPELLED_BLOCKS
} oct_spelling;

typedef struct oct_node_plan {
    oct_spelling spelling;
    const oct_qlinear *f; /* for QLINEAR: the entry of the operator that it becomes, and its inputs, which are filled in
                             when their values are written */
    int *in, n_in;
} oct_node_plan;

typedef struct oct_value_plan {
    const oct_quant *q; /* the parameters of the output of a file's DequantizeLinear, and of the quantized values of its
                           QuantizeLinear */
    int maker;          /* the node that computes the quantized values itself; -1: a QuantizeLinear does */
    /* constants that were written already, or -1: those of the matrix in blocks, or of a matrix for MatMulInteger,
     * unchanged and transposed */
    int written[2];
} oct_value_plan;

/* The constants of scales and zero points. */
typedef struct oct_params_consts {
    const oct_quant *of; /* the parameters to which they belong; NULL: the entry is empty */
    int scale, zero;
} oct_params_consts;

typedef struct oct_writer {
    oct_graph *g;
    const oct_forms_write_opts *o;
    oct_node_plan *node; /* [n_node], for the original graph */
    size_t n_node;
    oct_value_plan *value;     /* by value of the original graph */
    oct_params_consts *params; /* [n_params], a power of two: a hash table with open addressing, by address */
    size_t n_params;
} oct_writer;

/* The name X, for a quantized constant named "X_quantized" or "X_quantized_2". */
oct_status oct_write_base(const oct_writer *w, int value, const char **base, oct_err *err);

/* Adds a constant with the quantized values of annotated constant v, which is removed, except for its uses. It gets the
 * name of v if that is a name of quantized values. */
oct_status oct_write_qvals(oct_writer *w, int v, const oct_tensor *t, int *qvals, oct_err *err);
/* Makes readers of annotated value v read its quantized values if they can, and the float value `to` if not. qval:
 * quantized values, scale and zero point. */
oct_status oct_write_readers(oct_writer *w, int v, const int qval[3], int to, oct_err *err);
/* The float value, named after `base`, that the other readers of v read from now on. A DequantizeLinear must compute
 * it. */
oct_status oct_write_real(oct_writer *w, int v, const char *base, const int qval[3], int *real, oct_err *err);

/* write_qdq.c. Constants of scale and zero point, made once for all values that share them: rank 0, or rank 1 for
 * channels. */
oct_status oct_write_params(oct_writer *w, const oct_quant *q, const char *base, int *scale, int *zero, oct_err *err);
/* Zero points only, with any rank. */
oct_status oct_write_zeros(oct_graph *g, const oct_quant *q, const char *base, int rank, const int64_t *dims, int *v,
                           oct_err *err);
/* Adds the quantized values of an annotated constant and, before node `before`, a DequantizeLinear for all its
 * readers. */
oct_status oct_write_constant(oct_writer *w, int v, int before, oct_err *err);
/* Writes an annotated activation, which an operator or its border, a QuantizeLinear, computes: adds nodes after it that
 * quantize and dequantize. */
oct_status oct_write_activation(oct_writer *w, int v, oct_err *err);

/* write_qlinear.c. Decides which nodes read and compute quantized values. */
oct_status oct_write_plan_operators(oct_writer *w, oct_err *err);
/* Whether a use reads quantized values. Then it is filled in at the inputs of the operator that the node becomes. */
bool oct_write_input_qvals(const oct_writer *w, oct_use u, const int qval[3]);
/* Makes the node compute quantized values in place of value `real`. */
oct_status oct_write_output_qvals(oct_writer *w, int id, int real, const int qval[3], oct_err *err);

/* The same for nodes before and after each QuantizeLinear and DequantizeLinear that the file had. order: the original
 * nodes. */
oct_status oct_write_given_pairs(oct_writer *w, const int *order, size_t n, oct_err *err);
/* Writes a MatMul on quantized values with a float result so that ONNX Runtime does not take it for a float one. */
oct_status oct_write_matmul(oct_writer *w, int id, oct_err *err);

/* Write nodes in the other forms. */
oct_status oct_write_qlinear(oct_writer *w, int id, oct_err *err);
oct_status oct_write_dynamic(oct_writer *w, int id, oct_err *err);
oct_status oct_write_lstm(oct_writer *w, int id, oct_err *err);
oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err);
/* Turns a GRU or RNN with annotated matrices into products and Scans, which are annotated as well. Must be called
 * before anything is written. */
oct_status oct_write_recurrent(oct_graph *g, int id, oct_err *err);
/* Makes an operator on quantized values of a MoE with experts in blocks of 4 bits; leaves other nodes as they are. */
oct_status oct_write_experts(oct_graph *g, int id, oct_err *err);
/* The same as oct_write_constant, for a matrix in blocks. */
oct_status oct_write_block_constant(oct_writer *w, int v, int before, oct_err *err);

#endif
