/* Smoothing. The channels of normalized values have very different ranges, but one scale. So the channels are divided
 * by factors, and the layers that read them multiply their weights by the same factors (Xiao et al., SmoothQuant,
 * 2023). The factors are powers of two near sqrt(max |x| / max |w|), so that activations and weights share the
 * difficulty. Powers of two leave the float function unchanged to the bit.
 *
 * If only layers read the values, the factors go into scale and shift of the normalization (or whatever constants
 * compute the values). If others read them too, such as the addition around a block, a multiplication is inserted
 * before the layers. */
#include "quant/convert/convert_int.h"

#include "forms/edit.h"
#include "quant/job/placed.h"
#include "quant/methods/scaling.h"
#include "quant/methods/trial.h"
#include "quant/weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_GAIN                                                                                                  \
    0.5 /* dB at the outputs that the change must gain, with only the smoothed values and the layers that read them \
           rounded */
enum { MOST_CONSTANTS = 4 };
static const double shares[] = { 0.5, 0.25, 0.75 }; /* the exponents that are tried for weights in blocks */

typedef struct site {
    int value;   /* the value as it is computed */
    int read;    /* the value as layers read it */
    int product; /* the node between these two, or -1 */
    int64_t channels;
    int constant[MOST_CONSTANTS]; /* the constants that determine the ranges of its channels */
    int n_constants;
    bool folds; /* only layers read it, and no other node uses the constants */
    oct_scaled_layer *reader;
    size_t n_readers;
    int *exponent; /* [channels]: the values are multiplied by 2^exponent */
    float *top;    /* [channels]: the largest magnitudes; for weights in blocks only */
} site;

typedef struct smoother {
    oct_conversion *c;
    bool blocks; /* the layers are those with weights in blocks, and only these are rounded */
    oct_arena *a;
    site *site;
    size_t n;
    const oct_tensor **was; /* by value of the graph: the original constants */
    oct_status undone;      /* OCT_ENOMEM: the change could not be undone */
    oct_sim_mask mask;      /* the values that layers of the sites read, and the weights of these layers */
} smoother;

/* ---- sites ---- */

/* Finds constants with one element for each channel to which the channels of v are proportional, along the last
 * dimension. False: there are none. */
static bool find_constants(const oct_graph *g, int v, site *x, int depth)
{
    const oct_tensor *t = g->value[v].constant;
    const int p = g->value[v].producer;
    if (t) {
        const bool fits =
            t->dtype == OCT_F32 && t->count == x->channels && t->rank > 0 && t->dims[t->rank - 1] == x->channels;
        if (fits && x->n_constants < MOST_CONSTANTS)
            x->constant[x->n_constants++] = v;
        x->folds &= oct_constant_scales(g, v);
        return fits && x->n_constants <= MOST_CONSTANTS;
    }
    if (p < 0 || depth == 0 || g->node[p].out[0] != v)
        return false;
    const oct_node *n = &g->node[p];
    const bool product = oct_op_of(g, p) && oct_op_of(g, p)->multiplies;
    const uint32_t slots = product ? 3 : oct_homogeneous_in(g, p);
    x->folds &= v == x->value || oct_value_used_once(&g->value[v]);
    bool all = slots != 0 && n->n_in <= 32, any = false;
    for (int i = 0; i < n->n_in && all && !any; i++)
        if (slots >> i & 1 && n->in[i] >= 0) {
            const bool found = find_constants(g, n->in[i], x, product ? 0 : depth - 1);
            any |= product && found;
            all &= product || found;
        }
    return product ? any : all;
}

/* Whether a layer is rounded: it is on integers, or has weights in blocks. */
static bool is_rounded(const smoother *s, int node)
{
    const oct_qjob *j = s->c->job;
    if (!s->blocks)
        return oct_is_product(j, node);
    return node < (int)j->n_nodes && oct_scheme_of(j, node) == OCT_SCHEME_WEIGHT_ONLY &&
           oct_op_of(j->g, node)->weights.blocks;
}

/* Whether the use is by a layer that is rounded, with the value's last dimension as its input channels. A layer that
 * shares its numbers with a table does not count, because the file would then contain them twice. */
static bool reads(const smoother *s, oct_use u, const site *x, oct_scaled_layer *l)
{
    const oct_qjob *j = s->c->job;
    return u.slot == 0 && is_rounded(s, u.node) && !oct_is_tied(j, u.node) &&
           oct_channel_axis(oct_op_of(j->g, u.node), &j->g->node[u.node]) == -1 &&
           oct_scaled_layer_of(j->g, u.node, l) && l->weights.ins == x->channels;
}

