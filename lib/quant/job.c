/* A quantization job: its steps in turn, and its decisions. */
#include "quant/job.h"

#include "forms/forms.h"
#include "base/pool.h"
#include "passes/opset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the written form asks for: DequantizeLinear takes channels from opset 13 on, blocks from 21; Conv and pooling take bfloat16 from
 * 22 on; MatMulNBits is of a domain of its own. */
static int64_t least_opset(const oct_qjob_opts *o)
{
    if (o->scheme == OCT_SCHEME_BF16)
        return 22;
    if (o->scheme == OCT_SCHEME_WEIGHT_ONLY && !o->blocks_qdq)
        return 0;
    bool blocks = o->scheme == OCT_SCHEME_WEIGHT_ONLY || (o->scheme == OCT_SCHEME_AUTO && oct_policy_uses(o->policy, OCT_SCHEME_WEIGHT_ONLY));
    return o->blocks_qdq && blocks ? 21 : 13;
}

static oct_status prepare_graph(oct_graph *g, const oct_qjob_opts *o, oct_err *err)
{
    const int64_t least = least_opset(o);
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(oct_check_types(g, err));
    if (oct_graph_opset(g, "") < least) {
        int64_t from = oct_graph_opset(g, "");
        OCT_TRY(oct_raise_opset(g, least, err));
        if (o->log && o->log->change) {
            char text[64];
            snprintf(text, sizeof text, "opset %lld to %lld", (long long)from, (long long)least);
            o->log->change(o->log->arg, "opset", text, "");
        }
    }
    OCT_TRY(oct_passes_run(g, o->disabled, o->n_disabled, o->log, err));
    if (!o->read_forms)
        return OCT_OK;
    OCT_TRY(oct_forms_read(g, NULL, NULL, err));
    oct_graph_prune(g);
    return OCT_OK;
}

static oct_status allocate(oct_qjob *j, oct_err *err)
{
    j->n_nodes = j->g->n_node;
    j->n_values = j->g->n_value;
    j->node = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->node);
    j->value = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->value);
    j->weights = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->weights);
    j->recurrence = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->recurrence);
    j->blocks = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->blocks);
    j->layer = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->layer);
    return j->node && j->value && j->weights && j->recurrence && j->blocks && j->layer ? OCT_OK : oct_nomem(err);
}

static void add_to_rule(const oct_qjob *j, oct_policy_row *row, const char *clause)
{
    const char *rule = oct_arena_printf(j->arena, "%s; %s", row->rule, clause);
    row->rule = rule ? rule : row->rule;
}

/* Activations and granularity that the target never takes give way to those that it takes, and the rule says so. (Types of weights follow
 * from those of activations: oct_weights_type.) */
static void fit_target(const oct_qjob *j, const oct_op *op, oct_policy_row *row)
{
    const oct_target *t = j->opts.target;
    const bool takes = oct_target_takes(t, row->activations, OCT_U8) || oct_target_takes(t, row->activations, OCT_S8);
    const bool on_integers = row->scheme == OCT_SCHEME_STATIC || row->scheme == OCT_SCHEME_DYNAMIC;
    if (!op || op->quant == OCT_QUANT_NONE || !on_integers)
        return;
    if (row->scheme == OCT_SCHEME_STATIC && !takes) {
        row->activations = row->activations == OCT_U8 ? OCT_S8 : OCT_U8;
        add_to_rule(j, row, row->activations == OCT_S8 ? "the target takes s8 activations" : "the target takes u8 activations");
    }
    if (row->per_channel && !oct_target_per_channel(t, op->type)) {
        row->per_channel = false;
        add_to_rule(j, row, "the target takes one scale for all weights");
    }
}

static void read_policy(oct_qjob *j)
{
    const char *asked = oct_arena_printf(j->arena, "scheme:%s (asked for)", oct_scheme_name(j->opts.scheme));
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        oct_policy_row *row = &j->node[id].row;
        const oct_op *op = oct_op_of(j->g, id);
        oct_policy_match(j->opts.policy, j->g, id, row);
        if (j->opts.scheme != OCT_SCHEME_AUTO && row->scheme != OCT_SCHEME_FLOAT) {
            bool half = j->opts.scheme == OCT_SCHEME_FP16 || j->opts.scheme == OCT_SCHEME_BF16;
            bool no_form = op && op->quant == OCT_QUANT_RECURRENT && j->opts.scheme != OCT_SCHEME_DYNAMIC && !half;
            row->scheme = no_form ? OCT_SCHEME_FLOAT : j->opts.scheme;
            row->rule = asked ? asked : row->rule;
        }
        fit_target(j, op, row);
        j->layer[j->n_layer++] = id;
    }
}

static bool runs_on_integers(const qnode *q)
{
    return q->role != OCT_ROLE_FLOAT && q->role != OCT_ROLE_HALF && q->role != OCT_ROLE_BLOCKS;
}

