/* lib/ops/core/q8.c -- 8-bit quantized operands. */
#include "ops/core/q8.h"

#include "kernels/quantize.h"

#include <math.h>

bool oct_q8(const oct_operand *t)
{
    return t != NULL && t->q != NULL && t->q->n == 1 && (t->dtype == OCT_U8 || t->dtype == OCT_S8);
}

bool oct_q8_same(const oct_operand *a, const oct_operand *b)
{
    return a->dtype == b->dtype && a->q->scale[0] == b->q->scale[0] && a->q->zp[0] == b->q->zp[0];
}

oct_qparam oct_q8_param(const oct_operand *t)
{
    return (oct_qparam){ t->q->scale[0], t->q->zp[0] };
}

int oct_q8_quantize(const oct_operand *t, float real)
{
    int32_t lo, hi;
    oct_quant_limits(t->dtype, &lo, &hi);
    return oct_quantize_value(real, t->q->scale[0], t->q->zp[0], lo, hi);
}

void oct_q8_clamp(const oct_operand *t, const oct_epilogue *e, int32_t *lo, int32_t *hi)
{
    oct_quant_limits(t->dtype, lo, hi);
    if (!e->clamp)
        return;
    if (e->lo > -INFINITY)
        *lo = oct_q8_quantize(t, e->lo);
    if (e->hi < INFINITY)
        *hi = oct_q8_quantize(t, e->hi);
}

bool oct_q8_moves(const oct_step *s)
{
    for (int i = 0; i < s->n_out; i++)
        if (s->out[i] != NULL && !oct_q8(s->out[i]))
            return false;
    return s->n_in > 0 && oct_q8(s->in[0]);
}

bool oct_q8_aliases(const oct_step *s)
{
    return oct_q8_moves(s) && s->n_out == 1 && oct_q8_same(s->in[0], s->out[0]);
}

oct_status oct_q8_table(const oct_operand *in, const oct_operand *out, const oct_unary *f, oct_arena *a,
                        const uint8_t **table, oct_err *err)
{
    uint8_t *t = oct_arena_alloc(a, 256);
    if (t == NULL)
        return oct_nomem(err);
    int32_t lo, hi;
    oct_quant_limits(out->dtype, &lo, &hi);
    oct_lut_build(f, in->dtype == OCT_S8, oct_q8_param(in), out->dtype == OCT_S8, oct_q8_param(out), lo, hi, t);
    *table = t;
    return OCT_OK;
}

oct_status oct_q8_move_table(const oct_operand *in, const oct_operand *out, oct_arena *a, const uint8_t **table,
                             oct_err *err)
{
    *table = NULL;
    if (!oct_q8(in) || !oct_q8(out) || oct_q8_same(in, out))
        return OCT_OK;
    return oct_q8_table(in, out, NULL, a, table, err);
}
