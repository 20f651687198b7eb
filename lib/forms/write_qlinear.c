/* Operator form: DequantizeLinear -> operator -> QuantizeLinear becomes one operator on integers.
 *
 * QLinearConv and QLinearMatMul are of the default domain, QGemm and the other QLinear operators of com.microsoft, as ONNX
 * Runtime has them. What moves data runs on the codes as it is, when codes mean the same before and behind it. A node
 * is taken only when its integer form computes what the QDQ form does: on the types that ONNX Runtime has kernels for, with
 * a bias at exactly s_x * s_w. All others stay real between DequantizeLinear and QuantizeLinear. */
#include "forms/edit.h"
#include "forms/forms_write.h"
#include "forms/qlinear.h"
#include "ops/op.h"
#include "passes/match.h"

#include <math.h>
#include <string.h>

enum { SCALAR = 1, WEIGHTS = 3 /* least rank of Conv's */ };

/* Codes and what they stand for: three values, scale and zero point constant. */
typedef struct codes {
    int value, scale, zero, axis;
    oct_dtype dtype;
} codes;

typedef struct rewriter {
    oct_graph *g;
    int id;        /* the node at hand */
    int *in;       /* its new inputs */
    int n_in;
    size_t made;
} rewriter;

/* ---- reading ---- */

static const oct_tensor *constant(const oct_graph *g, int v)
{
    const oct_tensor *t = v >= 0 ? g->value[v].konst : NULL;
    return t && t->data ? t : NULL;
}

static bool read_codes(const oct_graph *g, const oct_node *n, const char *op, int value, codes *c)
{
    if (!oct_is_op(n, op) || n->n_in != 3 || oct_node_int(n, "block_size", 0) != 0)
        return false;
    const oct_tensor *s = constant(g, n->in[1]), *z = constant(g, n->in[2]);
    if (!s || !z || s->dtype != OCT_F32 || s->rank > 1 || s->count < 1 || s->count != z->count)
        return false;
    for (int64_t i = 0; i < s->count; i++)
        if (!(((const float *)s->data)[i] > 0.0f && ((const float *)s->data)[i] < INFINITY))
            return false;
    *c = (codes){ value, n->in[1], n->in[2], (int)oct_node_int(n, "axis", 1), z->dtype };
    int rank = g->value[value].shape.rank;
    if (c->axis < 0 && rank >= 0)
        c->axis += rank;
    return true;
}

/* The codes behind a DequantizeLinear that makes v. */
static bool source(const oct_graph *g, int v, codes *c)
{
    int id = v >= 0 ? g->value[v].producer : -1;
    return id >= 0 && read_codes(g, &g->node[id], "DequantizeLinear", g->node[id].in[0], c);
}

/* The codes that a QuantizeLinear makes of v, its only reader. */
static bool sink(const oct_graph *g, int v, codes *c)
{
    const int reader = v >= 0 ? oct_only_reader(g, v) : -1;
    const oct_node *q = reader >= 0 ? &g->node[reader] : NULL;
    return q && q->in[0] == v && q->n_out == 1 && q->out[0] >= 0 && read_codes(g, q, "QuantizeLinear", q->out[0], c);
}

static int64_t grids(const oct_graph *g, const codes *c)
{
    return g->value[c->scale].konst->count;
}

static float scale_at(const oct_graph *g, const codes *c, int64_t i)
{
    return ((const float *)g->value[c->scale].konst->data)[i];
}

/* An activation that integer kernels take: u8 or s8, one grid. */
static bool is_activation(const oct_graph *g, const codes *c)
{
    return grids(g, c) == SCALAR && (c->dtype == OCT_U8 || c->dtype == OCT_S8);
}

static bool activation(const oct_graph *g, int v, codes *c)
{
    return source(g, v, c) && is_activation(g, c);
}

static bool same_bytes(const oct_graph *g, int a, int b)
{
    const oct_tensor *x = g->value[a].konst, *y = g->value[b].konst;
    return x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0;
}

static bool same_grid(const oct_graph *g, const codes *a, const codes *b)
{
    return a->dtype == b->dtype && same_bytes(g, a->scale, b->scale) && same_bytes(g, a->zero, b->zero);
}

static bool all_zero(const oct_tensor *t)
{
    for (size_t i = 0; i < t->bytes; i++)
        if (((const uint8_t *)t->data)[i])
            return false;
    return true;
}

