/* lib/tflite/read/tensor_values.h -- which values of the graph represent a tensor of a file that is read.
 *
 * A tensor may have several: as its axes are, or with the channels first, and whoever reads an operator asks for the
 * order that it needs. A missing one is made by a Transpose, and TRANSPOSE of a file only renames axes. A tensor of
 * quantized integers is the real numbers that they represent, behind QuantizeLinear and DequantizeLinear. */
#ifndef OCT_TFLITE_TENSOR_VALUES_H
#define OCT_TFLITE_TENSOR_VALUES_H

#include "tflite/tfl_order.h"
#include "tflite/tfl_read.h"

/* A value of a tensor: its axis i is axis order.d[i] of the tensor. */
typedef struct oct_tfl_shown {
    oct_tfl_order order;
    int value;
} oct_tfl_shown;

typedef struct oct_tfl_found {
    const char *name; /* unique */
    int source;       /* 1 + the constant whose reals it is, behind DEQUANTIZE; 0: none */
    oct_tfl_shown *shown;
    size_t n, cap;
    bool has_wish;
    oct_tfl_order wish; /* the order that readers ask for */
} oct_tfl_found;

typedef struct oct_tfl_reader {
    const oct_tfl_model *m;
    oct_graph *g;
    oct_arena *arena; /* for the time of reading */
    oct_tfl_found *tensor;
    size_t at; /* the operator that is being read */
    const oct_tfl_operator *op;
    size_t named;                 /* 1 + the last operator of which a node has its name */
    uint64_t copied, most_copied; /* bytes of constants that were made, and may be */
    bool open;                    /* an input's batch is open */
    oct_buf *notes;               /* a line for each */
} oct_tfl_reader;

/* OCT_EUNSUPPORTED: the operator cannot be read, for a reason; the hint is a remedy (NULL: the one that always helps).
 */
oct_status oct_tfl_unread(const oct_tfl_reader *r, oct_err *err, const char *hint, const char *fmt, ...)
    OCT_PRINTF(4, 5);

/* ---- operands and results of the operator ---- */

/* The tensor that is operand or result k; NULL: absent. A constant behind DEQUANTIZE is that constant. */
const oct_tfl_tensor *oct_tfl_in(const oct_tfl_reader *r, int k);
const oct_tfl_tensor *oct_tfl_out(const oct_tfl_reader *r, int k);
/* Fails unless the operator has operand k, of at least rank `least`. */
oct_status oct_tfl_need(const oct_tfl_reader *r, int k, int least, oct_err *err);
/* The order in which operand k has a value already; plain for constants. */
oct_tfl_order oct_tfl_shown_order(const oct_tfl_reader *r, int k);
/* A value of operand k in an order. */
oct_status oct_tfl_take(oct_tfl_reader *r, int k, const oct_tfl_order *order, int *value, oct_err *err);
/* The same, of `rank` axes: axes of one element are added in front. */
oct_status oct_tfl_take_wide(oct_tfl_reader *r, int k, int rank, const oct_tfl_order *order, int *value, oct_err *err);
/* The same for who reads only the elements in the tensor's order: axes of size 1 may stand elsewhere. */
oct_status oct_tfl_take_elements(oct_tfl_reader *r, int k, int *value, oct_err *err);
/* Whether an axis has one element, whatever the batch. */
bool oct_tfl_is_one(const oct_tfl_tensor *t, int axis);
/* Whether two tensors differ in axes of one element alone; axis[i]: that of x which axis i of y is, -1 for one element.
 */
bool oct_tfl_same_axes(const oct_tfl_tensor *x, const oct_tfl_tensor *y, int axis[OCT_MAX_RANK]);
/* A value of operand k whose axes, but for those of one element, stand in this sequence; false: there is none. */
bool oct_tfl_find_sequence(const oct_tfl_reader *r, int k, const int *sequence, int n, int *value);
/* A constant operand whose dimensions are taken for `dims`, of which axis i of the value is perm[i]. like: what its
 * integers mean if the tensor does not say; NULL: it does. */
oct_status oct_tfl_take_constant(oct_tfl_reader *r, int k, int rank, const int64_t *dims, const int *perm,
                                 const oct_quant *like, int *value, oct_err *err);
/* Constant matrices with the same dimensions, of float32 or of int8 with one scale each, on top of each other: operands
 * k[0], k[1], ..., as a value [1, rows of all, columns]. */
oct_status oct_tfl_take_stacked(oct_tfl_reader *r, const int *k, int n, int *value, oct_err *err);
/* The elements of a constant operand of 32-bit or 64-bit integers. */
oct_status oct_tfl_take_ints(oct_tfl_reader *r, int k, const int64_t **v, int *n, oct_err *err);
/* The one real number of a constant operand. */
oct_status oct_tfl_take_real(oct_tfl_reader *r, int k, float *x, oct_err *err);
/* Rounds a value to the integers of result k, if it has some. */
oct_status oct_tfl_round(oct_tfl_reader *r, int k, int *value, oct_err *err);
/* Makes a value that result k is, in an order: behind it the tensor's rounding to integers, if it has one. */
oct_status oct_tfl_give(oct_tfl_reader *r, int k, const oct_tfl_order *order, int value, oct_err *err);
/* The same of a value that has the tensor's elements already: those of operand `from`. */
oct_status oct_tfl_give_same(oct_tfl_reader *r, int k, int from, const int *perm, oct_err *err);

/* ---- nodes ---- */

/* Adds a node of n inputs (-1: absent) and one output for result k; a Split has one for each result. The operator's
 * first node has the name of the tensor. value may be one of in. */
oct_status oct_tfl_node(oct_tfl_reader *r, int k, const char *op, const int *in, int n, int *node, int *value,
                        oct_err *err);
/* Another output of a node, for result k. */
oct_status oct_tfl_second(oct_tfl_reader *r, int k, int node, int slot, int *value, oct_err *err);
/* Constants of their operands. */
oct_status oct_tfl_const_ints(oct_tfl_reader *r, const char *name, const int64_t *v, int n, int *value, oct_err *err);
oct_status oct_tfl_const_real(oct_tfl_reader *r, const char *name, float x, int *value, oct_err *err);
/* Puts a fused activation behind *value. */
oct_status oct_tfl_activate(oct_tfl_reader *r, int slot, int *value, oct_err *err);

/* ---- ends ---- */

/* The value of an input of the model, and an output. */
oct_status oct_tfl_read_input(oct_tfl_reader *r, size_t i, oct_err *err);
oct_status oct_tfl_read_output(oct_tfl_reader *r, size_t i, oct_err *err);

#endif
