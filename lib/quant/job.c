/* A quantization job: its steps in turn, and its decisions. */
#include "quant/job.h"

#include "base/stop.h"
#include "passes/fuse.h"
#include "passes/opset.h"
#include "passes/to_float32.h"
#include "passes/unfold.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The opset that the written form needs: DequantizeLinear supports channels from 13 and blocks from 21 on; Conv and
 * pooling support bfloat16 from 22 on. MatMulNBits belongs to a domain of its own. */
static int64_t least_opset(const oct_qjob_opts *o, const oct_graph *g)
{
    if (o->scheme == OCT_SCHEME_BF16)
        return oct_target_bfloat16(o->target) ? 22 : 13;
    if (o->scheme == OCT_SCHEME_WEIGHT_ONLY && !o->blocks_qdq)
        return 0;
    bool blocks = o->may_block || o->scheme == OCT_SCHEME_WEIGHT_ONLY ||
                  (o->scheme == OCT_SCHEME_AUTO && oct_policy_asks_blocks(o->policy, g));
    const bool wide = oct_target_onnx_alone(o->target) && oct_policy_uses_16_bits(o->policy);
    return (o->blocks_qdq && blocks) || wide ? 21 : 13;
}

/* Logs which constants were not folded after all. */
static void say_unfolded(const oct_pass_log *log, size_t n, size_t saved)
{
    char text[96];
    snprintf(text, sizeof text, "%zu constant%s computed by the model after all: %.1f kB less in the file", n,
             n > 1 ? "s are" : " is", (double)saved / 1000);
    if (n && log && log->change)
        log->change(log->arg, "fold", text, "");
}

/* Turns a model of another float type into one of float32, so that its layers are found and can be quantized. Before
 * that, functions are inlined, and constants are computed in their own type. */
static oct_status widen_floats(oct_graph *g, const oct_qjob_opts *o, oct_dtype *source, oct_err *err)
{
    oct_widened w;
    if (o->scheme == OCT_SCHEME_FLOAT || !oct_has_narrow_floats(g))
        return OCT_OK;
    OCT_TRY(oct_passes_flatten(g, err));
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(oct_unfold_moves(g, err)); /* a table and its transpose remain one constant */
    OCT_TRY(oct_widen_floats(g, false, &w, err));
    *source = *source ? *source : w.widest;
    if (w.widest && o->log && o->log->change) {
        char text[96];
        snprintf(text, sizeof text, "%s is read as float32: %zu constants of %lld elements", oct_dtype_name(w.widest),
                 w.constants, (long long)w.elements);
        o->log->change(o->log->arg, "widen", text, "");
    }
    return oct_infer_shapes(g, err);
}

static oct_status prepare_graph(oct_graph *g, const oct_qjob_opts *o, oct_dtype *source, oct_err *err)
{
    const int64_t least = least_opset(o, g);
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
    OCT_TRY(widen_floats(g, o, source, err));
    OCT_TRY(oct_passes_run(g, o->disabled, o->n_disabled, o->log, err));
    if (oct_target_norms_are_convs(o->target))
        OCT_TRY(oct_norms_to_convs(g, o->log, err));
    if (!oct_scheme_is_half(o->scheme))
        return OCT_OK;
    size_t n, saved;
    OCT_TRY(oct_unfold_half(g, &n, &saved, err));
    say_unfolded(o->log, n, saved);
    return OCT_OK;
}

oct_status oct_job_unfold(oct_qjob *j, oct_err *err)
{
    size_t n, saved;
    OCT_TRY(oct_unfold_constants(j, &n, &saved, err));
    say_unfolded(j->opts.log, n, saved);
    return OCT_OK;
}

static oct_status allocate(oct_qjob *j, oct_err *err)
{
    j->n_nodes = j->g->n_node;
    j->n_values = j->g->n_value;
    j->node = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->node);
    j->value = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->value);
    j->layer = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->layer);
    return j->node && j->value && j->layer ? oct_constraints_open(&j->constraints, j->arena, j->n_nodes, err)
                                           : oct_nomem(err);
}

