/* Weights in blocks: com.microsoft.MatMulNBits in place of the product, or DequantizeLinear in front of it. */
#include "forms/write_int.h"

#include "kernels/nbits/nbits.h"
#include "passes/match.h"

#include <string.h>

/* An annotated matrix. */
typedef struct matrix {
    const oct_quant *q;
    oct_nbits_form f;
    bool transposed; /* [n][k] */
    bool columns;    /* codes and grids stand by columns, else as the elements do */
} matrix;

static matrix matrix_of(const oct_graph *g, int v)
{
    const oct_quant *q = g->value[v].quant;
    const oct_dim *d = g->value[v].shape.d;
    bool whole = q->dtype == OCT_U4 || q->dtype == OCT_U8;
    for (int i = 0; i < q->n && !whole; i++)
        whole = q->zp[i] != 0;
    return (matrix){ q, { .n = (size_t)d[1 - q->axis].n, .k = (size_t)d[q->axis].n, .bits = oct_dtype_bits(q->dtype), .block = (size_t)q->block,
                          .zero = whole ? OCT_NBITS_WHOLE : OCT_NBITS_MIDDLE }, q->axis == 1, q->codes->rank == 3 };
}

/* A float tensor of the scales as they are. */
static oct_status refer_scales(oct_graph *g, const matrix *m, const char *base, int *v, oct_err *err)
{
    const int64_t n = (int64_t)m->f.n, blocks = (int64_t)oct_nbits_blocks(&m->f);
    const bool turned = m->columns || m->transposed;
    const int64_t dims[2] = { turned ? n : blocks, turned ? blocks : n };
    oct_tensor t = { .dtype = OCT_F32, .rank = 2, .count = n * blocks, .bytes = (size_t)(n * blocks) * sizeof(float), .data = m->q->scale };
    if (!(t.dims = oct_arena_memdup(g->arena, dims, sizeof dims)))
        return oct_nomem(err);
    const oct_tensor *kept = oct_arena_memdup(g->arena, &t, sizeof t);
    return kept ? oct_edit_refer(g, base, "_scale", kept, v, err) : oct_nomem(err);
}

static void put_code(uint8_t *to, int bits, size_t i, unsigned code)
{
    const size_t per = 8 / (size_t)bits;
    to[i / per] |= (uint8_t)(code << i % per * (size_t)bits);
}

/* ---- MatMulNBits ---- */

/* Zero points by columns, each packed. */
static oct_status pack_zeros(oct_graph *g, const matrix *m, const char *base, int *v, oct_err *err)
{
    const size_t blocks = oct_nbits_blocks(&m->f), bytes = oct_nbits_zero_bytes(&m->f);
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, OCT_U8, 2, (int64_t[]){ (int64_t)m->f.n, (int64_t)bytes }, &t, err));
    uint8_t *to = memset((void *)(uintptr_t)t->data, 0, t->bytes);
    for (size_t j = 0; j < m->f.n; j++)
        for (size_t i = 0; i < blocks; i++)
            put_code(to + j * bytes, m->f.bits, i, (unsigned)m->q->zp[j * blocks + i]);
    return oct_edit_refer(g, base, "_zero_point", t, v, err);
}

/* Codes, scale and, unless they are in the middle, zero points: values that follow each other. */
static oct_status operator_constants(oct_writer *w, int b, const matrix *m, oct_err *err)
{
    const char *base = oct_write_base(w, b);
    int scale, zero;
    if (!base)
        return oct_nomem(err);
    if (w->value[b].blocks >= 0)
        return OCT_OK;
    OCT_TRY(oct_write_codes(w, b, m->q->codes, &w->value[b].blocks, err));
    OCT_TRY(refer_scales(w->g, m, base, &scale, err));
    return m->f.zero == OCT_NBITS_WHOLE ? pack_zeros(w->g, m, base, &zero, err) : OCT_OK;
}

/* The bias as a row of n values. */
static oct_status bias_row(oct_graph *g, int bias, int64_t n, int *row, oct_err *err)
{
    const oct_tensor *t = g->value[bias].konst;
    *row = bias;
    return t->rank == 1 ? OCT_OK : oct_edit_const(g, g->value[bias].name, "_row", OCT_F32, 1, &n, t->data, row, err);
}

static oct_status set_sizes(oct_graph *g, int node, const oct_nbits_form *f, oct_err *err)
{
    OCT_TRY(oct_node_set_int(g, node, "K", (int64_t)f->k, err));
    OCT_TRY(oct_node_set_int(g, node, "N", (int64_t)f->n, err));
    OCT_TRY(oct_node_set_int(g, node, "bits", f->bits, err));
    return oct_node_set_int(g, node, "block_size", (int64_t)f->block, err);
}

