/* lib/ops/attention/op_attention.c -- Attention of the default domain: past and present keys, masks, causal and sliding
 * windows. */
#include "ops/attention/attention.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

enum { Q, K, V, MASK, PAST_K, PAST_V, VALID };

/* ------------------------------------------------------------------ shapes */

/* Sizes as far as they are known, of a 4-D tensor of heads or a 3-D one that holds `heads` of them. */
typedef struct sizes {
    oct_dim batch, heads, length, depth;
} sizes;

static oct_status read_sizes(const oct_infer *c, int slot, const char *attr, sizes *s, oct_err *err)
{
    const oct_dim open = { -1, NULL };
    oct_shape x = oct_in_shape(c, slot);
    int64_t heads = oct_node_int(oct_in_node(c), attr, 0);
    *s = (sizes){ open, open, open, open };
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank == 4) {
        *s = (sizes){ x.d[0], x.d[1], x.d[2], x.d[3] };
        return OCT_OK;
    }
    if (x.rank != 3 || heads < 1 || (x.d[2].n >= 0 && x.d[2].n % heads != 0)) {
        char text[128];
        return oct_fail(err, OCT_EMALFORMED, "input %d is %s, which does not hold %lld heads ('%s')", slot,
                        oct_shape_text(&x, text, sizeof text), (long long)heads, attr);
    }
    *s = (sizes){ x.d[0], oct_dim_of(heads), x.d[1], x.d[2].n >= 0 ? oct_dim_of(x.d[2].n / heads) : open };
    return OCT_OK;
}

static oct_dim first_known(oct_dim a, oct_dim b)
{
    return a.n >= 0 || (a.sym != NULL && b.n < 0) ? a : b;
}

static oct_status attention_infer(const oct_infer *c, oct_err *err)
{
    sizes q, k, v;
    oct_shape x = oct_in_shape(c, Q), past = oct_in_shape(c, PAST_K);
    for (int i = 0; i < 4; i++)
        oct_out_dtype(c, i, oct_in_dtype(c, i == 2 ? V : Q));
    OCT_TRY(read_sizes(c, Q, "q_num_heads", &q, err));
    OCT_TRY(read_sizes(c, K, "kv_num_heads", &k, err));
    OCT_TRY(read_sizes(c, V, "kv_num_heads", &v, err));
    if (past.rank >= 0 && past.rank != 4)
        return oct_fail(err, OCT_EMALFORMED, "past keys have %d dimensions, expected 4", past.rank);
    if (x.rank < 0)
        return OCT_OK;
    const oct_dim before = oct_in_value(c, PAST_K) == NULL ? oct_dim_of(0)
                           : past.rank == 4                ? past.d[2]
                                                           : (oct_dim){ -1, NULL };
    const oct_dim total = oct_dim_add(before, first_known(k.length, v.length));
    const oct_dim y3[] = { q.batch, q.length, oct_dim_mul(q.heads, v.depth) },
                  y4[] = { q.batch, q.heads, q.length, v.depth };
    OCT_TRY(x.rank == 3 ? oct_out_shape(c, 0, 3, y3, err) : oct_out_shape(c, 0, 4, y4, err));
    OCT_TRY(oct_out_shape(c, 1, 4, (oct_dim[]){ k.batch, k.heads, total, k.depth }, err));
    OCT_TRY(oct_out_shape(c, 2, 4, (oct_dim[]){ v.batch, v.heads, total, v.depth }, err));
    return oct_out_shape(c, 3, 4, (oct_dim[]){ q.batch, q.heads, q.length, total }, err);
}

/* ------------------------------------------------------------------ preparing */

typedef struct attention {
    oct_attn a;
    oct_heads q, k, v, past_k, past_v; /* without data */
    bool joins;                        /* keys and values are joined with the past, or shown */
    size_t offset_at, k_at, v_at;      /* in scratch, behind what the products need */
} attention;

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

static const oct_operand *output(const oct_step *s, int slot)
{
    return slot < s->n_out ? s->out[slot] : NULL;
}

static oct_status read_heads(const oct_step *s, attention *t, oct_err *err)
{
    int64_t q_heads = oct_node_int(s->node, "q_num_heads", 0), kv_heads = oct_node_int(s->node, "kv_num_heads", 0);
    OCT_TRY(oct_heads_read(s->in[Q], q_heads, &t->q, err));
    OCT_TRY(oct_heads_read(s->in[K], kv_heads, &t->k, err));
    OCT_TRY(oct_heads_read(s->in[V], kv_heads, &t->v, err));
    if ((input(s, PAST_K) != NULL) != (input(s, PAST_V) != NULL))
        return oct_fail(err, OCT_EMALFORMED, "past keys without past values, or the reverse");
    if (input(s, PAST_K) != NULL) {
        if (input(s, PAST_K)->rank != 4 || input(s, PAST_V)->rank != 4)
            return oct_fail(err, OCT_EMALFORMED, "past keys and values have 4 dimensions");
        OCT_TRY(oct_heads_read(s->in[PAST_K], 0, &t->past_k, err));
        OCT_TRY(oct_heads_read(s->in[PAST_V], 0, &t->past_v, err));
    } else {
        t->past_k = (oct_heads){ t->k.batch, t->k.heads, 0, t->k.depth, { 0 } };
        t->past_v = (oct_heads){ t->v.batch, t->v.heads, 0, t->v.depth, { 0 } };
    }
    return OCT_OK;
}

