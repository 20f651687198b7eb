/* lib/eval/engines/twin_engine.h -- a model that is computed as another runtime does (lib/twins). A .tflite file is
 * computed as it is; any other model as the .tflite file that would be written of it. */
#ifndef OCT_EVAL_TWIN_ENGINE_H
#define OCT_EVAL_TWIN_ENGINE_H

#include "base/array.h"
#include "graph/graph.h"
#include "ops/op.h"
#include "twins/twins.h"

typedef struct oct_twin_engine oct_twin_engine;

/* g is the graph of the file `path`, NULL: of none; feed: as for oct_model_inputs_match. t, path and g are borrowed
 * until the end. Errors are those of oct_twin_open and of what makes a .tflite model. */
oct_status oct_twin_engine_open(const oct_twin *t, const char *path, const oct_graph *g, const oct_input_desc *feed,
                                size_t n_feed, oct_twin_engine **e, oct_err *err);
void oct_twin_engine_close(oct_twin_engine *e); /* NULL allowed */
/* Samples of a batch are computed one after the other. */
oct_status oct_twin_engine_run(oct_twin_engine *e, const oct_array *arrays, oct_err *err);
/* Output i of g from the last run; borrowed until the next run. */
const oct_operand *oct_twin_engine_output(const oct_twin_engine *e, size_t i);
/* "the twin of LiteRT with XNNPACK". Borrowed. */
const char *oct_twin_engine_name(const oct_twin_engine *e);

#endif
