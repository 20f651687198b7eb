/* lib/ops/attention/op_gqa.c -- GroupQueryAttention of com.microsoft: a cache of keys and values, rotary embedding,
 * causal attention.
 *
 * Sample b has total = seqlens_k[b] + 1 tokens, of which the last `length` are new (all of them are, and padded on the
 * right, when the input is a prompt: as long as the longest sample). New keys go behind the past ones into the cache,
 * the third dimension of which may be longer than needed. */
#include "ops/attention/rope.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST_K, PAST_V, SEQLENS, TOTAL, COS, SIN, POSITIONS, SCORES, SINKS };

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

/* ------------------------------------------------------------------ shapes */

typedef struct counts {
    int64_t heads, kv_heads;
} counts;

static oct_status read_counts(const oct_node *n, counts *c, oct_err *err)
{
    c->heads = oct_node_int(n, "num_heads", 0);
    c->kv_heads = oct_node_int(n, "kv_num_heads", 0);
    if (c->heads < 1 || c->kv_heads < 1 || c->heads % c->kv_heads != 0)
        return oct_fail(err, OCT_EMALFORMED, "%lld heads of queries, %lld of keys", (long long)c->heads,
                        (long long)c->kv_heads);
    return OCT_OK;
}

/* Values a head, from the last dimension of the queries (of packed queries, keys and values). */
static oct_status depth_of(const counts *c, int64_t hidden, bool packed, int64_t *depth, oct_err *err)
{
    const int64_t parts = c->heads + (packed ? 2 * c->kv_heads : 0);
    *depth = hidden / parts;
    if (hidden % parts != 0)
        return oct_fail(err, OCT_EMALFORMED, "%lld values do not divide into %lld heads", (long long)hidden,
                        (long long)parts);
    return OCT_OK;
}

static oct_status gqa_infer(const oct_infer *c, oct_err *err)
{
    oct_shape q = oct_in_shape(c, QUERY), past = oct_in_shape(c, PAST_K);
    const oct_dim open = { -1, NULL };
    counts n;
    int64_t total, depth;
    OCT_TRY(read_counts(oct_in_node(c), &n, err));
    oct_out_dtype(c, 0, oct_in_dtype(c, QUERY));
    for (int i = 1; i < 3; i++)
        oct_out_dtype(c, i, oct_in_value(c, PAST_K) != NULL ? oct_in_dtype(c, PAST_K) : oct_in_dtype(c, QUERY));
    if (q.rank < 0)
        return OCT_OK;
    if (q.rank != 3 || (past.rank >= 0 && past.rank != 4))
        return oct_fail(err, OCT_EMALFORMED, "queries have %d dimensions, expected 3; past keys %d, expected 4", q.rank,
                        past.rank);
    oct_dim longest = open;
    const oct_dim before = oct_in_value(c, PAST_K) == NULL ? oct_dim_of(0) : past.rank == 4 ? past.d[2] : open;
    if (oct_in_consts(c, TOTAL, &total, 1) == 1 && before.n >= 0)
        longest = oct_dim_of(before.n > total ? before.n : total);
    if (q.d[2].n < 0)
        return OCT_OK;
    OCT_TRY(depth_of(&n, q.d[2].n, oct_in_value(c, KEY) == NULL, &depth, err));
    const oct_dim cache[] = { q.d[0], oct_dim_of(n.kv_heads), longest, oct_dim_of(depth) };
    OCT_TRY(oct_out_shape(c, 0, 3, (oct_dim[]){ q.d[0], q.d[1], oct_dim_of(depth * n.heads) }, err));
    OCT_TRY(oct_out_shape(c, 1, 4, cache, err));
    return oct_out_shape(c, 2, 4, cache, err);
}

/* ------------------------------------------------------------------ preparing */

typedef struct gqa {
    oct_attn a;
    oct_heads q, k, v; /* without data; offsets of packed ones: */
    int64_t at_k, at_v;
    int64_t past, cache; /* length of the past and of the present tensors */
    oct_rope rope;
    bool rotates;
    size_t total_at, offset_at, position_at, q_at, k_at;
} gqa;

