/* lib/quant/place/expected.h -- how long the layers of a job are expected to take in our runtime, by the table of costs
 * (kernels/costs.inc). No clock is read. */
#ifndef OCT_QUANT_EXPECTED_H
#define OCT_QUANT_EXPECTED_H

#include "kernels/cpu.h"
#include "quant/job/layers.h"

/* Picoseconds on one thread, of matrix products and convolutions alone: with each layer as it is decided, on integers
 * or in float; and with all of them in bf16. Layers that use the same kernels in both cases do not count, such as
 * convolutions with one input channel a group, and recurrent layers. For layers with an unknown number of rows, the
 * table's usual number is assumed. */
typedef struct oct_expected {
    double decided, bf16;
} oct_expected;

/* The times with the instruction sets of `have`. Zeros if the table knows none of the kernels. */
oct_expected oct_expected_times(const oct_layer *layers, size_t n, oct_isa have);

#endif