static oct_status write_operator(oct_writer *w, int id, const matrix *m, oct_err *err)
{
    oct_graph *g = w->g;
    const int b = g->node[id].in[1], bias = oct_input_at(&g->node[id], 2), n_const = m->f.zero == OCT_NBITS_WHOLE ? 3 : 2;
    int row;
    OCT_TRY(operator_constants(w, b, m, err));
    oct_graph_cut_inputs(g, id, 1);
    for (int i = 0; i < n_const; i++)
        OCT_TRY(oct_graph_set_input(g, id, 1 + i, w->value[b].blocks + i, err));
    if (bias >= 0) {
        OCT_TRY(bias_row(g, bias, (int64_t)m->f.n, &row, err));
        OCT_TRY(oct_graph_set_input(g, id, 5, row, err));
    }
    g->node[id].n_attr = 0; /* Gemm's */
    g->node[id].origin = NULL;
    OCT_TRY(set_sizes(g, id, &m->f, err));
    return oct_edit_become(g, id, "MatMulNBits", "com.microsoft", err);
}

/* ---- DequantizeLinear ---- */

/* Code i of a column, as the type has it. */
static unsigned code_at(const matrix *m, size_t column, size_t i)
{
    const size_t per = 8 / (size_t)m->f.bits;
    const bool is_signed = m->q->dtype == OCT_S4 || m->q->dtype == OCT_S8;
    const uint8_t *row = (const uint8_t *)m->q->codes->data + column * oct_nbits_column_bytes(&m->f);
    return (row[i / per] >> i % per * (size_t)m->f.bits & ((1u << m->f.bits) - 1)) ^ (is_signed ? 1u << (m->f.bits - 1) : 0);
}

/* Where the elements have what belongs to place i, of count, of a column. */
static size_t place(const matrix *m, size_t column, size_t i, size_t count)
{
    return m->transposed ? column * count + i : i * m->f.n + column;
}

/* Codes, or zero points, as the elements stand. */
static oct_status lay_out(oct_graph *g, const matrix *m, bool zeros, oct_tensor **out, oct_err *err)
{
    const size_t n = m->f.n, count = zeros ? oct_nbits_blocks(&m->f) : m->f.k;
    const int64_t dims[2] = { (int64_t)(m->transposed ? n : count), (int64_t)(m->transposed ? count : n) };
    OCT_TRY(oct_tensor_new(g->arena, m->q->dtype, 2, dims, out, err));
    uint8_t *to = memset((void *)(uintptr_t)(*out)->data, 0, (*out)->bytes);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < count; i++) {
            const size_t at = place(m, j, i, count);
            const unsigned code = zeros ? (unsigned)m->q->zp[m->columns ? j * count + i : at] : code_at(m, j, i);
            put_code(to, m->f.bits, at, code & ((1u << m->f.bits) - 1));
        }
    return OCT_OK;
}

static oct_status lay_out_scales(oct_graph *g, const matrix *m, const char *base, int *v, oct_err *err)
{
    const size_t n = m->f.n, blocks = oct_nbits_blocks(&m->f);
    oct_tensor *t;
    if (m->transposed || !m->columns)
        return refer_scales(g, m, base, v, err);
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, 2, (int64_t[]){ (int64_t)blocks, (int64_t)n }, &t, err));
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < blocks; i++)
            ((float *)(uintptr_t)t->data)[place(m, j, i, blocks)] = m->q->scale[j * blocks + i];
    return oct_edit_refer(g, base, "_scale", t, v, err);
}

oct_status oct_write_block_constant(oct_writer *w, int v, int before, oct_err *err)
{
    oct_graph *g = w->g;
    const matrix m = matrix_of(g, v);
    const char *base = oct_write_base(w, v);
    const int n_in = m.f.zero == OCT_NBITS_WHOLE ? 3 : 2;
    oct_tensor *codes, *zeros;
    int in[3], real, node;
    if (!base)
        return oct_nomem(err);
    if (m.columns)
        OCT_TRY(lay_out(g, &m, false, &codes, err));
    OCT_TRY(oct_write_codes(w, v, m.columns ? codes : m.q->codes, &in[0], err));
    OCT_TRY(lay_out_scales(g, &m, base, &in[1], err));
    if (n_in > 2) {
        OCT_TRY(lay_out(g, &m, true, &zeros, err));
        OCT_TRY(oct_edit_refer(g, base, "_zero_point", zeros, &in[2], err));
    }
    OCT_TRY(oct_write_real(w, v, base, in, &real, err));
    OCT_TRY(oct_edit_node(g, "DequantizeLinear", in, n_in, real, before, &node, err));
    OCT_TRY(oct_node_set_int(g, node, "axis", m.q->axis, err));
    return oct_node_set_int(g, node, "block_size", (int64_t)m.f.block, err);
}

oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err)
{
    const int b = w->g->node[id].in[1];
    if (!w->g->value[b].quant)
        return OCT_OK; /* written for another product */
    const matrix m = matrix_of(w->g, b);
    return w->o->blocks_qdq || !m.columns ? oct_write_block_constant(w, b, id, err) : write_operator(w, id, &m, err);
}
