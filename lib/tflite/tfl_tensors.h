/* lib/tflite/tfl_tensors.h -- which tensors of a .tflite model represent a value of the graph.
 *
 * A value may have several: in ONNX's order of axes or with the channels last, quantized or as reals. Whoever writes an
 * operator asks for its operands in the order and kind that it needs, and what is missing is made by TRANSPOSE,
 * RESHAPE, QUANTIZE and DEQUANTIZE. An order is kept along operators to which it does not matter, and a Transpose of
 * the graph is no operator at all: it renames the axes. */
#ifndef OCT_TFLITE_TFL_TENSORS_H
#define OCT_TFLITE_TFL_TENSORS_H

#include "tflite/tfl_model.h"
#include "tflite/tfl_order.h"

/* OWN: as the value is: integers where it is quantized. */
typedef enum oct_tfl_kind { OCT_TFL_OWN, OCT_TFL_REAL } oct_tfl_kind;

typedef struct oct_tfl_form {
    oct_tfl_order order;
    oct_tfl_kind kind; /* OWN of a value that is not quantized: real */
    int tensor;
} oct_tfl_form;

/* What is known of a value. */
typedef struct oct_tfl_state {
    oct_tfl_form *form;
    size_t n, cap;
    int open; /* the axis whose size is open in the model, and 1 in the graph that is written; -1: none */
    bool has_wish;
    oct_tfl_order wish; /* the order that its readers ask for */
} oct_tfl_state;

/* A tensor that is to be converted to the value's own form, when the operator that makes it is written. */
typedef struct oct_tfl_pending {
    int value, tensor;
    oct_tfl_order order;
} oct_tfl_pending;

enum { OCT_TFL_MOST_OUTPUTS = 256 };

typedef struct oct_tfl_writer {
    const oct_graph *g; /* read (forms/forms.h), with all shapes known */
    oct_arena *arena;
    oct_tfl_model *m;
    oct_tfl_state *value; /* [g->n_value] */
    int node;             /* that is being written */
    int out; /* the value that its first output becomes: behind an activation that is fused into it, that of the
                activation */
    oct_tfl_activation activation;
    bool wide;  /* its operator takes int16 */
    bool *skip; /* [g->n_node]: nodes that are part of what was written */
    oct_tfl_pending pending[OCT_TFL_MOST_OUTPUTS];
    size_t n_pending;
    oct_buf *notes; /* a line for each */
} oct_tfl_writer;

/* OCT_EUNSUPPORTED: the node cannot be written, for a reason; the hint is a remedy (NULL: the one that always helps).
 */
oct_status oct_tfl_cannot(const oct_tfl_writer *w, oct_err *err, const char *hint, const char *fmt, ...)
    OCT_PRINTF(4, 5);

/* ---- values ---- */

/* The rank of a value and its dimensions; fails where they are not known or too large. */
oct_status oct_tfl_dims(const oct_tfl_writer *w, int value, int *rank, int64_t dims[OCT_MAX_RANK], oct_err *err);
/* Whether the value is quantized as kernels on int8 take activations: int8, one scale. */
bool oct_tfl_is_int8(const oct_tfl_writer *w, int value);
/* The same of int8, or of int16 with zero point 0. */
bool oct_tfl_is_whole(const oct_tfl_writer *w, int value);
/* Whether the node can run on integers: its inputs [first, first + n) that there are, and its result are int8, or all
 * of them int16 where its operator takes that. */
bool oct_tfl_runs_whole(const oct_tfl_writer *w, int first, int n);
/* An integer constant's elements; fails if the value is none. *n: how many; absent values have none. */
oct_status oct_tfl_ints(const oct_tfl_writer *w, int value, const int64_t **v, int *n, oct_err *err);
/* Whether a value is a constant of one real number, or of equal ones. */
bool oct_tfl_one_real(const oct_tfl_writer *w, int value, float *x);

