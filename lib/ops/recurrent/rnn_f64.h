/* lib/ops/recurrent/rnn_f64.h -- LSTM, GRU and RNN of float64, as plain loops: a sequence at a time. */
#ifndef OCT_OPS_RNN_F64_H
#define OCT_OPS_RNN_F64_H

#include "ops/recurrent/rnn_layer.h"

/* Memory that a thread needs, in doubles. */
int64_t oct_rnn_f64_slot(const oct_rnn *g);
/* All directions and sequences of a step whose inputs and outputs are f64 as ONNX has them (checked); lens i32[batch]
 * or NULL. Steps beyond a sequence's length are left as they are. scratch: oct_rnn_f64_slot() doubles for each of the
 * pool's threads. */
void oct_rnn_f64(const oct_step *s, const oct_rnn *g, const int32_t *lens, oct_pool *pool, double *scratch);

#endif
