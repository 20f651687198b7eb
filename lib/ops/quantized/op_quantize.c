/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear as operators of their own (outside of fused groups). */
#include "kernels/quantize.h"
#include "ops/core/elem.h"
#include "ops/core/infer.h"
#include "ops/core/nd.h"
#include "ops/core/small.h"
#include "ops/core/quantized.h"

#include <string.h>

/* How scale and zero point spread over x: [outer][channels][inner] of the plain order. */
typedef struct quant_state {
    size_t outer, channels, inner;
    int32_t *zp;
    bool general; /* other types, or blocks: element by element */
    int axis;
    int64_t block; /* elements of the axis that share a scale */
} quant_state;

/* Reals that become quantized values or were quantized values keep their type; quantized values as numbers have
 * theirs. */
static oct_status border_infer(const oct_infer *c, oct_err *err)
{
    const oct_value *y = &c->g->value[oct_in_node(c)->out[0]], *from = oct_in_value(c, 0);
    const oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, !y->quant ? from->quant->dtype : y->dtype != OCT_UNDEFINED ? y->dtype : from->dtype);
    return oct_out_shape(c, 0, x.rank, x.d, err);
}

static oct_status quantize_infer(const oct_infer *c, oct_err *err)
{
    if (oct_border_of(c->g, oct_in_node(c)))
        return border_infer(c, err);
    oct_dtype t = oct_in_value(c, 2) ? oct_in_dtype(c, 2) : OCT_UNDEFINED;
    if (t == OCT_UNDEFINED && !oct_in_value(c, 2)) {
        int64_t asked = oct_node_int(oct_in_node(c), "output_dtype", 0);
        if (asked < 0 || asked >= OCT_DTYPE_COUNT)
            return oct_fail(err, OCT_EMALFORMED, "attribute 'output_dtype' is %lld", (long long)asked);
        t = asked ? (oct_dtype)asked : OCT_U8;
    }
    oct_out_dtype(c, 0, t);
    oct_shape x = oct_in_shape(c, 0);
    return oct_out_shape(c, 0, x.rank, x.d, err);
}

static oct_status dequantize_infer(const oct_infer *c, oct_err *err)
{
    if (oct_border_of(c->g, oct_in_node(c)))
        return border_infer(c, err);
    oct_dtype t = oct_in_dtype(c, 1);
    int64_t asked = oct_node_int(oct_in_node(c), "output_dtype", 0);
    if (asked < 0 || asked >= OCT_DTYPE_COUNT)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'output_dtype' is %lld", (long long)asked);
    oct_out_dtype(c, 0, asked ? (oct_dtype)asked : t == OCT_UNDEFINED ? OCT_F32 : t);
    oct_shape x = oct_in_shape(c, 0);
    return oct_out_shape(c, 0, x.rank, x.d, err);
}

static bool takes(oct_dtype t, bool dequantize)
{
    return t == OCT_U8 || t == OCT_S8 || t == OCT_U16 || t == OCT_S16 || (dequantize && t == OCT_S32);
}

/* Before opset 13 there was one axis; com.microsoft counts opsets of its own. */
static bool axis_is_fixed(const oct_step *s)
{
    return s->opset < 13 && !s->op->domain[0];
}

/* [outer][channels][inner] of x as it lies in memory. */
static oct_status spread(const oct_step *s, quant_state *st, oct_err *err)
{
    const oct_operand *x = s->in[0], *scale = s->in[1];
    st->outer = st->channels = 1;
    st->inner = (size_t)x->count;
    if (scale->count == 1)
        return OCT_OK;
    int axis;
    OCT_TRY(oct_axis(axis_is_fixed(s) ? 1 : oct_node_int(s->node, "axis", 1), x->rank, &axis, err));
    if (scale->rank != 1 || x->rank == 0 || scale->count != x->dims[axis])
        return oct_fail(err, OCT_EMALFORMED, "%lld scales for %lld channels", (long long)scale->count,
                        (long long)(x->rank ? x->dims[axis] : 1));
    int64_t stride[OCT_MAX_RANK];
    oct_operand_strides(x, stride);
    st->channels = (size_t)scale->count;
    st->inner = (size_t)stride[axis];
    st->outer = x->count ? (size_t)x->count / st->channels / st->inner : 0;
    return OCT_OK;
}

