/* Operators on float32, in plain loops. Runtimes differ here in the order of sums and in their elementary functions:
 * results are theirs but for rounding. */
#include "twins/twin_broadcast.h"
#include "twins/twin_ops.h"

#include <math.h>

#include "kernels/math.h"

float oct_twin_activated(const oct_twin_call *c, int slot, float x)
{
    switch (oct_tfl_option(c->op, slot, OCT_TFL_ACT_NONE)) {
    case OCT_TFL_ACT_RELU: return fmaxf(x, 0);
    case OCT_TFL_ACT_RELU6: return fminf(fmaxf(x, 0), 6);
    case OCT_TFL_ACT_RELU_N1_TO_1: return fminf(fmaxf(x, -1), 1);
    default: return x;
    }
}

/* ---- functions of one number ---- */

static float of_one(const oct_twin_call *c, float x)
{
    switch (c->op->code) {
    case OCT_TFL_RELU: return fmaxf(x, 0);
    case OCT_TFL_RELU6: return fminf(fmaxf(x, 0), 6);
    case OCT_TFL_RELU_N1_TO_1: return fminf(fmaxf(x, -1), 1);
    case OCT_TFL_LOGISTIC: return oct_sigmoidf(x);
    case OCT_TFL_TANH: return oct_tanhf(x);
    case OCT_TFL_HARD_SWISH: return x * fminf(fmaxf(x + 3, 0), 6) / 6;
    case OCT_TFL_LEAKY_RELU: return x < 0 ? x * oct_tfl_option_real(c->op, OCT_TFL_LEAKY_RELU_ALPHA, 0) : x;
    case OCT_TFL_ELU: return x < 0 ? oct_expm1f(x) : x;
    case OCT_TFL_EXP: return (float)oct_exp((double)x);
    case OCT_TFL_LOG: return (float)oct_log((double)x);
    case OCT_TFL_SQRT: return sqrtf(x);
    case OCT_TFL_ABS: return fabsf(x);
    case OCT_TFL_NEG: return -x;
    case OCT_TFL_GELU:
        return oct_tfl_option(c->op, OCT_TFL_GELU_APPROXIMATE, 0)
                   ? 0.5f * x * (1 + oct_tanhf(0.7978845608f * (x + 0.044715f * x * x * x)))
                   : oct_geluf(x);
    default: return floorf(x);
    }
}

static oct_status one(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    if (c->in[0]->count != c->out[0]->count)
        return oct_twin_unfit(c, "its result has another size", err);
    for (int64_t i = 0; i < c->in[0]->count; i++)
        ((float *)c->out[0]->data)[i] = of_one(c, ((const float *)c->in[0]->data)[i]);
    return OCT_OK;
}

/* ---- of two ---- */

static float of_two(const oct_twin_call *c, float a, float b)
{
    switch (c->op->code) {
    case OCT_TFL_ADD: return oct_twin_activated(c, OCT_TFL_BINARY_ACTIVATION, a + b);
    case OCT_TFL_SUB: return oct_twin_activated(c, OCT_TFL_BINARY_ACTIVATION, a - b);
    case OCT_TFL_MUL: return oct_twin_activated(c, OCT_TFL_BINARY_ACTIVATION, a * b);
    case OCT_TFL_DIV: return oct_twin_activated(c, OCT_TFL_BINARY_ACTIVATION, a / b);
    case OCT_TFL_MAXIMUM: return fmaxf(a, b);
    case OCT_TFL_MINIMUM: return fminf(a, b);
    default: return a < 0 ? a * b : a; /* PRELU */
    }
}

static float by_reciprocal(const oct_twin_call *c, float a, float b)
{
    return oct_twin_activated(c, OCT_TFL_BINARY_ACTIVATION, a * (1 / b));
}

static oct_status each(const oct_twin_call *c, float (*fn)(const oct_twin_call *c, float a, float b), oct_err *err)
{
    const int64_t *at_a, *at_b;
    if (!oct_twin_has(c, 2, OCT_TFL_FLOAT32, OCT_TFL_FLOAT32))
        return oct_twin_cannot(c, err, "its operands are not float32");
    OCT_TRY(oct_twin_repeat(c, c->in[0], &at_a, err));
    OCT_TRY(oct_twin_repeat(c, c->in[1], &at_b, err));
    const float *x = c->in[0]->data, *y = c->in[1]->data;
    for (int64_t i = 0; i < c->out[0]->count; i++)
        ((float *)c->out[0]->data)[i] = fn(c, x[at_a[i]], y[at_b[i]]);
    return OCT_OK;
}

static oct_status two(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return each(c, of_two, err);
}

oct_status oct_twin_div_tosa(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return each(c, by_reciprocal, err);
}

/* ---- along the last axis ---- */

static oct_status softmax(const oct_twin_call *c, const void *how, oct_err *err)
{
    const int64_t width = c->in[0]->t->rank ? oct_twin_dim(c->in[0]->t, 0) : 0;
    const float *x = c->in[0]->data,
                beta = c->op->code == OCT_TFL_SOFTMAX ? oct_tfl_option_real(c->op, OCT_TFL_SOFTMAX_BETA, 0) : 1;
    float *y = c->out[0]->data;
    (void)how;
    if (c->in[0]->count != c->out[0]->count || width < 1)
        return oct_twin_unfit(c, "its result has another size", err);
    for (int64_t i = 0; i < c->in[0]->count / width; i++, x += width, y += width) {
        float most = -INFINITY, sum = 0;
        for (int64_t k = 0; k < width; k++)
            most = fmaxf(most, x[k]);
        for (int64_t k = 0; k < width; k++)
            sum += y[k] = oct_expf((x[k] - most) * beta);
        for (int64_t k = 0; k < width; k++)
            y[k] = c->op->code == OCT_TFL_SOFTMAX ? y[k] / sum : x[k] - most - oct_logf(sum);
    }
    return OCT_OK;
}

const oct_twin_rule oct_twin_reals[] = {
    { OCT_TFL_RELU, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_RELU6, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_RELU_N1_TO_1, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_LOGISTIC, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_TANH, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_HARD_SWISH, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_LEAKY_RELU, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_ELU, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_EXP, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_LOG, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_SQRT, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_ABS, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_NEG, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_FLOOR, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_GELU, OCT_TWIN_REAL, one, NULL },
    { OCT_TFL_ADD, OCT_TWIN_REAL, two, NULL },
    { OCT_TFL_SUB, OCT_TWIN_REAL, two, NULL },
    { OCT_TFL_MUL, OCT_TWIN_REAL, two, NULL },
    { OCT_TFL_DIV, OCT_TWIN_REAL, two, NULL },
    { OCT_TFL_MAXIMUM, OCT_TWIN_REAL, two, NULL },
    { OCT_TFL_MINIMUM, OCT_TWIN_REAL, two, NULL },
    { OCT_TFL_PRELU, OCT_TWIN_REAL, two, NULL },
    { OCT_TFL_SOFTMAX, OCT_TWIN_REAL, softmax, NULL },
    { OCT_TFL_LOG_SOFTMAX, OCT_TWIN_REAL, softmax, NULL },
    { 0, 0, NULL, NULL },
};
