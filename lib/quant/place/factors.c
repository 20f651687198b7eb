/* Products of two activations. Which of them a target runs on integers depends on the parameters of both: types of
 * weights that it takes are not always types of activations, and OpenVINO subtracts no zero points there. So this is
 * asked when parameters are chosen: the factors get parameters around 0, or the product stays float. */
#include "quant/job/placed.h"
#include "quant/place/place.h"

static const oct_quant *factor(const oct_qjob *j, int value)
{
    const oct_quant *q = value >= 0 && !j->g->value[value].constant ? oct_quant_of(j, oct_params_root(j, value)) : NULL;
    return q && oct_dtype_bits(q->dtype) == 8 ? q : NULL;
}

/* Constraints for a node whose two factors the target does not multiply. Those that only need parameters around 0 get
 * these first. */
static oct_status refuse(oct_qjob *j, int id, const oct_quant *const q[2], bool *changed, oct_err *err)
{
    const oct_node *n = &j->g->node[id];
    const char *why = oct_target_no_factors(j->opts.target, n->op, q[0]->dtype, q[1]->dtype);
    for (int i = 0; i < 2 && !why; i++) {
        const char *off = oct_target_no_factor(j->opts.target, q[i]);
        const oct_constraint centred = {
            .kind = OCT_CONSTRAINT_AROUND_ZERO, .from = OCT_FROM_FACTORS, .node = id, .slot = i, .why = off
        };
        if (off && oct_slot_constrained(&j->constraints, id, centred.kind, i))
            why = off;
        else if (off)
            OCT_TRY(oct_constrain(&j->constraints, &centred, err));
        *changed |= off != NULL;
    }
    *changed |= why != NULL;
    return why ? oct_keep_float(&j->constraints, id, OCT_FROM_FACTORS, why, err) : OCT_OK;
}

oct_status oct_fit_factors(oct_qjob *j, bool *changed, oct_err *err)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        const bool product = oct_is_product(j, id) && n->n_in > 1;
        const oct_quant *const q[2] = { product ? factor(j, n->in[0]) : NULL, product ? factor(j, n->in[1]) : NULL };
        if (q[0] && q[1])
            OCT_TRY(refuse(j, id, q, changed, err));
    }
    return OCT_OK;
}
