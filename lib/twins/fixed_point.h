/* lib/twins/fixed_point.h -- functions of fixed-point numbers of 32 or 16 bits (`width`), as gemmlowp defines them. A
 * number with n integer bits has width - 1 - n behind the point. */
#ifndef OCT_TWINS_FIXED_POINT_H
#define OCT_TWINS_FIXED_POINT_H

#include <stdint.h>

int32_t oct_fixed_exp(int width, int32_t x, int integer_bits); /* of x <= 0; without integer bits */
int32_t oct_fixed_reciprocal(int32_t x); /* 1 / (1 + x), 0 <= x < 1; both of 32 bits, without integer bits */
int32_t oct_fixed_logistic(int width, int32_t x, int integer_bits);
int32_t oct_fixed_tanh(int width, int32_t x, int integer_bits);

#endif