/* Attributes and inputs that cannot be run. */
static oct_status refuse(const oct_step *s, oct_err *err)
{
    const oct_node *n = s->node;
    for (int i = SINKS + 1; i < s->n_in; i++)
        if (s->in[i] != NULL)
            return oct_fail(err, OCT_EUNSUPPORTED, "input %d (quantized caches, normalised queries)", i);
    if ((s->n_out > 3 && s->out[3] != NULL) || oct_node_int(n, "sliding_window_cache", 0) != 0 ||
        oct_node_int(n, "qk_output", 0) != 0 || strcmp(oct_node_str(n, "k_quant_type", "NONE"), "NONE") != 0 ||
        strcmp(oct_node_str(n, "v_quant_type", "NONE"), "NONE") != 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "windowed or quantized caches, or scores as an output");
    return oct_step_types(s, OCT_F32, 1u << SEQLENS | 1u << TOTAL | 1u << POSITIONS, err);
}

static oct_status read_inputs(const oct_step *s, gqa *t, oct_err *err)
{
    const oct_operand *q = s->in[QUERY], *k = input(s, KEY), *v = input(s, VALUE);
    counts n;
    int64_t depth;
    OCT_TRY(read_counts(s->node, &n, err));
    OCT_TRY(depth_of(&n, q->dims[2], k == NULL, &depth, err));
    const bool packed = k == NULL && v == NULL;
    if (!packed && (k == NULL || v == NULL || k->rank != 3 || v->rank != 3 || k->dims[2] != n.kv_heads * depth ||
                    v->dims[2] != k->dims[2] || k->dims[1] != q->dims[1] || v->dims[1] != q->dims[1] ||
                    k->dims[0] != q->dims[0] || v->dims[0] != q->dims[0]))
        return oct_fail(err, OCT_EMALFORMED,
                        "keys and values do not fit queries of %lld tokens and heads of %lld values",
                        (long long)q->dims[1], (long long)depth);
    const int64_t row_q = q->dims[2], row_k = k != NULL ? k->dims[2] : row_q;
    t->q = (oct_heads){ q->dims[0], n.heads, q->dims[1], depth, { NULL, q->dims[1] * row_q, depth, row_q } };
    t->k = (oct_heads){ q->dims[0], n.kv_heads, q->dims[1], depth, { NULL, q->dims[1] * row_k, depth, row_k } };
    t->v = t->k;
    t->at_k = k != NULL ? 0 : n.heads * depth;
    t->at_v = k != NULL ? 0 : (n.heads + n.kv_heads) * depth;
    return OCT_OK;
}

static oct_status read_cache(const oct_step *s, gqa *t, oct_err *err)
{
    const oct_operand *pk = input(s, PAST_K), *pv = input(s, PAST_V), *out = s->n_out > 1 ? s->out[1] : NULL;
    const oct_operand *lens = s->in[SEQLENS], *total = s->in[TOTAL];
    t->past = pk != NULL ? pk->dims[2] : 0;
    bool ok =
        (pk == NULL) == (pv == NULL) &&
        (pk == NULL || (pk->rank == 4 && pv->rank == 4 && pk->dims[0] == t->q.batch && pk->dims[1] == t->k.heads &&
                        pk->dims[3] == t->k.depth && pv->count == pk->count && pv->dims[2] == t->past));
    if (!ok)
        return oct_fail(err, OCT_EMALFORMED, "past keys and values do not fit the new ones");
    if (lens->dtype != OCT_S32 || lens->count != t->q.batch || total->dtype != OCT_S32 || total->count != 1)
        return oct_fail(err, OCT_EMALFORMED, "the lengths are not one int32 for each sample, or their largest not one");
    t->cache = out != NULL ? out->dims[2] : t->past + t->q.length;
    if (out == NULL || s->n_out < 3 || s->out[2] == NULL)
        return oct_fail(err, OCT_EUNSUPPORTED, "no present keys and values");
    return OCT_OK;
}

static oct_status read_rope(const oct_step *s, gqa *t, oct_err *err)
{
    const oct_operand *cos = input(s, COS), *sin = input(s, SIN), *at = input(s, POSITIONS);
    t->rotates = oct_node_int(s->node, "do_rotary", 0) != 0;
    if (!t->rotates)
        return OCT_OK;
    if (cos == NULL || sin == NULL || cos->rank != 2 || sin->rank != 2 || sin->count != cos->count ||
        cos->dims[1] < 1 || sin->dims[1] != cos->dims[1] || 2 * cos->dims[1] > t->q.depth)
        return oct_fail(err, OCT_EMALFORMED, "the tables of the rotary embedding do not fit heads of %lld values",
                        (long long)t->q.depth);
    if (at != NULL && (at->dtype != OCT_S64 || at->count != t->q.batch * t->q.length))
        return oct_fail(err, OCT_EMALFORMED, "there is not one int64 position for each token");
    t->rope = (oct_rope){ .positions = cos->dims[0],
                          .half = cos->dims[1],
                          .interleaved = oct_node_int(s->node, "rotary_interleaved", 0) != 0 };
    return OCT_OK;
}

