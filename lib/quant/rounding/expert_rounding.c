/* The second layer of an expert is rounded on what its activation makes of the first one's float outputs. An expert
 * that computes none of the tokens keeps what it has. */
#include "quant/rounding/expert_rounding.h"

#include "base/pool.h"
#include "base/stop.h"
#include "eval/metrics/summary.h"
#include "eval/pairs/pairs.h"
#include "ops/core/small.h"
#include "ops/nn/moe.h"
#include "passes/match.h"
#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/rounding/block_inputs.h"
#include "quant/rounding/ldlq_int.h"
#include "quant/weights/constants.h"

#include <string.h>

enum { IN_X, IN_ROUTER, IN_FC1, IN_BIAS1, IN_FC2, LAYERS = 2, MOST_DEPTH = 16384 };

/* A node that is being rounded. */
typedef struct mixture {
    const oct_tensor *w[LAYERS]; /* [experts][outputs][inputs] */
    const float *bias;           /* of the first layer, or NULL */
    oct_moe_rule rule;
    oct_quant *to[LAYERS];
    oct_block_input in[2]; /* tokens, and the router's scores */
    int32_t *chosen;       /* [OCT_BLOCK_ROWS][k]; -1: there is no token */
} mixture;

static bool takes_blocks(const oct_tensor *w, const oct_quant *q)
{
    return w && w->rank == 3 && q->block && q->axis == 2 && w->dims[2] % 2 == 0 && w->dims[2] > 1 &&
           w->dims[2] <= MOST_DEPTH && (q->dtype == OCT_U4 || q->dtype == OCT_S4);
}

static bool describe(const oct_qjob *j, int id, mixture *m)
{
    const oct_node *n = &j->g->node[id];
    const oct_op *op = oct_op_of(j->g, id);
    const qstored *s = id < (int)j->n_nodes ? j->constants[id].stored : NULL;
    if (!op || !op->experts || !s || oct_scheme_of(j, id) != OCT_SCHEME_STORED)
        return false;
    *m = (mixture){ .w = { oct_graph_floats(j->g, oct_input_at(n, IN_FC1)),
                           oct_graph_floats(j->g, oct_input_at(n, IN_FC2)) } };
    if (!takes_blocks(m->w[0], &s->quant[0]) || !takes_blocks(m->w[1], &s->quant[1]) || s->quant[2].n ||
        oct_moe_read(n, (size_t)m->w[0]->dims[0], &m->rule, NULL) != OCT_OK)
        return false;
    const int64_t *a = m->w[0]->dims, *b = m->w[1]->dims, wide = m->rule.function == OCT_MOE_SWIGLU ? 2 : 1;
    const oct_tensor *bias = oct_graph_floats(j->g, oct_input_at(n, IN_BIAS1));
    const bool no_bias = oct_input_at(n, IN_BIAS1) < 0;
    m->bias = bias && bias->count == a[0] * a[1] ? bias->data : NULL;
    return b[0] == a[0] && b[1] == a[2] && a[1] == wide * b[2] && (no_bias || m->bias) && oct_input_at(n, IN_X) >= 0 &&
           oct_input_at(n, IN_ROUTER) >= 0;
}

bool oct_has_expert_blocks(const oct_qjob *j)
{
    bool any = false;
    mixture m;
    for (size_t i = 0; i < j->g->n_order && !any; i++)
        any = describe(j, j->g->order[i], &m);
    for (size_t i = 0; i < j->n_body && !any; i++)
        any = oct_has_expert_blocks(j->body[i].job);
    return any;
}

/* ---- an expert ---- */

/* Puts the rounded values [k][n] of a matrix where those of its expert are. */
static void put_qvals(const oct_quant *q, size_t expert, size_t k, size_t n, const uint8_t *qvals)
{
    const int middle = q->dtype == OCT_S4 ? 8 : 0;
    for (size_t o = 0; o < n; o++)
        for (size_t i = 0; i < k; i++)
            oct_small_set_int(q->dtype, (void *)(uintptr_t)q->qvals->data, (int64_t)((expert * n + o) * k + i),
                              qvals[i * n + o] - middle);
}

