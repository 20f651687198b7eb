/* Weights rounded so that errors compensate each other at the layer's output (ldlq.h), instead of each to the nearest value.
 *
 * Inputs are those of the float model, at positions spread over the samples by a hash. Scales stay, but for safe pairs, and decisions that
 * are made again keep these weights (weights.c).
 *
 * Where the target adds pairs of products in 16 bits, weights are rounded a second time, so that no pair can saturate: at steps from one
 * to two times their own, for each channel those with the least noise. Layers that lose little by it are taken so, unless the model loses
 * by them. */
#include "quant/rounding_int.h"

#include "quant/convert_int.h"
#include "quant/ldlq.h"
#include "quant/learned.h"
#include "quant/simulate_int.h"
#include "quant/trial.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 2304, LEAST_ROWS = 1024, DEPTHWISE_ROWS = 512 };
/* By what safe pairs may multiply a layer's noise: 3 dB; 6 dB in a model whose weights alone leave so much that no metric tells. */
#define MOST_LOST 2.0
#define MOST_LOST_FINE 4.0
static const double share[] = { 1, 0.85, 0.7 }; /* of the multiply-accumulates of these layers, in each attempt those that lose least; at last none */
#define FINE_DB 40.0
#define MOST_LOST_DB 0.5 /* of a model that is not so fine, against weights to the nearest value */
enum { WIDTHS = 16, TRIED_DEPTH = 256 }; /* steps between one and two times a channel's own */
enum { COLLECT_BYTES = 48 << 20 }; /* of inputs that are kept at once */

/* ---- which layers ---- */

static bool describe_member(const rounder *r, int id, bool kernel, rmember *m)
{
    const oct_graph *g = r->j->g;
    const oct_node *n = &g->node[id];
    *m = (rmember){ .node = id, .input = oct_sim_shown(r->s, n->in[0]), .axis = oct_channel_axis(oct_op_of(g, id), n) };
    return m->input && (!kernel || oct_window_of_weights(n, g->value[n->in[1]].shape, &m->window, NULL) == OCT_OK);
}

/* Layers that have their weights in common are one; what each gives behind its own clamp is not learned together. x->member: room for all. */
static bool describe(const rounder *r, int id, rlayer *x)
{
    const oct_graph *g = r->j->g;
    if (!oct_is_product(r->j, id) || !oct_sim_rounds(r->j, id) || !oct_layer_layout(g, id, &x->l) || x->l.matrices != 1 ||
        oct_weights_next(r->j, id, -1) != id)
        return false;
    x->node = id;
    x->kernel = oct_op_of(g, id)->weights.kernel;
    x->depth = x->l.ins / x->l.groups * x->l.taps;
    x->outs = x->l.outs / x->l.groups;
    x->rows = (x->l.groups > 1 ? DEPTHWISE_ROWS : x->depth < LEAST_ROWS ? LEAST_ROWS : x->depth) * (r->learns ? 2 : 1);
    if (x->kernel && x->l.out_axis != 0)
        return false; /* a transposed convolution reads its inputs otherwise */
    size_t n = 0;
    for (int of = -1; (of = oct_weights_next(r->j, id, of)) >= 0; n++)
        if (!describe_member(r, of, x->kernel, &x->member[n]))
            return false;
    x->n_member = n;
    return x->depth > 1 && x->depth <= MOST_DEPTH && !(r->learns && x->n_member > 1);
}

/* What is rounded to what. */
static void set_form(const rounder *r, rlayer *x)
{
    const qweights *q = r->j->node[x->node].weights[0];
    x->limit = q->limit;
    x->scales = q->quant.n;
    x->to = (oct_rounded){ .node = x->node, .weights = (size_t)q->qvals->count, .scales = (size_t)q->quant.n, .limit = q->limit };
    /* Groups that share one step are rounded one after the other. */
    x->bound = oct_pairs_need(r->j, x->node) != OCT_PAIRS_ANY && oct_adds_pairs(&x->l) && (x->scales > 1 || x->l.groups == 1);
    x->to.bound = x->bound && !r->learns; /* safe pairs stay so, when there is something to learn */
}