static bool is_real(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F16 || t == OCT_BF16;
}

/* Scale of rank x's, one a block along the axis (QuantizeLinear-21). */
static oct_status read_blocks(const oct_step *s, quant_state *st, oct_err *err)
{
    const oct_operand *x = s->in[0], *scale = s->in[1];
    st->block = oct_node_int(s->node, "block_size", 0);
    if (st->block < 0 || scale->rank != x->rank || x->rank == 0)
        return oct_fail(err, OCT_EMALFORMED, "blocks of %lld with a scale of %d dimensions", (long long)st->block,
                        scale->rank);
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", 1), x->rank, &st->axis, err));
    for (int i = 0; i < x->rank; i++)
        if (scale->dims[i] != (i == st->axis ? (x->dims[i] + st->block - 1) / st->block : x->dims[i]))
            return oct_fail(err, OCT_EMALFORMED, "axis %d: %lld scales for %lld elements in blocks of %lld", i,
                            (long long)scale->dims[i], (long long)x->dims[i], (long long)st->block);
    return OCT_OK;
}

static oct_status general_prepare(const oct_step *s, quant_state *st, oct_dtype integer, oct_dtype real,
                                  bool dequantize, oct_err *err)
{
    const oct_operand *scale = s->in[1];
    bool fits = takes(integer, dequantize) || oct_is_small(integer);
    fits &= is_real(scale->dtype) && (is_real(real) || (!dequantize && real == OCT_S32));
    if (!fits || integer == OCT_F8E8M0)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s between %s and %s with a scale of %s cannot be run", s->node->op,
                        oct_dtype_name(integer), oct_dtype_name(real), oct_dtype_name(scale->dtype));
    st->general = true;
    st->block = 1;
    if (oct_node_int(s->node, "block_size", 0))
        return read_blocks(s, st, err);
    OCT_TRY(spread(s, st, err));
    if (scale->count != 1)
        OCT_TRY(oct_axis(axis_is_fixed(s) ? 1 : oct_node_int(s->node, "axis", 1), s->in[0]->rank, &st->axis, err));
    return OCT_OK;
}

static oct_status quant_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    bool dequantize = strcmp(s->op->type, "DequantizeLinear") == 0;
    const oct_operand *x = s->in[0], *scale = s->in[1], *zp = s->n_in > 2 ? s->in[2] : NULL;
    oct_dtype integer = dequantize ? x->dtype : s->out[0]->dtype, real = dequantize ? s->out[0]->dtype : x->dtype;
    quant_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    if (!st)
        return oct_nomem(err);
    s->state = st;
    const bool quantized = x->q || s->out[0]->q; /* a step between values: zero points as oct_quant has them */
    if (zp && (zp->count != scale->count || zp->dtype != (quantized ? OCT_S32 : integer)))
        return oct_fail(err, OCT_EMALFORMED, "the zero point does not match scale and type");
    if (!takes(integer, dequantize) || x->layout != s->out[0]->layout || real != OCT_F32 || scale->dtype != OCT_F32 ||
        oct_node_int(s->node, "block_size", 0))
        return general_prepare(s, st, integer, real, dequantize, err);
    OCT_TRY(spread(s, st, err));
    st->zp = oct_arena_calloc(p->arena, st->channels, sizeof *st->zp);
    return st->zp ? OCT_OK : oct_nomem(err);
}

/* ---- element by element ---- */

/* Element i of a tensor, in memory order, as a number. */
static float number(const oct_operand *t, int64_t i)
{
    if (oct_is_small(t->dtype))
        return oct_small_get(t->dtype, t->data, i);
    return (float)oct_elem_double(t, i);
}

