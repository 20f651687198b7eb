/* tools/library/model_int.h -- the contents of an octet_model, for the files that load (model_load.c) and run it
 * (model_run.c). */
#ifndef OCT_TOOLS_MODEL_INT_H
#define OCT_TOOLS_MODEL_INT_H

#include "octet_int.h"

#include "base/array.h"
#include "onnx/model.h"
#include "runtime/runner.h"

/* Memory for an output that the plan left in the caller's input. */
typedef struct octet_copy {
    void *data;
    size_t cap;
} octet_copy;

/* What models share: nothing in it changes after loading. */
typedef struct octet_core {
    atomic_int refs;  /* models that use it; the last one releases it */
    oct_arena *arena; /* memory of everything below, except what must be closed */
    oct_model *model;
    oct_pool *pool;
    oct_input_desc *want;
    octet_port *input, *output;
    size_t n_in, n_out;
} octet_core;

struct octet_model {
    atomic_bool busy; /* a run uses this */
    oct_arena *arena; /* memory of everything below, except what must be closed */
    octet_core *core;
    oct_runner *runner;
    oct_pool *others; /* threads of the caller's that the runner uses; NULL: it uses the core's */
    octet_parallel_fn others_fn;
    bool profile;
    oct_array *fed;    /* [n_in] */
    octet_array *made; /* [n_out] */
    octet_copy *copy;  /* [n_out] */
};

/* The array that a caller gave for the `kind` ("input", "constant") of that name, its numbers checked. to->data is the
 * caller's. OCT_EMALFORMED: a dimension, or there is no data; OCT_EUNSUPPORTED: the rank, or a type without a size. */
oct_status octet_take_array(const octet_array *a, const char *kind, const char *name, oct_array *to, oct_err *err);

/* Makes constants of the inputs that arrays are given for. The arrays are borrowed. */
oct_status octet_set_constants(oct_graph *g, const octet_array *constants, size_t n, oct_err *err);

#endif