/* In the order of the graph, but for those that read the same value, which stand together: so it is shown once. */
static void insert(rounder *r, const rlayer *x)
{
    size_t at = r->n;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->layer[i].member->input, x->member->input) == 0)
            at = i + 1;
    memmove(r->layer + at + 1, r->layer + at, (r->n++ - at) * sizeof *r->layer);
    r->layer[at] = *x;
}

oct_status oct_rounder_list(rounder *r, oct_err *err)
{
    r->n = 0;
    r->layer = oct_arena_calloc(r->a, r->j->n_layer + 1, sizeof *r->layer);
    r->wanted = oct_arena_calloc(r->a, r->j->n_values + 1, sizeof *r->wanted);
    r->queue = oct_arena_calloc(r->a, r->j->n_layer + 1, sizeof *r->queue);
    if (!r->layer || !r->wanted || !r->queue)
        return oct_nomem(err);
    for (size_t i = 0; i < r->j->n_layer; i++) {
        rlayer x = { .node = -1 };
        size_t most = 1;
        for (int of = -1; (of = oct_weights_next(r->j, r->j->layer[i], of)) >= 0;)
            most++;
        if (!(x.member = oct_arena_calloc(r->a, most, sizeof *x.member)))
            return oct_nomem(err);
        if (!describe(r, r->j->layer[i], &x))
            continue;
        set_form(r, &x);
        insert(r, &x);
    }
    return OCT_OK;
}

static size_t bytes_of(const rlayer *x)
{
    return (size_t)(x->l.groups * x->depth * x->rows) * sizeof(float);
}

/* ---- inputs ---- */

static uint64_t mix(uint64_t x) /* the finalizer of splitmix64 */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* Some positions' inputs into columns of x from `row` on: some, since inputs of one position are far apart there. at: where each dimension
 * starts, by position; t of f32. */
enum { PATCHES = 16 };
static void take_patches(const rlayer *x, const oct_window *w, const oct_operand *t, const int64_t *strides, int64_t (*at)[OCT_MAX_RANK], int n,
                         int64_t row)
{
    const float *data = t->data, *from[PATCHES];
    const int64_t ins = x->l.ins / x->l.groups;
    for (int64_t tap = 0; tap < x->l.taps; tap++) {
        for (int i = 0; i < n; i++) {
            int64_t rest = tap, offset = at[i][0] * strides[0];
            bool inside = true;
            for (int d = w->n - 1; d >= 0; d--) {
                const int64_t p = at[i][d + 2] + rest % w->kernel[d] * w->dilation[d];
                rest /= w->kernel[d];
                inside &= p >= 0 && p < t->dims[d + 2];
                offset += p * strides[d + 2];
            }
            from[i] = inside ? data + offset : NULL;
        }
        for (int64_t c = 0, at_group = 0, of_group = 0; c < x->l.ins; c++) {
            float *to = x->x + (at_group + of_group * x->l.taps + tap) * x->rows + row;
            for (int i = 0; i < n; i++)
                to[i] = from[i] ? from[i][c * strides[1]] : 0;
            if (++of_group == ins) {
                of_group = 0;
                at_group += x->depth;
            }
        }
    }
}

static bool collect_conv(const rlayer *x, const rmember *m, const oct_operand *t, uint64_t seed, int64_t first, int64_t rows)
{
    int64_t strides[OCT_MAX_RANK], out[OCT_SPATIAL_MAX], at[PATCHES][OCT_MAX_RANK], positions = 1;
    oct_window w = m->window;
    if (t->rank != w.n + 2 || t->dims[1] != x->l.ins)
        return false;
    for (int d = 0; d < w.n; d++) {
        if (oct_window_fit(&w, d, t->dims[d + 2], &out[d], NULL) != OCT_OK)
            return false;
        positions *= out[d];
    }
    oct_operand_strides(t, strides);
    for (int64_t i = 0; i < rows; i++) {
        int64_t *to = at[i % PATCHES], p = (int64_t)(mix(seed + (uint64_t)i) % (uint64_t)(positions * t->dims[0]));
        for (int d = w.n - 1; d >= 0; d--) {
            to[d + 2] = p % out[d] * w.stride[d] - w.before[d];
            p /= out[d];
        }
        to[0] = p;
        if (i % PATCHES == PATCHES - 1 || i == rows - 1)
            take_patches(x, &w, t, strides, at, (int)(i % PATCHES) + 1, first + i - i % PATCHES);
    }
    return true;
}

