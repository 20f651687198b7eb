/* Rounds weights in blocks so that their errors compensate each other on the layer's inputs (GPTQ: Frantar et al.,
 * 2023; ldlq.h).
 *
 * Layers are processed in groups, in the order of the graph. No layer of a group depends on another one of it. Inputs
 * come from the model in which earlier groups are already rounded. Weights are first replaced by those that come
 * closest in least squares, on these inputs, to the float model's results on its own inputs (GPTAQ: Li et al., 2025).
 * This also compensates errors of earlier layers. Scales and zero points are those that the weights get without samples
 * (blocks.h); they are chosen before any weight of a column is rounded, because inputs are rounded in the order of
 * their moments, across blocks. */
#include "quant/rounding/block_inputs.h"

#include "base/stop.h"
#include "eval/metrics/summary.h"
#include "ops/core/block_matrix.h"
#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/methods/trial.h"
#include "quant/rounding/ldlq.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/blocks.h"
#include "quant/weights/constants.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 16384, MOST_GROUPS = 48 };

typedef struct blayer {
    int node;
    oct_weight_layout l;
    size_t input; /* the index of its input's name */
    int axis;
    int level;    /* how many layers in blocks precede it on the longest path */
    size_t shown; /* the index of its input among those of the group */
    qweights *made;
    oct_status status;
} blayer;

typedef struct brounder {
    oct_conversion *c;
    oct_qjob *j;
    oct_arena *a;
    blayer *layer;      /* by level, and within a level in the order of the graph */
    size_t n, from, to; /* layers from..to are the current group */
    int levels;
    const char **name; /* [n_names] the values that the layers read, in the order of the graph */
    size_t n_names;
    oct_block_input *shown;
    size_t n_shown;
    qweights **before; /* by node */
} brounder;

/* ---- which layers ---- */

/* Whether a node's weights in blocks are used by it alone: neither by another product nor as a table whose rows are
 * picked. */
static bool owns(const oct_qjob *j, int node)
{
    const qweights *w = j->constants[node].weights[0];
    for (size_t i = 0; i < j->n_layer; i++) {
        const qtable *t = j->constants[j->layer[i]].table;
        if ((j->layer[i] != node && j->constants[j->layer[i]].weights[0] == w) || (t && t->tied == node))
            return false;
    }
    return true;
}

static bool in_blocks(const oct_qjob *j, int node)
{
    const qweights *w = node < (int)j->n_nodes ? j->constants[node].weights[0] : NULL;
    return w && w->quant.block && oct_scheme_of(j, node) == OCT_SCHEME_WEIGHT_ONLY &&
           oct_op_of(j->g, node)->weights.blocks;
}

static bool describe(const brounder *r, int id, int level, blayer *x)
{
    const oct_graph *g = r->j->g;
    const oct_node *n = &g->node[id];
    if (!in_blocks(r->j, id) || !owns(r->j, id) || !oct_layer_layout(g, id, &x->l) || x->l.matrices != 1 ||
        x->l.groups != 1)
        return false;
    x->node = id;
    x->axis = oct_channel_axis(oct_op_of(g, id), n);
    x->level = level;
    return !g->value[n->in[0]].constant && x->l.ins > 1 && x->l.ins <= MOST_DEPTH;
}

static void insert(brounder *r, const blayer *x)
{
    size_t at = r->n++;
    for (; at > 0 && r->layer[at - 1].level > x->level; at--)
        r->layer[at] = r->layer[at - 1];
    r->layer[at] = *x;
}

/* The index of the name of a layer's input in the list. It is added if it is not there. */
static size_t add_name(brounder *r, const char *name)
{
    size_t i = 0;
    while (i < r->n_names && strcmp(r->name[i], name) != 0)
        i++;
    r->name[i] = name;
    r->n_names += i == r->n_names;
    return i;
}

static oct_status list_layers(brounder *r, oct_err *err)
{
    const oct_graph *g = r->j->g;
    int *level = oct_arena_calloc(r->a, g->n_value + 1, sizeof *level);
    r->layer = oct_arena_calloc(r->a, g->n_order + 1, sizeof *r->layer);
    r->name = oct_arena_calloc(r->a, g->n_order + 1, sizeof *r->name);
    r->shown = oct_arena_calloc(r->a, g->n_order + 1, sizeof *r->shown);
    if (!level || !r->layer || !r->name || !r->shown)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_node *n = &g->node[id];
        blayer x = { .node = -1 };
        int most = 0;
        for (int k = 0; k < n->n_in; k++)
            most = n->in[k] >= 0 && level[n->in[k]] > most ? level[n->in[k]] : most;
        if (describe(r, id, most, &x)) {
            x.input = add_name(r, g->value[n->in[0]].name);
            insert(r, &x);
        }
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                level[n->out[k]] = most + in_blocks(r->j, id);
        r->levels = most + 1 > r->levels ? most + 1 : r->levels;
    }
    return OCT_OK;
}

/* ---- groups ---- */

/* The group of a layer. If there are many levels, several form a group. */
static int group_of(const brounder *r, size_t i)
{
    return r->levels > MOST_GROUPS ? r->layer[i].level * MOST_GROUPS / r->levels : r->layer[i].level;
}

