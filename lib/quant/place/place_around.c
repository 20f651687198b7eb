/* Places quantizers around nodes that compute in float: around every node, if the target wants that, and around
 * additions that the target fuses into the layer before them. Such nodes keep the scheme float. */
#include "forms/write/forms_write.h"
#include "quant/job/records.h"
#include "quant/place/place_int.h"

/* Whether a node clamps what a layer on real numbers makes for it alone. It stays with that layer: a quantizer in
 * between would lose and gain nothing, and the value has no statistics where the clamp was removed when samples were
 * measured. */
static bool clamps_reals(const oct_qjob *j, int id)
{
    const oct_op *op = oct_op_of(j->g, id);
    const oct_value *v = op && op->clamp ? &j->g->value[j->g->node[id].in[0]] : NULL;
    const oct_op *before = v && v->producer >= 0 && oct_value_used_once(v) ? oct_op_of(j->g, v->producer) : NULL;
    return before && before->quant == OCT_QUANT_WEIGHTED && !oct_makes_quantized(j, v->producer);
}

/* Whether a node is the clamp of a layer: what it reads is not rounded, and what it makes is that layer's result. */
static bool clamps_integers(const oct_qjob *j, int id)
{
    const int v = j->g->node[id].n_in > 0 ? j->g->node[id].in[0] : -1, p = v >= 0 ? j->g->value[v].producer : -1;
    return p >= 0 && p < (int)j->n_nodes && oct_clamp_of(j, p) == id;
}

/* Rules that keep an operator off integers do so for its accuracy or time. If the target wants quantizers around it,
 * only a rule for the node's name prevents them. A clamp that is not a quantizer's work may still belong
 * to its layer. */
static bool is_asked_for(const oct_qjob *j, int id)
{
    const oct_policy_row *row = &j->node[id].row;
    const bool fixed = j->opts.scheme == OCT_SCHEME_AUTO || j->opts.scheme == OCT_SCHEME_STATIC;
    const bool asked = row->scheme == OCT_SCHEME_STATIC || row->scheme == OCT_SCHEME_DYNAMIC ||
                       (row->scheme == OCT_SCHEME_FLOAT && !row->named);
    return fixed && asked && (!oct_kept_float(&j->constraints, id) || clamps_integers(j, id)) && !j->node[id].absorbed;
}

/* Of a recurrent layer the input alone is rounded, and its matrices with it (annotate.c): biases are added as they
 * are. Its last cells have no range that holds for all of them, so a layer that gives them is left alone. */
static bool rounds_recurrent(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const bool gives_cells =
        n->n_out > 2 && n->out[2] >= 0 && (j->g->value[n->out[2]].n_uses || j->g->value[n->out[2]].is_output);
    return !gives_cells && oct_recurrent_matrices(j, id) && oct_is_f32(j, n->in[0]);
}

/* Marks all float32 operands for rounding, if any of them is data. */
static void round_all(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const bool recurrent = oct_op_of(j->g, id) && oct_op_of(j->g, id)->quant == OCT_QUANT_RECURRENT;
    uint32_t rounds = 0;
    bool data = false, real = n->n_out > 0 && (!recurrent || rounds_recurrent(j, id));
    for (int k = 0; k < n->n_out; k++)
        real &= n->out[k] < 0 || oct_is_f32(j, n->out[k]);
    for (int i = 0; i < (recurrent ? 1 : n->n_in) && i < 32; i++) {
        if (!oct_is_f32(j, n->in[i]) || !oct_half_follows(n, i))
            continue;
        rounds |= UINT32_C(1) << i;
        data |= !j->g->value[n->in[i]].constant;
    }
    if (!real || !data || n->n_captured)
        return;
    if (oct_counting_of(j, id) == OCT_COUNTS_WIDE) {
        j->node[id].why = oct_becomes_integers;
        return;
    }
    if (clamps_reals(j, id)) {
        j->node[id].why = "computed in float, as the layer before it is";
        return;
    }
    j->node[id].rounds_outputs = true;
    if (clamps_integers(j, id)) {
        j->node[id].why = "computed together with the layer before it; its result is quantized";
        return;
    }
    j->node[id].rounds = rounds;
    j->node[id].why = "in float between quantizers here: the target may compute it on integers";
}

/* The position of the layer that alone computes an input of an addition and whose output nothing else reads; or -1. */
static int layer_before(const oct_qjob *j, int value)
{
    const oct_value *v = value >= 0 ? &j->g->value[value] : NULL;
    return v && v->producer >= 0 && oct_is_product(j, v->producer) && oct_value_used_once(v) ? v->producer : -1;
}

/* The layer that comes last in the order performs the addition of the other input, which is rounded. */
static void round_residual(oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const int a = n->n_in == 2 ? layer_before(j, n->in[0]) : -1, b = n->n_in == 2 ? layer_before(j, n->in[1]) : -1;
    int last = a;
    for (size_t i = 0; a >= 0 && b >= 0 && i < j->g->n_order; i++)
        last = j->g->order[i] == a || j->g->order[i] == b ? j->g->order[i] : last;
    const int slot = a < 0 && b < 0 ? -1 : a < 0 ? 0 : b < 0 ? 1 : last == a ? 1 : 0;
    if (slot < 0 || n->in[0] == n->in[1] || !oct_is_f32(j, n->in[slot]) || j->g->value[n->in[slot]].constant)
        return;
    j->node[id].rounds = UINT32_C(1) << slot;
    j->node[id].why = "the layer before it does this addition; its other input is quantized";
}

void oct_place_around(oct_qjob *j)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        j->node[id].rounds = 0;
        j->node[id].rounds_outputs = false;
        if (!j->opts.have_data || j->node[id].scheme != OCT_SCHEME_FLOAT || !is_asked_for(j, id))
            continue;
        if (oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_ROUNDED, NULL))
            round_all(j, id);
        else if (oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_RESIDUAL, NULL))
            round_residual(j, id);
        for (int k = 0; k < j->g->node[id].n_in && k < 32; k++)
            if (j->node[id].rounds >> k & 1)
                j->value[j->g->node[id].in[k]].wanted = true;
        for (int k = 0; j->node[id].rounds_outputs && k < j->g->node[id].n_out; k++)
            if (j->g->node[id].out[k] >= 0)
                j->value[j->g->node[id].out[k]].wanted = true;
    }
}
