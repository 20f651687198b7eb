/* Finds pairs by weights, and compares the quantized weights with the float ones, for each output channel, whatever
 * their layouts. */
#include "eval/pairs/pairs_int.h"

#include "base/array.h"
#include "kernels/quantize.h"
#include "ops/core/block_matrix.h"
#include "ops/traits.h"

#include <math.h>
#include <string.h>

static const double LEAST_DB = 6,
                    AHEAD_DB = 3; /* dB that a pair must have, and by which it must be better than the next best */

/* Weights as float numbers. */
typedef struct reals {
    const char *name;
    const oct_quant *q; /* NULL: they are float in the model */
    oct_weight_layout lie;
    float *x; /* owned by this structure */
    size_t n;
} reals;

static oct_status decode_blocks(const oct_value *v, const int64_t dims[2], float *x, oct_err *err)
{
    const oct_nbits_form f = oct_blocks_form(v->quant, dims);
    oct_nbits_weights w;
    oct_arena *a = oct_arena_create();
    float *column = oct_calloc(f.k + 1, sizeof *column);
    oct_status s = a && column ? oct_blocks_weights(v->quant, &f, a, &w, err) : oct_nomem(err);
    for (size_t n = 0; n < f.n && s == OCT_OK; n++) {
        oct_nbits_dequantize(&f, &w, n, column);
        for (size_t k = 0; k < f.k; k++)
            x[v->quant->axis == 0 ? k * f.n + n : n * f.k + k] = column[k];
    }
    oct_free(column);
    oct_arena_destroy(a);
    return s;
}

/* The index of the scale of element e. */
static size_t scale_of(const oct_quant *q, const oct_tensor *t, size_t e)
{
    size_t inner = 1;
    for (int d = q->axis + 1; d < t->rank; d++)
        inner *= (size_t)t->dims[d];
    return q->n == 1 ? 0 : e / inner % (size_t)q->n;
}

static oct_status decode(const oct_value *v, const int64_t *dims, reals *r, oct_err *err)
{
    const oct_tensor *t = v->quant ? v->quant->qvals : v->constant;
    if (v->quant && v->quant->block)
        return decode_blocks(v, dims, r->x, err);
    OCT_TRY(oct_array_convert(t->dtype, t->data, OCT_F32, r->x, r->n, err));
    for (size_t e = 0; v->quant && e < r->n; e++) {
        const size_t c = scale_of(v->quant, t, e);
        r->x[e] = (r->x[e] - (float)v->quant->zp[c]) * v->quant->scale[c];
    }
    return OCT_OK;
}

static bool fits_quant(const oct_value *v, int rank, const int64_t *dims, size_t n)
{
    const oct_quant *q = v->quant;
    if (!q)
        return v->constant && v->constant->data &&
               (v->constant->dtype == OCT_F32 || v->constant->dtype == OCT_F16 || v->constant->dtype == OCT_BF16) &&
               (size_t)v->constant->count == n;
    if (!q->qvals || !q->qvals->data || q->n < 1 || !q->scale || !q->zp)
        return false;
    return q->block ? rank == 2
                    : (size_t)q->qvals->count == n &&
                          (q->n == 1 || (q->axis >= 0 && q->axis < rank && dims[q->axis] == q->n));
}

/* The weights of a node. r->x is NULL after an error, and if the node has none that are constant and understood. */
static oct_status take_weights(const oct_graph *g, int node, reals *r, oct_err *err)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    int64_t dims[OCT_MAX_RANK];
    *r = (reals){ 0 };
    const int slot = oct_op_is_layer(op) && op->weights.slots ? __builtin_ctz(op->weights.slots) : -1;
    const oct_value *v = slot >= 0 && slot < n->n_in && n->in[slot] >= 0 ? &g->value[n->in[slot]] : NULL;
    if (!v || !oct_value_has_data(v) || !oct_shape_known(&v->shape, dims))
        return OCT_OK;
    r->n = (size_t)oct_product(dims, v->shape.rank);
    r->q = v->quant;
    r->name = v->name;
    if (!r->n || !fits_quant(v, v->shape.rank, dims, r->n) ||
        !oct_weight_layout_of(op, n, slot, v->shape.rank, dims, &r->lie) || r->lie.groups < 1)
        return OCT_OK;
    if (!(r->x = oct_calloc(r->n, sizeof *r->x)))
        return oct_nomem(err);
    const oct_status s = decode(v, dims, r, err);
    if (s == OCT_OK)
        return OCT_OK;
    oct_free(r->x); /* a form that cannot be decoded counts as not understood */
    r->x = NULL;
    return s == OCT_ENOMEM ? s : OCT_OK;
}

