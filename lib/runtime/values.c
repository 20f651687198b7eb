/* Operands of values, and the steps between codes and reals. */
#include "runtime/lower_int.h"

#include "ops/core/small.h"

#include <string.h>

/* ---- operands ---- */

static bool describe(const rt_lowering *l, int value, oct_operand *t)
{
    const oct_value *v = &l->g->value[value];
    *t = (oct_operand){ .dtype = v->dtype, .rank = v->shape.rank, .value = value };
    return oct_shape_known(&v->shape, t->dims) && oct_count(t->dims, t->rank, &t->count);
}

/* A new operand for a value, of this type; q: what its codes stand for. konst: its data, where they are there. */
static oct_status new_operand(rt_lowering *l, int value, oct_dtype dtype, const oct_quant *q, const void *konst, rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    oct_operand t;
    size_t bytes;
    int buffer;
    char text[128];
    if (!describe(l, value, &t) || !oct_dtype_bytes(dtype, t.count, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "the shape %s of value '%s' is not known before running",
                        oct_shape_text(&v->shape, text, sizeof text), v->name);
    t.dtype = dtype;
    t.q = q;
    t.constant = konst != NULL;
    t.data = (void *)(uintptr_t)konst;
    OCT_TRY(rt_new_buffer(l->p, bytes, &buffer, err));
    l->p->buffer[buffer].konst = konst;
    *out = rt_new_operand(l->p, &t, buffer);
    return *out ? OCT_OK : oct_nomem(err);
}

/* Another operand for the same bytes. */
static oct_status taken_as(rt_lowering *l, const rt_operand *from, int value, oct_dtype dtype, const oct_quant *q, rt_operand **out, oct_err *err)
{
    oct_operand t = from->t;
    t.dtype = dtype;
    t.q = q;
    t.value = value;
    *out = rt_new_operand(l->p, &t, from->buffer);
    return *out ? OCT_OK : oct_nomem(err);
}

oct_status rt_operand_on(rt_lowering *l, oct_dtype t, int rank, const int64_t *dims, const void *data, rt_operand **out, oct_err *err)
{
    oct_operand o = { .dtype = t, .rank = rank, .constant = data != NULL, .data = (void *)(uintptr_t)data, .value = -1 };
    size_t bytes;
    int buffer;
    for (int i = 0; i < rank; i++)
        o.dims[i] = dims[i];
    if (!oct_count(dims, rank, &o.count) || !oct_dtype_bytes(t, o.count, &bytes))
        return oct_fail(err, OCT_EINTERNAL, "an operand without a size");
    OCT_TRY(rt_new_buffer(l->p, bytes, &buffer, err));
    l->p->buffer[buffer].konst = data;
    *out = rt_new_operand(l->p, &o, buffer);
    return *out ? OCT_OK : oct_nomem(err);
}

/* ---- steps between codes and reals ---- */

/* Zero points in the type of the codes. */
static void *zero_bytes(rt_lowering *l, const oct_quant *q)
{
    size_t bytes;
    void *z = oct_dtype_bytes(q->dtype, q->n, &bytes) ? oct_arena_calloc(l->p->arena, bytes + 1, 1) : NULL;
    for (int i = 0; z && i < q->n; i++)
        switch (oct_is_small_int(q->dtype) ? 0 : oct_dtype_bits(q->dtype)) {
        case 8: ((uint8_t *)z)[i] = (uint8_t)q->zp[i]; break;
        case 16: ((uint16_t *)z)[i] = (uint16_t)q->zp[i]; break;
        case 32: ((int32_t *)z)[i] = q->zp[i]; break;
        default: oct_small_set_int(q->dtype, z, i, q->zp[i]);
        }
    return z;
}

/* Scales and zero points as inputs of QuantizeLinear and DequantizeLinear. */
static oct_status grid_operands(rt_lowering *l, const oct_operand *x, const oct_quant *q, oct_operand **in, oct_err *err)
{
    int64_t dims[OCT_MAX_RANK] = { q->n };
    const int rank = q->block ? x->rank : q->n > 1;
    rt_operand *scale, *zero;
    const void *zeros = zero_bytes(l, q);
    if (!zeros)
        return oct_nomem(err);
    for (int i = 0; q->block && i < rank; i++)
        dims[i] = i == q->axis ? (x->dims[i] + q->block - 1) / q->block : x->dims[i];
    OCT_TRY(rt_operand_on(l, OCT_F32, rank, dims, q->scale, &scale, err));
    OCT_TRY(rt_operand_on(l, q->dtype, rank, dims, zeros, &zero, err));
    in[1] = &scale->t;
    in[2] = &zero->t;
    return OCT_OK;
}

/* The node of a step that no node of the graph asks for as such. */
static oct_node *node_of(rt_lowering *l, const char *op, int value, const oct_quant *q)
{
    oct_node *n = oct_arena_calloc(l->p->arena, 1, sizeof *n);
    oct_attr *attr = oct_arena_calloc(l->p->arena, 2, sizeof *attr);
    if (!n || !attr)
        return NULL;
    attr[0] = (oct_attr){ .name = "axis", .type = OCT_ATTR_INT, .i = q->axis };
    attr[1] = (oct_attr){ .name = "block_size", .type = OCT_ATTR_INT, .i = q->block };
    *n = (oct_node){ .name = l->g->value[value].name, .op = op, .domain = "", .overload = "", .opset = 21, .attr = attr, .n_attr = 2 };
    return n;
}

/* A step that makes codes of reals or reals of codes, at the end of the steps. dynamic: where the grid is, or NULL. */
static oct_status add_change(rt_lowering *l, const char *op, int value, rt_operand *from, rt_operand *to, rt_step **st, oct_err *err)
{
    const oct_quant *q = l->g->value[value].quant;
    const rt_dynamic *d = l->value[value].dynamic;
    const oct_node *n = node_of(l, op, value, q);
    if (!n || !(*st = rt_add_step(l->p, oct_op_find("", op, 21), n, 3, 1)))
        return oct_nomem(err);
    (*st)->s.in[0] = &from->t;
    (*st)->s.out[0] = &to->t;
    (*st)->scheme = oct_operand_scheme(from->t.q ? &to->t : &from->t);
    if (!d)
        return grid_operands(l, &from->t, q, (*st)->s.in, err);
    (*st)->s.in[1] = &d->scale->t;
    (*st)->s.in[2] = &d->zero->t;
    return OCT_OK;
}

/* Runs the last step now, and forgets it: its output is a constant. */
static oct_status run_now(rt_lowering *l, rt_operand *out, oct_err *err)
{
    oct_plan *p = l->p;
    oct_step *s = &p->step[--p->n_step].s;
    const oct_prep prep = { .arena = p->arena, .threads = 1 };
    void *data = oct_arena_aligned(p->arena, p->buffer[out->buffer].bytes + 1, 64);
    if (!data)
        return oct_nomem(err);
    out->t.data = data;
    OCT_TRY(oct_step_prepare(s, &prep, err));
    void *scratch = oct_arena_aligned(p->arena, s->scratch + 1, 64);
    if (!scratch)
        return oct_nomem(err);
    OCT_TRY(oct_step_run(s, &(oct_run){ .scratch = scratch }, err));
    out->t.constant = true;
    p->buffer[out->buffer].konst = data;
    return OCT_OK;
}

/* ---- values ---- */

static oct_status check_type(const oct_value *v, oct_err *err)
{
    if (v->dtype == OCT_STRING || v->dtype == OCT_UNDEFINED)
        return oct_fail(err, OCT_EUNSUPPORTED, "value '%s' has type %s, which cannot be run", v->name, oct_dtype_name(v->dtype));
    if (v->producer < 0 && !v->is_input && !oct_value_has_data(v))
        return oct_fail(err, OCT_EUNSUPPORTED, "value '%s' has no numbers here (a sparse or foreign constant)", v->name);
    return OCT_OK;
}

static const void *data_of(const oct_tensor *t)
{
    return t ? t->data : NULL;
}

oct_status rt_codes(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    rt_operand **place = v->is_input ? &l->value[value].other : &l->p->value[value], *reals;
    rt_step *st;
    if (!*place) {
        OCT_TRY(check_type(v, err));
        OCT_TRY(new_operand(l, value, v->quant->dtype, v->quant, data_of(v->quant->codes), place, err));
        if (v->is_input || (v->konst && !v->quant->codes)) {
            OCT_TRY(v->is_input ? rt_reals(l, value, &reals, err) : new_operand(l, value, v->dtype, NULL, data_of(v->konst), &reals, err));
            OCT_TRY(add_change(l, "QuantizeLinear", value, reals, *place, &st, err));
        }
        if (v->konst && !v->quant->codes)
            OCT_TRY(run_now(l, *place, err));
    }
    *out = *place;
    return OCT_OK;
}

/* Reals of a constant matrix whose codes stand by columns, as DequantizeLinear computes them. */
static oct_status columns_as_reals(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_quant *q = l->g->value[value].quant;
    const int64_t *d = q->codes->dims, bytes = d[1] * d[2], per = 8 / oct_dtype_bits(q->dtype);
    const int middle = q->dtype == OCT_S8 || q->dtype == OCT_S4 || q->dtype == OCT_S2 ? 1 << (oct_dtype_bits(q->dtype) - 1) : 0;
    const int mask = (1 << oct_dtype_bits(q->dtype)) - 1;
    const int64_t k = l->g->value[value].shape.d[q->axis].n;
    const uint8_t *codes = q->codes->data;
    float *to = oct_arena_aligned(l->p->arena, (size_t)(d[0] * k) * sizeof *to + 1, 64);
    if (!to)
        return oct_nomem(err);
    for (int64_t j = 0; j < d[0]; j++, codes += bytes)
        for (int64_t i = 0; i < k; i++) {
            const int code = codes[i / per] >> i % per * oct_dtype_bits(q->dtype) & mask;
            const int64_t b = j * d[1] + i / q->block;
            to[q->axis ? j * k + i : i * d[0] + j] = (float)(code - middle - q->zp[b]) * q->scale[b];
        }
    return new_operand(l, value, OCT_F32, NULL, to, out, err);
}

oct_status rt_reals(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    const bool coded = v->quant && !v->is_input;
    rt_operand **place = coded ? &l->value[value].other : &l->p->value[value], *codes;
    rt_step *st;
    if (!*place) {
        OCT_TRY(check_type(v, err));
        if (oct_value_by_columns(v)) {
            OCT_TRY(columns_as_reals(l, value, place, err));
            *out = *place;
            return OCT_OK;
        }
        if (coded)
            OCT_TRY(rt_codes(l, value, &codes, err));
        OCT_TRY(new_operand(l, value, v->dtype, NULL, coded ? NULL : data_of(v->konst), place, err));
        if (coded) {
            OCT_TRY(add_change(l, "DequantizeLinear", value, codes, *place, &st, err));
            if (codes->t.constant)
                OCT_TRY(run_now(l, *place, err));
        }
    }
    *out = *place;
    return OCT_OK;
}

oct_status rt_result(rt_lowering *l, int value, rt_operand **out, oct_err *err)
{
    const oct_value *v = &l->g->value[value];
    if (!v->quant)
        return rt_reals(l, value, out, err);
    return new_operand(l, value, v->dtype, NULL, NULL, out, err);
}

oct_status rt_rounded(rt_lowering *l, int value, rt_operand *result, oct_err *err)
{
    rt_operand *codes;
    rt_step *st;
    if (!l->g->value[value].quant)
        return OCT_OK;
    OCT_TRY(rt_codes(l, value, &codes, err));
    OCT_TRY(add_change(l, "QuantizeLinear", value, result, codes, &st, err));
    rt_set_tap(l, st, 0, value);
    return rt_show_reals(l, value, err);
}

oct_status rt_show_reals(rt_lowering *l, int value, oct_err *err)
{
    rt_operand *reals;
    if (!l->value[value].shown_reals)
        return OCT_OK;
    OCT_TRY(rt_reals(l, value, &reals, err));
    l->p->step[l->p->n_step - 1].tap[0] = l->value[value].shown_reals;
    return OCT_OK;
}

/* ---- borders ---- */

/* Numbers taken as codes: the same bytes. */
static oct_status dequantized(rt_lowering *l, int x, int y, oct_err *err)
{
    rt_operand *from;
    OCT_TRY(rt_reals(l, x, &from, err));
    OCT_TRY(taken_as(l, from, y, from->t.dtype, l->g->value[y].quant, &l->p->value[y], err));
    if (!l->value[y].shown_reals)
        l->value[y].shown_reals = l->value[y].shown; /* no step makes the codes */
    return rt_show_reals(l, y, err);
}

/* Codes, scale and zero point of what is quantized when run. */
static oct_status quantized_when_run(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const int y = n->out[0];
    rt_operand *x;
    rt_dynamic *d = oct_arena_calloc(l->p->arena, 1, sizeof *d);
    rt_step *st;
    if (!d)
        return oct_nomem(err);
    OCT_TRY(rt_reals(l, n->in[0], &x, err));
    OCT_TRY(new_operand(l, y, OCT_U8, NULL, NULL, &d->codes, err));
    OCT_TRY(rt_operand_on(l, OCT_F32, 0, NULL, NULL, &d->scale, err));
    OCT_TRY(rt_operand_on(l, OCT_U8, 0, NULL, NULL, &d->zero, err));
    if (!(st = rt_add_step(l->p, oct_op_find("", n->op, 11), n, 1, 3)))
        return oct_nomem(err);
    st->s.in[0] = &x->t;
    st->s.out[0] = &d->codes->t;
    st->s.out[1] = &d->scale->t;
    st->s.out[2] = &d->zero->t;
    l->value[y].dynamic = d;
    l->p->value[y] = d->codes;
    return OCT_OK;
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

oct_status rt_lower_border(rt_lowering *l, int id, bool *made, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    rt_operand *x;
    bool left;
    *made = n->n_in == 1 && n->n_out == 1 && n->in[0] >= 0 && n->out[0] >= 0;
    if (!*made)
        return OCT_OK;
    const oct_quant *from = l->g->value[n->in[0]].quant, *to = l->g->value[n->out[0]].quant;
    if (oct_is_op(n, "QuantizeLinear") && to) {
        OCT_TRY(rt_reals(l, n->in[0], &x, err));
        return rt_rounded(l, n->out[0], x, err);
    }
    if (oct_is_op(n, "QuantizeLinear") && from) {
        OCT_TRY(rt_codes(l, n->in[0], &x, err));
        return taken_as(l, x, n->out[0], x->t.dtype, NULL, &l->p->value[n->out[0]], err);
    }
    if (oct_is_op(n, "DequantizeLinear") && to)
        return dequantized(l, n->in[0], n->out[0], err);
    *made = oct_is_op(n, "DynamicQuantizeLinear") && to;
    if (!*made)
        return OCT_OK;
    OCT_TRY(is_left_to_product(l, n->out[0], &left, err));
    return left ? OCT_OK : quantized_when_run(l, id, err);
}
