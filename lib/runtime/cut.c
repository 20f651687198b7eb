/* Makes a stage of a graph: the part that can be planned with the available tensors. */
#include "runtime/staged_int.h"

#include "passes/pass.h"

/* Removes nodes that have run; their outputs become inputs of known shape. */
static oct_status take_in(oct_graph *g, const rt_stage *st, oct_err *err)
{
    for (size_t i = 0; i < g->n_input; i++)
        g->value[g->input[i]].is_input = false;
    g->n_input = 0;
    for (size_t id = 0; id < g->n_node; id++)
        if (st->done[id] && !g->node[id].dead)
            oct_graph_remove_node(g, (int)id);
    for (size_t i = 0; i < st->n_live; i++) {
        const rt_live *l = &st->live[i];
        g->value[l->value].dtype = l->as.dtype;
        g->value[l->value].kind = OCT_VALUE_TENSOR;
        g->value[l->value].is_input = true;
        OCT_TRY(oct_graph_set_dims(g, l->value, l->as.rank, l->as.dims, err));
        if (!OCT_GROW(g->arena, g->input, g->n_input, g->cap_input))
            return oct_nomem(err);
        g->input[g->n_input++] = l->value;
    }
    return OCT_OK;
}

/* Whether the value is needed by a node that is not covered, or is an output of the graph. */
static bool is_needed(const oct_graph *g, int v, const bool *covered)
{
    const oct_value *x = &g->value[v];
    bool needed = x->is_output;
    for (size_t i = 0; i < x->n_uses && !needed; i++)
        needed = !covered[x->uses[i].node];
    return needed;
}

/* Whether a node that still has to run reads the value in the graph before, as the run will ask for it: folding may
 * have put a constant into a body that reads it from around, and then only that graph knows of the reader. */
static bool is_awaited(const oct_graph *from, const oct_graph *g, int v, const bool *covered)
{
    bool awaited = false;
    for (size_t i = 0; i < from->value[v].n_uses && !awaited; i++) {
        const int id = from->value[v].uses[i].node;
        awaited = !covered[id] && !g->node[id].dead;
    }
    return awaited;
}

/* The outputs of the stage: results of its nodes, which become outputs of its graph, and new constants. from: the graph
 * before. */
static oct_status list_results(const oct_graph *from, rt_stage *st, const bool *covered, oct_err *err)
{
    oct_graph *g = st->g;
    size_t cap = 0;
    g->n_output = 0;
    for (size_t v = 0; v < from->n_value; v++) {
        oct_value *x = &g->value[v];
        const bool needed = !x->dead && is_needed(g, (int)v, covered);
        x->is_output = needed && x->producer >= 0 && covered[x->producer];
        if (x->is_output) {
            if (!OCT_GROW(g->arena, g->output, g->n_output, g->cap_output))
                return oct_nomem(err);
            g->output[g->n_output++] = (int)v;
        } else if (x->constant && x->constant->data && !from->value[v].constant &&
                   (needed || is_awaited(from, g, (int)v, covered))) {
            if (!OCT_GROW(st->arena, st->constant, st->n_constant, cap))
                return oct_nomem(err);
            st->constant[st->n_constant++] = (int)v;
        }
    }
    return OCT_OK;
}

/* Nodes that are done after the stage: covered nodes, and those that folding made unnecessary. */
static oct_status list_nodes(const oct_graph *from, rt_stage *st, const bool *covered, oct_err *err)
{
    if (!(st->done_after = oct_arena_memdup(st->arena, st->done, from->n_node * sizeof *st->done)))
        return oct_nomem(err);
    for (size_t i = 0; i < from->n_order; i++) {
        const int id = from->order[i];
        if (!st->done[id] && (st->g->node[id].dead || covered[id])) {
            st->done_after[id] = true;
            st->n_node++;
        }
    }
    return OCT_OK;
}

/* Keeps only the covered nodes whose results are needed or tapped, and the inputs that they use. */
static void reduce(const oct_plan *p, oct_graph *g, const bool *covered)
{
    size_t n = 0;
    for (size_t id = 0; id < g->n_node; id++)
        if (!g->node[id].dead && !covered[id])
            oct_graph_remove_node(g, (int)id);
    rt_show_taps(p, g, true);
    oct_graph_prune(g);
    rt_show_taps(p, g, false);
    for (size_t i = 0; i < g->n_input; i++) {
        oct_value *v = &g->value[g->input[i]];
        v->is_input = v->n_uses > 0;
        if (v->is_input)
            g->input[n++] = g->input[i];
    }
    g->n_input = n;
}

oct_status rt_cut(oct_plan *p, rt_stage *st, oct_err *err)
{
    OCT_TRY(oct_graph_clone(p->g, &st->g, err));
    OCT_TRY(take_in(st->g, st, err));
    oct_forget_shapes(st->g);
    OCT_TRY(oct_fold_constants(st->g, NULL, NULL, err));
    bool *covered, all;
    OCT_TRY(rt_cover(st->g, st->arena, &covered, &all, err));
    OCT_TRY(list_results(p->g, st, covered, err));
    OCT_TRY(list_nodes(p->g, st, covered, err));
    reduce(p, st->g, covered);
    return st->g->n_order ? rt_create(st->g, NULL, p, true, &st->plan, err) : OCT_OK;
}