static bool collect_rows(const rlayer *x, const rmember *m, const oct_operand *t, uint64_t seed, int64_t first, int64_t rows)
{
    int64_t strides[OCT_MAX_RANK];
    const int axis = m->axis < 0 ? t->rank + m->axis : m->axis;
    const float *data = t->data;
    if (axis < 0 || axis >= t->rank || t->dims[axis] != x->l.ins)
        return false;
    oct_operand_strides(t, strides);
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = (int64_t)(mix(seed + (uint64_t)i) % (uint64_t)(t->count / t->dims[axis])), offset = 0;
        for (int d = t->rank - 1; d >= 0; d--)
            if (d != axis) {
                offset += p % t->dims[d] * strides[d];
                p /= t->dims[d];
            }
        for (int64_t c = 0; c < x->l.ins; c++)
            x->x[c * x->rows + first + i] = data[offset + c * strides[axis]];
    }
    return true;
}

static const bool *want_inputs(rounder *r)
{
    memset(r->wanted, 0, r->j->n_values * sizeof *r->wanted);
    for (size_t i = r->from; i < r->to; i++)
        for (size_t k = 0; k < r->layer[i].n_member; k++)
            r->wanted[r->j->g->node[r->layer[i].member[k].node].in[0]] = true;
    return r->wanted;
}

/* The rows of the part-th of all parts: member k of sample i has part i * n_member + k. */
static void find_rows(const rounder *r, const rlayer *x, size_t part, int64_t *first, int64_t *rows)
{
    const int64_t parts = (int64_t)(r->s->n_samples * x->n_member);
    *first = (int64_t)part * x->rows / parts;
    *rows = ((int64_t)part + 1) * x->rows / parts - *first;
}

/* Shown by the simulation, sample by sample, on any thread: each has rows of its own. */
static void collect(void *arg, size_t sample, const char *name, const oct_operand *t)
{
    rounder *r = arg;
    for (size_t i = r->from; i < r->to; i++) {
        rlayer *x = &r->layer[i];
        for (size_t k = 0; k < x->n_member; k++) {
            const rmember *m = &x->member[k];
            const size_t part = sample * x->n_member + k;
            if (strcmp(m->input, name) != 0 || t->dtype != OCT_F32 || t->count == 0)
                continue;
            int64_t first, rows;
            const uint64_t seed = mix((uint64_t)m->node) + ((uint64_t)sample << 32);
            find_rows(r, x, part, &first, &rows);
            x->collected[part] = (x->kernel ? collect_conv : collect_rows)(x, m, t, seed, first, rows);
        }
    }
}

/* Samples that did not come by, or with other shapes. */
static void clear_missing(const rounder *r, const rlayer *x)
{
    int64_t first, rows;
    for (size_t i = 0; i < r->s->n_samples * x->n_member; i++) {
        find_rows(r, x, i, &first, &rows);
        for (int64_t c = 0; !x->collected[i] && c < x->l.groups * x->depth; c++)
            memset(x->x + c * x->rows + first, 0, (size_t)rows * sizeof *x->x);
    }
}

/* ---- rounding ---- */

/* What rounding a group takes. */
typedef struct rgroup {
    const rlayer *x;
    oct_ldlq *k;
    int64_t *pair;               /* [depth] */
    float *own, *scale;          /* [outs] steps of the weights, and those they are rounded to */
    float *centre, *factor;      /* [outs] by which the steps are multiplied: around which and what is tried, ... */
    float *best;                 /* ... and the best one, ... */
    double *noise, *least;       /* ... by the noise that is expected, or was found */
    double *expected;            /* [WIDTHS + 1][outs] */
} rgroup;

