/* lib/passes/input_pixels.h -- which numbers a model takes for pixels, as far as its first nodes tell: many exports
 * scale and shift pixels themselves. */
#ifndef OCT_PASSES_INPUT_PIXELS_H
#define OCT_PASSES_INPUT_PIXELS_H

#include "graph/graph.h"

typedef enum oct_pixels {
    OCT_PIXELS_UNKNOWN, /* the model does not scale the input itself, or by numbers that say nothing of pixels */
    OCT_PIXELS_BYTES,   /* 0 to 255 */
    OCT_PIXELS_UNIT,    /* 0 to 1 */
    OCT_PIXELS_SIGNED   /* -1 to 1 */
} oct_pixels;

/* Follows an input through nodes that move elements, and through sums and products with constants, normalizations by
 * constants and convolutions of single pixels and channels, until another node computes. Together these make a x + b of
 * a value x; of several channels the mean counts. A mean -b/a of 8 or more or a factor of at most 1/16 is that of
 * bytes; a mean between 0 and 1 with a factor of 1 to 100 is that of numbers between 0 and 1, as 2 x - 1 and (x -
 * 0.485) / 0.229; factors of 100 and more make bytes of numbers between 0 and 1, or with the mean -1 of numbers between
 * -1 and 1. A uint8 input takes bytes. The graph must be as it was loaded, because passes put such nodes into layers.
 * Constants of computed values are not evaluated. */
oct_pixels oct_input_pixels(const oct_graph *g, int input);

/* How far the values of an input spread with which a model was trained, as the batch normalization behind its first
 * convolution tells: the standard deviation sqrt(variance) of a channel over the length of its filter, in the median.
 * It is exact for independent values, and of neighbours in a picture right to a factor of a few. Trained networks have
 * 0.2 to 2 for pixels of 0 to 1 or -1 to 1, and 38 (ResNet-8 on CIFAR-10) for those of 0 to 255. NaN: no such layers.
 * The graph must be as it was loaded. */
double oct_input_spread(const oct_graph *g, int input);
enum {
    OCT_SPREAD_SCALED = 6, /* below: pixels are scaled before they go in */
    OCT_SPREAD_BYTES = 15  /* above: they are not */
};

#endif