/* Rounds one matrix, whose weights l has, on x[k][rows]. */
static oct_status round_matrix(oct_ldlq *l, const mixture *m, size_t layer, size_t expert, const float *x)
{
    const size_t n = (size_t)m->w[layer]->dims[1], k = (size_t)m->w[layer]->dims[2];
    const oct_quant *q = m->to[layer];
    const size_t blocks = (k + (size_t)q->block - 1) / (size_t)q->block, at = expert * n * blocks;
    const oct_ldlq_blocks b = { .scale = q->scale + at,
                                .zero = q->dtype == OCT_U4 ? q->zp + at : NULL,
                                .block = (size_t)q->block,
                                .blocks = blocks,
                                .top = 15,
                                .middle = 8 };
    double *noise = oct_calloc(n, sizeof *noise);
    bool seen = false;
    oct_ldlq_inputs(l, x);
    oct_status s = noise ? oct_ldlq_begin(l, NULL, &seen) : OCT_ENOMEM;
    if (s == OCT_OK && seen)
        s = oct_ldlq_round_blocks(l, &b, noise);
    if (s == OCT_OK && seen)
        put_qvals(q, expert, k, n, (const uint8_t *)oct_ldlq_qvals(l));
    oct_free(noise);
    return s;
}

static void take_weights(const mixture *m, size_t layer, size_t expert, float *to)
{
    const size_t n = (size_t)m->w[layer]->dims[1], k = (size_t)m->w[layer]->dims[2];
    const float *w = (const float *)m->w[layer]->data + expert * n * k;
    for (size_t o = 0; o < n; o++)
        for (size_t i = 0; i < k; i++)
            to[i * n + o] = w[o * k + i];
}

/* The inputs of the tokens that an expert computes, as x[depth][rows]. */
static void take_tokens(const mixture *m, size_t expert, size_t rows, float *x)
{
    const size_t d = (size_t)m->w[0]->dims[2], k = m->rule.k;
    size_t to = 0;
    for (size_t c = 0; c < OCT_BLOCK_ROWS * k; c++)
        if (m->chosen[c] == (int32_t)expert) {
            for (size_t i = 0; i < d; i++)
                x[i * rows + to] = m->in[IN_X].x[0][i * OCT_BLOCK_ROWS + c / k];
            to++;
        }
}

/* What the second layer gets for x[depth][rows]: f[inputs][rows]. w: the first layer's weights [depth][outputs]. */
static oct_status run_first(const mixture *m, size_t expert, size_t rows, const float *x, const float *w, float *f)
{
    const size_t d = (size_t)m->w[0]->dims[2], n = (size_t)m->w[0]->dims[1], width = (size_t)m->w[1]->dims[2];
    float *turned = oct_calloc(rows * d, sizeof *turned), *h = oct_calloc(rows * n, sizeof *h),
          *made = oct_calloc(rows * width, sizeof *made);
    oct_status s = turned && h && made ? OCT_OK : OCT_ENOMEM;
    for (size_t r = 0; s == OCT_OK && r < rows; r++)
        for (size_t i = 0; i < d; i++)
            turned[r * d + i] = x[i * rows + r];
    if (s == OCT_OK)
        s = oct_ldlq_multiply(rows, n, d, turned, d, w, n, h);
    for (size_t i = 0; s == OCT_OK && m->bias && i < rows * n; i++)
        h[i] += m->bias[expert * n + i % n];
    if (s == OCT_OK)
        oct_moe_activate(&m->rule, NULL, h, made, rows, width);
    for (size_t r = 0; s == OCT_OK && r < rows; r++)
        for (size_t i = 0; i < width; i++)
            f[i * rows + r] = made[r * width + i];
    oct_free(turned);
    oct_free(h);
    oct_free(made);
    return s;
}

