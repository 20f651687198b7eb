/* Constant folding: computes nodes whose inputs are constant, and values that shape inference knows completely. */
#include "passes/pass.h"

#include "ops/traits.h"

#include <math.h>
#include <string.h>

/* Whether all inputs are available constants. Readers of a quantized value do not read its constant. */
static bool all_constant(const oct_graph *g, const oct_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 &&
            (!g->value[n->in[i]].constant || !g->value[n->in[i]].constant->data || g->value[n->in[i]].quant))
            return false;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && g->value[n->out[k]].quant)
            return false;
    return true;
}

static bool foldable(const oct_graph *g, const oct_node *n, const oct_op *op)
{
    if (!op || !op->run || op->draws || oct_node_graph_at(n, 0))
        return false;
    return strcmp(n->op, "DequantizeLinear") != 0 && all_constant(g, n);
}

/* Replaces a computed value by a constant. The node that computed it loses this output, so that pruning can remove the
 * node. */
static void make_constant(oct_graph *g, int node, int slot, const oct_tensor *t, const oct_recipe *recipe)
{
    int v = g->node[node].out[slot];
    g->value[v].producer = -1;
    g->node[node].out[slot] = -1;
    g->node[node].changed = true;
    oct_graph_set_const(g, v, t);
    g->value[v].recipe = recipe;
    g->value[v].made_slot = slot;
}

static oct_status fold_known(oct_graph *g, int node, bool *folded, oct_err *err)
{
    const oct_node *n = &g->node[node];
    if (n->n_out != 1 || n->out[0] < 0)
        return OCT_OK;
    const oct_value *v = &g->value[n->out[0]];
    if (!v->known || v->is_output || (v->dtype != OCT_S64 && v->dtype != OCT_S32) || v->shape.rank < 0 ||
        v->shape.rank > 1 || (v->shape.rank == 1 && v->shape.d[0].n != v->n_known) ||
        (v->shape.rank == 0 && v->n_known != 1))
        return OCT_OK;
    for (int i = 0; i < v->n_known; i++)
        if (v->known[i].n < 0)
            return OCT_OK;
    oct_tensor *t;
    int64_t dims[1] = { v->n_known };
    OCT_TRY(oct_tensor_new(g->arena, v->dtype, v->shape.rank, dims, &t, err));
    for (int i = 0; i < v->n_known; i++) {
        if (t->dtype == OCT_S64)
            ((int64_t *)(uintptr_t)t->data)[i] = v->known[i].n;
        else
            ((int32_t *)(uintptr_t)t->data)[i] = (int32_t)v->known[i].n;
    }
    make_constant(g, node, 0, t, NULL);
    *folded = true;
    return OCT_OK;
}

/* ---- how much work there is ---- */

/* The bounds, and the work of everything that was folded so far. */
typedef struct folding {
    oct_fold_bounds most;
    double work;
} folding;

/* The number of elements of those values that have a known shape. */
static double count_of(const oct_graph *g, const int *values, int n)
{
    double sum = 0.0;
    int64_t dims[OCT_MAX_RANK];
    for (int i = 0; i < n; i++) {
        const oct_shape *s = values[i] >= 0 ? &g->value[values[i]].shape : NULL;
        if (!s || !oct_shape_known(s, dims))
            continue;
        double count = 1.0;
        for (int k = 0; k < s->rank; k++)
            count *= (double)dims[k];
        sum += count;
    }
    return sum;
}

/* Whether a node's outputs consist of elements of its inputs, and have no more of them. Then a file that asks for them
 * is as large. */
static bool only_moves(const oct_graph *g, int node, const oct_op *op)
{
    const oct_node *n = &g->node[node];
    double there = 0.0;
    for (int i = 0; i < n->n_in; i++)
        there += n->in[i] >= 0 ? (double)g->value[n->in[i]].constant->count : 0.0;
    return (op->moves || op->converts) && count_of(g, n->out, n->n_out) <= there;
}

/* The most operations that a node takes. Whatever an operator does with one element counts as one. */
static double work_of(const oct_graph *g, int node, const oct_op *op)
{
    const oct_node *n = &g->node[node];
    const double elements = count_of(g, n->in, n->n_in) + count_of(g, n->out, n->n_out);
    return op->work == OCT_WORK_PAIRS ? elements * elements : elements + (double)oct_node_macs(g, node);
}