static void find_group(brounder *r)
{
    for (r->to = r->from; r->to < r->n && group_of(r, r->to) == group_of(r, r->from); r->to++)
        ;
}

static void free_shown(brounder *r)
{
    for (size_t i = 0; i < r->n_shown; i++)
        for (int k = 0; k < 2; k++)
            oct_free(r->shown[i].x[k]);
    r->n_shown = 0;
}

/* Lists the values that the group reads, each once. Before the first layers both models have the same values. */
static oct_status list_shown(brounder *r, oct_err *err)
{
    r->n_shown = 0;
    for (size_t i = r->from; i < r->to; i++) {
        blayer *x = &r->layer[i];
        size_t at = 0;
        while (at < r->n_shown && (r->shown[at].name != x->input || r->shown[at].axis != x->axis))
            at++;
        x->shown = at;
        if (at < r->n_shown)
            continue;
        r->shown[r->n_shown++] = (oct_block_input){ .name = x->input, .axis = x->axis, .depth = x->l.ins };
        for (int k = 0; k < 1 + (r->layer[r->from].level > 0); k++)
            if (!(r->shown[at].x[k] = oct_calloc((size_t)x->l.ins * OCT_BLOCK_ROWS, sizeof(float))))
                return oct_nomem(err);
    }
    return OCT_OK;
}

/* ---- rounding ---- */

static oct_status new_weights(const brounder *r, blayer *x, const oct_nbits_form *f, oct_err *err)
{
    const qweights *had = r->j->constants[x->node].weights[0];
    float *scale;
    oct_tensor *qvals;
    if (!(x->made = oct_arena_calloc(r->j->arena, 1, sizeof *x->made)))
        return oct_nomem(err);
    *x->made = *had;
    OCT_TRY(oct_new_scales(r->j, &x->made->quant, 0, &scale, err));
    const int64_t dims[3] = { (int64_t)f->n, (int64_t)oct_nbits_blocks(f), (int64_t)(f->block * (size_t)f->bits / 8) };
    OCT_TRY(oct_tensor_new(r->j->lasting, OCT_U8, 3, dims, &qvals, err));
    x->made->quant.qvals = qvals;
    return OCT_OK;
}

/* Packs quantized values [k][n] by columns, and sets the SQNR of the weights in dB. */
static void put_qvals(const blayer *x, const oct_nbits_form *f, const float *w, const uint8_t *q)
{
    const oct_quant *to = &x->made->quant;
    uint8_t *packed = (uint8_t *)(uintptr_t)to->qvals->data;
    const size_t bytes = oct_nbits_column_bytes(f), blocks = oct_nbits_blocks(f);
    const uint8_t middle = (uint8_t)(1 << (f->bits - 1));
    double signal = 0, noise = 0;
    for (size_t o = 0; o < f->n; o++)
        for (size_t i = 0; i < blocks * f->block; i++) {
            const size_t b = o * blocks + i / f->block;
            const uint8_t zero = f->zero == OCT_NBITS_WHOLE ? (uint8_t)to->zp[b] : middle,
                          v = i < f->k ? q[i * f->n + o] : zero;
            uint8_t *at = packed + o * bytes + (f->bits == 4 ? i / 2 : i);
            *at = f->bits == 4 ? (uint8_t)(i % 2 ? (*at & 15) | v << 4 : v) : v;
            if (i >= f->k)
                continue;
            const double real = (double)w[(int64_t)i * x->l.in_step + (int64_t)o * x->l.out_step];
            const double d = real - (double)to->scale[b] * ((int)v - (int)zero);
            signal += real * real;
            noise += d * d;
        }
    x->made->sqnr = oct_decibels(signal, noise);
}

static oct_status round_with(const brounder *r, const blayer *x, const oct_nbits_form *f, oct_ldlq *k, oct_err *err)
{
    const float *w = oct_layer_weights(r->j->g, x->node)->data;
    const oct_block_input *in = &r->shown[x->shown];
    const oct_quant *q = &x->made->quant;
    float *to = oct_ldlq_weights(k);
    double sqnr, *noise = oct_calloc(f->n, sizeof *noise);
    bool seen;
    oct_status s = noise ? OCT_OK : OCT_ENOMEM;
    for (size_t i = 0; i < f->k; i++)
        for (size_t o = 0; o < f->n; o++)
            to[i * f->n + o] = w[(int64_t)i * x->l.in_step + (int64_t)o * x->l.out_step];
    oct_ldlq_inputs(k, in->x[1] ? in->x[1] : in->x[0]);
    if (s == OCT_OK)
        s = oct_ldlq_begin(k, NULL, &seen);
    if (s == OCT_OK && in->x[1] && seen)
        s = oct_ldlq_aim(k, in->x[1], in->x[0]);
    const oct_block_matrix m = { to, (ptrdiff_t)f->n, 1 };
    memset((void *)(uintptr_t)q->qvals->data, 0, q->qvals->bytes);
    if (s == OCT_OK)
        s = oct_quantize_blocks(&m, f, NULL, (uint8_t *)(uintptr_t)q->qvals->data, (float *)(uintptr_t)q->scale,
                                (int32_t *)(uintptr_t)q->zp, &sqnr, err);
    const oct_ldlq_blocks b = { .scale = q->scale,
                                .zero = f->zero == OCT_NBITS_WHOLE ? q->zp : NULL,
                                .block = f->block,
                                .blocks = oct_nbits_blocks(f),
                                .top = (1 << f->bits) - 1,
                                .middle = 1 << (f->bits - 1) };
    if (s == OCT_OK)
        s = oct_ldlq_round_blocks(k, &b, noise);
    if (s == OCT_OK)
        put_qvals(x, f, w, (const uint8_t *)oct_ldlq_qvals(k));
    oct_free(noise);
    return s;
}

