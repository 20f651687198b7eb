/* Nested graphs: making them, what they capture, functions. */
#include "graph/graph_int.h"

#include <stdlib.h>
#include <string.h>

oct_graph *oct_node_graph_at(const oct_node *n, size_t k)
{
    for (size_t i = 0; i < n->n_attr; i++) {
        const oct_attr *a = &n->attr[i];
        if (!a->graphs)
            continue;
        if (k < (size_t)a->n)
            return a->graphs[k];
        k -= (size_t)a->n;
    }
    return NULL;
}

oct_graph *oct_node_graph(const oct_node *n, const char *attr)
{
    const oct_attr *a = oct_node_attr(n, attr);
    return a && a->type == OCT_ATTR_GRAPH && a->graphs ? a->graphs[0] : NULL;
}

const char *oct_node_label(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    for (int i = 0; !n->name[0] && i < n->n_out; i++)
        if (n->out[i] >= 0)
            return g->value[n->out[i]].name;
    return n->name;
}

void oct_node_put_path(const oct_graph *g, int node, size_t k, oct_buf *b)
{
    const oct_node *n = &g->node[node];
    for (size_t i = 0; i < n->n_attr; i++) {
        const size_t graphs = n->attr[i].graphs ? (size_t)n->attr[i].n : 0;
        if (k < graphs) {
            oct_buf_printf(b, "%s/%s/", oct_node_label(g, node), n->attr[i].name);
            return;
        }
        k -= graphs;
    }
}

oct_status oct_graph_new_nested(oct_graph *outer, oct_graph **nested, oct_err *err)
{
    oct_graph *g = oct_arena_calloc(outer->arena, 1, sizeof *g);
    if (!g || !OCT_GROW(outer->arena, outer->nested, outer->n_nested, outer->cap_nested))
        return oct_nomem(err);
    g->arena = outer->arena;
    g->outer = outer;
    g->name = "";
    outer->nested[outer->n_nested++] = g;
    *nested = g;
    return OCT_OK;
}

const char *oct_value_name(const oct_graph *g, int value)
{
    while (g->value[value].outer >= 0) {
        value = g->value[value].outer;
        g = g->outer;
    }
    return g->value[value].name;
}

bool oct_graph_is_changed(const oct_graph *g)
{
    if (g->changed)
        return true;
    for (size_t i = 0; i < g->n_nested; i++)
        if (oct_graph_is_changed(g->nested[i]))
            return true;
    return false;
}

/* ---- captures ---- */