/* ---- products ---- */

/* Weights: u8 with u8 activations alone; per channel along `axis`, zero points then equal (one of them all). */
static bool weights(const oct_graph *g, int v, const codes *x, int axis, codes *w)
{
    if (!source(g, v, w) || (w->dtype != OCT_S8 && !(w->dtype == OCT_U8 && x->dtype == OCT_U8)))
        return false;
    const oct_shape *s = &g->value[w->value].shape;
    const oct_tensor *z = g->value[w->zero].konst;
    if (grids(g, w) == SCALAR)
        return true;
    if (w->axis != axis || s->rank <= axis || s->d[axis].n != grids(g, w))
        return false;
    for (int64_t i = 1; i < z->count; i++)
        if (((const uint8_t *)z->data)[i] != ((const uint8_t *)z->data)[0])
            return false;
    return true;
}

static bool bias(const oct_graph *g, int v, const codes *x, const codes *w, codes *b)
{
    if (!source(g, v, b) || b->dtype != OCT_S32 || g->value[b->value].shape.rank != 1 || !constant(g, b->value) ||
        grids(g, b) != grids(g, w) || !all_zero(g->value[b->zero].konst))
        return false;
    for (int64_t i = 0; i < grids(g, b); i++)
        if (scale_at(g, b, i) != scale_at(g, x, 0) * scale_at(g, w, i))
            return false;
    return true;
}

/* ---- forms ---- */

/* Conv: of pictures or signals. Gemm: a plain product. MatMul: per column of a matrix only, as stacks have one scale for all. */
static bool product(const oct_graph *g, const oct_node *n, const codes *w, const codes *y)
{
    const oct_tensor *t = constant(g, w->value);
    (void)y;
    if (oct_is_op(n, "Conv"))
        return t && t->rank >= WEIGHTS;
    if (oct_is_op(n, "MatMul"))
        return grids(g, w) == SCALAR || (t && t->rank == 2);
    return t && t->rank == 2 && !oct_node_int(n, "transA", 0) && oct_node_float(n, "alpha", 1.0f) == 1.0f && oct_node_float(n, "beta", 1.0f) == 1.0f;
}

static bool all_ones(const oct_node *n, const char *attr)
{
    int count;
    const int64_t *v = oct_node_ints(n, attr, &count);
    for (int i = 0; i < count; i++)
        if (v[i] != 1)
            return false;
    return true;
}

/* Pools of pictures and signals. Opset 19 brought dilations, and another divisor where ceil_mode and padding meet: the integer
 * operator has neither. */
static bool pool(const oct_graph *g, const oct_node *n, const codes *w, const codes *y)
{
    const int rank = g->value[n->in[0]].shape.rank;
    (void)w, (void)y;
    return rank >= 3 && rank <= 4 && all_ones(n, "dilations") && !(oct_node_int(n, "ceil_mode", 0) && oct_node_int(n, "count_include_pad", 0));
}

/* ONNX Runtime's kernel rounds 1 / scale down: exact for 1/256 alone. */
static bool softmax(const oct_graph *g, const oct_node *n, const codes *w, const codes *y)
{
    (void)n, (void)w;
    return scale_at(g, y, 0) == 1.0f / 256.0f && oct_graph_opset(g, "") >= 13;
}

/* What a node must have beyond the inputs of its form; w, y: NULL for none. */
static const struct {
    const char *op;
    bool (*fits)(const oct_graph *g, const oct_node *n, const codes *w, const codes *y);
} limits[] = {
    { "Conv", product }, { "MatMul", product }, { "Gemm", product }, { "AveragePool", pool }, { "GlobalAveragePool", pool }, { "Softmax", softmax },
};

static bool within_limits(const oct_graph *g, const oct_node *n, const codes *w, const codes *y)
{
    bool fits = true;
    for (size_t i = 0; i < OCT_COUNT(limits) && fits; i++)
        fits = strcmp(limits[i].op, n->op) != 0 || limits[i].fits(g, n, w, y);
    return fits;
}

/* The output channels of weights. */
static int channels_of(const oct_node *n)
{
    return oct_is_op(n, "Conv") || oct_node_int(n, "transB", 0) ? 0 : 1;
}

static void put(rewriter *r, int slot, int value)
{
    r->in[slot] = value;
    r->n_in = slot >= r->n_in ? slot + 1 : r->n_in;
}