/* Makes readers of the copy of a constant read the constant itself, so that several layers share one array. */
static oct_status skip_copy(oct_graph *g, const oct_node *n, bool *folded, oct_err *err)
{
    *folded = true;
    return oct_graph_replace_uses(g, n->out[0], n->in[0], err);
}

static oct_status fold_node(oct_graph *g, int node, folding *f, bool *folded, oct_err *err)
{
    const oct_op *op = oct_op_of(g, node);
    oct_node *n = &g->node[node];
    *folded = false;
    if (oct_arena_bytes(g->arena) > f->most.arena)
        return OCT_OK;
    if (!foldable(g, n, op))
        return fold_known(g, node, folded, err);
    const double work = work_of(g, node, op);
    if (f->work + work > f->most.work)
        return OCT_OK;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && g->value[n->out[k]].is_output)
            return OCT_OK; /* a graph output must be computed by a node */
    if (strcmp(n->op, "Identity") == 0 && !n->domain[0] && g->value[n->out[0]].n_uses)
        return skip_copy(g, n, folded, err);
    oct_tensor **out = oct_arena_calloc(g->arena, (size_t)n->n_out + 1, sizeof *out);
    if (!out)
        return oct_nomem(err);
    f->work += work;
    oct_err why = OCT_ERR_INIT;
    const size_t most = f->most.moved && only_moves(g, node, op) ? SIZE_MAX : f->most.output;
    oct_status s = oct_op_eval(g, node, most, g->arena, out, &why);
    if (s == OCT_EUNSUPPORTED)
        return OCT_OK; /* the node is not folded */
    if (s != OCT_OK) {
        if (err)
            *err = why;
        return s;
    }
    const oct_recipe *recipe;
    OCT_TRY(oct_graph_note_recipe(g, node, (const oct_tensor *const *)out, &recipe, err));
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0)
            make_constant(g, node, k, out[k], recipe);
    *folded = true;
    return OCT_OK;
}

/* Folds the subgraphs that a node holds, where values that are constant outside are constant too. A subgraph with
 * contradictory shapes is left as it is, because it may be a branch that is never taken. */
static oct_status fold_graph(oct_graph *g, folding *f, int *n_folded, oct_err *err);
static oct_status fold_nested(oct_graph *g, int node, folding *f, int *count, oct_err *err)
{
    oct_graph *nested;
    if (oct_node_graph_at(&g->node[node], 0))
        OCT_TRY(oct_graph_pass_on(g, node, err));
    for (size_t k = 0; (nested = oct_node_graph_at(&g->node[node], k)); k++) {
        int n = 0;
        oct_err why = OCT_ERR_INIT;
        if (fold_graph(nested, f, &n, &why) == OCT_ENOMEM)
            return oct_nomem(err);
        *count += n;
    }
    return OCT_OK;
}

static oct_status fold_graph(oct_graph *g, folding *f, int *n_folded, oct_err *err)
{
    int count = 0;
    OCT_TRY(oct_infer_shapes(g, err));
    for (size_t i = 0; i < g->n_order; i++) {
        int id = g->order[i];
        bool folded;
        oct_status s = fold_node(g, id, f, &folded, err);
        if (s == OCT_OK)
            s = fold_nested(g, id, f, &count, err);
        OCT_TRY(oct_within_node(g, id, s, err));
        count += folded;
    }
    if (count) {
        oct_graph_prune(g);
        OCT_TRY(oct_infer_shapes(g, err));
    }
    *n_folded = count;
    return OCT_OK;
}

oct_status oct_fold_constants(oct_graph *g, const oct_fold_bounds *bounds, int *n_folded, oct_err *err)
{
    folding f = { bounds ? *bounds : (oct_fold_bounds){ SIZE_MAX, SIZE_MAX, INFINITY, false }, 0.0 };
    int count;
    OCT_TRY(fold_graph(g, &f, &count, err));
    if (n_folded)
        *n_folded = count;
    return OCT_OK;
}
