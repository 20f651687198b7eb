/* A quantization job: its steps in turn, and its decisions. */
#include "quant/job/job.h"

#include "base/stop.h"
#include "quant/job/records.h"
#include "quant/job/unroll_products.h"
#include "quant/place/place.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <math.h>

static oct_status allocate(oct_qjob *j, oct_err *err)
{
    j->n_nodes = j->g->n_node;
    j->n_values = j->g->n_value;
    j->node = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->node);
    j->constants = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->constants);
    j->value = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->value);
    j->facts = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->facts);
    j->layer = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->layer);
    j->picker = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->picker);
    return j->node && j->constants && j->value && j->facts && j->layer && j->picker
               ? oct_constraints_open(&j->constraints, j->arena, j->n_nodes, err)
               : oct_nomem(err);
}

/* Describes a layer: the intended decision, which statistics may still change to float, or (decided) the final one. */
static void describe(oct_qjob *j, int id, bool decided)
{
    const oct_node *n = &j->g->node[id];
    const qnode *q = &j->node[id];
    const oct_tensor *first = oct_layer_weights(j->g, id);
    const int v = oct_quantized_output(j, id);
    oct_layer_decision *d = &j->node[id].decision;
    oct_qconstant c;
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
    } else if (oct_constant_of(j, id, 0, &c) || oct_constant_of(j, id, 1, &c) || oct_constant_of(j, id, 2, &c)) {
        d->weights = c.quant->dtype;
        d->block = q->scheme == OCT_SCHEME_WEIGHT_ONLY || c.use == OCT_CONSTANT_REALS ? (int)c.quant->block : 0;
        d->per_channel = !d->block && c.quant->n > 1;
        d->remedy = c.use == OCT_CONSTANT_OPERAND ? c.weights->remedy : NULL;
        d->sqnr_weights = c.sqnr;
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
    bool turned, unrolled;
    OCT_TRY(allocate(j, err));
    OCT_TRY(oct_job_read_policy(j, err));
    OCT_TRY(oct_transpose_products(j, &turned, err));
    OCT_TRY(oct_unroll_products(j, &unrolled, err));
    if (turned || unrolled) { /* the graph has more nodes and values now */
        OCT_TRY(allocate(j, err));
        OCT_TRY(oct_job_read_policy(j, err));
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
    OCT_TRY(oct_job_prepare(g, opts, &source, err));
    oct_arena *a = oct_arena_create();
    oct_qjob *j;
    if (!a)
        return oct_nomem(err);
    oct_status s = oct_job_open(a, g, opts, "", &j, err);
    if (s == OCT_OK && j->n_body) /* in bodies the sizes follow from what is around them */
        s = oct_job_count_work(j, err);
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

/* Places everything anew by the policy. */
static oct_status reread(oct_qjob *j, oct_err *err)
{
    OCT_TRY(oct_job_read_policy(j, err));
    OCT_TRY(oct_job_place(j, err));
    for (size_t i = 0; i < j->n_layer; i++)
        describe(j, j->layer[i], false);
    return OCT_OK;
}

static oct_status reread_late(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    j->opts.calib = c;
    j->opts.late = true;
    OCT_TRY(reread(j, err));
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(reread_late(j->body[i].job, c, err));
    return OCT_OK;
}

oct_status oct_qjob_reread(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    OCT_TRY(reread_late(j, c, err));
    return oct_bodies_list(j, err);
}

static oct_status reread_as(oct_qjob *j, oct_scheme scheme, oct_err *err)
{
    j->opts.scheme = scheme;
    OCT_TRY(reread(j, err));
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(reread_as(j->body[i].job, scheme, err));
    return OCT_OK;
}

oct_status oct_qjob_set_scheme(oct_qjob *j, oct_scheme scheme, oct_err *err)
{
    OCT_TRY(reread_as(j, scheme, err));
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

bool oct_qjob_has_dynamic(const oct_qjob *j)
{
    bool any = false;
    for (size_t i = 0; i < j->n_layer && !any; i++)
        any = oct_is_dynamic(j, j->layer[i]);
    return any;
}

bool oct_qjob_rounds(const oct_qjob *j)
{
    bool any = oct_qjob_has_qparams(j);
    for (size_t i = 0; i < j->n_layer && !any; i++)
        any = oct_scheme_of(j, j->layer[i]) != OCT_SCHEME_FLOAT || oct_half_type(j, j->layer[i]) != OCT_UNDEFINED;
    for (size_t i = 0; i < j->n_body && !any; i++)
        any = oct_qjob_rounds(j->body[i].job);
    return any;
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
    for (size_t i = 0; i < j->n_body && !any; i++)
        any = oct_qjob_has_blocks(j->body[i].job);
    return any;
}

bool oct_qjob_has_expert_blocks(const oct_qjob *j)
{
    bool any = false;
    for (size_t i = 0; i < j->g->n_order && !any; i++)
        any = oct_stores_expert_blocks(j, j->g->order[i]);
    for (size_t i = 0; i < j->n_body && !any; i++)
        any = oct_qjob_has_expert_blocks(j->body[i].job);
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

bool oct_qjob_constraint(const oct_qjob *j, size_t i, size_t k, oct_constraint_words *words)
{
    const oct_constraints *l = &j->all[i].job->constraints;
    int at = l->last[j->all[i].node];
    while (at >= 0 && k-- > 0)
        at = l->v[at].next;
    if (at < 0)
        return false;
    const oct_constraint *c = &l->v[at];
    *words = (oct_constraint_words){ oct_constraint_kind_name(c->kind), oct_constraint_from_name(c->from), c->why };
    return true;
}
