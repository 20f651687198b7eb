/* lib/tflite/tfl_model.h -- a .tflite model in memory: tensors, and operators that read and make them in order.
 * Everything lives in an arena that the caller gives; constants' bytes and names are borrowed. */
#ifndef OCT_TFLITE_TFL_MODEL_H
#define OCT_TFLITE_TFL_MODEL_H

#include "base/io.h"
#include "graph/graph.h"
#include "tflite/flatbuffer.h"
#include "tflite/schema.h"
#include "tflite/tfl_order.h"

typedef struct oct_tfl_tensor {
    const char *name;
    oct_tfl_type type;
    int rank;
    int32_t dims[OCT_MAX_RANK];
    int open;               /* a dimension that a program may change before a run, 1 in dims; -1: none */
    bool more_open;         /* of a model that was read: there are several, and `open` is the first */
    bool variable;          /* keeps its content from run to run */
    const oct_quant *quant; /* of its integers; NULL: none */
    int axis;               /* of several scales */
    const void *data;       /* a constant's, or NULL */
    size_t bytes;
    /* of a model that was made of a graph: the value whose numbers these are, as it has them; NULL: none. Axis i of the
     * tensor is axis order.d[i] of the value. */
    const char *value;
    oct_tfl_order order;
} oct_tfl_tensor;

enum { OCT_TFL_FIELDS = 8 };
typedef struct oct_tfl_operator {
    oct_tfl_code code;
    int version;
    int *in, *out; /* tensors; -1: absent */
    int n_in, n_out;
    int *within; /* tensors that only tell scales of what it computes on the way */
    int n_within;
    oct_flat_field field[OCT_TFL_FIELDS]; /* options other than their defaults */
    size_t n_fields;
    const char *custom; /* the name of what the schema does not have (code is CUSTOM); else NULL */
} oct_tfl_operator;

/* A named input or output. */
typedef struct oct_tfl_end {
    const char *name;
    int tensor;
    oct_tfl_order order; /* of a model that was made of a graph: axis i of the tensor is axis order.d[i] of the value */
} oct_tfl_end;

typedef struct oct_tfl_model {
    oct_arena *arena;
    oct_tfl_tensor *tensor;
    size_t n_tensor, cap_tensor;
    oct_tfl_operator *op;
    size_t n_op, cap_op;
    oct_tfl_end *input, *output;
    size_t n_input, n_output;
    const char *name, *description; /* of the graph; of the model: who made it */
    size_t n_subgraph;              /* of a model that was read, of which this is the first */
} oct_tfl_model;

/* The name of an operator, as "CONV_2D"; "?" for a number that the schema does not have. */
const char *oct_tfl_code_name(oct_tfl_code code);
/* The number of its table of options; 0: it has none, or it is not written here. */
int oct_tfl_code_options(oct_tfl_code code);
/* The version that takes int8. */
int oct_tfl_code_int8(oct_tfl_code code);
/* The version that takes int16; 0: it is not written so. */
int oct_tfl_code_int16(oct_tfl_code code);
/* The first runtime that has a version, as "1.14.0"; "" where that is not known. */
const char *oct_tfl_code_runtime(oct_tfl_code code, int version, char dst[16]);

/* An option as a number or a real number; `absent` where the operator leaves it at its default. */
int32_t oct_tfl_option(const oct_tfl_operator *op, int slot, int32_t absent);
float oct_tfl_option_real(const oct_tfl_operator *op, int slot, float absent);

/* The name of a type, as "INT8"; "?" for a number that the schema does not have. */
const char *oct_tfl_type_name(oct_tfl_type t);
/* Bits of an element; 0: they differ. */
int oct_tfl_type_bits(oct_tfl_type t);
/* Bytes of an element; 0: they differ, or several are packed into one. */
size_t oct_tfl_type_bytes(oct_tfl_type t);
/* The same type as graphs have it; OCT_UNDEFINED: they do not. */
oct_dtype oct_tfl_type_dtype(oct_tfl_type t);

/* Writes the model to an output that is open. OCT_EUNSUPPORTED if it is larger than a flatbuffer can be (2 GB), before
 * anything is written; OCT_ENOMEM. Errors of writing are kept in out. */
oct_status oct_tfl_model_write(const oct_tfl_model *m, oct_out *out, oct_err *err);
/* The bytes that it would write. */
oct_status oct_tfl_model_size(const oct_tfl_model *m, uint64_t *bytes, oct_err *err);

#endif
