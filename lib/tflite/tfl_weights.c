#include "tflite/tfl_weights.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Integers as they are. */
static float unit = 1;
static int32_t none = 0;
static const oct_quant one = { .n = 1, .scale = &unit, .zp = &none, .dtype = OCT_S8 };

bool oct_tfl_weights_fit(const oct_tfl_writer *w, int value, int channel)
{
    const oct_quant *q = w->g->value[value].quant;
    if (!q || !q->qvals || q->dtype != OCT_S8 || q->block || (q->n > 1 && q->axis != channel))
        return false;
    for (int i = 0; i < q->n; i++)
        if (q->zp[i] != 0)
            return false;
    return true;
}

oct_status oct_tfl_weights(oct_tfl_writer *w, int value, int rank, const int64_t *dims, const oct_tfl_order *order,
                           int channel, oct_tfl_kind kind, int *tensor, oct_err *err)
{
    const oct_value *v = &w->g->value[value];
    int64_t physical[OCT_MAX_RANK];
    int stored;
    oct_tfl_operator *op;
    if (!oct_value_is_constant(v))
        return oct_tfl_cannot(w, err, NULL, "its weights '%s' are computed at run time", v->name);
    if (v->quant && v->quant->n > 1 && v->quant->axis != channel && v->shape.rank != rank)
        return oct_tfl_cannot(w, err, NULL, "the scales of its weights '%s' are along another axis than its outputs",
                              v->name);
    OCT_TRY(oct_tfl_read_constant(w, value, rank, dims, order, -1, tensor, err));
    if (kind == OCT_TFL_OWN || !v->quant)
        return OCT_OK;
    stored = *tensor;
    if (oct_tfl_scales_behind(w, value, channel, kind))
        w->m->tensor[stored].quant = &one;
    for (int i = 0; i < rank; i++)
        physical[i] = dims[order->d[i]];
    OCT_TRY(oct_tfl_between(w, oct_arena_printf(w->arena, "%s_dequantized", v->name), stored, rank, physical, -1,
                            tensor, err));
    w->m->tensor[*tensor].type = OCT_TFL_FLOAT32;
    w->m->tensor[*tensor].quant = NULL;
    OCT_TRY(oct_tfl_add(w, OCT_TFL_DEQUANTIZE, &stored, 1, tensor, 1, &op, err));
    if (w->m->tensor[stored].quant->n > 1)
        op->version = 5;
    return OCT_OK;
}

/* ---- scales behind a product ---- */

bool oct_tfl_scales_behind(const oct_tfl_writer *w, int weights, int channel, oct_tfl_kind kind)
{
    const oct_quant *q = w->g->value[weights].quant;
    return kind == OCT_TFL_REAL && q && q->qvals && q->dtype == OCT_S8 && !q->block && q->n > 1 && q->axis == channel;
}

oct_status oct_tfl_scaled_begin(oct_tfl_writer *w, int weights, int channel, oct_tfl_kind kind, int *bias, int *made,
                                oct_tfl_scaled *s, oct_err *err)
{
    *s = (oct_tfl_scaled){ .made = -1 };
    if (!oct_tfl_scales_behind(w, weights, channel, kind))
        return OCT_OK;
    const oct_quant *q = w->g->value[weights].quant;
    const oct_tfl_tensor t = w->m->tensor[*made];
    const int64_t n = q->n;
    int64_t dims[OCT_MAX_RANK];
    const float *zeros = oct_arena_calloc(w->m->arena, (size_t)n, sizeof *zeros);
    if (!zeros)
        return oct_nomem(err);
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i];
    *s = (oct_tfl_scaled){ .made = *made, .bias = *bias, .activation = w->activation };
    w->activation = OCT_TFL_ACT_NONE;
    OCT_TRY(oct_tfl_constant(w, "zeros", OCT_TFL_FLOAT32, 1, &n, NULL, 0, zeros, bias, err));
    OCT_TRY(oct_tfl_constant(w, oct_arena_printf(w->arena, "%s_scales", w->g->value[weights].name), OCT_TFL_FLOAT32, 1,
                             &n, NULL, 0, q->scale, &s->scales, err));
    OCT_TRY(oct_tfl_between(w, oct_arena_printf(w->arena, "%s_scaled", t.name), *made, t.rank, dims, t.open, &s->scaled,
                            err));
    return oct_tfl_between(w, oct_arena_printf(w->arena, "%s_product", t.name), *made, t.rank, dims, t.open, made, err);
}

