/* Placement: the scheme of each node (float_or_int.c), then the values that get a quantizer, then which of these share
 * quantization parameters (shared_params.c). It is a function of the graph, the policy, the target and the constraints
 * of the job: whatever an earlier placement decided is forgotten. */
#include "quant/place/place_int.h"

#include "quant/job/records.h"

#include <math.h>

static void want_output(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const int v = oct_quantized_output(j, id);
    const bool clamped = v != n->out[0] && oct_value_used_once(&j->g->value[v]);
    if (oct_clamp_of(j, id) >= 0) /* its result is that of the clamp */
        return;
    const bool needs =
        oct_target_rules_of(j->opts.target)->everywhere || oct_target_needs_output(j->opts.target, n->op, clamped);
    if (!oct_is_product(j, id) || needs || oct_is_read_as_integers(j, v, false) || j->value[v].wanted) {
        j->value[v].wanted = true;
    } else if (v != n->out[0]) { /* without a quantizer, the clamp must stay */
        oct_place_clamp_back(j, j->g->value[v].producer);
    }
    for (int k = 1; k < n->n_out; k++)
        if (n->out[k] >= 0)
            j->value[n->out[k]].wanted = true;
}

/* Where a product's input has its channels; 0: it has none, as their number may differ from sample to sample. */
static int channel_axis(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const oct_shape *x = &j->g->value[n->in[0]].shape;
    const int axis = oct_channel_axis(oct_op_of(j->g, id), n), at = axis < 0 ? x->rank + axis : axis;
    const bool fixed = at >= 0 && at < x->rank && x->d[at].n > 0;
    return fixed || (n->n_in > 1 && oct_is_const(j, n->in[1])) ? axis : 0;
}

static void want_values(oct_qjob *j)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        if (!oct_is_static(j, id))
            continue;
        for (int k = 0; k < oct_data_inputs(j, id); k++)
            j->value[n->in[k]].wanted = true;
        if (oct_is_product(j, id))
            j->value[n->in[0]].axis = channel_axis(j, id);
        want_output(j, id);
    }
}

/* A quantizer that performs a clamp must have a range that ends at the clamp. Symmetric parameters do not have that, so
 * that such clamps remain nodes. */
static oct_status keep_clamps(oct_qjob *j, bool *any, oct_err *err)
{
    *any = false;
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        if (!j->node[id].absorbed)
            continue;
        const qvalue *root = &j->value[oct_params_root(j, j->g->node[id].out[0])];
        if (!root->symmetric && !root->apart)
            continue;
        OCT_TRY(oct_keep_float(
            &j->constraints, id, OCT_FROM_PLACEMENT,
            root->symmetric
                ? "its result is symmetric, so its quantizer does not clamp where this node does"
                : "its result shares its scale with another value, so its quantizer does not clamp where this node does",
            err));
        *any = true;
    }
    return OCT_OK;
}

static void place(oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++)
        j->value[v] = (qvalue){ .same = (int)v, .next = -1, .clamp_lo = -INFINITY, .clamp_hi = INFINITY, .sqnr = NAN };
    oct_place_schemes(j);
    oct_place_around(j);
    want_values(j);
    oct_place_shared_params(j);
}

/* The observer that rules name for a value that no integer node computes: that of a rule for values, else that of a
 * rule for the node that computes it. */
static oct_observer_spec named_observer(const oct_qjob *j, int v)
{
    const oct_observer_spec o = oct_policy_observer_of(j->opts.policy, j->g->value[v].name, j->opts.late);
    const int maker = oct_maker_node(j, v);
    return o.observer || maker < 0 ? o : j->node[maker].row.observer;
}

/* Without such a rule, the value's row is that of a reader, whose observer is meant for the reader's output. So the
 * default is used. */
static oct_status name_observers(oct_qjob *j, oct_err *err)
{
    for (size_t v = 0; v < j->n_values; v++) {
        qvalue *root = &j->value[oct_params_root(j, (int)v)];
        if (!j->value[v].wanted || root->made)
            continue;
        const oct_observer_spec o = named_observer(j, (int)v);
        oct_policy_row *row = o.observer ? oct_arena_calloc(j->arena, 1, sizeof *row) : NULL;
        if (o.observer && !row)
            return oct_nomem(err);
        if (row) {
            *row = root->row ? *root->row : *row;
            row->observer = o;
            root->row = row;
        }
    }
    return OCT_OK;
}

/* If rules ask for statistics, those of all float values are gathered. */
static void ask_values(oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values && oct_policy_measured(j->opts.policy); v++)
        j->value[v].asked = oct_is_f32(j, (int)v) && !j->g->value[v].constant && !j->g->value[v].dead &&
                            (j->g->value[v].producer >= 0 || j->g->value[v].is_input);
}

/* The rows of the policy, with the forms that constraints give to weights. */
static void take_rows(oct_qjob *j)
{
    for (size_t id = 0; id < j->n_nodes; id++) {
        const oct_constraint *form = oct_constraint_on(&j->constraints, (int)id, OCT_CONSTRAINT_FORM);
        oct_policy_row *row = &j->node[id].row;
        *row = j->node[id].policy;
        if (!form)
            continue;
        row->scheme = form->scheme;
        row->rule = form->why;
        row->weights = form->block ? form->weights : row->weights;
        row->block = form->block ? form->block : row->block;
    }
}

oct_status oct_job_place(oct_qjob *j, oct_err *err)
{
    bool again = true;
    oct_constraints_drop(&j->constraints, OCT_CONSTRAINT_FLOAT, OCT_FROM_PLACEMENT, -1);
    take_rows(j);
    for (size_t i = j->g->n_order; i-- > 0;)
        j->node[j->g->order[i]].counting = oct_find_counting(j, j->g->order[i]);
    OCT_TRY(oct_fit_widths(j, err));
    while (again) {
        place(j);
        OCT_TRY(keep_clamps(j, &again, err));
    }
    oct_tell_widths(j);
    ask_values(j);
    for (size_t i = 0; i < j->opts.n_given; i++)
        j->value[j->opts.given[i].value].ranged |= j->opts.given[i].range_alone;
    OCT_TRY(name_observers(j, err));
    return oct_half_place(j, err);
}