oct_status oct_new_scales(oct_qjob *j, oct_quant *q, int32_t zero, float **scale, oct_err *err)
{
    int32_t *zp = oct_arena_alloc(j->lasting, (size_t)q->n * sizeof *zp);
    q->scale = *scale = oct_arena_calloc(j->lasting, (size_t)q->n, sizeof **scale);
    q->zp = zp;
    for (int i = 0; zp && i < q->n; i++)
        zp[i] = zero;
    return zp && *scale ? OCT_OK : oct_nomem(err);
}

static void add_to_rule(const oct_qjob *j, oct_policy_row *row, const char *clause)
{
    const char *rule = clause ? oct_arena_printf(j->arena, "%s; %s", row->rule, clause) : NULL;
    row->rule = rule ? rule : row->rule;
}

/* A type of activations to replace one that the target does not support: with the same number of bits if possible. */
static oct_dtype taken_instead(const oct_target *t, oct_dtype asked)
{
    static const oct_dtype narrow[] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16 },
                           wide[] = { OCT_U16, OCT_S16, OCT_U8, OCT_S8 };
    const oct_dtype *type = oct_dtype_bits(asked) == 8 ? narrow : wide;
    size_t i = 0;
    while (i + 1 < OCT_COUNT(narrow) && !oct_takes_activations(t, type[i]))
        i++;
    return type[i];
}

/* Replaces types of activations and granularities that the target never supports by those that it does, and says so in
 * the rule. (Types of weights follow from those of activations: oct_weights_type.) */
static void fit_target(const oct_qjob *j, const oct_op *op, oct_policy_row *row)
{
    const oct_target *t = j->opts.target;
    const bool rounded = op && oct_target_lists(t, op->type, OCT_TARGET_ROUNDED),
               fixed = row->scheme == OCT_SCHEME_STATIC || rounded;
    if (!op || (op->quant == OCT_QUANT_NONE && !rounded) || !(fixed || row->scheme == OCT_SCHEME_DYNAMIC))
        return;
    row->symmetric |= oct_target_symmetric(t);
    if (fixed && !oct_takes_activations(t, row->activations)) {
        row->unmet = row->types_asked ? row->activations : OCT_UNDEFINED;
        row->activations = taken_instead(t, row->activations);
        add_to_rule(j, row,
                    oct_arena_printf(j->arena, "the target takes %s activations",
                                     oct_policy_activations(row->activations)));
    }
    if (row->per_channel && !oct_target_per_channel(t, op->type)) {
        row->per_channel = false;
        add_to_rule(j, row, "the target takes one scale for all weights");
    }
}

size_t oct_qjob_unmet(const oct_qjob *j, oct_dtype *asked, oct_dtype *taken)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n_all; i++) {
        const oct_policy_row *row = &j->all[i].job->node[j->all[i].node].row;
        if (row->unmet == OCT_UNDEFINED)
            continue;
        if (n++ == 0) {
            *asked = row->unmet;
            *taken = row->activations;
        }
    }
    return n;
}

typedef struct void_rules {
    oct_arena *arena;
    oct_void_rule *v;
    size_t n, room;
} void_rules;

static oct_status add_void(void_rules *x, const char *rule, const char *why, oct_err *err)
{
    for (size_t i = 0; i < x->n; i++)
        if (strcmp(x->v[i].rule, rule) == 0 && strcmp(x->v[i].why, why) == 0) {
            x->v[i].nodes++;
            return OCT_OK;
        }
    if (!OCT_GROW(x->arena, x->v, x->n, x->room))
        return oct_nomem(err);
    x->v[x->n++] = (oct_void_rule){ rule, why, 1 };
    return OCT_OK;
}

