/* Weights in blocks, written: com.microsoft.MatMulNBits in place of the product, or DequantizeLinear in front of it. */
#include "quant/writer.h"

#include <string.h>

/* A constant that refers to the tensor instead of copying it. */
static oct_status refer(oct_writer *w, const char *base, const char *suffix, const oct_tensor *t, int *v, oct_err *err)
{
    OCT_TRY(oct_writer_value(w, base, suffix, t->dtype, -1, v, err));
    OCT_TRY(oct_graph_set_dims(w->g, *v, t->rank, t->dims, err));
    oct_graph_set_const(w->g, *v, t);
    return OCT_OK;
}

/* ---- MatMulNBits ---- */

static oct_status operator_constants(oct_writer *w, qblocks *b, const char *base, oct_err *err)
{
    if (b->written[0] >= 0)
        return OCT_OK;
    OCT_TRY(refer(w, base, "_quantized", b->codes, &b->written[0], err));
    OCT_TRY(refer(w, base, "_scale", b->scale, &b->written[1], err));
    return b->zero ? refer(w, base, "_zero_point", b->zero, &b->written[2], err) : OCT_OK;
}

/* The bias as a row of n values. */
static oct_status bias_row(oct_writer *w, int bias, int64_t n, int *row, oct_err *err)
{
    const oct_tensor *t = w->g->value[bias].konst;
    *row = bias;
    return t->rank == 1 ? OCT_OK : oct_writer_const(w, w->g->value[bias].name, "_row", OCT_F32, 1, &n, t->data, row, err);
}

static oct_status set_sizes(oct_graph *g, int node, const oct_nbits_form *f, oct_err *err)
{
    OCT_TRY(oct_node_set_int(g, node, "K", (int64_t)f->k, err));
    OCT_TRY(oct_node_set_int(g, node, "N", (int64_t)f->n, err));
    OCT_TRY(oct_node_set_int(g, node, "bits", f->bits, err));
    return oct_node_set_int(g, node, "block_size", (int64_t)f->block, err);
}

/* The node keeps its name and its output. */
static oct_status write_operator(oct_writer *w, int id, qblocks *b, oct_err *err)
{
    oct_graph *g = w->g;
    const oct_node old = g->node[id];
    const int x = old.in[0], y = old.out[0], bias = old.n_in > 2 ? old.in[2] : -1;
    int node, row;
    OCT_TRY(operator_constants(w, b, g->value[old.in[1]].name, err));
    if (oct_graph_opset(g, "com.microsoft") == 0)
        OCT_TRY(oct_graph_set_opset(g, "com.microsoft", 1, err));
    OCT_TRY(oct_graph_add_node(g, "MatMulNBits", "com.microsoft", old.name, 0, 1, id, &node, err));
    OCT_TRY(oct_graph_set_input(g, node, 0, x, err));
    for (int i = 0; i < (b->zero ? 3 : 2); i++)
        OCT_TRY(oct_graph_set_input(g, node, 1 + i, b->written[i], err));
    if (bias >= 0) {
        OCT_TRY(bias_row(w, bias, (int64_t)b->form.n, &row, err));
        for (int slot = b->zero ? 4 : 3; slot < 5; slot++)
            OCT_TRY(oct_graph_set_input(g, node, slot, -1, err));
        OCT_TRY(oct_graph_set_input(g, node, 5, row, err));
    }
    OCT_TRY(set_sizes(g, node, &b->form, err));
    oct_graph_remove_node(g, id);
    return oct_graph_set_output(g, node, 0, y, err);
}

/* ---- DequantizeLinear ---- */

static unsigned code_at(const uint8_t *row, int bits, size_t i)
{
    const size_t per = 8 / (size_t)bits;
    return row[i / per] >> i % per * (size_t)bits & ((1u << bits) - 1);
}

/* Codes of `columns` rows, each of `bytes` bytes, laid out as the matrix is: [count][columns], or the other way round where it is
 * transposed. flip: turns codes into signed ones. */
static oct_status lay_out(oct_writer *w, const qblocks *b, const oct_tensor *from, size_t count, const char *base, const char *suffix, int *v,
                          oct_err *err)
{
    const oct_nbits_form *f = &b->form;
    const size_t bytes = from->bytes / f->n, per = 8 / (size_t)f->bits;
    const unsigned flip = b->zero ? 0 : 1u << (f->bits - 1);
    const oct_dtype t = f->bits == 4 ? (b->zero ? OCT_U4 : OCT_S4) : b->zero ? OCT_U8 : OCT_S8;
    const int64_t n = (int64_t)f->n, k = (int64_t)count;
    uint8_t *to = oct_calloc(f->n * count / per + 1, 1);
    if (!to)
        return oct_nomem(err);
    for (size_t j = 0; j < f->n; j++)
        for (size_t i = 0; i < count; i++) {
            const size_t at = b->transposed ? j * count + i : i * f->n + j;
            const unsigned code = code_at((const uint8_t *)from->data + j * bytes, f->bits, i) ^ flip;
            to[at / per] |= (uint8_t)(code << at % per * (size_t)f->bits);
        }
    oct_status s = oct_writer_const(w, base, suffix, t, 2, b->transposed ? (int64_t[]){ n, k } : (int64_t[]){ k, n }, to, v, err);
    oct_free(to);
    return s;
}

static oct_status lay_out_scales(oct_writer *w, const qblocks *b, const char *base, int *v, oct_err *err)
{
    const size_t n = b->form.n, blocks = oct_nbits_blocks(&b->form);
    const float *from = b->scale->data;
    if (b->transposed)
        return refer(w, base, "_scale", b->scale, v, err);
    float *to = oct_alloc(n * blocks * sizeof *to);
    if (!to)
        return oct_nomem(err);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < blocks; i++)
            to[i * n + j] = from[j * blocks + i];
    oct_status s = oct_writer_const(w, base, "_scale", OCT_F32, 2, (int64_t[]){ (int64_t)blocks, (int64_t)n }, to, v, err);
    oct_free(to);
    return s;
}

/* written[0]: the dequantized matrix, for all products of it. */
static oct_status write_dequantize(oct_writer *w, int id, qblocks *b, oct_err *err)
{
    oct_graph *g = w->g;
    const char *base = g->value[b->matrix].name;
    int in[3], node;
    if (b->written[0] < 0) {
        OCT_TRY(lay_out(w, b, b->codes, b->form.k, base, "_quantized", &in[0], err));
        OCT_TRY(lay_out_scales(w, b, base, &in[1], err));
        if (b->zero)
            OCT_TRY(lay_out(w, b, b->zero, oct_nbits_blocks(&b->form), base, "_zero_point", &in[2], err));
        OCT_TRY(oct_writer_value(w, base, "_dequantized", OCT_F32, b->matrix, &b->written[0], err));
        OCT_TRY(oct_writer_node(w, "DequantizeLinear", in, b->zero ? 3 : 2, b->written[0], id, &node, err));
        OCT_TRY(oct_node_set_int(g, node, "axis", b->transposed ? 1 : 0, err));
        OCT_TRY(oct_node_set_int(g, node, "block_size", (int64_t)b->form.block, err));
    }
    return oct_graph_set_input(g, id, 1, b->written[0], err);
}

oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err)
{
    qblocks *b = w->j->blocks[id];
    return w->j->opts.blocks_qdq ? write_dequantize(w, id, b, err) : write_operator(w, id, b, err);
}
