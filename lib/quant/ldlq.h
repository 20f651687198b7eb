/* lib/quant/ldlq.h -- rounding on second moments: errors of weights compensate each other where their inputs go together.
 *
 * With second moments H = E[x x'] of inputs the squared error of an output is (w - q)' H (w - q). Weights are rounded one input after
 * the other; what rounding left of the inputs before is made up for by the next one as far as inputs go together: with
 * H = (U + 1) D (U + 1)', U strictly upper, q_k = round(w_k + sum_{j<k} (w_j - q_j) U_jk) (LDLQ: Chee et al., QuIP, 2023, section 3, which
 * equals GPTQ: Frantar et al., 2023). Inputs with the largest moments come first, and H gets a hundredth of its mean on the diagonal. */
#ifndef OCT_QUANT_LDLQ_H
#define OCT_QUANT_LDLQ_H

#include "base/status.h"

/* The work of one matrix of weights [depth][outs]; may be used for one after another of the same size. */
typedef struct oct_ldlq oct_ldlq;

/* rows: of inputs. NULL: out of memory. */
oct_ldlq *oct_ldlq_create(size_t depth, size_t outs, size_t rows);
void oct_ldlq_destroy(oct_ldlq *k); /* NULL allowed */

/* Takes inputs x[depth][rows], from when on it must begin to round anew. Where their moments are no numbers or all 0, weights are rounded to the nearest value. */
void oct_ldlq_inputs(oct_ldlq *k, const float *x);
/* Begins to round with them; *seen: there are such moments, else noise is that of the weights. pair[depth]: for each input the one beside
 * which it is added in 16 bits or -1, each named by the other, and all but one at most are in pairs; NULL: sums have 32 bits. Borrowed until
 * the next call. OCT_ENOMEM. */
oct_status oct_ldlq_begin(oct_ldlq *k, const int64_t *pair, bool *seen);

/* Where the caller puts the weights, float[depth][outs], and finds them rounded, int8_t[depth][outs]. */
float *oct_ldlq_weights(oct_ldlq *k);
const int8_t *oct_ldlq_qvals(const oct_ldlq *k);

enum { OCT_LDLQ_UNBOUND = 254 };
/* Rounds the weights to q * scale[outs], -limit <= q <= limit. most: what the magnitudes of two weights of one sign add up to at most in a
 * pair, where there are pairs; OCT_LDLQ_UNBOUND: anything. noise[outs]: (w - q)' H (w - q). OCT_ENOMEM. */
oct_status oct_ldlq_round(oct_ldlq *k, const float *scale, int limit, int most, double *noise);

/* Before rounding, replaces the weights by those that make of the inputs what these make of other[depth][rows], by least squares (GPTAQ: Li et al.,
 * 2025). x: as given to oct_ldlq_inputs. Does nothing without moments. OCT_ENOMEM. */
oct_status oct_ldlq_aim(oct_ldlq *k, const float *x, const float *other);

/* Quantized values of weights in blocks along the inputs: scale and zero point [outs][blocks] of input i are those of block i / block. */
typedef struct oct_ldlq_blocks {
    const float *scale;
    const int32_t *zero; /* the quantized value that stands for 0; NULL: middle */
    size_t block, blocks;
    int top, middle;     /* the largest quantized value, from 0 on */
} oct_ldlq_blocks;
/* Rounds the weights to (q - zero) * scale; quantized values are then bytes. noise: as oct_ldlq_round. OCT_ENOMEM. */
oct_status oct_ldlq_round_blocks(oct_ldlq *k, const oct_ldlq_blocks *b, double *noise);

/* cost[n][outs]: about the noise of each output with weights bound in pairs by `most` at scale[outs] times each of the factors, which ascend. */
void oct_ldlq_expect(const oct_ldlq *k, const float *scale, size_t n, const float *factor, int most, double *cost);

#endif
