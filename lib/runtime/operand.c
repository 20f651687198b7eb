/* Changing the layout of a tensor, reading one as plain float32, and setting it from that. */
#include "runtime/plan_int.h"

#include "kernels/half.h"
#include "kernels/layout.h"
#include "kernels/quantize.h"
#include "ops/core/elem.h"

#include <string.h>

void rt_run_reorder(oct_pool *pool, const oct_step *s)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    size_t size = (size_t)oct_dtype_bits(x->dtype) / 8;
    if (x->count == 0)
        return;
    size_t batch = (size_t)x->dims[0], c = (size_t)x->dims[1], spatial = (size_t)x->count / batch / c;
    if (x->layout == OCT_LAYOUT_PLAIN)
        oct_transpose_2d(pool, x->data, batch, c, spatial, size, y->data);
    else
        oct_transpose_2d(pool, x->data, batch, spatial, c, size, y->data);
}

const char *oct_operand_scheme(const oct_operand *t)
{
    return t->q ? "int8" : t->dtype == OCT_F16 ? "fp16" : t->dtype == OCT_BF16 ? "bf16" : "float";
}

/* Element i in memory order as a number. */
static float element(const oct_operand *t, int64_t i)
{
    oct_chunk c;
    float x;
    oct_elem_store(OCT_F32, &x, 0, 1, 1, oct_dom_of(t->dtype), oct_elem_load(t->dtype, t->data, i, 0, 1, &c));
    return x;
}

/* 8-bit values by a table of their 256 values; channels-last in tiles, so that reads and writes both stay in few
 * lines. */
static void read_qvals(const oct_operand *t, float *dst)
{
    float value[256];
    const uint8_t *x = t->data;
    for (int i = 0; i < 256; i++) {
        int32_t c = t->dtype == OCT_S8 ? (int8_t)i : i;
        value[i] = t->q ? t->q->scale[0] * (float)(c - t->q->zp[0]) : (float)c;
    }
    if (t->layout == OCT_LAYOUT_PLAIN) {
        for (int64_t i = 0; i < t->count; i++)
            dst[i] = value[x[i]];
        return;
    }
    enum { TILE = 16 };
    const int64_t c = t->dims[1], spatial = t->count / t->dims[0] / c;
    for (int64_t b = 0; b < t->dims[0]; b++, x += spatial * c, dst += spatial * c)
        for (int64_t s0 = 0; s0 < spatial; s0 += TILE)
            for (int64_t c0 = 0; c0 < c; c0 += TILE)
                for (int64_t i = c0; i < c0 + TILE && i < c; i++)
                    for (int64_t k = s0; k < s0 + TILE && k < spatial; k++)
                        dst[i * spatial + k] = value[x[k * c + i]];
}

/* The common cases; false: none of them. t->count > 0. */
static bool read_fast(const oct_operand *t, float *dst)
{
    if (t->dtype == OCT_F32 && !t->q) {
        size_t c = t->rank > 1 ? (size_t)t->dims[1] : 1, batch = t->rank ? (size_t)t->dims[0] : 1;
        if (t->layout == OCT_LAYOUT_PLAIN)
            memcpy(dst, t->data, (size_t)t->count * sizeof *dst);
        else
            oct_transpose_2d(NULL, t->data, batch, (size_t)t->count / batch / c, c, sizeof *dst, dst);
        return true;
    }
    if (oct_is_half(t->dtype) && t->layout == OCT_LAYOUT_PLAIN) {
        oct_widen(NULL, t->dtype, t->data, (size_t)t->count, dst);
        return true;
    }
    if ((t->dtype == OCT_U8 || t->dtype == OCT_S8) && (!t->q || t->q->n == 1)) {
        read_qvals(t, dst);
        return true;
    }
    return false;
}

oct_status oct_operand_to_f32(const oct_operand *t, float *dst, oct_err *err)
{
    if (oct_dom_of(t->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "a tensor of type %s cannot be read as numbers",
                        oct_dtype_name(t->dtype));
    if (t->count == 0 || read_fast(t, dst))
        return OCT_OK;
    /* Walks the plain order; `at` is where the element lies. */
    int64_t stride[OCT_MAX_RANK], index[OCT_MAX_RANK] = { 0 }, at = 0;
    oct_operand_strides(t, stride);
    for (int64_t i = 0; i < t->count; i++) {
        if (t->q) {
            int c = t->q->n > 1 ? (int)index[t->q->axis] : 0;
            dst[i] = t->q->scale[c] * (float)((int32_t)oct_elem_int(t, at) - t->q->zp[c]);
        } else {
            dst[i] = element(t, at);
        }
        for (int d = t->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < t->dims[d])
                break;
            at -= stride[d] * t->dims[d];
            index[d] = 0;
        }
    }
    return OCT_OK;
}

/* Real numbers in the type and order of t; false: t has another kind of type. */
static bool convert(const oct_operand *t, const float *src, void *dst)
{
    const size_t n = (size_t)t->count;
    if (t->q && t->q->n == 1 && oct_dtype_bits(t->dtype) >= 8)
        oct_quantize_f32(NULL, t->dtype, src, n, t->q->scale[0], t->q->zp[0], dst);
    else if (!t->q && t->dtype == OCT_F32)
        memcpy(dst, src, n * sizeof *src);
    else if (!t->q && oct_is_half(t->dtype))
        oct_narrow(NULL, t->dtype, src, n, dst);
    else
        return false;
    return true;
}

oct_status oct_operand_from_f32(const oct_operand *t, const float *src, oct_err *err)
{
    const size_t size = (size_t)oct_dtype_bits(t->dtype) / 8;
    if (t->count == 0)
        return OCT_OK;
    const bool plain = t->layout == OCT_LAYOUT_PLAIN;
    void *dst = plain ? t->data : oct_calloc((size_t)t->count, size + 1);
    if (!dst)
        return oct_nomem(err);
    const bool done = convert(t, src, dst);
    if (!plain && done) {
        const size_t batch = (size_t)t->dims[0], c = (size_t)t->dims[1];
        oct_transpose_2d(NULL, dst, batch, c, (size_t)t->count / batch / c, size, t->data);
    }
    if (!plain)
        oct_free(dst);
    return done ? OCT_OK
                : oct_fail(err, OCT_EUNSUPPORTED, "a tensor of type %s cannot be set from real numbers",
                           oct_dtype_name(t->dtype));
}