oct_status oct_tfl_scaled_end(oct_tfl_writer *w, int product, const oct_tfl_scaled *s, oct_err *err)
{
    oct_tfl_operator *op;
    if (s->made < 0)
        return OCT_OK;
    OCT_TRY(oct_tfl_add(w, OCT_TFL_MUL, (int[]){ product, s->scales }, 2, &s->scaled, 1, NULL, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_ADD, (int[]){ s->scaled, s->bias }, 2, &s->made, 1, &op, err));
    oct_tfl_set_byte(op, OCT_TFL_BINARY_ACTIVATION, s->activation);
    return OCT_OK;
}

/* The real numbers of a constant vector of n elements; NULL: it is none. */
static const float *reals(oct_tfl_writer *w, int value, int64_t n)
{
    const oct_value *v = &w->g->value[value];
    const oct_quant *q = v->quant;
    const oct_tensor *t = q ? q->qvals : v->constant;
    float *x = oct_arena_calloc(w->m->arena, (size_t)n + 1, sizeof *x);
    if (!x || !t || !t->data || t->count != n || (q && (q->block || (q->n != 1 && q->n != n) || q->dtype != OCT_S32)) ||
        (!q && t->dtype != OCT_F32))
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        const int k = q && q->n > 1 ? (int)i : 0;
        x[i] =
            q ? (float)(((const int32_t *)t->data)[i] - (int64_t)q->zp[k]) * q->scale[k] : ((const float *)t->data)[i];
    }
    return x;
}

/* What the sums of products mean: a scale for each output, or one. */
static oct_quant *sum_scales(oct_tfl_writer *w, int x, int weights)
{
    const oct_quant *a = w->g->value[x].quant, *b = w->g->value[weights].quant;
    oct_quant *q = oct_arena_calloc(w->m->arena, 1, sizeof *q);
    float *scale = oct_arena_calloc(w->m->arena, (size_t)b->n, sizeof *scale);
    int32_t *zp = oct_arena_calloc(w->m->arena, (size_t)b->n, sizeof *zp);
    if (!q || !scale || !zp)
        return NULL;
    for (int i = 0; i < b->n; i++)
        scale[i] = a->scale[0] * b->scale[i];
    *q = (oct_quant){ .n = b->n, .scale = scale, .zp = zp, .dtype = OCT_S32 };
    return q;
}

oct_status oct_tfl_bias(oct_tfl_writer *w, int value, int64_t n, int x, int weights, oct_tfl_kind kind, int *tensor,
                        oct_err *err)
{
    const char *name = value >= 0 ? w->g->value[value].name : "bias";
    const float *real = value >= 0 ? reals(w, value, n) : oct_arena_calloc(w->m->arena, (size_t)n + 1, sizeof *real);
    if (!real && value >= 0)
        return oct_tfl_cannot(w, err, "add it by an Add of its own", "its bias '%s' is not a constant of %lld numbers",
                              name, (long long)n);
    if (!real)
        return oct_nomem(err);
    if (kind == OCT_TFL_REAL)
        return oct_tfl_constant(w, name, OCT_TFL_FLOAT32, 1, &n, NULL, 0, real, tensor, err);
    const oct_quant *q = sum_scales(w, x, weights), *own = value >= 0 ? w->g->value[value].quant : NULL;
    int32_t *sums = oct_arena_calloc(w->m->arena, (size_t)n + 1, sizeof *sums);
    if (!q || !sums)
        return oct_nomem(err);
    if (q->n != 1 && q->n != n)
        return oct_tfl_cannot(w, err, NULL, "its weights have %d scales for %lld outputs", q->n, (long long)n);
    const bool same = own && own->n == q->n && memcmp(own->scale, q->scale, (size_t)q->n * sizeof *q->scale) == 0 &&
                      memcmp(own->zp, q->zp, (size_t)q->n * sizeof *q->zp) == 0;
    for (int64_t i = 0; i < n; i++) {
        const double sum = rint((double)real[i] / (double)q->scale[q->n > 1 ? i : 0]);
        sums[i] = same               ? ((const int32_t *)own->qvals->data)[i]
                  : sum > INT32_MAX  ? INT32_MAX
                  : sum >= INT32_MIN ? (int32_t)sum
                                     : INT32_MIN;
    }
    if (w->g->value[x].quant->dtype != OCT_S16)
        return oct_tfl_constant(w, name, OCT_TFL_INT32, 1, &n, q, 0, sums, tensor, err);
    int64_t *wide = oct_arena_calloc(w->m->arena, (size_t)n + 1, sizeof *wide);
    if (!wide)
        return oct_nomem(err);
    for (int64_t i = 0; i < n; i++)
        wide[i] = same ? sums[i] : (int64_t)rint((double)real[i] / (double)q->scale[q->n > 1 ? i : 0]);
    return oct_tfl_constant(w, name, OCT_TFL_INT64, 1, &n, q, 0, wide, tensor, err);
}
