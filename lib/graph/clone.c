/* Deep copies of graphs, nested ones included. */
#include "graph/graph_int.h"

static bool clone_value(oct_arena *a, oct_value *v)
{
    if (v->shape.rank >= 0 && v->shape.d) {
        v->shape.d = oct_arena_memdup(a, v->shape.d, (size_t)v->shape.rank * sizeof *v->shape.d);
        if (!v->shape.d)
            return false;
    }
    v->cap_uses = v->n_uses;
    v->uses = oct_arena_memdup(a, v->uses, v->n_uses * sizeof *v->uses);
    return v->uses != NULL;
}

static bool clone_node(oct_arena *a, oct_node *n)
{
    n->in = oct_arena_memdup(a, n->in, (size_t)n->n_in * sizeof *n->in);
    n->out = oct_arena_memdup(a, n->out, (size_t)n->n_out * sizeof *n->out);
    n->captured = oct_arena_memdup(a, n->captured, (size_t)n->n_captured * sizeof *n->captured);
    n->attr = oct_arena_memdup(a, n->attr, n->n_attr * sizeof *n->attr);
    n->cap_attr = n->n_attr;
    return n->in && n->out && n->captured && n->attr;
}

/* Fills c, an empty graph with arena and outer graph, with a copy of g. */
static oct_status clone_into(const oct_graph *g, oct_graph *c, oct_err *err)
{
    oct_arena *a = c->arena;
    oct_graph *outer = c->outer;
    *c = *g;
    c->arena = a;
    c->outer = outer;
    c->nested = NULL;
    c->n_nested = c->cap_nested = 0;
    c->names = NULL;
    c->value = oct_arena_memdup(a, g->value, g->n_value * sizeof *g->value);
    c->node = oct_arena_memdup(a, g->node, g->n_node * sizeof *g->node);
    c->order = oct_arena_memdup(a, g->order, g->n_order * sizeof *g->order);
    c->input = oct_arena_memdup(a, g->input, g->n_input * sizeof *g->input);
    c->output = oct_arena_memdup(a, g->output, g->n_output * sizeof *g->output);
    c->opset = oct_arena_memdup(a, g->opset, g->n_opset * sizeof *g->opset);
    c->map = oct_arena_memdup(a, g->map, g->map_cap * sizeof *g->map);
    c->cap_value = c->n_value, c->cap_node = c->n_node, c->cap_order = c->n_order;
    c->cap_input = c->n_input, c->cap_output = c->n_output, c->cap_opset = c->n_opset;
    bool ok = c->value && c->node && c->order && c->input && c->output && c->opset && c->map;
    for (size_t i = 0; ok && i < c->n_value; i++)
        ok = clone_value(a, &c->value[i]) && (c->value[i].dead || oct_names_add(c, c->value[i].name));
    for (size_t i = 0; ok && i < c->n_node; i++)
        ok = clone_node(a, &c->node[i]);
    if (!ok)
        return oct_nomem(err);
    for (size_t i = 0; i < c->n_node; i++)
        OCT_TRY(oct_graph_clone_nested(c, &c->node[i], err));
    return OCT_OK;
}

/* The list of graphs of one attribute, copied. */
static oct_status clone_graphs(oct_graph *g, oct_attr *attr, oct_err *err)
{
    oct_graph **list = oct_arena_calloc(g->arena, (size_t)attr->n + 1, sizeof *list);
    if (!list)
        return oct_nomem(err);
    for (int i = 0; i < attr->n; i++) {
        OCT_TRY(oct_graph_new_nested(g, &list[i], err));
        OCT_TRY(clone_into(attr->graphs[i], list[i], err));
    }
    attr->graphs = list;
    return OCT_OK;
}

oct_status oct_graph_clone_nested(oct_graph *g, oct_node *n, oct_err *err)
{
    for (size_t i = 0; i < n->n_attr && !n->dead; i++)
        if (n->attr[i].graphs)
            OCT_TRY(clone_graphs(g, &n->attr[i], err));
    return OCT_OK;
}

/* A copy of a nested graph, with its own opsets and functions; captured values become inputs. */
static oct_status stand_alone(oct_graph *c, const oct_graph *from, oct_err *err)
{
    const oct_graph *top = from;
    while (top->outer)
        top = top->outer;
    c->opset = oct_arena_memdup(c->arena, top->opset, top->n_opset * sizeof *top->opset);
    if (!c->opset)
        return oct_nomem(err);
    c->n_opset = c->cap_opset = top->n_opset;
    c->function = top->function;
    c->n_function = top->n_function;
    for (size_t v = 0; v < c->n_value; v++) {
        oct_value *x = &c->value[v];
        if (x->dead || x->outer < 0)
            continue;
        x->outer = -1;
        if (oct_value_is_constant(x))
            continue;
        x->is_input = true;
        if (!OCT_GROW(c->arena, c->input, c->n_input, c->cap_input))
            return oct_nomem(err);
        c->input[c->n_input++] = (int)v;
    }
    return OCT_OK;
}

oct_status oct_graph_clone(const oct_graph *g, oct_graph **copy, oct_err *err)
{
    oct_graph *c = oct_graph_create();
    if (!c)
        return oct_nomem(err);
    oct_arena *a = c->arena;
    oct_status s = clone_into(g, c, err);
    if (s == OCT_OK && g->outer)
        s = stand_alone(c, g, err);
    if (s != OCT_OK)
        oct_arena_destroy(a);
    else
        *copy = c;
    return s;
}
