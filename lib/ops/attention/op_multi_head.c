/* lib/ops/attention/op_multi_head.c -- MultiHeadAttention of com.microsoft: queries, keys and values are three tensors
 * or packed ones, a bias is still to be added. */
#include "kernels/binary.h"
#include "ops/attention/merged.h"
#include "ops/core/args.h"

static oct_dim divided(oct_dim d, int64_t by)
{
    return d.n >= 0 && by > 0 ? oct_dim_of(d.n / by) : (oct_dim){ -1, NULL };
}

enum { Q, K, V, BIAS, PADDING, SCORES, PAST_K, PAST_V };

/* Length and hidden size of the keys or values in slot K or V (of packed ones, slot Q or K). */
static void mha_sizes(const oct_infer *c, int slot, oct_dim *length, oct_dim *hidden)
{
    oct_shape x = oct_in_shape(c, slot);
    *length = *hidden = (oct_dim){ -1, NULL };
    if (oct_in_value(c, slot) == NULL && slot > Q) {
        mha_sizes(c, slot - 1, length, hidden);
    } else if (x.rank == 3) {
        *length = x.d[1];
        *hidden = x.d[2];
    } else if (x.rank == 4) {
        *length = x.d[2];
        *hidden = oct_dim_mul(x.d[1], x.d[3]);
    } else if (x.rank == 5) {
        *length = x.d[1];
        *hidden = oct_dim_mul(x.d[2], x.d[4]);
    }
}

static oct_status mha_infer(const oct_infer *c, oct_err *err)
{
    oct_shape q = oct_in_shape(c, Q), past = oct_in_shape(c, PAST_K);
    oct_dim length, hidden, hidden_k;
    int64_t heads;
    OCT_TRY(oct_merged_heads(oct_in_node(c), &heads, err));
    for (int i = 0; i < 4; i++)
        oct_out_dtype(c, i, oct_in_dtype(c, Q));
    if (q.rank < 0)
        return OCT_OK;
    if (q.rank != 3 && q.rank != 5)
        return oct_fail(err, OCT_EMALFORMED, "queries have %d dimensions, expected 3, or 5 of packed ones", q.rank);
    mha_sizes(c, K, &length, &hidden_k);
    mha_sizes(c, V, &length, &hidden);
    const oct_dim before = oct_in_value(c, PAST_K) == NULL ? oct_dim_of(0)
                           : past.rank == 4                ? past.d[2]
                                                           : (oct_dim){ -1, NULL };
    const oct_dim total = oct_dim_add(before, length), n = oct_dim_of(heads);
    OCT_TRY(oct_out_shape(c, 0, 3, (oct_dim[]){ q.d[0], q.d[1], hidden }, err));
    OCT_TRY(oct_out_shape(c, 1, 4, (oct_dim[]){ q.d[0], n, total, divided(hidden_k, heads) }, err));
    OCT_TRY(oct_out_shape(c, 2, 4, (oct_dim[]){ q.d[0], n, total, divided(hidden, heads) }, err));
    return oct_out_shape(c, 3, 4, (oct_dim[]){ q.d[0], n, q.d[1], total }, err);
}

/* Where queries, keys or values come from. */
typedef struct source {
    oct_heads h; /* without data */
    int slot;
    int64_t offset; /* elements */
    size_t at;      /* scratch for the sum with the bias */
    int64_t bias;   /* where it begins, or -1 */
} source;

typedef struct mha {
    oct_merged m;
    source q, k, v;
} mha;

/* Part `which` of `of` packed ones: [batch][length][heads][of][depth]. */
static source packed_source(const oct_operand *t, int slot, int which, int of)
{
    const int64_t n = t->dims[2], d = t->dims[4];
    return (source){ .h = { t->dims[0], n, t->dims[1], d, { NULL, t->dims[1] * n * of * d, of * d, n * of * d } },
                     .slot = slot,
                     .offset = which * d,
                     .bias = -1 };
}