/* The one node that reads a value of reals; NULL: there are several or none, or it is an output. */
const oct_node *oct_tfl_only_reader(const oct_tfl_writer *w, int value, int *id);
/* The value behind the border at which a result is rounded to integers, where one alone reads it: that is then part of
 * the node. Else the value. */
int oct_tfl_behind_border(oct_tfl_writer *w, int value);

/* ---- orders ---- */

/* The order in which the value already has a tensor, the best known one; plain for constants. */
oct_tfl_order oct_tfl_order_of(const oct_tfl_writer *w, int value);
/* Whether moving axes from order a to order b changes no element's place: only axes of size 1 move. */
bool oct_tfl_moves_nothing(const oct_tfl_writer *w, int value, const oct_tfl_order *a, const oct_tfl_order *b, int rank,
                           const int64_t *dims);

/* ---- tensors ---- */

/* A tensor of the value in an order. */
oct_status oct_tfl_read(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind, int *tensor,
                        oct_err *err);
/* The same for who reads only the elements: axes of size 1 may stand elsewhere. */
oct_status oct_tfl_read_elements(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind,
                                 int *tensor, oct_err *err);
/* A constant whose dimensions are taken for `dims` of `rank`; axis: that of its scales, -1 if they are as the value
 * says. kind as above, but real constants are never made of integers here: the tensor is int8 where the value is. */
oct_status oct_tfl_read_constant(oct_tfl_writer *w, int value, int rank, const int64_t *dims,
                                 const oct_tfl_order *order, int axis, int *tensor, oct_err *err);
/* The tensor that an operator makes of a value. like: what its integers mean if that is given by the operator and not
 * by the value; the difference is made up for behind it. For REAL, a quantized value is rounded behind it. */
oct_status oct_tfl_result(oct_tfl_writer *w, int value, const oct_tfl_order *order, oct_tfl_kind kind,
                          const oct_quant *like, int *tensor, oct_err *err);
/* A tensor between two operators, with the type and quantization of tensor `as`. */
oct_status oct_tfl_between(oct_tfl_writer *w, const char *name, int as, int rank, const int64_t *dims, int open,
                           int *tensor, oct_err *err);
/* Lets `value` have the tensors of `from`, whose order of axes it changes: axis i of the value is axis perm[i] of
 * `from`. */
oct_status oct_tfl_rename(oct_tfl_writer *w, int value, int from, const int64_t *perm, oct_err *err);
/* A constant of 32-bit integers. */
oct_status oct_tfl_numbers(oct_tfl_writer *w, const char *name, int rank, const int64_t *dims, const int64_t *v,
                           int *tensor, oct_err *err);
/* A constant of a known type; data is borrowed. */
oct_status oct_tfl_constant(oct_tfl_writer *w, const char *name, oct_tfl_type type, int rank, const int64_t *dims,
                            const oct_quant *q, int axis, const void *data, int *tensor, oct_err *err);

/* ---- operators ---- */

/* Adds an operator. Its version is that of its first input's type. The operator may be changed until the next is added.
 */
oct_status oct_tfl_add(oct_tfl_writer *w, oct_tfl_code code, const int *in, int n_in, const int *out, int n_out,
                       oct_tfl_operator **op, oct_err *err);
/* Sets an option to a number, a byte (types, flags) or a real number. */
void oct_tfl_set(oct_tfl_operator *op, int slot, int32_t x);
void oct_tfl_set_byte(oct_tfl_operator *op, int slot, int x);
void oct_tfl_clear_byte(oct_tfl_operator *op, int slot); /* of a flag that is set by default */
void oct_tfl_set_real(oct_tfl_operator *op, int slot, float x);
/* RESHAPE of a tensor to the dimensions of another one. */
oct_status oct_tfl_reshape(oct_tfl_writer *w, int from, int to, oct_err *err);
/* Writes what is pending behind the operators of a node. */
oct_status oct_tfl_finish(oct_tfl_writer *w, oct_err *err);

#endif