static oct_scheme scheme_of(const qnode *q)
{
    switch (q->role) {
    case OCT_ROLE_FLOAT: return OCT_SCHEME_FLOAT;
    case OCT_ROLE_DYNAMIC: return OCT_SCHEME_DYNAMIC;
    case OCT_ROLE_HALF: return q->row.scheme;
    case OCT_ROLE_BLOCKS: return OCT_SCHEME_WEIGHT_ONLY;
    default: return OCT_SCHEME_STATIC;
    }
}

/* What a layer is meant to be; statistics may still keep it float. */
static void describe_plan(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const qnode *q = &j->node[id];
    oct_layer_decision *d = &j->node[id].decision;
    *d = (oct_layer_decision){ .graph = j->g, .where = j->where, .node = id, .name = n->name, .op = n->op, .why = q->why,
                               .integer = runs_on_integers(q), .scheme = scheme_of(q), .sqnr_weights = NAN, .sqnr_output = NAN };
    d->weight_count = oct_layer_weight_count(j->g, id);
}

oct_status oct_job_open(oct_arena *a, oct_graph *g, const oct_qjob_opts *opts, const char *where, oct_qjob **job, oct_err *err)
{
    oct_qjob *j = oct_arena_calloc(a, 1, sizeof *j);
    if (!j)
        return oct_nomem(err);
    j->arena = a;
    j->where = where;
    j->g = g;
    j->lasting = g->arena;
    j->opts = *opts;
    j->observer = oct_observer_default();
    OCT_TRY(allocate(j, err));
    read_policy(j);
    OCT_TRY(oct_job_place(j, err));
    for (size_t i = 0; i < j->n_layer; i++)
        describe_plan(j, j->layer[i]);
    *job = j;
    return oct_bodies_open(j, err);
}

oct_status oct_qjob_create(oct_graph *g, const oct_qjob_opts *opts, oct_qjob **job, oct_err *err)
{
    OCT_TRY(prepare_graph(g, opts, err));
    oct_arena *a = oct_arena_create();
    oct_qjob *j;
    if (!a)
        return oct_nomem(err);
    oct_status s = oct_job_open(a, g, opts, "", &j, err);
    if (s == OCT_OK)
        s = oct_bodies_list(j, err);
    if (s == OCT_OK)
        *job = j;
    else
        oct_arena_destroy(a);
    return s;
}

void oct_qjob_destroy(oct_qjob *j)
{
    if (!j)
        return;
    oct_calib_destroy(j->exact);
    oct_calib_destroy(j->rounded);
    oct_arena_destroy(j->arena);
}

const char *const *oct_qjob_values(const oct_qjob *j, const int **axes, size_t *n)
{
    *n = j->n_all_wanted;
    if (axes)
        *axes = j->all_axes;
    return j->all_wanted;
}

/* Means of the product's input channels from a table; NULL when it has none. */
static oct_status channel_means(const oct_qjob *j, const oct_calib *c, int value, double **means, size_t *n, oct_err *err)
{
    const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, value)) : NULL;
    *means = NULL;
    *n = 0;
    if (!t || t->chan.channels == 0)
        return OCT_OK;
    *n = t->chan.channels;
    if (!(*means = oct_calloc(*n, sizeof **means)))
        return oct_nomem(err);
    for (size_t i = 0; i < *n; i++)
        (*means)[i] = oct_chan_mean(&t->chan.c[i]);
    return OCT_OK;
}

/* rounded[i] = real[i] + what rounding did to the mean on the measured samples; NULL: not measured. */
static oct_status rounded_means(const oct_qjob *j, int value, const double *real, size_t n, double **rounded, oct_err *err)
{
    double *a = NULL;
    size_t n_a = 0, n_b = 0;
    oct_status s = channel_means(j, j->exact, value, &a, &n_a, err);
    if (s == OCT_OK)
        s = channel_means(j, j->rounded, value, rounded, &n_b, err);
    const bool measured = s == OCT_OK && a && *rounded && n_a == n && n_b == n;
    for (size_t i = 0; measured && i < n; i++)
        (*rounded)[i] = real[i] + ((*rounded)[i] - a[i]);
    if (!measured) {
        oct_free(*rounded);
        *rounded = NULL;
    }
    oct_free(a);
    return s;
}

static oct_status product_weights(oct_qjob *j, const oct_calib *c, int id, oct_err *err)
{
    double *real = NULL, *rounded = NULL;
    size_t n = 0;
    int x = j->g->node[id].in[0];
    bool correct = j->node[id].role == OCT_ROLE_PRODUCT && (j->opts.bias_weights || j->rounded) && oct_op_of(j->g, id)->weights.bias;
    oct_status s = correct ? channel_means(j, c, x, &real, &n, err) : OCT_OK;
    if (s == OCT_OK && real)
        s = rounded_means(j, x, real, n, &rounded, err);
    if (s == OCT_OK)
        s = oct_quantize_weights(j, id, real, rounded, n, err);
    oct_free(real);
    oct_free(rounded);
    return s;
}

