/* Fusion: MatMul - scale - mask - Softmax - MatMul becomes Attention, which never needs memory for the scores of all
 * rows.
 *
 * Factors may be applied to the scores, the queries or the keys. Transposes from and to [batch, length, heads, depth],
 * and the Reshapes beside them, become strides: Attention reads and writes [batch, length, heads * depth]. Products of
 * three dimensions are treated as having one head. */
#include "passes/match.h"

#include <string.h>

/* A tensor with heads: [batch][heads][length][depth]; or, if `flat`, the value [batch][length][heads][depth] before its
 * transpose. */
typedef struct part {
    int value;
    bool flat;
} part;

typedef struct attention {
    oct_match m;
    int root, pv; /* nodes: the last one, and the second matrix product */
    int mask;     /* the value of the mask, or -1 */
    double scale;
    part q, k, v;
    bool flat;                /* the result is [batch][length][heads][depth] */
    int64_t b, h, s, t, d, e; /* batch, heads, rows, keys, depths of q and k, and of v */
    int rank;                 /* the rank of the products */
} attention;

/* ------------------------------------------------------------------ what leads to the products */

static bool permutes(const oct_graph *g, int id, const int64_t *perm, int rank)
{
    int n;
    const int64_t *p = oct_node_ints(&g->node[id], "perm", &n);
    return n == rank && memcmp(p, perm, (size_t)rank * sizeof *p) == 0;
}

/* The input of the Transpose with this perm that computes a value; -1: there is none. */
static int before_transpose(const oct_graph *g, int value, const int64_t *perm, int rank)
{
    const int id = oct_made_by(g, value, "Transpose", 1);
    return id >= 0 && permutes(g, id, perm, rank) ? g->node[id].in[0] : -1;
}

static const int64_t swap_heads[4] = { 0, 2, 1, 3 }, swap_last4[4] = { 0, 1, 3, 2 }, swap_last3[3] = { 0, 2, 1 },
                     keys_last[4] = { 0, 2, 3, 1 };

/* The value of which this one is a constant multiple. The factor becomes part of the scale. */
static int before_factor(const oct_graph *g, int value, double *scale)
{
    const int mul = oct_made_by(g, value, "Mul", 2), div = oct_made_by(g, value, "Div", 2);
    double f;
    if (mul >= 0)
        for (int k = 0; k < 2; k++)
            if (oct_number_of(g, g->node[mul].in[k], &f) && oct_same_dims(g, g->node[mul].in[!k], value)) {
                *scale *= f;
                return g->node[mul].in[!k];
            }
    if (div >= 0 && oct_number_of(g, g->node[div].in[1], &f) && f != 0.0 &&
        oct_same_dims(g, g->node[div].in[0], value)) {
        *scale /= f;
        return g->node[div].in[0];
    }
    return value;
}

static part heads_of(const oct_graph *g, int value, int rank, double *scale)
{
    value = scale ? before_factor(g, value, scale) : value;
    const int from = rank == 4 ? before_transpose(g, value, swap_heads, 4) : -1;
    return from >= 0 ? (part){ from, true } : (part){ value, false };
}

/* Finds the keys, which are transposed. False: they are not. */
static bool keys_of(const oct_graph *g, int value, int rank, attention *a)
{
    value = before_factor(g, value, &a->scale);
    const int flat = rank == 4 ? before_transpose(g, value, keys_last, 4) : -1;
    const int from = before_transpose(g, value, rank == 4 ? swap_last4 : swap_last3, rank);
    if (flat >= 0)
        a->k = (part){ flat, true };
    else if (from >= 0)
        a->k = heads_of(g, from, rank, &a->scale);
    return flat >= 0 || from >= 0;
}

/* ------------------------------------------------------------------ scores */

static int matmul_of(const oct_graph *g, int value)
{
    return oct_made_by(g, value, "MatMul", 2);
}

/* Finds the product that computes the scores, through multiplications by factors. Returns its node or -1. */
static int match_scaled(const oct_graph *g, int value, oct_match *m, double *scale)
{
    for (int i = 0; i < 3; i++) {
        const int id = g->value[value].producer, from = before_factor(g, value, scale);
        if (from == value)
            break;
        if (!oct_match_add(m, id))
            return -1;
        value = from;
    }
    const int id = matmul_of(g, value);
    return id >= 0 && oct_match_add(m, id) ? id : -1;
}

