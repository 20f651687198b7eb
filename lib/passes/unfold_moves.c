/* Folded constants that have the numbers of another one, in another order or shape, become values that nodes compute
 * again. */
#include "passes/unfold.h"

#include "ops/op.h"

/* Whether a constant was only moved, in one or several steps, from input 0 of its recipe, which is a constant of the
 * file. */
static bool only_moves(const oct_graph *g, int value)
{
    for (int steps = 0; steps < OCT_RECIPE_NODES; steps++) {
        const oct_recipe *r = g->value[value].recipe;
        const oct_op *op = oct_op_find(r->node.domain, r->node.op, r->opset);
        if (!op || !op->moves || r->node.n_in < 1 || r->node.in[0] < 0 || !r->from[0] ||
            r->from[0]->dtype != r->made[g->value[value].made_slot]->dtype)
            return false;
        const int from = r->node.in[0];
        for (int i = 1; i < r->node.n_in; i++)
            if (r->from[i] && r->from[i]->dtype == r->from[0]->dtype)
                return false; /* Concat: its numbers come from several constants */
        if (!g->value[from].recipe || g->value[from].recipe->made[g->value[from].made_slot] != r->from[0])
            return true;
        value = from;
    }
    return false;
}

static oct_status unfold_here(oct_graph *g, oct_unfolding *u, bool *any, oct_err *err)
{
    oct_graph *nested;
    const size_t n = g->n_value;
    for (size_t v = 0; v < n; v++) {
        const oct_value *x = &g->value[v];
        oct_sources s;
        if (x->dead || !x->constant || !x->recipe || !x->n_uses || x->is_output || x->outer >= 0 ||
            x->constant->bytes < OCT_UNFOLD_LEAST || oct_value_is_captured(x) || !only_moves(g, (int)v) ||
            !oct_graph_sources(g, (int)v, &s))
            continue;
        OCT_TRY(oct_graph_unfold(g, (int)v, u, err));
        *any = true;
    }
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(unfold_here(nested, u, any, err));
    return OCT_OK;
}

oct_status oct_unfold_moves(oct_graph *g, oct_err *err)
{
    oct_unfolding *u = oct_unfolding_create();
    bool any = false;
    if (!u)
        return oct_nomem(err);
    const oct_status s = unfold_here(g, u, &any, err);
    oct_unfolding_destroy(u);
    return s == OCT_OK && any ? oct_settle_unfolded(g, err) : s;
}