static oct_status check_bias(const oct_step *s, const gqa *t, oct_err *err)
{
    const oct_operand *b = input(s, SCORES), *sinks = input(s, SINKS);
    bool ok = b == NULL ||
              (b->rank == 4 && (b->dims[0] == 1 || b->dims[0] == t->q.batch) &&
               (b->dims[1] == 1 || b->dims[1] == t->q.heads) && b->dims[2] == t->q.length && b->dims[3] <= t->cache);
    if (!ok || (sinks != NULL && sinks->count != t->q.heads))
        return oct_fail(err, OCT_EMALFORMED, "the attention bias or the sinks do not fit %lld heads",
                        (long long)t->q.heads);
    return OCT_OK;
}

static oct_status gqa_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    gqa *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(refuse(s, err));
    if (s->out[0]->count == 0)
        return OCT_OK;
    OCT_TRY(read_inputs(s, t, err));
    OCT_TRY(read_cache(s, t, err));
    OCT_TRY(read_rope(s, t, err));
    OCT_TRY(check_bias(s, t, err));
    t->a = (oct_attn){ .type = OCT_F32,
                       .batch = t->q.batch,
                       .heads = t->q.heads,
                       .kv_heads = t->k.heads,
                       .rows = t->q.length,
                       .keys = t->cache,
                       .depth = t->q.depth,
                       .depth_v = t->q.depth };
    t->a.sink = oct_node_int(s->node, "smooth_softmax", 0) > 0 || input(s, SINKS) != NULL;
    OCT_TRY(oct_attn_prepare(&t->a, p->threads, &s->scratch, err));
    const int64_t tokens = t->q.batch * t->q.length;
    if (!oct_attn_scratch(&s->scratch, t->q.batch, 1, sizeof(int64_t), &t->total_at) ||
        !oct_attn_scratch(&s->scratch, t->q.batch, 1, sizeof(int64_t), &t->offset_at) ||
        !oct_attn_scratch(&s->scratch, tokens, 1, sizeof(int64_t), &t->position_at) ||
        !oct_attn_scratch(&s->scratch, t->rotates ? tokens : 0, t->q.heads * t->q.depth, sizeof(float), &t->q_at) ||
        !oct_attn_scratch(&s->scratch, t->rotates ? tokens : 0, t->k.heads * t->k.depth, sizeof(float), &t->k_at))
        return oct_nomem(err);
    return OCT_OK;
}

/* ------------------------------------------------------------------ running */

/* Tokens of each sample, and how many of them are past. */
static oct_status read_lengths(const oct_step *s, const gqa *t, int64_t *total, int64_t *past, oct_err *err)
{
    const int32_t longest = *(const int32_t *)s->in[TOTAL]->data;
    const bool prompt = longest == t->q.length;
    for (int64_t b = 0; b < t->q.batch; b++) {
        total[b] = (int64_t)((const int32_t *)s->in[SEQLENS]->data)[b] + 1;
        past[b] = prompt ? 0 : total[b] - t->q.length;
        if (total[b] < 1 || total[b] > longest || past[b] < 0 || past[b] > t->past || past[b] + t->q.length > t->cache)
            return oct_fail(
                err, OCT_EMALFORMED,
                "sample %lld has %lld tokens: with %lld new and room for %lld past ones, in a cache of %lld",
                (long long)b, (long long)total[b], (long long)t->q.length, (long long)t->past, (long long)t->cache);
    }
    return OCT_OK;
}

