/* lib/ops/attention/op_linear_attention.c -- recurrent forms of attention that carry a state: LinearAttention,
 * CausalConvWithState. */
#include "kernels/math.h"
#include "kernels/unary.h"
#include "ops/core/args.h"

#include <math.h>
#include <string.h>

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

/* ------------------------------------------------------------------ LinearAttention */

enum { Q, K, V, PAST, DECAY, BETA };

static oct_dim divided(oct_dim d, int64_t by)
{
    return d.n >= 0 && by > 0 ? oct_dim_of(d.n / by) : (oct_dim){ -1, NULL };
}

static oct_status linear_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    oct_shape q = oct_in_shape(c, Q), k = oct_in_shape(c, K), v = oct_in_shape(c, V);
    int64_t heads = oct_node_int(n, "q_num_heads", 0), kv_heads = oct_node_int(n, "kv_num_heads", 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, Q));
    oct_out_dtype(c, 1, oct_in_value(c, PAST) != NULL ? oct_in_dtype(c, PAST) : oct_in_dtype(c, Q));
    if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
        return oct_fail(err, OCT_EMALFORMED, "%lld heads of queries, %lld of keys", (long long)heads,
                        (long long)kv_heads);
    if (q.rank < 0 || k.rank < 0 || v.rank < 0)
        return OCT_OK;
    if (q.rank != 3 || k.rank != 3 || v.rank != 3)
        return oct_fail(err, OCT_EMALFORMED, "queries, keys and values have %d, %d and %d dimensions, expected 3",
                        q.rank, k.rank, v.rank);
    const oct_dim depth = divided(k.d[2], kv_heads), depth_v = divided(v.d[2], kv_heads);
    const oct_dim y[] = { q.d[0], q.d[1], depth_v.n >= 0 ? oct_dim_mul(depth_v, oct_dim_of(heads)) : depth_v };
    OCT_TRY(oct_out_shape(c, 0, 3, y, err));
    return oct_out_shape(c, 1, 4, (oct_dim[]){ q.d[0], oct_dim_of(kv_heads), depth, depth_v }, err);
}

typedef struct linear {
    int64_t batch, steps, heads, kv_heads, depth, depth_v;
    int64_t decay_width, beta_width; /* values a head, 0: absent; of beta 1 for all heads if beta_shared */
    bool beta_shared;
    float scale;
    const float *q, *k, *v, *decay, *beta;
    float *y, *state, *rest; /* rest: f32[batch * kv_heads][depth_v] */
} linear;

static oct_status linear_read(const oct_step *s, linear *l, oct_err *err)
{
    const oct_operand *q = s->in[Q], *k = s->in[K], *v = s->in[V], *past = input(s, PAST), *g = input(s, DECAY),
                      *b = input(s, BETA);
    const char *rule = oct_node_str(s->node, "update_rule", "gated_delta");
    const bool gated = strncmp(rule, "gated", 5) == 0, delta = strstr(rule, "delta") != NULL;
    if (strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0 && strcmp(rule, "delta") != 0 &&
        strcmp(rule, "gated_delta") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'update_rule' is '%s'", rule);
    *l = (linear){ .batch = q->dims[0],
                   .steps = q->dims[1],
                   .heads = oct_node_int(s->node, "q_num_heads", 1),
                   .kv_heads = oct_node_int(s->node, "kv_num_heads", 1) };
    if (q->count == 0 || k->count == 0 || v->count == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "empty queries, keys or values");
    l->depth = k->dims[2] / l->kv_heads;
    l->depth_v = v->dims[2] / l->kv_heads;
    const int64_t tokens = k->dims[0] * k->dims[1];
    if (!oct_count((const int64_t[]){ l->batch, l->kv_heads, l->depth, l->depth_v, sizeof(float) }, 5, &(int64_t){ 0 }))
        return oct_nomem(err);
    bool ok = k->dims[0] == l->batch && v->dims[0] == l->batch && k->dims[1] == l->steps && v->dims[1] == l->steps &&
              k->dims[2] == l->depth * l->kv_heads && v->dims[2] == l->depth_v * l->kv_heads &&
              q->dims[2] == l->depth * l->heads &&
              (past == NULL || past->count == l->batch * l->kv_heads * l->depth * l->depth_v);
    if (!ok)
        return oct_fail(err, OCT_EMALFORMED, "queries, keys, values and state do not fit each other");
    if ((gated && g == NULL) || (delta && b == NULL))
        return oct_fail(err, OCT_EMALFORMED, "update rule '%s' without decay or beta", rule);
    if (gated)
        l->decay_width = g->count == tokens * l->kv_heads ? 1 : l->depth;
    if (delta)
        l->beta_width = 1;
    l->beta_shared = delta && b->count == tokens;
    if ((gated && g->count != tokens * l->kv_heads * l->decay_width) ||
        (delta && !l->beta_shared && b->count != tokens * l->kv_heads))
        return oct_fail(err, OCT_EMALFORMED, "decay or beta do not fit %lld heads", (long long)l->kv_heads);
    l->scale = oct_node_float(s->node, "scale", 0.0f);
    if (l->scale == 0.0f)
        l->scale = (float)(1.0 / sqrt((double)l->depth));
    return OCT_OK;
}

static oct_status linear_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    linear *l = oct_arena_calloc(p->arena, 1, sizeof *l);
    if (l == NULL)
        return oct_nomem(err);
    s->state = l;
    OCT_TRY(oct_step_types(s, OCT_F32, 0, err));
    OCT_TRY(linear_read(s, l, err));
    size_t state = (size_t)(l->batch * l->kv_heads * l->depth * l->depth_v),
           rest = (size_t)(l->batch * l->kv_heads * l->depth_v);
    s->scratch = (rest + (s->n_out > 1 && s->out[1] != NULL ? 0 : state)) * sizeof(float);
    return OCT_OK;
}