static oct_status find_readers(smoother *s, site *x, oct_err *err)
{
    const oct_value *v = &s->c->job->g->value[x->value];
    bool by_products = false; /* an integer layer reads it that cannot be scaled */
    if (!(x->reader = oct_arena_calloc(s->a, v->n_uses + 1, sizeof *x->reader)) ||
        !(x->exponent = oct_arena_calloc(s->a, (size_t)x->channels, sizeof *x->exponent)))
        return oct_nomem(err);
    for (size_t i = 0; i < v->n_uses; i++) {
        if (reads(s, v->uses[i], x, &x->reader[x->n_readers])) {
            x->n_readers++;
            continue;
        }
        x->folds = false;
        by_products |= v->uses[i].slot >= 0 && is_rounded(s, v->uses[i].node);
    }
    x->folds &= !v->is_output;
    if (by_products ||
        (s->blocks && !x->folds)) /* a multiplication in front of weights in blocks would cost more than it gains */
        x->n_readers = 0;
    return OCT_OK;
}

static oct_status find_sites(smoother *s, oct_err *err)
{
    enum { DEPTH = 2 }; /* Add, Mul: the operators of a normalization as exporters write it */
    const oct_graph *g = s->c->job->g;
    if (!(s->site = oct_arena_calloc(s->a, g->n_order + 1, sizeof *s->site)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        const int v = g->node[g->order[i]].n_out > 0 ? g->node[g->order[i]].out[0] : -1;
        const oct_shape *shape = v >= 0 ? &g->value[v].shape : NULL;
        if (!shape || g->value[v].dtype != OCT_F32 || g->value[v].quant || shape->rank < 2 ||
            shape->d[shape->rank - 1].n < 2)
            continue;
        site *x = &s->site[s->n];
        *x = (site){ .value = v, .read = v, .product = -1, .channels = shape->d[shape->rank - 1].n, .folds = true };
        if (!find_constants(g, v, x, DEPTH))
            continue;
        OCT_TRY(find_readers(s, x, err));
        s->n += x->n_readers > 0;
    }
    return OCT_OK;
}

/* ---- factors ---- */

/* Finds the largest weight of each input channel. */
static void find_largest(const oct_graph *g, const oct_scaled_layer *l, float *largest)
{
    const oct_tensor *t = oct_layer_weights(g, l->node);
    const float *w = t->data;
    for (int64_t e = 0; e < t->count; e++) {
        float *to = &largest[oct_input_channel(&l->weights, e)];
        *to = fmaxf(*to, fabsf(w[e]));
    }
}

/* Sets exponents around their mean, so that values keep their magnitude. Channels of zeros do not change. Returns
 * whether any exponent differs from 0. */
static bool set_exponents(site *x, const oct_chan *range, const float *largest)
{
    double sum = 0;
    int64_t live = 0;
    bool any = false;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t c = 0; c < x->channels; c++) {
            const float top = fmaxf(range[c].max, -range[c].min);
            if (!(top > 0) || !(largest[c] > 0))
                continue;
            const double half = 0.5 * (log2((double)largest[c]) - log2((double)top));
            sum += pass ? 0 : half;
            live += !pass;
            const double e = pass ? rint(half - sum / (double)live) : 0;
            x->exponent[c] = (int)fmax(-OCT_SCALING_MOST, fmin(OCT_SCALING_MOST, e));
            any |= x->exponent[c] != 0;
        }
    return any;
}

/* Activation-aware (AWQ: Lin et al., 2023, section 3.2): weights are multiplied by the power `share` of the magnitudes
 * of their inputs, relative to the mean, so that weights whose errors matter most get the finest steps. Returns whether
 * any factor differs from 1. */
static bool set_by_inputs(site *x, double share)
{
    double sum = 0;
    int64_t live = 0;
    bool any = false;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t c = 0; c < x->channels; c++) {
            if (!(x->top[c] > 0))
                continue;
            sum += pass ? 0 : log2((double)x->top[c]);
            live += !pass;
            const double e = pass ? rint(-share * (log2((double)x->top[c]) - sum / (double)live)) : 0;
            x->exponent[c] = (int)fmax(-OCT_SCALING_MOST, fmin(OCT_SCALING_MOST, e));
            any |= x->exponent[c] != 0;
        }
    return any;
}

