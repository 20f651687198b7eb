/* Products whose input is quantized when run, or whose weights lie in blocks: steps of DynamicQuantizeMatMul (or MatMulIntegerToFloat, where
 * several products read the same codes), of DynamicQuantizeLSTM, and of MatMulNBits. */
#include "runtime/lower_int.h"

#include "passes/match.h"
#include "ops/core/small.h"

#include <string.h>

static const oct_value *input_of(const rt_lowering *l, int id, int slot)
{
    return &l->g->value[l->g->node[id].in[slot]];
}

/* ---- weights of 8 bits ---- */

/* Codes of the weights with columns last, as the step takes them. */
static oct_status weight_codes(rt_lowering *l, int id, rt_operand **w, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    OCT_TRY(rt_codes(l, n->in[1], w, err));
    if (!oct_is_op(n, "Gemm") || !oct_node_int(n, "transB", 0))
        return OCT_OK;
    const int64_t columns = (*w)->t.dims[0], k = (*w)->t.dims[1];
    const uint8_t *from = (*w)->t.data;
    uint8_t *to = oct_arena_alloc(l->p->arena, (size_t)(*w)->t.count + 1);
    if (!to)
        return oct_nomem(err);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < k; i++)
            to[i * columns + j] = from[j * k + i];
    return rt_operand_on(l, (*w)->t.dtype, 2, (const int64_t[]){ k, columns }, to, w, err);
}

static oct_status weight_grid(rt_lowering *l, const oct_quant *q, rt_operand **scale, rt_operand **zero, oct_err *err)
{
    const int64_t n = q->n;
    uint8_t *zeros = oct_arena_alloc(l->p->arena, (size_t)n);
    if (!zeros)
        return oct_nomem(err);
    for (int64_t i = 0; i < n; i++)
        zeros[i] = (uint8_t)q->zp[i];
    OCT_TRY(rt_operand_on(l, OCT_F32, 1, &n, q->scale, scale, err));
    return rt_operand_on(l, q->dtype, 1, &n, zeros, zero, err);
}

/* ---- LSTM ---- */

/* Codes [dirs][rows][k] as [dirs][k][rows], at slot; scales and zero points at slot `grid`. */
static oct_status recurrent_operands(rt_lowering *l, int value, oct_operand **in, int slot, int grid, oct_err *err)
{
    const oct_quant *q = l->g->value[value].quant;
    const int64_t dirs = q->codes->dims[0], rows = q->codes->dims[1], k = q->codes->dims[2];
    const uint8_t *from = q->codes->data;
    uint8_t *to = oct_arena_alloc(l->p->arena, (size_t)q->codes->count + 1);
    rt_operand *codes, *scale, *zero;
    if (!to)
        return oct_nomem(err);
    for (int64_t d = 0; d < dirs; d++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < k; i++)
                to[(d * k + i) * rows + r] = *from++;
    OCT_TRY(rt_operand_on(l, q->dtype, 3, (const int64_t[]){ dirs, k, rows }, to, &codes, err));
    OCT_TRY(weight_grid(l, q, &scale, &zero, err));
    in[slot] = &codes->t;
    in[grid] = &scale->t;
    in[grid + 1] = &zero->t;
    return OCT_OK;
}

