/* Gives values that enter and leave the bodies of If, Loop and Scan their 16-bit type back. Both sides get Casts, so
 * that each graph can be written on its own; write_own_type.c removes those that nothing needs.
 *
 * In the file, such a value has one type on both sides, and so it has afterwards: states decide by the body's input,
 * other results by the output of the node. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "kernels/half.h"

#include <string.h>

/* The 16-bit type that a float32 value had in the file and gets back; OCT_UNDEFINED: it keeps its type. */
static oct_dtype own_type_at(const oct_graph *g, int v, bool bf16)
{
    const oct_value *x = v >= 0 ? &g->value[v] : NULL;
    if (!x || x->kind != OCT_VALUE_TENSOR || x->dtype != OCT_F32 || x->own_type == OCT_F32 ||
        (x->own_type == OCT_BF16 && !bf16))
        return OCT_UNDEFINED;
    return x->own_type;
}

static oct_status add_cast(oct_graph *g, int from, int to, int before, oct_err *err)
{
    int id;
    OCT_TRY(oct_edit_node(g, "Cast", &from, 1, to, before, &id, err));
    return oct_node_set_int(g, id, "to", g->value[to].dtype, err);
}

/* ---- values in their type ---- */

static oct_status new_value(oct_graph *g, int v, oct_dtype t, int *out, oct_err *err)
{
    const char *suffix = oct_arena_printf(g->arena, "_%s", oct_dtype_name(t));
    return suffix ? oct_edit_value(g, g->value[v].name, suffix, t, v, out, err) : oct_nomem(err);
}

/* Makes the value that has v's numbers in type t. made: by value, what was made before; 0: nothing. */
static oct_status narrowed(oct_graph *g, int v, oct_dtype t, int *made, int *out, oct_err *err)
{
    const oct_tensor *k = g->value[v].constant;
    if (made[v]) {
        *out = made[v];
        return OCT_OK;
    }
    OCT_TRY(new_value(g, v, t, out, err));
    made[v] = *out;
    if (!k || !k->data)
        return add_cast(g, v, *out, oct_edit_after(g, g->value[v].producer), err);
    oct_tensor *half;
    OCT_TRY(oct_tensor_new(g->arena, t, k->rank, k->dims, &half, err));
    oct_narrow(NULL, t, k->data, (size_t)k->count, (uint16_t *)(uintptr_t)half->data);
    oct_graph_set_const(g, *out, half);
    return OCT_OK;
}

/* A value that enters a body in type t: what stands there reads a float32 copy. */
static oct_status enter(oct_graph *body, int v, oct_dtype t, oct_err *err)
{
    int wide;
    OCT_TRY(new_value(body, v, OCT_F32, &wide, err));
    OCT_TRY(oct_graph_replace_uses(body, v, wide, err));
    body->value[v].dtype = t;
    return add_cast(body, v, wide, body->n_order ? body->order[0] : -1, err);
}

/* A value that leaves a body in type t. */
static oct_status leave(oct_graph *body, size_t k, oct_dtype t, oct_err *err)
{
    const int v = body->output[k];
    int out;
    if (body->value[v].dtype == t)
        return OCT_OK;
    OCT_TRY(new_value(body, v, t, &out, err));
    OCT_TRY(add_cast(body, v, out, -1, err));
    body->output[k] = out;
    body->value[out].is_output = true;
    body->value[v].is_output = false;
    for (size_t i = 0; i < body->n_output; i++)
        body->value[body->output[i]].is_output = true;
    body->changed = true;
    return OCT_OK;
}

/* ---- a node with bodies ---- */

static oct_status give_inputs(oct_graph *g, int id, oct_graph *body, bool bf16, int *made, oct_err *err)
{
    for (size_t i = 0; i < body->n_input && (int)i < g->node[id].n_in; i++) {
        const oct_dtype t = own_type_at(body, body->input[i], bf16);
        const int v = g->node[id].in[i];
        int in;
        if (!t || v < 0)
            continue;
        if (g->value[v].dtype != t) {
            OCT_TRY(narrowed(g, v, t, made, &in, err));
            OCT_TRY(oct_graph_set_input(g, id, (int)i, in, err));
        }
        OCT_TRY(enter(body, body->input[i], t, err));
    }
    return OCT_OK;
}

