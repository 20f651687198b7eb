/* Reads forms: the walk over the graph. */
#include "forms/edit.h"
#include "forms/read/read_int.h"

#include "base/array.h"
#include "kernels/half.h"
#include "ops/core/small.h"
#include "passes/match.h"

#include <math.h>
#include <string.h>

/* Notes a border that the graph had before. */
static oct_status note_border(forms_reader *r, const oct_node *n, oct_err *err)
{
    if (!oct_border_of(r->g, n))
        return OCT_OK;
    if (oct_is_op(n, "DequantizeLinear"))
        return forms_add_annotated(r, n->in[0], n->out[0], err);
    return r->g->value[n->out[0]].quant ? OCT_OK : forms_add_annotated(r, n->out[0], n->in[0], err);
}

/* ---- the walk ---- */

static oct_status read_graph(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err);

static oct_status read_nested(const forms_reader *r, int node, oct_err *err)
{
    const oct_read_opts opts = { .operators_only = r->opts->operators_only, .keeps_lstm = r->opts->keeps_lstm };
    oct_graph *g = r->g, *nested;
    if (!oct_node_graph_at(&g->node[node], 0))
        return OCT_OK;
    OCT_TRY(oct_graph_pass_on(g, node, err));
    for (size_t k = 0; (nested = oct_node_graph_at(&g->node[node], k)); k++)
        OCT_TRY(read_graph(nested, &opts, NULL, err));
    return oct_graph_set_captures(g, node, err);
}

static oct_status read_node(forms_reader *r, int id, oct_err *err)
{
    bool done;
    OCT_TRY(note_border(r, &r->g->node[id], err));
    OCT_TRY(forms_read_qlinear(r, id, &done, err));
    if (done || r->opts->operators_only)
        return done ? OCT_OK : read_nested(r, id, err);
    OCT_TRY(forms_read_blocks(r, id, err));
    if (!r->opts->keeps_lstm)
        OCT_TRY(forms_read_lstm(r, id, err));
    OCT_TRY(forms_read_dequantize(r, id, err));
    if (r->g->node[id].dead)
        return OCT_OK;
    OCT_TRY(forms_read_dynamic(r, id, err));
    OCT_TRY(forms_read_move(r, id, err));
    return read_nested(r, id, err);
}

/* Lists the values that now have the numbers of the first n values. */
static oct_status tell(forms_reader *r, size_t n, const int **now, oct_err *err)
{
    int *list = oct_arena_alloc(r->g->arena, (n + 1) * sizeof *list);
    if (!list)
        return oct_nomem(err);
    for (size_t v = 0; v < n; v++) {
        list[v] = (int)v;
        while ((size_t)list[v] < r->n_value && r->value[list[v]].now >= 0)
            list[v] = r->value[list[v]].now;
    }
    *now = list;
    return OCT_OK;
}

static oct_status read_graph(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err)
{
    forms_reader r = { .g = g, .opts = opts };
    const size_t values = g->n_value, n = g->n_order;
    const int *at = oct_arena_memdup(g->arena, g->order, n * sizeof *at); /* the nodes that the graph had */
    if (!at)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (!g->node[at[i]].dead)
            OCT_TRY(oct_within_node(g, at[i], read_node(&r, at[i], err), err));
    for (size_t i = 0; i < n && !opts->operators_only; i++)
        if (!g->node[at[i]].dead)
            OCT_TRY(forms_read_quantize(&r, at[i], err));
    for (size_t i = 0; i < n && !opts->operators_only; i++)
        if (!g->node[at[i]].dead)
            OCT_TRY(forms_absorb(&r, at[i], err));
    for (size_t v = 0; v < r.n_value; v++)
        OCT_TRY(forms_settle(&r, (int)v, err));
    return now ? tell(&r, values, now, err) : OCT_OK;
}

oct_status oct_forms_read(oct_graph *g, const oct_read_opts *opts, const int **now, oct_err *err)
{
    static const oct_read_opts all = { .operators_only = false };
    OCT_TRY(read_graph(g, opts ? opts : &all, now, err));
#ifndef NDEBUG
    OCT_TRY(oct_graph_check(g, err));
#endif
    return OCT_OK;
}
