/* lib/passes/to_float32.c -- changes types of values, constants and attributes to float32, and adds Casts at inputs and
 * outputs. */
#include "passes/to_float32.h"

#include "ops/core/waiting.h"
#include "ops/op.h"

#include <float.h>
#include <string.h>

enum { CHUNK = OCT_COUNT(((oct_chunk *)0)->f) }; /* how many elements are converted at a time */

static bool is_narrow(oct_dtype t)
{
    return t == OCT_F16 || t == OCT_BF16 || t == OCT_F64;
}

/* ---- what the graph contains ---- */

static void look(const oct_graph *g, oct_widened *w, bool *others)
{
    for (size_t i = 0; i < g->n_value; i++) {
        const oct_value *v = &g->value[i];
        if (v->dead)
            continue;
        *others |= v->kind != OCT_VALUE_TENSOR && is_narrow(v->elem);
        if (is_narrow(v->dtype) && w->widest != OCT_F64 && (v->dtype == OCT_F64 || w->widest != OCT_BF16))
            w->widest = v->dtype;
    }
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_graph *nested;
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            look(nested, w, others);
    }
}

/* ---- constants ---- */

/* Rounds doubles to floats. Finite numbers stay finite. */
static void round_doubles(const double *x, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        const float f = (float)x[i];
        y[i] = f > FLT_MAX && x[i] <= DBL_MAX ? FLT_MAX : f < -FLT_MAX && x[i] >= -DBL_MAX ? -FLT_MAX : f;
    }
}

static oct_status wide_tensor(oct_arena *a, const oct_tensor *t, const oct_tensor **out, oct_err *err)
{
    oct_tensor *wide;
    if (!t->data)
        return oct_fail(err, OCT_EUNSUPPORTED, "a constant of %s whose elements cannot be read",
                        oct_dtype_name(t->dtype));
    OCT_TRY(oct_tensor_new(a, OCT_F32, t->rank, t->dims, &wide, err));
    for (int64_t i = 0, n; i < t->count; i += n) {
        oct_chunk part;
        n = t->count - i < CHUNK ? t->count - i : CHUNK;
        const void *from = oct_elem_load(t->dtype, t->data, i, 1, n, &part);
        float *to = (float *)(uintptr_t)wide->data + i;
        if (t->dtype == OCT_F64)
            round_doubles(from, n, to);
        else
            memcpy(to, from, (size_t)n * sizeof *to);
    }
    *out = wide;
    return OCT_OK;
}

enum { LEAST_WAITING = 1 << 14 }; /* the number of elements from which on it matters whether a constant waits */

/* Whether all readers of a constant are products that multiply by it or nodes that pick its rows: they may find numbers
 * that wait. */
static bool may_wait(const oct_graph *g, int v)
{
    const oct_value *x = &g->value[v];
    const oct_tensor *t = x->constant;
    bool all = t->rank == 2 && t->count >= LEAST_WAITING && t->data && t->dtype != OCT_F64 && x->n_uses &&
               !x->is_input && !x->is_output;
    for (size_t i = 0; i < x->n_uses && all; i++) {
        const oct_use u = x->uses[i];
        all = (u.slot == 1 && oct_is_op(&g->node[u.node], "MatMul")) ||
              (u.slot == 0 && oct_is_op(&g->node[u.node], "Gather"));
    }
    return all;
}

static oct_status waiting_tensor(oct_arena *a, const oct_tensor *t, const oct_tensor **out, oct_err *err)
{
    oct_tensor *wide = oct_arena_calloc(a, 1, sizeof *wide);
    if (!wide)
        return oct_nomem(err);
    *wide = *t;
    wide->dtype = OCT_F32;
    wide->bytes = (size_t)t->count * sizeof(float);
    wide->data = NULL;
    wide->narrow = t->data;
    wide->narrow_type = t->dtype;
    *out = wide;
    return OCT_OK;
}

static bool is_end(const oct_graph *g, int v)
{
    return !g->outer && (g->value[v].is_input || g->value[v].is_output);
}

/* Whether a constant is used only as the second factor of products. */
static bool is_weights(const oct_graph *g, int v)
{
    const oct_value *x = &g->value[v];
    bool all = x->constant && x->dtype == OCT_BF16 && x->outer < 0 && x->n_uses;
    for (size_t i = 0; i < x->n_uses && all; i++) {
        const oct_op *op = x->uses[i].slot == 1 ? oct_op_of(g, x->uses[i].node) : NULL;
        all = op && op->quant == OCT_QUANT_WEIGHTED && op->widens;
    }
    return all;
}

static oct_status widen_values(oct_graph *g, oct_widen_how how, oct_widened *w, oct_err *err)
{
    for (size_t i = 0; i < g->n_value; i++) {
        oct_value *v = &g->value[i];
        if (v->dead || v->kind != OCT_VALUE_TENSOR || is_end(g, (int)i))
            continue;
        if (v->dtype == OCT_F32 && !v->constant && !v->own_type)
            v->own_type = OCT_F32;
        if (!is_narrow(v->dtype) || (how == OCT_WIDEN_BUT_WEIGHTS && is_weights(g, (int)i)))
            continue;
        v->own_type = v->dtype == OCT_F64 ? OCT_UNDEFINED : v->dtype;
        if (v->constant && v->outer < 0) {
            const oct_tensor *wide;
            OCT_TRY(how == OCT_WIDEN_LATE && may_wait(g, (int)i) ? waiting_tensor(g->arena, v->constant, &wide, err)
                                                                 : wide_tensor(g->arena, v->constant, &wide, err));
            w->constants++;
            w->elements += wide->count;
            oct_graph_set_const(g, (int)i, wide);
            v->recipe = NULL;
        }
        v->dtype = OCT_F32;
        v->origin = NULL;
    }
    g->changed = true;
    return OCT_OK;
}

