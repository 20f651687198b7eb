/* lib/twins/wide/functions.h -- logistic and tanh of 16 bits by a table of 256 numbers and lines between them, as
 * runtimes compute them of activations of 16 bits. */
#ifndef OCT_TWINS_WIDE_FUNCTIONS_H
#define OCT_TWINS_WIDE_FUNCTIONS_H

#include <stdint.h>

/* 3 integers of x are 2^9 (logistic) or 2^8 (tanh) of the table's steps if `multiplier` is 3 and `shift` 0: with 12
 * bits behind the point. multiplier 0: 3 times 2^shift. The result has 15 bits behind the point. */
int32_t oct_wide_logistic(int32_t x, int32_t multiplier, int shift);
int32_t oct_wide_tanh(int32_t x, int32_t multiplier, int shift);

#endif
