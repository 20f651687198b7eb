/* Lowering of dynamic quantization: DynamicQuantizeLinear - MatMulInteger - Cast - Mul by s_a * s_b [- Add bias] [- clamp] becomes one
 * step, DynamicQuantizeMatMul, or MatMulIntegerToFloat where others read the same codes. Both compute in the chain's order, so
 * that the results are the same bits. DynamicQuantizeLinear and the product of scales are left to be dropped as unused. */
#include "runtime/lower_int.h"

#include <string.h>

/* The values and nodes of a chain. */
typedef struct chain {
    int a, b, za, zb;    /* inputs of MatMulInteger; -1 none */
    int sa, sb;          /* scales of A (one value) and B (one, or one a column) */
    int bias, out;       /* bias -1: none */
    int node[3], n_node; /* Cast, Mul, Add: done by the step */
} chain;

/* The node that alone uses a value, at any slot, when nothing else can see the value; -1 otherwise. */
static int sole_user(const rt_lowering *l, int value)
{
    const oct_value *v = &l->g->value[value];
    return oct_value_used_once(v) && !rt_is_tapped(l->p, v->name) ? v->uses[0].node : -1;
}

static int other_input(const oct_node *n, int value)
{
    return n->n_in != 2 ? -1 : n->in[0] == value ? n->in[1] : n->in[1] == value ? n->in[0] : -1;
}

static int in_of(const oct_node *n, int slot)
{
    return slot < n->n_in ? n->in[slot] : -1;
}

/* Values of a known shape; -1 otherwise. */
static int64_t count_of(const rt_lowering *l, int value)
{
    int64_t d[OCT_MAX_RANK], n;
    const oct_shape *s = &l->g->value[value].shape;
    return oct_shape_known(s, d) && oct_count(d, s->rank, &n) ? n : -1;
}

/* A constant f32 of `columns` values along the last dimension of what it joins, which has `rank` dimensions. */
static bool is_row(const rt_lowering *l, int value, int64_t columns, int rank)
{
    const oct_tensor *t = l->g->value[value].konst;
    return t && t->dtype == OCT_F32 && t->rank >= 1 && t->rank <= rank && t->count == columns && t->dims[t->rank - 1] == columns;
}

static bool is_scale(const rt_lowering *l, int value, int64_t columns)
{
    const oct_tensor *t = l->g->value[value].konst;
    return t && t->dtype == OCT_F32 && t->rank <= 1 && (t->count == 1 || t->count == columns);
}

/* s_a * s_b: of which s_a is one value made with A's codes, and s_b a constant. */
static bool match_scales(const rt_lowering *l, int value, int64_t columns, chain *c)
{
    int id = l->g->value[value].producer;
    const oct_node *n = id >= 0 ? &l->g->node[id] : NULL;
    if (!n || !rt_is_op(n, "Mul") || n->n_in != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const oct_value *sa = &l->g->value[n->in[i]];
        if (!is_scale(l, n->in[!i], columns) || sa->dtype != OCT_F32 || sa->shape.rank > 1 || count_of(l, n->in[i]) != 1)
            continue;
        if (sa->producer < 0 || sa->producer != l->g->value[c->a].producer)
            continue;
        c->sa = n->in[i];
        c->sb = n->in[!i];
        return true;
    }
    return false;
}

static bool fixed_rank(const rt_lowering *l, int value, int rank)
{
    return l->g->value[value].shape.rank == rank;
}

/* An Add of a constant row behind the chain. */
static void match_bias(const rt_lowering *l, int64_t columns, int rank, chain *c)
{
    int id = sole_user(l, c->out);
    const oct_node *n = id >= 0 ? &l->g->node[id] : NULL;
    int bias = n && rt_is_op(n, "Add") && n->n_out == 1 ? other_input(n, c->out) : -1;
    if (bias < 0 || bias == c->out || !is_row(l, bias, columns, rank) || !fixed_rank(l, n->out[0], rank))
        return;
    c->bias = bias;
    c->out = n->out[0];
    c->node[c->n_node++] = id;
}

/* One zero point of A; a constant one of B, or one a column. */
static bool plain_zeros(const rt_lowering *l, const chain *c, int64_t columns)
{
    const oct_tensor *zb = c->zb >= 0 ? l->g->value[c->zb].konst : NULL;
    if ((c->za >= 0 && count_of(l, c->za) != 1) || (c->zb >= 0 && !zb))
        return false;
    return !zb || (zb->rank <= 1 && (zb->count == 1 || zb->count == columns));
}

