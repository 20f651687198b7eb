/* Writes a quantized graph. Values are written in such an order that the constants of a layer stand together, and those
 * of activations after them. */
#include "forms/write/write_int.h"

#include "ops/op.h"
#include "passes/match.h"

#include <stdlib.h>
#include <string.h>

static const oct_quant *quant_at(const oct_graph *g, int node, int slot)
{
    const int v = oct_input_at(&g->node[node], slot);
    return v >= 0 ? g->value[v].quant : NULL;
}

/* Whether a constant is read only as input 1 of nodes, as weights of products are. */
static bool only_weights(const oct_graph *g, int v)
{
    bool only = !g->value[v].is_output;
    for (size_t i = 0; i < g->value[v].n_uses; i++)
        only &= g->value[v].uses[i].slot == 1;
    return only;
}

static oct_spelling spelling_of(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_quant *x = quant_at(g, id, 0), *w = quant_at(g, id, 1);
    if (!w || !w->qvals)
        return OCT_SPELLED_REAL;
    if (oct_is_op(n, "LSTM")) /* scales along axis 1 are not those of products that are quantized dynamically */
        return w->n > 1 && !w->block && w->axis == 1 ? OCT_SPELLED_REAL : OCT_SPELLED_LSTM;
    if ((!oct_is_op(n, "MatMul") && !oct_is_op(n, "Gemm")) || !only_weights(g, n->in[1]))
        return OCT_SPELLED_REAL;
    return w->block ? OCT_SPELLED_BLOCKS : x && x->n == 0 ? OCT_SPELLED_DYNAMIC : OCT_SPELLED_REAL;
}

/* ---- weights and biases of products ---- */

static oct_status write_product(oct_writer *w, int id, oct_err *err)
{
    const oct_op *op = oct_op_of(w->g, id);
    if (w->node[id].spelling >= OCT_SPELLED_DYNAMIC || !op || op->quant != OCT_QUANT_WEIGHTED)
        return OCT_OK;
    for (int slot = 1; slot < w->g->node[id].n_in && slot < 3; slot++) {
        const oct_quant *q = quant_at(w->g, id, slot);
        if (q && q->qvals)
            OCT_TRY(oct_write_constant(w, w->g->node[id].in[slot], id, err));
    }
    return OCT_OK;
}

/* ---- the other values, in the order of those that they represent ---- */

typedef struct position {
    int of, value;
} position;

static int by_position(const void *a, const void *b)
{
    const position *x = a, *y = b;
    return x->of != y->of ? (x->of > y->of) - (x->of < y->of) : (x->value > y->value) - (x->value < y->value);
}

static oct_status position_of(const oct_writer *w, int v, position *t, oct_err *err)
{
    const oct_value *x = &w->g->value[v];
    const char *base;
    int of = -1;
    if (x->quant->qvals) {
        OCT_TRY(oct_write_base(w, v, &base, err));
        of = oct_graph_find(w->g, base);
    } else if (x->producer >= 0 && oct_is_op(&w->g->node[x->producer], "QuantizeLinear")) {
        of = w->g->node[x->producer].in[0];
    }
    *t = (position){ of >= 0 ? of : v, v };
    return OCT_OK;
}

/* Whether a value still has to be written, and is not written by the form of the node that reads it. */
static bool waits(const oct_writer *w, const oct_value *x)
{
    return !x->dead && x->quant && x->quant->n &&
           !(x->quant->qvals && x->n_uses && w->node[x->uses[0].node].spelling >= OCT_SPELLED_DYNAMIC);
}

static oct_status write_values(oct_writer *w, oct_err *err)
{
    position *t = oct_arena_calloc(w->g->arena, w->g->n_value + 1, sizeof *t);
    size_t n = 0;
    if (!t)
        return oct_nomem(err);
    for (size_t v = 0; v < w->g->n_value; v++)
        if (waits(w, &w->g->value[v]))
            OCT_TRY(position_of(w, (int)v, &t[n++], err));
    qsort(t, n, sizeof *t, by_position);
    for (size_t i = 0; i < n; i++)
        OCT_TRY(w->g->value[t[i].value].quant->qvals ? oct_write_constant(w, t[i].value, oct_edit_after(w->g, -1), err)
                                                     : oct_write_activation(w, t[i].value, err));
    return OCT_OK;
}

/* ---- all of it ---- */

static oct_status write_spelled(oct_writer *w, int id, oct_err *err)
{
    switch (w->node[id].spelling) {
    case OCT_SPELLED_QLINEAR: return oct_write_qlinear(w, id, err);
    case OCT_SPELLED_DYNAMIC: return oct_write_dynamic(w, id, err);
    case OCT_SPELLED_LSTM: return oct_write_lstm(w, id, err);
    case OCT_SPELLED_BLOCKS: return oct_write_blocks(w, id, err);
    default: return OCT_OK;
    }
}

