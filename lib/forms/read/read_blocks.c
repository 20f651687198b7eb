/* com.microsoft.MatMulNBits: a product with a matrix in blocks, whose quantized values stay as they are.
 * DequantizeLinear in blocks is in read_qdq.c. */
#include "forms/edit.h"
#include "forms/read/read_int.h"

#include "ops/core/block_matrix.h"
#include "passes/match.h"

/* Inputs. */
enum { IN_A, IN_B, IN_SCALE, IN_ZERO, IN_GROUP, IN_BIAS };

static const oct_tensor *constant(const oct_graph *g, const oct_node *n, int slot, oct_dtype t, int64_t count)
{
    const int v = oct_input_at(n, slot);
    const oct_tensor *k = v >= 0 && !g->value[v].quant ? g->value[v].constant : NULL;
    return k && k->data && k->dtype == t && k->count == count ? k : NULL;
}

static bool read_form(const oct_node *n, oct_nbits_form *f)
{
    const int64_t columns = oct_node_int(n, "N", 0), k = oct_node_int(n, "K", 0);
    const int64_t bits = oct_node_int(n, "bits", 4), block = oct_node_int(n, "block_size", 0);
    if (columns < 1 || columns > INT32_MAX || k > INT32_MAX || block < 16 || block > 256 || k < 1 ||
        (bits != 2 && bits != 4 && bits != 8))
        return false;
    *f = (oct_nbits_form){ .n = (size_t)columns,
                           .k = (size_t)k,
                           .bits = (int)bits,
                           .block = (size_t)block,
                           .zero = oct_input_at(n, IN_ZERO) >= 0 ? OCT_NBITS_WHOLE : OCT_NBITS_MIDDLE,
                           .bytes = oct_node_int(n, "accuracy_level", 0) == 4 };
    return f->n * oct_nbits_blocks(f) <= INT32_MAX;
}

/* The matrix as a value [k][n]. Products with the same matrix share it. */
static oct_status matrix(forms_reader *r, int id, int qvals, const oct_nbits_form *f, const oct_tensor *scale,
                         const oct_tensor *zero, int *v, oct_err *err)
{
    int32_t *zp = oct_arena_calloc(r->g->arena, f->n * oct_nbits_blocks(f), sizeof *zp);
    const oct_quant q = { .n = (int)(f->n * oct_nbits_blocks(f)),
                          .scale = scale->data,
                          .zp = zp,
                          .dtype = oct_blocks_dtype(f),
                          .block = (int64_t)f->block,
                          .bytes = f->bytes };
    if (!zp)
        return oct_nomem(err);
    oct_blocks_zero_points(f, zero ? zero->data : NULL, zp);
    OCT_TRY(forms_annotated_of(r, qvals, &q, OCT_F32, -1, id, v, err));
    return r->g->value[*v].shape.rank == 2
               ? OCT_OK
               : oct_graph_set_dims(r->g, *v, 2, (int64_t[]){ (int64_t)f->k, (int64_t)f->n }, err);
}

oct_status forms_read_blocks(forms_reader *r, int id, oct_err *err)
{
    oct_graph *g = r->g;
    const oct_node *n = &g->node[id];
    oct_nbits_form f;
    if (!forms_is(n, "MatMulNBits") || n->n_in < 3 || n->n_out != 1 || n->out[0] < 0 || n->in[0] < 0 ||
        g->value[n->in[0]].dtype != OCT_F32 || g->value[n->out[0]].dtype != OCT_F32 || oct_input_at(n, IN_GROUP) >= 0 ||
        !read_form(n, &f))
        return OCT_OK;
    const int64_t blocks = (int64_t)oct_nbits_blocks(&f), columns = (int64_t)f.n;
    const oct_tensor *qvals = constant(g, n, IN_B, OCT_U8, columns * (int64_t)oct_nbits_column_bytes(&f));
    const oct_tensor *scale = constant(g, n, IN_SCALE, OCT_F32, columns * blocks);
    const oct_tensor *zero = constant(g, n, IN_ZERO, OCT_U8, columns * (int64_t)oct_nbits_zero_bytes(&f));
    const int bias = oct_input_at(n, IN_BIAS), x = n->in[0], given = n->in[IN_B];
    if (!qvals || qvals->rank != 3 || qvals->dims[0] != columns || qvals->dims[1] != blocks || !scale ||
        (f.zero == OCT_NBITS_WHOLE && !zero) ||
        (bias >= 0 &&
         (g->value[x].shape.rank != 2 || !constant(g, n, IN_BIAS, OCT_F32, columns) || g->value[bias].shape.rank != 1)))
        return OCT_OK;
    int w;
    OCT_TRY(matrix(r, id, given, &f, scale, zero, &w, err));
    if (g->value[w].shape.d[0].n != (int64_t)f.k)
        return OCT_OK; /* the quantized values were read as a matrix of another depth before */
    oct_graph_cut_inputs(g, id, 1);
    OCT_TRY(oct_graph_set_input(g, id, 1, w, err));
    if (bias >= 0)
        OCT_TRY(oct_graph_set_input(g, id, 2, bias, err));
    g->node[id].n_attr = 0;
    return oct_edit_become(g, id, bias >= 0 ? "Gemm" : "MatMul", "", 13, err);
}