static oct_status rotated(const gqa *t, const oct_step *s, const oct_run *r, const int64_t *past, oct_heads *q,
                          oct_heads *k, oct_err *err)
{
    int64_t *at = (int64_t *)(void *)((char *)r->scratch + t->position_at);
    const int64_t n = t->q.length;
    oct_rope rope = t->rope;
    rope.cos = s->in[COS]->data;
    rope.sin = s->in[SIN]->data;
    for (int64_t i = 0; i < t->q.batch * n; i++)
        at[i] = input(s, POSITIONS) != NULL ? ((const int64_t *)s->in[POSITIONS]->data)[i] : past[i / n] + i % n;
    oct_heads *both[2] = { q, k };
    for (int i = 0; i < 2; i++) {
        oct_heads *h = both[i];
        const int64_t row = h->heads * h->depth;
        oct_attn_part y = { (char *)r->scratch + (i == 0 ? t->q_at : t->k_at), n * row, h->depth, row };
        OCT_TRY(oct_rope_run(&rope, r->pool, h, y, at, err));
        h->part = y;
    }
    return OCT_OK;
}

/* Past rows, new rows, zeros. old: NULL where nothing is past. */
static void fill_cache(const gqa *t, const oct_operand *old, const oct_heads *fresh, const int64_t *past, float *cache)
{
    const int64_t d = fresh->depth;
    for (int64_t b = 0; b < fresh->batch; b++)
        for (int64_t h = 0; h < fresh->heads; h++) {
            float *to = cache + (b * fresh->heads + h) * t->cache * d;
            const float *from = (const float *)fresh->part.data + b * fresh->part.batch + h * fresh->part.head;
            if (old != NULL && past[b] > 0)
                memcpy(to, (const float *)old->data + (b * fresh->heads + h) * t->past * d,
                       (size_t)(past[b] * d) * sizeof *to);
            for (int64_t i = 0; i < fresh->length; i++)
                memcpy(to + (past[b] + i) * d, from + i * fresh->part.row, (size_t)d * sizeof *to);
            memset(to + (past[b] + fresh->length) * d, 0,
                   (size_t)((t->cache - past[b] - fresh->length) * d) * sizeof *to);
        }
}

static oct_status gqa_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const gqa *t = s->state;
    int64_t *total = (int64_t *)(void *)((char *)r->scratch + t->total_at),
            *past = (int64_t *)(void *)((char *)r->scratch + t->offset_at);
    oct_heads q = t->q, k = t->k, v = t->v, y;
    const int64_t window = oct_node_int(s->node, "local_window_size", -1), step = t->cache * t->k.depth;
    oct_attn_io io = { .softcap = (double)oct_node_float(s->node, "softcap", 0.0f), .left = -1 };
    if (s->out[0]->count == 0)
        return OCT_OK;
    OCT_TRY(read_lengths(s, t, total, past, err));
    q.part.data = s->in[QUERY]->data;
    k.part.data = (float *)s->in[input(s, KEY) != NULL ? KEY : QUERY]->data + t->at_k;
    v.part.data = (float *)s->in[input(s, KEY) != NULL ? VALUE : QUERY]->data + t->at_v;
    if (t->rotates)
        OCT_TRY(rotated(t, s, r, past, &q, &k, err));
    fill_cache(t, input(s, PAST_K), &k, past, s->out[1]->data);
    fill_cache(t, input(s, PAST_V), &v, past, s->out[2]->data);
    io.q = q.part;
    io.k = (oct_attn_part){ s->out[1]->data, t->k.heads * step, step, t->k.depth };
    io.v = (oct_attn_part){ s->out[2]->data, t->k.heads * step, step, t->k.depth };
    OCT_TRY(oct_heads_read(s->out[0], t->q.heads, &y, err));
    io.y = y.part;
    io.scale = (double)oct_node_float(s->node, "scale", 0.0f);
    if (io.scale == 0.0)
        io.scale = 1.0 / sqrt((double)t->q.depth);
    io.mask[0] = input(s, SCORES);
    io.masked = -(double)INFINITY;
    io.right = oct_node_int(s->node, "causal", 1) != 0 ? 0 : -1;
    if (window > 0 && window <= INT32_MAX)
        io.left = window - 1; /* the window counts the token itself */
    io.offset = past;
    io.valid = total;
    io.sinks = input(s, SINKS) != NULL ? s->in[SINKS]->data : NULL;
    oct_attn_run(&t->a, r->pool, &io, r->scratch);
    return OCT_OK;
}

const oct_op oct_op_group_query_attention = {
    OCT_SCHEMA("GroupQueryAttention", "com.microsoft", 1, 7, 16, 1, 4),
    .optional = 0x1e,
    .work = OCT_WORK_PAIRS,
    .infer = gqa_infer,
    .prepare = gqa_prepare,
    .run = gqa_run,
    .widens = true,
};
