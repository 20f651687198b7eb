/* lib/kernels/unary.h -- functions of one f32, over arrays. */
#ifndef OCT_KERNELS_UNARY_H
#define OCT_KERNELS_UNARY_H

#include "base/pool.h"

/* a, b: the parameters of oct_unary. NaN in gives NaN out for every one of them. */
typedef enum oct_unary_op {
    OCT_UNARY_COPY = 0,
    OCT_UNARY_RELU,             /* x < 0 ? 0 : x                                   */
    OCT_UNARY_CLIP,             /* to [a, b]; a > b gives b                        */
    OCT_UNARY_LEAKY_RELU,       /* x < 0 ? a x : x                                 */
    OCT_UNARY_THRESHOLDED_RELU, /* x > a ? x : 0                                   */
    OCT_UNARY_SIGMOID,
    OCT_UNARY_HARD_SIGMOID, /* clip(a x + b, 0, 1); ONNX defaults 0.2, 0.5     */
    OCT_UNARY_HARD_SWISH,   /* x clip(x / 6 + 0.5, 0, 1)                       */
    OCT_UNARY_SWISH,        /* x sigmoid(a x)                                  */
    OCT_UNARY_MISH,         /* x tanh(softplus(x))                             */
    OCT_UNARY_TANH,
    OCT_UNARY_ELU,      /* x < 0 ? a (exp(x) - 1) : x                      */
    OCT_UNARY_CELU,     /* x < 0 ? a (exp(x / a) - 1) : x                  */
    OCT_UNARY_SELU,     /* b (x < 0 ? a (exp(x) - 1) : x); a alpha, b gamma */
    OCT_UNARY_SOFTPLUS, /* log(1 + exp(x))                                 */
    OCT_UNARY_SOFTSIGN, /* x / (1 + |x|)                                   */
    OCT_UNARY_ERF,
    OCT_UNARY_GELU,      /* 0.5 x (1 + erf(x / sqrt 2))                     */
    OCT_UNARY_GELU_TANH, /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    OCT_UNARY_EXP,
    OCT_UNARY_EXPM1,
    OCT_UNARY_LOG,
    OCT_UNARY_LOG1P,
    OCT_UNARY_SQRT,
    OCT_UNARY_RSQRT, /* 1 / sqrt(x)                                     */
    OCT_UNARY_RECIPROCAL,
    OCT_UNARY_SQUARE,
    OCT_UNARY_ABS,
    OCT_UNARY_NEG,
    OCT_UNARY_SIGN, /* -1, 0 or 1                                      */
    OCT_UNARY_FLOOR,
    OCT_UNARY_CEIL,
    OCT_UNARY_ROUND,  /* half to even                                    */
    OCT_UNARY_SHRINK, /* x < -a ? x + b : x > a ? x - b : 0              */
    OCT_UNARY_SIN,
    OCT_UNARY_COS,
    OCT_UNARY_TAN,
    OCT_UNARY_ASIN,
    OCT_UNARY_ACOS,
    OCT_UNARY_ATAN,
    OCT_UNARY_SINH,
    OCT_UNARY_COSH,
    OCT_UNARY_ASINH,
    OCT_UNARY_ACOSH,
    OCT_UNARY_ATANH,
    OCT_UNARY_POW,   /* x to the a                                      */
    OCT_UNARY_SCALE, /* fma(x, a, b)                                    */
    OCT_UNARY_COUNT
} oct_unary_op;

typedef struct oct_unary {
    oct_unary_op op;
    float a, b;
} oct_unary;

/* y[i] = f(x[i]) for f32[n]; y may be x. pool NULL: on the caller. */
void oct_unary_f32(oct_pool *pool, const oct_unary *f, const float *x, float *y, size_t n);

/* f of one value, the same bits as the array version. */
float oct_unary_value(const oct_unary *f, float x);

#endif