static void store(const oct_operand *t, int64_t i, float v, bool saturate)
{
    if (oct_is_small(t->dtype))
        oct_small_set(t->dtype, t->data, i, v, saturate, OCT_SMALL_NEAREST);
    else
        oct_elem_store(t->dtype, t->data, i, 1, 1, OCT_DOM_F, &v);
}

static float quantized(oct_dtype t, float x, float scale, float zp)
{
    int32_t lo, hi;
    if (oct_is_small(t) && !oct_is_small_int(t))
        return x / scale; /* the rounding is the store's */
    if (t == OCT_S2) {
        lo = -2;
        hi = 1;
    } else {
        oct_quant_limits(t, &lo, &hi);
    }
    return (float)oct_quantize_value(x, scale, (int32_t)zp, lo, hi);
}

/* Any types, any layouts, scales per tensor, axis or block. */
static oct_status general_run(const oct_step *s, bool dequantize)
{
    const quant_state *st = s->state;
    const oct_operand *x = s->in[0], *y = s->out[0], *scale = s->in[1], *zp = s->n_in > 2 ? s->in[2] : NULL;
    int64_t sx[OCT_MAX_RANK], sy[OCT_MAX_RANK], ss[OCT_MAX_RANK] = { 0 }, index[OCT_MAX_RANK] = { 0 };
    bool saturate = oct_node_int(s->node, "saturate", 1) != 0;
    oct_operand_strides(x, sx);
    oct_operand_strides(y, sy);
    if (scale->rank == x->rank && scale->count > 1)
        oct_operand_strides(scale, ss);
    else if (scale->count > 1)
        ss[st->axis] = 1;
    if (oct_is_small(y->dtype))
        oct_small_begin(y->dtype, y->data, y->count);
    for (int64_t e = 0; e < x->count; e++) {
        int64_t at = 0, from = 0, to = 0;
        for (int d = 0; d < x->rank; d++) {
            from += index[d] * sx[d];
            to += index[d] * sy[d];
            at += (d == st->axis ? index[d] / st->block : index[d]) * ss[d];
        }
        float k = number(scale, at), z = zp ? number(zp, at) : 0.0f, v = number(x, from);
        store(y, to, dequantize ? (v - z) * k : quantized(y->dtype, v, k, z), saturate);
        for (int d = x->rank - 1; d >= 0 && ++index[d] == x->dims[d]; d--)
            index[d] = 0;
    }
    return OCT_OK;
}

/* ---- running ---- */

static void read_zero_points(const oct_step *s)
{
    const quant_state *st = s->state;
    const oct_operand *z = s->n_in > 2 ? s->in[2] : NULL;
    for (size_t i = 0; z && i < st->channels; i++)
        switch (z->dtype) {
        case OCT_U8: st->zp[i] = ((const uint8_t *)z->data)[i]; break;
        case OCT_S8: st->zp[i] = ((const int8_t *)z->data)[i]; break;
        case OCT_U16: st->zp[i] = ((const uint16_t *)z->data)[i]; break;
        case OCT_S16: st->zp[i] = ((const int16_t *)z->data)[i]; break;
        default: st->zp[i] = ((const int32_t *)z->data)[i]; break;
        }
}

static oct_status quantize_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const quant_state *st = s->state;
    if (st->general)
        return general_run(s, false);
    read_zero_points(s);
    const float *scale = s->in[1]->data;
    if (st->channels == 1)
        oct_quantize_f32(r->pool, s->out[0]->dtype, s->in[0]->data, (size_t)s->in[0]->count, scale[0], st->zp[0],
                         s->out[0]->data);
    else
        oct_quantize_f32_axis(r->pool, s->out[0]->dtype, s->in[0]->data, st->outer, st->channels, st->inner, scale,
                              st->zp, s->out[0]->data);
    return OCT_OK;
}

