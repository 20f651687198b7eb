/* Quantizers after nodes that run on quantized values. */
#include "forms/edit.h"
#include "forms/read/read_int.h"

/* The border that quantizes output k of a node, directly or after a clamp that the node can perform, if nothing else
 * reads the results on the way; -1: there is none. *end: the value that the border reads. */
static int border_behind(const oct_graph *g, const oct_node *n, const oct_op *op, int k, int *end)
{
    oct_epilogue e;
    const int clamp = k == 0 && op->fuses_clamp && n->out[k] >= 0 ? oct_clamp_behind(g, n->out[k], &e) : -1;
    *end = clamp >= 0 ? g->node[clamp].out[0] : n->out[k];
    const oct_value *v = *end >= 0 ? &g->value[*end] : NULL;
    if (!v || !oct_value_used_once(v) || v->uses[0].slot != 0)
        return -1;
    const oct_node *border = &g->node[v->uses[0].node];
    if (!oct_is_op(border, "QuantizeLinear") || border->n_in != 1 || border->n_out != 1 || border->out[0] < 0)
        return -1;
    const oct_value *to = &g->value[border->out[0]];
    return to->quant && to->quant->n && to->dtype == v->dtype ? v->uses[0].node : -1;
}

oct_status forms_absorb(forms_reader *r, int id, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    oct_compute how = OCT_ON_REALS;
    bool any = false;
    int end;
    if (!op || !op->integer || n->n_in < 1 || n->in[0] < 0 || !g->value[n->in[0]].quant || n->n_out < 1)
        return OCT_OK;
    for (int k = 0; k < n->n_out; k++) {
        const int border = border_behind(g, n, op, k, &end);
        if (border < 0 || g->value[end].quant)
            continue;
        g->value[end].quant = g->value[g->node[border].out[0]].quant;
        any = true;
    }
    if (any)
        OCT_TRY(oct_compute_of(g, id, &how, err));
    for (int k = 0; any && k < n->n_out; k++) {
        const int border = border_behind(g, n, op, k, &end);
        const int q = border >= 0 ? g->node[border].out[0] : -1;
        if (q < 0 || g->value[end].quant != g->value[q].quant)
            continue; /* it had other parameters before */
        if (how != OCT_ON_QUANTIZED) {
            g->value[end].quant = NULL;
            continue;
        }
        oct_graph_remove_node(g, border);
        OCT_TRY(oct_edit_keeps(g, q) ? forms_replace(r, end, q, err) : forms_replace(r, q, end, err));
    }
    return OCT_OK;
}
