/* Steps with 16-bit floats, for operators that compute in float32: conversion around prepare and run. Rounding to bf16,
 * where it is asked for. */
#include "kernels/half.h"
#include "ops/op.h"

enum { ALIGN = 64 };

static bool has_half(oct_operand *const *t, int n)
{
    for (int i = 0; i < n; i++)
        if (t[i] && oct_is_half(t[i]->dtype))
            return true;
    return false;
}

/* Whether inputs 0 and 1 are multiplied as bf16, because they are bf16 or are rounded to it. Convolutions with one
 * input channel per group are not matrix products. */
static bool in_bf16(const oct_step *s, const oct_prep *p)
{
    const oct_operand *x = s->op->quant == OCT_QUANT_WEIGHTED && s->op->widens ? s->in[0] : NULL,
                      *w = x ? s->in[1] : NULL;
    const int64_t groups = w && s->op->weights.kernel ? oct_node_int(s->node, "group", 1) : 1;
    return x && !x->q && !(groups > 1 && x->rank > 1 && x->dims[1] == groups) &&
           (x->dtype == OCT_BF16 || (x->dtype == OCT_F32 && (p->bf16 || (w && w->dtype == OCT_BF16))));
}

/* Float32 values of 16-bit ones, or those that are rounded to bf16. */
static void convert(oct_pool *pool, oct_dtype from, const void *x, int64_t n, float *y)
{
    if (from == OCT_F32)
        oct_round_half(pool, OCT_BF16, x, (size_t)n, y);
    else
        oct_widen(pool, from, x, (size_t)n, y);
}

/* A constant's float32 values, in `a`. */
static oct_status widen_constant(const oct_operand *from, oct_operand *to, oct_arena *a, oct_err *err)
{
    size_t bytes;
    float *v = oct_dtype_bytes(OCT_F32, from->count, &bytes) ? oct_arena_aligned(a, bytes + 1, ALIGN) : NULL;
    if (!v)
        return oct_nomem(err);
    convert(NULL, from->dtype, from->data, from->count, v);
    to->data = v;
    return OCT_OK;
}

/* Whether input i is packed by prepare and not read after it. */
static bool is_packed(const oct_step *s, int i)
{
    return i == 1 && s->op->quant == OCT_QUANT_WEIGHTED && s->in[i]->constant;
}

/* Operands of the wide step: float32 copies of 16-bit ones, and of the first `rounded`; the others themselves. */
static oct_status wide_operands(oct_operand *const *from, int n, int rounded, oct_operand **to, oct_arena *a,
                                oct_err *err)
{
    for (int i = 0; i < n; i++) {
        to[i] = from[i];
        if (!from[i] || !(oct_is_half(from[i]->dtype) || (i < rounded && from[i]->dtype == OCT_F32)))
            continue;
        if (!(to[i] = oct_arena_memdup(a, from[i], sizeof *from[i])))
            return oct_nomem(err);
        to[i]->dtype = OCT_F32;
        to[i]->data = NULL;
    }
    return OCT_OK;
}

static oct_status widen_constants(const oct_step *s, const oct_step *w, oct_arena *keep, oct_arena *temp, oct_err *err)
{
    for (int i = 0; i < s->n_in; i++)
        if (w->in[i] != s->in[i] && s->in[i]->constant)
            OCT_TRY(widen_constant(s->in[i], w->in[i], is_packed(s, i) ? temp : keep, err));
    return OCT_OK;
}

/* Bytes that float32 copies take in scratch. */
static oct_status scratch_of(const oct_step *s, const oct_step *w, size_t *scratch, oct_err *err)
{
    *scratch = (w->scratch + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    for (int i = 0; i < s->n_in + s->n_out; i++) {
        const oct_operand *t = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
        size_t bytes;
        if (t == (i < s->n_in ? w->in[i] : w->out[i - s->n_in]) || t->constant)
            continue;
        if (!oct_dtype_bytes(OCT_F32, t->count, &bytes) || !oct_add_size(bytes, ALIGN - 1, &bytes) ||
            !oct_add_size(*scratch, bytes & ~(size_t)(ALIGN - 1), scratch))
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status prepare_wide(oct_step *s, oct_step *w, const oct_prep *p, oct_arena *temp, oct_err *err)
{
    enum { FACTORS = 2 };
    oct_prep with = *p;
    with.bf16 = in_bf16(s, p);
    *w = *s;
    w->in = oct_arena_calloc(p->arena, (size_t)s->n_in + 1, sizeof(oct_operand *));
    w->out = oct_arena_calloc(p->arena, (size_t)s->n_out + 1, sizeof(oct_operand *));
    if (!w->in || !w->out)
        return oct_nomem(err);
    OCT_TRY(wide_operands(s->in, s->n_in, with.bf16 ? FACTORS : 0, w->in, p->arena, err));
    OCT_TRY(wide_operands(s->out, s->n_out, 0, w->out, p->arena, err));
    OCT_TRY(widen_constants(s, w, p->arena, temp, err));
    if (s->op->prepare)
        OCT_TRY(s->op->prepare(w, &with, err));
    for (int i = 0; i < s->n_in; i++)
        if (w->in[i] != s->in[i] && is_packed(s, i))
            w->in[i]->data = NULL;
    OCT_TRY(scratch_of(s, w, &s->scratch, err));
    s->wide = w;
    s->in_bf16 = with.bf16;
    return OCT_OK;
}

oct_status oct_step_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (!s->op->widens || !(in_bf16(s, p) || has_half(s->in, s->n_in) || has_half(s->out, s->n_out)))
        return s->op->prepare ? s->op->prepare(s, p, err) : OCT_OK;
    oct_step *w = oct_arena_calloc(p->arena, 1, sizeof *w);
    oct_arena *temp = w ? oct_arena_create() : NULL;
    oct_status status = temp ? prepare_wide(s, w, p, temp, err) : oct_nomem(err);
    oct_arena_destroy(temp);
    return status;
}

static void *take(char **at, int64_t count)
{
    void *p = *at;
    *at += ((size_t)count * sizeof(float) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    return p;
}

oct_status oct_step_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_step *w = s->wide;
    if (!w)
        return s->op->run(s, r, err);
    char *at = (char *)r->scratch + ((w->scratch + ALIGN - 1) & ~(size_t)(ALIGN - 1));
    for (int i = 0; i < s->n_in; i++) {
        if (w->in[i] == s->in[i] || s->in[i]->constant)
            continue;
        w->in[i]->data = take(&at, s->in[i]->count);
        convert(r->pool, s->in[i]->dtype, s->in[i]->data, s->in[i]->count, w->in[i]->data);
    }
    for (int k = 0; k < s->n_out; k++)
        if (w->out[k] != s->out[k])
            w->out[k]->data = take(&at, s->out[k]->count);
    OCT_TRY(s->op->run(w, r, err));
    for (int k = 0; k < s->n_out; k++)
        if (w->out[k] != s->out[k])
            oct_narrow(r->pool, s->out[k]->dtype, w->out[k]->data, (size_t)s->out[k]->count, s->out[k]->data);
    return OCT_OK;
}