static oct_status round_expert(void *arg, size_t expert, size_t thread, oct_err *err)
{
    const mixture *m = arg;
    size_t rows = 0;
    for (size_t c = 0; c < OCT_BLOCK_ROWS * m->rule.k; c++)
        rows += m->chosen[c] == (int32_t)expert;
    if (rows == 0)
        return OCT_OK;
    const size_t d = (size_t)m->w[0]->dims[2], width = (size_t)m->w[1]->dims[2];
    float *x = oct_calloc(rows * d, sizeof *x), *f = oct_calloc(rows * width, sizeof *f);
    oct_ldlq *l[LAYERS] = { oct_ldlq_create(d, (size_t)m->w[0]->dims[1], rows),
                            oct_ldlq_create(width, (size_t)m->w[1]->dims[1], rows) };
    oct_status s = x && f && l[0] && l[1] ? OCT_OK : OCT_ENOMEM;
    for (size_t k = 0; s == OCT_OK && k < LAYERS; k++)
        take_weights(m, k, expert, oct_ldlq_weights(l[k]));
    if (s == OCT_OK) {
        take_tokens(m, expert, rows, x);
        s = run_first(m, expert, rows, x, oct_ldlq_weights(l[0]), f);
    }
    for (size_t k = 0; s == OCT_OK && k < LAYERS; k++)
        s = round_matrix(l[k], m, k, expert, k ? f : x);
    for (size_t k = 0; k < LAYERS; k++)
        oct_ldlq_destroy(l[k]);
    oct_free(x);
    oct_free(f);
    return s == OCT_ENOMEM ? oct_nomem(err) : s;
}

/* ---- a mixture ---- */

/* Rows without a token are zeros, and so are the scores of a branch that a sample does not take. */
static bool is_token(const mixture *m, size_t row)
{
    bool any[2] = { false };
    for (size_t k = 0; k < 2; k++)
        for (int64_t i = 0; i < m->in[k].depth && !any[k]; i++)
            any[k] = m->in[k].x[0][(size_t)i * OCT_BLOCK_ROWS + row] != 0;
    return any[IN_X] && any[IN_ROUTER];
}

static oct_status choose(mixture *m, oct_err *err)
{
    const size_t k = m->rule.k, n = m->rule.experts;
    float *score = oct_calloc(n, sizeof *score);
    m->chosen = oct_calloc(OCT_BLOCK_ROWS * k, sizeof *m->chosen);
    for (size_t r = 0; score && m->chosen && r < OCT_BLOCK_ROWS; r++) {
        for (size_t e = 0; e < n; e++)
            score[e] = m->in[IN_ROUTER].x[0][e * OCT_BLOCK_ROWS + r];
        if (is_token(m, r))
            oct_moe_best(&m->rule, score, m->chosen + r * k);
        else
            memset(m->chosen + r * k, 0xff, k * sizeof *m->chosen);
    }
    oct_free(score);
    return score && m->chosen ? OCT_OK : oct_nomem(err);
}

/* SQNR of the rounding in dB, over both matrices. */
static double sqnr_of(const mixture *m)
{
    double signal = 0, noise = 0;
    for (size_t k = 0; k < LAYERS; k++) {
        const oct_quant *q = m->to[k];
        const int64_t depth = m->w[k]->dims[2], blocks = (depth + q->block - 1) / q->block;
        const float *w = m->w[k]->data;
        for (int64_t i = 0; i < m->w[k]->count; i++) {
            const int64_t b = i / depth * blocks + i % depth / q->block;
            const double whole = (double)oct_small_get(q->dtype, q->qvals->data, i),
                         d = (double)w[i] - (double)q->scale[b] * (whole - q->zp[b]);
            signal += (double)w[i] * (double)w[i];
            noise += d * d;
        }
    }
    return oct_decibels(signal, noise);
}

/* A copy of what is stored, to be rounded again. */
static oct_status copy_stored(oct_qjob *j, int id, mixture *m, qstored **to, oct_err *err)
{
    if (!(*to = oct_arena_memdup(j->arena, j->constants[id].stored, sizeof **to)))
        return oct_nomem(err);
    for (size_t k = 0; k < LAYERS; k++) {
        oct_quant *q = m->to[k] = &(*to)->quant[k];
        const oct_tensor *had = q->qvals;
        oct_tensor *qvals;
        OCT_TRY(oct_tensor_new(j->lasting, had->dtype, had->rank, had->dims, &qvals, err));
        memcpy((void *)(uintptr_t)qvals->data, had->data, had->bytes);
        q->qvals = qvals;
    }
    return OCT_OK;
}

/* A node, and the indices of the names of its tokens and scores. */
typedef struct site {
    oct_qjob *j;
    int node;
    size_t name[2];
} site;