static bool match(const rt_lowering *l, int id, chain *c)
{
    const oct_node *mm = &l->g->node[id];
    *c = (chain){ .a = mm->in[0], .b = mm->in[1], .za = in_of(mm, 2), .zb = in_of(mm, 3), .bias = -1 };
    const oct_value *acc = &l->g->value[mm->out[0]];
    int cast = sole_user(l, mm->out[0]), rank = acc->shape.rank;
    if (cast < 0 || rank < 1 || c->a < 0 || c->b < 0 || !rt_is_op(&l->g->node[cast], "Cast") ||
        oct_node_int(&l->g->node[cast], "to", 0) != OCT_F32)
        return false;
    int real = l->g->node[cast].out[0], mul = sole_user(l, real);
    const oct_node *n = mul >= 0 ? &l->g->node[mul] : NULL;
    int scales = n && rt_is_op(n, "Mul") ? other_input(n, real) : -1;
    int64_t columns = acc->shape.d[rank - 1].n;
    if (l->g->value[c->b].shape.rank < 2 || !plain_zeros(l, c, columns))
        return false;
    if (scales < 0 || scales == real || !match_scales(l, scales, columns, c) || !fixed_rank(l, n->out[0], rank) ||
        count_of(l, n->out[0]) != count_of(l, real))
        return false;
    c->out = n->out[0];
    c->node[c->n_node++] = cast;
    c->node[c->n_node++] = mul;
    match_bias(l, columns, rank, c);
    return true;
}

static bool quantizes(const rt_lowering *l, int id)
{
    return id >= 0 && rt_is_op(&l->g->node[id], "DynamicQuantizeLinear") && l->g->node[id].n_out == 3;
}

/* How many nodes quantize x. */
static int quantizers_of(const rt_lowering *l, int x)
{
    const oct_value *v = &l->g->value[x];
    int n = 0;
    for (size_t i = 0; i < v->n_uses; i++)
        n += v->uses[i].node >= 0 && quantizes(l, v->uses[i].node);
    return n;
}

/* The float value whose codes only this chain reads; -1 when others do. */
static int own_input(const rt_lowering *l, int id, const chain *c)
{
    int q = l->g->value[c->a].producer;
    if (!quantizes(l, q))
        return -1;
    const oct_node *n = &l->g->node[q];
    int scales = sole_user(l, n->out[1]);
    bool own = n->out[0] == c->a && n->out[1] == c->sa && n->out[2] == c->za && sole_user(l, c->a) == id &&
               sole_user(l, c->za) == id && scales >= 0 && sole_user(l, l->g->node[scales].out[0]) == c->node[1];
    return own && quantizers_of(l, n->in[0]) == 1 ? n->in[0] : -1;
}

static oct_status make_step(rt_lowering *l, int id, chain *c, oct_err *err)
{
    int x = own_input(l, id, c);
    int from[7] = { c->a, c->b, c->sa, c->sb, c->za, c->zb, c->bias }, own[5] = { x, c->b, c->sb, c->zb, c->bias };
    int *in = x >= 0 ? own : from, n_in = x >= 0 ? 5 : 7;
    const oct_op *op = oct_op_find("com.microsoft", x >= 0 ? "DynamicQuantizeMatMul" : "MatMulIntegerToFloat", 1);
    rt_step *st = rt_add_step(l->p, op, &l->g->node[id], n_in, 1);
    rt_operand *o;
    if (!st)
        return oct_nomem(err);
    st->s.opset = 1;
    for (int i = 0; i < n_in; i++)
        if (in[i] >= 0) {
            OCT_TRY(rt_lower_operand(l, in[i], &o, err));
            st->s.in[i] = &o->t;
        }
    int clamp = rt_join_clamp(l, &c->out, &st->s.epilogue, true);
    if (clamp >= 0)
        l->done[clamp] = true;
    for (int i = 0; i < c->n_node; i++)
        l->done[c->node[i]] = true;
    OCT_TRY(rt_lower_operand(l, c->out, &o, err));
    rt_set_tap(l, st, 0, c->out);
    st->s.out[0] = &o->t;
    st->macs = (uint64_t)oct_step_macs(&st->s);
    return OCT_OK;
}

/* The outputs of a DynamicQuantizeLinear whose input has been quantized before are those of the first. */
static bool share_quantizer(rt_lowering *l, int id)
{
    const oct_node *n = &l->g->node[id];
    const oct_value *x = &l->g->value[n->in[0]];
    for (int k = 0; k < 3; k++)
        if (n->out[k] < 0 || l->g->value[n->out[k]].is_output || rt_is_tapped(l->p, l->g->value[n->out[k]].name))
            return false;
    for (size_t i = 0; i < x->n_uses; i++) {
        int other = x->uses[i].node;
        if (other < 0 || other == id || !quantizes(l, other))
            continue;
        const int *out = l->g->node[other].out;
        if (out[0] < 0 || out[1] < 0 || out[2] < 0 || !l->p->value[out[0]] || !l->p->value[out[1]] || !l->p->value[out[2]])
            continue;
        for (int k = 0; k < 3; k++)
            l->p->value[n->out[k]] = l->p->value[out[k]];
        return true;
    }
    return false;
}

oct_status rt_lower_dynamic(rt_lowering *l, int id, bool *made, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    chain c;
    *made = false;
    if (l->p->opts.no_integer)
        return OCT_OK;
    if (quantizes(l, id)) {
        *made = n->in[0] >= 0 && share_quantizer(l, id);
        return OCT_OK;
    }
    if (!rt_is_op(n, "MatMulInteger") || n->n_in < 2 || n->n_out != 1 || n->out[0] < 0 || !match(l, id, &c))
        return OCT_OK;
    *made = true;
    return make_step(l, id, &c, err);
}
