/* Products whose weights are rounded in blocks: which, and how. */
#include "quant/blocks.h"
#include "quant/job.h"

#include <string.h>

enum { BITS = 4, BLOCK = 32 };

oct_nbits_form oct_block_form(const oct_qjob *j, const oct_policy_row *row)
{
    bool symmetric = row->block ? row->weights != OCT_WEIGHT_U4 && row->weights != OCT_WEIGHT_U8 : j->opts.symmetric;
    oct_nbits_form f = { .bits = j->opts.bits ? j->opts.bits : BITS, .block = (size_t)(j->opts.block ? j->opts.block : BLOCK),
                         .zero = symmetric ? OCT_NBITS_MIDDLE : OCT_NBITS_WHOLE };
    if (row->block) {
        f.bits = row->weights == OCT_WEIGHT_S4 || row->weights == OCT_WEIGHT_U4 ? 4 : 8;
        f.block = (size_t)row->block;
    }
    return f;
}

/* The form of a node's matrix. */
static oct_nbits_form form_of(const oct_qjob *j, int node, oct_weight_layout *l)
{
    oct_nbits_form f = oct_block_form(j, &j->node[node].row);
    oct_layer_layout(j->g, node, l);
    f.n = (size_t)l->outs;
    f.k = (size_t)l->ins;
    return f;
}

const char *oct_no_blocks(const oct_qjob *j, int node)
{
    const oct_tensor *w = oct_layer_weights(j->g, node), *bias = oct_layer_bias(j->g, node);
    oct_weight_layout l = { 0 };
    if (!oct_op_of(j->g, node)->weights.blocks)
        return "only products of matrices have weights in blocks";
    if (!w || w->rank != 2 || w->count == 0)
        return "its weights are not a constant matrix";
    const oct_nbits_form f = form_of(j, node, &l);
    if (bias && bias->count != (int64_t)f.n)
        return "its bias is not one value a column";
    const double bytes = (double)f.n * (double)(oct_nbits_column_bytes(&f) + oct_nbits_blocks(&f) * sizeof(float) + oct_nbits_zero_bytes(&f));
    return bytes < (double)w->count * sizeof(float) ? NULL : "its columns are shorter than a block: nothing would be saved";
}

static bool same_blocks(const qblocks *b, int matrix, bool turned, const oct_nbits_form *f)
{
    return b && b->matrix == matrix && b->transposed == turned && b->form.bits == f->bits && b->form.block == f->block &&
           b->form.zero == f->zero;
}

/* Codes and parameters by columns, as MatMulNBits has them; zero: packed zero points, to be filled and freed, NULL for the middle. */
static oct_status allocate(oct_qjob *j, qblocks *b, uint8_t **zero, oct_err *err)
{
    const oct_nbits_form *f = &b->form;
    const size_t n = f->n * oct_nbits_blocks(f);
    const bool whole = f->zero == OCT_NBITS_WHOLE;
    const int64_t dims[3] = { (int64_t)f->n, (int64_t)oct_nbits_blocks(f), (int64_t)(f->block * (size_t)f->bits / 8) };
    oct_tensor *codes;
    OCT_TRY(oct_tensor_new(j->arena, OCT_U8, 3, dims, &codes, err));
    memset((void *)(uintptr_t)codes->data, 0, codes->bytes);
    b->quant = (oct_quant){ .n = (int)n, .axis = b->transposed, .block = (int64_t)f->block, .codes = codes,
                            .scale = oct_arena_calloc(j->arena, n, sizeof(float)), .zp = oct_arena_calloc(j->arena, n, sizeof(int32_t)) };
    b->quant.dtype = f->bits == 4 ? (whole ? OCT_U4 : OCT_S4) : whole ? OCT_U8 : OCT_S8;
    *zero = whole ? oct_calloc(f->n, oct_nbits_zero_bytes(f)) : NULL;
    return b->quant.scale && b->quant.zp && (*zero || !whole) ? OCT_OK : oct_nomem(err);
}

static void unpack_zeros(const qblocks *b, const uint8_t *zero)
{
    const oct_nbits_form *f = &b->form;
    const size_t blocks = oct_nbits_blocks(f), per = 8 / (size_t)f->bits;
    int32_t *to = (int32_t *)(uintptr_t)b->quant.zp;
    for (size_t column = 0; column < f->n; column++, zero += oct_nbits_zero_bytes(f))
        for (size_t i = 0; i < blocks; i++)
            *to++ = zero[i / per] >> i % per * (size_t)f->bits & ((1 << f->bits) - 1);
}

static oct_status make(oct_qjob *j, qblocks *b, const oct_block_matrix *m, oct_pool *pool, oct_err *err)
{
    uint8_t *zero = NULL;
    oct_status s = allocate(j, b, &zero, err);
    if (s == OCT_OK)
        s = oct_quantize_blocks(m, &b->form, pool, (uint8_t *)(uintptr_t)b->quant.codes->data, (float *)(uintptr_t)b->quant.scale, zero, &b->sqnr, err);
    if (s == OCT_OK && zero)
        unpack_zeros(b, zero);
    oct_free(zero);
    return s;
}

oct_status oct_make_blocks(oct_qjob *j, int node, oct_pool *pool, oct_err *err)
{
    const oct_node *n = &j->g->node[node];
    const oct_tensor *w = oct_layer_weights(j->g, node);
    oct_weight_layout l = { 0 };
    const oct_nbits_form f = form_of(j, node, &l);
    const bool turned = l.out_axis == 0;
    if (j->blocks[node])
        return OCT_OK;
    for (size_t i = 0; i < j->n_layer; i++)
        if (same_blocks(j->blocks[j->layer[i]], n->in[1], turned, &f)) {
            j->blocks[node] = j->blocks[j->layer[i]];
            return OCT_OK;
        }
    qblocks *b = oct_arena_calloc(j->arena, 1, sizeof *b);
    if (!b)
        return oct_nomem(err);
    *b = (qblocks){ .form = f, .matrix = n->in[1], .transposed = turned };
    const oct_block_matrix m = { w->data, (ptrdiff_t)l.in_step, (ptrdiff_t)l.out_step };
    OCT_TRY(make(j, b, &m, pool, err));
    j->blocks[node] = b;
    if (j->opts.forget)
        j->opts.forget(j->opts.forget_arg, w->data, w->bytes);
    return OCT_OK;
}
