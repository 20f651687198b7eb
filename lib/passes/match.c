/* Finds operators that are expressed by several nodes. */
#include "passes/match.h"

#include <string.h>

int oct_maker(const oct_graph *g, int value)
{
    return value >= 0 && !g->value[value].quant ? g->value[value].producer : -1;
}

int oct_made_by(const oct_graph *g, int value, const char *op, int n_in)
{
    const int id = oct_maker(g, value);
    const oct_node *n = id >= 0 ? &g->node[id] : NULL;
    if (!n || !oct_is_op(n, op) || n->n_in != n_in || n->n_out != 1)
        return -1;
    for (int i = 0; i < n_in; i++)
        if (n->in[i] < 0)
            return -1;
    return id;
}

int oct_other_input(const oct_node *n, int value)
{
    if (n->n_in != 2 || n->in[0] == n->in[1])
        return -1;
    return n->in[0] == value ? n->in[1] : n->in[1] == value ? n->in[0] : -1;
}

int oct_only_reader(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    return !v->quant && oct_value_used_once(v) && v->uses[0].slot >= 0 ? v->uses[0].node : -1;
}

int oct_reader_of(const oct_graph *g, int value, const char *op, int n_out)
{
    for (size_t i = 0; i < g->value[value].n_uses; i++) {
        const oct_node *n = &g->node[g->value[value].uses[i].node];
        bool fits = oct_is_op(n, op) && n->n_out == n_out;
        for (int k = 0; k < n_out && fits; k++)
            fits = n->out[k] >= 0;
        if (fits)
            return g->value[value].uses[i].node;
    }
    return -1;
}

bool oct_number_of(const oct_graph *g, int value, double *v)
{
    const oct_tensor *t = oct_graph_constant(g, value);
    if (!t || t->count != 1 || !t->data || g->value[value].quant)
        return false;
    switch (t->dtype) {
    case OCT_F32: *v = (double)*(const float *)t->data; return true;
    case OCT_S32: *v = (double)*(const int32_t *)t->data; return true;
    case OCT_S64: *v = (double)*(const int64_t *)t->data; return true;
    default: return false;
    }
}

bool oct_same_dims(const oct_graph *g, int a, int b)
{
    const oct_shape *sa = &g->value[a].shape, *sb = &g->value[b].shape;
    if (sa->rank < 0 || sa->rank != sb->rank)
        return false;
    for (int k = 0; k < sa->rank; k++) {
        const oct_dim *da = &sa->d[k], *db = &sb->d[k];
        const bool one_name = da->n < 0 && da->sym && db->sym && strcmp(da->sym, db->sym) == 0;
        if (da->n != db->n || (da->n < 0 && !one_name))
            return false;
    }
    return true;
}

static bool has(const oct_match *m, int node)
{
    for (int i = 0; i < m->n; i++)
        if (m->node[i] == node)
            return true;
    return false;
}

bool oct_match_add(oct_match *m, int node)
{
    if (has(m, node))
        return true;
    if (m->n == OCT_MATCH_NODES)
        return false;
    m->node[m->n++] = node;
    return true;
}

bool oct_match_holds(const oct_graph *g, const oct_match *m, int root)
{
    for (int i = 0; i < m->n; i++) {
        const oct_node *n = &g->node[m->node[i]];
        for (int k = 0; k < n->n_out; k++) {
            const oct_value *v = n->out[k] >= 0 ? &g->value[n->out[k]] : NULL;
            if (!v || (m->node[i] == root && k == 0))
                continue;
            for (size_t u = 0; u < v->n_uses; u++)
                if (!has(m, v->uses[u].node))
                    return false;
            if (v->is_output || v->quant)
                return false;
        }
    }
    return true;
}

oct_status oct_match_replace(oct_graph *g, const oct_match *m, int root, int named, const oct_fused *f, int *node,
                             oct_err *err)
{
    const int out = g->node[root].out[0];
    OCT_TRY(oct_graph_add_node(g, f->op, f->domain, g->node[named].name, 0, 1, root, node, err));
    g->node[*node].opset = f->opset;
    for (int i = 0; i < f->n_in; i++)
        OCT_TRY(oct_graph_set_input(g, *node, i, f->in[i], err));
    for (int i = 0; i < m->n; i++)
        oct_graph_remove_node(g, m->node[i]);
    return oct_graph_set_output(g, *node, 0, out, err);
}

oct_status oct_match_value(oct_graph *g, int like, int rank, const int64_t *dims, int *value, oct_err *err)
{
    OCT_TRY(oct_graph_new_value(g, g->value[like].name, OCT_F32, value, err));
    return oct_graph_set_dims(g, *value, rank, dims, err);
}

oct_status oct_match_reshape(oct_graph *g, int from, int to, int before, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK], rank = g->value[to].shape.rank;
    int shape, id;
    if (!oct_shape_known(&g->value[to].shape, dims))
        return oct_fail(err, OCT_EINTERNAL, "a Reshape to an open shape");
    OCT_TRY(oct_graph_new_const_s64(g, "shape", 1, &rank, dims, &shape, err));
    OCT_TRY(oct_graph_add_node(g, "Reshape", "", g->value[to].name, 2, 1, before, &id, err));
    g->node[id].opset = 14;
    OCT_TRY(oct_graph_set_input(g, id, 0, from, err));
    OCT_TRY(oct_graph_set_input(g, id, 1, shape, err));
    return oct_graph_set_output(g, id, 0, to, err);
}