static oct_status keep_tops(smoother *s, site *x, const oct_chan *range, oct_err *err)
{
    if (!(x->top = oct_arena_calloc(s->a, (size_t)x->channels, sizeof *x->top)))
        return oct_nomem(err);
    for (int64_t c = 0; c < x->channels; c++)
        x->top[c] = fmaxf(range[c].max, -range[c].min);
    return OCT_OK;
}

/* Drops sites whose channels have similar ranges. */
static oct_status choose(smoother *s, const oct_calib *c, oct_err *err)
{
    const oct_graph *g = s->c->job->g;
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        site *x = &s->site[i];
        const oct_calib_tensor *t = oct_calib_find(c, g->value[x->value].name);
        float *largest = oct_arena_calloc(s->a, (size_t)x->channels, sizeof *largest);
        if (!largest)
            return oct_nomem(err);
        for (size_t k = 0; k < x->n_readers; k++)
            find_largest(g, &x->reader[k], largest);
        if (!t || t->chan.channels != (size_t)x->channels)
            continue;
        if (s->blocks)
            OCT_TRY(keep_tops(s, x, t->chan.c, err));
        if (s->blocks ? set_by_inputs(x, shares[0]) : set_exponents(x, t->chan.c, largest))
            s->site[kept++] = *x;
    }
    s->n = kept;
    return OCT_OK;
}

static oct_status find_factors(smoother *s, oct_err *err)
{
    const char **name = oct_arena_calloc(s->a, s->n, sizeof *name);
    int *axis = oct_arena_calloc(s->a, s->n, sizeof *axis);
    oct_calib *c = NULL;
    if (!name || !axis)
        return oct_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        name[i] = s->c->job->g->value[s->site[i].value].name;
        axis[i] = -1;
    }
    oct_status st = oct_statistics_few(s->c, &(oct_few){ name, axis, s->n, .channels = true }, &c, err);
    if (st == OCT_OK)
        st = choose(s, c, err);
    oct_calib_destroy(c);
    return st;
}

/* ---- applying ---- */

static oct_status put_product(oct_graph *g, site *x, oct_err *err)
{
    float *f = oct_calloc((size_t)x->channels, sizeof *f);
    int factor;
    if (!f)
        return oct_nomem(err);
    for (int64_t c = 0; c < x->channels; c++)
        f[c] = ldexpf(1, x->exponent[c]);
    oct_status st = oct_edit_const(g, g->value[x->value].name, "_smoothing", OCT_F32, 1, &x->channels, f, &factor, err);
    oct_free(f);
    if (st == OCT_OK)
        st = oct_edit_value(g, g->value[x->value].name, "_smoothed", OCT_F32, x->value, &x->read, err);
    if (st == OCT_OK)
        st = oct_edit_node(g, "Mul", (int[]){ x->value, factor }, 2, x->read,
                           oct_edit_after(g, g->value[x->value].producer), &x->product, err);
    for (size_t i = 0; i < x->n_readers && st == OCT_OK; i++)
        st = oct_graph_set_input(g, x->reader[i].node, 0, x->read, err);
    return st;
}

static oct_status apply(oct_graph *g, site *x, oct_err *err)
{
    const oct_scaler k = { g, g->arena, NULL };
    for (size_t i = 0; i < x->n_readers; i++)
        OCT_TRY(oct_scale_inputs(&k, &x->reader[i], x->exponent, err));
    for (int i = 0; x->folds && i < x->n_constants; i++)
        OCT_TRY(oct_scale_vector(&k, x->constant[i], x->exponent, err));
    return x->folds ? OCT_OK : put_product(g, x, err);
}

static void take_back(oct_trial *t, oct_conversion *c)
{
    smoother *s = t->arg;
    oct_graph *g = c->m->graph;
    for (size_t i = 0; i < s->n; i++) {
        const site *x = &s->site[i];
        for (size_t k = 0; k < x->n_readers; k++) {
            const int w = g->node[x->reader[k].node].in[1];
            oct_graph_set_const(g, w, s->was[w]);
        }
        for (int k = 0; x->folds && k < x->n_constants; k++)
            oct_graph_set_const(g, x->constant[k], s->was[x->constant[k]]);
        for (size_t k = 0; x->product >= 0 && k < x->n_readers && s->undone == OCT_OK; k++)
            s->undone = oct_graph_set_input(g, x->reader[k].node, 0, x->value, NULL);
        if (x->product >= 0 && s->undone == OCT_OK)
            oct_graph_remove_node(g, x->product);
    }
}

