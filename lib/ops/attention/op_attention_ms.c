/* lib/ops/attention/op_attention_ms.c -- Attention and MultiHeadAttention of com.microsoft.
 *
 * Both compute what op_attention.c does; they differ in where queries, keys and values come from (a product with merged
 * weights; three tensors or packed ones, a bias still to be added), and in masks: integers, where what is masked gets
 * mask_filter_value instead of -infinity. */
#include "kernels/binary.h"
#include "ops/attention/attention.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

static const oct_operand *output(const oct_step *s, int slot)
{
    return slot < s->n_out ? s->out[slot] : NULL;
}

/* ------------------------------------------------------------------ masks */

/* Integer masks: lengths of the samples (and starts), or a number a key that is 0 where it is masked. */
typedef struct mask {
    oct_operand keys;      /* bool [batch][1][1 or rows][total], or rank 0 */
    bool lengths, starts;
    size_t keys_at, lengths_at, starts_at;
} mask;

static oct_status mask_prepare(const oct_operand *m, const oct_attn *a, mask *k, size_t *scratch, oct_err *err)
{
    *k = (mask){ .lengths = false };
    if (m == NULL)
        return OCT_OK;
    if (m->dtype != OCT_S32)
        return oct_fail(err, OCT_EMALFORMED, "a mask of %s, expected int32", oct_dtype_name(m->dtype));
    if (m->rank == 1 && (m->dims[0] == a->batch || m->dims[0] == 2 * a->batch)) {
        k->lengths = true;
        k->starts = m->dims[0] != a->batch;
        return oct_attn_scratch(scratch, a->batch, 1, sizeof(int64_t), &k->lengths_at) &&
               oct_attn_scratch(scratch, a->batch, 1, sizeof(int64_t), &k->starts_at) ? OCT_OK : oct_nomem(err);
    }
    const bool plain = m->rank == 2 && m->dims[0] == a->batch && m->dims[1] == a->keys;
    const bool by_row = m->rank == 3 && m->dims[0] == a->batch && m->dims[1] == a->rows && m->dims[2] == a->keys;
    if (!plain && !by_row)
        return oct_fail(err, OCT_EUNSUPPORTED, "a mask of %d dimensions that does not fit %lld keys of %lld samples", m->rank,
                        (long long)a->keys, (long long)a->batch);
    k->keys = (oct_operand){ .dtype = OCT_BOOL, .rank = 4, .dims = { a->batch, 1, by_row ? a->rows : 1, a->keys }, .count = m->count };
    return oct_attn_scratch(scratch, m->count, 1, 1, &k->keys_at) ? OCT_OK : oct_nomem(err);
}

static void mask_run(const oct_operand *m, const mask *k, char *scratch, oct_operand *keys, oct_attn_io *io)
{
    if (m == NULL)
        return;
    const int32_t *v = m->data;
    if (k->lengths) {
        int64_t *lengths = (int64_t *)(void *)(scratch + k->lengths_at), *starts = (int64_t *)(void *)(scratch + k->starts_at);
        const int64_t batch = k->starts ? m->count / 2 : m->count;
        for (int64_t b = 0; b < batch; b++) {
            lengths[b] = v[b];
            starts[b] = k->starts ? v[batch + b] : 0;
        }
        io->valid = lengths;
        io->first = k->starts ? starts : NULL;
    } else if (k->keys.rank != 0) {
        *keys = k->keys;
        keys->data = scratch + k->keys_at;
        for (int64_t i = 0; i < m->count; i++)
            ((uint8_t *)keys->data)[i] = v[i] != 0;
        io->mask[0] = keys;
    }
}

/* ------------------------------------------------------------------ what both share */

typedef struct merged {
    oct_attn a;
    mask mask;
    oct_heads past_k, past_v;
    size_t offset_at, k_at, v_at; /* scratch: joined keys and values unless they are outputs */
} merged;