/* Finds the product that computes the input of Softmax: with a mask added at the end, or without one. */
static int match_scores(const oct_graph *g, int value, attention *a)
{
    const int add = oct_made_by(g, value, "Add", 2);
    a->mask = -1;
    if (add < 0)
        return match_scaled(g, value, &a->m, &a->scale);
    for (int k = 0; k < 2; k++) {
        oct_match with = a->m;
        double scale = 1.0;
        const int id =
            oct_same_dims(g, g->node[add].in[k], value) ? match_scaled(g, g->node[add].in[k], &with, &scale) : -1;
        if (id >= 0 && oct_match_add(&with, add)) {
            a->m = with;
            a->scale = scale;
            a->mask = g->node[add].in[!k];
            return id;
        }
    }
    return -1;
}

static bool is_last_axis(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const int rank = g->value[n->in[0]].shape.rank;
    const int64_t axis = oct_node_int(n, "axis", oct_node_opset(g, n) < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

/* ------------------------------------------------------------------ sizes */

static bool has_dims(const oct_graph *g, int value, int rank, const int64_t *want)
{
    int64_t d[OCT_MAX_RANK];
    const oct_value *v = &g->value[value];
    return v->dtype == OCT_F32 && v->shape.rank == rank && oct_shape_known(&v->shape, d) &&
           memcmp(d, want, (size_t)rank * sizeof *d) == 0;
}

static bool part_fits(const oct_graph *g, const attention *a, part p, int64_t length, int64_t depth)
{
    if (a->rank == 3)
        return has_dims(g, p.value, 3, (const int64_t[]){ a->b, length, depth });
    return p.flat ? has_dims(g, p.value, 4, (const int64_t[]){ a->b, length, a->h, depth })
                  : has_dims(g, p.value, 4, (const int64_t[]){ a->b, a->h, length, depth });
}

static bool mask_fits(const oct_graph *g, const attention *a)
{
    int64_t d[OCT_MAX_RANK], four[4] = { a->b, a->h, a->s, a->t }, three[3] = { a->b, a->s, a->t };
    if (a->mask < 0)
        return true;
    const oct_value *v = &g->value[a->mask];
    if (v->dtype != OCT_F32 || v->shape.rank < 1 || v->shape.rank > a->rank || !oct_shape_known(&v->shape, d))
        return false;
    const int64_t *want = (a->rank == 4 ? four : three) + (a->rank - v->shape.rank);
    for (int i = 0; i < v->shape.rank; i++)
        if (d[i] != want[i] && (d[i] != 1 || i == v->shape.rank - 1))
            return false;
    return true;
}

static bool read_sizes(const oct_graph *g, int scores, attention *a)
{
    int64_t d[OCT_MAX_RANK], dq[OCT_MAX_RANK], dv[OCT_MAX_RANK];
    const oct_shape *s = &g->value[scores].shape, *q = &g->value[a->q.value].shape, *v = &g->value[a->v.value].shape;
    a->rank = s->rank;
    if ((s->rank != 3 && s->rank != 4) || !oct_shape_known(s, d) || !oct_shape_known(q, dq) ||
        !oct_shape_known(v, dv) || q->rank != s->rank || v->rank != s->rank)
        return false;
    a->b = d[0];
    a->h = s->rank == 4 ? d[1] : 1;
    a->s = d[s->rank - 2];
    a->t = d[s->rank - 1];
    a->d = dq[s->rank - 1];
    a->e = dv[s->rank - 1];
    return a->b > 0 && a->h > 0 && a->s > 0 && a->t > 0 && a->d > 0 && a->e > 0 && part_fits(g, a, a->q, a->s, a->d) &&
           part_fits(g, a, a->k, a->t, a->d) && part_fits(g, a, a->v, a->t, a->e) && mask_fits(g, a);
}

/* ------------------------------------------------------------------ matching */

/* Finds a Transpose after the second product, and a Reshape that joins the heads. Not if the queries are already
 * transposed, because then the result has the same layout. */
static void match_result(const oct_graph *g, attention *a)
{
    int id = oct_only_reader(g, g->node[a->root].out[0]);
    if (a->rank != 4 || !a->q.flat || id < 0 || !oct_is_op(&g->node[id], "Transpose") ||
        !permutes(g, id, swap_heads, 4) || !oct_match_add(&a->m, id))
        return;
    a->flat = true;
    a->root = id;
    id = oct_only_reader(g, g->node[id].out[0]);
    if (id >= 0 && oct_is_op(&g->node[id], "Reshape") &&
        has_dims(g, g->node[id].out[0], 3, (const int64_t[]){ a->b, a->s, a->h * a->e }) && oct_match_add(&a->m, id))
        a->root = id;
}

static bool match(const oct_graph *g, int softmax, attention *a)
{
    const oct_node *n = &g->node[softmax];
    *a = (attention){ .m = { { softmax }, 1 }, .scale = 1.0 };
    if (!oct_is_op(n, "Softmax") || n->n_in != 1 || n->n_out != 1 || n->in[0] < 0 || n->out[0] < 0 ||
        !is_last_axis(g, softmax))
        return false;
    a->pv = a->root = oct_only_reader(g, n->out[0]);
    if (a->pv < 0 || matmul_of(g, g->node[a->pv].n_out == 1 ? g->node[a->pv].out[0] : -1) != a->pv ||
        g->node[a->pv].in[0] != n->out[0] || !oct_match_add(&a->m, a->pv))
        return false;
    const int qk = match_scores(g, n->in[0], a), rank = g->value[n->in[0]].shape.rank;
    if (qk < 0 || !keys_of(g, g->node[qk].in[1], rank, a))
        return false;
    const int q = before_factor(g, g->node[qk].in[0], &a->scale);
    a->q = heads_of(g, q, rank, &a->scale);
    a->v = heads_of(g, g->node[a->pv].in[1], rank, NULL);
    if (!read_sizes(g, n->in[0], a) || !oct_match_holds(g, &a->m, a->pv))
        return false;
    match_result(g, a);
    if (!a->flat)
        a->q = (part){ q, false };
    return part_fits(g, a, a->q, a->s, a->d);
}

/* ------------------------------------------------------------------ rewriting */

static oct_status reshaped(oct_graph *g, int from, int rank, const int64_t *dims, int before, int *to, oct_err *err)
{
    OCT_TRY(oct_match_value(g, from, rank, dims, to, err));
    return oct_match_reshape(g, from, *to, before, err);
}

/* Brings a tensor into the form that Attention takes. */
static oct_status give(oct_graph *g, const attention *a, part p, int64_t length, int64_t depth, int *value,
                       oct_err *err)
{
    const int64_t joined[3] = { a->b, length, a->h * depth }, single[4] = { a->b, 1, length, depth };
    const int split = p.flat ? oct_made_by(g, p.value, "Reshape", 2) : -1;
    *value = p.value;
    if (split >= 0 && has_dims(g, g->node[split].in[0], 3, joined)) {
        *value = g->node[split].in[0];
        return OCT_OK;
    }
    if (p.flat)
        return reshaped(g, p.value, 3, joined, a->root, value, err);
    return a->rank == 3 ? reshaped(g, p.value, 4, single, a->root, value, err) : OCT_OK;
}

static oct_status give_mask(oct_graph *g, const attention *a, int *value, oct_err *err)
{
    int64_t d[OCT_MAX_RANK];
    *value = a->mask;
    if (a->mask < 0 || a->rank == 4 || g->value[a->mask].shape.rank < 3)
        return OCT_OK;
    oct_shape_known(&g->value[a->mask].shape, d);
    return reshaped(g, a->mask, 4, (const int64_t[]){ d[0], 1, d[1], d[2] }, a->root, value, err);
}

/* If Attention's result has another form than that of the root, adds a Reshape after it. */
static oct_status show_result(oct_graph *g, const attention *a, int made, int out, oct_err *err)
{
    const int64_t joined[3] = { a->b, a->s, a->h * a->e }, single[4] = { a->b, 1, a->s, a->e };
    int own;
    if (has_dims(g, out, 3, joined) ? a->flat : !a->flat && a->rank == 4)
        return OCT_OK;
    OCT_TRY(oct_match_value(g, out, a->flat ? 3 : 4, a->flat ? joined : single, &own, err));
    OCT_TRY(oct_graph_set_output(g, made, 0, own, err));
    return oct_match_reshape(g, own, out, -1, err); /* the order is restored later */
}

static oct_status replace(oct_graph *g, const attention *a, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    oct_fused f = { "Attention", "", 23, { -1 }, a->mask >= 0 ? 4 : 3 };
    int made;
    const int out = g->node[a->root].out[0];
    OCT_TRY(give(g, a, a->q, a->s, a->d, &f.in[0], err));
    OCT_TRY(give(g, a, a->k, a->t, a->d, &f.in[1], err));
    OCT_TRY(give(g, a, a->v, a->t, a->e, &f.in[2], err));
    OCT_TRY(give_mask(g, a, &f.in[3], err));
    OCT_TRY(oct_match_replace(g, &a->m, a->root, a->pv, &f, &made, err));
    OCT_TRY(oct_node_set_int(g, made, "q_num_heads", a->h, err));
    OCT_TRY(oct_node_set_int(g, made, "kv_num_heads", a->h, err));
    OCT_TRY(oct_node_set_float(g, made, "scale", (float)a->scale, err));
    oct_pass_note(log, self, f.op, g->node[made].name);
    return show_result(g, a, made, out, err);
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    attention a;
    return match(g, id, &a) ? replace(g, &a, self, log, err) : OCT_OK;
}

const oct_pass oct_pass_attention = { "attention", "make products around a Softmax Attention", .at = at };
