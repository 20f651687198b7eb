/* The names that the values of a nest have, counted: new names must be new in all of its graphs, and asking each of
 * thousands of branches for each name takes too long. */
#include "graph/graph_int.h"

#include "base/io.h"

#include <string.h>

typedef struct name_count {
    const char *name; /* NULL: no entry */
    int values;       /* live ones that have it */
} name_count;

struct oct_name_set {
    name_count *slot; /* open addressing */
    size_t cap, used;
};

static oct_graph *outermost(oct_graph *g)
{
    while (g->outer)
        g = g->outer;
    return g;
}

static name_count *slot_of(const oct_name_set *s, const char *name)
{
    size_t mask = s->cap - 1, i = oct_hash(OCT_HASH_INIT, name, strlen(name)) & mask;
    while (s->slot[i].name && strcmp(s->slot[i].name, name) != 0)
        i = (i + 1) & mask;
    return &s->slot[i];
}

static bool reserve(oct_arena *a, oct_name_set *s)
{
    if (2 * (s->used + 1) < s->cap)
        return true;
    oct_name_set old = *s;
    size_t cap = old.cap ? 2 * old.cap : 256;
    name_count *fresh = oct_arena_calloc(a, cap, sizeof *fresh);
    if (!fresh)
        return false;
    *s = (oct_name_set){ fresh, cap, old.used };
    for (size_t i = 0; i < old.cap; i++)
        if (old.slot[i].name)
            *slot_of(s, old.slot[i].name) = old.slot[i];
    return true;
}

static bool add(oct_arena *a, oct_name_set *s, const char *name)
{
    if (!reserve(a, s))
        return false;
    name_count *c = slot_of(s, name);
    s->used += !c->name;
    if (!c->name)
        c->name = name;
    c->values++;
    return true;
}

static bool add_all(oct_name_set *s, const oct_graph *g)
{
    for (size_t v = 0; v < g->n_value; v++)
        if (!g->value[v].dead && !add(g->arena, s, g->value[v].name))
            return false;
    for (size_t i = 0; i < g->n_nested; i++)
        if (!add_all(s, g->nested[i]))
            return false;
    return true;
}

bool oct_names_add(oct_graph *g, const char *name)
{
    oct_name_set *s = outermost(g)->names;
    return !s || add(g->arena, s, name);
}

void oct_names_drop(oct_graph *g, const char *name)
{
    const oct_name_set *s = outermost(g)->names;
    if (s)
        slot_of(s, name)->values--;
}

oct_status oct_names_taken(oct_graph *g, const char *name, bool *taken, oct_err *err)
{
    oct_graph *top = outermost(g);
    if (!top->names) {
        oct_name_set *s = oct_arena_calloc(top->arena, 1, sizeof *s);
        if (!s || !reserve(top->arena, s) || !add_all(s, top))
            return oct_nomem(err);
        top->names = s;
    }
    *taken = slot_of(top->names, name)->values > 0;
    return OCT_OK;
}