static oct_status merged_prepare(merged *t, const oct_operand *m, const oct_operand *bias, size_t *scratch, const oct_prep *p,
                                 oct_err *err)
{
    const oct_attn *a = &t->a;
    OCT_TRY(oct_attn_prepare(&t->a, p->threads, scratch, err));
    OCT_TRY(mask_prepare(m, a, &t->mask, scratch, err));
    if (bias != NULL) {
        bool ok = bias->rank == 4 && bias->dtype == OCT_F32 && (bias->dims[0] == 1 || bias->dims[0] == a->batch) &&
                  (bias->dims[1] == 1 || bias->dims[1] == a->heads) && bias->dims[2] == a->rows && bias->dims[3] == a->keys;
        if (!ok)
            return oct_fail(err, OCT_EMALFORMED, "the attention bias does not fit %lld x %lld x %lld x %lld scores",
                            (long long)a->batch, (long long)a->heads, (long long)a->rows, (long long)a->keys);
    }
    int64_t keys;
    if (!oct_count((const int64_t[]){ a->batch, a->kv_heads, a->keys }, 3, &keys) ||
        !oct_attn_scratch(scratch, a->batch, 1, sizeof(int64_t), &t->offset_at) ||
        !oct_attn_scratch(scratch, keys, a->depth, sizeof(float), &t->k_at) ||
        !oct_attn_scratch(scratch, keys, a->depth_v, sizeof(float), &t->v_at))
        return oct_nomem(err);
    return OCT_OK;
}

/* Keys or values behind the past, in `to`. */
static oct_attn_part joined(const oct_run *r, const oct_heads *past, const oct_heads *fresh, void *to)
{
    const int64_t step = (past->length + fresh->length) * fresh->depth;
    oct_heads_join(r->pool, OCT_F32, past->part.data != NULL ? past : NULL, fresh, to);
    return (oct_attn_part){ to, fresh->heads * step, step, fresh->depth };
}

/* Everything of io but q, k, v, y. */
static void merged_io(const merged *t, const oct_step *s, const oct_run *r, const oct_operand *m, const oct_operand *bias,
                      oct_operand *keys, oct_attn_io *io)
{
    int64_t *offset = (int64_t *)(void *)((char *)r->scratch + t->offset_at);
    for (int64_t b = 0; b < t->a.batch; b++)
        offset[b] = t->past_k.length;
    io->scale = (double)oct_node_float(s->node, "scale", 0.0f);
    if (io->scale == 0.0)
        io->scale = 1.0 / sqrt((double)t->a.depth);
    io->masked = (double)oct_node_float(s->node, "mask_filter_value", -10000.0f);
    io->mask[1] = bias;
    io->left = -1;
    io->right = oct_node_int(s->node, "unidirectional", 0) != 0 ? 0 : -1;
    io->offset = offset;
    mask_run(m, &t->mask, r->scratch, keys, io);
}

static oct_status heads_of(const oct_node *n, int64_t *heads, oct_err *err)
{
    *heads = oct_node_int(n, "num_heads", 0);
    return *heads > 0 ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "attribute 'num_heads' is missing or below 1");
}

static oct_dim divided(oct_dim d, int64_t by)
{
    return d.n >= 0 && by > 0 ? oct_dim_of(d.n / by) : (oct_dim){ -1, NULL };
}

/* ------------------------------------------------------------------ MultiHeadAttention */

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
    OCT_TRY(heads_of(oct_in_node(c), &heads, err));
    for (int i = 0; i < 4; i++)
        oct_out_dtype(c, i, oct_in_dtype(c, Q));
    if (q.rank < 0)
        return OCT_OK;
    if (q.rank != 3 && q.rank != 5)
        return oct_fail(err, OCT_EMALFORMED, "queries have %d dimensions, expected 3, or 5 of packed ones", q.rank);
    mha_sizes(c, K, &length, &hidden_k);
    mha_sizes(c, V, &length, &hidden);
    const oct_dim before = oct_in_value(c, PAST_K) == NULL ? oct_dim_of(0) : past.rank == 4 ? past.d[2] : (oct_dim){ -1, NULL };
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
    merged m;
    source q, k, v;
} mha;

/* Part `which` of `of` packed ones: [batch][length][heads][of][depth]. */
static source packed_source(const oct_operand *t, int slot, int which, int of)
{
    const int64_t n = t->dims[2], d = t->dims[4];
    return (source){ .h = { t->dims[0], n, t->dims[1], d, { NULL, t->dims[1] * n * of * d, of * d, n * of * d } },
                     .slot = slot, .offset = which * d, .bias = -1 };
}