oct_status oct_qjob_void_rules(const oct_qjob *j, oct_arena *arena, oct_void_rule **list, size_t *n, oct_err *err)
{
    void_rules x = { .arena = arena };
    const oct_scheme s = j->opts.scheme;
    const bool rounds = s == OCT_SCHEME_AUTO || s == OCT_SCHEME_STATIC || s == OCT_SCHEME_FLOAT;
    const char *decides = oct_arena_printf(arena, "--scheme %s decides there", oct_scheme_name(s));
    const char *no_types = oct_arena_printf(arena, "--scheme %s rounds no activations beforehand", oct_scheme_name(s));
    if (!decides || !no_types)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_all; i++) {
        const oct_qjob *of = j->all[i].job;
        const oct_policy_row *row = &of->node[j->all[i].node].row;
        const oct_op *op = oct_op_of(of->g, j->all[i].node);
        if (!op || op->quant == OCT_QUANT_NONE)
            continue;
        if (row->scheme_replaced)
            OCT_TRY(add_void(&x, row->scheme_replaced, decides, err));
        if (row->types_rule && !rounds && s != OCT_SCHEME_DYNAMIC && row->scheme == s)
            OCT_TRY(add_void(&x, row->types_rule, no_types, err));
        if (row->observer_rule && !rounds && row->scheme == s)
            OCT_TRY(add_void(&x, row->observer_rule, no_types, err));
        if (row->observer_replaced)
            OCT_TRY(add_void(&x, row->observer_replaced, OCT_POLICY_OBSERVER " replaces its observer", err));
    }
    *list = x.v;
    *n = x.n;
    return OCT_OK;
}

int64_t oct_graph_macs(const oct_graph *g)
{
    int64_t macs = 0;
    for (size_t i = 0; i < g->n_order; i++)
        if (oct_node_has_weights(g, g->order[i]) && __builtin_add_overflow(macs, oct_node_macs(g, g->order[i]), &macs))
            return INT64_MAX;
    return macs ? macs : 1;
}

static oct_status read_policy(oct_qjob *j, oct_err *err)
{
    const oct_graph *whole = j->g;
    while (whole->outer)
        whole = whole->outer;
    oct_policy_facts facts = { .calib = j->opts.calib, .macs = oct_graph_macs(whole), .late = j->opts.late };
    j->n_layer = 0;
    const char *asked = oct_arena_printf(j->arena, "scheme:%s (asked for)", oct_scheme_name(j->opts.scheme));
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        oct_policy_row *row = &j->node[id].policy;
        const oct_op *op = oct_op_of(j->g, id);
        facts.path = *j->where ? oct_arena_printf(j->arena, "%s%s", j->where, oct_node_label(j->g, id)) : NULL;
        if (*j->where && !facts.path)
            return oct_nomem(err);
        oct_policy_match(j->opts.policy, j->g, id, &facts, row);
        if (j->opts.scheme != OCT_SCHEME_AUTO && row->scheme != OCT_SCHEME_FLOAT) {
            bool no_form = op && op->quant == OCT_QUANT_RECURRENT && j->opts.scheme == OCT_SCHEME_STATIC &&
                           !oct_scheme_is_half(j->opts.scheme);
            if (row->asked && row->scheme != j->opts.scheme)
                row->scheme_replaced = row->rule;
            row->asked &= row->scheme == j->opts.scheme; /* a rule of another scheme did not ask for this one */
            row->scheme = no_form ? OCT_SCHEME_FLOAT : j->opts.scheme;
            row->rule = asked ? asked : row->rule;
        }
        fit_target(j, op, row);
        j->node[id].row = *row;
        j->layer[j->n_layer++] = id;
    }
    return OCT_OK;
}

