/* Undoes folding where it makes a file larger.
 *
 * A folded constant costs its bytes in the file. Computing it costs its nodes, and the constants that it is computed
 * from, except those that are in the file anyway. It may be worthwhile to compute several constants with a common
 * source, although it is not for each alone. So first each constant is taken that saves bytes by itself. This is
 * repeated, because its sources are then available to others. Finally, groups of constants connected by sources are
 * taken if they save bytes together. (The best choice is a minimum cut. This choice never makes a file larger.) */
#include "passes/unfold.h"

#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

enum { NODE_BYTES = 100, MOST_ROUNDS = 16 };

/* A constant that others are computed from. */
typedef struct source {
    const oct_tensor *t;
    size_t bytes;
    bool there; /* it is in the file anyway */
    int set;    /* groups of connected sources: the parent in a union-find forest */
} source;

/* A constant that could be computed. */
typedef struct item {
    oct_graph *g;
    int value;
    size_t bytes, nodes;
    size_t first, n; /* its sources */
    bool taken;
} item;

typedef struct unfolder {
    const oct_unfold_opts *o;
    oct_arena *arena;
    item *item;
    size_t n, cap;
    const oct_tensor **from; /* the sources of all items, one after the other; sorted copies of them become `source` */
    size_t *at;              /* the same, as indices of `source` */
    size_t n_from, cap_from;
    const oct_tensor **real; /* constants that are in the file anyway, sorted */
    size_t n_real, cap_real;
    source *source; /* sorted by tensor */
    size_t n_source;
} unfolder;

/* ---- the constants ---- */

static oct_status add_item(unfolder *u, oct_graph *g, int v, size_t bytes, oct_err *err)
{
    oct_sources s;
    if (!oct_graph_sources(g, v, &s))
        return OCT_OK;
    if (!OCT_GROW(u->arena, u->item, u->n, u->cap))
        return oct_nomem(err);
    u->item[u->n++] = (item){ g, v, bytes, s.nodes, u->n_from, s.n, false };
    for (size_t i = 0; i < s.n; i++) {
        if (!OCT_GROW(u->arena, u->from, u->n_from, u->cap_from))
            return oct_nomem(err);
        u->from[u->n_from++] = s.of[i];
    }
    return OCT_OK;
}

static oct_status list_constants(unfolder *u, oct_graph *g, oct_err *err)
{
    oct_graph *nested;
    for (size_t v = 0; v < g->n_value; v++) {
        const oct_value *x = &g->value[v];
        if (x->dead || !x->constant || !x->constant->data || (!x->n_uses && !x->is_output))
            continue;
        const oct_stored s = u->o->stored(u->o->arg, g, (int)v);
        if (x->recipe && !s.needed && x->constant->bytes >= OCT_UNFOLD_LEAST && !x->is_output &&
            !oct_value_is_captured(x)) {
            OCT_TRY(add_item(u, g, (int)v, s.bytes, err));
        } else if (s.real) {
            if (!OCT_GROW(u->arena, u->real, u->n_real, u->cap_real))
                return oct_nomem(err);
            u->real[u->n_real++] = x->constant;
        }
    }
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(list_constants(u, nested, err));
    return OCT_OK;
}

static int by_tensor(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (const oct_tensor *const *)a, y = (uintptr_t) * (const oct_tensor *const *)b;
    return (x > y) - (x < y);
}

static int find(const void *key, const void *element)
{
    return by_tensor(&(const oct_tensor *){ key }, &((const source *)element)->t);
}

static oct_status list_sources(unfolder *u, oct_err *err)
{
    const oct_tensor **sorted = oct_arena_memdup(u->arena, u->from, u->n_from * sizeof *sorted);
    u->source = oct_arena_calloc(u->arena, u->n_from + 1, sizeof *u->source);
    u->at = oct_arena_calloc(u->arena, u->n_from + 1, sizeof *u->at);
    if (!sorted || !u->source || !u->at)
        return oct_nomem(err);
    qsort(sorted, u->n_from, sizeof *sorted, by_tensor);
    if (u->n_real)
        qsort(u->real, u->n_real, sizeof *u->real, by_tensor);
    for (size_t i = 0; i < u->n_from; i++) {
        if (i && sorted[i] == sorted[i - 1])
            continue;
        const bool there = u->n_real && bsearch(&sorted[i], u->real, u->n_real, sizeof *u->real, by_tensor);
        const size_t bytes = u->o->source ? u->o->source(u->o->arg, sorted[i]) : sorted[i]->bytes;
        u->source[u->n_source] = (source){ sorted[i], bytes, there, (int)u->n_source };
        u->n_source++;
    }
    for (size_t i = 0; i < u->n_from; i++)
        u->at[i] =
            (size_t)((const source *)bsearch(u->from[i], u->source, u->n_source, sizeof *u->source, find) - u->source);
    return OCT_OK;
}

/* ---- the choice ---- */

