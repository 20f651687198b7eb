/* lib/ops/q8.c -- 8-bit quantized operands. */
#include "ops/q8.h"

#include <math.h>

bool oct_q8(const oct_operand *t)
{
    return t != NULL && t->q != NULL && t->q->n == 1 && (t->dtype == OCT_U8 || t->dtype == OCT_S8);
}

bool oct_q8_same(const oct_operand *a, const oct_operand *b)
{
    return a->dtype == b->dtype && a->q->scale[0] == b->q->scale[0] && a->q->zp[0] == b->q->zp[0];
}

int oct_q8_code(const oct_operand *t, float real)
{
    float lo = (float)oct_q8_min(t), hi = (float)oct_q8_max(t);
    float v = rintf(real / t->q->scale[0]) + (float)t->q->zp[0];
    v = v > lo ? v : lo; /* NaN too */
    return (int)(v < hi ? v : hi);
}

void oct_q8_reals(const oct_operand *t, float real[256])
{
    for (int i = 0; i < 256; i++) {
        int code = t->dtype == OCT_S8 && i > 127 ? i - 256 : i;
        real[i] = t->q->scale[0] * (float)(code - t->q->zp[0]);
    }
}

void oct_q8_codes(const oct_operand *out, const float y[256], uint8_t table[256])
{
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)oct_q8_code(out, y[i]);
}

void oct_q8_clamp(const oct_operand *t, const oct_epilogue *e, int *lo, int *hi)
{
    *lo = oct_q8_min(t);
    *hi = oct_q8_max(t);
    if (!e->clamp)
        return;
    if (e->lo > -INFINITY)
        *lo = oct_q8_code(t, e->lo);
    if (e->hi < INFINITY)
        *hi = oct_q8_code(t, e->hi);
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

oct_status oct_q8_move_table(const oct_operand *in, const oct_operand *out, oct_arena *a, const uint8_t **table,
                             oct_err *err)
{
    *table = NULL;
    if (!oct_q8(in) || !oct_q8(out) || oct_q8_same(in, out))
        return OCT_OK;
    uint8_t *t = oct_arena_alloc(a, 256);
    float real[256];
    if (t == NULL)
        return oct_nomem(err);
    oct_q8_reals(in, real);
    oct_q8_codes(out, real, t);
    *table = t;
    return OCT_OK;
}
