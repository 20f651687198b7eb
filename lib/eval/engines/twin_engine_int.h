/* lib/eval/engines/twin_engine_int.h -- a twin engine's internals, shared with twin_differences.c. */
#ifndef OCT_EVAL_TWIN_ENGINE_INT_H
#define OCT_EVAL_TWIN_ENGINE_INT_H

#include "eval/engines/twin_engine.h"
#include "runtime/model_inputs.h"
#include "tflite/tflite.h"

struct oct_twin_engine {
    oct_arena *arena;
    const oct_graph *g;
    const char *name;
    oct_model_inputs in;
    oct_tflite made; /* of the graph */
    char *file;      /* NULL: the model is `made` */
    oct_tfl_model read;
    const oct_tfl_model *m;
    oct_twin_run *run;
    oct_tfl_order *input, *output; /* of the model's ends */
    oct_operand *out;              /* [g->n_output], whose data are owned */
    size_t *room;
};

/* Whether a tensor is the value with its axes in that order. The batch may be open. */
bool oct_twin_has_order(const oct_tfl_tensor *t, const oct_value *v, const oct_tfl_order *o);
int64_t oct_twin_elements(const oct_tfl_tensor *t);
/* Takes the inputs of a batch, and makes room for its outputs. *n: how many samples it has. */
oct_status oct_twin_take(oct_twin_engine *e, const oct_array *arrays, int64_t *n, oct_err *err);
/* A sample of the batch into the model's inputs, and its outputs out of the model. */
oct_status oct_twin_feed(oct_twin_engine *e, int64_t sample, oct_err *err);
oct_status oct_twin_collect(oct_twin_engine *e, int64_t sample, oct_err *err);
/* A value's reals as a tensor of 8-bit integers, or of float32, has them. */
void oct_twin_round(const oct_tfl_tensor *t, const oct_tfl_order *order, const float *reals, void *to);

#endif