/* One step of one head of keys. S is f32[depth][depth_v]. */
static void update(const linear *l, int64_t token, int64_t h, float *S, float *rest)
{
    const int64_t at = token * l->kv_heads + h;
    const float *k = l->k + at * l->depth, *v = l->v + at * l->depth_v;
    const float *g = l->decay != NULL ? l->decay + at * l->decay_width : NULL;
    const float beta = l->beta == NULL ? 1.0f : l->beta[l->beta_shared ? token : at];
    for (int64_t i = 0; i < l->depth; i++) {
        const float keep = g == NULL ? 1.0f : oct_expf(g[l->decay_width == 1 ? 0 : i]);
        for (int64_t j = 0; g != NULL && j < l->depth_v; j++)
            S[i * l->depth_v + j] *= keep;
    }
    for (int64_t j = 0; j < l->depth_v; j++)
        rest[j] = 0.0f;
    for (int64_t i = 0; l->beta != NULL && i < l->depth; i++) /* what the state already says of this key */
        for (int64_t j = 0; j < l->depth_v; j++)
            rest[j] += k[i] * S[i * l->depth_v + j];
    for (int64_t j = 0; j < l->depth_v; j++)
        rest[j] = beta * (v[j] - rest[j]);
    for (int64_t i = 0; i < l->depth; i++)
        for (int64_t j = 0; j < l->depth_v; j++)
            S[i * l->depth_v + j] += k[i] * rest[j];
}

static void answer(const linear *l, int64_t token, int64_t h, const float *S)
{
    const float *q = l->q + (token * l->heads + h) * l->depth;
    float *y = l->y + (token * l->heads + h) * l->depth_v;
    for (int64_t j = 0; j < l->depth_v; j++)
        y[j] = 0.0f;
    for (int64_t i = 0; i < l->depth; i++)
        for (int64_t j = 0; j < l->depth_v; j++)
            y[j] += q[i] * S[i * l->depth_v + j];
    for (int64_t j = 0; j < l->depth_v; j++)
        y[j] *= l->scale;
}

static void sequences(void *arg, size_t begin, size_t end, size_t thread)
{
    const linear *l = arg;
    const int64_t group = l->heads / l->kv_heads;
    for (size_t item = begin; item < end; item++) {
        const int64_t b = (int64_t)item / l->kv_heads, h = (int64_t)item % l->kv_heads;
        float *S = l->state + (int64_t)item * l->depth * l->depth_v;
        for (int64_t t = 0; t < l->steps; t++) {
            update(l, b * l->steps + t, h, S, l->rest + (int64_t)item * l->depth_v);
            for (int64_t k = 0; k < group; k++)
                answer(l, b * l->steps + t, h * group + k, S);
        }
    }
}

static oct_status linear_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    linear l = *(const linear *)s->state;
    const oct_operand *past = input(s, PAST);
    const size_t state = (size_t)(l.batch * l.kv_heads * l.depth * l.depth_v);
    l.q = s->in[Q]->data;
    l.k = s->in[K]->data;
    l.v = s->in[V]->data;
    l.decay = l.decay_width != 0 ? s->in[DECAY]->data : NULL;
    l.beta = l.beta_width != 0 ? s->in[BETA]->data : NULL;
    l.y = s->out[0]->data;
    l.rest = r->scratch;
    l.state = s->n_out > 1 && s->out[1] != NULL ? s->out[1]->data : l.rest + l.batch * l.kv_heads * l.depth_v;
    if (past != NULL)
        memcpy(l.state, past->data, state * sizeof(float));
    else
        memset(l.state, 0, state * sizeof(float));
    oct_pool_for(r->pool, (size_t)(l.batch * l.kv_heads), 1, sequences, &l);
    return OCT_OK;
}

