/* Layouts: channels-last where operators need it, reorders between different layouts; then each step is prepared. */
#include "runtime/plan_int.h"

/* Whether both layouts of a shape are the same bytes: one channel, or one position. */
static bool trivial(const oct_operand *t)
{
    if (t->rank < 3 || t->count == 0)
        return true;
    return t->dims[1] == 1 || t->dims[0] * t->dims[1] == t->count;
}

/* Adds a step that copies (or, when both layouts are the same bytes, renames) `from` into layout `to`, unless it is
 * there. */
static oct_status reorder(oct_plan *p, rt_operand *from, oct_tensor_layout to, rt_operand **out, oct_err *err)
{
    rt_operand *have = p->buffer[from->buffer].other;
    oct_operand t = from->t;
    int buffer;
    const bool same = trivial(&t);
    t.layout = to;
    if (have) {
        /* The same bytes, perhaps with other quantization parameters. */
        t.constant = have->t.constant;
        t.data = have->t.data;
        *out = have->t.q == t.q ? have : rt_new_operand(p, &t, have->buffer);
        return *out ? OCT_OK : oct_nomem(err);
    }
    if (oct_dtype_bits(t.dtype) < 8 && !same)
        return oct_fail(err, OCT_EUNSUPPORTED, "a tensor of %s cannot change its layout", oct_dtype_name(t.dtype));
    t.constant = t.constant && same;
    if (!same)
        t.data = NULL;
    OCT_TRY(rt_new_buffer(p, p->buffer[from->buffer].bytes, &buffer, err));
    rt_step *st = rt_new_step(p, NULL, NULL, 1, 1);
    if (!st || !(*out = rt_new_operand(p, &t, buffer)))
        return oct_nomem(err);
    rt_buffer *b = &p->buffer[buffer];
    b->layout = to;
    b->alias = same ? from->buffer : -1;
    b->other = from;
    p->buffer[from->buffer].other = *out;
    st->alias = same;
    st->s.in[0] = &from->t;
    st->s.out[0] = &(*out)->t;
    return rt_add_step(p, st, err);
}

static oct_status want(oct_plan *p, oct_operand **slot, oct_tensor_layout layout, oct_err *err)
{
    oct_operand *t = *slot;
    if (!t || t->layout == layout || t->rank < 3)
        return OCT_OK;
    rt_operand *o;
    OCT_TRY(reorder(p, (rt_operand *)t, layout, &o, err));
    *slot = &o->t;
    return OCT_OK;
}

static void set_out(oct_plan *p, oct_step *st, oct_tensor_layout layout)
{
    for (int k = 0; k < st->n_out; k++)
        if (st->out[k]) {
            st->out[k]->layout = st->out[k]->rank >= 3 ? layout : OCT_LAYOUT_PLAIN;
            p->buffer[((rt_operand *)st->out[k])->buffer].layout = st->out[k]->layout;
        }
}

/* Whether a Transpose with this output layout keeps the order in memory, so that it is an alias. */
static bool keeps_order(const oct_step *x, oct_tensor_layout layout)
{
    int n;
    const int64_t *perm = oct_node_ints(x->node, "perm", &n);
    int64_t si[OCT_MAX_RANK], so[OCT_MAX_RANK];
    oct_operand y = *x->out[0];
    y.layout = layout;
    oct_operand_strides(x->in[0], si);
    oct_operand_strides(&y, so);
    if (n != x->in[0]->rank || n < 3)
        return false;
    for (int i = 0; i < n; i++)
        if (y.dims[i] != 1 && so[i] != si[perm[i]])
            return false;
    return true;
}

/* For operators that accept any layout: channels-last if a large input with the output's rank is. */
static oct_tensor_layout any_layout(const oct_step *st)
{
    if (st->op->permutes) /* it takes and gives either layout */
        return !keeps_order(st, OCT_LAYOUT_PLAIN) && keeps_order(st, OCT_LAYOUT_CHANNELS_LAST);
    for (int i = 0; i < st->n_in; i++) {
        const oct_operand *t = st->in[i];
        if (t && !t->constant && t->layout == OCT_LAYOUT_CHANNELS_LAST && st->out[0] && t->rank == st->out[0]->rank)
            return OCT_LAYOUT_CHANNELS_LAST;
    }
    return OCT_LAYOUT_PLAIN;
}

