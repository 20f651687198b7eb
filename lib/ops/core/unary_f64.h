/* lib/ops/core/unary_f64.h -- the functions of kernels/unary.h for float64. */
#ifndef OCT_OPS_UNARY_F64_H
#define OCT_OPS_UNARY_F64_H

#include "kernels/unary.h"

/* *y = f(x), the same bits everywhere; false where there is no such function of float64. */
bool oct_unary_f64(const oct_unary *f, double x, double *y);

#endif
