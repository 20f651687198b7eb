/* Operator form: DequantizeLinear -> operator -> QuantizeLinear becomes one operator on integers.
 *
 * QLinearConv and QLinearMatMul are of the default domain, QGemm and the other QLinear operators of com.microsoft, as ONNX
 * Runtime has them. What moves data runs on the codes as it is, when codes mean the same before and behind it. A node
 * is taken only when its integer form computes what the QDQ form does: on the types that ONNX Runtime has kernels for, with
 * a bias at exactly s_x * s_w. All others stay real between DequantizeLinear and QuantizeLinear. */
#include "quant/quant.h"

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
    bool contrib;  /* an operator of com.microsoft was written */
} rewriter;

typedef struct form {
    const char *op, *type;
    bool contrib;
    /* Whether the node has the form; fills r->in. */
    bool (*fits)(rewriter *r, const struct form *f, const codes *y);
} form;

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
    const oct_value *x = v >= 0 ? &g->value[v] : NULL;
    if (!x || !oct_value_used_once(x) || x->uses[0].slot != 0)
        return false;
    const oct_node *q = &g->node[x->uses[0].node];
    return q->n_out == 1 && q->out[0] >= 0 && read_codes(g, q, "QuantizeLinear", q->out[0], c);
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

/* ---- writing ---- */

static void put(rewriter *r, int value)
{
    r->in[r->n_in++] = value;
}

static void put_codes(rewriter *r, const codes *c)
{
    put(r, c->value);
    put(r, c->scale);
    put(r, c->zero);
}

static void put_grid(rewriter *r, const codes *c)
{
    put(r, c->scale);
    put(r, c->zero);
}

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

/* x, w, grid of y, bias */
static bool conv(rewriter *r, const form *f, const codes *y)
{
    const oct_graph *g = r->g;
    const oct_node *n = &g->node[r->id];
    codes x, w, b;
    (void)f;
    if (!y || n->n_in < 2 || !activation(g, n->in[0], &x) || !weights(g, n->in[1], &x, 0, &w) || y->dtype != x.dtype)
        return false;
    const oct_tensor *t = constant(g, w.value);
    bool biased = n->n_in > 2 && n->in[2] >= 0;
    if (!t || t->rank < WEIGHTS || (biased && !bias(g, n->in[2], &x, &w, &b)))
        return false;
    put_codes(r, &x);
    put_codes(r, &w);
    put_grid(r, y);
    if (biased)
        put(r, b.value);
    return true;
}

/* a, b, grid of y. Without one there is no operator that all runtimes have. */
static bool matmul(rewriter *r, const form *f, const codes *y)
{
    const oct_graph *g = r->g;
    const oct_node *n = &g->node[r->id];
    codes a, b;
    (void)f;
    if (!y || n->n_in < 2 || !activation(g, n->in[0], &a) || !weights(g, n->in[1], &a, 1, &b) || y->dtype != a.dtype)
        return false;
    /* Per column of a matrix only: stacks have one scale for all. */
    if (grids(g, &b) != SCALAR && (!constant(g, b.value) || g->value[b.value].shape.rank != 2))
        return false;
    put_codes(r, &a);
    put_codes(r, &b);
    put_grid(r, y);
    return true;
}

/* a, b, bias, grid of y; without a grid y is real. */
static bool gemm(rewriter *r, const form *f, const codes *y)
{
    const oct_graph *g = r->g;
    const oct_node *n = &g->node[r->id];
    codes a, b, c;
    (void)f;
    int axis = oct_node_int(n, "transB", 0) ? 0 : 1;
    bool biased = n->n_in > 2 && n->in[2] >= 0;
    if (oct_node_int(n, "transA", 0) || oct_node_float(n, "alpha", 1.0f) != 1.0f || oct_node_float(n, "beta", 1.0f) != 1.0f)
        return false;
    if (n->n_in < 2 || !activation(g, n->in[0], &a) || !weights(g, n->in[1], &a, axis, &b) || (y && y->dtype != a.dtype))
        return false;
    const oct_tensor *t = constant(g, b.value);
    if (!t || t->rank != 2 || (biased && !bias(g, n->in[2], &a, &b, &c)))
        return false;
    put_codes(r, &a);
    put_codes(r, &b);
    if (biased || y)
        put(r, biased ? c.value : -1);
    if (y)
        put_grid(r, y);
    return true;
}

/* ---- the rest that computes ---- */

/* a, b, grid of y */
static bool binary(rewriter *r, const form *f, const codes *y)
{
    const oct_node *n = &r->g->node[r->id];
    codes a, b;
    (void)f;
    if (!y || n->n_in != 2 || !activation(r->g, n->in[0], &a) || !activation(r->g, n->in[1], &b) || a.dtype != b.dtype ||
        a.dtype != y->dtype)
        return false;
    put_codes(r, &a);
    put_codes(r, &b);
    put_grid(r, y);
    return true;
}