/* Tensors of 2- and 4-bit types share bytes between neighbours and stay plain. */
static bool is_packed(const oct_step *x)
{
    for (int i = 0; i < x->n_in + x->n_out; i++)
        if (x->in[i] && oct_dtype_bits(x->in[i]->dtype) < 8)
            return true;
    return false;
}

/* Whether input i of an operator that accepts any layout should have that of the output, because both are processed
 * together. */
static bool moves_along(const oct_step *x, int i)
{
    const oct_operand *t = x->in[i], *y = x->out[0];
    return t && !t->constant && y && t->rank == y->rank && t->count == y->count && !x->op->permutes;
}

static oct_status lay_out(oct_plan *p, rt_step *st, oct_err *err)
{
    oct_step *x = &st->s;
    for (int i = 0; i < x->n_in; i++)
        if (x->in[i])
            x->in[i]->layout = p->buffer[((rt_operand *)x->in[i])->buffer].layout;
    const bool plain = st->alias || x->op->layout == OCT_RULE_PLAIN || (x->op->layout == OCT_RULE_ANY && is_packed(x));
    const bool spatial = !plain && x->op->layout == OCT_RULE_SPATIAL;
    const oct_tensor_layout layout = plain ? OCT_LAYOUT_PLAIN : spatial ? OCT_LAYOUT_CHANNELS_LAST : any_layout(x);
    for (int i = 0; i < x->n_in; i++)
        if (plain || spatial || moves_along(x, i))
            OCT_TRY(want(p, &x->in[i], spatial && i && i != x->residual ? OCT_LAYOUT_PLAIN : layout, err));
    set_out(p, x, layout);
    return OCT_OK;
}

static void alias_output(oct_plan *p, rt_step *st)
{
    p->buffer[((rt_operand *)st->s.out[0])->buffer].alias = ((rt_operand *)st->s.in[0])->buffer;
    st->alias = true;
    if (st->s.in[0]->constant) {
        st->s.out[0]->constant = true;
        st->s.out[0]->data = st->s.in[0]->data;
    }
}

static oct_status prepare(oct_plan *p, rt_step *st, oct_err *err)
{
    /* Aliases are prepared as well, as a check: Dropout in training mode must be refused. */
    if (!st->s.op || (st->alias && !st->s.op->alias))
        return OCT_OK;
    oct_prep prep = { p->arena, oct_pool_threads(p->opts.pool), p->opts.fast_pack, p->opts.bf16, &p->packed };
    size_t before = oct_arena_bytes(p->arena) + p->packed.bytes;
    OCT_TRY_WITHIN(oct_step_prepare(&st->s, &prep, err), err, "node '%s' (%s)", st->s.node->name, st->s.node->op);
    p->weight_bytes += oct_arena_bytes(p->arena) + p->packed.bytes - before;
    if (st->s.scratch > p->scratch_bytes)
        p->scratch_bytes = st->s.scratch;
    return OCT_OK;
}

/* Whether a step of an aliasing operator has nothing to compute: no second output (Dropout's mask), and no switch that
 * is only known when it runs (Dropout's training mode). */
static bool renames(const oct_step *x)
{
    if (!x->op->alias || !x->out[0] || !x->out[0]->q != !x->in[0]->q || (x->n_out > 1 && x->out[1]))
        return false;
    return x->n_in < 3 || !x->in[2] || x->in[2]->constant;
}

oct_status rt_layout(oct_plan *p, oct_err *err)
{
    rt_step **step = p->step;
    const size_t n_step = p->n_step;
    p->step = NULL;
    p->n_step = p->cap_step = 0;
    for (size_t i = 0; i < n_step; i++) {
        rt_step *st = step[i];
        st->alias = renames(&st->s);
        OCT_TRY(lay_out(p, st, err));
        if (st->alias || (st->s.op->permutes && keeps_order(&st->s, st->s.out[0]->layout)))
            alias_output(p, st);
        OCT_TRY(rt_add_step(p, st, err));
    }
    for (size_t i = 0; i < p->g->n_output; i++) {
        oct_operand *t = &p->output[i]->t;
        t->layout = p->buffer[p->output[i]->buffer].layout;
        OCT_TRY(want(p, &t, OCT_LAYOUT_PLAIN, err));
        p->output[i] = (rt_operand *)t;
    }
    OCT_TRY(rt_join_parts(p, err));
    for (size_t i = 0; i < p->n_step; i++)
        OCT_TRY(prepare(p, p->step[i], err));
    return OCT_OK;
}
