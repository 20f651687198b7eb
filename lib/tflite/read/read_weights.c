#include "tflite/read/read_weights.h"

/* What the integers of a bias mean. */
static oct_status products(oct_tfl_reader *r, const oct_quant *x, const oct_quant *w, oct_quant *q, oct_err *err)
{
    float *scale = oct_arena_calloc(r->arena, (size_t)w->n, sizeof *scale);
    *q = (oct_quant){ .n = w->n, .scale = scale, .dtype = OCT_S32 };
    q->zp = oct_arena_calloc(r->arena, (size_t)w->n, sizeof *q->zp);
    if (!scale || !q->zp)
        return oct_nomem(err);
    for (int i = 0; i < w->n; i++)
        scale[i] = x->scale[0] * w->scale[i];
    return OCT_OK;
}

oct_status oct_tfl_take_bias(oct_tfl_reader *r, int k, int x, int w, int *value, oct_err *err)
{
    const oct_tfl_tensor *b = oct_tfl_in(r, k), *in = oct_tfl_in(r, x), *of = oct_tfl_in(r, w);
    const oct_tfl_order plain = oct_tfl_plain();
    oct_quant q;
    *value = -1;
    if (!b)
        return OCT_OK;
    if (!b->data || b->quant || (b->type != OCT_TFL_INT32 && b->type != OCT_TFL_INT64))
        return oct_tfl_take(r, k, &plain, value, err);
    if (b->rank != 1 || !in->quant || in->quant->n != 1 || !of->quant ||
        (of->quant->n > 1 && of->quant->n != b->dims[0]))
        return oct_tfl_unread(r, err, NULL, "its bias '%.80s' has integers without a scale", b->name);
    OCT_TRY(products(r, in->quant, of->quant, &q, err));
    return oct_tfl_take_constant(r, k, 1, (int64_t[]){ b->dims[0] }, (int[]){ 0 }, &q, value, err);
}
