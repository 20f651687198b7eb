/* Operands of values, and the steps between quantized values and reals. */
#include "runtime/lower_int.h"

#include "ops/core/block_matrix.h"

/* ---- operands ---- */

oct_status rt_operand_on(rt_lowering *l, oct_dtype t, int rank, const int64_t *dims, const void *data, rt_operand **out,
                         oct_err *err)
{
    oct_operand o = {
        .dtype = t, .rank = rank, .constant = data != NULL, .data = (void *)(uintptr_t)data, .value = -1
    };
    size_t bytes;
    int buffer;
    for (int i = 0; i < rank; i++)
        o.dims[i] = dims[i];
    if (!oct_count(dims, rank, &o.count) || !oct_dtype_bytes(t, o.count, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "a tensor is larger than memory can be");
    OCT_TRY(rt_new_buffer(l->p, bytes, &buffer, err));
    l->p->buffer[buffer].constant = data != NULL;
    *out = rt_new_operand(l->p, &o, buffer);
    return *out ? OCT_OK : oct_nomem(err);
}

/* A new operand for a value, of this type; q: what its quantized values stand for. constant: its data, where they are
 * there. */
static oct_status new_operand(rt_lowering *l, int value, oct_dtype dtype, const oct_quant *q, const void *constant,
                              rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    int64_t dims[OCT_MAX_RANK];
    char text[128];
    if (!oct_shape_known(&v->shape, dims))
        return oct_fail(err, OCT_EUNSUPPORTED, "the shape %s of value '%s' is not known before running",
                        oct_shape_text(&v->shape, text, sizeof text), v->name);
    OCT_TRY(rt_operand_on(l, dtype, v->shape.rank, dims, constant, out, err));
    (*out)->t.q = q;
    (*out)->t.value = value;
    return OCT_OK;
}

/* Another operand for the same bytes. */
static oct_status taken_as(rt_lowering *l, const rt_operand *from, int value, const oct_quant *q, rt_operand **out,
                           oct_err *err)
{
    oct_operand t = from->t;
    t.q = q;
    t.value = value;
    *out = rt_new_operand(l->p, &t, from->buffer);
    return *out ? OCT_OK : oct_nomem(err);
}

/* ---- steps between quantized values and reals ---- */

/* Scales and zero points as inputs of QuantizeLinear and DequantizeLinear. */
static oct_status qparams_operands(rt_lowering *l, const oct_operand *x, const oct_quant *q, oct_operand **in,
                                   oct_err *err)
{
    int64_t dims[OCT_MAX_RANK] = { q->n };
    const int rank = q->block ? x->rank : q->n > 1;
    rt_operand *scale, *zero;
    for (int i = 0; q->block && i < rank; i++)
        dims[i] = i == q->axis ? (x->dims[i] + q->block - 1) / q->block : x->dims[i];
    OCT_TRY(rt_operand_on(l, OCT_F32, rank, dims, q->scale, &scale, err));
    OCT_TRY(rt_operand_on(l, OCT_S32, rank, dims, q->zp, &zero, err));
    in[1] = &scale->t;
    in[2] = &zero->t;
    return OCT_OK;
}

/* The node of a step that no node of the graph asks for as such. */
static oct_node *node_of(rt_lowering *l, const oct_op *op, int value, const oct_quant *q)
{
    oct_node *n = oct_arena_calloc(l->p->arena, 1, sizeof *n);
    oct_attr *attr = oct_arena_calloc(l->p->arena, 2, sizeof *attr);
    if (!n || !attr)
        return NULL;
    attr[0] = (oct_attr){ .name = "axis", .type = OCT_ATTR_INT, .i = q->axis };
    attr[1] = (oct_attr){ .name = "block_size", .type = OCT_ATTR_INT, .i = q->block };
    *n = (oct_node){ .name = l->g->value[value].name,
                     .op = op->type,
                     .domain = "",
                     .overload = "",
                     .opset = 21,
                     .attr = attr,
                     .n_attr = 2 };
    return n;
}

/* A step that makes quantized values of reals or reals of quantized values; it is not among the plan's yet. */
static oct_status new_change(rt_lowering *l, bool to_qvals, int value, rt_operand *from, rt_operand *to, rt_step **st,
                             oct_err *err)
{
    const oct_quant *q = l->g->value[value].quant;
    const rt_lowered *v = &l->value[value];
    const oct_op *op = oct_op_between(to_qvals);
    const oct_node *n = node_of(l, op, value, q);
    if (!n || !(*st = rt_new_step(l->p, op, n, 3, 1)))
        return oct_nomem(err);
    (*st)->s.in[0] = &from->t;
    (*st)->s.out[0] = &to->t;
    (*st)->scheme = oct_operand_scheme(from->t.q ? &to->t : &from->t);
    if (!v->scale)
        return qparams_operands(l, &from->t, q, (*st)->s.in, err);
    (*st)->s.in[1] = &v->scale->t;
    (*st)->s.in[2] = &v->zero->t;
    return OCT_OK;
}

oct_status rt_run_now(rt_lowering *l, rt_step *st, rt_operand *out, oct_err *err)
{
    oct_plan *p = l->p;
    const oct_prep prep = { .arena = p->arena, .threads = 1 };
    void *data = oct_arena_aligned(p->arena, p->buffer[out->buffer].bytes + 1, 64);
    if (!data)
        return oct_nomem(err);
    out->t.data = data;
    OCT_TRY(oct_step_prepare(&st->s, &prep, err));
    void *scratch = oct_arena_aligned(p->arena, st->s.scratch + 1, 64);
    if (!scratch)
        return oct_nomem(err);
    OCT_TRY(oct_step_run(&st->s, &(oct_run){ .scratch = scratch }, err));
    out->t.constant = true;
    p->buffer[out->buffer].constant = true;
    return OCT_OK;
}

/* The step is run now if its input is constant, otherwise with the plan. */
static oct_status change(rt_lowering *l, bool to_qvals, int value, rt_operand *from, rt_operand *to, oct_err *err)
{
    rt_step *st;
    OCT_TRY(new_change(l, to_qvals, value, from, to, &st, err));
    return from->t.constant ? rt_run_now(l, st, to, err) : rt_add_step(l->p, st, err);
}

/* ---- values ---- */

static oct_status check_type(const oct_value *v, oct_err *err)
{
    if (v->dtype == OCT_STRING || v->dtype == OCT_UNDEFINED)
        return oct_fail(err, OCT_EUNSUPPORTED, "value '%s' has type %s, which cannot be run", v->name,
                        oct_dtype_name(v->dtype));
    return rt_check_value(v, err);
}

static const void *data_of(const oct_tensor *t)
{
    return t ? t->data : NULL;
}

oct_status rt_qvals(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    rt_operand **qvals = &l->value[value].qvals, *reals;
    if (!*qvals) {
        OCT_TRY(check_type(v, err));
        OCT_TRY(new_operand(l, value, v->quant->dtype, v->quant, data_of(v->quant->qvals), qvals, err));
        if (v->is_input || (v->constant && !v->quant->qvals)) {
            OCT_TRY(v->is_input ? rt_reals(l, value, &reals, err)
                                : new_operand(l, value, v->dtype, NULL, data_of(v->constant), &reals, err));
            OCT_TRY(change(l, true, value, reals, *qvals, err));
        }
    }
    *out = *qvals;
    return OCT_OK;
}

/* The real numbers of a constant matrix that is stored by columns, as DequantizeLinear computes them. */
static oct_status columns_as_reals(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_quant *q = l->g->value[value].quant;
    int64_t dims[OCT_MAX_RANK];
    oct_nbits_weights w;
    oct_shape_known(&l->g->value[value].shape, dims);
    const oct_nbits_form f = oct_blocks_form(q, dims);
    OCT_TRY(oct_blocks_weights(q, &f, l->p->arena, &w, err));
    float *to = oct_arena_aligned(l->p->arena, f.n * f.k * sizeof *to + 1, 64);
    float *column = oct_arena_alloc(l->p->arena, f.k * sizeof *column + 1);
    if (!to || !column)
        return oct_nomem(err);
    for (size_t j = 0; j < f.n; j++) {
        oct_nbits_dequantize(&f, &w, j, column);
        for (size_t i = 0; i < f.k; i++)
            to[q->axis ? j * f.k + i : i * f.n + j] = column[i];
    }
    return new_operand(l, value, OCT_F32, NULL, to, out, err);
}

oct_status rt_reals(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    const bool quantized = v->quant && !v->is_input;
    rt_operand **reals = &l->value[value].reals, *qvals;
    if (!*reals) {
        OCT_TRY(check_type(v, err));
        if (oct_value_by_columns(v)) {
            OCT_TRY(columns_as_reals(l, value, reals, err));
        } else if (quantized) {
            OCT_TRY(rt_qvals(l, value, &qvals, err));
            OCT_TRY(new_operand(l, value, v->dtype, NULL, NULL, reals, err));
            OCT_TRY(change(l, false, value, qvals, *reals, err));
        } else {
            OCT_TRY(new_operand(l, value, v->dtype, NULL, data_of(v->constant), reals, err));
        }
    }
    *out = *reals;
    return OCT_OK;
}

oct_status rt_result(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    return v->quant ? new_operand(l, value, v->dtype, NULL, NULL, out, err) : rt_reals(l, value, out, err);
}

oct_status rt_rounded(rt_lowering *l, int value, rt_operand *result, oct_err *err)
{
    rt_operand *qvals;
    rt_step *st;
    OCT_TRY(rt_qvals(l, value, &qvals, err));
    OCT_TRY(new_change(l, true, value, result, qvals, &st, err));
    OCT_TRY(rt_add_step(l->p, st, err));
    rt_set_tap(l, st, 0, value);
    return rt_show_reals(l, value, err);
}

oct_status rt_show_reals(rt_lowering *l, int value, oct_err *err)
{
    rt_operand *reals;
    if (l->value[value].shown_reals == OCT_NO_TAP)
        return OCT_OK;
    OCT_TRY(rt_reals(l, value, &reals, err));
    l->p->step[l->p->n_step - 1]->tap[0] = l->value[value].shown_reals;
    return OCT_OK;
}

/* ---- borders ---- */

/* Quantized values, scale and zero point of a value with dynamic quantization. */
static oct_status quantized_when_run(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    rt_lowered *y = &l->value[n->out[0]];
    rt_operand *x;
    rt_step *st = rt_new_step(l->p, oct_op_find("", n->op, 11), n, 1, 3);
    if (!st)
        return oct_nomem(err);
    OCT_TRY(rt_reals(l, n->in[0], &x, err));
    OCT_TRY(new_operand(l, n->out[0], OCT_U8, NULL, NULL, &y->qvals, err));
    OCT_TRY(rt_operand_on(l, OCT_F32, 0, NULL, NULL, &y->scale, err));
    OCT_TRY(rt_operand_on(l, OCT_U8, 0, NULL, NULL, &y->zero, err));
    st->s.in[0] = &x->t;
    st->s.out[0] = &y->qvals->t;
    st->s.out[1] = &y->scale->t;
    st->s.out[2] = &y->zero->t;
    return rt_add_step(l->p, st, err);
}

/* A product that alone reads what is quantized does it itself. */
static oct_status is_left_to_product(const rt_lowering *l, int value, bool *yes, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    oct_compute how = OCT_ON_REALS;
    if (oct_value_used_once(v) && v->uses[0].slot == 0 && !rt_is_shown(l, value))
        OCT_TRY(oct_compute_of(l->g, v->uses[0].node, &how, err));
    *yes = how == OCT_ON_DYNAMIC;
    return OCT_OK;
}

oct_status rt_lower_border(rt_lowering *l, int id, oct_border border, oct_err *err)
{
    const int x = l->g->node[id].in[0], y = l->g->node[id].out[0];
    rt_lowered *to = &l->value[y];
    rt_operand *from;
    bool left;
    switch (border) {
    case OCT_NO_BORDER: break;
    case OCT_BORDER_ROUNDS: OCT_TRY(rt_reals(l, x, &from, err)); return rt_rounded(l, y, from, err);
    case OCT_BORDER_NUMBERS: OCT_TRY(rt_qvals(l, x, &from, err)); return taken_as(l, from, y, NULL, &to->reals, err);
    case OCT_BORDER_QVALS:
        OCT_TRY(rt_reals(l, x, &from, err));
        OCT_TRY(taken_as(l, from, y, l->g->value[y].quant, &to->qvals, err));
        if (to->shown_reals == OCT_NO_TAP)
            to->shown_reals = to->shown; /* no step makes the quantized values */
        return rt_show_reals(l, y, err);
    case OCT_BORDER_DYNAMIC:
        OCT_TRY(is_left_to_product(l, y, &left, err));
        return left ? OCT_OK : quantized_when_run(l, id, err);
    }
    return OCT_OK;
}