oct_status oct_graph_capture(oct_graph *nested, int outer, int *value, oct_err *err)
{
    const oct_value *from = &nested->outer->value[outer];
    int v = oct_graph_find(nested, from->name);
    if (v >= 0 && nested->value[v].outer == outer) {
        *value = v;
        return OCT_OK;
    }
    /* The value has the name of the outer value, unless a value of this graph hides it. */
    OCT_TRY(v < 0 ? oct_graph_add_value(nested, from->name, from->dtype, &v, err)
                  : oct_graph_new_value(nested, from->name, from->dtype, &v, err));
    nested->value[v].outer = outer;
    *value = v;
    return OCT_OK;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

/* Outer values that the graphs of n have a value for, sorted, once each; NULL: out of memory. */
static int *wanted_captures(oct_graph *g, const oct_node *n, int *count)
{
    size_t all = 0, k = 0;
    oct_graph *nested;
    for (size_t i = 0; (nested = oct_node_graph_at(n, i)); i++)
        for (size_t v = 0; v < nested->n_value; v++)
            all += !nested->value[v].dead && nested->value[v].outer >= 0;
    int *list = oct_arena_alloc(g->arena, (all + 1) * sizeof *list);
    if (!list)
        return NULL;
    for (size_t i = 0; (nested = oct_node_graph_at(n, i)); i++)
        for (size_t v = 0; v < nested->n_value; v++)
            if (!nested->value[v].dead && nested->value[v].outer >= 0)
                list[k++] = nested->value[v].outer;
    qsort(list, k, sizeof *list, by_number);
    *count = 0;
    for (size_t i = 0; i < k; i++)
        if (i == 0 || list[i] != list[i - 1])
            list[(*count)++] = list[i];
    return list;
}

oct_status oct_graph_set_captures(oct_graph *g, int node, oct_err *err)
{
    oct_node *n = &g->node[node];
    int count, *list = wanted_captures(g, n, &count);
    if (!list)
        return oct_nomem(err);
    for (int i = 0; i < n->n_captured; i++)
        oct_graph_drop_use(g, n->captured[i], node, -1);
    n->n_captured = 0;
    for (int i = 0; i < count; i++)
        OCT_TRY(oct_graph_add_use(g, list[i], node, -1, err));
    n->captured = list;
    n->n_captured = count;
    return OCT_OK;
}

static bool stands_for(const oct_graph *nested, const char *name, int outer)
{
    int v = oct_graph_find(nested, name);
    if (v >= 0 && nested->value[v].outer == outer)
        return true;
    for (size_t i = 0; i < nested->n_value; i++)
        if (!nested->value[i].dead && nested->value[i].outer == outer)
            return true;
    return false;
}

void oct_graph_drop_captures(oct_graph *g, int node)
{
    oct_node *n = &g->node[node];
    int kept = 0;
    for (int i = 0; i < n->n_captured; i++) {
        bool found = false;
        oct_graph *nested;
        for (size_t k = 0; !found && (nested = oct_node_graph_at(n, k)); k++)
            found = stands_for(nested, g->value[n->captured[i]].name, n->captured[i]);
        if (found)
            n->captured[kept++] = n->captured[i];
        else
            oct_graph_drop_use(g, n->captured[i], node, -1);
    }
    n->n_captured = kept;
}

/* A value of g has a new name in the file, so its users must be written anew. */
static void touch_users(oct_graph *g, int value)
{
    g->changed = true;
    for (size_t i = 0; i < g->value[value].n_uses; i++) {
        oct_node *n = &g->node[g->value[value].uses[i].node];
        oct_graph *nested;
        n->changed = true;
        for (size_t k = 0; g->value[value].uses[i].slot < 0 && (nested = oct_node_graph_at(n, k)); k++)
            for (size_t v = 0; v < nested->n_value; v++)
                if (!nested->value[v].dead && nested->value[v].outer == value)
                    touch_users(nested, (int)v);
    }
}

oct_status oct_graph_recapture(oct_graph *g, int node, int from, int to, oct_err *err)
{
    oct_node *n = &g->node[node];
    oct_graph *nested;
    for (size_t k = 0; (nested = oct_node_graph_at(n, k)); k++)
        for (size_t v = 0; v < nested->n_value; v++)
            if (!nested->value[v].dead && nested->value[v].outer == from) {
                nested->value[v].outer = to;
                touch_users(nested, (int)v);
            }
    n->changed = g->changed = true;
    return oct_graph_set_captures(g, node, err);
}

oct_status oct_graph_pass_on(oct_graph *g, int node, oct_err *err)
{
    oct_graph *nested;
    for (size_t k = 0; (nested = oct_node_graph_at(&g->node[node], k)); k++)
        for (size_t i = 0; i < nested->n_value; i++) {
            oct_value *v = &nested->value[i];
            if (v->dead || v->outer < 0)
                continue;
            const oct_value *from = &g->value[v->outer];
            v->dtype = from->dtype;
            v->kind = from->kind;
            v->elem = from->elem;
            v->constant = from->constant;
            v->quant = from->quant;
            v->known = from->known;
            v->n_known = from->n_known;
            OCT_TRY(oct_graph_set_shape(nested, (int)i, from->shape.rank, from->shape.d, err));
        }
    return OCT_OK;
}

/* ---- functions ---- */

static int compare_function(const void *key, const void *element)
{
    const oct_function *k = key, *f = element;
    int c = strcmp(k->domain, f->domain);
    c = c ? c : strcmp(k->name, f->name);
    return c ? c : strcmp(k->overload, f->overload);
}

const oct_function *oct_graph_function(const oct_graph *g, const char *domain, const char *name, const char *overload)
{
    while (g->outer)
        g = g->outer;
    oct_function key = { .domain = domain, .name = name, .overload = overload };
    return g->n_function ? bsearch(&key, g->function, g->n_function, sizeof *g->function, compare_function) : NULL;
}

oct_status oct_graph_set_functions(oct_graph *g, oct_function *f, size_t n, oct_err *err)
{
    if (n)
        qsort(f, n, sizeof *f, compare_function);
    for (size_t i = 1; i < n; i++)
        if (compare_function(&f[i - 1], &f[i]) == 0)
            return oct_fail(err, OCT_EMALFORMED, "function '%s' is defined twice", f[i].name);
    g->function = f;
    g->n_function = n;
    return OCT_OK;
}
