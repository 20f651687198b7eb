/* Products of two activations. Which of them a target runs on integers depends on the parameters of both: types of
 * weights that it takes are not always types of activations, and OpenVINO subtracts no zero points there. So this is
 * asked when parameters are chosen: the factors get parameters around 0, or the product stays float. */
#include "quant/job.h"

static const oct_quant *factor(const oct_qjob *j, int value)
{
    const oct_quant *q = value >= 0 && !j->g->value[value].constant ? j->value[oct_params_root(j, value)].quant : NULL;
    return q && oct_dtype_bits(q->dtype) == 8 ? q : NULL;
}

/* The reason why the target does not multiply the two factors of a node. Those that only need parameters around 0 get
 * these first. */
static const char *refused(oct_qjob *j, int id, const oct_quant *const q[2], bool *changed)
{
    const oct_node *n = &j->g->node[id];
    const char *why = oct_target_no_factors(j->opts.target, n->op, q[0]->dtype, q[1]->dtype);
    for (int i = 0; i < 2 && !why; i++) {
        const char *off = oct_target_no_factor(j->opts.target, q[i]);
        if (off && j->node[id].centred >> i & 1)
            why = off;
        else if (off)
            j->node[id].centred |= 1u << i;
        *changed |= off != NULL;
    }
    return why;
}

bool oct_fit_factors(oct_qjob *j)
{
    bool changed = false;
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        const bool product = oct_is_product(j, id) && n->n_in > 1;
        const oct_quant *const q[2] = { product ? factor(j, n->in[0]) : NULL, product ? factor(j, n->in[1]) : NULL };
        const char *why = q[0] && q[1] ? refused(j, id, q, &changed) : NULL;
        changed |= why != NULL;
        j->node[id].barred = why ? why : j->node[id].barred;
    }
    return changed;
}
