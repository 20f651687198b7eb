/* lib/quant/rounding/ldlq.h -- rounding by second moments: rounding errors of weights compensate each other if their
 * inputs are correlated.
 *
 * With second moments H = E[x x'] of the inputs, the squared error of an output is (w - q)' H (w - q). Weights are
 * rounded one input after the other. Each weight compensates the errors that rounding has made so far, as far as its
 * input is correlated with the earlier ones: with H = (U + 1) D (U + 1)', where U is strictly upper triangular, q_k =
 * round(w_k + sum_{j<k} (w_j - q_j) U_jk). This is LDLQ (Chee et al., QuIP, 2023, section 3), which equals GPTQ
 * (Frantar et al., 2023). Inputs with the largest moments come first, and a hundredth of the mean of H's diagonal is
 * added to its diagonal. */
#ifndef OCT_QUANT_LDLQ_H
#define OCT_QUANT_LDLQ_H

#include "base/status.h"

/* Working memory for one matrix of weights [depth][outs]. It may be used for several matrices of the same size, one
 * after the other. */
typedef struct oct_ldlq oct_ldlq;

/* rows: the number of input rows. NULL: out of memory. */
oct_ldlq *oct_ldlq_create(size_t depth, size_t outs, size_t rows);
void oct_ldlq_destroy(oct_ldlq *k); /* l may be NULL */

/* Sets the inputs x[depth][rows]. After that, oct_ldlq_begin must be called again. If the moments are not finite or all
 * 0, weights are rounded to the nearest value. */
void oct_ldlq_inputs(oct_ldlq *k, const float *x);
/* Starts to round with these inputs. *seen: there are usable moments; if not, noise is that of the weights.
 * pair[depth]: the input with which each one is added in 16 bits, or -1; pairs are mutual. NULL: sums have 32 bits.
 * Borrowed until the next call. OCT_ENOMEM. */
oct_status oct_ldlq_begin(oct_ldlq *k, const int64_t *pair, bool *seen);

/* The place for the weights, float[depth][outs], and that of the rounded weights, int8_t[depth][outs]. */
float *oct_ldlq_weights(oct_ldlq *k);
const int8_t *oct_ldlq_qvals(const oct_ldlq *k);

enum { OCT_LDLQ_UNBOUND = 254 };
/* Rounds the weights to q * scale[outs], with -limit <= q <= limit. most: if there are pairs, the largest sum of
 * magnitudes of two weights of the same sign in a pair; OCT_LDLQ_UNBOUND: no bound. noise[outs]: (w - q)' H (w - q).
 * OCT_ENOMEM. */
oct_status oct_ldlq_round(oct_ldlq *k, const float *scale, int limit, int most, double *noise);

/* To be called before rounding: replaces the weights by those that, applied to the inputs, come closest in least
 * squares to the present weights applied to other[depth][rows] (GPTAQ: Li et al., 2025). x: as given to
 * oct_ldlq_inputs. Does nothing if there are no moments. OCT_ENOMEM. */
oct_status oct_ldlq_aim(oct_ldlq *k, const float *x, const float *other);

/* The form of weights in blocks along the inputs: scale and zero point are [outs][blocks], and input i belongs to block
 * i / block. */
typedef struct oct_ldlq_blocks {
    const float *scale;
    const int32_t *zero; /* the quantized value that represents 0; NULL: the middle one */
    size_t block, blocks;
    int top, middle; /* the largest quantized value; the smallest is 0 */
} oct_ldlq_blocks;
/* Rounds the weights to (q - zero) * scale, where q is a byte. noise: as in oct_ldlq_round. OCT_ENOMEM. */
oct_status oct_ldlq_round_blocks(oct_ldlq *k, const oct_ldlq_blocks *b, double *noise);

/* cost[n][outs]: the approximate noise of each output if weights are bound in pairs by `most`, with scale[outs] times
 * each of the factors. The factors ascend. */
void oct_ldlq_expect(const oct_ldlq *k, const float *scale, size_t n, const float *factor, int most, double *cost);

#endif