static oct_status give_captures(oct_graph *g, int id, bool bf16, int *made, oct_err *err)
{
    const int n = g->node[id].n_captured;
    const int *list = oct_arena_memdup(g->arena, g->node[id].captured, (size_t)n * sizeof *list);
    oct_graph *body;
    int in;
    if (n && !list)
        return oct_nomem(err);
    for (int i = 0; i < n; i++) {
        const oct_dtype t = own_type_at(g, list[i], bf16);
        if (!t || oct_value_is_constant(&g->value[list[i]]))
            continue;
        OCT_TRY(narrowed(g, list[i], t, made, &in, err));
        OCT_TRY(oct_graph_recapture(g, id, list[i], in, err));
        for (size_t k = 0; (body = oct_node_graph_at(&g->node[id], k)); k++)
            for (size_t v = 0, all = body->n_value; v < all; v++)
                if (!body->value[v].dead && body->value[v].outer == in)
                    OCT_TRY(enter(body, (int)v, t, err));
    }
    return OCT_OK;
}

/* The type of result k, of which the first are states. */
static oct_dtype result_type(const oct_graph *g, int id, int k, bool bf16)
{
    const oct_node *n = &g->node[id];
    const oct_graph *body = oct_node_graph_at(n, 0);
    const bool loop = oct_is_op(n, "Loop");
    const int first = loop ? 2 : 0, all = oct_is_op(n, "If") ? 0 : n->n_in - (int)oct_node_int(n, "num_scan_inputs", 0);
    if (k >= all - first)
        return k < n->n_out ? own_type_at(g, n->out[k], bf16) : OCT_UNDEFINED;
    const oct_dtype t = body->value[body->input[first + k]].dtype;
    return t == OCT_F16 || t == OCT_BF16 ? t : OCT_UNDEFINED;
}

static oct_status give_results(oct_graph *g, int id, bool bf16, oct_err *err)
{
    const size_t first = oct_is_op(&g->node[id], "Loop");
    const size_t n = oct_node_graph_at(&g->node[id], 0)->n_output;
    oct_graph *body;
    for (size_t k = first; k < n; k++) {
        const int slot = (int)(k - first);
        const oct_dtype t = result_type(g, id, slot, bf16);
        const int v = slot < g->node[id].n_out ? g->node[id].out[slot] : -1;
        int out;
        for (size_t i = 0; t && (body = oct_node_graph_at(&g->node[id], i)); i++)
            OCT_TRY(leave(body, k, t, err));
        if (!t || v < 0)
            continue;
        OCT_TRY(new_value(g, v, t, &out, err));
        OCT_TRY(oct_graph_set_output(g, id, slot, out, err));
        OCT_TRY(add_cast(g, out, v, oct_edit_after(g, id), err));
    }
    return OCT_OK;
}

oct_status oct_own_ends_write(oct_graph *g, bool bf16, oct_err *err)
{
    const size_t n = g->n_order;
    const int *order = oct_arena_memdup(g->arena, g->order, n * sizeof *order);
    int *made = oct_arena_calloc(g->arena, g->n_value + 1, sizeof *made);
    if (!order || !made)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const oct_node *x = &g->node[order[i]];
        oct_graph *body = oct_node_graph_at(x, 0);
        if (!body || !(oct_is_op(x, "If") || oct_is_op(x, "Loop") || oct_is_op(x, "Scan")))
            continue;
        OCT_TRY(give_inputs(g, order[i], body, bf16, made, err));
        OCT_TRY(give_captures(g, order[i], bf16, made, err));
        OCT_TRY(give_results(g, order[i], bf16, err));
        for (size_t k = 0; (body = oct_node_graph_at(&g->node[order[i]], k)); k++)
            OCT_TRY(oct_own_ends_write(body, bf16, err));
    }
    return OCT_OK;
}