static bool same_layer(const oct_weight_layout *a, const oct_weight_layout *b)
{
    return a->matrices == b->matrices && a->groups == b->groups && a->outs == b->outs && a->ins == b->ins &&
           a->taps == b->taps;
}

/* The error of an output channel of quantized weights, compared with the float ones. */
typedef struct channel_error {
    oct_error error;
    size_t clipped;
} channel_error;

static void compare_channel(const reals *f, const reals *q, int64_t group, int64_t out, int64_t depth, channel_error *e)
{
    int32_t lo = 0, hi = 0;
    const bool ends = q->q && !q->q->block;
    if (ends)
        oct_quant_limits(q->q->dtype, &lo, &hi);
    for (int64_t k = 0; k < depth; k++) {
        const size_t at = (size_t)oct_weight_at(&q->lie, group, out, k);
        const float x = f->x[oct_weight_at(&f->lie, group, out, k)], y = q->x[at];
        oct_error_add(&e->error, &x, &y, 1);
        if (!ends)
            continue;
        const size_t c = scale_of(q->q, q->q->qvals, at);
        const float half = q->q->scale[c] / 2;
        e->clipped += x < (float)(lo - q->q->zp[c]) * q->q->scale[c] - half ||
                      x > (float)(hi - q->q->zp[c]) * q->q->scale[c] + half;
    }
}

static double compare_all(const reals *f, const reals *q, oct_eval_weights *w, oct_eval_channel *channel)
{
    const int64_t groups = f->lie.groups * f->lie.matrices, outs = f->lie.outs / f->lie.groups,
                  depth = f->lie.ins / f->lie.groups * f->lie.taps;
    oct_error all = { 0 };
    size_t clipped = 0;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t o = 0; o < outs; o++) {
            channel_error e = { .clipped = 0 };
            compare_channel(f, q, g, o, depth, &e);
            oct_error_join(&all, &e.error);
            clipped += e.clipped;
            if (!channel)
                continue;
            const size_t first = (size_t)oct_weight_at(&q->lie, g, o, 0);
            channel[g * outs + o] =
                (oct_eval_channel){ .scale = q->q->block ? NAN : q->q->scale[scale_of(q->q, q->q->qvals, first)],
                                    .sqnr_db = oct_error_sqnr(&e.error),
                                    .clipped = q->q->block ? NAN : (double)e.clipped / (double)depth };
        }
    if (w) {
        w->sqnr_db = oct_error_sqnr(&all);
        w->clipped = q->q->block ? NAN : (double)clipped / (double)f->n;
    }
    return oct_error_sqnr(&all);
}

/* The better of two: the float model's weights, and those after its passes, into which following nodes are folded. f->x
 * is NULL if neither has that shape, and after an error. */
static oct_status take_nearest(const pair_search *s, int real, const reals *q, reals *f, double *db, bool *folded,
                               oct_err *err)
{
    double plain = NAN;
    *f = (reals){ 0 };
    *db = NAN;
    for (int k = 0; k < 2; k++) {
        const oct_graph *g = s->g[k ? PAIR_FUSED : PAIR_REAL];
        reals other = { 0 };
        if (!g || (size_t)real >= g->n_node || g->node[real].dead)
            continue;
        const oct_status st = take_weights(g, real, &other, err);
        if (st != OCT_OK) {
            oct_free(f->x);
            f->x = NULL;
            return st;
        }
        const double mine = !other.x                          ? NAN
                            : same_layer(&other.lie, &q->lie) ? compare_all(&other, q, NULL, NULL)
                                                              : -INFINITY;
        plain = k ? plain : mine;
        if (isnan(*db) || mine > *db)
            *db = mine;
        if (*db == mine && !(isinf(mine) && mine < 0)) {
            oct_free(f->x);
            *f = other;
        } else {
            oct_free(other.x);
        }
    }
    *folded = *db > plain + AHEAD_DB;
    return OCT_OK;
}

oct_status pair_compare_weights(const pair_search *s, int real, int other, double *db, bool *folded, oct_err *err)
{
    reals f, q;
    *folded = false;
    *db = NAN;
    OCT_TRY(take_weights(s->g[PAIR_OTHER], other, &q, err));
    if (!q.x)
        return OCT_OK;
    const oct_status st = take_nearest(s, real, &q, &f, db, folded, err);
    if (st == OCT_OK)
        oct_free(f.x);
    oct_free(q.x);
    return st;
}

/* The float layer whose weights are nearest to those of a layer in the other graph; -1: none is near, or several
 * are. */