static oct_status layer_weights(oct_qjob *j, const oct_calib *c, int id, oct_pool *pool, oct_err *err)
{
    switch (j->node[id].role) {
    case OCT_ROLE_DYNAMIC:
        if (oct_op_of(j->g, id)->quant == OCT_QUANT_RECURRENT)
            return oct_quantize_recurrent(j, id, err);
        return product_weights(j, c, id, err);
    case OCT_ROLE_PRODUCT: return product_weights(j, c, id, err);
    case OCT_ROLE_BLOCKS: return oct_make_blocks(j, id, pool, err);
    default: return OCT_OK;
    }
}

/* Threads for rounding in blocks; NULL when no layer needs them. */
static oct_status blocks_pool(const oct_qjob *j, oct_pool **pool, oct_err *err)
{
    bool any = false;
    *pool = NULL;
    for (size_t i = 0; i < j->n_layer; i++)
        any |= j->node[j->layer[i]].role == OCT_ROLE_BLOCKS && !j->blocks[j->layer[i]];
    if (!any || (*pool = oct_pool_create(j->opts.threads)))
        return OCT_OK;
    return oct_pool_fail(j->opts.threads, err);
}

static oct_status decide_weights(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    char text[300];
    oct_pool *pool;
    OCT_TRY(blocks_pool(j, &pool, err));
    oct_status s = OCT_OK;
    for (size_t i = 0; i < j->n_layer && s == OCT_OK; i++) {
        s = layer_weights(j, c, j->layer[i], pool, err);
        if (s != OCT_OK)
            oct_within(err, "%s", oct_node_text(j->g, j->layer[i], text, sizeof text));
    }
    oct_pool_destroy(pool);
    return s;
}

static void describe(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const qnode *q = &j->node[id];
    const oct_tensor *first = oct_layer_weights(j->g, id);
    const qweights *w = j->weights[id];
    oct_layer_decision *d = &j->node[id].decision;
    describe_plan(j, id);
    if (q->role == OCT_ROLE_HALF && first && first->count) {
        d->weights = oct_half_type(j, id);
        d->sqnr_weights = oct_half_sqnr(first, d->weights);
    }
    const qblocks *b = q->role == OCT_ROLE_BLOCKS ? j->blocks[id] : NULL;
    if (b) {
        d->weights = b->quant.dtype;
        d->block = (int)b->form.block;
        d->sqnr_weights = b->sqnr;
    } else if (w) {
        d->weights = w->dtype;
        d->per_channel = w->channels > 1;
        d->remedy = w->remedy;
        d->sqnr_weights = w->sqnr;
    }
    int v = n->n_out && n->out[0] >= 0 ? oct_quantized_output(j, id) : -1;
    if (v >= 0 && j->value[v].has_grid && d->integer && q->role != OCT_ROLE_CLAMP) {
        d->observer = j->value[v].observer;
        d->scale = j->value[v].q.scale;
        d->zero_point = j->value[v].q.zero;
        d->sqnr_output = j->value[v].sqnr;
    }
}

oct_status oct_qjob_decide(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    /* A tensor without statistics takes its neighbours out, which may take others along: place again until none is left. */
    OCT_TRY(oct_job_place(j, err)); /* forgets grids of an earlier decision */
    for (bool changed = true; changed;) {
        OCT_TRY(oct_choose_grids(j, c, &changed, err));
        OCT_TRY(oct_half_check(j, c, &changed, err));
        if (changed)
            OCT_TRY(oct_job_place(j, err));
    }
    OCT_TRY(decide_weights(j, c, err));
    for (size_t i = 0; i < j->n_layer; i++)
        describe(j, j->layer[i]);
    return oct_bodies_decide(j, c, err);
}

oct_status oct_quantized_copy(oct_qjob *j, oct_graph **copy, oct_err *err)
{
    oct_graph *own = j->g, *c;
    OCT_TRY(oct_graph_clone(own, &c, err));
    oct_bodies_move(j, c); /* indices are the same in both */
    oct_status s = oct_qjob_annotate(j, err);
    oct_bodies_move(j, own);
    if (s != OCT_OK)
        oct_graph_destroy(c);
    else
        *copy = c;
    return s;
}

bool oct_qjob_has_grids(const oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++)
        if (j->value[v].wanted && !j->value[v].constant)
            return true;
    for (size_t i = 0; i < j->n_body; i++)
        if (oct_qjob_has_grids(j->body[i].job))
            return true;
    return false;
}

oct_observer_spec oct_qjob_observer(const oct_qjob *j)
{
    return j->observer;
}

size_t oct_qjob_n_layers(const oct_qjob *j)
{
    return j->n_all;
}

const oct_layer_decision *oct_qjob_layer(const oct_qjob *j, size_t i)
{
    return &j->all[i].job->node[j->all[i].node].decision;
}
