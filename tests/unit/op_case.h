/* tests/unit/op_case.h -- operator cases in text form (tests/generate/op_case_text.py): a node, its inputs as
 * constants, its outputs. */
#ifndef OCT_TESTS_OP_CASE_H
#define OCT_TESTS_OP_CASE_H

#include "ops/core/infer.h"

enum { OP_CASE_IO = 16 };

typedef struct op_tensor {
    bool present;
    oct_dtype dtype;
    int rank;
    int64_t dims[OCT_MAX_RANK], count;
    uint8_t *data;
    size_t bytes;
    bool quantized;
    float scale;
    int32_t zp;
} op_tensor;

typedef struct op_case {
    char name[200], op[64], domain[64];
    int64_t opset;
    oct_graph *g;
    int node;
    op_tensor in[OP_CASE_IO], out[OP_CASE_IO];
    const oct_tensor *constant[OP_CASE_IO];
    int n_in, n_out;
    double rtol, atol;
    bool refuses;       /* must fail */
    bool free_shape;    /* the output's shape depends on data */
    bool exact;         /* outputs must be equal, also where they are real */
    op_tensor *capture; /* outputs go here instead of being compared */
} op_case;

/* Reads a file and calls fn for each of its cases, whose data last for the call. False when it cannot be read. */
bool op_cases_read(const char *path, void (*fn)(op_case *c, void *arg), void *arg);

#endif
