/* LSTMs of two directions, or of the reverse one, as LSTMs that run forward. */
#include "passes/one_way.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

enum { OPERANDS = 7, STEPS_AXIS = 0, DIRECTIONS_AXIS = 1, OPSET_OF_SLICE = 10 };

typedef struct lstm {
    int id, x, operand[OPERANDS], out[3];
    int directions;
    bool backward; /* the last direction */
} lstm;

static bool usual_activations(const oct_node *n)
{
    static const char *const usual[] = { "sigmoid", "tanh", "tanh" };
    const oct_attr *names = oct_node_attr(n, "activations");
    bool same = !names || names->type == OCT_ATTR_STRINGS;
    for (size_t i = 0; names && same && i < names->n; i++)
        same = strcasecmp(names->strings[i], usual[i % OCT_COUNT(usual)]) == 0;
    return same;
}

static bool only_usual(const oct_node *n)
{
    static const char *const others[] = { "activation_alpha", "activation_beta", "clip", "input_forget", "layout" };
    for (size_t i = 0; i < OCT_COUNT(others); i++)
        if (oct_node_attr(n, others[i]))
            return false;
    return usual_activations(n);
}

static bool read_lstm(const oct_graph *g, int id, lstm *l)
{
    const oct_node *n = &g->node[id];
    const char *direction = oct_node_str(n, "direction", "forward");
    *l = (lstm){ .id = id, .directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1 };
    l->backward = l->directions == 2 || strcmp(direction, "reverse") == 0;
    if (!oct_is_op(n, "LSTM") || !l->backward || !only_usual(n) || n->n_in < 3 || n->n_in > OPERANDS || n->in[0] < 0)
        return false;
    l->x = n->in[0];
    for (int i = 1; i < OPERANDS; i++) {
        const int v = l->operand[i] = oct_input_at(n, i);
        const oct_tensor *t = v >= 0 ? g->value[v].constant : NULL;
        if ((v < 0 && i < 3) ||
            (v >= 0 && (i == 4 || !t || !t->data || t->dtype != OCT_F32 || t->rank < 1 || t->dims[0] != l->directions)))
            return false;
    }
    for (int k = 0; k < 3; k++)
        l->out[k] = k < n->n_out ? n->out[k] : -1;
    return g->value[l->x].dtype == OCT_F32;
}

/* The part of a constant that belongs to a direction. */
static oct_status part(oct_graph *g, int v, int directions, int k, int *of, oct_err *err)
{
    const oct_tensor *t = v >= 0 ? g->value[v].constant : NULL;
    int64_t dims[OCT_MAX_RANK];
    *of = v;
    if (!t || directions == 1)
        return OCT_OK;
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[0] = 1;
    return oct_graph_new_const_f32(g, g->value[v].name, t->rank, dims,
                                   (const float *)t->data + t->count / directions * k, of, err);
}

static oct_status add(oct_graph *g, const lstm *l, const char *op, const char *name, const int *in, int n_in, int n_out,
                      int *node, oct_err *err)
{
    OCT_TRY(oct_graph_add_node(g, op, "", name, n_in, n_out, l->id, node, err));
    for (int i = 0; i < n_in; i++)
        OCT_TRY(oct_graph_set_input(g, *node, i, in[i], err));
    return OCT_OK;
}

static oct_status result(oct_graph *g, int node, int slot, const char *base, int *v, oct_err *err)
{
    OCT_TRY(oct_graph_new_value(g, base, OCT_F32, v, err));
    return oct_graph_set_output(g, node, slot, *v, err);
}

/* The steps in the opposite order. */
static oct_status reversed(oct_graph *g, const lstm *l, int *v, oct_err *err)
{
    static const int64_t one = 1;
    const int64_t bounds[] = { -1, INT64_MIN, STEPS_AXIS, -1 }; /* start, end, axis, step */
    const char *base = g->value[*v].name;
    int in[5] = { *v }, node;
    for (int i = 0; i < 4; i++)
        OCT_TRY(oct_graph_new_const_s64(g, base, 1, &one, &bounds[i], &in[1 + i], err));
    OCT_TRY(add(g, l, "Slice", "", in, 5, 1, &node, err));
    return result(g, node, 0, base, v, err);
}

/* The LSTM of direction k, and its results. */
static oct_status add_direction(oct_graph *g, const lstm *l, int k, int *out, oct_err *err)
{
    const bool backward = l->backward && k == l->directions - 1;
    int in[OPERANDS] = { l->x }, node;
    if (backward)
        OCT_TRY(reversed(g, l, &in[0], err));
    for (int i = 1; i < OPERANDS; i++)
        OCT_TRY(part(g, l->operand[i], l->directions, k, &in[i], err));
    const char *own = g->node[l->id].name;
    const char *name = k && own[0] ? oct_arena_printf(g->arena, "%s_reverse", own) : own;
    OCT_TRY(name ? add(g, l, "LSTM", name, in, OPERANDS, 3, &node, err) : oct_nomem(err));
    const oct_tensor *r = g->value[in[2]].constant;
    OCT_TRY(oct_node_set_int(g, node, "hidden_size", r->dims[r->rank - 1], err));
    for (int i = 0; i < 3; i++) {
        out[i] = -1;
        if (l->out[i] >= 0)
            OCT_TRY(result(g, node, i, g->value[l->out[i]].name, &out[i], err));
    }
    return backward && out[0] >= 0 ? reversed(g, l, &out[0], err) : OCT_OK;
}

static oct_status write_one_way(oct_graph *g, const lstm *l, oct_err *err)
{
    int out[2][3], node;
    for (int k = 0; k < l->directions; k++)
        OCT_TRY(add_direction(g, l, k, out[k], err));
    for (int i = 0; i < 3; i++) {
        if (l->out[i] < 0)
            continue;
        const int both[2] = { out[0][i], out[l->directions - 1][i] };
        OCT_TRY(oct_graph_set_output(g, l->id, i, -1, err));
        OCT_TRY(add(g, l, l->directions == 2 ? "Concat" : "Identity", "", both, l->directions, 1, &node, err));
        if (l->directions == 2) /* Y [steps, directions, batch, units], Y_h and Y_c [directions, batch, units] */
            OCT_TRY(oct_node_set_int(g, node, "axis", i == 0 ? DIRECTIONS_AXIS : 0, err));
        OCT_TRY(oct_graph_set_output(g, node, 0, l->out[i], err));
    }
    oct_graph_remove_node(g, l->id);
    return OCT_OK;
}

oct_status oct_lstms_one_way(oct_graph *g, const oct_pass_log *log, oct_err *err)
{
    const size_t n = g->n_node;
    bool any = false;
    for (size_t i = 0; i < n && oct_graph_opset(g, "") >= OPSET_OF_SLICE; i++) {
        lstm l;
        if (g->node[i].dead || !read_lstm(g, (int)i, &l))
            continue;
        if (log && log->change)
            log->change(log->arg, "one-way", "LSTM as LSTMs that run forward", g->node[i].name);
        OCT_TRY(write_one_way(g, &l, err));
        any = true;
    }
    if (!any)
        return OCT_OK;
    oct_graph_prune(g);
    return oct_infer_shapes(g, err);
}