static void close_group(rgroup *w)
{
    oct_ldlq_destroy(w->k);
    oct_free(w->pair);
    oct_free(w->own);
    oct_free(w->scale);
    oct_free(w->centre);
    oct_free(w->factor);
    oct_free(w->best);
    oct_free(w->noise);
    oct_free(w->least);
    oct_free(w->expected);
}

static bool open_group(rgroup *w, const rlayer *x)
{
    const size_t outs = (size_t)x->outs;
    *w = (rgroup){ .x = x, .k = oct_ldlq_create((size_t)x->depth, outs, (size_t)x->rows) };
    w->pair = oct_calloc((size_t)x->depth, sizeof *w->pair);
    w->own = oct_calloc(outs, sizeof *w->own);
    w->scale = oct_calloc(outs, sizeof *w->scale);
    w->centre = oct_calloc(outs, sizeof *w->centre);
    w->factor = oct_calloc(outs, sizeof *w->factor);
    w->best = oct_calloc(outs, sizeof *w->best);
    w->noise = oct_calloc(outs, sizeof *w->noise);
    w->least = oct_calloc(outs, sizeof *w->least);
    w->expected = oct_calloc((WIDTHS + 1) * outs, sizeof *w->expected);
    for (int64_t i = 0; w->pair && i < x->depth; i++)
        w->pair[i] = oct_pair_of(&x->l, i);
    return w->k && w->pair && w->own && w->scale && w->centre && w->factor && w->best && w->noise && w->least && w->expected;
}

/* Keeps factors with less noise[outs] than the best so far; outputs of one step have one noise. */
static void keep_best(rgroup *w, double *noise, bool first)
{
    const int64_t outs = w->x->outs;
    for (int64_t o = 1; w->x->scales == 1 && o < outs; o++)
        noise[0] += noise[o];
    for (int64_t o = 0; o < outs; o++) {
        const double own = noise[w->x->scales == 1 ? 0 : o];
        if (first || own < w->least[o]) {
            w->least[o] = own;
            w->best[o] = w->factor[o];
        }
    }
}

static oct_status round_bound(rgroup *w, const float *factor)
{
    for (int64_t o = 0; o < w->x->outs; o++)
        w->scale[o] = w->own[o] * factor[o];
    return oct_ldlq_round(w->k, w->scale, w->x->limit, OCT_PAIR_MOST, w->noise);
}

/* Factors from 1 to 2: by what is to be expected, and of layers with few inputs, where chance decides, those near by are tried. */
static oct_status choose_steps(rgroup *w)
{
    const int64_t outs = w->x->outs;
    float width[WIDTHS + 1];
    for (int f = 0; f <= WIDTHS; f++)
        width[f] = 1 + (float)f / WIDTHS;
    oct_ldlq_expect(w->k, w->own, WIDTHS + 1, width, OCT_PAIR_MOST, w->expected);
    for (int f = 0; f <= WIDTHS; f++) {
        for (int64_t o = 0; o < outs; o++)
            w->factor[o] = width[f];
        keep_best(w, w->expected + f * outs, f == 0);
    }
    memcpy(w->centre, w->best, (size_t)outs * sizeof *w->centre);
    for (int f = -1; w->x->depth <= TRIED_DEPTH && f <= 3; f++) {
        for (int64_t o = 0; o < outs; o++) {
            const float factor = w->centre[o] + (float)f / WIDTHS;
            w->factor[o] = factor < 1 ? 1 : factor > 2 ? 2 : factor;
        }
        OCT_TRY(round_bound(w, w->factor));
        keep_best(w, w->noise, f == -1);
    }
    return OCT_OK;
}