/* ---- attributes ---- */

/* Whether an attribute gives an element type by its number. */
static bool names_type(const oct_attr *a)
{
    static const char *const names[] = {
        "to", "dtype", "output_dtype", "output_datatype", "precision", "softmax_precision", "stash_type"
    };
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (a->type == OCT_ATTR_INT && strcmp(a->name, names[i]) == 0)
            return is_narrow((oct_dtype)a->i);
    return false;
}

static oct_status widen_attributes(oct_graph *g, int id, oct_err *err)
{
    for (size_t i = 0; i < g->node[id].n_attr; i++) {
        const oct_attr *a = &g->node[id].attr[i];
        const oct_tensor *wide;
        if (names_type(a))
            OCT_TRY(oct_node_set_int(g, id, a->name, OCT_F32, err));
        else if (a->type == OCT_ATTR_TENSOR && a->t && is_narrow(a->t->dtype)) {
            OCT_TRY(wide_tensor(g->arena, a->t, &wide, err));
            OCT_TRY(oct_node_set_tensor(g, id, a->name, wide, err));
        }
    }
    return OCT_OK;
}

/* ---- inputs and outputs ---- */

static oct_status add_cast(oct_graph *g, int from, int to, int before, oct_err *err)
{
    int id;
    OCT_TRY(oct_graph_add_node(g, "Cast", "", oct_arena_printf(g->arena, "%s_Cast", g->value[to].name), 1, 1, before,
                               &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, from, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, to, err));
    return oct_node_set_int(g, id, "to", g->value[to].dtype, err);
}

/* Makes a float32 value with the shape of v, named after it. */
static oct_status wide_value(oct_graph *g, int v, int *wide, oct_err *err)
{
    const char *name = oct_arena_printf(g->arena, "%s_float32", g->value[v].name);
    if (!name)
        return oct_nomem(err);
    OCT_TRY(oct_graph_new_value(g, name, OCT_F32, wide, err));
    g->value[*wide].own_type = g->value[v].dtype == OCT_F64 ? OCT_UNDEFINED : g->value[v].dtype;
    const oct_shape s = g->value[v].shape;
    return s.rank < 0 ? OCT_OK : oct_graph_set_shape(g, *wide, s.rank, s.d, err);
}

static oct_status keep_input(oct_graph *g, int v, oct_err *err)
{
    int wide;
    OCT_TRY(wide_value(g, v, &wide, err));
    OCT_TRY(oct_graph_replace_uses(g, v, wide, err));
    return add_cast(g, v, wide, g->n_order ? g->order[0] : -1, err);
}

/* The node that computes an output computes it in float32, and other readers read that. A constant output exists
 * twice. */
static oct_status keep_output(oct_graph *g, int v, oct_err *err)
{
    const int p = g->value[v].producer;
    const oct_tensor *t;
    int wide, slot = 0;
    OCT_TRY(wide_value(g, v, &wide, err));
    OCT_TRY(oct_graph_replace_uses(g, v, wide, err));
    if (g->value[v].constant) {
        OCT_TRY(wide_tensor(g->arena, g->value[v].constant, &t, err));
        oct_graph_set_const(g, wide, t);
        return OCT_OK;
    }
    while (g->node[p].out[slot] != v)
        slot++;
    OCT_TRY(oct_graph_set_output(g, p, slot, wide, err));
    return add_cast(g, wide, v, -1, err);
}

/* Adds Casts at inputs and outputs of the outermost graph with one of these types. An output is left as it is if it is
 * an input, or if it is a constant or the result of a Cast and nothing else reads it. */
static oct_status keep_ends(oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (is_narrow(g->value[g->input[i]].dtype))
            OCT_TRY(keep_input(g, g->input[i], err));
    for (size_t i = 0; i < g->n_output; i++) {
        const oct_value *v = &g->value[g->output[i]];
        const bool made = v->producer >= 0 || (v->constant && !v->is_input);
        const bool plain = v->constant || (v->producer >= 0 && oct_is_op(&g->node[v->producer], "Cast"));
        if (is_narrow(v->dtype) && made && !(plain && v->n_uses == 0))
            OCT_TRY(keep_output(g, g->output[i], err));
    }
    return OCT_OK;
}

/* ---- all of it ---- */

static oct_status widen(oct_graph *g, oct_widen_how how, oct_widened *w, oct_err *err)
{
    const size_t n = g->n_order;
    for (size_t i = 0; i < n; i++) {
        const int id = g->order[i];
        const oct_node *node = &g->node[id];
        const bool end = oct_is_op(node, "Cast") && node->n_out && node->out[0] >= 0 && is_end(g, node->out[0]);
        oct_graph *nested;
        if (!end)
            OCT_TRY(oct_within_node(g, id, widen_attributes(g, id, err), err));
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++)
            OCT_TRY(widen(nested, how, w, err));
    }
    return widen_values(g, how, w, err);
}

bool oct_has_narrow_floats(const oct_graph *g)
{
    oct_widened w = { 0 };
    bool others = false;
    look(g, &w, &others);
    return w.widest && !others;
}

oct_status oct_widen_floats(oct_graph *g, oct_widen_how how, oct_widened *done, oct_err *err)
{
    bool others = false;
    *done = (oct_widened){ 0 };
    look(g, done, &others);
    if (others)
        done->widest = OCT_UNDEFINED;
    if (!done->widest)
        return OCT_OK;
    OCT_TRY(keep_ends(g, err));
    OCT_TRY(widen(g, how, done, err));
    OCT_TRY(oct_graph_sort(g, err));
    return oct_graph_update_captures(g, err);
}
