/* lib/eval/testcase.h -- runs an ONNX test case: input_N.pb in, results compared with output_N.pb. */
#ifndef OCT_EVAL_TESTCASE_H
#define OCT_EVAL_TESTCASE_H

#include "base/pool.h"
#include "ops/datum.h"
#include "runtime/plan.h"

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

/* dir: a test_data_set_* folder with a TensorProto, SequenceProto or OptionalProto a file, as the model declares its input or output of
 * that number. Tensors are matched to inputs and outputs by the name inside when the model has any of these names, else by number. Types
 * and shapes must be equal; NaN equals NaN. A case that differs is OCT_OK with result->first set; failures are those of
 * reading, planning and running, and OCT_EMALFORMED where a file is missing. */
oct_status oct_check_case(const oct_graph *g, const char *dir, const oct_check_options *o, oct_check_result *result,
                          oct_err *err);

/* The steps of that, for who runs a case otherwise. */
/* The values of a folder for the n graph inputs (kind "input") or outputs ("output") whose indices are in `value`: x[n], released by
 * oct_case_free; their bytes are in the arena. One without a file is NULL. */
oct_status oct_case_load(const oct_graph *g, const int *value, size_t n, const char *dir, const char *kind, oct_arena *a, oct_datum **x, oct_err *err);
void oct_case_free(oct_datum **x, size_t n);
/* What a plan is to know of the values given for the inputs of g. OCT_EMALFORMED names an input without value. */
oct_status oct_case_inputs(const oct_graph *g, oct_datum *const *x, oct_plan_input *in, oct_err *err);
/* Compares the outputs of a run with those expected, want[i] that of output i, where NULL is not compared; adds to the result. */
oct_status oct_case_compare(const oct_plan *p, oct_datum *const *want, const oct_check_options *o, oct_check_result *r, oct_err *err);

/* Compares one value; adds to the result. name is for messages. OCT_EUNSUPPORTED for types without numbers, unless all bytes are equal. */
oct_status oct_check_compare(const char *name, const oct_datum *want, const oct_datum *got, const oct_check_options *o,
                             oct_check_result *result, oct_err *err);

#endif
