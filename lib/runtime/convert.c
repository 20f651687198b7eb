/* Changing the layout of a tensor, and reading one as plain float32. */
#include "runtime/plan_int.h"

#include "kernels/layout.h"

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

/* Element i in memory order as a number. */
static float element(const oct_operand *t, int64_t i)
{
    switch (t->dtype) {
    case OCT_F32: return ((const float *)t->data)[i];
    case OCT_F64: return (float)((const double *)t->data)[i];
    case OCT_U8: case OCT_BOOL: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return ((const int8_t *)t->data)[i];
    case OCT_U16: return ((const uint16_t *)t->data)[i];
    case OCT_S16: return ((const int16_t *)t->data)[i];
    case OCT_S32: return (float)((const int32_t *)t->data)[i];
    case OCT_U32: return (float)((const uint32_t *)t->data)[i];
    case OCT_S64: return (float)((const int64_t *)t->data)[i];
    case OCT_U64: return (float)((const uint64_t *)t->data)[i];
    case OCT_F16: return oct_f16_to_f32(((const uint16_t *)t->data)[i]);
    case OCT_BF16: return oct_bf16_to_f32(((const uint16_t *)t->data)[i]);
    default: return 0.0f;
    }
}

static int32_t code(const oct_operand *t, int64_t i)
{
    switch (t->dtype) {
    case OCT_U8: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return ((const int8_t *)t->data)[i];
    case OCT_U16: return ((const uint16_t *)t->data)[i];
    case OCT_S16: return ((const int16_t *)t->data)[i];
    default: return ((const int32_t *)t->data)[i];
    }
}

oct_status oct_operand_to_f32(const oct_operand *t, float *dst, oct_err *err)
{
    static const oct_dtype fine[] = { OCT_F32, OCT_F64, OCT_U8, OCT_S8, OCT_BOOL, OCT_U16, OCT_S16, OCT_S32,
                                      OCT_U32, OCT_S64, OCT_U64, OCT_F16, OCT_BF16 };
    bool known = false;
    for (size_t i = 0; i < OCT_COUNT(fine); i++)
        known |= t->dtype == fine[i];
    if (!known)
        return oct_fail(err, OCT_EUNSUPPORTED, "a tensor of type %s cannot be read as numbers", oct_dtype_name(t->dtype));
    if (t->dtype == OCT_F32 && t->layout == OCT_LAYOUT_PLAIN) {
        memcpy(dst, t->data, (size_t)t->count * sizeof *dst);
        return OCT_OK;
    }
    /* Walks the plain order; `at` is where the element lies. */
    int64_t stride[OCT_MAX_RANK], index[OCT_MAX_RANK] = { 0 }, at = 0;
    oct_operand_strides(t, stride);
    for (int64_t i = 0; i < t->count; i++) {
        if (t->q) {
            int c = t->q->n > 1 ? (int)index[t->q->axis] : 0;
            dst[i] = t->q->scale[c] * (float)(code(t, at) - t->q->zp[c]);
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
