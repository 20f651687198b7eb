/* Putting the nodes of one graph into another: calls of functions, branches. */
#include "graph/graph_int.h"

typedef struct splice {
    oct_graph *g;
    const char *prefix;
    const int *map;
    oct_fill_attr fill;
    void *arg;
    oct_err *err;
} splice;

static const char *prefixed(const splice *s, const char *name)
{
    return *s->prefix && *name ? oct_arena_printf(s->g->arena, "%s%s", s->prefix, name) : name;
}

/* ---- values ---- */

static oct_status new_value(const splice *s, const oct_graph *src, int v, int *made)
{
    const oct_value *x = &src->value[v];
    if (x->producer < 0 && !oct_value_is_constant(x))
        return oct_fail(s->err, OCT_EUNSUPPORTED, "'%s' is a constant that only its file can hold", x->name);
    const char *name = prefixed(s, x->name);
    if (!name)
        return oct_nomem(s->err);
    OCT_TRY(oct_graph_new_value(s->g, name, x->dtype, made, s->err));
    s->g->value[*made].kind = x->kind;
    s->g->value[*made].elem = x->elem;
    s->g->value[*made].quant = x->quant;
    OCT_TRY(oct_graph_set_shape(s->g, *made, x->shape.rank, x->shape.d, s->err));
    if (x->constant)
        oct_graph_set_const(s->g, *made, x->constant);
    return OCT_OK;
}

/* ---- attributes ---- */

static oct_status fill_attrs(const splice *s, oct_node *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->n_attr; i++) {
        oct_attr a = n->attr[i];
        if (a.ref && s->fill)
            OCT_TRY(s->fill(s->arg, &a, s->err));
        if (a.type)
            n->attr[kept++] = a;
    }
    n->n_attr = kept;
    return OCT_OK;
}

/* Captures of src become captures of g; inputs that src did not get become absent. */
static oct_status move_capture(const splice *s, oct_graph *nested, int v)
{
    oct_value *x = &nested->value[v];
    x->outer = s->map[x->outer];
    if (x->outer >= 0)
        return OCT_OK;
    while (x->n_uses) {
        oct_use u = x->uses[0];
        if (u.slot < 0 || x->is_output)
            break;
        OCT_TRY(oct_graph_set_input(nested, u.node, u.slot, -1, s->err));
    }
    if (x->n_uses || x->is_output)
        return oct_fail(s->err, OCT_EMALFORMED, "a nested graph needs '%s', which the call leaves out", x->name);
    oct_graph_remove_value(nested, v);
    return OCT_OK;
}

/* Completes a copied nested graph: makes its names unique, and replaces references to attributes. */
static oct_status settle(const splice *s, oct_graph *nested)
{
    nested->origin = NULL;
    nested->changed = true;
    for (size_t v = 0; v < nested->n_value; v++) {
        const char *name = prefixed(s, nested->value[v].name);
        if (nested->value[v].dead || nested->value[v].outer >= 0)
            continue;
        if (!name)
            return oct_nomem(s->err);
        OCT_TRY(oct_graph_rename(nested, (int)v, name, s->err));
    }
    for (size_t i = 0; i < nested->n_order; i++) {
        oct_node *n = &nested->node[nested->order[i]];
        oct_graph *inner;
        n->changed = true;
        OCT_TRY(fill_attrs(s, n));
        for (size_t k = 0; (inner = oct_node_graph_at(n, k)); k++)
            OCT_TRY(settle(s, inner));
    }
    return OCT_OK;
}

static oct_status add_nested(const splice *s, int node)
{
    oct_graph *nested;
    OCT_TRY(oct_graph_clone_nested(s->g, &s->g->node[node], s->err));
    for (size_t k = 0; (nested = oct_node_graph_at(&s->g->node[node], k)); k++) {
        for (size_t v = 0; v < nested->n_value; v++)
            if (!nested->value[v].dead && nested->value[v].outer >= 0)
                OCT_TRY(move_capture(s, nested, (int)v));
        OCT_TRY(settle(s, nested));
    }
    return oct_graph_set_captures(s->g, node, s->err);
}

/* ---- nodes ---- */

static oct_status add_node(const splice *s, int before, const oct_node *from)
{
    oct_graph *g = s->g;
    int id;
    const char *name = prefixed(s, from->name);
    if (!name)
        return oct_nomem(s->err);
    OCT_TRY(oct_graph_add_node(g, from->op, from->domain, name, from->n_in, from->n_out, before, &id, s->err));
    g->node[id].overload = from->overload;
    g->node[id].origin = from->origin;
    g->node[id].changed = true;
    for (int i = 0; i < from->n_in; i++)
        if (from->in[i] >= 0)
            OCT_TRY(oct_graph_set_input(g, id, i, s->map[from->in[i]], s->err));
    for (int i = 0; i < from->n_out; i++)
        if (from->out[i] >= 0)
            OCT_TRY(oct_graph_set_output(g, id, i, s->map[from->out[i]], s->err));
    oct_node *n = &g->node[id];
    if (!(n->attr = oct_arena_memdup(g->arena, from->attr, from->n_attr * sizeof *n->attr)))
        return oct_nomem(s->err);
    n->n_attr = n->cap_attr = from->n_attr;
    OCT_TRY(fill_attrs(s, n));
    return oct_node_graph_at(n, 0) ? add_nested(s, id) : OCT_OK;
}

oct_status oct_graph_splice(oct_graph *g, int before, const oct_graph *src, const char *prefix, int *map,
                            oct_fill_attr fill, void *arg, oct_err *err)
{
    splice s = { g, prefix, map, fill, arg, err };
    for (size_t v = 0; v < src->n_value; v++) {
        const oct_value *x = &src->value[v];
        if (map[v] != -2)
            continue;
        map[v] = -1;
        if (!x->dead && (x->n_uses || x->is_output || x->producer >= 0))
            OCT_TRY(new_value(&s, src, (int)v, &map[v]));
    }
    for (size_t i = 0; i < src->n_order; i++)
        OCT_TRY(add_node(&s, before, &src->node[src->order[i]]));
    return OCT_OK;
}