static oct_status dequantize_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const quant_state *st = s->state;
    if (st->general)
        return general_run(s, true);
    read_zero_points(s);
    const float *scale = s->in[1]->data;
    if (st->channels == 1)
        oct_dequantize_f32(r->pool, s->in[0]->dtype, s->in[0]->data, (size_t)s->in[0]->count, scale[0], st->zp[0],
                           s->out[0]->data);
    else
        oct_dequantize_f32_axis(r->pool, s->in[0]->dtype, s->in[0]->data, st->outer, st->channels, st->inner, scale,
                                st->zp, s->out[0]->data);
    return OCT_OK;
}

/* ------------------------------------------------------------------ DynamicQuantizeLinear */

static oct_status dynamic_infer(const oct_infer *c, oct_err *err)
{
    if (oct_border_of(c->g, oct_in_node(c)))
        return border_infer(c, err);
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, OCT_U8);
    oct_out_dtype(c, 1, OCT_F32);
    oct_out_dtype(c, 2, OCT_U8);
    OCT_TRY(oct_out_shape(c, 1, 0, NULL, err));
    OCT_TRY(oct_out_shape(c, 2, 0, NULL, err));
    return oct_out_shape(c, 0, x.rank, x.d, err);
}

static oct_status dynamic_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (s->in[0]->dtype != OCT_F32)
        return oct_fail(err, OCT_EUNSUPPORTED, "DynamicQuantizeLinear of %s cannot be run",
                        oct_dtype_name(s->in[0]->dtype));
    if (s->in[0]->layout != s->out[0]->layout) /* quantized values in the input's order, before they are moved */
        s->scratch = (size_t)s->in[0]->count;
    return OCT_OK;
}

static oct_status dynamic_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    uint8_t zp;
    float scale;
    const bool moves = s->in[0]->layout != s->out[0]->layout;
    void *qvals = moves ? r->scratch : s->out[0]->data;
    oct_dynamic_quantize_u8(r->pool, s->in[0]->data, (size_t)s->in[0]->count, qvals, &scale, &zp);
    if (moves) {
        oct_nd d;
        oct_nd_init(&d, s->out[0]);
        oct_nd_add(&d, s->in[0]);
        oct_nd_copy(&d, r->pool, s->out[0]->data, qvals, 1, NULL);
    }
    if (s->n_out > 1 && s->out[1])
        *(float *)s->out[1]->data = scale;
    if (s->n_out > 2 && s->out[2])
        *(uint8_t *)s->out[2]->data = zp;
    return OCT_OK;
}

static bool one_scale(const oct_step *s)
{
    return s->n_in > 1 && s->in[1]->count == 1 && s->in[1]->rank <= 1;
}

#define BORDER(name, onnx, domain_, first, infers, runs) \
    const oct_op oct_op_##name = {                       \
        OCT_SCHEMA(onnx, domain_, first, 2, 3, 1, 1),    \
        .infer = infers,                                 \
        .prepare = quant_prepare,                        \
        .run = runs,                                     \
        .by_rows = one_scale,                            \
        .layout = OCT_RULE_ANY,                          \
        .is_qdq = true,                                  \
        .f16 = -1,                                       \
        .bf16 = -1,                                      \
    }

BORDER(quantize_linear, "QuantizeLinear", "", 10, quantize_infer, quantize_run);
BORDER(dequantize_linear, "DequantizeLinear", "", 10, dequantize_infer, dequantize_run);
/* ONNX Runtime had 4 and 16 bits here before the default domain did. */
BORDER(quantize_linear_ms, "QuantizeLinear", "com.microsoft", 1, quantize_infer, quantize_run);
BORDER(dequantize_linear_ms, "DequantizeLinear", "com.microsoft", 1, dequantize_infer, dequantize_run);

const oct_op oct_op_dynamic_quantize_linear = {
    OCT_SCHEMA("DynamicQuantizeLinear", "", 11, 1, 1, 3, 3),
    .infer = dynamic_infer,
    .prepare = dynamic_prepare,
    .run = dynamic_run,
    .layout = OCT_RULE_ANY,
    .shared_scale = true,
    .f16 = -1,
    .bf16 = -1,
};
