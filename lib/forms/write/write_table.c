/* Tables of rows are written as quantized values with a scale for each row (or one for all), in operators of the
 * default domain: quantized rows and their scales are picked in the same way, and only the picked rows are converted to
 * real numbers. So no runtime converts the whole table. For a matrix in blocks, com.microsoft.GatherBlockQuantized does
 * this, with the constants that MatMulNBits has; or with rows that are one block each. */
#include "forms/edit.h"
#include "forms/write/forms_write.h"

#include "ops/core/block_matrix.h"
#include "ops/core/small.h"
#include "passes/match.h"

#include <string.h>

enum { BLOCKS_SINCE = 21 }; /* the opset from which on DequantizeLinear has blocks */

/* Adds a node of the default domain before node `before`, and a new value named after y that it computes. out may point
 * to an input. */
static oct_status step(oct_graph *g, const char *op, const char *suffix, oct_dtype t, int y, const int *in, int n_in,
                       int before, int *node, int *out, oct_err *err)
{
    int made;
    OCT_TRY(oct_edit_value(g, g->value[y].name, suffix, t, -1, &made, err));
    OCT_TRY(oct_edit_node(g, op, in, n_in, made, before, node, err));
    *out = made;
    return OCT_OK;
}

/* Picks the quantized rows, whose elements are the last dimension. */
static oct_status pick(oct_graph *g, int id, const oct_quant *q, bool by_rows, int *rows, oct_err *err)
{
    const int table = g->node[id].in[0], ids = g->node[id].in[1], y = g->node[id].out[0];
    const int rank = g->value[ids].shape.rank;
    int64_t perm[OCT_MAX_RANK + 1];
    int codes, node;
    OCT_TRY(oct_edit_refer(g, g->value[table].name, "_quantized", q->qvals, &codes, err));
    OCT_TRY(step(g, "Gather", "_quantized", q->dtype, y, (const int[]){ codes, ids }, 2, id, &node, rows, err));
    if (by_rows)
        return OCT_OK;
    OCT_TRY(oct_node_set_int(g, node, "axis", 1, err));
    for (int i = 0; i <= rank; i++)
        perm[i] = i < rank ? i + 1 : 0;
    OCT_TRY(step(g, "Transpose", "_rows", q->dtype, y, rows, 1, id, &node, rows, err));
    return oct_node_set_ints(g, node, "perm", perm, rank + 1, err);
}

static oct_status scale_of(oct_graph *g, int id, const oct_quant *q, int *scale, oct_err *err)
{
    const int table = g->node[id].in[0], y = g->node[id].out[0];
    const oct_tensor *t = g->value[table].constant;
    int64_t dims[OCT_MAX_RANK];
    int all, node;
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    dims[t->rank - 1] = 1;
    OCT_TRY(
        oct_edit_const(g, g->value[table].name, "_scale", OCT_F32, q->n > 1 ? t->rank : 0, dims, q->scale, &all, err));
    *scale = all;
    return q->n > 1 ? step(g, "Gather", "_scale", OCT_F32, y, (const int[]){ all, g->node[id].in[1] }, 2, id, &node,
                           scale, err)
                    : OCT_OK;
}

oct_status oct_write_table(oct_graph *g, int id, const oct_quant *q, bool by_rows, oct_err *err)
{
    const int table = g->node[id].in[0], y = g->node[id].out[0], after = oct_graph_next(g, id);
    const float zero = (float)q->zp[0];
    int rows, real, scale, node, middle;
    OCT_TRY(pick(g, id, q, by_rows, &rows, err));
    const bool half = g->value[y].own_type == OCT_F16 || g->value[y].own_type == OCT_BF16;
    if (half && by_rows && q->n > 1 && zero == 0.0f && oct_graph_opset(g, "") >= BLOCKS_SINCE) {
        OCT_TRY(scale_of(g, id, q, &scale, err));
        const int64_t row = q->qvals->dims[q->qvals->rank - 1];
        oct_graph_remove_node(g, id);
        OCT_TRY(oct_edit_node(g, "DequantizeLinear", (const int[]){ rows, scale }, 2, y, after, &node, err));
        OCT_TRY(oct_node_set_int(g, node, "axis", -1, err));
        return oct_node_set_int(g, node, "block_size", row, err);
    }
    OCT_TRY(step(g, "Cast", "_numbers", OCT_F32, y, &rows, 1, id, &node, &real, err));
    OCT_TRY(oct_node_set_int(g, node, "to", OCT_F32, err));
    if (zero != 0.0f) {
        OCT_TRY(oct_edit_const(g, g->value[table].name, "_middle", OCT_F32, 0, NULL, &zero, &middle, err));
        OCT_TRY(step(g, "Sub", "_steps", OCT_F32, y, (const int[]){ real, middle }, 2, id, &node, &real, err));
    }
    OCT_TRY(scale_of(g, id, q, &scale, err));
    oct_graph_remove_node(g, id);
    return oct_edit_node(g, "Mul", (const int[]){ real, scale }, 2, y, after, NULL, err);
}

/* Makes a node that picks rows pick them from input in[0], with the scales in[2] and the zero points in[3] (-1: there
 * are none) of blocks along a row. */
static oct_status become_block_gather(oct_graph *g, int id, const int in[4], int64_t block, int bits, oct_err *err)
{
    for (int i = 0; i < (in[3] >= 0 ? 4 : 3); i++)
        OCT_TRY(oct_graph_set_input(g, id, i, in[i], err));
    g->node[id].n_attr = 0;
    g->node[id].origin = NULL;
    OCT_TRY(oct_node_set_int(g, id, "gather_axis", 0, err));
    OCT_TRY(oct_node_set_int(g, id, "quantize_axis", 1, err));
    OCT_TRY(oct_node_set_int(g, id, "block_size", block, err));
    OCT_TRY(oct_node_set_int(g, id, "bits", bits, err));
    return oct_edit_become(g, id, "GatherBlockQuantized", "com.microsoft", 0, err);
}

