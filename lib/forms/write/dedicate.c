/* Gives each reader of a quantized activation a DequantizeLinear and, if requested, a QuantizeLinear of its own. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "passes/match.h"

/* Adds a copy of a QuantizeLinear or DequantizeLinear with one scale, which reads `from`. *to: its output. */
static oct_status copy_node(oct_graph *g, int id, int from, int *to, oct_err *err)
{
    const oct_node *n = &g->node[id];
    const int in[3] = { from, n->in[1], n->in[2] }, out = n->out[0];
    const char *domain = n->domain, *op = n->op;
    int copy;
    OCT_TRY(oct_edit_value(g, g->value[out].name, "", g->value[out].dtype, out, to, err));
    OCT_TRY(oct_edit_node(g, op, in, 3, *to, oct_edit_after(g, id), &copy, err));
    return domain[0] ? oct_edit_become(g, copy, op, domain, 0, err) : OCT_OK;
}

static oct_status dedicate(oct_graph *g, int id, bool quantizers, oct_err *err)
{
    const int qvals = g->node[id].in[0], real = g->node[id].out[0], maker = g->value[qvals].producer;
    const bool both = quantizers && maker >= 0 && oct_edit_is_quantizer(&g->node[maker], "QuantizeLinear") &&
                      g->node[maker].n_in == 3 && !g->value[qvals].is_output;
    for (size_t kept = g->value[real].is_output ? 0 : 1; g->value[real].n_uses > kept;) {
        const oct_use u = g->value[real].uses[kept];
        int from = qvals, to;
        if (u.slot < 0) { /* a subgraph reads it by its name */
            kept++;
            continue;
        }
        if (both)
            OCT_TRY(copy_node(g, maker, g->node[maker].in[0], &from, err));
        OCT_TRY(copy_node(g, id, from, &to, err));
        OCT_TRY(oct_graph_set_input(g, u.node, u.slot, to, err));
    }
    return OCT_OK;
}

oct_status oct_dedicate_pairs(oct_graph *g, bool quantizers, oct_err *err)
{
    const size_t n = g->n_order;
    const int *order = oct_arena_memdup(g->arena, g->order, n * sizeof *order);
    if (n && !order)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const oct_node *d = &g->node[order[i]];
        if (oct_edit_is_quantizer(d, "DequantizeLinear") && d->n_in == 3 && !g->value[d->in[0]].constant &&
            !oct_node_attr(d, "axis") && !oct_node_attr(d, "block_size"))
            OCT_TRY(dedicate(g, order[i], quantizers, err));
    }
    return oct_graph_sort(g, err);
}
