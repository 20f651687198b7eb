/* Rounds weights so that their errors compensate each other at the layer's output (ldlq.h), instead of rounding each to
 * the nearest value.
 *
 * Layers (rounding_layers.c), those of bodies too, are rounded on inputs of the float model (rounding_inputs.c,
 * rounding_bodies.c), by gptq_rounding.c. A
 * second method, rounding_learned.c, continues from that result. This file distributes the work among threads, and has
 * the methods. Scales do not change, except for safe pairs. Decisions that are made again keep these weights
 * (weights.c).
 *
 * If the target adds pairs of products in 16 bits, weights are rounded a second time so that no pair can saturate: with
 * scales of one to two times their own, where each channel gets the scale with the least noise. Layers that lose little
 * by this get these weights, unless the whole model loses too much. */
#include "quant/rounding/rounding_int.h"

#include "base/stop.h"
#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/methods/trial.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/weights.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

/* By how much safe pairs may multiply a layer's noise: 3 dB. It is 6 dB in a fine model: with rounded weights alone,
 * the SQNR of its outputs is so high that no metric shows the loss. */
#define MOST_LOST 2.0
#define MOST_LOST_FINE 4.0
/* in each attempt, the share of the multiply-accumulates of these layers that gets safe pairs, those first that lose
 * least; in the last attempt none */
static const double share[] = { 1, 0.85, 0.7 };
#define FINE_DB 40.0
#define MOST_LOST_DB \
    0.5 /* dB that a model that is not fine may lose, compared with weights rounded to the nearest value */
enum { COLLECT_BYTES = 48 << 20 }; /* memory for the inputs that are kept at a time */

/* ---- the work ---- */

static size_t bytes_of(const rlayer *x)
{
    return (size_t)(x->l.groups * x->depth * x->rows) * sizeof(float);
}

/* The work of moments, factorization and rounding. */
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

/* A thread that is free takes the next layer. */
static void round_part(void *arg, size_t begin, size_t end, size_t thread)
{
    rounder *r = arg;
    for (size_t i = begin; i < end; i++) {
        rlayer *x = &r->layer[r->queue[atomic_fetch_add(&r->next, 1)]];
        x->status = (r->learns ? oct_rounder_learn : oct_rounder_compensate)(r, x);
    }
}

static oct_status make_places(rounder *r, rlayer *x, oct_err *err)
{
    rresult *to = &x->to;
    to->qvals = oct_arena_calloc(r->a, to->weights, 1);
    to->safe_qvals = oct_arena_calloc(r->a, to->bound ? to->weights : 1, 1);
    to->widened = oct_arena_calloc(r->a, to->scales, sizeof *to->widened);
    x->x = oct_alloc(bytes_of(x));
    x->collected = oct_arena_calloc(r->a, r->s->n_samples * x->n_member + 1, sizeof *x->collected);
    x->own = oct_arena_calloc(r->a, to->scales, sizeof *x->own);
    if (!to->qvals || !to->safe_qvals || !to->widened || !x->x || !x->collected || !x->own)
        return oct_nomem(err);
    return oct_own_steps(r->j, x->node, x->own, err);
}

/* Whether fewer than half of the samples run the body that holds a layer. Weights that fit a few rows lose on others.
 */
static bool is_rare(const rounder *r, const rlayer *x)
{
    const size_t parts = r->s->n_samples * x->n_member;
    size_t n = 0;
    for (size_t i = 0; i < parts; i++)
        n += x->collected[i];
    return r->j != r->c->job && 2 * n < parts;
}

/* Rounds layers whose inputs fit into memory together. */
static oct_status round_some(rounder *r, oct_err *err)
{
    oct_status st = OCT_OK;
    for (size_t i = r->from; i < r->to && st == OCT_OK; i++)
        st = make_places(r, &r->layer[i], err);
    if (st == OCT_OK)
        st = oct_rounder_show(r, err);
    for (size_t i = r->from; i < r->to && st == OCT_OK; i++) {
        r->layer[i].rare = is_rare(r, &r->layer[i]);
        oct_rounder_clear_missing(r, &r->layer[i]);
    }
    fill_queue(r);
    if (st == OCT_OK)
        oct_pool_for(r->s->core->pool, r->to - r->from, 1, round_part, r);
    for (size_t i = r->from; i < r->to; i++) {
        oct_free(r->layer[i].x);
        r->layer[i].x = NULL;
        if (st == OCT_OK && r->layer[i].status != OCT_OK)
            st = r->layer[i].status == OCT_ESTOPPED ? oct_stop_check(err) : oct_nomem(err);
    }
    return st;
}

static oct_status round_all(rounder *r, oct_err *err)
{
    for (r->from = 0; r->from < r->n; r->from = r->to) {
        size_t bytes = bytes_of(&r->layer[r->from]);
        for (r->to = r->from + 1; r->to < r->n && bytes + bytes_of(&r->layer[r->to]) <= COLLECT_BYTES; r->to++)
            bytes += bytes_of(&r->layer[r->to]);
        OCT_TRY(round_some(r, err));
    }
    return OCT_OK;
}

/* ---- replacing weights ---- */

/* The factor by which safe pairs increase a layer's noise. */
static double loss_of(const rlayer *x)
{
    return x->to.noise[0] > 0 ? x->to.noise[1] / x->to.noise[0] : x->to.noise[1] > 0 ? INFINITY : 1;
}

