/* Pass: removes operators that pass on their input unchanged: Identity, Dropout in inference, Cast to the same type,
 * Reshape to the same shape. */
#include "passes/pass.h"

#include <string.h>

static bool same_shape(const oct_shape *a, const oct_shape *b)
{
    if (a->rank < 0 || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        bool known = a->d[i].n >= 0 && a->d[i].n == b->d[i].n;
        bool symbol = a->d[i].n < 0 && b->d[i].n < 0 && a->d[i].sym && b->d[i].sym && !strcmp(a->d[i].sym, b->d[i].sym);
        if (!known && !symbol)
            return false;
    }
    return true;
}

static bool passes_through(const oct_graph *g, const oct_node *n)
{
    if (n->domain[0] || n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 || n->out[0] < 0)
        return false;
    for (int k = 1; k < n->n_out; k++)
        if (n->out[k] >= 0 && (g->value[n->out[k]].n_uses || g->value[n->out[k]].is_output))
            return false;
    const oct_value *x = &g->value[n->in[0]], *y = &g->value[n->out[0]];
    if (y->quant || (x->quant && y->is_output))
        return false; /* its output is rounded, or is another value whose name is needed */
    if (strcmp(n->op, "Identity") == 0)
        return true;
    if (strcmp(n->op, "Dropout") == 0) {
        const oct_tensor *mode = oct_node_constant(g, n, 2);
        bool training = oct_input_at(n, 2) >= 0 && (!mode || !mode->data || *(const uint8_t *)mode->data);
        return !training;
    }
    if (strcmp(n->op, "Cast") == 0)
        return x->dtype != OCT_UNDEFINED && x->dtype == (oct_dtype)oct_node_int(n, "to", 0);
    if (strcmp(n->op, "Reshape") == 0 || strcmp(n->op, "Expand") == 0)
        return same_shape(&x->shape, &y->shape);
    return false;
}

/* Removes the node. A graph output must keep its name: the node that computes the input then computes the output, if
 * the input is visible nowhere else; otherwise the node is kept. */
static oct_status bypass(oct_graph *g, int id, bool *gone, oct_err *err)
{
    int x = g->node[id].in[0], y = g->node[id].out[0];
    *gone = false;
    if (!g->value[y].is_output) {
        OCT_TRY(oct_graph_replace_uses(g, y, x, err));
        oct_graph_remove_node(g, id);
        oct_graph_remove_value(g, y);
        *gone = true;
        return OCT_OK;
    }
    int p = g->value[x].producer;
    if (p < 0 || g->value[x].is_output)
        return OCT_OK;
    int slot = 0;
    while (g->node[p].out[slot] != x)
        slot++;
    oct_graph_remove_node(g, id);
    OCT_TRY(oct_graph_replace_uses(g, x, y, err));
    OCT_TRY(oct_graph_set_output(g, p, slot, y, err));
    oct_graph_remove_value(g, x);
    *gone = true;
    return OCT_OK;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order;) {
        int id = g->order[i];
        bool gone = false;
        if (passes_through(g, &g->node[id])) {
            const char *op = g->node[id].op, *name = g->node[id].name;
            OCT_TRY(bypass(g, id, &gone, err));
            if (gone)
                oct_pass_note(log, self, op, name);
        }
        i += !gone;
    }
    return OCT_OK;
}

const oct_pass oct_pass_identity = { "identity", "remove Identity, Dropout and casts and reshapes that change nothing",
                                     run };