static oct_status lower_lstm(rt_lowering *l, int id, oct_err *err)
{
    enum { FIRST_GRID = 8, INPUTS = 12 };
    const oct_node *n = &l->g->node[id];
    oct_node *as = oct_arena_memdup(l->p->arena, n, sizeof *n);
    rt_operand *o;
    rt_step *st;
    if (!as)
        return oct_nomem(err);
    as->op = "DynamicQuantizeLSTM";
    as->domain = "com.microsoft";
    as->opset = 1;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && i != 1 && i != 2)
            OCT_TRY(rt_reals(l, n->in[i], &o, err));
    if (!(st = rt_add_step(l->p, oct_op_find("com.microsoft", "DynamicQuantizeLSTM", 1), as, INPUTS, n->n_out)))
        return oct_nomem(err);
    const size_t at = l->p->n_step - 1;
    for (int i = 0; i < n->n_in && i < FIRST_GRID; i++)
        if (n->in[i] >= 0 && i != 1 && i != 2) {
            OCT_TRY(rt_reals(l, n->in[i], &o, err));
            st->s.in[i] = &o->t;
        }
    OCT_TRY(recurrent_operands(l, n->in[1], st->s.in, 1, FIRST_GRID, err));
    OCT_TRY(recurrent_operands(l, n->in[2], st->s.in, 2, FIRST_GRID + 2, err));
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k] < 0)
            continue;
        OCT_TRY(rt_result(l, n->out[k], &o, err));
        l->p->step[at].s.out[k] = &o->t;
        if (!l->g->value[n->out[k]].quant)
            rt_set_tap(l, &l->p->step[at], k, n->out[k]);
        OCT_TRY(rt_rounded(l, n->out[k], o, err));
    }
    return OCT_OK;
}

/* ---- dynamic products ---- */

/* A constant row for each of the rows of a tensor of `rank` dimensions. */
static bool is_row(const oct_graph *g, int value, int64_t columns, int rank)
{
    const oct_tensor *t = value >= 0 && !g->value[value].quant ? g->value[value].konst : NULL;
    return t && t->dtype == OCT_F32 && t->rank >= 1 && t->rank <= rank && t->count == columns && t->dims[t->rank - 1] == columns;
}

/* The row that alone is added to a product; -1: none. It is taken in: *value moves behind it. */
static int join_row(rt_lowering *l, int *value)
{
    const oct_graph *g = l->g;
    const oct_shape *s = &g->value[*value].shape;
    const int id = rt_is_shown(l, *value) ? -1 : oct_only_reader(g, *value);
    const oct_node *n = id >= 0 ? &g->node[id] : NULL;
    const int row = n && oct_is_op(n, "Add") && n->n_out == 1 ? oct_other_input(n, *value) : -1;
    if (!is_row(g, row, s->d[s->rank - 1].n, s->rank) || g->value[n->out[0]].shape.rank != s->rank)
        return -1;
    *value = n->out[0];
    l->done[id] = true;
    return row;
}

/* What Gemm adds and the product cannot: a step behind it. */
static oct_status add_behind(rt_lowering *l, int id, int bias, rt_step **st, oct_err *err)
{
    const oct_shape *s = &l->g->value[l->g->node[id].out[0]].shape;
    const size_t at = l->p->n_step - 1;
    int64_t dims[OCT_MAX_RANK];
    rt_operand *product, *other;
    oct_shape_known(s, dims);
    OCT_TRY(rt_operand_on(l, OCT_F32, s->rank, dims, NULL, &product, err));
    OCT_TRY(rt_reals(l, bias, &other, err));
    if (!(*st = rt_add_step(l->p, oct_op_find("", "Add", 14), &l->g->node[id], 2, 1)))
        return oct_nomem(err);
    l->p->step[at].s.out[0] = (*st)->s.in[0] = &product->t;
    (*st)->s.in[1] = &other->t;
    (*st)->s.opset = 14;
    return OCT_OK;
}

static oct_status dynamic_inputs(rt_lowering *l, int id, int row, rt_operand *in[7], oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const rt_dynamic *d = l->value[n->in[0]].dynamic; /* NULL: the step quantizes */
    rt_operand *w, *scale, *zero;
    OCT_TRY(weight_codes(l, id, &w, err));
    OCT_TRY(weight_grid(l, input_of(l, id, 1)->quant, &scale, &zero, err));
    if (d)
        memcpy(in, (rt_operand *[]){ d->codes, w, d->scale, scale, d->zero, zero }, 6 * sizeof *in);
    else
        memcpy(in, (rt_operand *[]){ NULL, w, scale, zero }, 4 * sizeof *in);
    if (!d)
        OCT_TRY(rt_reals(l, l->g->node[l->g->value[n->in[0]].producer].in[0], &in[0], err));
    return row >= 0 ? rt_reals(l, row, &in[d ? 6 : 4], err) : OCT_OK;
}