/* Describes a layer: the intended decision, which statistics may still change to float, or (decided) the final one. */
static void describe(oct_qjob *j, int id, bool decided)
{
    const oct_node *n = &j->g->node[id];
    const qnode *q = &j->node[id];
    const oct_tensor *first = oct_layer_weights(j->g, id);
    const qweights *w = q->weights[0];
    const int v = oct_quantized_output(j, id);
    oct_layer_decision *d = &j->node[id].decision;
    *d = (oct_layer_decision){ .graph = j->g,
                               .where = j->where,
                               .node = id,
                               .name = n->name,
                               .op = n->op,
                               .why = q->why,
                               .scheme = q->scheme,
                               .on_floats = NAN,
                               .expected = NAN,
                               .sqnr_weights = NAN,
                               .sqnr_output = NAN,
                               .row = &q->row,
                               .barred = oct_kept_float(&j->constraints, id) != NULL,
                               .rangeless = oct_constraint_on(&j->constraints, id, OCT_CONSTRAINT_NO_RANGES) &&
                                            q->scheme == OCT_SCHEME_FLOAT,
                               .wide = oct_constraint_on(&j->constraints, id, OCT_CONSTRAINT_WIDE) && q->widened,
                               .rounded = q->scheme == OCT_SCHEME_FLOAT && (q->rounds || q->rounds_outputs) };
    d->integer = q->scheme == OCT_SCHEME_STATIC || q->scheme == OCT_SCHEME_DYNAMIC;
    oct_expect_node(j, id, &d->on_floats, &d->expected);
    if (decided && oct_half_type(j, id) && first && first->count) {
        d->weights = oct_half_type(j, id);
        d->sqnr_weights = oct_half_sqnr(first, d->weights);
    } else if (w && q->scheme != OCT_SCHEME_FLOAT) {
        d->weights = w->quant.dtype;
        d->block = q->scheme == OCT_SCHEME_WEIGHT_ONLY ? (int)w->quant.block : 0;
        d->per_channel = !d->block && w->quant.n > 1;
        d->remedy = w->remedy;
        d->sqnr_weights = w->sqnr;
    }
    if (q->table && q->scheme != OCT_SCHEME_FLOAT) {
        double sqnr = q->table->sqnr;
        const oct_quant *tied = q->table->tied >= 0 ? oct_tied_weights(j, q->table->tied, &sqnr) : NULL;
        d->weights = tied ? tied->dtype : OCT_S8;
        d->block = tied ? (int)tied->block : 0;
        d->per_channel = !d->block && (!tied || tied->n > 1);
        d->sqnr_weights = sqnr;
    }
    if (q->stored && oct_is_stored(j, id)) {
        d->weights = OCT_S8;
        d->per_channel = true;
        d->sqnr_weights = q->stored->sqnr;
    }
    if (v >= 0 && j->value[v].quant && d->rounded)
        d->observer = j->value[v].observer;
    if (v >= 0 && j->value[v].quant && d->integer && !q->absorbed) {
        d->observer = j->value[v].observer;
        d->scale = j->value[v].quant->scale[0];
        d->zero_point = j->value[v].quant->zp[0];
        d->sqnr_output = j->value[v].sqnr;
    }
}

oct_status oct_job_open(oct_arena *a, oct_graph *g, const oct_qjob_opts *opts, const char *where, oct_qjob **job,
                        oct_err *err)
{
    oct_qjob *j = oct_arena_calloc(a, 1, sizeof *j);
    if (!j)
        return oct_nomem(err);
    j->arena = a;
    j->where = where;
    j->g = g;
    j->lasting = opts->lasting ? opts->lasting : g->arena;
    j->opts = *opts;
    j->observer = oct_observer_default();
    bool turned;
    OCT_TRY(allocate(j, err));
    OCT_TRY(read_policy(j, err));
    OCT_TRY(oct_turn_products(j, &turned, err));
    if (turned) { /* the graph has more nodes and values now */
        OCT_TRY(allocate(j, err));
        OCT_TRY(read_policy(j, err));
    }
    OCT_TRY(oct_job_count_work(j, err));
    OCT_TRY(oct_job_place(j, err));
    OCT_TRY(oct_choose_by_cost(j, err));
    for (size_t i = 0; i < j->n_layer; i++)
        describe(j, j->layer[i], false);
    *job = j;
    return oct_bodies_open(j, err);
}

