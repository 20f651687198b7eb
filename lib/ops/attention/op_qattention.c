/* lib/ops/attention/op_qattention.c -- QAttention of com.microsoft: Attention whose input and merged weights are
 * integers of 8 bits. The product is one of integers, of which (float)acc * (s_x * s_w[n]) + bias[n] is attended to.
 * Scales and zero points are inputs, which the model may make. */
#include "kernels/half.h"
#include "kernels/qgemm/qgemm.h"
#include "ops/attention/projected.h"
#include "ops/core/infer.h"
#include "ops/core/packed.h"

enum { X_SCALE = 3, W_SCALE = 4, X_ZERO = 6, W_ZERO = 7 };
static const oct_projected_slots slots = {
    .x = 0, .weights = 1, .bias = 2, .mask = 5, .past = 8, .scores = -1, .end = 9
};

static oct_status integers_infer(const oct_infer *c, oct_err *err)
{
    const oct_dtype scale = oct_in_dtype(c, X_SCALE);
    return oct_projected_infer(c, &slots, oct_is_half(scale) ? scale : OCT_F32, err);
}

typedef struct state {
    oct_projected t;
    oct_qgemm gemm;
    void *weights; /* packed, or NULL: in scratch */
    int32_t *zero; /* of the weights; n_zero of them */
    int64_t n_zero;
    size_t packed_at, gemm_at, mult_at;
} state;

/* ------------------------------------------------------------------ preparing */

static bool is_byte(oct_dtype t)
{
    return t == OCT_U8 || t == OCT_S8;
}

/* One scale and zero point of the input, one for all columns of the weights or for each. */
static oct_status check(const oct_step *s, oct_err *err)
{
    const oct_operand *x = s->in[slots.x], *w = s->in[slots.weights], *b = oct_input_of(s, slots.bias),
                      *xs = s->in[X_SCALE], *ws = s->in[W_SCALE];
    const oct_operand *xz = oct_input_of(s, X_ZERO), *wz = oct_input_of(s, W_ZERO), *past = oct_input_of(s, slots.past);
    if (!is_byte(x->dtype) || !is_byte(w->dtype) || xs->dtype != OCT_F32 || ws->dtype != OCT_F32 ||
        (b && b->dtype != OCT_F32) || (past && past->dtype != OCT_F32))
        return oct_fail(err, OCT_EUNSUPPORTED, "QAttention of %s and %s, with scales of %s, cannot be run",
                        oct_dtype_name(x->dtype), oct_dtype_name(w->dtype), oct_dtype_name(xs->dtype));
    if (xs->count != 1 || (xz && (xz->count != 1 || xz->dtype != x->dtype)))
        return oct_fail(err, OCT_EMALFORMED, "scale and zero point of the input must be one value each");
    if ((ws->count != 1 && ws->count != w->dims[1]) ||
        (wz && ((wz->count != 1 && wz->count != w->dims[1]) || wz->dtype != w->dtype)))
        return oct_fail(err, OCT_EMALFORMED, "scale and zero point of the weights do not fit %lld columns",
                        (long long)w->dims[1]);
    return OCT_OK;
}

static int32_t byte_at(const oct_operand *z, int64_t i)
{
    return z->dtype == OCT_S8 ? ((const int8_t *)z->data)[i] : ((const uint8_t *)z->data)[i];
}

static void pack(const state *t, const oct_step *s, void *packed)
{
    const oct_operand *w = s->in[slots.weights], *z = oct_input_of(s, W_ZERO);
    for (int64_t i = 0; z && i < t->n_zero; i++)
        t->zero[i] = byte_at(z, i);
    oct_qgemm_pack(&t->gemm, w->data, (ptrdiff_t)w->dims[1], 1, t->zero, t->n_zero > 1, packed);
}

static oct_status place_weights(state *t, oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *w = s->in[slots.weights], *z = oct_input_of(s, W_ZERO);
    const bool fixed = w->constant && (!z || z->constant);
    t->n_zero = z ? z->count : 1;
    if (!(t->zero = oct_arena_calloc(p->arena, (size_t)t->n_zero + 1, sizeof *t->zero)))
        return oct_nomem(err);
    t->gemm.fast_pack = !fixed;
    if (!fixed)
        return oct_attn_scratch(&s->scratch, (int64_t)t->gemm.packed_size, 1, 1, &t->packed_at) ? OCT_OK
                                                                                                : oct_nomem(err);
    if (!(t->weights = oct_packed_new(p, t->gemm.packed_size)))
        return oct_nomem(err);
    pack(t, s, t->weights);
    t->weights = oct_packed_done(p, t->weights, t->gemm.packed_size);
    return OCT_OK;
}

static oct_status integers_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    state *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    const oct_operand *x = s->in[slots.x], *w = s->in[slots.weights];
    int64_t rows;
    if (!t)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(check(s, err));
    OCT_TRY(oct_projected_prepare(&t->t, s, &slots, p, err));
    if (!oct_count(x->dims, 2, &rows))
        return oct_nomem(err);
    OCT_TRY(oct_qgemm_prepare(&t->gemm, (size_t)rows, (size_t)w->dims[1], (size_t)w->dims[0], x->dtype, w->dtype,
                              p->threads, err));
    OCT_TRY(place_weights(t, s, p, err));
    return oct_attn_scratch(&s->scratch, (int64_t)t->gemm.scratch_size, 1, 1, &t->gemm_at) &&
                   oct_attn_scratch(&s->scratch, w->dims[1], 1, sizeof(float), &t->mult_at)
               ? OCT_OK
               : oct_nomem(err);
}

/* ------------------------------------------------------------------ running */

static oct_status integers_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const state *t = s->state;
    const oct_operand *x = s->in[slots.x], *b = oct_input_of(s, slots.bias), *z = oct_input_of(s, X_ZERO),
                      *ws = s->in[W_SCALE];
    const int64_t columns = s->in[slots.weights]->dims[1];
    const float scale = *(const float *)s->in[X_SCALE]->data, *each = ws->data;
    char *scratch = r->scratch;
    float *mult = (float *)(void *)(scratch + t->mult_at);
    void *packed = t->weights ? t->weights : scratch + t->packed_at;
    if (s->out[0]->count == 0)
        return OCT_OK;
    for (int64_t i = 0; i < columns; i++)
        mult[i] = scale * each[ws->count > 1 ? i : 0];
    if (!t->weights)
        pack(t, s, packed);
    const oct_qout out = { .kind = OCT_QOUT_F32, .mult = mult, .bias = b ? b->data : NULL };
    oct_qgemm_run(&t->gemm, r->pool, (size_t)(x->dims[0] * x->dims[1]), x->data, (size_t)x->dims[2],
                  z ? byte_at(z, 0) : 0, packed, NULL, &out, oct_projected_rows(&t->t, r), (size_t)columns,
                  scratch + t->gemm_at);
    return oct_projected_run(&t->t, s, r, err);
}

const oct_op oct_op_qattention = {
    OCT_SCHEMA("QAttention", "com.microsoft", 1, 5, 9, 1, 2),
    .work = OCT_WORK_PAIRS,
    .weights = { .slots = 1u << 1, .out = -1, .in = -2, .data = -1 },
    .infer = integers_infer,
    .prepare = integers_prepare,
    .run = integers_run,
    .widens = true,
    .scheme = "int8",
};