/* Takes what a group was rounded to, and its noise. */
static void keep_rounded(const rgroup *w, int64_t group, int8_t *qvals, double *noise)
{
    const rlayer *x = w->x;
    const int8_t *rounded = oct_ldlq_qvals(w->k);
    for (int64_t i = 0; i < x->depth; i++) {
        int8_t *to = qvals + oct_weight_at(&x->l, group, 0, i);
        for (int64_t o = 0; o < x->outs; o++)
            to[o * x->l.out_step] = rounded[i * x->outs + o];
    }
    for (int64_t o = 0; o < x->outs; o++)
        *noise += w->noise[o];
}

static void take_group(rgroup *w, const float *weights, int64_t group)
{
    const rlayer *x = w->x;
    float *to = oct_ldlq_weights(w->k);
    oct_ldlq_inputs(w->k, x->x + group * x->depth * x->rows);
    for (int64_t i = 0; i < x->depth; i++) {
        const float *from = weights + oct_weight_at(&x->l, group, 0, i);
        for (int64_t o = 0; o < x->outs; o++)
            to[i * x->outs + o] = from[o * x->l.out_step];
    }
    for (int64_t o = 0; o < x->outs; o++)
        w->own[o] = x->own[x->scales > 1 ? group * x->outs + o : 0];
}

static oct_status round_group(rgroup *w, rlayer *x, int64_t group)
{
    double noise[2] = { 0 };
    bool seen;
    OCT_TRY(oct_ldlq_begin(w->k, x->to.bound ? w->pair : NULL, &seen));
    OCT_TRY(oct_ldlq_round(w->k, w->own, x->limit, OCT_LDLQ_UNBOUND, w->noise));
    keep_rounded(w, group, x->to.qvals, &noise[0]);
    if (x->to.bound) {
        OCT_TRY(choose_steps(w));
        OCT_TRY(round_bound(w, w->best));
        keep_rounded(w, group, x->to.safe_qvals, &noise[1]);
        memcpy(x->to.widened + (x->scales > 1 ? group * x->outs : 0), w->best, (size_t)(x->scales > 1 ? x->outs : 1) * sizeof *w->best);
    }
    for (int i = 0; i < 2 && seen; i++)
        x->to.noise[i] += noise[i];
    return OCT_OK;
}

static oct_status round_layer(const rounder *r, rlayer *x)
{
    const float *weights = oct_layer_weights(r->j->g, x->node)->data;
    rgroup w;
    oct_status s = open_group(&w, x) ? OCT_OK : OCT_ENOMEM;
    for (int64_t g = 0; g < x->l.groups && s == OCT_OK; g++) {
        take_group(&w, weights, g);
        s = round_group(&w, x, g);
    }
    close_group(&w);
    return s;
}

/* ---- learning ---- */

/* A group of a layer, by outputs. */
typedef struct lgroup {
    oct_learned l;
    float *w, *scale;
    int8_t *q;     /* [outs][depth] */
    int64_t *pair; /* [depth] */
} lgroup;

static void close_learning(lgroup *k)
{
    oct_free(k->w);
    oct_free(k->scale);
    oct_free(k->q);
    oct_free(k->pair);
}

/* Pairs that are safe stay so. The last quarter of the positions, of samples of their own, judges each output. */
static bool open_learning(lgroup *k, const rounder *r, const rlayer *x)
{
    const oct_qjob *j = r->j;
    const size_t n = (size_t)(x->outs * x->depth);
    const qvalue *v = &j->value[oct_params_root(j, oct_quantized_output(j, x->node))];
    const qweights *had = j->node[x->node].weights[0];
    const bool safe = x->bound && oct_pairs_safe(&x->l, had->qvals->data);
    *k = (lgroup){ .w = oct_calloc(n, sizeof *k->w), .scale = oct_calloc((size_t)x->outs, sizeof *k->scale), .q = oct_calloc(n, 1),
                   .pair = oct_calloc((size_t)x->depth, sizeof *k->pair) };
    for (int64_t i = 0; k->pair && i < x->depth; i++)
        k->pair[i] = safe ? oct_pair_of(&x->l, i) : -1;
    k->l = (oct_learned){ .depth = (size_t)x->depth, .outs = (size_t)x->outs, .rows = (size_t)x->rows, .held = (size_t)x->rows / 4, .w = k->w,
                          .scale = k->scale, .lo = v->clamp_lo, .hi = v->clamp_hi, .limit = x->limit, .pair = k->pair, .most = OCT_PAIR_MOST };
    return k->w && k->scale && k->q && k->pair;
}

