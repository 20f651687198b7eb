/* Fusion: x cos + rotate(x) sin becomes RotaryEmbedding, where rotate(x) joins the negated second half of the last
 * dimension and the first half. The tables are as wide as x. Their two halves must be equal: by their numbers, or
 * because they are computed from a Concat of a value with itself. The operator makes the same operations in the same
 * order, so the result is the same to the bit. */
#include "passes/match.h"

#include "ops/core/args.h"

#include <string.h>

enum { DEEPEST = 8 };

typedef struct rope {
    oct_match m;
    int root;
    int x, table[2];            /* values: x, cos and sin */
    int64_t dims[OCT_MAX_RANK]; /* dimensions of x: batch, heads, length, depth */
    bool batched;               /* the tables differ from sample to sample */
} rope;

/* ------------------------------------------------------------------ rotate(x) */

static bool is_last(int64_t axis, int rank)
{
    return axis == -1 || axis == rank - 1;
}

/* Whether a value is the first (or second) half of the last dimension of x. Its node joins the match. */
static bool is_half(oct_graph *g, int value, rope *y, bool second)
{
    const int id = oct_maker(g, value);
    const oct_node *n = id >= 0 ? &g->node[id] : NULL;
    const int64_t half = y->dims[3] / 2;
    int64_t d[OCT_MAX_RANK], v[4];
    if (!n || n->n_in < 1 || n->in[0] != y->x || !oct_shape_known(&g->value[value].shape, d) || d[3] != half)
        return false;
    if (oct_is_op(n, "Split"))
        return is_last(oct_node_int(n, "axis", 0), 4) && n->n_out == 2 && n->out[second] == value &&
               oct_match_add(&y->m, id);
    const oct_infer c = { .g = g, .node = id, .opset = oct_node_opset(g, n) };
    if (!oct_is_op(n, "Slice") || c.opset < 10 || oct_arg_ints(&c, NULL, 1, v, 1) != 1 ||
        oct_arg_ints(&c, NULL, 3, v + 1, 1) != 1)
        return false;
    const int steps = oct_arg_ints(&c, NULL, 4, v + 2, 1);
    return v[0] == (second ? half : 0) && is_last(v[1], 4) && (steps == OCT_ARG_ABSENT || (steps == 1 && v[2] == 1)) &&
           oct_match_add(&y->m, id);
}

static bool match_rotated(oct_graph *g, int value, rope *y)
{
    const int join = oct_made_by(g, value, "Concat", 2);
    const int neg = join >= 0 && is_last(oct_node_int(&g->node[join], "axis", 0), 4)
                        ? oct_made_by(g, g->node[join].in[0], "Neg", 1)
                        : -1;
    return neg >= 0 && oct_match_add(&y->m, join) && oct_match_add(&y->m, neg) &&
           is_half(g, g->node[neg].in[0], y, true) && is_half(g, g->node[join].in[1], y, false);
}

/* ------------------------------------------------------------------ tables */

static bool equal_numbers(const oct_tensor *t)
{
    const int64_t depth = t->rank > 0 ? t->dims[t->rank - 1] : 0, half = depth / 2;
    const float *v = t->data;
    if (t->dtype != OCT_F32 || !v || half < 1 || depth % 2)
        return false;
    for (int64_t i = 0; i < t->count; i += depth)
        if (memcmp(v + i, v + i + half, (size_t)half * sizeof *v) != 0)
            return false;
    return true;
}

/* Whether the two halves of the last dimension are computed in the same way. */
static bool halves_equal(oct_graph *g, int value, int depth)
{
    const oct_value *v = &g->value[value];
    const oct_node *n = oct_maker(g, value) >= 0 ? &g->node[v->producer] : NULL;
    double number;
    if (v->constant && !v->quant)
        return equal_numbers(v->constant);
    if (!n || depth == 0 || n->n_in < 1 || n->in[0] < 0 || n->out[0] != value)
        return false;
    const int rank = v->shape.rank, from = g->value[n->in[0]].shape.rank;
    if (oct_is_op(n, "Concat"))
        return n->n_in == 2 && n->in[0] == n->in[1] && is_last(oct_node_int(n, "axis", 0), rank);
    if (oct_is_op(n, "Cos") || oct_is_op(n, "Sin") || oct_is_op(n, "Cast") ||
        ((oct_is_op(n, "Mul") || oct_is_op(n, "Div")) && n->n_in == 2 && oct_number_of(g, n->in[1], &number)))
        return halves_equal(g, n->in[0], depth - 1);
    /* A node that adds or picks in other dimensions does not change the last one. */
    if (oct_is_op(n, "Gather"))
        return oct_node_int(n, "axis", 0) >= 0 && oct_node_int(n, "axis", 0) < from - 1 &&
               halves_equal(g, n->in[0], depth - 1);
    return (oct_is_op(n, "Unsqueeze") || oct_is_op(n, "Slice") || oct_is_op(n, "Squeeze")) && rank > 0 && from > 0 &&
           v->shape.d[rank - 1].n >= 0 && v->shape.d[rank - 1].n == g->value[n->in[0]].shape.d[from - 1].n &&
           halves_equal(g, n->in[0], depth - 1);
}

/* Whether the shape is [batch or 1, 1, length, depth], where leading dimensions may be missing. */
static bool table_fits(const oct_graph *g, int value, const rope *y, bool *batched)
{
    int64_t d[OCT_MAX_RANK], full[4] = { 1, 1, 1, 1 };
    const oct_value *v = &g->value[value];
    if (v->dtype != OCT_F32 || v->shape.rank < 2 || v->shape.rank > 4 || !oct_shape_known(&v->shape, d))
        return false;
    memcpy(full + (4 - v->shape.rank), d, (size_t)v->shape.rank * sizeof *d);
    *batched = full[0] != 1;
    return (full[0] == 1 || full[0] == y->dims[0]) && full[1] == 1 && full[2] == y->dims[2] && full[3] == y->dims[3];
}