oct_status oct_qjob_create(oct_graph *g, const oct_qjob_opts *opts, oct_qjob **job, oct_err *err)
{
    oct_dtype source = opts->source;
    OCT_TRY(prepare_graph(g, opts, &source, err));
    oct_arena *a = oct_arena_create();
    oct_qjob *j;
    if (!a)
        return oct_nomem(err);
    oct_status s = oct_job_open(a, g, opts, "", &j, err);
    if (s == OCT_OK)
        s = oct_bodies_list(j, err);
    if (s == OCT_OK) {
        j->opts.source = source;
        *job = j;
    } else {
        oct_arena_destroy(a);
    }
    return s;
}

static oct_status reread(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    j->opts.calib = c;
    j->opts.late = true;
    OCT_TRY(read_policy(j, err));
    OCT_TRY(oct_job_place(j, err));
    for (size_t i = 0; i < j->n_layer; i++)
        describe(j, j->layer[i], false);
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(reread(j->body[i].job, c, err));
    return OCT_OK;
}

oct_status oct_qjob_reread(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    OCT_TRY(reread(j, c, err));
    return oct_bodies_list(j, err);
}

oct_dtype oct_qjob_source(const oct_qjob *j)
{
    return j->opts.source;
}

void oct_qjob_destroy(oct_qjob *j)
{
    if (j)
        oct_arena_destroy(j->arena);
}

const char *const *oct_qjob_values(const oct_qjob *j, const int **axes, size_t *n)
{
    *n = j->n_all_wanted;
    if (axes)
        *axes = j->all_axes;
    return j->all_wanted;
}

oct_status oct_qjob_decide(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    /* A tensor without statistics makes the nodes beside it float, which may affect others. So nodes are placed again
     * until nothing changes. */
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_AROUND_ZERO, OCT_FROM_FACTORS,
                         -1);       /* a written policy leads to the same decision */
    OCT_TRY(oct_job_place(j, err)); /* this drops parameters of an earlier decision */
    for (bool changed = true; changed;) {
        OCT_TRY(oct_stop_check(err));
        OCT_TRY(oct_choose_qparams(j, c, &changed, err));
        OCT_TRY(oct_bytes_check(j, c, &changed, err));
        OCT_TRY(oct_half_check(j, c, &changed, err));
        if (!changed)
            OCT_TRY(oct_part_joins(j, c, &changed, err));
        if (!changed)
            OCT_TRY(oct_fit_factors(j, &changed, err));
        if (changed)
            OCT_TRY(oct_job_place(j, err));
    }
    OCT_TRY(oct_choose_conversions(j, c, err));
    OCT_TRY(oct_decide_weights(j, c, err));
    oct_expect(j);
    for (size_t i = 0; i < j->n_layer; i++)
        describe(j, j->layer[i], true);
    return oct_bodies_decide(j, c, err);
}

bool oct_qjob_has_qparams(const oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++)
        if (j->value[v].wanted && !j->g->value[v].constant)
            return true;
    for (size_t i = 0; i < j->n_body; i++)
        if (oct_qjob_has_qparams(j->body[i].job))
            return true;
    return false;
}

oct_target_times oct_qjob_expected(const oct_qjob *j)
{
    return j->expected;
}

bool oct_qjob_has_blocks(const oct_qjob *j)
{
    bool any = false;
    for (size_t i = 0; i < j->n_layer && !any; i++)
        any = j->node[j->layer[i]].scheme == OCT_SCHEME_WEIGHT_ONLY && oct_op_of(j->g, j->layer[i])->weights.blocks;
    return any;
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
