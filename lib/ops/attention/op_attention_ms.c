/* lib/ops/attention/op_attention_ms.c -- Attention of com.microsoft: the product with merged weights is part of it. */
#include "ops/attention/projected.h"
#include "ops/core/args.h"

static const oct_projected_slots slots = {
    .x = 0, .weights = 1, .bias = 2, .mask = 3, .past = 4, .scores = 5, .end = 6
};

static oct_status merged_infer(const oct_infer *c, oct_err *err)
{
    return oct_projected_infer(c, &slots, oct_in_dtype(c, slots.x), err);
}

typedef struct state {
    oct_projected t;
    oct_sgemm gemm;
    void *weights; /* packed, or NULL: in scratch */
    size_t packed_at, gemm_at;
} state;

static oct_status merged_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    state *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    const oct_operand *w = s->in[slots.weights];
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(oct_step_types(s, OCT_F32, 1u << slots.mask, err));
    OCT_TRY(oct_projected_prepare(&t->t, s, &slots, p, err));
    OCT_TRY(oct_sgemm_prepare(&t->gemm, 0, (size_t)w->dims[1], (size_t)w->dims[0], p->threads, err));
    if (w->constant && (t->weights = oct_arena_aligned(p->arena, t->gemm.packed_size + 1, 64)) == NULL)
        return oct_nomem(err);
    if (w->constant)
        oct_sgemm_pack(&t->gemm, w->data, (ptrdiff_t)w->dims[1], 1, t->weights);
    if (!oct_attn_scratch(&s->scratch, w->constant ? 0 : (int64_t)t->gemm.packed_size, 1, 1, &t->packed_at) ||
        !oct_attn_scratch(&s->scratch, (int64_t)t->gemm.scratch_size, 1, 1, &t->gemm_at))
        return oct_nomem(err);
    return OCT_OK;
}

static oct_status merged_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const state *t = s->state;
    const oct_operand *x = s->in[slots.x], *w = s->in[slots.weights], *b = oct_input_of(s, slots.bias);
    char *scratch = r->scratch;
    void *packed = t->weights != NULL ? t->weights : scratch + t->packed_at;
    const oct_sout out = { .bias = b != NULL ? b->data : NULL };
    if (s->out[0]->count == 0)
        return OCT_OK;
    if (t->weights == NULL)
        oct_sgemm_pack(&t->gemm, w->data, (ptrdiff_t)w->dims[1], 1, packed);
    oct_sgemm_run(&t->gemm, r->pool, (size_t)(x->dims[0] * x->dims[1]), x->data, (size_t)x->dims[2], packed,
                  oct_projected_rows(&t->t, r), (size_t)w->dims[1], &out, scratch + t->gemm_at);
    return oct_projected_run(&t->t, s, r, err);
}

const oct_op oct_op_attention_ms = {
    OCT_SCHEMA("Attention", "com.microsoft", 1, 2, 7, 1, 2),
    .work = OCT_WORK_PAIRS,
    .infer = merged_infer,
    .prepare = merged_prepare,
    .run = merged_run,
    .widens = true,
};
