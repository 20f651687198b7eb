/* Functions of one float64. */
#include "ops/core/unary_f64.h"

#include "kernels/math.h"

#include <math.h>

static double sigmoid(double x)
{
    double e = oct_exp(x < 0 ? x : -x);
    return x < 0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

static double softplus(double x)
{
    return (x > 0 ? x : 0) + oct_log1p(oct_exp(-fabs(x)));
}

static double unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double shrink(double x, double lambda, double bias)
{
    return x < -lambda ? x + bias : x > lambda ? x - bias : x != x ? x : 0;
}

bool oct_unary_f64(const oct_unary *f, double x, double *y)
{
    double a = f->a, b = f->b;
    switch (f->op) {
    case OCT_UNARY_RELU: *y = x < 0 ? 0 : x; return true;
    case OCT_UNARY_LEAKY_RELU: *y = x < 0 ? a * x : x; return true;
    case OCT_UNARY_THRESHOLDED_RELU: *y = x > a ? x : 0; return true;
    case OCT_UNARY_SIGMOID: *y = sigmoid(x); return true;
    case OCT_UNARY_HARD_SIGMOID: *y = unit(a * x + b); return true;
    case OCT_UNARY_HARD_SWISH: *y = x * unit(x / 6 + 0.5); return true;
    case OCT_UNARY_SWISH: *y = x * sigmoid(a * x); return true;
    case OCT_UNARY_MISH: *y = x * oct_tanh(softplus(x)); return true;
    case OCT_UNARY_TANH: *y = oct_tanh(x); return true;
    case OCT_UNARY_ELU: *y = x < 0 ? a * oct_expm1(x) : x; return true;
    case OCT_UNARY_CELU: *y = x < 0 ? a * oct_expm1(x / a) : x; return true;
    case OCT_UNARY_SELU: *y = b * (x < 0 ? a * oct_expm1(x) : x); return true;
    case OCT_UNARY_SOFTPLUS: *y = softplus(x); return true;
    case OCT_UNARY_SOFTSIGN: *y = x / (1 + fabs(x)); return true;
    case OCT_UNARY_EXP: *y = oct_exp(x); return true;
    case OCT_UNARY_LOG: *y = oct_log(x); return true;
    case OCT_UNARY_SQRT: *y = sqrt(x); return true;
    case OCT_UNARY_RECIPROCAL: *y = 1 / x; return true;
    case OCT_UNARY_ABS: *y = fabs(x); return true;
    case OCT_UNARY_NEG: *y = -x; return true;
    case OCT_UNARY_SIGN: *y = x > 0 ? 1 : x < 0 ? -1 : x; return true;
    case OCT_UNARY_FLOOR: *y = floor(x); return true;
    case OCT_UNARY_CEIL: *y = ceil(x); return true;
    case OCT_UNARY_ROUND: *y = rint(x); return true;
    case OCT_UNARY_ERF: *y = oct_erf(x); return true;
    case OCT_UNARY_GELU: *y = 0.5 * x * (1 + oct_erf(x * 0x1.6a09e667f3bcdp-1)); return true;
    case OCT_UNARY_GELU_TANH:
        *y = 0.5 * x * (1 + oct_tanh(0x1.9884533d43651p-1 * (x + 0.044715 * x * x * x))); /* sqrt(2 / pi) */
        return true;
    case OCT_UNARY_SIN: *y = oct_sin(x); return true;
    case OCT_UNARY_COS: *y = oct_cos(x); return true;
    case OCT_UNARY_TAN: *y = oct_tan(x); return true;
    case OCT_UNARY_ASIN: *y = oct_asin(x); return true;
    case OCT_UNARY_ACOS: *y = oct_acos(x); return true;
    case OCT_UNARY_ATAN: *y = oct_atan(x); return true;
    case OCT_UNARY_SINH: *y = oct_sinh(x); return true;
    case OCT_UNARY_COSH: *y = oct_cosh(x); return true;
    case OCT_UNARY_ASINH: *y = oct_asinh(x); return true;
    case OCT_UNARY_ACOSH: *y = oct_acosh(x); return true;
    case OCT_UNARY_ATANH: *y = oct_atanh(x); return true;
    case OCT_UNARY_SCALE: *y = fma(x, a, b); return true;
    case OCT_UNARY_SHRINK: *y = shrink(x, a, b); return true;
    default: return false;
    }
}
