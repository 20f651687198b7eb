/* lib/tflite/read/read_operators.h -- how operators of .tflite are read: one table, with a file for each family. */
#ifndef OCT_TFLITE_READ_OPERATORS_H
#define OCT_TFLITE_READ_OPERATORS_H

#include "tflite/read/tensor_values.h"

/* Which order of axes an operator of ONNX asks for. */
typedef enum oct_tfl_wants {
    OCT_TFL_WANTS_PLAIN, /* that of the tensors */
    OCT_TFL_WANTS_FIRST, /* the channels first */
    OCT_TFL_WANTS_ANY    /* none: its result has that of its operands */
} oct_tfl_wants;

typedef struct oct_tfl_reading {
    oct_tfl_code code;
    const char *onnx;   /* what it becomes, for people */
    const char *limits; /* what of it cannot be read; "" if all can be */
    oct_tfl_wants wants;
    oct_status (*read)(oct_tfl_reader *r, oct_err *err);
} oct_tfl_reading;

/* How an operator is read; NULL: it is not. */
const oct_tfl_reading *oct_tfl_reading_of(oct_tfl_code code);

#define READING(code, onnx, limits, wants, read) oct_status read(oct_tfl_reader *r, oct_err *err);
#include "tflite/read/read_operators.inc"
#undef READING

#endif
