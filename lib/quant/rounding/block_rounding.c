/* Rounds weights in blocks so that their errors compensate each other on the layer's inputs (GPTQ: Frantar et al.,
 * 2023; ldlq.h).
 *
 * Layers are processed in groups, in the order of the graph. No layer of a group depends on another one of it. Inputs
 * come from the model in which earlier groups are already rounded. Weights are first replaced by those that come
 * closest in least squares, on these inputs, to the float model's results on its own inputs (GPTAQ: Li et al., 2025).
 * This also compensates errors of earlier layers. Scales and zero points are those that the weights get without samples
 * (blocks.h); they are chosen before any weight of a column is rounded, because inputs are rounded in the order of
 * their moments, across blocks.
 *
 * Layers in the bodies of If, Loop and Scan are rounded like those outside. Where several bodies read one matrix, as
 * the branches of a merged decoder do, it is rounded once on the inputs of all of them, so that the file keeps one.
 * Experts of a MoE come after all layers (expert_rounding.h). */
#include "quant/rounding/block_inputs.h"

#include "base/stop.h"
#include "eval/metrics/summary.h"
#include "ops/core/block_matrix.h"
#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/methods/trial.h"
#include "quant/rounding/expert_rounding.h"
#include "quant/rounding/ldlq.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/blocks.h"
#include "quant/weights/constants.h"

#include <math.h>
#include <string.h>

/* A model with bodies runs from its beginning for each group. */
enum { MOST_DEPTH = 16384, MOST_GROUPS = 48, MOST_GROUPS_OF_BODIES = 12 };

/* A layer, and those of other graphs that have the same matrix. */
typedef struct blayer {
    oct_qjob *j; /* of the graph that holds it */
    int node;
    oct_weight_layout l;
    size_t *input; /* [n_input]: the indices of the names that they read, increasing */
    size_t n_input;
    int axis;
    int level;           /* how many layers in blocks precede it on the longest path */
    size_t shown;        /* the index of its inputs among those of the group */
    struct blayer *also; /* the next layer of another graph with the same matrix; NULL: there is none */
    qweights *made;
} blayer;

typedef struct brounder {
    oct_conversion *c;
    oct_qjob *j;
    oct_arena *a;
    blayer *layer;      /* by level, and within a level in the order of the graph */
    size_t n, from, to; /* layers from..to are the current group */
    int levels;
    bool bodies;       /* some of the layers are in bodies */
    size_t n_all;      /* the number of nodes in all graphs */
    const char **name; /* [n_names] the values that the layers read, in the order of the graph */
    size_t n_names;
    oct_block_input *shown;
    size_t n_shown;
    qweights **before; /* [n_all]: by graph and node */
    qstored **stored;  /* [n_all]: the same for weights that are stored */
    size_t at;         /* the next of them */
} brounder;

/* Calls a function for a job and the jobs of its bodies. */
static void for_each_job(oct_qjob *j, void (*f)(void *arg, oct_qjob *j), void *arg)
{
    f(arg, j);
    for (size_t i = 0; i < j->n_body; i++)
        for_each_job(j->body[i].job, f, arg);
}

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

static bool describe(oct_qjob *j, int id, int level, blayer *x)
{
    const oct_graph *g = j->g;
    const oct_node *n = &g->node[id];
    if (!in_blocks(j, id) || !owns(j, id) || !oct_layer_layout(g, id, &x->l) || x->l.matrices != 1 || x->l.groups != 1)
        return false;
    x->j = j;
    x->node = id;
    x->axis = oct_channel_axis(oct_op_of(g, id), n);
    x->level = level;
    return !g->value[n->in[0]].constant && x->l.ins > 1 && x->l.ins <= MOST_DEPTH;
}

static bool same_form(const oct_quant *a, const oct_quant *b)
{
    return a->dtype == b->dtype && a->block == b->block && a->axis == b->axis && a->n == b->n;
}