oct_status rt_lower_dynamic(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    if (oct_is_op(n, "LSTM"))
        return lower_lstm(l, id, err);
    const bool quantizes = !l->value[n->in[0]].dynamic;
    const int bias = oct_input_at(n, 2);
    const oct_shape *y = &l->g->value[n->out[0]].shape;
    int end = n->out[0], row = bias < 0 ? join_row(l, &end) : is_row(l->g, bias, y->d[y->rank - 1].n, y->rank) ? bias : -1;
    rt_operand *in[7] = { NULL };
    OCT_TRY(dynamic_inputs(l, id, row, in, err));
    const oct_op *op = oct_op_find("com.microsoft", quantizes ? "DynamicQuantizeMatMul" : "MatMulIntegerToFloat", 1);
    rt_step *st = rt_add_step(l->p, op, n, quantizes ? 5 : 7, 1);
    if (!st)
        return oct_nomem(err);
    st->s.opset = 1;
    for (int i = 0; i < st->s.n_in; i++)
        st->s.in[i] = in[i] ? &in[i]->t : NULL;
    if (bias >= 0 && row < 0)
        OCT_TRY(add_behind(l, id, bias, &st, err));
    return rt_finish(l, st, end, err);
}

/* ---- blocks ---- */

/* A code from 0 up. */
static unsigned code_at(const oct_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case OCT_U8: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return (unsigned)(((const int8_t *)t->data)[i] + 128);
    case OCT_S4: return (unsigned)((int)oct_small_get(t->dtype, t->data, i) + 8);
    case OCT_S2: return (unsigned)((int)oct_small_get(t->dtype, t->data, i) + 2);
    default: return (unsigned)oct_small_get(t->dtype, t->data, i);
    }
}

static void put_code(uint8_t *codes, int bits, size_t i, unsigned code)
{
    const size_t per = 8 / (size_t)bits;
    codes[i / per] |= (uint8_t)(code << i % per * (size_t)bits);
}

/* A matrix in blocks, and what is told of it by columns. */
typedef struct by_columns {
    const oct_quant *q;
    oct_nbits_form f;
    bool transposed, given; /* given: the codes and the grid are by columns already */
    const uint8_t *codes;
    const float *scale;
    uint8_t *zero;
} by_columns;

static oct_status turn_codes(rt_lowering *l, by_columns *m, oct_err *err)
{
    const oct_nbits_form *f = &m->f;
    const size_t blocks = oct_nbits_blocks(f);
    uint8_t *codes = oct_arena_calloc(l->p->arena, f->n, oct_nbits_column_bytes(f));
    float *scale = oct_arena_calloc(l->p->arena, f->n * blocks, sizeof *scale);
    if (!codes || !scale)
        return oct_nomem(err);
    for (size_t j = 0; j < f->n; j++) {
        for (size_t i = 0; i < f->k; i++)
            put_code(codes + j * oct_nbits_column_bytes(f), f->bits, i, code_at(m->q->codes, (int64_t)(m->transposed ? j * f->k + i : i * f->n + j)));
        for (size_t i = 0; i < blocks; i++)
            scale[j * blocks + i] = m->q->scale[m->transposed ? j * blocks + i : i * f->n + j];
    }
    m->codes = codes;
    m->scale = scale;
    return OCT_OK;
}

