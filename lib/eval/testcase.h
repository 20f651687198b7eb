/* lib/eval/testcase.h -- runs an ONNX test case: input_N.pb in, results compared with output_N.pb. */
#ifndef OCT_EVAL_TESTCASE_H
#define OCT_EVAL_TESTCASE_H

#include "base/pool.h"
#include "data/array_files.h"
#include "graph/graph.h"

typedef struct oct_check_options {
    double rtol, atol; /* |got - want| <= atol + rtol |want|; rtol of 16-bit floats is two units in the last place at least */
    oct_pool *pool;
} oct_check_options;

typedef struct oct_check_result {
    size_t outputs;    /* compared */
    uint64_t values, differ;
    double max_abs;    /* largest difference of finite values */
    char first[300];   /* "output 'y'[0,3] is 1.5, expected 1.25"; "" when all agree */
} oct_check_result;

/* dir: a test_data_set_* folder. Files are matched to inputs and outputs by the tensor's name, else by number. Types and
 * shapes must be equal; NaN equals NaN. A case that differs is OCT_OK with result->first set; failures are those of
 * reading, planning and running. */
oct_status oct_check_case(const oct_graph *g, const char *dir, const oct_check_options *o, oct_check_result *result,
                          oct_err *err);

/* Compares one tensor; adds to the result. name is for messages. */
oct_status oct_check_compare(const char *name, const oct_array *want, const oct_array *got, const oct_check_options *o,
                             oct_check_result *result, oct_err *err);

#endif