static oct_status round_mixture(oct_block_inputs *b, oct_pool *pool, const site *at, mixture *m, oct_err *err)
{
    const int64_t depth[] = { m->w[0]->dims[2], m->w[0]->dims[0] };
    qstored *made;
    OCT_TRY(copy_stored(at->j, at->node, m, &made, err));
    for (size_t k = 0; k < 2; k++) {
        m->in[k] = (oct_block_input){ .name = &at->name[k], .n_names = 1, .axis = -1, .depth = depth[k] };
        if (!(m->in[k].x[0] = oct_calloc((size_t)depth[k] * OCT_BLOCK_ROWS, sizeof(float))))
            return oct_nomem(err);
    }
    OCT_TRY(oct_block_inputs_take(b, m->in, 2, err));
    OCT_TRY(choose(m, err));
    OCT_TRY(oct_pool_try(pool, m->rule.experts, round_expert, m, err));
    made->sqnr = sqnr_of(m);
    at->j->constants[at->node].stored = made;
    return OCT_OK;
}

static oct_status round_all(oct_conversion *c, const site *sites, size_t n, oct_block_inputs *b, oct_err *err)
{
    oct_pool *pool = oct_pool_create(c->o.job.threads);
    oct_status s = pool ? OCT_OK : oct_pool_fail(c->o.job.threads, err);
    for (size_t i = 0; i < n && s == OCT_OK; i++) {
        mixture m;
        s = oct_stop_check(err);
        if (s == OCT_OK && describe(sites[i].j, sites[i].node, &m)) {
            s = round_mixture(b, pool, &sites[i], &m, err);
            for (size_t k = 0; k < 2; k++)
                oct_free(m.in[k].x[0]);
            oct_free(m.chosen);
        }
    }
    oct_pool_destroy(pool);
    return s;
}

typedef struct finder {
    oct_arena *arena;
    const oct_graph *whole;
    site *site;
    const char **name;
    size_t n, cap, n_name, cap_name;
} finder;

/* The graph in which a value is made as often as this graph runs: a branch has no inputs, and runs once with what is
 * around it, if at all; a loop's body runs again and again. */
static const oct_graph *frame_of(const oct_graph *g, int v)
{
    for (; g->value[v].outer >= 0; g = g->outer)
        v = g->value[v].outer;
    while (g->outer && !g->n_input)
        g = g->outer;
    return g;
}

/* The positions of tokens and scores correspond if both values are made as often, and nothing else has their names. */
static bool correspond(const finder *f, const oct_graph *g, const oct_node *n)
{
    return frame_of(g, n->in[IN_X]) == frame_of(g, n->in[IN_ROUTER]) &&
           oct_value_location_of(f->whole, oct_value_name(g, n->in[IN_X]), NULL).n <= 1 &&
           oct_value_location_of(f->whole, oct_value_name(g, n->in[IN_ROUTER]), NULL).n <= 1;
}

static oct_status find_name(finder *f, const char *name, size_t *at, oct_err *err)
{
    for (*at = 0; *at < f->n_name && strcmp(f->name[*at], name) != 0;)
        ++*at;
    if (*at < f->n_name)
        return OCT_OK;
    if (!OCT_GROW(f->arena, f->name, f->n_name, f->cap_name))
        return oct_nomem(err);
    f->name[f->n_name++] = name;
    return OCT_OK;
}

static oct_status find_sites(finder *f, oct_qjob *j, oct_err *err)
{
    mixture m;
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        if (!describe(j, id, &m) || !correspond(f, j->g, &j->g->node[id]))
            continue;
        if (!OCT_GROW(f->arena, f->site, f->n, f->cap))
            return oct_nomem(err);
        site *at = &f->site[f->n++];
        *at = (site){ .j = j, .node = id };
        for (int k = 0; k < 2; k++)
            OCT_TRY(find_name(f, oct_value_name(j->g, j->g->node[id].in[k]), &at->name[k], err));
    }
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(find_sites(f, j->body[i].job, err));
    return OCT_OK;
}

oct_status oct_round_experts(oct_conversion *c, oct_err *err)
{
    finder f = { .arena = oct_arena_create(), .whole = c->job->g };
    oct_block_inputs *b = NULL;
    oct_status s = f.arena ? find_sites(&f, c->job, err) : oct_nomem(err);
    if (s == OCT_OK && f.n)
        s = oct_block_inputs_open(c, f.name, f.n_name, &b, err);
    if (s == OCT_OK && f.n)
        s = round_all(c, f.site, f.n, b, err);
    oct_block_inputs_close(b);
    oct_arena_destroy(f.arena);
    return s;
}