static void take_learning(lgroup *k, const rounder *r, const rlayer *x, int64_t group)
{
    const qweights *had = r->j->node[x->node].weights[0];
    const float *weights = oct_layer_weights(r->j->g, x->node)->data;
    const oct_tensor *bias = oct_layer_bias(r->j->g, x->node);
    for (int64_t o = 0; o < x->outs; o++) {
        k->scale[o] = had->quant.scale[had->quant.n > 1 ? group * x->outs + o : 0];
        for (int64_t i = 0; i < x->depth; i++) {
            const int64_t e = oct_weight_at(&x->l, group, o, i);
            k->w[o * x->depth + i] = weights[e];
            k->q[o * x->depth + i] = ((const int8_t *)had->qvals->data)[e];
        }
    }
    k->l.x = x->x + group * x->depth * x->rows;
    k->l.bias = bias && bias->dtype == OCT_F32 && bias->count == x->l.outs ? (const float *)bias->data + group * x->outs : NULL;
}

static oct_status learn_layer(const rounder *r, rlayer *x)
{
    lgroup k;
    oct_status s = open_learning(&k, r, x) ? OCT_OK : OCT_ENOMEM;
    for (int64_t g = 0; g < x->l.groups && s == OCT_OK; g++) {
        take_learning(&k, r, x, g);
        s = oct_learn_rounding(&k.l, k.q);
        for (int64_t o = 0; o < x->outs; o++)
            for (int64_t i = 0; i < x->depth; i++)
                x->to.qvals[oct_weight_at(&x->l, g, o, i)] = k.q[o * x->depth + i];
    }
    close_learning(&k);
    return s;
}

/* Moments, factors, and the rounding itself. */
static int64_t work_of(const rlayer *x)
{
    return x->l.groups * x->depth * x->depth * (x->rows + x->depth + 2 * x->outs);
}

static void fill_queue(rounder *r)
{
    size_t n = 0;
    for (size_t i = r->from; i < r->to; i++, n++) {
        size_t at = n;
        for (; at > 0 && work_of(&r->layer[r->queue[at - 1]]) < work_of(&r->layer[i]); at--)
            r->queue[at] = r->queue[at - 1];
        r->queue[at] = i;
    }
    atomic_store(&r->next, 0);
}

/* Whichever thread is free takes the next layer. */
static void round_part(void *arg, size_t begin, size_t end, size_t thread)
{
    rounder *r = arg;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        rlayer *x = &r->layer[r->queue[atomic_fetch_add(&r->next, 1)]];
        x->status = (r->learns ? learn_layer : round_layer)(r, x);
    }
}

oct_status oct_rounder_make_results(rounder *r, rlayer *x, oct_err *err)
{
    oct_rounded *to = &x->to;
    to->qvals = oct_arena_calloc(r->a, to->weights, 1);
    to->safe_qvals = oct_arena_calloc(r->a, to->bound ? to->weights : 1, 1);
    to->widened = oct_arena_calloc(r->a, to->scales, sizeof *to->widened);
    return to->qvals && to->safe_qvals && to->widened ? OCT_OK : oct_nomem(err);
}

static oct_status make_places(rounder *r, rlayer *x, oct_err *err)
{
    OCT_TRY(oct_rounder_make_results(r, x, err));
    x->x = oct_alloc(bytes_of(x));
    x->collected = oct_arena_calloc(r->a, r->s->n_samples * x->n_member + 1, sizeof *x->collected);
    x->own = oct_arena_calloc(r->a, x->to.scales, sizeof *x->own);
    if (!x->x || !x->collected || !x->own)
        return oct_nomem(err);
    return oct_own_steps(r->j, x->node, x->own, err);
}

