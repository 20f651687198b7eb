/* A GRU or RNN with quantized matrices becomes one product of X for all steps, and a Scan over the steps, whose body
 * has the products of the state. The result is a quantized graph as well, whose products write_dynamic.c writes. In
 * steps beyond the length of a sequence, in either direction, its state does not change and its results are zeros. */
#include "forms/recurrent_int.h"
#include "forms/write/write_int.h"

#include "ops/op.h"
#include "ops/traits.h"
#include "passes/match.h"

#include <string.h>

/* ---- what can be written ---- */

static const oct_tensor *matrices(const oct_graph *g, const oct_node *n, int slot)
{
    const oct_tensor *t = oct_node_constant(g, n, slot);
    return t && t->data && t->dtype == OCT_F32 && t->rank == 3 && t->count > 0 ? t : NULL;
}

static bool is_type(const oct_graph *g, const oct_node *n, int slot, oct_dtype type)
{
    const int v = oct_input_at(n, slot);
    return v < 0 || g->value[v].dtype == type;
}

static bool fits(const oct_node *n, const oct_tensor *w, const oct_tensor *r, const oct_tensor *bias)
{
    const int64_t gates = oct_is_op(n, "GRU") ? 3 : 1, hidden = r->dims[2],
                  dirs = strcmp(oct_node_str(n, "direction", "forward"), "bidirectional") ? 1 : 2;
    const bool agree =
        w->dims[0] == dirs && r->dims[0] == dirs && w->dims[1] == gates * hidden && r->dims[1] == gates * hidden;
    return agree && (!bias || (bias->rank == 2 && bias->dims[0] == dirs && bias->dims[1] == 2 * gates * hidden));
}

const char *oct_no_body(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_tensor *w = matrices(g, n, 1), *r = matrices(g, n, 2);
    const int b = oct_input_at(n, 3);
    const oct_tensor *bias = oct_graph_constant(g, b);
    if (!w || !r || !is_type(g, n, 0, OCT_F32) || !is_type(g, n, 5, OCT_F32))
        return "its weights are not constants of float32";
    if (b >= 0 && (!bias || !bias->data || bias->dtype != OCT_F32))
        return "its bias is not constant";
    if (!is_type(g, n, 4, OCT_S32) || !fits(n, w, r, bias))
        return "its weights do not fit each other";
    for (int64_t d = 0; d < w->dims[0]; d++)
        if (!oct_recurrent_function(n, d, 0) || (oct_is_op(n, "GRU") && !oct_recurrent_function(n, d, 1)))
            return "a body of products is written with functions that have no coefficients";
    return NULL;
}

/* ---- around the Scan ---- */

/* The sums of both biases, for the product of X. With a late reset, the state's bias of the last gate stays apart,
 * because the reset gate multiplies it. *state: this bias after zeros for the other gates, or NULL. */
static float *biases(oct_recurrent *l, int64_t d, float **state)
{
    const int v = oct_input_at(l->n, 3);
    const int64_t n = l->gates * l->hidden, apart = l->late ? n - l->hidden : n;
    float *sum = v >= 0 ? oct_arena_calloc(l->b.g->arena, 2 * (size_t)n, sizeof *sum) : NULL;
    *state = NULL;
    if (v < 0 || (!sum && !oct_build_good(&l->b, oct_nomem(l->b.err))))
        return NULL;
    const float *b = (const float *)l->b.g->value[v].constant->data + d * 2 * n;
    for (int64_t i = 0; i < n; i++)
        sum[i] = i < apart ? b[i] + b[n + i] : b[i];
    for (int64_t i = apart; i < n; i++)
        sum[n + i] = b[n + i];
    *state = l->late ? sum + n : NULL;
    return sum;
}

static int turned(oct_builder *b, const char *base, const char *suffix, int v)
{
    int node, to = oct_build(b, "Transpose", base, suffix, OCT_F32, &v, 1, &node);
    oct_build_ints(b, node, "perm", (const int64_t[]){ 1, 0, 2 }, 3);
    return to;
}

