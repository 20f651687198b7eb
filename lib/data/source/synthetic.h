/* lib/data/source/synthetic.h -- generated samples, for models whose data are not available (`--data synthetic`).
 *
 * Pictures are dead leaves: discs and rectangles in colours of one palette that hide each other, with sizes by a power
 * law, shades and textures, which have edges and contrasts on all scales as photographs do (Lee, Mumford, Huang, 2001).
 * Rows of other arrays are correlated noise of mean 0 and deviation 1. The same numbers on every machine. */
#ifndef OCT_DATA_SYNTHETIC_H
#define OCT_DATA_SYNTHETIC_H

#include "base/array.h"

/* Their name in --data, and their number, of which a fifth can be held out. */
#define OCT_SYNTHETIC "synthetic"
enum { OCT_SYNTHETIC_COUNT = 80 };

/* Whether samples of an input are pictures: 1 to 4 channels, in front or last, beside two dimensions. h and w: their
 * size, 224 where it is open; c: channels. */
bool oct_synthetic_is_picture(const oct_input_desc *in, int *h, int *w, int *c);
/* Picture `index`: u8 [h][w][c], values 0 to 255. */
void oct_synthetic_picture(uint64_t index, int h, int w, int c, uint8_t *pixels);
/* Row `index`: x[n], in which neighbours along the last dimension, of size `length`, are correlated; mirrored: negated,
 * so that a row and its mirror image have mean 0. */
void oct_synthetic_row(uint64_t index, bool mirrored, size_t n, size_t length, float *x);

#endif