/* Whether layers of two graphs have the same matrix in the same form. Exporters may write it into each body. */
static bool same_matrix(const blayer *a, const blayer *b)
{
    const oct_tensor *x = oct_layer_weights(a->j->g, a->node), *y = oct_layer_weights(b->j->g, b->node);
    return a->j != b->j && a->axis == b->axis && a->l.in_step == b->l.in_step && a->l.out_step == b->l.out_step &&
           same_form(&a->j->constants[a->node].weights[0]->quant, &b->j->constants[b->node].weights[0]->quant) &&
           x->count == y->count && a->l.ins == b->l.ins &&
           (x->data == y->data || memcmp(x->data, y->data, x->bytes) == 0);
}

/* The index of the name of a layer's input in the list. It is added if it is not there. Branches may give one name to
 * different values: what such layers read is taken for one. */
static size_t add_name(brounder *r, const char *name)
{
    size_t i = 0;
    while (i < r->n_names && strcmp(r->name[i], name) != 0)
        i++;
    r->name[i] = name;
    r->n_names += i == r->n_names;
    return i;
}

/* Adds a name to what a layer reads. */
static oct_status add_input(const brounder *r, blayer *x, size_t name, oct_err *err)
{
    size_t i = 0;
    while (i < x->n_input && x->input[i] < name)
        i++;
    if (i < x->n_input && x->input[i] == name)
        return OCT_OK;
    size_t *to = oct_arena_calloc(r->a, x->n_input + 1, sizeof *to);
    if (!to)
        return oct_nomem(err);
    for (size_t k = 0; k <= x->n_input; k++)
        to[k] = k < i ? x->input[k] : k == i ? name : x->input[k - 1];
    x->input = to;
    x->n_input++;
    return OCT_OK;
}

/* Inserts by level. A layer whose matrix is there already joins the layer that has it. */
static oct_status insert(brounder *r, blayer x, size_t name, oct_err *err)
{
    for (size_t i = 0; r->bodies && i < r->n; i++)
        if (same_matrix(&r->layer[i], &x)) {
            blayer *also = oct_arena_memdup(r->a, &x, sizeof x);
            if (!also)
                return oct_nomem(err);
            also->also = r->layer[i].also;
            r->layer[i].also = also;
            return add_input(r, &r->layer[i], name, err);
        }
    OCT_TRY(add_input(r, &x, name, err));
    size_t at = r->n++;
    for (; at > 0 && r->layer[at - 1].level > x.level; at--)
        r->layer[at] = r->layer[at - 1];
    r->layer[at] = x;
    return OCT_OK;
}

static oct_status list_graph(brounder *r, oct_qjob *j, const int *outer, int least, int *most, oct_err *err);

/* Lists the layers of a node's bodies. most: the level of its inputs; at the end, that of its outputs. */
static oct_status list_bodies(brounder *r, oct_qjob *j, int id, const int *level, int *most, oct_err *err)
{
    const int least = *most;
    for (size_t i = 0; i < j->n_body; i++)
        if (j->body[i].node == id)
            OCT_TRY(list_graph(r, j->body[i].job, level, least, most, err));
    return OCT_OK;
}

/* Lists the layers of a graph. outer: the levels of the values around it; least: that of its inputs. *most is raised to
 * the level of its last layers. */
static oct_status list_graph(brounder *r, oct_qjob *j, const int *outer, int least, int *most, oct_err *err)
{
    const oct_graph *g = j->g;
    int *level = oct_arena_calloc(r->a, g->n_value + 1, sizeof *level);
    if (!level)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        level[v] = g->value[v].outer >= 0 ? outer[g->value[v].outer] : g->value[v].is_input ? least : 0;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_node *n = &g->node[id];
        blayer x = { .node = -1 };
        int high = 0;
        for (int k = 0; k < n->n_in; k++)
            high = n->in[k] >= 0 && level[n->in[k]] > high ? level[n->in[k]] : high;
        if (describe(j, id, high, &x))
            OCT_TRY(insert(r, x, add_name(r, oct_value_name(g, n->in[0])), err));
        r->levels = high + 1 > r->levels ? high + 1 : r->levels;
        OCT_TRY(list_bodies(r, j, id, level, &high, err));
        high += in_blocks(j, id);
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                level[n->out[k]] = high;
        *most = high > *most ? high : *most;
    }
    return OCT_OK;
}

