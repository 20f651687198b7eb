/* lib/eval/run/testcase.h -- runs an ONNX test case: reads input_N.pb, and compares the results with output_N.pb. */
#ifndef OCT_EVAL_TESTCASE_H
#define OCT_EVAL_TESTCASE_H

#include "base/pool.h"
#include "ops/datum.h"
#include "runtime/plan.h"

typedef struct oct_check_options {
    double rtol, atol; /* the tolerance is |got - want| <= atol + rtol |want|; for 16-bit floats, rtol is at least two
                          units in the last place */
    oct_pool *pool;
} oct_check_options;

typedef struct oct_check_result {
    size_t outputs; /* how many values were compared */
    uint64_t values, differ;
    double max_abs;  /* the largest difference of finite values */
    char first[300]; /* the first difference: "output 'y'[0,3] is 1.5, expected 1.25"; "" if all are equal within the
                        tolerance */
} oct_check_result;

/* dir: a test_data_set_* folder, where each file is a TensorProto, SequenceProto or OptionalProto, as the model
 * declares the input or output with that number. Tensors are assigned to inputs and outputs by the names in the files
 * if the model has any of these names, else by number. Types and shapes must be equal; NaN equals NaN. If results
 * differ, the status is OCT_OK and result->first is set. Errors are those of reading, planning and running;
 * OCT_EMALFORMED: a file is missing. */
oct_status oct_check_case(const oct_graph *g, const char *dir, const oct_check_options *o, oct_check_result *result,
                          oct_err *err);

/* The steps of that, for callers that run a case in another way. */
/* Reads the values of a folder for n graph inputs (kind "input") or outputs ("output"), whose indices are in `value`:
 * x[n], to be released with oct_case_free; their bytes are in the arena. A value without a file becomes NULL. */
oct_status oct_case_load(const oct_graph *g, const int *value, size_t n, const char *dir, const char *kind,
                         oct_arena *a, oct_datum **x, oct_err *err);
void oct_case_free(oct_datum **x, size_t n);
/* What a plan must know about the values of the inputs of g. OCT_EMALFORMED names an input without a value. */
oct_status oct_case_inputs(const oct_graph *g, oct_datum *const *x, oct_plan_input *in, oct_err *err);
/* Compares the outputs of a run with the expected ones, and adds to the result. want[i]: that of output i; NULL: it is
 * not compared. */
oct_status oct_case_compare(const oct_plan *p, oct_datum *const *want, const oct_check_options *o, oct_check_result *r,
                            oct_err *err);

/* Compares one value, and adds to the result. name: for messages. OCT_EUNSUPPORTED: the type is not numeric, and the
 * bytes are not all equal. */
oct_status oct_check_compare(const char *name, const oct_datum *want, const oct_datum *got, const oct_check_options *o,
                             oct_check_result *result, oct_err *err);

#endif
