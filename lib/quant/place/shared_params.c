/* Which values share quantization parameters, and what their policies ask of these. */
#include "quant/place/place_int.h"

#include "quant/job/records.h"

#include <math.h>

static void join(oct_qjob *j, int a, int b)
{
    a = oct_params_root(j, a);
    b = oct_params_root(j, b);
    j->value[a > b ? a : b].same = a > b ? b : a;
}

/* Whether the quantizers of all inputs of a node perform the same clamp, as far as values are joined so far. */
static bool clamps_agree(const oct_qjob *j, const oct_node *n)
{
    float lo = 0, hi = 0;
    bool agree = true;
    for (int k = 0; k < n->n_in; k++) {
        const qvalue *v = &j->value[n->in[k]], *r = &j->value[oct_params_root(j, n->in[k])];
        const float a = fmaxf(v->clamp_lo, r->clamp_lo), b = fminf(v->clamp_hi, r->clamp_hi);
        agree &= k == 0 || (a == lo && b == hi);
        lo = a;
        hi = b;
    }
    return agree;
}

/* Joins values for which the target needs the same parameters: inputs with each other, and an output with the first
 * input. */
static void share_as_asked(oct_qjob *j)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        if (!oct_is_static(j, id) && !j->node[id].rounds_outputs)
            continue;
        const bool shares = oct_target_op_rules_of(j->opts.target, n->op)->shared_inputs,
                   apart = shares && !clamps_agree(j, n);
        for (int k = 1; shares && k < n->n_in; k++)
            if (oct_reads_quantized(j, id, k) && oct_reads_quantized(j, id, 0))
                join(j, n->in[0], n->in[k]);
        j->value[oct_params_root(j, n->in[0])].apart |= apart;
        if (oct_target_op_rules_of(j->opts.target, n->op)->same_scale && oct_reads_quantized(j, id, 0))
            join(j, n->in[0], n->out[0]);
    }
}

/* Joins values that must have the same parameters. Data movement keeps quantized values. The inputs of Concat share
 * parameters unless a quantizer that performs a clamp would get a wider range: its range must end where the clamp does.
 * Nor do values that would lose too much (part_joins.c). */
static void share_parameters(oct_qjob *j, oct_quant_trait trait)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        if (!oct_is_static(j, id) || oct_op_of(j->g, id)->quant != trait)
            continue;
        for (int k = 0; trait == OCT_QUANT_SAME && k < n->n_out; k++)
            if (n->out[k] >= 0)
                join(j, n->in[0], n->out[k]);
        const bool all = trait == OCT_QUANT_JOIN && clamps_agree(j, n) &&
                         !oct_slot_constrained(&j->constraints, id, OCT_CONSTRAINT_OWN_PARAMS, OCT_SLOT_OUTPUT);
        for (int k = 0; all && k < n->n_in; k++)
            if (k >= OCT_SLOT_OUTPUT || !oct_slot_constrained(&j->constraints, id, OCT_CONSTRAINT_OWN_PARAMS, k))
                join(j, n->in[k], n->out[0]);
    }
}

/* The policy row of the first quantized node that reads a value, or NULL. */
static const oct_policy_row *reader_row(const oct_qjob *j, int value)
{
    const oct_value *v = &j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++)
        if (j->node[v->uses[i].node].scheme != OCT_SCHEME_FLOAT || j->node[v->uses[i].node].rounds)
            return &j->node[v->uses[i].node].row;
    return NULL;
}

/* Whether a product of two activations needs this value around 0. */
static bool is_centred(const oct_qjob *j, int value)
{
    const oct_value *v = &j->g->value[value];
    bool any = false;
    for (size_t i = 0; i < v->n_uses; i++)
        any |= oct_is_product(j, v->uses[i].node) && v->uses[i].slot >= 0 && v->uses[i].slot < 2 &&
               oct_slot_constrained(&j->constraints, v->uses[i].node, OCT_CONSTRAINT_AROUND_ZERO, v->uses[i].slot);
    return any;
}

/* Links the values that share parameters, in order, and collects their requirements at the root: the row of the
 * operator that computes the first computed value, else of the first reader; symmetric parameters if a rule or a
 * product asks for them for one value; and bounds inside all clamps. */
static void link_groups(oct_qjob *j)
{
    for (size_t v = j->n_values; v-- > 0;) {
        qvalue *x = &j->value[v], *root = &j->value[oct_params_root(j, (int)v)];
        if (!x->wanted)
            continue;
        const int p = oct_maker_node(j, (int)v);
        const bool made = oct_makes_quantized(j, p);
        const oct_policy_row *row = made ? &j->node[p].row : reader_row(j, (int)v);
        root->symmetric |= (row && row->symmetric) || is_centred(j, (int)v);
        root->apart |= x->apart;
        root->row = row && (made || !root->made) ? row : root->row;
        root->made |= made;
        root->clamp_lo = fmaxf(root->clamp_lo, x->clamp_lo);
        root->clamp_hi = fminf(root->clamp_hi, x->clamp_hi);
        if (x != root) {
            x->next = root->next;
            root->next = (int)v;
        }
    }
}

void oct_place_shared_params(oct_qjob *j)
{
    share_parameters(j, OCT_QUANT_SAME);
    share_as_asked(j);
    for (size_t v = 0; v < j->n_values; v++)
        j->value[v].group = oct_params_root(j, (int)v);
    share_parameters(j, OCT_QUANT_JOIN);
    link_groups(j);
}
