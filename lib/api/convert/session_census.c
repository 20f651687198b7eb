/* What a graph has: inputs, outputs, and how many nodes of each operator; before a conversion and after it. */
#include "api/convert/session_int.h"

#include <string.h>

enum { NESTED = 64 }; /* graphs nest no deeper than a loader allows */

static oct_census_row *add(oct_census *c, oct_arena *arena, const char *what, const char *name)
{
    const char *own = oct_arena_strdup(arena, name); /* passes may rename */
    if (!own || !OCT_GROW(arena, c->row, c->n, c->cap))
        return NULL;
    c->row[c->n] = (oct_census_row){ .what = what, .name = own };
    return &c->row[c->n++];
}

static oct_census_row *find(const oct_census *c, const char *what, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->row[i].what, what) == 0 && strcmp(c->row[i].name, name) == 0)
            return &c->row[i];
    return NULL;
}

static oct_status take_ports(const oct_graph *g, const int *port, size_t n, const char *what, oct_arena *arena,
                             oct_census *c, oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const oct_value *v = &g->value[port[i]];
        char shape[300];
        oct_census_row *r = add(c, arena, what, v->name);
        if (!r || !(r->text = oct_arena_printf(arena, "%s %s", v->dtype ? oct_dtype_name(v->dtype) : "?",
                                               oct_shape_text(&v->shape, shape, sizeof shape))))
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status take_nodes(const oct_graph *g, int depth, oct_arena *arena, oct_census *c, oct_err *err)
{
    const oct_graph *inner;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *node = &g->node[g->order[i]];
        oct_census_row *r = find(c, "operator", node->op);
        if (!r && !(r = add(c, arena, "operator", node->op)))
            return oct_nomem(err);
        r->n++;
        for (size_t k = 0; depth < NESTED && (inner = oct_node_graph_at(node, k)); k++)
            OCT_TRY(take_nodes(inner, depth + 1, arena, c, err));
    }
    return OCT_OK;
}

oct_status oct_census_take(const oct_graph *g, oct_arena *arena, oct_census *c, oct_err *err)
{
    OCT_TRY(take_ports(g, g->input, g->n_input, "input", arena, c, err));
    OCT_TRY(take_ports(g, g->output, g->n_output, "output", arena, c, err));
    return take_nodes(g, 0, arena, c, err);
}

static void put_value(oct_json *j, const char *key, const oct_census_row *r, bool port)
{
    if (port)
        oct_json_str(j, key, r ? r->text : NULL);
    else
        oct_json_int(j, key, r ? (int64_t)r->n : 0);
}

/* before or after may be NULL: it is not there. */
static void put_row(oct_json *j, const oct_census_row *before, const oct_census_row *after)
{
    const oct_census_row *r = before ? before : after;
    const bool port = r->text != NULL;
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "what", r->what);
    oct_json_str(j, "name", r->name);
    put_value(j, "before", before, port);
    put_value(j, "after", after, port);
    oct_json_close(j);
}

void oct_report_census(oct_json *j, const oct_session *s)
{
    oct_arena *arena = oct_arena_create();
    oct_census now = { .n = 0 };
    oct_json_open(j, "graph", '[');
    if (arena && oct_census_take(s->c.m->graph, arena, &now, NULL) == OCT_OK) {
        for (size_t i = 0; i < s->census.n; i++)
            put_row(j, &s->census.row[i], find(&now, s->census.row[i].what, s->census.row[i].name));
        for (size_t i = 0; i < now.n; i++)
            if (!find(&s->census, now.row[i].what, now.row[i].name))
                put_row(j, NULL, &now.row[i]);
    }
    oct_json_close(j);
    oct_arena_destroy(arena);
}