/* Fills r->in with what the form has; false when the node has not that form. */
static bool has_form(rewriter *r, const oct_qlinear *f, const codes *y)
{
    const oct_graph *g = r->g;
    const oct_node *n = &g->node[r->id];
    const int n_data = f->n_data < 0 ? n->n_in : f->n_data, behind = oct_input_at(n, n_data);
    const oct_op *op = oct_op_of(g, r->id);
    const bool weighted = op && op->quant == OCT_QUANT_WEIGHTED;
    codes c[2] = { { .value = -1 } }, b;
    if (n_data < 1 || n->n_in > n_data + (f->bias >= 0) || !(y || f->y_real))
        return false;
    r->n_in = 0;
    for (int i = 0; i < n_data; i++) {
        const int k = f->n_data < 0 ? 0 : i, at = oct_qlinear_slot(f, i), v = oct_input_at(n, i);
        const bool fits = weighted && i == 1 ? weights(g, v, &c[0], channels_of(n), &c[1]) : activation(g, v, &c[k]) && (!y || y->dtype == c[k].dtype);
        if (!fits)
            return false;
        put(r, at, c[k].value);
        put(r, at + 1, c[k].scale);
        put(r, at + 2, c[k].zero);
    }
    if (behind >= 0 && !bias(g, behind, &c[0], &c[1], &b))
        return false;
    if (behind >= 0)
        put(r, f->bias, b.value);
    if (y) {
        put(r, f->y, y->scale);
        put(r, f->y + 1, y->zero);
    }
    return within_limits(g, n, &c[1], y);
}

/* ---- writing ---- */

/* Output k of the node makes the codes itself; its QuantizeLinear goes. */
static oct_status take_output(rewriter *r, int k, const codes *y, oct_err *err)
{
    oct_graph *g = r->g;
    int v = g->node[r->id].out[k], q = g->value[y->value].producer;
    OCT_TRY(oct_graph_set_output(g, r->id, k, y->value, err));
    oct_graph_remove_node(g, q);
    oct_graph_remove_value(g, v);
    return OCT_OK;
}

/* Attributes that the integer operator has beside or instead of the real one's. */
static oct_status fit_attributes(rewriter *r, const oct_qlinear *f, oct_err *err)
{
    oct_node *n = &r->g->node[r->id];
    if (strcmp(f->op, "Gemm") == 0)
        oct_node_drop_attr(r->g, r->id, "beta");
    if (strcmp(f->op, "AveragePool") == 0)
        oct_node_drop_attr(r->g, r->id, "dilations");
    if (strcmp(f->op, "Softmax") != 0)
        return OCT_OK;
    OCT_TRY(oct_node_set_int(r->g, r->id, "axis", oct_node_int(n, "axis", -1), err));
    return oct_node_set_int(r->g, r->id, "opset", 13, err);
}

static oct_status become(rewriter *r, const oct_qlinear *f, const codes *y, oct_err *err)
{
    oct_graph *g = r->g;
    OCT_TRY(fit_attributes(r, f, err));
    oct_graph_cut_inputs(g, r->id, 0);
    for (int i = 0; i < r->n_in; i++)
        OCT_TRY(oct_graph_set_input(g, r->id, i, r->in[i], err));
    OCT_TRY(oct_edit_become(g, r->id, f->type, f->domain, err));
    r->made++;
    return y ? take_output(r, 0, y, err) : OCT_OK;
}

static oct_status try_form(rewriter *r, oct_err *err)
{
    const oct_node *n = &r->g->node[r->id];
    const oct_qlinear *f = oct_qlinear_for(n->op);
    codes y;
    if (!f || n->n_out != 1 || n->out[0] < 0)
        return OCT_OK;
    bool quantized = sink(r->g, n->out[0], &y) && is_activation(r->g, &y);
    if (!has_form(r, f, quantized ? &y : NULL))
        return OCT_OK;
    return become(r, f, quantized ? &y : NULL, err);
}

/* ---- what moves data ---- */

/* Those for which ONNX Runtime has kernels of both u8 and s8. */
static const char *const moves[] = { "MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Split",
                                     "Gather", "Resize", "Expand", "Tile", "Identity", "DepthToSpace", "SpaceToDepth",
                                     "ReduceMax", "ReduceMin" };

