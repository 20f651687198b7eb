/* Names that a subgraph takes from the graphs around it. */
#include "onnx/index.h"

#include <string.h>

/* The names one graph defines: open addressing, NULL is free. */
typedef struct scope {
    const struct scope *outer;
    const char **slot;
    size_t cap;
} scope;

typedef struct search {
    oct_graph *g;
    int node;
    int *seen;
    size_t *budget;
    oct_err *err;
} search;

static const char **slot_of(const scope *s, const char *name)
{
    size_t mask = s->cap - 1, i = oct_hash(OCT_HASH_INIT, name, strlen(name)) & mask;
    while (s->slot[i] && strcmp(s->slot[i], name) != 0)
        i = (i + 1) & mask;
    return &s->slot[i];
}

static void define(scope *s, const char *name)
{
    if (name && *name)
        *slot_of(s, name) = name;
}

static bool is_defined(const scope *s, const char *name)
{
    for (; s; s = s->outer)
        if (*slot_of(s, name))
            return true;
    return false;
}

static oct_status open_scope(scope *s, const Onnx__GraphProto *p, oct_err *err)
{
    size_t n = p->n_input + p->n_initializer + p->n_sparse_initializer;
    for (size_t i = 0; i < p->n_node; i++)
        n += p->node[i]->n_output;
    for (s->cap = 8; s->cap < 2 * n + 1;)
        s->cap *= 2;
    if (!(s->slot = oct_calloc(s->cap, sizeof *s->slot)))
        return oct_nomem(err);
    for (size_t i = 0; i < p->n_input; i++)
        define(s, p->input[i]->name);
    for (size_t i = 0; i < p->n_initializer; i++)
        define(s, p->initializer[i]->name);
    for (size_t i = 0; i < p->n_sparse_initializer; i++)
        if (p->sparse_initializer[i]->values)
            define(s, p->sparse_initializer[i]->values->name);
    for (size_t i = 0; i < p->n_node; i++)
        for (size_t k = 0; k < p->node[i]->n_output; k++)
            define(s, p->node[i]->output[k]);
    return OCT_OK;
}

static oct_status use(const search *q, const scope *s, const char *name)
{
    if (!name || !*name || is_defined(s, name))
        return OCT_OK;
    int v = oct_graph_find(q->g, name);
    if (v < 0)
        return oct_fail(q->err, OCT_EMALFORMED, "its subgraph uses '%s', which nothing defines", name);
    if (q->seen[v] == q->node + 1)
        return OCT_OK;
    q->seen[v] = q->node + 1;
    size_t cost = (size_t)q->g->node[q->node].n_captured + 1;
    if (cost > *q->budget)
        return oct_fail(q->err, OCT_EUNSUPPORTED, "its subgraphs use too many values of the outer graph");
    *q->budget -= cost;
    return oct_graph_add_capture(q->g, q->node, v, q->err);
}

/* Recursion is as deep as the message nests, which is bounded (wire.h). */
static oct_status visit(const search *q, const Onnx__GraphProto *p, const scope *outer);

static oct_status visit_node(const search *q, const Onnx__NodeProto *n, const scope *s)
{
    for (size_t k = 0; k < n->n_input; k++)
        OCT_TRY(use(q, s, n->input[k]));
    for (size_t k = 0; k < n->n_attribute; k++) {
        const Onnx__AttributeProto *a = n->attribute[k];
        if (a->g)
            OCT_TRY(visit(q, a->g, s));
        for (size_t j = 0; j < a->n_graphs; j++)
            OCT_TRY(visit(q, a->graphs[j], s));
    }
    return OCT_OK;
}

static oct_status visit(const search *q, const Onnx__GraphProto *p, const scope *outer)
{
    scope s = { .outer = outer };
    OCT_TRY(open_scope(&s, p, q->err));
    oct_status r = OCT_OK;
    for (size_t i = 0; i < p->n_node && r == OCT_OK; i++)
        r = visit_node(q, p->node[i], &s);
    for (size_t i = 0; i < p->n_output && r == OCT_OK; i++)
        r = use(q, &s, p->output[i]->name);
    oct_free(s.slot);
    return r;
}

oct_status oct_find_captures(oct_graph *g, int node, const Onnx__GraphProto *sub, int *seen, size_t *budget,
                             oct_err *err)
{
    search q = { g, node, seen, budget, err };
    return visit(&q, sub, NULL);
}