/* ---- the check ---- */

static oct_status set_mask(smoother *s, oct_err *err)
{
    const oct_qjob *j = s->c->job;
    bool *value = oct_arena_calloc(s->a, j->n_values + 1, sizeof *value),
         *layer = oct_arena_calloc(s->a, j->n_nodes + 1, sizeof *layer);
    if (!value || !layer)
        return oct_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        value[oct_params_root(j, s->site[i].read)] = true;
        for (size_t k = 0; k < s->site[i].n_readers; k++)
            layer[s->site[i].reader[k].node] = true;
    }
    s->mask = (oct_sim_mask){ .value = value, .no_values = s->blocks, .weights = OCT_SIM_SOME_WEIGHTS, .layer = layer };
    return OCT_OK;
}

static oct_status act(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    smoother *s = t->arg;
    for (size_t i = 0; s->blocks && i < s->n; i++)
        set_by_inputs(&s->site[i], shares[t->attempt]);
    for (size_t i = 0; i < s->n; i++)
        OCT_TRY(apply(c->m->graph, &s->site[i], err));
    OCT_TRY(oct_conversion_reopen(c, err));
    return set_mask(s, err);
}

/* Records the factors of values that were scaled themselves. */
static oct_status record(const smoother *s, const site *x, oct_err *err)
{
    const oct_graph *g = s->c->m->graph;
    const oct_scaled v = { x->value, g->value[x->value].shape.rank - 1 };
    return x->folds ? oct_scaling_record(&s->c->scaled, g, &v, x->channels, x->exponent, err) : OCT_OK;
}

static oct_status attempt(smoother *s, oct_method_result *r, oct_err *err)
{
    const oct_graph *g = s->c->m->graph;
    oct_trial t = { .size = OCT_SIM_MANY_RUNS,
                    .mask = &s->mask,
                    .attempts = s->blocks ? (int)OCT_COUNT(shares) : 1,
                    .graph = true,
                    .act = act,
                    .undo = take_back,
                    .gain = LEAST_GAIN,
                    .otherwise = "channels stay as they are",
                    .arg = s };
    if (!(s->was = oct_arena_calloc(s->a, g->n_value, sizeof *s->was)))
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        s->was[v] = g->value[v].constant;
    OCT_TRY(set_mask(s, err));
    OCT_TRY(oct_conversion_try(s->c, &t, r, err));
    if (s->undone != OCT_OK)
        return oct_nomem(err);
    r->measure = s->blocks ? "output SQNR of these layers alone" : "output SQNR of these values and layers alone";
    if (!t.won)
        return OCT_OK;
    snprintf(r->choice, sizeof r->choice, "channels of %zu value%s %s", s->n, s->n == 1 ? "" : "s",
             s->blocks ? "scaled" : "smoothed");
    for (size_t i = 0; i < s->n; i++)
        OCT_TRY(record(s, &s->site[i], err));
    return OCT_OK;
}

static oct_status smooth(smoother *s, oct_method_result *r, oct_err *err)
{
    OCT_TRY(find_sites(s, err));
    if (s->n == 0) {
        r->why = s->blocks ? "no normalization is read by layers with weights in blocks alone"
                           : "no integer layer reads a normalization";
        return OCT_OK;
    }
    OCT_TRY(find_factors(s, err));
    if (s->n == 0)
        r->why = "the channels of normalizations are alike enough";
    return s->n ? attempt(s, r, err) : OCT_OK;
}

static oct_status run_with(oct_conversion *c, bool blocks, oct_method_result *r, oct_err *err)
{
    smoother s = { .c = c, .blocks = blocks, .a = oct_arena_create() };
    const oct_status st = s.a ? smooth(&s, r, err) : oct_nomem(err);
    oct_arena_destroy(s.a);
    return st;
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    return run_with(c, false, r, err);
}

static oct_status run_blocks(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    return run_with(c, true, r, err);
}

const oct_method oct_method_smooth = {
    .name = "smooth",
    .summary = "large channels of a normalization made smaller, the weights behind larger",
    .step = OCT_STEP_GRAPH,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run,
};

const oct_method oct_method_block_scaling = {
    .name = "block-scaling",
    .summary = "the same for weights in blocks",
    .step = OCT_STEP_GRAPH,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .of_blocks = true,
    .run = run_blocks,
};