static oct_status mha_sources(const oct_step *s, mha *t, int64_t heads, oct_err *err)
{
    const oct_operand *q = s->in[Q], *k = input(s, K), *v = input(s, V);
    const bool all = q->rank == 5 && k == NULL && v == NULL && q->dims[3] == 3 && q->dims[2] == heads;
    const bool pair = q->rank == 3 && k != NULL && k->rank == 5 && v == NULL && k->dims[3] == 2 && k->dims[2] == heads;
    if (all || pair) {
        if (input(s, BIAS) != NULL)
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
    if (input(s, PAST_K) != NULL)
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
    const oct_operand *b = input(s, BIAS);
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
        return oct_fail(err, OCT_EMALFORMED, "the bias has %lld values, expected %lld", (long long)b->count, (long long)at);
    return OCT_OK;
}

static oct_status mha_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    mha *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    int64_t heads;
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(heads_of(s->node, &heads, err));
    OCT_TRY(oct_step_types(s, OCT_F32, 1u << PADDING, err));
    OCT_TRY(mha_sources(s, t, heads, err));
    if ((input(s, PAST_K) != NULL) != (input(s, PAST_V) != NULL) || (input(s, PAST_K) != NULL && (s->in[PAST_K]->rank != 4 || s->in[PAST_V]->rank != 4)))
        return oct_fail(err, OCT_EMALFORMED, "past keys and values are two tensors of 4 dimensions");
    if (input(s, PAST_K) != NULL) {
        OCT_TRY(oct_heads_read(s->in[PAST_K], heads, &t->m.past_k, err));
        OCT_TRY(oct_heads_read(s->in[PAST_V], heads, &t->m.past_v, err));
    }
    OCT_TRY(mha_check(s, t, err));
    t->m.a = (oct_attn){ .type = OCT_F32, .batch = t->q.h.batch, .heads = heads, .kv_heads = heads, .rows = t->q.h.length,
                         .keys = t->m.past_k.length + t->k.h.length, .depth = t->q.h.depth, .depth_v = t->v.h.depth };
    OCT_TRY(merged_prepare(&t->m, input(s, PADDING), input(s, SCORES), &s->scratch, p, err));
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
    const oct_operand *key = output(s, 1), *value = output(s, 2), *scores = output(s, 3);
    oct_heads past_k = t->m.past_k, past_v = t->m.past_v, k = fetch(&t->k, s, r), v = fetch(&t->v, s, r), y;
    oct_attn_io io = { .stage = OCT_ATTN_WEIGHTS };
    oct_operand keys;
    past_k.part.data = input(s, PAST_K) != NULL ? s->in[PAST_K]->data : NULL;
    past_v.part.data = input(s, PAST_V) != NULL ? s->in[PAST_V]->data : NULL;
    const bool joins = past_k.part.data != NULL;
    io.q = fetch(&t->q, s, r).part;
    io.k = joins || key != NULL ? joined(r, &past_k, &k, key != NULL ? key->data : (char *)r->scratch + t->m.k_at) : k.part;
    io.v = joins || value != NULL ? joined(r, &past_v, &v, value != NULL ? value->data : (char *)r->scratch + t->m.v_at) : v.part;
    merged_io(&t->m, s, r, input(s, PADDING), input(s, SCORES), &keys, &io);
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
    .type = "MultiHeadAttention", .domain = "com.microsoft", .since = 1, .min_in = 1, .max_in = 10, .min_out = 1, .max_out = 4,
    .work = OCT_WORK_PAIRS, .infer = mha_infer, .prepare = mha_prepare, .run = mha_run, .widens = true,
};

/* ------------------------------------------------------------------ Attention */

enum { X, WEIGHTS, X_BIAS, X_MASK, PAST, X_SCORES };

/* Hidden sizes of queries, keys and values: the attribute, or thirds of the weights' columns. */
static oct_status hidden_sizes(const oct_node *n, int64_t columns, int64_t heads, int64_t h[3], oct_err *err)
{
    int count;
    const int64_t *given = oct_node_ints(n, "qkv_hidden_sizes", &count);
    for (int i = 0; i < 3; i++)
        h[i] = given != NULL && count == 3 ? given[i] : columns / 3;
    bool ok = given == NULL || count == 3;
    for (int i = 0; ok && i < 3; i++)
        ok = h[i] > 0 && h[i] <= columns && h[i] % heads == 0;
    if (!ok || h[0] != h[1] || h[0] + h[1] + h[2] != columns)
        return oct_fail(err, OCT_EMALFORMED, "weights of %lld columns do not split into queries, keys and values of %lld heads",
                        (long long)columns, (long long)heads);
    return OCT_OK;
}