static bool fits(const oct_heads *a, const oct_heads *b)
{
    return a->batch == b->batch && a->heads == b->heads && a->depth == b->depth;
}

static oct_status check_heads(const attention *t, oct_err *err)
{
    const oct_heads *q = &t->q, *k = &t->k, *v = &t->v;
    if (q->batch != k->batch || k->batch != v->batch || k->heads != v->heads || k->length != v->length ||
        q->depth != k->depth)
        return oct_fail(err, OCT_EMALFORMED,
                        "keys are %lld x %lld x %lld x %lld and values %lld x %lld x %lld x %lld for queries "
                        "%lld x %lld x %lld x %lld",
                        (long long)k->batch, (long long)k->heads, (long long)k->length, (long long)k->depth,
                        (long long)v->batch, (long long)v->heads, (long long)v->length, (long long)v->depth,
                        (long long)q->batch, (long long)q->heads, (long long)q->length, (long long)q->depth);
    if (k->heads < 1 || q->heads % k->heads != 0)
        return oct_fail(err, OCT_EMALFORMED, "%lld heads of queries, %lld of keys", (long long)q->heads,
                        (long long)k->heads);
    if (!fits(&t->past_k, k) || !fits(&t->past_v, v) || t->past_k.length != t->past_v.length)
        return oct_fail(err, OCT_EMALFORMED, "past keys and values do not fit the new ones");
    return OCT_OK;
}

static oct_status check_mask(const oct_operand *m, const attention *t, oct_err *err)
{
    const int64_t want[4] = { t->q.batch, t->q.heads, t->q.length, t->past_k.length + t->k.length };
    bool ok = m->rank >= 1 && m->rank <= 4 && oct_dom_of(m->dtype) != OCT_DOM_NONE && m->dims[m->rank - 1] <= want[3];
    for (int i = 0; ok && i < m->rank - 1; i++)
        ok = m->dims[i] == 1 || m->dims[i] == want[4 - m->rank + i];
    return ok ? OCT_OK
              : oct_fail(err, OCT_EMALFORMED, "the mask does not broadcast to %lld x %lld x %lld x %lld",
                         (long long)want[0], (long long)want[1], (long long)want[2], (long long)want[3]);
}

static oct_status check_types(const oct_step *s, oct_err *err)
{
    oct_dtype t = s->in[Q]->dtype;
    const oct_operand *n = input(s, VALID);
    if (t != OCT_F32 && t != OCT_F64)
        return oct_fail(err, OCT_EUNSUPPORTED, "attention of %s", oct_dtype_name(t));
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] != NULL && i != MASK && i != VALID && s->in[i]->dtype != t)
            return oct_fail(err, OCT_EUNSUPPORTED, "attention of %s and %s", oct_dtype_name(t),
                            oct_dtype_name(s->in[i]->dtype));
    if (n != NULL && (n->dtype != OCT_S64 || n->count != s->in[Q]->dims[0] || input(s, PAST_K) != NULL))
        return oct_fail(err, OCT_EMALFORMED,
                        "numbers of valid keys: not one int64 for each sample, or together with past keys");
    return OCT_OK;
}

static oct_status attention_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    attention *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(check_types(s, err));
    OCT_TRY(read_heads(s, t, err));
    OCT_TRY(check_heads(t, err));
    if (input(s, MASK) != NULL)
        OCT_TRY(check_mask(s->in[MASK], t, err));
    int64_t mode = oct_node_int(s->node, "qk_matmul_output_mode", 0);
    if (mode < OCT_ATTN_SCALED || mode > OCT_ATTN_WEIGHTS || oct_node_int(s->node, "left_window_size", -1) < -1 ||
        oct_node_int(s->node, "right_window_size", -1) < -1)
        return oct_fail(err, OCT_EMALFORMED, "an attribute is outside of its range");
    t->joins = input(s, PAST_K) != NULL;
    t->a = (oct_attn){ .type = s->in[Q]->dtype,
                       .batch = t->q.batch,
                       .heads = t->q.heads,
                       .kv_heads = t->k.heads,
                       .rows = t->q.length,
                       .keys = t->past_k.length + t->k.length,
                       .depth = t->q.depth,
                       .depth_v = t->v.depth };
    OCT_TRY(oct_attn_prepare(&t->a, p->threads, &s->scratch, err));
    const size_t elem = oct_elem_size(t->a.type);
    int64_t keys;
    if (!oct_count((const int64_t[]){ t->a.batch, t->a.kv_heads, t->a.keys }, 3, &keys) ||
        !oct_attn_scratch(&s->scratch, t->a.batch, 1, sizeof(int64_t), &t->offset_at) ||
        !oct_attn_scratch(&s->scratch, t->joins ? keys : 0, t->a.depth, elem, &t->k_at) ||
        !oct_attn_scratch(&s->scratch, t->joins ? keys : 0, t->a.depth_v, elem, &t->v_at))
        return oct_nomem(err);
    return OCT_OK;
}

