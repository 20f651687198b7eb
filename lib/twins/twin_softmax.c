/* SOFTMAX of int8 along the last axis; its result has the scale 1/256 and the zero point -128. */
#include "twins/fixed_point.h"
#include "twins/twin_ops.h"

#include <math.h>

#include "kernels/math.h"

typedef struct rows {
    const int8_t *x;
    int8_t *y;
    int64_t n, width;
    float beta;
} rows;

static oct_status read_rows(const oct_twin_call *c, rows *r, oct_err *err)
{
    const oct_twin_tensor *x = c->in[0], *y = c->out[0];
    if (x->count != y->count || x->t->rank < 1)
        return oct_twin_unfit(c, "its result has another size", err);
    if (y->scale != 1.0f / 256 || y->zero != -128)
        return oct_twin_cannot(c, err, "its result does not have the scale 1/256 and the zero point -128");
    *r = (rows){ x->data, y->data, 0, oct_twin_dim(x->t, 0), oct_tfl_option_real(c->op, OCT_TFL_SOFTMAX_BETA, 0) };
    r->n = r->width ? x->count / r->width : 0;
    return OCT_OK;
}

static int32_t largest(const int8_t *x, int64_t n)
{
    int32_t most = -128;
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

void oct_twin_exponentials(const oct_twin_call *c, int32_t of[256])
{
    const float beta = oct_tfl_option_real(c->op, OCT_TFL_SOFTMAX_BETA, 0);
    const double real = fmin((double)beta * (double)c->in[0]->scale * (1 << 26), 2147483647.0);
    const oct_rescale by = oct_rescale_fixed(real);
    const int32_t least = -(int32_t)floor(31.0 * (1 << 26) / (double)(INT64_C(1) << (by.shift > 0 ? by.shift : 0)));
    for (int d = 0; d < 256; d++)
        of[d] = -d < least ? -1 : oct_fixed_exp(32, oct_high_product(oct_shift_left(-d, by.shift), by.multiplier), 5);
}

/* Differences from the largest with 5 integer bits, sums of their exponentials with 12. */
oct_status oct_twin_softmax_fixed(const oct_twin_call *c, const void *how, oct_err *err)
{
    rows r;
    int32_t of[256];
    (void)how;
    OCT_TRY(read_rows(c, &r, err));
    oct_twin_exponentials(c, of);
    for (int64_t i = 0; i < r.n; i++, r.x += r.width, r.y += r.width) {
        const int32_t most = largest(r.x, r.width);
        uint32_t sum = 0;
        for (int64_t k = 0; k < r.width; k++)
            sum += of[most - r.x[k]] < 0 ? 0 : (uint32_t)oct_divide_power(of[most - r.x[k]], 12);
        const int head = sum ? __builtin_clz(sum) : 31;
        const int32_t scale = oct_fixed_reciprocal((int32_t)((sum << head) - (UINT32_C(1) << 31)));
        for (int64_t k = 0; k < r.width; k++) {
            const int32_t e = of[most - r.x[k]];
            r.y[k] =
                e < 0 ? -128
                      : (int8_t)oct_twin_clamp((int64_t)oct_divide_power(oct_high_product(scale, e), 12 - head + 23) -
                                                   128,
                                               -128, 127);
        }
    }
    return OCT_OK;
}

/* Exponentials in float, added in order; half away from zero. */
oct_status oct_twin_softmax_float(const oct_twin_call *c, const void *how, oct_err *err)
{
    rows r;
    (void)how;
    OCT_TRY(read_rows(c, &r, err));
    const float scale = -c->in[0]->scale * r.beta;
    float of[256];
    for (int d = 0; d < 256; d++)
        of[d] = (float)oct_exp((double)(scale * (float)d));
    for (int64_t i = 0; i < r.n; i++, r.x += r.width, r.y += r.width) {
        const int32_t most = largest(r.x, r.width);
        float sum = 0;
        for (int64_t k = 0; k < r.width; k++)
            sum += of[most - r.x[k]];
        const float by = 1.0f / (sum * c->out[0]->scale);
        for (int64_t k = 0; k < r.width; k++)
            r.y[k] = (int8_t)oct_twin_clamp((int64_t)(of[most - r.x[k]] * by + 0.5f) - 128, -128, 127);
    }
    return OCT_OK;
}