static oct_status merged_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    oct_shape x = oct_in_shape(c, X), w = oct_in_shape(c, WEIGHTS), past = oct_in_shape(c, PAST);
    int64_t heads, h[3];
    OCT_TRY(heads_of(n, &heads, err));
    oct_out_dtype(c, 0, oct_in_dtype(c, X));
    oct_out_dtype(c, 1, oct_in_dtype(c, X));
    if (x.rank < 0 || w.rank < 0)
        return OCT_OK;
    if (x.rank != 3 || w.rank != 2 || (x.d[2].n >= 0 && w.d[0].n >= 0 && x.d[2].n != w.d[0].n))
        return oct_fail(err, OCT_EMALFORMED, "the input is no 3-D tensor whose last dimension the weights take");
    if (w.d[1].n < 0)
        return OCT_OK;
    OCT_TRY(hidden_sizes(n, w.d[1].n, heads, h, err));
    const oct_dim before = oct_in_value(c, PAST) == NULL ? oct_dim_of(0) : past.rank == 5 ? past.d[3] : (oct_dim){ -1, NULL };
    const oct_dim present[] = { oct_dim_of(2), x.d[0], oct_dim_of(heads), oct_dim_add(before, x.d[1]), oct_dim_of(h[0] / heads) };
    OCT_TRY(oct_out_shape(c, 0, 3, (oct_dim[]){ x.d[0], x.d[1], oct_dim_of(h[2]) }, err));
    return oct_out_shape(c, 1, 5, present, err);
}

typedef struct projected {
    merged m;
    int64_t h[3];
    oct_sgemm gemm;
    void *weights;              /* packed, or NULL: in scratch */
    size_t packed_at, gemm_at, rows_at;
} projected;

static oct_status projected_check(const oct_step *s, const projected *t, oct_err *err)
{
    const oct_operand *x = s->in[X], *b = input(s, X_BIAS), *past = input(s, PAST);
    const int64_t heads = t->m.a.heads, depth = t->h[0] / heads;
    if (b != NULL && b->count != t->h[0] + t->h[1] + t->h[2])
        return oct_fail(err, OCT_EMALFORMED, "the bias has %lld values for %lld columns", (long long)b->count,
                        (long long)(t->h[0] + t->h[1] + t->h[2]));
    if (past != NULL && (past->rank != 5 || past->dims[0] != 2 || past->dims[1] != x->dims[0] || past->dims[2] != heads ||
                         past->dims[4] != depth || t->h[2] != t->h[0]))
        return oct_fail(err, OCT_EMALFORMED, "the past does not fit %lld heads of %lld values", (long long)heads, (long long)depth);
    if (oct_node_int(s->node, "do_rotary", 0) != 0 || oct_node_int(s->node, "past_present_share_buffer", 0) != 0 || s->n_in > X_SCORES + 1)
        return oct_fail(err, OCT_EUNSUPPORTED, "rotary embedding or a shared buffer of keys and values");
    if (output(s, 1) != NULL && t->h[2] != t->h[0])
        return oct_fail(err, OCT_EMALFORMED, "a present state of keys and values of different sizes");
    return OCT_OK;
}