oct_status oct_write_row_table(oct_graph *g, int id, const oct_quant *q, oct_err *err)
{
    const int64_t rows = q->qvals->dims[0], columns = q->qvals->dims[1];
    const char *table = g->value[g->node[id].in[0]].name;
    int in[4] = { -1, g->node[id].in[1], -1, -1 };
    int64_t block = 16; /* a power of two, of 16 at least */
    while (block < columns)
        block *= 2;
    OCT_TRY(oct_edit_refer(g, table, "_quantized", q->qvals, &in[0], err));
    OCT_TRY(oct_edit_const(g, table, "_scale", OCT_F32, 2, (const int64_t[]){ rows, 1 }, q->scale, &in[2], err));
    return become_block_gather(g, id, in, block, 8, err);
}

oct_status oct_write_block_table(oct_graph *g, int id, const oct_quant *q, oct_err *err)
{
    const int y = g->node[id].out[0];
    const int64_t *rows = g->value[g->node[id].in[0]].constant->dims;
    const oct_nbits_form f =
        oct_blocks_form(q, q->axis == 0 ? (int64_t[]){ rows[1], rows[0] } : (int64_t[]){ rows[0], rows[1] });
    const int64_t dims[2] = { rows[0], (int64_t)oct_nbits_column_bytes(&f) }, two = 2;
    const char *table = g->value[g->node[id].in[0]].name;
    oct_nbits_weights w;
    int codes, shape, in[4] = { -1, g->node[id].in[1], -1, -1 }, node;
    OCT_TRY(oct_blocks_weights(q, &f, g->arena, &w, err));
    OCT_TRY(oct_edit_refer(g, table, "_quantized", q->qvals, &codes, err));
    OCT_TRY(oct_edit_const(g, table, "_shape", OCT_S64, 1, &two, dims, &shape, err));
    OCT_TRY(step(g, "Reshape", "_table", OCT_U8, y, (const int[]){ codes, shape }, 2, id, &node, &in[0], err));
    OCT_TRY(oct_edit_refer_matrix(g, table, "_scale", OCT_F32, f.n, oct_nbits_blocks(&f), w.scale, &in[2], err));
    if (w.zero)
        OCT_TRY(
            oct_edit_refer_matrix(g, table, "_zero_point", OCT_U8, f.n, oct_nbits_zero_bytes(&f), w.zero, &in[3], err));
    return become_block_gather(g, id, in, (int64_t)f.block, f.bits, err);
}

oct_status oct_write_stored(oct_graph *g, int id, int slot, const oct_quant *q, const int64_t *scales, oct_err *err)
{
    const int w = g->node[id].in[slot];
    const char *name = g->value[w].name;
    int in[2], numbers, real, cast;
    OCT_TRY(oct_edit_refer(g, name, "_quantized", q->qvals, &in[0], err));
    OCT_TRY(oct_edit_value(g, name, "_numbers", OCT_F32, w, &numbers, err));
    OCT_TRY(oct_edit_node(g, "Cast", in, 1, numbers, id, &cast, err));
    OCT_TRY(oct_node_set_int(g, cast, "to", OCT_F32, err));
    in[0] = numbers;
    OCT_TRY(oct_edit_const(g, name, "_scale", OCT_F32, q->qvals->rank, scales, q->scale, &in[1], err));
    OCT_TRY(oct_edit_value(g, name, "_stored", OCT_F32, w, &real, err));
    OCT_TRY(oct_edit_node(g, "Mul", in, 2, real, id, NULL, err));
    return oct_graph_set_input(g, id, slot, real, err);
}

oct_status oct_write_stored_blocks(oct_graph *g, int id, int slot, const oct_quant *q, oct_err *err)
{
    const int w = g->node[id].in[slot];
    const char *name = g->value[w].name;
    int64_t dims[OCT_MAX_RANK];
    int in[3], real, node, n_in = 2;
    oct_tensor *zero;
    memcpy(dims, q->qvals->dims, (size_t)q->qvals->rank * sizeof *dims);
    dims[q->axis] = (dims[q->axis] + q->block - 1) / q->block;
    OCT_TRY(oct_edit_refer(g, name, "_quantized", q->qvals, &in[0], err));
    OCT_TRY(oct_edit_const(g, name, "_scale", OCT_F32, q->qvals->rank, dims, q->scale, &in[1], err));
    if (q->dtype == OCT_U4) { /* that of s4 is the middle */
        OCT_TRY(oct_tensor_new(g->arena, q->dtype, q->qvals->rank, dims, &zero, err));
        oct_small_begin(q->dtype, (void *)(uintptr_t)zero->data, q->n);
        for (int i = 0; i < q->n; i++)
            oct_small_set_int(q->dtype, (void *)(uintptr_t)zero->data, i, q->zp[i]);
        OCT_TRY(oct_edit_refer(g, name, "_zero_point", zero, &in[2], err));
        n_in = 3;
    }
    OCT_TRY(oct_edit_value(g, name, "_stored", OCT_F32, w, &real, err));
    OCT_TRY(oct_edit_node(g, "DequantizeLinear", in, n_in, real, id, &node, err));
    OCT_TRY(oct_node_set_int(g, node, "axis", q->axis, err));
    OCT_TRY(oct_node_set_int(g, node, "block_size", q->block, err));
    return oct_graph_set_input(g, id, slot, real, err);
}