const oct_op oct_op_linear_attention = {
    OCT_SCHEMA("LinearAttention", "", 27, 3, 6, 1, 2),
    .work = OCT_WORK_PAIRS,
    .infer = linear_infer,
    .prepare = linear_prepare,
    .run = linear_run,
    .widens = true,
};

/* ------------------------------------------------------------------ CausalConvWithState */

static oct_status causal_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), w = oct_in_shape(c, 1);
    OCT_TRY(oct_out_like(c, 0, 0, err));
    oct_out_dtype(c, 1, oct_in_dtype(c, 0));
    if (x.rank < 0 || w.rank < 0)
        return OCT_OK;
    if (x.rank != 3 || w.rank != 3 || (w.d[1].n >= 0 && w.d[1].n != 1) || w.d[2].n == 0 ||
        (x.d[1].n >= 0 && w.d[0].n >= 0 && x.d[1].n != w.d[0].n))
        return oct_fail(err, OCT_EMALFORMED, "the weights are not one filter for each channel of a 3-D input");
    const oct_dim carried = w.d[2].n >= 0 ? oct_dim_of(w.d[2].n - 1) : (oct_dim){ -1, NULL };
    return oct_out_shape(c, 1, 3, (oct_dim[]){ x.d[0], x.d[1], carried }, err);
}

typedef struct causal {
    int64_t channels, length, taps;
    bool swish;
    const float *x, *w, *bias, *past;
    float *y, *present;
} causal;

static oct_status causal_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0], *w = s->in[1], *bias = input(s, 2), *past = input(s, 3);
    const char *f = oct_node_str(s->node, "activation", "none");
    causal *c = oct_arena_calloc(p->arena, 1, sizeof *c);
    if (c == NULL)
        return oct_nomem(err);
    s->state = c;
    OCT_TRY(oct_step_types(s, OCT_F32, 0, err));
    *c = (causal){ .channels = x->dims[1], .length = x->dims[2], .taps = w->dims[2] };
    c->swish = strcmp(f, "silu") == 0 || strcmp(f, "swish") == 0;
    if (!c->swish && strcmp(f, "none") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'activation' is '%s'", f);
    if ((bias != NULL && bias->count != c->channels) ||
        (past != NULL && (past->rank != 3 || past->dims[0] != x->dims[0] || past->dims[1] != c->channels ||
                          past->dims[2] != c->taps - 1)))
        return oct_fail(err, OCT_EMALFORMED, "bias or past state do not fit %lld channels and %lld taps",
                        (long long)c->channels, (long long)c->taps);
    return OCT_OK;
}

/* Position i of the past state followed by the input. */
static float value_at(const causal *c, const float *past, const float *x, int64_t i)
{
    return i >= c->taps - 1 ? x[i - (c->taps - 1)] : past != NULL ? past[i] : 0.0f;
}

static void channels(void *arg, size_t begin, size_t end, size_t thread)
{
    const causal *c = arg;
    for (size_t item = begin; item < end; item++) {
        const int64_t at = (int64_t)item, channel = at % c->channels, carried = c->taps - 1;
        const float *x = c->x + at * c->length, *w = c->w + channel * c->taps,
                    *past = c->past != NULL ? c->past + at * carried : NULL;
        float *y = c->y + at * c->length;
        for (int64_t i = 0; i < c->length; i++) {
            float sum = c->bias != NULL ? c->bias[channel] : 0.0f;
            for (int64_t k = 0; k < c->taps; k++)
                sum += value_at(c, past, x, i + k) * w[k];
            y[i] = c->swish ? sum * oct_sigmoidf(sum) : sum;
        }
        for (int64_t i = 0; c->present != NULL && i < carried; i++)
            c->present[at * carried + i] = value_at(c, past, x, c->length + i);
    }
}

static oct_status causal_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    causal c = *(const causal *)s->state;
    const oct_operand *x = s->in[0];
    c.x = x->data;
    c.w = s->in[1]->data;
    c.bias = input(s, 2) != NULL ? s->in[2]->data : NULL;
    c.past = input(s, 3) != NULL ? s->in[3]->data : NULL;
    c.y = s->out[0]->data;
    c.present = s->n_out > 1 && s->out[1] != NULL ? s->out[1]->data : NULL;
    if (x->count > 0 || (c.present != NULL && s->out[1]->count > 0))
        oct_pool_for(r->pool, (size_t)(x->dims[0] * c.channels), 16, channels, &c);
    return OCT_OK;
}

const oct_op oct_op_causal_conv = {
    OCT_SCHEMA("CausalConvWithState", "", 27, 2, 4, 1, 2),
    .work = OCT_WORK_PAIRS,
    .infer = causal_infer,
    .prepare = causal_prepare,
    .run = causal_run,
    .widens = true,
};
