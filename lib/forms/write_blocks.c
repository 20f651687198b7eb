/* Weights in blocks: com.microsoft.MatMulNBits in place of the product, or DequantizeLinear in front of it. */
#include "forms/write_int.h"

#include "kernels/nbits/nbits.h"

#include <string.h>

/* An annotated matrix whose codes stand by columns. */
typedef struct matrix {
    const oct_quant *q;
    oct_nbits_form f;
    bool transposed; /* [n][k] */
} matrix;

static matrix matrix_of(const oct_graph *g, int v)
{
    const oct_quant *q = g->value[v].quant;
    const oct_dim *d = g->value[v].shape.d;
    const bool whole = q->dtype == OCT_U4 || q->dtype == OCT_U8;
    return (matrix){ q, { .n = (size_t)d[1 - q->axis].n, .k = (size_t)d[q->axis].n, .bits = oct_dtype_bits(q->dtype), .block = (size_t)q->block,
                          .zero = whole ? OCT_NBITS_WHOLE : OCT_NBITS_MIDDLE }, q->axis == 1 };
}

/* A float tensor of the scales as they are. */
static oct_status refer_scales(oct_graph *g, const matrix *m, const char *base, int *v, oct_err *err)
{
    const int64_t dims[2] = { (int64_t)m->f.n, (int64_t)oct_nbits_blocks(&m->f) };
    oct_tensor t = { .dtype = OCT_F32, .rank = 2, .count = dims[0] * dims[1], .bytes = (size_t)(dims[0] * dims[1]) * sizeof(float), .data = m->q->scale };
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
    if (w->blocks[b] >= 0)
        return OCT_OK;
    OCT_TRY(oct_write_codes(w, b, m->q->codes, &w->blocks[b], err));
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

/* The node keeps its name and its output. */
static oct_status write_operator(oct_writer *w, int id, const matrix *m, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_node old = g->node[id];
    const int x = old.in[0], y = old.out[0], bias = old.n_in > 2 ? old.in[2] : -1, n_const = m->f.zero == OCT_NBITS_WHOLE ? 3 : 2;
    int node, row;
    OCT_TRY(operator_constants(w, old.in[1], m, err));
    OCT_TRY(oct_edit_contrib(g, "MatMulNBits", id, 0, 1, &node, err));
    OCT_TRY(oct_graph_set_input(g, node, 0, x, err));
    for (int i = 0; i < n_const; i++)
        OCT_TRY(oct_graph_set_input(g, node, 1 + i, w->blocks[old.in[1]] + i, err));
    if (bias >= 0) {
        OCT_TRY(bias_row(g, bias, (int64_t)m->f.n, &row, err));
        OCT_TRY(oct_graph_set_input(g, node, 5, row, err));
    }
    OCT_TRY(set_sizes(g, node, &m->f, err));
    oct_graph_remove_node(g, id);
    return oct_graph_set_output(g, node, 0, y, err);
}

/* ---- DequantizeLinear ---- */

/* Code i of a column, as a signed type has it where there are no zero points. */
static unsigned code_at(const matrix *m, size_t column, size_t i)
{
    const size_t per = 8 / (size_t)m->f.bits;
    const uint8_t *row = (const uint8_t *)m->q->codes->data + column * oct_nbits_column_bytes(&m->f);
    return (row[i / per] >> i % per * (size_t)m->f.bits & ((1u << m->f.bits) - 1)) ^ (m->f.zero == OCT_NBITS_WHOLE ? 0 : 1u << (m->f.bits - 1));
}

/* Codes, or zero points, in the order of the matrix's elements: [count][n], or the other way round where it is transposed. */
static oct_status lay_out(oct_graph *g, const matrix *m, bool zeros, oct_tensor **out, oct_err *err)
{
    const size_t n = m->f.n, blocks = oct_nbits_blocks(&m->f), count = zeros ? blocks : m->f.k;
    const int64_t dims[2] = { (int64_t)(m->transposed ? n : count), (int64_t)(m->transposed ? count : n) };
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(g->arena, m->q->dtype, 2, dims, &t, err));
    uint8_t *to = memset((void *)(uintptr_t)t->data, 0, t->bytes);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < count; i++)
            put_code(to, m->f.bits, m->transposed ? j * count + i : i * n + j, zeros ? (unsigned)m->q->zp[j * blocks + i] : code_at(m, j, i));
    *out = t;
    return OCT_OK;
}

static oct_status lay_out_scales(oct_graph *g, const matrix *m, const char *base, int *v, oct_err *err)
{
    const size_t n = m->f.n, blocks = oct_nbits_blocks(&m->f);
    oct_tensor *t;
    if (m->transposed)
        return refer_scales(g, m, base, v, err);
    OCT_TRY(oct_tensor_new(g->arena, OCT_F32, 2, (int64_t[]){ (int64_t)blocks, (int64_t)n }, &t, err));
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < blocks; i++)
            ((float *)(uintptr_t)t->data)[i * n + j] = m->q->scale[j * blocks + i];
    return oct_edit_refer(g, base, "_scale", t, v, err);
}

static oct_status write_dequantize(oct_writer *w, int b, const matrix *m, int before, oct_err *err)
{
    oct_graph *g = w->g;
    const char *base = oct_write_base(w, b);
    const int n_in = m->f.zero == OCT_NBITS_WHOLE ? 3 : 2;
    oct_tensor *codes, *zeros;
    int in[3], dq, node;
    if (!base)
        return oct_nomem(err);
    OCT_TRY(lay_out(g, m, false, &codes, err));
    OCT_TRY(oct_write_codes(w, b, codes, &in[0], err));
    OCT_TRY(lay_out_scales(g, m, base, &in[1], err));
    if (n_in > 2) {
        OCT_TRY(lay_out(g, m, true, &zeros, err));
        OCT_TRY(oct_edit_refer(g, base, "_zero_point", zeros, &in[2], err));
    }
    OCT_TRY(oct_edit_value(g, base, "_dequantized", g->value[b].dtype, b, &dq, err));
    OCT_TRY(oct_edit_node(g, "DequantizeLinear", in, n_in, dq, before, &node, err));
    OCT_TRY(oct_node_set_int(g, node, "axis", m->q->axis, err));
    OCT_TRY(oct_node_set_int(g, node, "block_size", (int64_t)m->f.block, err));
    return oct_write_redirect(w, b, dq, err);
}

oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err)
{
    const int b = w->g->node[id].in[1];
    if (!w->g->value[b].quant)
        return OCT_OK; /* written for another product */
    const matrix m = matrix_of(w->g, b);
    return w->o->blocks_qdq ? write_dequantize(w, b, &m, id, err) : write_operator(w, id, &m, err);
}