static oct_nbits_form form_of(const brounder *r, const blayer *x)
{
    return oct_blocks_form(&r->j->constants[x->node].weights[0]->quant, oct_layer_weights(r->j->g, x->node)->dims);
}

static oct_status round_layer(void *arg, size_t i, size_t thread, oct_err *err)
{
    brounder *r = arg;
    blayer *x = &r->layer[r->from + i];
    const oct_nbits_form f = form_of(r, x);
    oct_ldlq *k = oct_ldlq_create(f.k, f.n, OCT_BLOCK_ROWS);
    const oct_status s = k ? round_with(r, x, &f, k, err) : oct_nomem(err);
    oct_ldlq_destroy(k);
    return s == OCT_ENOMEM ? oct_nomem(err) : s;
}

static oct_status round_group(brounder *r, oct_block_inputs *b, oct_pool *pool, oct_err *err)
{
    oct_status s = list_shown(r, err);
    if (s == OCT_OK)
        s = oct_block_inputs_take(b, r->shown, r->n_shown, err);
    for (size_t i = r->from; i < r->to && s == OCT_OK; i++) {
        const oct_nbits_form f = form_of(r, &r->layer[i]);
        s = new_weights(r, &r->layer[i], &f, err);
    }
    if (s == OCT_OK)
        s = oct_pool_try(pool, r->to - r->from, round_layer, r, err);
    for (size_t i = r->from; i < r->to && s == OCT_OK; i++)
        r->j->constants[r->layer[i].node].weights[0] = r->layer[i].made;
    free_shown(r);
    return s;
}

static oct_status round_groups(brounder *r, oct_block_inputs *b, oct_err *err)
{
    oct_pool *pool = oct_pool_create(r->c->o.job.threads);
    oct_status s = pool ? OCT_OK : oct_pool_fail(r->c->o.job.threads, err);
    for (r->from = 0; r->from < r->n && s == OCT_OK; r->from = r->to) {
        find_group(r);
        s = oct_stop_check(err);
        if (s == OCT_OK)
            s = round_group(r, b, pool, err);
        if (r->c->o.listener.progress)
            r->c->o.listener.progress(r->c->o.listener.arg, "rounding", (int64_t)r->to, (int64_t)r->n);
    }
    oct_pool_destroy(pool);
    return s;
}

/* ---- the method ---- */

static oct_status act(oct_trial *t, oct_conversion *c, oct_method_result *m, oct_arena *a, oct_err *err)
{
    brounder *r = t->arg;
    oct_block_inputs *b;
    OCT_TRY(list_layers(r, err));
    if (r->n == 0) {
        m->why = "no layer has inputs and weights in blocks of its own";
        return OCT_OK;
    }
    if (!(r->before = oct_arena_calloc(r->a, r->j->n_nodes + 1, sizeof *r->before)))
        return oct_nomem(err);
    for (size_t i = 0; i < r->j->n_nodes; i++)
        r->before[i] = r->j->constants[i].weights[0];
    if (c->sim)
        oct_sim_drop_runners(c->sim);
    OCT_TRY(oct_block_inputs_open(c, r->name, r->n_names, &b, err));
    const oct_status s = round_groups(r, b, err);
    oct_block_inputs_close(b);
    oct_conversion_changed(c);
    return s;
}

static void undo(oct_trial *t, oct_conversion *c)
{
    const brounder *r = t->arg;
    for (size_t i = 0; i < r->j->n_nodes; i++)
        r->j->constants[i].weights[0] = r->before[i];
    oct_conversion_changed(c);
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    static const oct_sim_mask alone = { .no_values = true, .weights = OCT_SIM_ROUNDED_WEIGHTS };
    brounder x = { .c = c, .j = c->job, .a = oct_arena_create() };
    oct_trial t = {
        .size = OCT_SIM_JUDGES, .mask = &alone, .act = act, .undo = undo, .otherwise = "to the nearest value", .arg = &x
    };
    const oct_status s = x.a ? oct_conversion_try(c, &t, r, err) : oct_nomem(err);
    if (r->measure)
        r->measure = "output SQNR of rounded weights alone";
    oct_arena_destroy(x.a);
    return s;
}

const oct_method oct_method_block_rounding = {
    .name = "block-rounding",
    .summary = "weights in blocks rounded so that their errors, and those of layers before, compensate each other",
    .step = OCT_STEP_ROUNDING,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .of_blocks = true,
    .run = run,
};
