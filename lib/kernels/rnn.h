/* lib/kernels/rnn.h -- cells of recurrent networks over a row of units. */
#ifndef OCT_KERNELS_RNN_H
#define OCT_KERNELS_RNN_H

#include <stddef.h>

/* One step of n LSTM units with the usual functions: the new state from the gates before these,
 *   c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)
 * with the bits of oct_sigmoidf and oct_tanhf, products and sum rounded each.
 *   gates  f32[4][n]: i, o, f, g
 *   c      f32[n], read and written; h f32[n]; neither overlaps the others */
void oct_lstm_f32(const float *gates, size_t n, float *c, float *h);

#endif
