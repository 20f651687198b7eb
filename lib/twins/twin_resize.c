/* Pictures in another size. */
#include "twins/rescale.h"
#include "twins/twin_ops.h"

#include <math.h>
#include <string.h>

typedef struct sizes {
    int64_t in[2], out[2], channels, batches;
    bool corners, half;
} sizes;

static oct_status read_sizes(const oct_twin_call *c, int corners, int half, sizes *s, oct_err *err)
{
    const oct_tfl_tensor *x = c->in[0]->t, *y = c->out[0]->t;
    if (x->rank != 4 || y->rank != 4 || x->dims[0] != y->dims[0] || x->dims[3] != y->dims[3] || x->type != y->type ||
        x->dims[1] < 1 || x->dims[2] < 1)
        return oct_twin_unfit(c, "its operand is no picture", err);
    *s = (sizes){ { x->dims[1], x->dims[2] },
                  { y->dims[1], y->dims[2] },
                  x->dims[3],
                  x->dims[0],
                  oct_tfl_option(c->op, corners, 0) != 0,
                  oct_tfl_option(c->op, half, 0) != 0 };
    return OCT_OK;
}

/* Where a result lies between two places along an axis: `part` of the way from the first to the second. */
typedef struct between {
    int64_t first, second;
    int32_t part; /* of `whole` */
    int32_t whole;
} between;

/* ---- weights of 10 bits ---- */

static between between_fixed(const sizes *s, int axis, int64_t i)
{
    const int64_t in = s->in[axis], out = s->out[axis];
    const bool corners = s->corners && out > 1;
    const int64_t scale = (corners ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out);
    const int64_t at = i * scale + (s->half ? scale / 2 - 512 : 0);
    const int64_t low = at / 1024 > 0 ? at / 1024 : 0, high = (at + 1023) / 1024;
    return (between){ low < in ? low : in - 1, high < in ? high : in - 1, (int32_t)(at - 1024 * low), 1024 };
}

/* The sum with weights that come to both wholes' product. */
static int64_t weighted(const int8_t v[4], const between *y, const between *x)
{
    const int64_t down = y->part, up = y->whole - down, right = x->part, left = x->whole - right;
    return v[0] * up * left + v[1] * up * right + v[2] * down * left + v[3] * down * right;
}