static oct_status turn_zeros(rt_lowering *l, by_columns *m, oct_err *err)
{
    const oct_nbits_form *f = &m->f;
    const size_t blocks = oct_nbits_blocks(f), bytes = oct_nbits_zero_bytes(f);
    const int middle = m->q->dtype == OCT_S8 || m->q->dtype == OCT_S4 || m->q->dtype == OCT_S2 ? 1 << (f->bits - 1) : 0;
    if (!(m->zero = oct_arena_calloc(l->p->arena, f->n, bytes)))
        return oct_nomem(err);
    for (size_t j = 0; j < f->n; j++)
        for (size_t i = 0; i < blocks; i++)
            put_code(m->zero + j * bytes, f->bits, i, (unsigned)(m->q->zp[m->given || m->transposed ? j * blocks + i : i * f->n + j] + middle));
    return OCT_OK;
}

static oct_status block_operands(rt_lowering *l, by_columns *m, oct_operand **in, oct_err *err)
{
    const oct_nbits_form *f = &m->f;
    const int64_t n = (int64_t)f->n, blocks = (int64_t)oct_nbits_blocks(f), zero_bytes = (int64_t)oct_nbits_zero_bytes(f);
    rt_operand *o;
    m->codes = m->given ? m->q->codes->data : NULL;
    m->scale = m->q->scale;
    if (!m->given)
        OCT_TRY(turn_codes(l, m, err));
    OCT_TRY(rt_operand_on(l, OCT_U8, 3, (const int64_t[]){ n, blocks, (int64_t)oct_nbits_column_bytes(f) / blocks }, m->codes, &o, err));
    in[1] = &o->t;
    OCT_TRY(rt_operand_on(l, OCT_F32, 2, (const int64_t[]){ n, blocks }, m->scale, &o, err));
    in[2] = &o->t;
    if (f->zero != OCT_NBITS_WHOLE)
        return OCT_OK;
    OCT_TRY(turn_zeros(l, m, err));
    OCT_TRY(rt_operand_on(l, OCT_U8, 2, (const int64_t[]){ n, zero_bytes }, m->zero, &o, err));
    in[3] = &o->t;
    return OCT_OK;
}

/* MatMulNBits under the node's name. */
static const oct_node *block_node(rt_lowering *l, int id, const oct_nbits_form *f)
{
    const oct_attr attr[] = { { .name = "K", .type = OCT_ATTR_INT, .i = (int64_t)f->k },
                              { .name = "N", .type = OCT_ATTR_INT, .i = (int64_t)f->n },
                              { .name = "bits", .type = OCT_ATTR_INT, .i = f->bits },
                              { .name = "block_size", .type = OCT_ATTR_INT, .i = (int64_t)f->block } };
    oct_node *n = oct_arena_calloc(l->p->arena, 1, sizeof *n);
    if (!n)
        return NULL;
    *n = (oct_node){ .name = l->g->node[id].name, .op = "MatMulNBits", .domain = "com.microsoft", .overload = "", .opset = 1,
                     .attr = oct_arena_memdup(l->p->arena, attr, sizeof attr), .n_attr = OCT_COUNT(attr) };
    return n->attr ? n : NULL;
}

oct_status rt_lower_blocks(rt_lowering *l, int id, oct_err *err)
{
    const oct_node *n = &l->g->node[id];
    const oct_value *w = input_of(l, id, 1);
    by_columns m = { .q = w->quant, .given = oct_value_by_columns(w) };
    rt_operand *a, *bias = NULL;
    oct_in_blocks(l->g, id, &m.f, &m.transposed);
    const oct_node *as = block_node(l, id, &m.f);
    OCT_TRY(rt_reals(l, n->in[0], &a, err));
    if (n->n_in > 2 && n->in[2] >= 0)
        OCT_TRY(rt_reals(l, n->in[2], &bias, err));
    rt_step *st = as ? rt_add_step(l->p, oct_op_find("com.microsoft", "MatMulNBits", 1), as, 6, 1) : NULL;
    if (!st)
        return oct_nomem(err);
    st->s.in[0] = &a->t;
    st->s.in[5] = bias ? &bias->t : NULL;
    st->s.n_in = bias ? 6 : 4;
    OCT_TRY(block_operands(l, &m, st->s.in, err));
    OCT_TRY(rt_finish(l, st, n->out[0], err));
    return OCT_OK;
}