static bool is_move(const oct_graph *g, const oct_node *n)
{
    bool listed = false;
    for (size_t i = 0; i < OCT_COUNT(moves); i++)
        listed |= strcmp(n->op, moves[i]) == 0;
    if (!listed || n->n_in < 1 || n->in[0] < 0)
        return false;
    int rank = g->value[n->in[0]].shape.rank;
    if (strcmp(n->op, "MaxPool") == 0) /* 8-bit integers came with opset 12, here and to the reductions */
        return oct_graph_opset(g, "") >= 12 && n->n_out == 1 && rank >= 3 && rank <= 4;
    if (strncmp(n->op, "Reduce", 6) == 0)
        return oct_graph_opset(g, "") >= 12;
    if (strcmp(n->op, "Resize") == 0) /* the value beyond the edge is a real number */
        return strcmp(oct_node_str(n, "mode", "nearest"), "nearest") == 0 &&
               strcmp(oct_node_str(n, "coordinate_transformation_mode", ""), "tf_crop_and_resize") != 0;
    return true;
}

/* Whether every output is quantized on the grid of x, and nothing else. */
static bool outputs_on(const oct_graph *g, const oct_node *n, const codes *x)
{
    codes y;
    for (int k = 0; k < n->n_out; k++)
        if (!sink(g, n->out[k], &y) || !is_activation(g, &y) || !same_grid(g, x, &y))
            return false;
    return n->n_out > 0;
}

/* Concat whose inputs all are on one grid moves data, too. */
static bool joins_one_grid(const oct_graph *g, const oct_node *n, const codes *x)
{
    codes c;
    for (int i = 0; i < n->n_in; i++)
        if (!activation(g, n->in[i], &c) || !same_grid(g, x, &c))
            return false;
    return true;
}

static oct_status try_move(rewriter *r, bool *moved, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_node *n = &g->node[r->id];
    bool joins = strcmp(n->op, "Concat") == 0;
    codes x, y;
    *moved = false;
    if ((!joins && !is_move(g, n)) || n->n_in < 1 || !activation(g, n->in[0], &x) || !outputs_on(g, n, &x) ||
        (joins && !joins_one_grid(g, n, &x)))
        return OCT_OK;
    for (int i = 0; i < (joins ? n->n_in : 1); i++)
        if (source(g, n->in[i], &x))
            OCT_TRY(oct_graph_set_input(g, r->id, i, x.value, err));
    for (int k = 0; k < g->node[r->id].n_out; k++)
        if (sink(g, g->node[r->id].out[k], &y))
            OCT_TRY(take_output(r, k, &y, err));
    g->node[r->id].changed = g->changed = true;
    *moved = true;
    r->made++;
    return OCT_OK;
}

/* ---- all of it ---- */

static oct_status rewrite_node(rewriter *r, oct_err *err)
{
    const oct_node *n = &r->g->node[r->id];
    bool moved;
    if (n->dead || n->domain[0])
        return OCT_OK;
    OCT_TRY(try_move(r, &moved, err));
    if (moved)
        return OCT_OK;
    const size_t room = ((size_t)n->n_in * 3 + 9) * sizeof *r->in;
    if (!(r->in = oct_alloc(room)))
        return oct_nomem(err);
    memset(r->in, -1, room);
    oct_status s = try_form(r, err);
    oct_free(r->in);
    r->in = NULL;
    return s;
}

/* The graphs that a node holds. */
static oct_status rewrite_bodies(rewriter *r, oct_err *err)
{
    oct_graph *nested;
    size_t made;
    for (size_t k = 0; (nested = oct_node_graph_at(&r->g->node[r->id], k)); k++) {
        OCT_TRY(oct_qoperator_rewrite(nested, &made, err));
        r->made += made;
    }
    return oct_node_graph_at(&r->g->node[r->id], 0) ? oct_graph_set_captures(r->g, r->id, err) : OCT_OK;
}

oct_status oct_qoperator_rewrite(oct_graph *g, size_t *made, oct_err *err)
{
    rewriter r = { .g = g };
    /* Nodes that stand before the one at hand are not removed, and each takes away at most QuantizeLinear behind it. */
    for (size_t i = 0; i < g->n_order; i++) {
        r.id = g->order[i];
        OCT_TRY(rewrite_bodies(&r, err));
        OCT_TRY(rewrite_node(&r, err));
    }
    oct_graph_prune(g);
    if (made)
        *made = r.made;
    return oct_graph_check(g, err);
}
