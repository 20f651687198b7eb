/* Attributes of nodes, and opset imports. */
#include "graph/graph.h"

#include <string.h>

const oct_attr *oct_node_attr(const oct_node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) == 0)
            return &n->attr[i];
    return NULL;
}

static const oct_attr *typed(const oct_node *n, const char *name, oct_attr_type t)
{
    const oct_attr *a = oct_node_attr(n, name);
    return a && a->type == t && !a->ref ? a
                                        : NULL; /* outside of a function, a reference to its argument says nothing */
}

int64_t oct_node_int(const oct_node *n, const char *name, int64_t absent)
{
    const oct_attr *a = typed(n, name, OCT_ATTR_INT);
    return a ? a->i : absent;
}

float oct_node_float(const oct_node *n, const char *name, float absent)
{
    const oct_attr *a = typed(n, name, OCT_ATTR_FLOAT);
    return a ? a->f : absent;
}

const char *oct_node_str(const oct_node *n, const char *name, const char *absent)
{
    const oct_attr *a = typed(n, name, OCT_ATTR_STRING);
    return a ? a->s : absent;
}

const int64_t *oct_node_ints(const oct_node *n, const char *name, int *count)
{
    const oct_attr *a = typed(n, name, OCT_ATTR_INTS);
    *count = a ? a->n : 0;
    return a ? a->ints : NULL;
}

const float *oct_node_floats(const oct_node *n, const char *name, int *count)
{
    const oct_attr *a = typed(n, name, OCT_ATTR_FLOATS);
    *count = a ? a->n : 0;
    return a ? a->floats : NULL;
}

/* The attribute to overwrite: the existing one emptied, or a new one. NULL: out of memory. */
static oct_attr *fresh_attr(oct_graph *g, int node, const char *name, oct_attr_type t)
{
    oct_node *n = &g->node[node];
    oct_attr *a = (oct_attr *)(uintptr_t)oct_node_attr(n, name);
    if (!a) {
        if (!OCT_GROW(g->arena, n->attr, n->n_attr, n->cap_attr))
            return NULL;
        a = &n->attr[n->n_attr];
        char *copy = oct_arena_strdup(g->arena, name);
        if (!copy)
            return NULL;
        n->n_attr++;
        *a = (oct_attr){ .name = copy };
    }
    *a = (oct_attr){ .name = a->name, .type = t };
    n->changed = g->changed = true;
    return a;
}

oct_status oct_node_set_int(oct_graph *g, int node, const char *name, int64_t v, oct_err *err)
{
    oct_attr *a = fresh_attr(g, node, name, OCT_ATTR_INT);
    if (!a)
        return oct_nomem(err);
    a->i = v;
    return OCT_OK;
}

oct_status oct_node_set_float(oct_graph *g, int node, const char *name, float v, oct_err *err)
{
    oct_attr *a = fresh_attr(g, node, name, OCT_ATTR_FLOAT);
    if (!a)
        return oct_nomem(err);
    a->f = v;
    return OCT_OK;
}

oct_status oct_node_set_str(oct_graph *g, int node, const char *name, const char *v, oct_err *err)
{
    char *copy = oct_arena_strdup(g->arena, v);
    oct_attr *a = copy ? fresh_attr(g, node, name, OCT_ATTR_STRING) : NULL;
    if (!a)
        return oct_nomem(err);
    a->s = copy;
    a->s_len = strlen(v);
    return OCT_OK;
}

oct_status oct_node_set_ints(oct_graph *g, int node, const char *name, const int64_t *v, int n, oct_err *err)
{
    int64_t *copy = oct_arena_memdup(g->arena, v, (size_t)n * sizeof *v);
    oct_attr *a = copy ? fresh_attr(g, node, name, OCT_ATTR_INTS) : NULL;
    if (!a)
        return oct_nomem(err);
    a->ints = copy;
    a->n = n;
    return OCT_OK;
}

oct_status oct_node_set_tensor(oct_graph *g, int node, const char *name, const oct_tensor *t, oct_err *err)
{
    oct_attr *a = fresh_attr(g, node, name, OCT_ATTR_TENSOR);
    if (!a)
        return oct_nomem(err);
    a->t = t;
    return OCT_OK;
}

oct_status oct_node_set_graph(oct_graph *g, int node, const char *name, oct_graph *nested, oct_err *err)
{
    oct_attr *a = fresh_attr(g, node, name, OCT_ATTR_GRAPH);
    oct_graph **list = a ? oct_arena_alloc(g->arena, sizeof *list) : NULL;
    if (!list)
        return oct_nomem(err);
    list[0] = nested;
    a->graphs = list;
    a->n = 1;
    return oct_graph_set_captures(g, node, err);
}

void oct_node_drop_attr(oct_graph *g, int node, const char *name)
{
    oct_node *n = &g->node[node];
    for (size_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) == 0) {
            memmove(n->attr + i, n->attr + i + 1, (n->n_attr - i - 1) * sizeof *n->attr);
            n->n_attr--;
            n->changed = g->changed = true;
            return;
        }
}

int64_t oct_graph_opset(const oct_graph *g, const char *domain)
{
    while (g->outer)
        g = g->outer;
    for (size_t i = 0; i < g->n_opset; i++)
        if (strcmp(g->opset[i].domain, domain) == 0)
            return g->opset[i].version;
    return 0;
}

int64_t oct_node_opset(const oct_graph *g, const oct_node *n)
{
    return n->opset ? n->opset : oct_graph_opset(g, n->domain);
}

oct_status oct_graph_set_opset(oct_graph *g, const char *domain, int64_t version, oct_err *err)
{
    while (g->outer)
        g = g->outer;
    for (size_t i = 0; i < g->n_opset; i++)
        if (strcmp(g->opset[i].domain, domain) == 0) {
            g->changed |= g->opset[i].version != version;
            g->opset[i].version = version;
            return OCT_OK;
        }
    char *copy = oct_arena_strdup(g->arena, domain);
    if (!copy || !OCT_GROW(g->arena, g->opset, g->n_opset, g->cap_opset))
        return oct_nomem(err);
    g->opset[g->n_opset++] = (oct_opset){ copy, version };
    g->changed = true;
    return OCT_OK;
}
