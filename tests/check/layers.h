/* tests/check/layers.h -- the files of bench/shapes: products and convolutions of real networks. */
#ifndef OCT_CHECK_LAYERS_H
#define OCT_CHECK_LAYERS_H

#include "kernels/conv/conv.h"

/* A line of a file of bench/shapes: a convolution, or a product as a 1x1 one, and how often a network has it. */
typedef struct check_layer {
    char op[24];
    bool computed; /* both operands are activations: packing is part of the work */
    int64_t times, batch;
    oct_conv_geom g;
} check_layer;

/* As tables call it: "Conv 3x3/1 56x56 64-64". */
void check_layer_name(const check_layer *l, char *to, size_t size);

/* fn(arg, layer) for each line of a file; false, with a line on standard output, where it cannot be read or fn fails.
 */
bool check_each_layer(const char *path, bool (*fn)(void *arg, const check_layer *l, oct_err *err), void *arg);

#endif
