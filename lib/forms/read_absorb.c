/* Quantizers behind nodes that run on codes. */
#include "forms/read_int.h"

/* The border that alone reads a value and makes codes of it; -1: none. */
static int border_behind(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    if (v->quant || !oct_value_used_once(v) || v->uses[0].slot != 0)
        return -1;
    const oct_node *n = &g->node[v->uses[0].node];
    if (!oct_is_op(n, "QuantizeLinear") || n->n_in != 1 || n->n_out != 1 || n->out[0] < 0)
        return -1;
    const oct_value *to = &g->value[n->out[0]];
    return to->quant && to->quant->n && to->dtype == v->dtype ? v->uses[0].node : -1;
}

/* Where results of output k end that the node can compute: behind a clamp. */
static int end_of(const oct_graph *g, const oct_node *n, const oct_op *op, int k)
{
    oct_epilogue e;
    const int clamp = k == 0 && op->fuses_clamp ? oct_clamp_behind(g, n->out[k], &e) : -1;
    return clamp >= 0 ? g->node[clamp].out[0] : n->out[k];
}

/* Value `end` takes the border's place; where the quantized value must keep its name, that takes end's. */
static oct_status join(forms_reader *r, int end, int border, oct_err *err)
{
    oct_graph *g = r->g;
    const int q = g->node[border].out[0], p = g->value[end].producer;
    oct_graph_remove_node(g, border);
    if (!g->value[q].is_output) {
        OCT_TRY(oct_graph_replace_uses(g, q, end, err));
        oct_graph_remove_value(g, q);
        return forms_move(r, q, end, err);
    }
    for (int k = 0; k < g->node[p].n_out; k++)
        if (g->node[p].out[k] == end)
            OCT_TRY(oct_graph_set_output(g, p, k, q, err));
    oct_graph_remove_value(g, end);
    return forms_move(r, end, q, err);
}

/* Outputs with a border behind them: ends and borders, as far as a node has them. */
typedef struct behind {
    int end, border;
} behind;

static int find_borders(const oct_graph *g, int id, const oct_op *op, behind *b)
{
    const oct_node *n = &g->node[id];
    int count = 0;
    for (int k = 0; k < n->n_out; k++) {
        const int end = n->out[k] >= 0 ? end_of(g, n, op, k) : -1, border = end >= 0 ? border_behind(g, end) : -1;
        if (border >= 0)
            b[count++] = (behind){ end, border };
    }
    return count;
}

oct_status forms_absorb(forms_reader *r, int id, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    oct_compute how;
    if (!op || !op->integer || n->n_in < 1 || n->in[0] < 0 || !g->value[n->in[0]].quant || n->n_out < 1)
        return OCT_OK;
    behind *b = oct_calloc((size_t)n->n_out, sizeof *b);
    if (!b)
        return oct_nomem(err);
    const int count = find_borders(g, id, op, b);
    for (int i = 0; i < count; i++)
        g->value[b[i].end].quant = g->value[g->node[b[i].border].out[0]].quant;
    oct_status s = count ? oct_compute_of(g, id, &how, err) : OCT_OK;
    const bool yes = count && s == OCT_OK && how == OCT_ON_CODES;
    for (int i = 0; i < count && !yes; i++)
        g->value[b[i].end].quant = NULL;
    for (int i = 0; i < count && yes && s == OCT_OK; i++)
        s = join(r, b[i].end, b[i].border, err);
    oct_free(b);
    return s;
}