static oct_status mha_sources(const oct_step *s, mha *t, int64_t heads, oct_err *err)
{
    const oct_operand *q = s->in[Q], *k = oct_input_of(s, K), *v = oct_input_of(s, V);
    const bool all = q->rank == 5 && k == NULL && v == NULL && q->dims[3] == 3 && q->dims[2] == heads;
    const bool pair = q->rank == 3 && k != NULL && k->rank == 5 && v == NULL && k->dims[3] == 2 && k->dims[2] == heads;
    if (all || pair) {
        if (oct_input_of(s, BIAS) != NULL)
            return oct_fail(err, OCT_EUNSUPPORTED, "a bias of packed inputs");
        t->k = packed_source(all ? q : k, all ? Q : K, all ? 1 : 0, all ? 3 : 2);
        t->v = packed_source(all ? q : k, all ? Q : K, all ? 2 : 1, all ? 3 : 2);
        if (all)
            t->q = packed_source(q, Q, 0, 3);
    } else {
        if (k == NULL || v == NULL || q->rank != 3)
            return oct_fail(err, OCT_EMALFORMED, "keys or values are missing");
        t->k = (source){ .slot = K, .bias = -1 };
        t->v = (source){ .slot = V, .bias = -1 };
        OCT_TRY(oct_heads_read(k, heads, &t->k.h, err));
        OCT_TRY(oct_heads_read(v, heads, &t->v.h, err));
    }
    if (!all) {
        t->q = (source){ .slot = Q, .bias = -1 };
        OCT_TRY(oct_heads_read(q, heads, &t->q.h, err));
    }
    return OCT_OK;
}

static oct_status mha_check(const oct_step *s, const mha *t, oct_err *err)
{
    const oct_heads *q = &t->q.h, *k = &t->k.h, *v = &t->v.h, *pk = &t->m.past_k, *pv = &t->m.past_v;
    bool ok = q->batch == k->batch && k->batch == v->batch && q->heads == k->heads && k->heads == v->heads &&
              q->depth == k->depth && k->length == v->length;
    if (oct_input_of(s, PAST_K) != NULL)
        ok = ok && pk->batch == k->batch && pk->heads == k->heads && pk->depth == k->depth && pv->batch == k->batch &&
             pv->heads == k->heads && pv->depth == v->depth && pv->length == pk->length;
    if (!ok)
        return oct_fail(err, OCT_EMALFORMED, "queries, keys, values and past do not fit each other");
    for (int i = PAST_V + 1; i < s->n_in; i++)
        if (s->in[i] != NULL)
            return oct_fail(err, OCT_EUNSUPPORTED, "a shared buffer of keys and values");
    return OCT_OK;
}

/* The bias is added to 3-D inputs in scratch. */
static oct_status mha_bias(const oct_step *s, mha *t, size_t *scratch, oct_err *err)
{
    const oct_operand *b = oct_input_of(s, BIAS);
    source *all[3] = { &t->q, &t->k, &t->v };
    int64_t at = 0;
    for (int i = 0; b != NULL && i < 3; i++) {
        const oct_heads *h = &all[i]->h;
        all[i]->bias = s->in[all[i]->slot]->rank == 3 ? at : -1;
        at += h->heads * h->depth;
        if (!oct_attn_scratch(scratch, s->in[all[i]->slot]->count, 1, sizeof(float), &all[i]->at))
            return oct_nomem(err);
    }
    if (b != NULL && b->count != at)
        return oct_fail(err, OCT_EMALFORMED, "the bias has %lld values, expected %lld", (long long)b->count,
                        (long long)at);
    return OCT_OK;
}