static bool match_tables(oct_graph *g, rope *y)
{
    bool batched[2];
    for (int i = 0; i < 2; i++)
        if (!table_fits(g, y->table[i], y, &batched[i]) || !halves_equal(g, y->table[i], DEEPEST))
            return false;
    y->batched = batched[0];
    return batched[0] == batched[1];
}

/* ------------------------------------------------------------------ the sum */

static bool match_terms(oct_graph *g, int plain, int rotated, rope *y)
{
    for (int k = 0; k < 4; k++) {
        const oct_node *p = &g->node[plain], *t = &g->node[rotated];
        const oct_value *x = &g->value[p->in[k & 1]];
        y->m = (oct_match){ { y->root, plain, rotated }, 3 };
        y->x = p->in[k & 1];
        y->table[0] = p->in[!(k & 1)];
        y->table[1] = t->in[!(k >> 1)];
        if (x->dtype == OCT_F32 && x->shape.rank == 4 && oct_shape_known(&x->shape, y->dims) && y->dims[3] >= 2 &&
            y->dims[3] % 2 == 0 && match_rotated(g, t->in[k >> 1], y) && match_tables(g, y))
            return true;
    }
    return false;
}

static bool match(oct_graph *g, int id, rope *y)
{
    if (oct_made_by(g, g->node[id].n_out == 1 ? g->node[id].out[0] : -1, "Add", 2) != id)
        return false;
    const int a = oct_made_by(g, g->node[id].in[0], "Mul", 2), b = oct_made_by(g, g->node[id].in[1], "Mul", 2);
    y->root = id;
    return a >= 0 && b >= 0 && a != b && (match_terms(g, a, b, y) || match_terms(g, b, a, y)) &&
           oct_match_holds(g, &y->m, id) && oct_same_dims(g, y->x, g->node[id].out[0]);
}

/* ------------------------------------------------------------------ rewriting */

/* Adds a node with one output of known shape, before the root. */
static oct_status add_node(oct_graph *g, const rope *y, const char *op, int64_t opset, const int *in, int n_in,
                           int rank, const int64_t *dims, int *value, oct_err *err)
{
    int id;
    OCT_TRY(oct_graph_new_value(g, "rotary_table", OCT_F32, value, err));
    OCT_TRY(oct_graph_set_dims(g, *value, rank, dims, err));
    OCT_TRY(oct_graph_add_node(g, op, "", g->value[*value].name, n_in, 1, y->root, &id, err));
    g->node[id].opset = opset;
    for (int i = 0; i < n_in; i++)
        OCT_TRY(oct_graph_set_input(g, id, i, in[i], err));
    return oct_graph_set_output(g, id, 0, *value, err);
}

/* The first half of a table, as [positions][half]. */
static oct_status half_table(oct_graph *g, const rope *y, int table, int *value, oct_err *err)
{
    const int rank = g->value[table].shape.rank;
    const int64_t half = y->dims[3] / 2, one = 1, two = 2, ends[3] = { 0, half, rank - 1 };
    const int64_t rows = y->batched ? y->dims[0] * y->dims[2] : y->dims[2];
    int64_t d[OCT_MAX_RANK];
    int in[4] = { table }, cut;
    oct_shape_known(&g->value[table].shape, d);
    d[rank - 1] = half;
    for (int i = 0; i < 3; i++)
        OCT_TRY(oct_graph_new_const_s64(g, "rotary_half", 1, &one, &ends[i], &in[i + 1], err));
    OCT_TRY(add_node(g, y, "Slice", 13, in, 4, rank, d, &cut, err));
    const int64_t flat[2] = { rows, half };
    in[0] = cut;
    OCT_TRY(oct_graph_new_const_s64(g, "rotary_shape", 1, &two, flat, &in[1], err));
    return add_node(g, y, "Reshape", 14, in, 2, 2, flat, value, err);
}

/* The row of the tables for each token. */
static oct_status positions(oct_graph *g, const rope *y, int *value, oct_err *err)
{
    const int64_t dims[2] = { y->dims[0], y->dims[2] };
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_S64, 2, dims, &t, err));
    for (int64_t i = 0; i < t->count; i++)
        ((int64_t *)(uintptr_t)t->data)[i] = y->batched ? i : i % dims[1];
    OCT_TRY(oct_graph_new_value(g, "rotary_rows", OCT_S64, value, err));
    OCT_TRY(oct_graph_set_dims(g, *value, 2, dims, err));
    oct_graph_set_const(g, *value, t);
    return OCT_OK;
}

static oct_status replace(oct_graph *g, const rope *y, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    oct_fused f = { "RotaryEmbedding", "", 23, { y->x }, 4 };
    int made;
    for (int i = 0; i < 2; i++)
        OCT_TRY(half_table(g, y, y->table[i], &f.in[1 + i], err));
    OCT_TRY(positions(g, y, &f.in[3], err));
    OCT_TRY(oct_match_replace(g, &y->m, y->root, y->root, &f, &made, err));
    oct_pass_note(log, self, f.op, g->node[made].name);
    return OCT_OK;
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    rope y;
    return match(g, id, &y) ? replace(g, &y, self, log, err) : OCT_OK;
}

const oct_pass oct_pass_rope = { "rope", "make sums with a rotated half RotaryEmbedding", .at = at };