static void count_nodes(void *arg, oct_qjob *j)
{
    brounder *r = arg;
    r->n_all += j->n_nodes;
    r->bodies |= j != r->j;
}

static bool is_one_of(const blayer *x, const oct_qjob *j, int node)
{
    while (x && (x->j != j || x->node != node))
        x = x->also;
    return x != NULL;
}

/* Whether a graph uses the matrix of a layer in blocks in another way than the layers that were found, which would make
 * a file keep it twice. */
static bool is_used_otherwise(const oct_qjob *j, const blayer *x)
{
    const void *matrix = oct_layer_weights(x->j->g, x->node)->data;
    bool any = false;
    for (size_t i = 0; i < j->n_layer && !any; i++) {
        const int id = j->layer[i];
        const oct_tensor *w = in_blocks(j, id) ? oct_layer_weights(j->g, id) : NULL;
        any = w && w->data == matrix && !is_one_of(x, j, id);
    }
    for (size_t i = 0; i < j->n_body && !any; i++)
        any = is_used_otherwise(j->body[i].job, x);
    return any;
}

static void drop_shared(brounder *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n; i++)
        if (!is_used_otherwise(r->j, &r->layer[i]))
            r->layer[kept++] = r->layer[i];
    r->n = kept;
}

static oct_status list_layers(brounder *r, oct_err *err)
{
    int most = 0;
    for_each_job(r->j, count_nodes, r);
    r->layer = oct_arena_calloc(r->a, r->n_all + 1, sizeof *r->layer);
    r->name = oct_arena_calloc(r->a, r->n_all + 1, sizeof *r->name);
    r->shown = oct_arena_calloc(r->a, r->n_all + 1, sizeof *r->shown);
    if (!r->layer || !r->name || !r->shown)
        return oct_nomem(err);
    OCT_TRY(list_graph(r, r->j, NULL, 0, &most, err));
    if (r->bodies)
        drop_shared(r);
    return OCT_OK;
}

/* ---- groups ---- */

