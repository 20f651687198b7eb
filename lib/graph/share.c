/* Replaces equal constants of nested graphs by one of the outermost graph. */
#include "graph/graph.h"

#include <string.h>

/* A constant of one graph of a nest. */
typedef struct shared {
    oct_graph *g;
    int value;
    int outermost; /* the value of the outermost graph that replaces it; -1: none yet */
} shared;

typedef struct shared_list {
    oct_arena *arena;
    shared *of;
    size_t n, cap;
} shared_list;

static bool is_shareable(const oct_value *v, size_t least)
{
    return !v->dead && v->constant && v->constant->data && v->constant->dtype != OCT_STRING &&
           v->constant->bytes >= least && v->outer < 0 && !v->is_input && !v->is_output && v->n_uses;
}

/* Those of the outermost graph come first. */
static oct_status list_constants(oct_graph *g, size_t least, oct_stays_nested stays, shared_list *to, oct_err *err)
{
    oct_graph *nested;
    for (size_t v = 0; v < g->n_value; v++)
        if (is_shareable(&g->value[v], least) && !(g->outer && stays && stays(g, (int)v))) {
            if (!OCT_GROW(to->arena, to->of, to->n, to->cap))
                return oct_nomem(err);
            to->of[to->n++] = (shared){ g, (int)v, g->outer ? -1 : (int)v };
        }
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(list_constants(nested, least, stays, to, err));
    return OCT_OK;
}

static bool same_constant(const shared *a, const shared *b)
{
    const oct_tensor *x = a->g->value[a->value].constant, *y = b->g->value[b->value].constant;
    return x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0 &&
           (x->data == y->data || memcmp(x->data, y->data, x->bytes) == 0);
}

/* The value of g that stands for a value of the outermost graph. */
static oct_status capture_outermost(oct_graph *g, int outermost, int *value, oct_err *err)
{
    int outer = outermost;
    if (g->outer->outer)
        OCT_TRY(capture_outermost(g->outer, outermost, &outer, err));
    return oct_graph_capture(g, outer, value, err);
}

/* Replaces a constant of a nested graph by a capture of one of the outermost graph. */
static oct_status take_shared(const shared *c, int outermost, oct_err *err)
{
    int taken;
    OCT_TRY(capture_outermost(c->g, outermost, &taken, err));
    OCT_TRY(oct_graph_replace_uses(c->g, c->value, taken, err));
    oct_graph_remove_value(c->g, c->value);
    c->g->changed = true;
    return OCT_OK;
}

static oct_status move_out(oct_graph *g, shared *c, oct_err *err)
{
    const oct_value *v = &c->g->value[c->value];
    const oct_tensor *t = v->constant;
    OCT_TRY(oct_graph_new_value(g, v->name, t->dtype, &c->outermost, err));
    OCT_TRY(oct_graph_set_dims(g, c->outermost, t->rank, t->dims, err));
    oct_graph_set_const(g, c->outermost, t);
    return take_shared(c, c->outermost, err);
}

/* A constant of a nested graph that equals one that is listed before it goes; c->g is NULL then. */
static oct_status share_one(oct_graph *g, shared_list *l, shared *c, oct_err *err)
{
    shared *first = l->of;
    while (first < c && (!first->g || !same_constant(first, c)))
        first++;
    if (first == c)
        return OCT_OK;
    if (first->outermost < 0)
        OCT_TRY(move_out(g, first, err));
    *first = (shared){ g, first->outermost, first->outermost };
    OCT_TRY(take_shared(c, first->outermost, err));
    c->g = NULL;
    return OCT_OK;
}

static oct_status set_all_captures(oct_graph *g, oct_err *err)
{
    oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++) {
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(set_all_captures(nested, err));
        if (oct_node_graph_at(&g->node[g->order[i]], 0))
            OCT_TRY(oct_graph_set_captures(g, g->order[i], err));
    }
    return OCT_OK;
}

static oct_status pass_all_on(oct_graph *g, oct_err *err)
{
    oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++) {
        if (oct_node_graph_at(&g->node[g->order[i]], 0))
            OCT_TRY(oct_graph_pass_on(g, g->order[i], err));
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(pass_all_on(nested, err));
    }
    return OCT_OK;
}

oct_status oct_graph_update_captures(oct_graph *g, oct_err *err)
{
    OCT_TRY(set_all_captures(g, err));
    return pass_all_on(g, err);
}

oct_status oct_graph_share_constants(oct_graph *g, size_t least, oct_stays_nested stays, oct_err *err)
{
    shared_list l = { .arena = oct_arena_create() };
    oct_status s = l.arena ? list_constants(g, least, stays, &l, err) : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < l.n; i++)
        if (l.of[i].g->outer)
            s = share_one(g, &l, &l.of[i], err);
    oct_arena_destroy(l.arena);
    return s == OCT_OK ? oct_graph_update_captures(g, err) : s;
}