/* The size of a dimension of X, whose first dimension is that of the steps: a scalar, or (list) a list of one
 * number. */
static int size_of(oct_recurrent *l, int64_t dim, bool list)
{
    const int shape = oct_build(&l->b, "Shape", l->base, "_shape", OCT_S64, &l->x, 1, NULL);
    const int at = list ? oct_build_list(&l->b, l->base, "_dimension", &dim, 1)
                        : oct_build_const(&l->b, l->base, "_dimension", OCT_S64, 0, NULL, &dim);
    return oct_build(&l->b, "Gather", l->base, "_size", OCT_S64, (const int[]){ shape, at }, 2, NULL);
}

static int find_mask(oct_recurrent *l)
{
    static const int64_t zero = 0, one = 1;
    oct_builder *b = &l->b;
    const int lens = oct_input_at(l->n, 4);
    int node = 0;
    if (lens < 0)
        return -1;
    const int from = oct_build_const(b, l->base, "_first", OCT_S64, 0, NULL, &zero),
              by = oct_build_const(b, l->base, "_by", OCT_S64, 0, NULL, &one);
    const int steps =
        oct_build(b, "Range", l->base, "_steps", OCT_S64, (const int[]){ from, size_of(l, 0, false), by }, 3, NULL);
    const int column = oct_build(b, "Unsqueeze", l->base, "_step", OCT_S64,
                                 (const int[]){ steps, oct_build_list(b, l->base, "_axis", &one, 1) }, 2, NULL);
    const int until = oct_build(b, "Cast", l->base, "_lengths", OCT_S64, &lens, 1, &node);
    oct_build_int(b, node, "to", OCT_S64);
    const int counts = oct_build(b, "Less", l->base, "_within", OCT_BOOL, (const int[]){ column, until }, 2, NULL);
    return oct_build(b, "Unsqueeze", l->base, "_counts", OCT_BOOL,
                     (const int[]){ counts, oct_build_list(b, l->base, "_axis", (const int64_t[]){ 2 }, 1) }, 2, NULL);
}

/* The initial states, by direction. */
static void first_states(oct_recurrent *l, int h0[2])
{
    oct_builder *b = &l->b;
    const int given = oct_input_at(l->n, 5);
    const int64_t axis = l->batch_first ? 1 : 0;
    for (int64_t d = 0; d < l->dirs; d++) {
        if (given >= 0) {
            const int at = oct_build_const(b, l->base, "_direction", OCT_S64, 0, NULL, &d), node_in[2] = { given, at };
            int node = 0;
            h0[d] = oct_build(b, "Gather", l->base, "_first_state", OCT_F32, node_in, 2, &node);
            oct_build_int(b, node, "axis", axis);
        } else if (d == 0) {
            int node = 0;
            const int dims[2] = { size_of(l, 1, true), oct_build_list(b, l->base, "_width", &l->hidden, 1) };
            const int shape = oct_build(b, "Concat", l->base, "_state_shape", OCT_S64, dims, 2, &node);
            oct_build_int(b, node, "axis", 0);
            h0[d] = oct_build(b, "ConstantOfShape", l->base, "_first_state", OCT_F32, &shape, 1, NULL);
        } else {
            h0[d] = h0[0];
        }
    }
}

/* Joins the parts of all directions along a new axis into value `to` of the layer (-1: it does not exist). turn: then
 * the first two dimensions are exchanged. */