static oct_status mha_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    mha *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    int64_t heads;
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(oct_merged_heads(s->node, &heads, err));
    OCT_TRY(oct_step_types(s, OCT_F32, 1u << PADDING, err));
    OCT_TRY(mha_sources(s, t, heads, err));
    if ((oct_input_of(s, PAST_K) != NULL) != (oct_input_of(s, PAST_V) != NULL) ||
        (oct_input_of(s, PAST_K) != NULL && (s->in[PAST_K]->rank != 4 || s->in[PAST_V]->rank != 4)))
        return oct_fail(err, OCT_EMALFORMED, "past keys and values are two tensors of 4 dimensions");
    if (oct_input_of(s, PAST_K) != NULL) {
        OCT_TRY(oct_heads_read(s->in[PAST_K], heads, &t->m.past_k, err));
        OCT_TRY(oct_heads_read(s->in[PAST_V], heads, &t->m.past_v, err));
    }
    OCT_TRY(mha_check(s, t, err));
    t->m.a = (oct_attn){ .type = OCT_F32,
                         .batch = t->q.h.batch,
                         .heads = heads,
                         .kv_heads = heads,
                         .rows = t->q.h.length,
                         .keys = t->m.past_k.length + t->k.h.length,
                         .depth = t->q.h.depth,
                         .depth_v = t->v.h.depth };
    OCT_TRY(oct_merged_prepare(&t->m, oct_input_of(s, PADDING), oct_input_of(s, SCORES), &s->scratch, p, err));
    return mha_bias(s, t, &s->scratch, err);
}

/* The heads of a source with their data, the bias added. */
static oct_heads fetch(const source *f, const oct_step *s, const oct_run *r)
{
    oct_heads h = f->h;
    const oct_operand *t = s->in[f->slot];
    h.part.data = (float *)t->data + f->offset;
    if (f->bias < 0)
        return h;
    const int64_t width = h.heads * h.depth;
    const float *bias = (const float *)s->in[BIAS]->data + f->bias, *x = t->data;
    float *sum = (float *)(void *)((char *)r->scratch + f->at);
    for (int64_t row = 0; row < t->count; row += width)
        oct_binary_f32(r->pool, OCT_BINARY_ADD, x + row, 1, bias, 1, sum + row, (size_t)width);
    h.part.data = sum;
    return h;
}

static oct_status mha_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const mha *t = s->state;
    const oct_operand *key = oct_output_of(s, 1), *value = oct_output_of(s, 2), *scores = oct_output_of(s, 3);
    oct_heads past_k = t->m.past_k, past_v = t->m.past_v, k = fetch(&t->k, s, r), v = fetch(&t->v, s, r), y;
    oct_attn_io io = { .stage = OCT_ATTN_WEIGHTS };
    oct_operand keys;
    past_k.part.data = oct_input_of(s, PAST_K) != NULL ? s->in[PAST_K]->data : NULL;
    past_v.part.data = oct_input_of(s, PAST_V) != NULL ? s->in[PAST_V]->data : NULL;
    const bool joins = past_k.part.data != NULL;
    io.q = fetch(&t->q, s, r).part;
    io.k = joins || key != NULL
               ? oct_merged_join(r, &past_k, &k, key != NULL ? key->data : (char *)r->scratch + t->m.k_at)
               : k.part;
    io.v = joins || value != NULL
               ? oct_merged_join(r, &past_v, &v, value != NULL ? value->data : (char *)r->scratch + t->m.v_at)
               : v.part;
    oct_merged_io(&t->m, s, r, oct_input_of(s, PADDING), oct_input_of(s, SCORES), &keys, &io);
    OCT_TRY(oct_heads_read(s->out[0], t->m.a.heads, &y, err));
    io.y = y.part;
    if (scores != NULL) {
        OCT_TRY(oct_heads_read(scores, t->m.a.heads, &y, err));
        io.scores = y.part;
    }
    if (s->out[0]->count > 0)
        oct_attn_run(&t->m.a, r->pool, &io, r->scratch);
    return OCT_OK;
}

const oct_op oct_op_multi_head_attention = {
    OCT_SCHEMA("MultiHeadAttention", "com.microsoft", 1, 1, 10, 1, 4),
    .work = OCT_WORK_PAIRS,
    .infer = mha_infer,
    .prepare = mha_prepare,
    .run = mha_run,
    .widens = true,
};