static oct_status find_nearest(const pair_search *s, int other, int *best, bool *folded, oct_err *err)
{
    double most = -INFINITY, second = -INFINITY;
    *best = -1;
    for (size_t i = 0; i < s->g[PAIR_REAL]->n_order; i++) {
        const int f = s->g[PAIR_REAL]->order[i];
        double db;
        bool behind;
        if (s->taken[PAIR_REAL][f] || !oct_op_is_layer(oct_op_of(s->g[PAIR_REAL], f)) ||
            s->mate[PAIR_REAL][s->g[PAIR_REAL]->node[f].out[0]] >= 0)
            continue;
        OCT_TRY(pair_compare_weights(s, f, other, &db, &behind, err));
        if (db > most) {
            second = most;
            *folded = behind;
            most = db;
            *best = f;
        } else if (db > second) {
            second = db;
        }
    }
    if (!(most >= LEAST_DB) || second > most - AHEAD_DB)
        *best = -1;
    return OCT_OK;
}

/* Where one layer has its channels behind the batch and the other at the end, as a pointwise convolution and the
 * product that it was made: the order of the other's dimensions. */
static const pair_way *order_of(const pair_search *s, int f, int q, pair_way *way)
{
    const bool first = oct_op_of(s->g[PAIR_REAL], f)->weights.kernel,
               other_first = oct_op_of(s->g[PAIR_OTHER], q)->weights.kernel;
    const int rank = s->g[PAIR_REAL]->value[s->g[PAIR_REAL]->node[f].out[0]].shape.rank;
    if (first == other_first || rank < 3)
        return NULL;
    *way = (pair_way){ .rank = rank };
    for (int i = 1; i < rank; i++)
        way->at[i] = first ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
    return way;
}

oct_status pair_by_weights(pair_search *s, bool *any, oct_err *err)
{
    *any = false;
    for (size_t i = 0; i < s->g[PAIR_OTHER]->n_order; i++) {
        const int q = s->g[PAIR_OTHER]->order[i];
        int f = -1, y = s->g[PAIR_OTHER]->node[q].n_out ? s->g[PAIR_OTHER]->node[q].out[0] : -1;
        if (y < 0 || s->taken[PAIR_OTHER][q] || s->mate[PAIR_OTHER][y] >= 0 ||
            !oct_op_is_layer(oct_op_of(s->g[PAIR_OTHER], q)))
            continue;
        bool folded = false;
        OCT_TRY(find_nearest(s, q, &f, &folded, err));
        if (f < 0)
            continue;
        int x = s->g[PAIR_REAL]->node[f].out[0];
        s->taken[PAIR_REAL][f] = s->taken[PAIR_OTHER][q] = true;
        pair_way way;
        const pair_way *order = order_of(s, f, q, &way);
        if (order) /* what stands behind is transposed, but for the bias that a convolution has itself */
            y = oct_layer_bias(s->g[PAIR_REAL], f) ? pair_behind_affine(s->g[PAIR_OTHER], y) : y;
        else
            pair_advance(s, folded, &x, &y);
        pair_join(s, x, y, OCT_PAIR_WEIGHTS, order);
        *any = true;
    }
    return OCT_OK;
}

oct_status pair_fill_weights(const pair_search *s, oct_pair *p, int real, int other, oct_err *err)
{
    const int nf = pair_layer_of(s, PAIR_REAL, real), nq = pair_layer_of(s, PAIR_OTHER, other);
    reals f = { 0 }, q = { 0 };
    double db;
    bool folded;
    oct_status st = nf >= 0 && nq >= 0 ? take_weights(s->g[PAIR_OTHER], nq, &q, err) : OCT_OK;
    if (st == OCT_OK && q.x && q.q)
        st = take_nearest(s, nf, &q, &f, &db, &folded, err);
    if (st == OCT_OK && f.x) {
        const size_t n = (size_t)(f.lie.outs * f.lie.matrices);
        oct_eval_channel *channel = oct_arena_calloc(s->arena, n + 1, sizeof *channel);
        if (channel) {
            p->weights = (oct_eval_weights){ .name = q.name,
                                             .dtype = q.q->dtype,
                                             .count = (int64_t)q.n,
                                             .block = q.q->block,
                                             .per_channel = q.q->n > 1 && !q.q->block,
                                             .channel = channel,
                                             .n_channel = n };
            compare_all(&f, &q, &p->weights, channel);
        } else {
            st = oct_nomem(err);
        }
    }
    oct_free(f.x);
    oct_free(q.x);
    return st;
}
