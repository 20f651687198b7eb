/* Cutting a stage out of a graph: what can be planned from the tensors that are there. */
#include "runtime/staged_int.h"

#include "passes/pass.h"

/* Nodes that have run leave; what they left are inputs of known shape. */
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

/* Whether a node that is not covered, or the graph's end, needs the value. */
static bool is_needed(const oct_graph *g, int v, const bool *covered)
{
    const oct_value *x = &g->value[v];
    bool needed = x->is_output;
    for (size_t i = 0; i < x->n_uses && !needed; i++)
        needed = !covered[x->uses[i].node];
    return needed;
}

static bool push(oct_arena *a, int **list, size_t *n, size_t *cap, int v)
{
    if (!oct_arena_grow(a, (void **)list, *n, cap, sizeof **list))
        return false;
    (*list)[(*n)++] = v;
    return true;
}

/* What the stage hands on: results of its nodes, and what became a constant. from: the graph before. */
static oct_status list_results(const oct_graph *from, rt_stage *st, const bool *covered, oct_err *err)
{
    const oct_graph *g = st->g;
    size_t cap = 0, cap_constant = 0;
    for (size_t v = 0; v < from->n_value; v++) {
        const oct_value *x = &g->value[v];
        if (x->dead || !is_needed(g, (int)v, covered))
            continue;
        if (x->producer >= 0 && covered[x->producer]) {
            if (!push(st->arena, &st->out, &st->n_out, &cap, (int)v))
                return oct_nomem(err);
        } else if (x->constant && x->constant->data && !from->value[v].constant) {
            if (!OCT_GROW(st->arena, st->constant, st->n_constant, cap_constant))
                return oct_nomem(err);
            st->constant[st->n_constant++] = (rt_constant){ (int)v, x->constant };
        }
    }
    return OCT_OK;
}

/* Nodes that are done after the stage: covered ones, and those that folding made needless. */
static oct_status list_nodes(const oct_graph *from, rt_stage *st, const bool *covered, oct_err *err)
{
    size_t cap = 0;
    for (size_t i = 0; i < from->n_order; i++) {
        int id = from->order[i];
        if (!st->done[id] && (st->g->node[id].dead || covered[id]) && !push(st->arena, &st->node, &st->n_node, &cap, id))
            return oct_nomem(err);
    }
    return OCT_OK;
}

/* The covered nodes alone, with the inputs that they use. */
static oct_status reduce(rt_stage *st, const bool *covered, oct_err *err)
{
    oct_graph *g = st->g;
    for (size_t i = 0; i < g->n_output; i++)
        g->value[g->output[i]].is_output = false;
    g->n_output = 0;
    for (size_t id = 0; id < g->n_node; id++)
        if (!g->node[id].dead && !covered[id])
            oct_graph_remove_node(g, (int)id);
    for (size_t i = 0; i < st->n_out; i++) {
        g->value[st->out[i]].is_output = true;
        if (!OCT_GROW(g->arena, g->output, g->n_output, g->cap_output))
            return oct_nomem(err);
        g->output[g->n_output++] = st->out[i];
    }
    oct_graph_prune(g);
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        int v = g->input[i];
        if (!g->value[v].n_uses) {
            g->value[v].is_input = false;
            continue;
        }
        g->input[n++] = v;
        if (!push(st->arena, &st->in, &st->n_in, &cap, v))
            return oct_nomem(err);
    }
    g->n_input = n;
    return OCT_OK;
}

oct_status rt_cut(oct_plan *p, rt_stage *st, oct_err *err)
{
    OCT_TRY(oct_graph_clone(p->g, &st->g, err));
    OCT_TRY(take_in(st->g, st, err));
    oct_forget_shapes(st->g);
    OCT_TRY(oct_fold_constants(st->g, NULL, NULL, err));
    bool *covered = oct_arena_calloc(st->arena, st->g->n_node + 1, sizeof *covered);
    bool *value = oct_arena_calloc(st->arena, st->g->n_value + 1, sizeof *value);
    if (!covered || !value)
        return oct_nomem(err);
    rt_cover(st->g, covered, value);
    OCT_TRY(list_results(p->g, st, covered, err));
    OCT_TRY(list_nodes(p->g, st, covered, err));
    OCT_TRY(reduce(st, covered, err));
    return st->n_out ? rt_create(st->g, NULL, p, true, &st->plan, err) : OCT_OK;
}
