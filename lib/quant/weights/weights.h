/* lib/quant/weights/weights.h -- how weights, biases and tables are quantized, and why not. */
#ifndef OCT_QUANT_WEIGHTS_H
#define OCT_QUANT_WEIGHTS_H

#include "base/pool.h"
#include "quant/job/scope.h"

/* weights.c: quantizes weights and biases according to the nodes' schemes. c (may be NULL) holds the means by which
 * biases are corrected. */
oct_status oct_decide_weights(oct_qjob *j, const oct_calib *c, oct_err *err);

/* The type of the activations by which a layer's weights are multiplied. */
oct_dtype oct_activations_of(const oct_qjob *j, int node);
/* weights.c: biases of s8 with one scale of their own, for targets that have such: the least power of two, not below a
 * step of the bias, in which its values fit into a byte; and the bias rounded to whole numbers of that, which stays
 * s32. */
float oct_own_bias_scale(const oct_quant *b);
void oct_round_to_own_bias(oct_quant *b);

/* shared_weights.c: whether two layers see weights in the same way. */
bool oct_same_layout(const oct_weight_layout *a, const oct_weight_layout *b);
/* Iterates over the layers that share their 8-bit weights with a node, the node included: the first
 * whose index is above `after`; -1: there are no more. The first one (after = -1) owns the weights, and the others use
 * them. */
int oct_weights_next(const oct_qjob *j, int node, int after);

/* row_tables.c: the reason why rows that a node picks are not quantized, or NULL. *is_table: whether the node picks
 * from a float table at all. */
const char *oct_no_table(const oct_qjob *j, int node, bool *is_table);
/* Whether a product multiplies by the numbers of such a table. */
bool oct_is_tied(const oct_qjob *j, int product);
/* Whether a table with a product's numbers stays in the file as floats. */
bool oct_tied_stays_real(const oct_qjob *j, int product);
/* Quantizes all tables. Called after the weights of products are quantized, because a table with the same numbers uses
 * these. */
oct_status oct_decide_tables(oct_qjob *j, oct_pool *pool, oct_err *err);
/* Whether all numbers of a constant of float32 are finite. */
bool oct_constant_is_finite(const oct_qjob *j, int value);
/* Rounds a float32 tensor to s8 with a scale for each row along its last dimension. Adds the squares of its values to
 * *signal, and those of the errors to *noise. */
oct_status oct_quantize_rows(oct_qjob *j, const oct_tensor *t, oct_pool *pool, oct_quant *quant, double *signal,
                             double *noise, oct_err *err);

/* Rounds a matrix [1, gates * units, k] of an LSTM, of float32, to s8 with a scale for each gate (gate_weights.c). */
oct_status oct_quantize_gates(oct_arena *a, const oct_tensor *t, oct_quant *quant, oct_err *err);

/* 8-bit weights of layers that compute in float (stored_weights.c). In order: the reason why a layer cannot have them,
 * or NULL; quantizes them. */
const char *oct_no_stored(const oct_qjob *j, int node);
/* Whether the experts of a node are stored in blocks. */
bool oct_stores_expert_blocks(const oct_qjob *j, int node);
oct_status oct_decide_stored(oct_qjob *j, int node, oct_pool *pool, oct_err *err);

/* Whether pairs of a node's 8-bit weights must be safe from saturation: sums would saturate, and u8 weights are slower
 * or not supported. */
typedef enum oct_pair_need { OCT_PAIRS_ANY, OCT_PAIRS_SAFE_WANTED, OCT_PAIRS_SAFE_NEEDED } oct_pair_need;
oct_pair_need oct_pairs_need(const oct_qjob *j, int node);
/* Makes the pairs of a product safe by larger scales alone, if its weights are not safe and oct_pairs_need wants that
 * at little cost. */
oct_status oct_make_safe(oct_qjob *j, int node, oct_err *err);
/* The scales of a product's weights before any were widened: scale[], one for each channel that has one. */
oct_status oct_own_steps(oct_qjob *j, int node, float *scale, oct_err *err);
/* Gives a product these quantized values, in ONNX's layout, with scales widened[] times its own (NULL: its own). Both
 * are copied. */
oct_status oct_take_weights(oct_qjob *j, int node, const int8_t *qvals, const float *widened, oct_err *err);

/* block_weights.c: the reason why a product's weights cannot be in blocks, or NULL. */
const char *oct_no_blocks(const oct_qjob *j, int node);
/* The name in cost tables of a product with weights in blocks, with the blocks that it would have. */
oct_cost_how oct_block_cost(const oct_qjob *j, int node);
/* Chooses parameters and quantized values of a product's weights in blocks. Called once, because they depend on no
 * statistics. */
oct_status oct_make_blocks(oct_qjob *j, int node, oct_pool *pool, oct_err *err);

#endif
