/* lib/twins/fixed_point.h -- functions of fixed-point numbers of 32 bits, as gemmlowp defines them. A number with n
 * integer bits has 31 - n behind the point. */
#ifndef OCT_TWINS_FIXED_POINT_H
#define OCT_TWINS_FIXED_POINT_H

#include <stdint.h>

int32_t oct_fixed_exp(int32_t x, int integer_bits); /* of x <= 0; without integer bits */
int32_t oct_fixed_reciprocal(int32_t x);            /* 1 / (1 + x), 0 <= x < 1; both without integer bits */
int32_t oct_fixed_logistic(int32_t x, int integer_bits);
int32_t oct_fixed_tanh(int32_t x, int integer_bits);

#endif