/* Layers whose inputs fit into memory together. */
static oct_status round_some(rounder *r, oct_err *err)
{
    oct_status st = OCT_OK;
    for (size_t i = r->from; i < r->to && st == OCT_OK; i++)
        st = make_places(r, &r->layer[i], err);
    if (st == OCT_OK)
        st = oct_sim_show(r->s, want_inputs(r), collect, r, err);
    for (size_t i = r->from; i < r->to && st == OCT_OK; i++)
        clear_missing(r, &r->layer[i]);
    fill_queue(r);
    if (st == OCT_OK)
        oct_pool_for(r->s->core->pool, r->to - r->from, 1, round_part, r);
    for (size_t i = r->from; i < r->to; i++) {
        oct_free(r->layer[i].x);
        r->layer[i].x = NULL;
        if (st == OCT_OK && r->layer[i].status != OCT_OK)
            st = oct_nomem(err);
    }
    return st;
}

oct_status oct_rounder_round(rounder *r, oct_err *err)
{
    for (r->from = 0; r->from < r->n; r->from = r->to) {
        size_t bytes = bytes_of(&r->layer[r->from]);
        for (r->to = r->from + 1; r->to < r->n && bytes + bytes_of(&r->layer[r->to]) <= COLLECT_BYTES; r->to++)
            bytes += bytes_of(&r->layer[r->to]);
        OCT_TRY(round_some(r, err));
    }
    return OCT_OK;
}

/* ---- in place of the nearest ones ---- */

/* By what safe pairs multiply its noise. */
static double loss_of(const rlayer *x)
{
    return x->to.noise[0] > 0 ? x->to.noise[1] / x->to.noise[0] : x->to.noise[1] > 0 ? INFINITY : 1;
}

/* Whether that is little enough. */
static bool takes_safe(const rounder *r, const rlayer *x)
{
    return x->to.bound && (oct_pairs_need(r->j, x->node) == OCT_PAIRS_SAFE_NEEDED || loss_of(x) <= r->most_lost);
}

static const rlayer *layer_of(const rounder *r, int node)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->layer[i].node == node)
            return &r->layer[i];
    return NULL;
}

/* Exchanges the weights of all layers for compensated ones; those that take another one's follow when all is decided anew. */
static oct_status exchange(rounder *r, oct_err *err)
{
    oct_qjob *j = r->j;
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        const rlayer *x = layer_of(r, id);
        const bool safe = r->safe || oct_pairs_need(j, id) == OCT_PAIRS_SAFE_NEEDED;
        if (x && safe && takes_safe(r, x))
            OCT_TRY(oct_take_weights(j, id, x->to.safe_qvals, x->to.widened, err));
        else if (x)
            OCT_TRY(oct_take_weights(j, id, x->to.qvals, NULL, err));
        else if (safe && oct_is_product(j, id) && oct_layer_weights(j->g, id) && oct_weights_next(j, id, -1) == id)
            OCT_TRY(oct_make_safe(j, id, err));
    }
    return OCT_OK;
}

/* Rounds, and keeps what was there. */
static oct_status prepare_exchange(rounder *r, oct_conversion *c, oct_err *err)
{
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_FEW_RUNS, 0, &r->s, err));
    OCT_TRY(oct_rounder_list(r, err));
    OCT_TRY(oct_rounder_round_or_take(r, err));
    if (!(r->before = oct_arena_calloc(r->a, r->j->n_nodes + 1, sizeof *r->before)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->j->n_nodes; i++)
        r->before[i] = r->j->node[i].weights[0];
    return OCT_OK;
}

static int by_loss(const void *a, const void *b)
{
    const double x = loss_of(*(rlayer *const *)a), y = loss_of(*(rlayer *const *)b);
    return (x > y) - (x < y);
}