/* Whether a layer gets safe pairs: they are needed, or the factor is small enough. */
static bool takes_safe(const rounder *r, const rlayer *x)
{
    return x->to.bound && !x->rare &&
           (oct_pairs_need(r->j, x->node) == OCT_PAIRS_SAFE_NEEDED || loss_of(x) <= r->most_lost);
}

static const rlayer *layer_of(const rounder *r, int node)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->layer[i].node == node && !r->layer[i].rare)
            return &r->layer[i];
    return NULL;
}

/* Replaces the weights of all layers by the rounded ones. Layers that share weights follow when everything is decided
 * anew. */
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

/* Rounds the layers of a graph, and keeps the old weights. */
static oct_status prepare_graph(rounder *r, oct_err *err)
{
    OCT_TRY(oct_rounder_list(r, err));
    OCT_TRY(round_all(r, err));
    if (!(r->before = oct_arena_calloc(r->a, r->j->n_nodes + 1, sizeof *r->before)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->j->n_nodes; i++)
        r->before[i] = r->j->constants[i].weights[0];
    return OCT_OK;
}

static oct_status prepare_exchange(rounder *r, oct_conversion *c, oct_err *err)
{
    OCT_TRY(oct_conversion_sim(c, OCT_SIM_FEW_RUNS, 0, &r->s, err));
    if (!r->learns) /* what is learned depends on a clamp behind the layer */
        OCT_TRY(oct_rounder_add_bodies(r, err));
    for (rounder *x = r; x; x = x->further)
        OCT_TRY(prepare_graph(x, err));
    return OCT_OK;
}

static int by_loss(const void *a, const void *b)
{
    const double x = loss_of(*(rlayer *const *)a), y = loss_of(*(rlayer *const *)b);
    return (x > y) - (x < y);
}

/* Among the layers with a factor of at most `most`, chooses those with the smallest factors, up to this share of their
 * multiply-accumulates. */
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
            all += r->j->work[r->layer[i].node];
        }
    qsort(x, n, sizeof *x, by_loss);
    r->most_lost = 0;
    for (size_t i = 0; i < n && (sum += r->j->work[x[i]->node]) <= part * all; i++) {
        r->most_lost = loss_of(x[i]);
        r->safe = true;
    }
    return OCT_OK;
}

static oct_status round_with(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    rounder *x = t->arg;
    if (!x->before)
        OCT_TRY(prepare_exchange(x, c, err));
    bool safe = false;
    for (rounder *y = x; y; y = y->further) {
        y->safe = false;
        if (t->attempt < (int)OCT_COUNT(share))
            OCT_TRY(choose_safe(y, r->before >= FINE_DB ? MOST_LOST_FINE : MOST_LOST, share[t->attempt], err));
        safe |= y->safe;
        OCT_TRY(exchange(y, err));
    }
    t->attempts = safe ? (int)OCT_COUNT(share) + 1 : 0;
    t->gain = safe ? -MOST_LOST_DB : 0;
    t->enough = safe ? FINE_DB : 0;
    t->worth = "these weights cannot saturate sums of pairs";
    oct_conversion_changed(c);
    return OCT_OK;
}

static void undo(oct_trial *t, oct_conversion *c)
{
    for (const rounder *x = t->arg; x; x = x->further)
        for (size_t i = 0; i < x->j->n_nodes; i++)
            x->j->constants[i].weights[0] = x->before[i];
    oct_conversion_changed(c);
}

static oct_status learn_with(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    rounder *x = t->arg;
    OCT_TRY(prepare_exchange(x, c, err));
    for (size_t i = 0; i < x->n; i++) {
        const int id = x->layer[i].node;
        OCT_TRY(oct_take_weights(x->j, id, x->layer[i].to.qvals, x->before[id]->widened, err));
    }
    oct_conversion_changed(c);
    return OCT_OK;
}

/* noise of rounded activations would make the comparison less exact */
static const oct_sim_mask alone = { .no_values = true, .weights = OCT_SIM_ROUNDED_WEIGHTS };

/* x: complete except for c, j and a. */
static oct_status run_with(oct_conversion *c, rounder *x, oct_trial *t, oct_method_result *r, oct_err *err)
{
    x->c = c;
    x->j = c->job;
    x->a = oct_arena_create();
    t->arg = x;
    const oct_status s = x->a ? oct_conversion_try(c, t, r, err) : oct_nomem(err);
    if (r->measure)
        r->measure = "output SQNR of rounded weights alone";
    oct_arena_destroy(x->a);
    return s;
}

static oct_status run_learned(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    rounder x = { .learns = true };
    oct_trial t = {
        .size = OCT_SIM_JUDGES, .mask = &alone, .act = learn_with, .undo = undo, .otherwise = "weights stay as they are"
    };
    return run_with(c, &x, &t, r, err);
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    rounder x = { .learns = false };
    oct_trial t = {
        .size = OCT_SIM_JUDGES, .mask = &alone, .act = round_with, .undo = undo, .otherwise = "to the nearest value"
    };
    return run_with(c, &x, &t, r, err);
}

static void prepare(oct_qjob_opts *o)
{
    o->rounds_later = true;
}

const oct_method oct_method_rounding = {
    .name = "compensated-rounding",
    .summary = "weights rounded so that their errors compensate each other",
    .step = OCT_STEP_ROUNDING,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .prepare = prepare,
    .run = run,
};

const oct_method oct_method_learned = {
    .name = "learned-rounding",
    .summary = "weights rounded again, for a layer's result nearer to float",
    .step = OCT_STEP_ROUNDING,
    .needs = OCT_NEEDS_SAMPLES,
    .high = true,
    .run = run_learned,
};