static oct_status projected_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    projected *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    const oct_operand *x = s->in[X], *w = s->in[WEIGHTS], *past = input(s, PAST);
    int64_t heads, columns;
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(heads_of(s->node, &heads, err));
    OCT_TRY(oct_step_types(s, OCT_F32, 1u << X_MASK, err));
    columns = w->dims[1];
    OCT_TRY(hidden_sizes(s->node, columns, heads, t->h, err));
    t->m.a = (oct_attn){ .type = OCT_F32, .batch = x->dims[0], .heads = heads, .kv_heads = heads, .rows = x->dims[1],
                         .keys = x->dims[1], .depth = t->h[0] / heads, .depth_v = t->h[2] / heads };
    OCT_TRY(projected_check(s, t, err));
    if (past != NULL) {
        t->m.past_k = (oct_heads){ x->dims[0], heads, past->dims[3], t->m.a.depth, { 0 } };
        t->m.past_k.part = (oct_attn_part){ NULL, heads * past->dims[3] * t->m.a.depth, past->dims[3] * t->m.a.depth, t->m.a.depth };
        t->m.past_v = t->m.past_k;
        t->m.a.keys += past->dims[3];
    }
    OCT_TRY(merged_prepare(&t->m, input(s, X_MASK), input(s, X_SCORES), &s->scratch, p, err));
    OCT_TRY(oct_sgemm_prepare(&t->gemm, 0, (size_t)columns, (size_t)w->dims[0], p->threads, err));
    if (w->constant && (t->weights = oct_arena_aligned(p->arena, t->gemm.packed_size + 1, 64)) == NULL)
        return oct_nomem(err);
    if (w->constant)
        oct_sgemm_pack(&t->gemm, w->data, (ptrdiff_t)columns, 1, t->weights);
    if (!oct_attn_scratch(&s->scratch, w->constant ? 0 : (int64_t)t->gemm.packed_size, 1, 1, &t->packed_at) ||
        !oct_attn_scratch(&s->scratch, (int64_t)t->gemm.scratch_size, 1, 1, &t->gemm_at) ||
        !oct_attn_scratch(&s->scratch, x->dims[0] * x->dims[1], columns, sizeof(float), &t->rows_at))
        return oct_nomem(err);
    return OCT_OK;
}

/* Columns from `first` on of the projected rows, as heads. */
static oct_heads part_of(const projected *t, float *rows, int64_t first, int64_t hidden)
{
    const int64_t width = t->h[0] + t->h[1] + t->h[2], heads = t->m.a.heads, length = t->m.a.rows;
    return (oct_heads){ t->m.a.batch, heads, length, hidden / heads, { rows + first, length * width, hidden / heads, width } };
}

static oct_status projected_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const projected *t = s->state;
    const oct_operand *x = s->in[X], *b = input(s, X_BIAS), *past = input(s, PAST), *present = output(s, 1);
    const int64_t width = t->h[0] + t->h[1] + t->h[2];
    char *scratch = r->scratch;
    float *rows = (float *)(void *)(scratch + t->rows_at);
    void *packed = t->weights != NULL ? t->weights : scratch + t->packed_at;
    oct_sout out = { .bias = b != NULL ? b->data : NULL };
    oct_heads past_k = t->m.past_k, past_v = t->m.past_v, y;
    oct_attn_io io = { .stage = OCT_ATTN_WEIGHTS };
    oct_operand keys;
    if (s->out[0]->count == 0)
        return OCT_OK;
    if (t->weights == NULL)
        oct_sgemm_pack(&t->gemm, s->in[WEIGHTS]->data, (ptrdiff_t)width, 1, packed);
    oct_sgemm_run(&t->gemm, r->pool, (size_t)(x->dims[0] * x->dims[1]), x->data, (size_t)x->dims[2], packed, rows, (size_t)width,
                  &out, scratch + t->gemm_at);
    const oct_heads q = part_of(t, rows, 0, t->h[0]), k = part_of(t, rows, t->h[0], t->h[1]),
                    v = part_of(t, rows, t->h[0] + t->h[1], t->h[2]);
    past_k.part.data = past != NULL ? past->data : NULL;
    past_v.part.data = past != NULL ? (float *)past->data + past->count / 2 : NULL;
    io.q = q.part;
    io.k = past != NULL || present != NULL ? joined(r, &past_k, &k, present != NULL ? present->data : scratch + t->m.k_at) : k.part;
    io.v = past != NULL || present != NULL
               ? joined(r, &past_v, &v, present != NULL ? (float *)present->data + present->count / 2 : (void *)(scratch + t->m.v_at))
               : v.part;
    merged_io(&t->m, s, r, input(s, X_MASK), input(s, X_SCORES), &keys, &io);
    OCT_TRY(oct_heads_read(s->out[0], t->m.a.heads, &y, err));
    io.y = y.part;
    oct_attn_run(&t->m.a, r->pool, &io, scratch);
    return OCT_OK;
}

const oct_op oct_op_attention_ms = {
    .type = "Attention", .domain = "com.microsoft", .since = 1, .min_in = 2, .max_in = 7, .min_out = 1, .max_out = 2,
    .work = OCT_WORK_PAIRS, .infer = merged_infer, .prepare = projected_prepare, .run = projected_run, .widens = true,
};