static oct_status begin(oct_writer *w, oct_err *err)
{
    oct_graph *g = w->g;
    for (w->n_params = 16; w->n_params < 2 * g->n_value;)
        w->n_params *= 2;
    w->n_node = g->n_node;
    w->node = oct_arena_calloc(g->arena, g->n_node + 1, sizeof *w->node);
    w->params = oct_arena_calloc(g->arena, w->n_params, sizeof *w->params);
    if (!w->node || !w->params)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        if (g->value[v].outer >= 0)
            g->value[v].quant = NULL; /* in files, subgraphs capture real numbers */
    for (size_t i = 0; i < g->n_order; i++)
        w->node[g->order[i]].spelling = spelling_of(g, g->order[i]);
    for (size_t i = 0; i < g->n_order; i++) /* a MatMul may become another operator that has a form on integers */
        OCT_TRY(oct_write_matmul(w, g->order[i], err));
    w->value = oct_arena_calloc(g->arena, g->n_value + 1, sizeof *w->value); /* including those that were made here */
    if (!w->value)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        w->value[v] = (oct_value_plan){ NULL, -1, { -1, -1 } };
    return w->o->operators ? oct_write_plan_operators(w, err) : OCT_OK;
}

/* Rewrites layers that become several nodes. */
static oct_status expand(oct_graph *g, oct_err *err)
{
    const size_t n = g->n_order;
    const int *order = oct_arena_memdup(g->arena, g->order, n * sizeof *order);
    if (!order)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const oct_node *x = &g->node[order[i]];
        const oct_quant *w = quant_at(g, order[i], 1), *r = quant_at(g, order[i], 2);
        if ((oct_is_op(x, "GRU") || oct_is_op(x, "RNN")) && w && w->qvals && r && r->qvals)
            OCT_TRY(oct_write_recurrent(g, order[i], err));
    }
    return OCT_OK;
}

static oct_status write_nested(oct_graph *g, const oct_forms_write_opts *o, oct_err *err)
{
    oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++) {
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            OCT_TRY(oct_forms_write(nested, o, err));
        if (oct_node_graph_at(&g->node[g->order[i]], 0))
            OCT_TRY(oct_graph_set_captures(g, g->order[i], err));
    }
    return OCT_OK;
}

/* ---- constants that are written once ---- */

/* Sorts values with the same data next to each other, in the order of the graph. */
static int by_data(const void *a, const void *b)
{
    const oct_value *x = *(const oct_value *const *)a, *y = *(const oct_value *const *)b;
    const uintptr_t p = (uintptr_t)x->constant->data, q = (uintptr_t)y->constant->data;
    return p != q ? (p > q) - (p < q) : (x > y) - (x < y);
}

static bool same_tensor(const oct_tensor *a, const oct_tensor *b)
{
    return a->data == b->data && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* A product and a table with the same quantized values share one constant. Values of the file are not changed. */
static oct_status share_constants(oct_graph *g, oct_err *err)
{
    const oct_value **made = oct_arena_calloc(g->arena, g->n_value + 1, sizeof *made);
    size_t n = 0;
    if (!made)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++) {
        const oct_value *x = &g->value[v];
        if (!x->dead && x->constant && x->constant->data && x->constant->bytes && !x->origin &&
            !oct_edit_keeps(g, (int)v))
            made[n++] = x;
    }
    qsort(made, n, sizeof *made, by_data);
    for (size_t i = 1; i < n; i++)
        if (same_tensor(made[i - 1]->constant, made[i]->constant)) {
            OCT_TRY(oct_graph_replace_uses(g, (int)(made[i] - g->value), (int)(made[i - 1] - g->value), err));
            made[i] = made[i - 1];
        }
    return OCT_OK;
}

oct_status oct_forms_write(oct_graph *g, const oct_forms_write_opts *o, oct_err *err)
{
    OCT_TRY(expand(g, err));
    OCT_TRY(write_nested(g, o, err));
    oct_writer w = { .g = g, .o = o };
    const size_t n = g->n_order;
    const int *order = oct_arena_memdup(g->arena, g->order, n * sizeof *order);
    if (!order)
        return oct_nomem(err);
    OCT_TRY(begin(&w, err));
    for (size_t i = 0; i < n; i++)
        OCT_TRY(write_product(&w, order[i], err));
    OCT_TRY(write_values(&w, err));
    if (o->operators)
        OCT_TRY(oct_write_given_pairs(&w, order, n, err));
    for (size_t i = 0; i < n; i++)
        OCT_TRY(write_spelled(&w, order[i], err));
    for (size_t i = 0; i < n && !o->blocks_qdq; i++)
        if (!g->node[order[i]].dead)
            OCT_TRY(oct_write_experts(g, order[i], err));
    OCT_TRY(share_constants(g, err));
    oct_graph_prune(g);
    OCT_TRY(oct_graph_sort(g, err));
    return oct_graph_check(g, err);
}