static void take(unfolder *u, item *x)
{
    x->taken = true;
    for (size_t i = x->first; i < x->first + x->n; i++)
        u->source[u->at[i]].there = true;
}

static size_t cost_of(const unfolder *u, const item *x)
{
    size_t sum = x->nodes * NODE_BYTES;
    for (size_t i = x->first; i < x->first + x->n; i++)
        sum += u->source[u->at[i]].there ? 0 : u->source[u->at[i]].bytes;
    return sum;
}

static bool take_each(unfolder *u, size_t *saved)
{
    bool any = false;
    for (size_t i = 0; i < u->n; i++) {
        item *x = &u->item[i];
        const size_t cost = x->taken ? SIZE_MAX : cost_of(u, x);
        if (cost < x->bytes) {
            *saved += x->bytes - cost;
            take(u, x);
            any = true;
        }
    }
    return any;
}

static int root(unfolder *u, int s)
{
    while (u->source[s].set != s)
        s = u->source[s].set = u->source[u->source[s].set].set;
    return s;
}

/* The first source of an item that is not in the file yet, or -1. */
static int missing(const unfolder *u, const item *x)
{
    for (size_t i = x->first; i < x->first + x->n; i++)
        if (!u->source[u->at[i]].there)
            return (int)u->at[i];
    return -1;
}

static oct_status take_together(unfolder *u, size_t *saved, oct_err *err)
{
    size_t *bytes = oct_arena_calloc(u->arena, u->n_source + 1, sizeof *bytes),
           *cost = oct_arena_calloc(u->arena, u->n_source + 1, sizeof *cost);
    if (!bytes || !cost)
        return oct_nomem(err);
    for (size_t i = 0; i < u->n; i++) {
        const item *x = &u->item[i];
        const int first = x->taken ? -1 : missing(u, x);
        for (size_t k = x->first; k < x->first + x->n && first >= 0; k++)
            if (!u->source[u->at[k]].there)
                u->source[root(u, (int)u->at[k])].set = root(u, first);
    }
    for (size_t i = 0; i < u->n_source; i++)
        if (!u->source[i].there)
            cost[root(u, (int)i)] += u->source[i].bytes;
    for (size_t i = 0; i < u->n; i++) {
        const int s = u->item[i].taken ? -1 : missing(u, &u->item[i]);
        if (s >= 0) {
            bytes[root(u, s)] += u->item[i].bytes;
            cost[root(u, s)] += u->item[i].nodes * NODE_BYTES;
        }
    }
    for (size_t i = 0; i < u->n_source; i++)
        *saved += bytes[i] > cost[i] ? bytes[i] - cost[i] : 0;
    bool *together = oct_arena_calloc(u->arena, u->n + 1, sizeof *together);
    if (!together)
        return oct_nomem(err);
    for (size_t i = 0; i < u->n; i++) {
        const int s = u->item[i].taken ? -1 : missing(u, &u->item[i]);
        together[i] = s >= 0 && bytes[root(u, s)] > cost[root(u, s)];
    }
    for (size_t i = 0; i < u->n; i++)
        if (together[i])
            take(u, &u->item[i]);
    return OCT_OK;
}

/* ---- applying the choice ---- */

static oct_status sort_all(oct_graph *g, oct_err *err)
{
    oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(sort_all(nested, err));
    oct_graph_prune(g);
    return oct_graph_sort(g, err);
}

oct_status oct_settle_unfolded(oct_graph *g, oct_err *err)
{
    OCT_TRY(oct_graph_update_captures(g, err));
    OCT_TRY(sort_all(g, err));
    OCT_TRY(oct_graph_update_captures(g, err));
    return oct_infer_shapes(g, err);
}

static oct_status apply(unfolder *u, oct_graph *g, size_t *n, oct_err *err)
{
    oct_unfolding *how = oct_unfolding_create();
    oct_status s = how ? OCT_OK : oct_nomem(err);
    *n = 0;
    for (size_t i = 0; i < u->n && s == OCT_OK; i++)
        if (u->item[i].taken) {
            s = oct_graph_unfold(u->item[i].g, u->item[i].value, how, err);
            ++*n;
        }
    oct_unfolding_destroy(how);
    return s == OCT_OK && *n ? oct_settle_unfolded(g, err) : s;
}

static oct_status choose(unfolder *u, oct_graph *g, size_t *saved, oct_err *err)
{
    OCT_TRY(list_constants(u, g, err));
    OCT_TRY(list_sources(u, err));
    for (int i = 0; i < MOST_ROUNDS && take_each(u, saved); i++)
        ;
    return take_together(u, saved, err);
}

oct_status oct_unfold(oct_graph *g, const oct_unfold_opts *o, size_t *n, size_t *saved, oct_err *err)
{
    unfolder u = { .o = o, .arena = oct_arena_create() };
    *n = *saved = 0;
    oct_status s = u.arena ? choose(&u, g, saved, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = apply(&u, g, n, err);
    oct_arena_destroy(u.arena);
    return s;
}