/* x, grid of y */
static bool unary(rewriter *r, const form *f, const codes *y)
{
    const oct_node *n = &r->g->node[r->id];
    codes x;
    (void)f;
    if (!y || n->n_in != 1 || !activation(r->g, n->in[0], &x) || x.dtype != y->dtype)
        return false;
    put_codes(r, &x);
    put_grid(r, y);
    return true;
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
static bool pool(rewriter *r, const form *f, const codes *y)
{
    const oct_node *n = &r->g->node[r->id];
    int rank = n->n_in > 0 && n->in[0] >= 0 ? r->g->value[n->in[0]].shape.rank : -1;
    return rank >= 3 && rank <= 4 && all_ones(n, "dilations") &&
           !(oct_node_int(n, "ceil_mode", 0) && oct_node_int(n, "count_include_pad", 0)) && unary(r, f, y);
}

/* ONNX Runtime's kernel rounds 1 / scale down: exact for 1/256 alone. */
static bool softmax(rewriter *r, const form *f, const codes *y)
{
    return y && scale_at(r->g, y, 0) == 1.0f / 256.0f && oct_graph_opset(r->g, "") >= 13 && unary(r, f, y);
}

/* grid of y, then every x */
static bool concat(rewriter *r, const form *f, const codes *y)
{
    const oct_node *n = &r->g->node[r->id];
    codes x;
    (void)f;
    if (!y || n->n_in < 1)
        return false;
    put_grid(r, y);
    for (int i = 0; i < n->n_in; i++) {
        if (!activation(r->g, n->in[i], &x) || x.dtype != y->dtype)
            return false;
        put_codes(r, &x);
    }
    return true;
}

static const form forms[] = {
    { "Conv", "QLinearConv", false, conv },
    { "MatMul", "QLinearMatMul", false, matmul },
    { "Gemm", "QGemm", true, gemm },
    { "Add", "QLinearAdd", true, binary },
    { "Mul", "QLinearMul", true, binary },
    { "Concat", "QLinearConcat", true, concat },
    { "Sigmoid", "QLinearSigmoid", true, unary },
    { "LeakyRelu", "QLinearLeakyRelu", true, unary },
    { "AveragePool", "QLinearAveragePool", true, pool },
    { "GlobalAveragePool", "QLinearGlobalAveragePool", true, pool },
    { "Softmax", "QLinearSoftmax", true, softmax },
};

/* Attributes that the integer operator has beside or instead of the real one's. */
static oct_status fit_attributes(rewriter *r, const form *f, oct_err *err)
{
    oct_node *n = &r->g->node[r->id];
    if (f->fits == gemm)
        oct_node_drop_attr(r->g, r->id, "beta");
    if (f->fits == pool)
        oct_node_drop_attr(r->g, r->id, "dilations");
    if (f->fits != softmax)
        return OCT_OK;
    OCT_TRY(oct_node_set_int(r->g, r->id, "axis", oct_node_int(n, "axis", -1), err));
    return oct_node_set_int(r->g, r->id, "opset", 13, err);
}

static oct_status become(rewriter *r, const form *f, const codes *y, oct_err *err)
{
    oct_graph *g = r->g;
    OCT_TRY(fit_attributes(r, f, err));
    oct_graph_cut_inputs(g, r->id, 0);
    for (int i = 0; i < r->n_in; i++)
        OCT_TRY(oct_graph_set_input(g, r->id, i, r->in[i], err));
    g->node[r->id].op = f->type;
    g->node[r->id].domain = f->contrib ? "com.microsoft" : "";
    g->node[r->id].changed = g->changed = true;
    r->contrib |= f->contrib;
    r->made++;
    return y ? take_output(r, 0, y, err) : OCT_OK;
}

static oct_status try_form(rewriter *r, oct_err *err)
{
    const oct_node *n = &r->g->node[r->id];
    const form *f = NULL;
    codes y;
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (strcmp(n->op, forms[i].op) == 0)
            f = &forms[i];
    if (!f || n->n_out != 1 || n->out[0] < 0)
        return OCT_OK;
    bool quantized = sink(r->g, n->out[0], &y) && is_activation(r->g, &y);
    if (!f->fits(r, f, quantized ? &y : NULL))
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
    if (!(r->in = oct_calloc((size_t)n->n_in * 3 + 9, sizeof *r->in)))
        return oct_nomem(err);
    r->n_in = 0;
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
    if (r.contrib && oct_graph_opset(g, "com.microsoft") == 0)
        OCT_TRY(oct_graph_set_opset(g, "com.microsoft", 1, err));
    oct_graph_prune(g);
    if (made)
        *made = r.made;
    return oct_graph_check(g, err);
}