/* ------------------------------------------------------------------ running */

/* Keys (or values) as the products read them: those given, or joined with the past in the output or in scratch. */
static oct_attn_part joined(const attention *t, const oct_step *s, const oct_run *r, int slot, int past_slot,
                            int out_slot, size_t at)
{
    const oct_operand *out = output(s, out_slot);
    oct_heads fresh = slot == K ? t->k : t->v, past = slot == K ? t->past_k : t->past_v;
    fresh.part.data = s->in[slot]->data;
    if (!t->joins && out == NULL)
        return fresh.part;
    void *to = out != NULL ? out->data : (char *)r->scratch + at;
    if (t->joins)
        past.part.data = s->in[past_slot]->data;
    oct_heads_join(r->pool, t->a.type, t->joins ? &past : NULL, &fresh, to);
    const int64_t step = t->a.keys * fresh.depth;
    return (oct_attn_part){ to, fresh.heads * step, step, fresh.depth };
}

/* The key at row 0 of each sample. */
static oct_status read_offsets(const attention *t, const oct_operand *valid, int64_t *offset, oct_err *err)
{
    for (int64_t b = 0; b < t->a.batch; b++) {
        int64_t n = valid != NULL ? ((const int64_t *)valid->data)[b] : 0;
        if (n < 0 || n > t->a.keys)
            return oct_fail(err, OCT_EMALFORMED, "%lld valid keys of %lld", (long long)n, (long long)t->a.keys);
        offset[b] = valid != NULL ? n - t->a.rows : t->past_k.length;
    }
    return OCT_OK;
}

static int64_t window_of(const oct_node *n, const char *name)
{
    int64_t v = oct_node_int(n, name, -1);
    return v > INT32_MAX ? INT32_MAX : v;
}

static oct_status attention_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const attention *t = s->state;
    const oct_operand *valid = input(s, VALID), *scores = output(s, 3);
    const oct_node *n = s->node;
    int64_t *offset = (int64_t *)(void *)((char *)r->scratch + t->offset_at);
    oct_heads y;
    oct_attn_io io = {
        .q = t->q.part, .mask = { input(s, MASK), NULL }, .masked = -(double)INFINITY, .offset = offset
    };
    io.q.data = s->in[Q]->data;
    io.k = joined(t, s, r, K, PAST_K, 1, t->k_at);
    io.v = joined(t, s, r, V, PAST_V, 2, t->v_at);
    OCT_TRY(oct_heads_read(s->out[0], t->q.heads, &y, err));
    io.y = y.part;
    if (scores != NULL) {
        OCT_TRY(oct_heads_read(scores, t->q.heads, &y, err));
        io.scores = y.part;
        io.stage = (oct_attn_stage)oct_node_int(n, "qk_matmul_output_mode", 0);
    }
    if (s->out[0]->count == 0 && (scores == NULL || scores->count == 0))
        return OCT_OK;
    OCT_TRY(read_offsets(t, valid, offset, err));
    io.valid = valid != NULL ? valid->data : NULL;
    io.softcap = (double)oct_node_float(n, "softcap", 0.0f);
    io.scale =
        oct_node_attr(n, "scale") != NULL ? (double)oct_node_float(n, "scale", 1.0f) : 1.0 / sqrt((double)t->a.depth);
    io.left = window_of(n, "left_window_size");
    io.right = window_of(n, "right_window_size");
    if (oct_node_int(n, "is_causal", 0) != 0)
        io.right = 0;
    oct_attn_run(&t->a, r->pool, &io, r->scratch);
    return OCT_OK;
}

const oct_op oct_op_attention = {
    OCT_SCHEMA("Attention", "", 23, 3, 7, 1, 4),
    .work = OCT_WORK_PAIRS,
    .infer = attention_infer,
    .prepare = attention_prepare,
    .run = attention_run,
    .widens = true,
};
