/* lib/kernels/elem/rnn.c -- recurrent cells of the instruction set in use. */
#include "kernels/rnn.h"

#include "kernels/elem/table.h"

void oct_lstm_f32(const float *gates, size_t n, float *c, float *h)
{
    oct_elem()->lstm(gates, n, c, h);
}
