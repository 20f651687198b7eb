/* What was decided for nodes and values, to whoever works with it. */
#include "quant/job/records.h"

/* ---- nodes ---- */

oct_scheme oct_scheme_of(const oct_qjob *j, int node)
{
    return j->node[node].scheme;
}

const char *oct_why_of(const oct_qjob *j, int node)
{
    return j->node[node].why;
}

oct_counting oct_counting_of(const oct_qjob *j, int node)
{
    return j->node[node].counting;
}

const oct_policy_row *oct_row_of(const oct_qjob *j, int node)
{
    return &j->node[node].row;
}

bool oct_is_absorbed(const oct_qjob *j, int node)
{
    return j->node[node].absorbed;
}

bool oct_is_static(const oct_qjob *j, int node)
{
    return node >= 0 && node < (int)j->n_nodes && j->node[node].scheme == OCT_SCHEME_STATIC && !j->node[node].absorbed;
}

bool oct_is_product(const oct_qjob *j, int node)
{
    return oct_is_static(j, node) && oct_op_of(j->g, node)->quant == OCT_QUANT_WEIGHTED;
}

bool oct_is_dynamic(const oct_qjob *j, int node)
{
    return node >= 0 && node < (int)j->n_nodes && j->node[node].scheme == OCT_SCHEME_DYNAMIC;
}

bool oct_is_dynamic_product(const oct_qjob *j, int node)
{
    return oct_is_dynamic(j, node) && oct_op_of(j->g, node)->quant == OCT_QUANT_WEIGHTED;
}

bool oct_is_dynamic_recurrent(const oct_qjob *j, int node)
{
    return oct_is_dynamic(j, node) && oct_op_of(j->g, node)->quant == OCT_QUANT_RECURRENT;
}

bool oct_is_stored(const oct_qjob *j, int node)
{
    const oct_scheme scheme = oct_scheme_of(j, node);
    const oct_op *op = scheme == OCT_SCHEME_WEIGHT_ONLY ? oct_op_of(j->g, node) : NULL;
    return scheme == OCT_SCHEME_STORED || (op && op->quant == OCT_QUANT_RECURRENT);
}

bool oct_rounds_inputs(const oct_qjob *j, int node)
{
    return j->node[node].rounds;
}

bool oct_makes_quantized(const oct_qjob *j, int node)
{
    return oct_is_static(j, node) || (node >= 0 && node < (int)j->n_nodes && j->node[node].rounds_outputs);
}

void oct_set_scheme(oct_qjob *j, int node, oct_scheme scheme, const char *why)
{
    j->node[node].scheme = scheme;
    j->node[node].why = why;
}

int oct_quantized_output(const oct_qjob *j, int node)
{
    const oct_node *n = &j->g->node[node];
    const int v = n->n_out ? n->out[0] : -1;
    if (v < 0 || j->g->value[v].n_uses != 1)
        return v;
    const int user = j->g->value[v].uses[0].node;
    return j->node[user].absorbed ? j->g->node[user].out[0] : v;
}

int oct_maker_node(const oct_qjob *j, int value)
{
    const int p = j->g->value[value].producer;
    return p >= 0 && j->node[p].absorbed ? j->g->value[j->g->node[p].in[0]].producer : p;
}

int oct_data_inputs(const oct_qjob *j, int node)
{
    switch (oct_op_of(j->g, node)->quant) {
    case OCT_QUANT_JOIN:
    case OCT_QUANT_ARITH: return j->g->node[node].n_in;
    case OCT_QUANT_WEIGHTED: return oct_layer_weights(j->g, node) ? 1 : 2;
    default: return 1;
    }
}

bool oct_reads_quantized(const oct_qjob *j, int node, int slot)
{
    if (node < 0 || node >= (int)j->n_nodes || slot < 0)
        return false;
    return oct_is_static(j, node) ? slot < oct_data_inputs(j, node) : slot < 32 && j->node[node].rounds >> slot & 1;
}

int oct_clamp_of(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const oct_value *v = n->n_out == 1 && n->out[0] >= 0 ? &j->g->value[n->out[0]] : NULL;
    if (!v || !oct_is_static(j, id) || !oct_value_used_once(v) || v->uses[0].slot != 0 ||
        !oct_target_op_rules_of(j->opts.target, n->op)->takes_clamp)
        return -1;
    const int clamp = v->uses[0].node;
    float lo, hi;
    return clamp < (int)j->n_nodes && j->node[clamp].scheme == OCT_SCHEME_FLOAT && oct_op_clamp(j->g, clamp, &lo, &hi)
               ? clamp
               : -1;
}

/* ---- values ---- */

int oct_params_root(const oct_qjob *j, int v)
{
    while (j->value[v].same != v)
        v = j->value[v].same;
    return v;
}

int oct_moved_root(const oct_qjob *j, int value)
{
    return j->value[value].group;
}

bool oct_is_wanted(const oct_qjob *j, int value)
{
    return j->value[value].wanted;
}

bool oct_is_rounded_at_run(const oct_qjob *j, int value)
{
    const oct_value *v = &j->g->value[value];
    bool any = false;
    for (size_t i = 0; i < v->n_uses && !any; i++)
        any = v->uses[i].slot == 0 && oct_is_dynamic_product(j, v->uses[i].node);
    return any;
}

bool oct_is_observed(const oct_qjob *j, int value)
{
    return j->value[value].ranged || j->value[value].asked || (j->value[value].wanted && !j->g->value[value].constant);
}

void oct_want_range(oct_qjob *j, int value)
{
    j->value[value].ranged = true;
}

int oct_moments_axis(const oct_qjob *j, int value)
{
    return j->value[value].axis;
}

bool oct_is_made(const oct_qjob *j, int value)
{
    return j->value[oct_params_root(j, value)].made;
}

const oct_policy_row *oct_params_row(const oct_qjob *j, int value)
{
    return j->value[oct_params_root(j, value)].row;
}

oct_range oct_clamp_bounds(const oct_qjob *j, int value)
{
    const qvalue *root = &j->value[oct_params_root(j, value)];
    return (oct_range){ root->clamp_lo, root->clamp_hi };
}

const oct_quant *oct_quant_of(const oct_qjob *j, int value)
{
    return j->value[value].quant;
}

void oct_set_quant(oct_qjob *j, int value, const oct_quant *q)
{
    j->value[value].quant = q;
}

const oct_quant *oct_quant_as(const oct_qjob *j, int value, size_t k)
{
    return j->value[value].as[k];
}

const char *oct_observer_of(const oct_qjob *j, int value)
{
    return j->value[value].observer;
}

const char *oct_misfit_of(const oct_qjob *j, int value)
{
    return j->value[value].misfit;
}

double oct_value_sqnr(const oct_qjob *j, int value)
{
    return j->value[value].sqnr;
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