/* The group of a layer. If there are many levels, several form a group. */
static int group_of(const brounder *r, size_t i)
{
    const int most = r->bodies ? MOST_GROUPS_OF_BODIES : MOST_GROUPS;
    return r->levels > most ? r->layer[i].level * most / r->levels : r->layer[i].level;
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

static bool reads_same(const oct_block_input *a, const blayer *x)
{
    return a->axis == x->axis && a->n_names == x->n_input &&
           memcmp(a->name, x->input, x->n_input * sizeof *x->input) == 0;
}

/* Lists the values that the group reads, each once. Before the first layers both models have the same values. */
static oct_status list_shown(brounder *r, oct_err *err)
{
    r->n_shown = 0;
    for (size_t i = r->from; i < r->to; i++) {
        blayer *x = &r->layer[i];
        size_t at = 0;
        while (at < r->n_shown && !reads_same(&r->shown[at], x))
            at++;
        x->shown = at;
        if (at < r->n_shown)
            continue;
        r->shown[r->n_shown++] =
            (oct_block_input){ .name = x->input, .n_names = x->n_input, .axis = x->axis, .depth = x->l.ins };
        for (int k = 0; k < 1 + (r->layer[r->from].level > 0); k++)
            if (!(r->shown[at].x[k] = oct_calloc((size_t)x->l.ins * OCT_BLOCK_ROWS, sizeof(float))))
                return oct_nomem(err);
    }
    return OCT_OK;
}

/* ---- rounding ---- */

static oct_status new_weights(const brounder *r, blayer *x, const oct_nbits_form *f, oct_err *err)
{
    const qweights *had = x->j->constants[x->node].weights[0];
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
    const float *w = oct_layer_weights(x->j->g, x->node)->data;
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
    const oct_block_matrix m = { to, (int64_t)f->n, 1, OCT_F32 };
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

static oct_nbits_form form_of(const blayer *x)
{
    return oct_blocks_form(&x->j->constants[x->node].weights[0]->quant, oct_layer_weights(x->j->g, x->node)->dims);
}

static oct_status round_layer(void *arg, size_t i, size_t thread, oct_err *err)
{
    brounder *r = arg;
    blayer *x = &r->layer[r->from + i];
    const oct_nbits_form f = form_of(x);
    oct_ldlq *k = oct_ldlq_create(f.k, f.n, OCT_BLOCK_ROWS);
    const oct_status s = k ? round_with(r, x, &f, k, err) : oct_nomem(err);
    oct_ldlq_destroy(k);
    return s == OCT_ENOMEM ? oct_nomem(err) : s;
}

/* Layers that share a matrix share its rounded values; each refers to the value of its own graph. */
static oct_status put_weights(const blayer *x, oct_err *err)
{
    for (const blayer *of = x; of; of = of->also) {
        qweights **to = &of->j->constants[of->node].weights[0], *own = x->made;
        if (of != x && !(own = oct_arena_memdup(of->j->arena, x->made, sizeof *own)))
            return oct_nomem(err);
        own->matrix = (*to)->matrix;
        *to = own;
    }
    return OCT_OK;
}

static oct_status round_group(brounder *r, oct_block_inputs *b, oct_pool *pool, oct_err *err)
{
    oct_status s = list_shown(r, err);
    if (s == OCT_OK)
        s = oct_block_inputs_take(b, r->shown, r->n_shown, err);
    for (size_t i = r->from; i < r->to && s == OCT_OK; i++) {
        const oct_nbits_form f = form_of(&r->layer[i]);
        s = new_weights(r, &r->layer[i], &f, err);
    }
    if (s == OCT_OK)
        s = oct_pool_try(pool, r->to - r->from, round_layer, r, err);
    for (size_t i = r->from; i < r->to && s == OCT_OK; i++)
        s = put_weights(&r->layer[i], err);
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

static void keep_weights(void *arg, oct_qjob *j)
{
    brounder *r = arg;
    for (size_t i = 0; i < j->n_nodes; i++) {
        r->stored[r->at] = j->constants[i].stored;
        r->before[r->at++] = j->constants[i].weights[0];
    }
}

static void restore_weights(void *arg, oct_qjob *j)
{
    brounder *r = arg;
    for (size_t i = 0; i < j->n_nodes; i++) {
        j->constants[i].stored = r->stored[r->at];
        j->constants[i].weights[0] = r->before[r->at++];
    }
}

static oct_status act(oct_trial *t, oct_conversion *c, oct_method_result *m, oct_arena *a, oct_err *err)
{
    brounder *r = t->arg;
    oct_block_inputs *b;
    OCT_TRY(list_layers(r, err));
    const bool experts = oct_has_expert_blocks(r->j);
    if (r->n == 0 && !experts) {
        m->why = "no layer has inputs and weights in blocks of its own";
        return OCT_OK;
    }
    r->before = oct_arena_calloc(r->a, r->n_all + 1, sizeof *r->before);
    r->stored = oct_arena_calloc(r->a, r->n_all + 1, sizeof *r->stored);
    if (!r->before || !r->stored)
        return oct_nomem(err);
    r->at = 0;
    for_each_job(r->j, keep_weights, r);
    if (c->sim)
        oct_sim_drop_runners(c->sim);
    oct_status s = OCT_OK;
    if (r->n) {
        OCT_TRY(oct_block_inputs_open(c, r->name, r->n_names, &b, err));
        s = round_groups(r, b, err);
        oct_block_inputs_close(b);
    }
    if (s == OCT_OK && experts)
        s = oct_round_experts(c, err);
    oct_conversion_changed(c);
    return s;
}

static void undo(oct_trial *t, oct_conversion *c)
{
    brounder *r = t->arg;
    r->at = 0;
    for_each_job(r->j, restore_weights, r);
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
    .summary = "compensated-rounding for weights in blocks, and for errors of layers before",
    .step = OCT_STEP_ROUNDING,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .of_blocks = true,
    .run = run,
};