static int32_t mixed_fixed(const int8_t v[4], const between *y, const between *x)
{
    const int64_t sum = weighted(v, y, x);
    return (int32_t)((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
}

/* ---- weights of 11 bits ---- */

/* The place in the picture, as a real. */
static float place_real(const sizes *s, int axis, int64_t i)
{
    const int64_t in = s->in[axis], out = s->out[axis];
    const float scale = s->corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    const float at = s->half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
    return fminf(fmaxf(at, 0), (float)(in - 1));
}

static between between_shift(const sizes *s, int axis, int64_t i)
{
    const int64_t in = s->in[axis];
    const float at = place_real(s, axis, i);
    const int64_t low = (int64_t)at;
    return (between){ low, low + 1 < in ? low + 1 : in - 1, (int32_t)rintf((at - (float)low) * 2048), 2048 };
}

static int32_t mixed_shift(const int8_t v[4], const between *y, const between *x)
{
    return (int32_t)((weighted(v, y, x) + (1 << 21)) >> 22);
}

/* ---- weights that are whole: places are fractions with the sizes as denominators ---- */

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

static between between_tosa(const sizes *s, int axis, int64_t i)
{
    const int64_t in = s->in[axis], out = s->out[axis];
    const bool corners = s->corners && out > 1;
    if (in == 1)
        return (between){ 0, 0, 0, (int32_t)out };
    const int64_t divisor = corners ? common_divisor(out - 1, in - 1) : common_divisor(out, in);
    const int64_t n = 2 * (corners ? out - 1 : out) / divisor, d = 2 * (corners ? in - 1 : in) / divisor;
    const int64_t at = i * d + (s->half ? d / 2 - n / 2 : 0), low = at >= 0 ? at / n : -((n - 1 - at) / n);
    return (between){ low > 0 ? low : 0, low + 1 < in ? low + 1 : in - 1, (int32_t)(at - low * n), (int32_t)n };
}

static int32_t mixed_tosa(const int8_t v[4], const between *y, const between *x)
{
    const oct_rescale r = oct_rescale_fixed(1 / ((double)y->whole * (double)x->whole));
    return oct_rescaling_single.to(&r, (int32_t)weighted(v, y, x), 0, -128, 127);
}

static oct_status bilinear(const oct_twin_call *c, between (*place)(const sizes *, int, int64_t),
                           int32_t (*mix)(const int8_t[4], const between *, const between *), oct_err *err)
{
    sizes s;
    OCT_TRY(read_sizes(c, OCT_TFL_BILINEAR_ALIGN_CORNERS, OCT_TFL_BILINEAR_HALF_PIXEL, &s, err));
    if (c->in[0]->scale != c->out[0]->scale || c->in[0]->zero != c->out[0]->zero)
        return oct_twin_cannot(c, err, "its result has another scale than its operand");
    const int8_t *x = c->in[0]->data;
    int8_t *y = c->out[0]->data;
    for (int64_t b = 0; b < s.batches; b++, x += s.in[0] * s.in[1] * s.channels)
        for (int64_t i = 0; i < s.out[0]; i++)
            for (int64_t k = 0; k < s.out[1]; k++) {
                const between u = place(&s, 0, i), v = place(&s, 1, k);
                for (int64_t n = 0; n < s.channels; n++) {
                    const int8_t from[4] = { x[(u.first * s.in[1] + v.first) * s.channels + n],
                                             x[(u.first * s.in[1] + v.second) * s.channels + n],
                                             x[(u.second * s.in[1] + v.first) * s.channels + n],
                                             x[(u.second * s.in[1] + v.second) * s.channels + n] };
                    *y++ = (int8_t)mix(from, &u, &v);
                }
            }
    return OCT_OK;
}

oct_status oct_twin_bilinear_fixed(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return bilinear(c, between_fixed, mixed_fixed, err);
}

oct_status oct_twin_bilinear_shift(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return bilinear(c, between_shift, mixed_shift, err);
}

oct_status oct_twin_bilinear_tosa(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return bilinear(c, between_tosa, mixed_tosa, err);
}

oct_status oct_twin_bilinear_real(const oct_twin_call *c, const void *how, oct_err *err)
{
    sizes s;
    (void)how;
    OCT_TRY(read_sizes(c, OCT_TFL_BILINEAR_ALIGN_CORNERS, OCT_TFL_BILINEAR_HALF_PIXEL, &s, err));
    const float *x = c->in[0]->data;
    float *y = c->out[0]->data;
    for (int64_t b = 0; b < s.batches; b++, x += s.in[0] * s.in[1] * s.channels)
        for (int64_t i = 0; i < s.out[0]; i++)
            for (int64_t k = 0; k < s.out[1]; k++) {
                const float down = place_real(&s, 0, i), right = place_real(&s, 1, k);
                const int64_t top = (int64_t)down, left = (int64_t)right, under = top + 1 < s.in[0] ? top + 1 : top,
                              beside = left + 1 < s.in[1] ? left + 1 : left;
                const float v = down - (float)top, h = right - (float)left;
                for (int64_t n = 0; n < s.channels; n++)
                    *y++ = (x[(top * s.in[1] + left) * s.channels + n] * (1 - h) +
                            x[(top * s.in[1] + beside) * s.channels + n] * h) *
                               (1 - v) +
                           (x[(under * s.in[1] + left) * s.channels + n] * (1 - h) +
                            x[(under * s.in[1] + beside) * s.channels + n] * h) *
                               v;
            }
    return OCT_OK;
}

/* The nearest place, the second of two that are as near; also where others take the one before. */
static int64_t nearest_tosa(const sizes *s, int axis, int64_t i)
{
    const between b = between_tosa(s, axis, i);
    return 2 * b.part >= b.whole ? b.second : b.first;
}

static int64_t nearest(const sizes *s, int axis, int64_t i)
{
    const int64_t in = s->in[axis], out = s->out[axis];
    const float scale = s->corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    const float at = ((float)i + (s->half ? 0.5f : 0)) * scale;
    const int64_t whole = (int64_t)(s->corners ? roundf(at) : floorf(at));
    return whole < 0 ? 0 : whole < in ? whole : in - 1;
}

static oct_status take_nearest(const oct_twin_call *c, int64_t (*place)(const sizes *, int, int64_t), oct_err *err)
{
    sizes s;
    OCT_TRY(read_sizes(c, OCT_TFL_NEAREST_ALIGN_CORNERS, OCT_TFL_NEAREST_HALF_PIXEL, &s, err));
    const size_t pixel = (size_t)s.channels * oct_tfl_type_bytes(c->in[0]->t->type);
    const char *x = c->in[0]->data;
    char *y = c->out[0]->data;
    for (int64_t b = 0; b < s.batches; b++, x += (size_t)(s.in[0] * s.in[1]) * pixel)
        for (int64_t i = 0; i < s.out[0]; i++)
            for (int64_t k = 0; k < s.out[1]; k++, y += pixel)
                memcpy(y, x + (size_t)(place(&s, 0, i) * s.in[1] + place(&s, 1, k)) * pixel, pixel);
    return OCT_OK;
}

oct_status oct_twin_nearest(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return take_nearest(c, nearest, err);
}

oct_status oct_twin_nearest_tosa(const oct_twin_call *c, const void *how, oct_err *err)
{
    (void)how;
    return take_nearest(c, nearest_tosa, err);
}
