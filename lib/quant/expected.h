/* lib/quant/expected.h -- what the layers of a job are expected to take in our runtime, by the table of costs (kernels/costs.inc) and no clock. */
#ifndef OCT_QUANT_EXPECTED_H
#define OCT_QUANT_EXPECTED_H

#include "kernels/cpu.h"
#include "quant/layers.h"

/* Picoseconds of one thread, products alone: each layer as it is decided, on integers or on floats; and all of them in bf16. Layers of which
 * the kernels are the same in both, such as convolutions with one input channel a group, and recurrent ones, do not count. Layers with an
 * unknown number of rows have as many as the table takes for usual. */
typedef struct oct_expected {
    double decided, bf16;
} oct_expected;

/* With what `have` can run. Zeros where the table knows none of the kernels. */
oct_expected oct_expected_times(const oct_layer *layers, size_t n, oct_isa have);

#endif