static void join(oct_recurrent *l, const int *part, int64_t axis, bool turn, int to)
{
    oct_builder *b = &l->b;
    const bool two = l->dirs == 2;
    int list[2] = { 0 }, node = 0, v = to;
    if (to < 0)
        return;
    for (int64_t d = 0; d < l->dirs; d++) {
        const int in[2] = { part[d], oct_build_list(b, l->base, "_axis", &axis, 1) };
        if (two || turn)
            list[d] = oct_build(b, "Unsqueeze", l->base, "_direction", OCT_F32, in, 2, NULL);
        else
            oct_build_to(b, "Unsqueeze", in, 2, to, NULL);
    }
    if (two && turn)
        v = oct_build(b, "Concat", l->base, "_directions", OCT_F32, list, 2, &node);
    else if (two)
        oct_build_to(b, "Concat", list, 2, to, &node);
    if (two)
        oct_build_int(b, node, "axis", axis);
    if (turn) {
        oct_build_to(b, "Transpose", two ? &v : &list[0], 1, to, &node);
        oct_build_ints(b, node, "perm", (const int64_t[]){ 1, 0, 2, 3 }, 4);
    }
}

static void directions(oct_recurrent *l, int last[2], int all[2])
{
    static const char *const names[2] = { "forward", "reverse" };
    const int64_t rows = l->gates * l->hidden;
    int h0[2] = { 0 };
    first_states(l, h0);
    for (int64_t d = 0; d < l->dirs && l->b.status == OCT_OK; d++) {
        float *state;
        int out[2] = { 0 };
        const char *name = l->dirs == 1 ? l->base : oct_arena_printf(l->b.g->arena, "%s_%s", l->base, names[d]);
        const char *input = name ? oct_arena_printf(l->b.g->arena, "%s_input", name) : NULL;
        if (!oct_build_good(&l->b, input ? OCT_OK : oct_nomem(l->b.err)))
            return;
        const float *bias = biases(l, d, &state);
        const oct_quant *w = l->b.g->value[l->n->in[1]].quant;
        const int xp = oct_recurrent_bias(&l->b, oct_recurrent_product(&l->b, l->quantized, w, d, 0, rows, input), bias,
                                          rows, input);
        oct_recurrent_scan(l, d, name, h0[d], xp, state, out);
        last[d] = out[0];
        all[d] = out[1];
    }
}

oct_status oct_write_recurrent(oct_graph *g, int id, oct_err *err)
{
    const oct_node n = g->node[id];
    const oct_quant *r = g->value[n.in[2]].quant;
    const int y = n.n_out > 0 ? n.out[0] : -1, y_h = n.n_out > 1 ? n.out[1] : -1, matrix[2] = { n.in[1], n.in[2] };
    oct_recurrent l = {
        .b = { g, id, OCT_OK, err }, .n = &n, .base = oct_node_label(g, id), .gru = oct_is_op(&n, "GRU"), .x = n.in[0]
    };
    int last[2], all[2];
    l.late = l.gru && oct_node_int(&n, "linear_before_reset", 0);
    l.batch_first = oct_node_int(&n, "layout", 0) != 0;
    l.dirs = r->qvals->dims[0];
    l.hidden = r->qvals->dims[2];
    l.gates = r->qvals->dims[1] / l.hidden;
    if (l.batch_first)
        l.x = turned(&l.b, l.base, "_steps_first", l.x);
    l.quantized = oct_recurrent_border(&l.b, l.x, l.base);
    l.mask = find_mask(&l);
    directions(&l, last, all);
    OCT_TRY(l.b.status);
    l.b.before = oct_graph_next(g, id);
    oct_graph_remove_node(g, id);
    for (int i = 0; i < 2; i++)
        if (!g->value[matrix[i]].dead && g->value[matrix[i]].n_uses == 0)
            oct_graph_remove_value(g, matrix[i]);
    join(&l, all, l.batch_first ? 2 : 1, l.batch_first, y);
    join(&l, last, l.batch_first ? 1 : 0, false, y_h);
    const int shown = y >= 0 ? y : y_h;
    if (l.b.status == OCT_OK && shown >= 0 &&
        n.name[0]) /* layers of the float and the quantized model are matched by name */
        g->node[g->value[shown].producer].name = n.name;
    return l.b.status;
}
