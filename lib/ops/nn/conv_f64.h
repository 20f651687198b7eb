/* lib/ops/nn/conv_f64.h -- convolution and transposed convolution of float64, as plain loops. */
#ifndef OCT_OPS_CONV_F64_H
#define OCT_OPS_CONV_F64_H

#include "kernels/conv/conv.h"

/* The geometry and layouts are those of kernels/conv/conv.h: x f64[n][d][h][w][c], y f64[n][od][oh][ow][oc], w as ONNX
 * stores it; bias f64[oc] or NULL. Each output is a sum over taps and channels in ascending order that starts at the
 * bias. */
void oct_conv_f64(const oct_conv_geom *g, oct_pool *pool, const double *x, const double *w, const double *bias,
                  double *y);

#endif