/* Of the layers that lose no more than `most`, those that lose least, as many as have that share of their multiply-accumulates. */
static oct_status choose_safe(rounder *r, double most, double part, oct_err *err)
{
    const rlayer **x = oct_arena_calloc(r->a, r->n + 1, sizeof *x);
    size_t n = 0;
    double all = 0, sum = 0;
    if (!x)
        return oct_nomem(err);
    r->most_lost = most;
    for (size_t i = 0; i < r->n; i++)
        if (takes_safe(r, &r->layer[i])) {
            x[n++] = &r->layer[i];
            all += (double)oct_node_macs(r->j->g, r->layer[i].node);
        }
    qsort(x, n, sizeof *x, by_loss);
    r->most_lost = 0;
    for (size_t i = 0; i < n && (sum += (double)oct_node_macs(r->j->g, x[i]->node)) <= part * all; i++) {
        r->most_lost = loss_of(x[i]);
        r->safe = true;
    }
    return OCT_OK;
}

static oct_status round_with(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    rounder *x = t->arg;
    (void)a;
    if (!x->before)
        OCT_TRY(prepare_exchange(x, c, err));
    x->safe = false;
    if (t->attempt < (int)OCT_COUNT(share))
        OCT_TRY(choose_safe(x, r->before >= FINE_DB ? MOST_LOST_FINE : MOST_LOST, share[t->attempt], err));
    t->attempts = x->safe ? (int)OCT_COUNT(share) + 1 : 0;
    OCT_TRY(exchange(x, err));
    t->gain = x->safe ? -MOST_LOST_DB : 0;
    t->enough = x->safe ? FINE_DB : 0;
    oct_conversion_changed(c);
    return OCT_OK;
}

static void undo(oct_trial *t, oct_conversion *c)
{
    const rounder *x = t->arg;
    for (size_t i = 0; i < x->j->n_nodes; i++)
        x->j->node[i].weights[0] = x->before[i];
    oct_conversion_changed(c);
}

static oct_status learn_with(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    rounder *x = t->arg;
    (void)r;
    (void)a;
    OCT_TRY(prepare_exchange(x, c, err));
    for (size_t i = 0; i < x->n; i++) {
        const int id = x->layer[i].node;
        OCT_TRY(oct_take_weights(x->j, id, x->layer[i].to.qvals, x->before[id]->widened, err));
    }
    oct_conversion_changed(c);
    return OCT_OK;
}

static const oct_sim_mask alone = { .no_values = true, .weights = OCT_SIM_ROUNDED_WEIGHTS }; /* rounded activations would only blur it */

/* x: but for c, a and the method's name. */
static oct_status run_with(oct_conversion *c, rounder *x, oct_trial *t, oct_method_result *r, oct_err *err)
{
    x->c = c;
    x->j = c->job;
    x->method = r->method->name;
    x->a = oct_arena_create();
    t->arg = x;
    oct_status s = !x->a ? oct_nomem(err) : c->o.rounding_share ? oct_rounder_write_part(x, err) : OCT_OK;
    if (s == OCT_OK && !c->written.method)
        s = oct_conversion_try(c, t, r, err);
    if (r->measure)
        r->measure = "output SQNR of rounded weights alone";
    oct_arena_destroy(x->a);
    return s;
}

static oct_status run_learned(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    rounder x = { .learns = true };
    oct_trial t = { .size = OCT_SIM_JUDGES, .mask = &alone, .act = learn_with, .undo = undo, .otherwise = "weights stay as they are" };
    return run_with(c, &x, &t, r, err);
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    rounder x = { .learns = false };
    oct_trial t = { .size = OCT_SIM_JUDGES, .mask = &alone, .act = round_with, .undo = undo, .otherwise = "to the nearest value" };
    return run_with(c, &x, &t, r, err);
}

static void prepare(oct_qjob_opts *o)
{
    o->rounds_later = true;
}

const oct_method oct_method_rounding = {
    .name = "compensated-rounding",
    .summary = "weights rounded so that their errors compensate each other on the layer's inputs",
    .step = OCT_STEP_ROUNDING,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .prepare = prepare,
    .run = run,
};

const oct_method oct_method_learned = {
    .name = "learned-rounding",
    .summary = "weights rounded anew where what the layer gives behind its clamp comes nearer to float",
    .step = OCT_STEP_ROUNDING,
    .needs = OCT_NEEDS_SAMPLES,
    .high = true,
    .run = run_learned,
};
