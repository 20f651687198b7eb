/* lib/kernels/elem/isa/k_rnn.c -- recurrent cells over a row, compiled once per instruction set. */
#include "kernels/elem/isa.h"

/* Two loops: as one, an iteration is a chain of operations so long that the next one waits for it. */
#define LSTM(name, sigmoid, tanh)                                                                                  \
    static void name(const float *i, const float *o, const float *f, const float *g, size_t n, float *c, float *h) \
    {                                                                                                              \
        OCT_EACH                                                                                                   \
        for (size_t j = 0; j < n; j++)                                                                             \
            c[j] = sigmoid(f[j]) * c[j] + sigmoid(i[j]) * tanh(g[j]);                                              \
        OCT_EACH                                                                                                   \
        for (size_t j = 0; j < n; j++)                                                                             \
            h[j] = sigmoid(o[j]) * tanh(c[j]);                                                                     \
    }
LSTM(lstm_any, oct_sigmoidf, oct_tanhf)
LSTM(lstm_small, oct_sigmoidf_small, oct_tanhf)

void K(lstm)(const float *gates, size_t n, float *c, float *h)
{
    (all_below(gates, 1, 3 * n, 0x7fffffffu, OCT_SIGMOID_SMALL) ? lstm_small : lstm_any)(gates, gates + n,
                                                                                         gates + 2 * n, gates + 3 * n,
                                                                                         n, c, h);
}
