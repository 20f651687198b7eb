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

static oct_status allocate(oct_qjob *j, qblocks *b, oct_err *err)
{
    const oct_nbits_form *f = &b->form;
    const int64_t n = (int64_t)f->n, blocks = (int64_t)oct_nbits_blocks(f), zeros = (int64_t)oct_nbits_zero_bytes(f);
    OCT_TRY(oct_tensor_new(j->arena, OCT_U8, 3, (int64_t[]){ n, blocks, (int64_t)(f->block * (size_t)f->bits / 8) }, &b->codes, err));
    OCT_TRY(oct_tensor_new(j->arena, OCT_F32, 2, (int64_t[]){ n, blocks }, &b->scale, err));
    if (f->zero == OCT_NBITS_WHOLE)
        OCT_TRY(oct_tensor_new(j->arena, OCT_U8, 2, (int64_t[]){ n, zeros }, &b->zero, err));
    oct_tensor *const all[] = { b->codes, b->scale, b->zero };
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        if (all[i])
            memset((void *)(uintptr_t)all[i]->data, 0, all[i]->bytes);
    return OCT_OK;
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
    OCT_TRY(allocate(j, b, err));
    const oct_block_matrix m = { w->data, (ptrdiff_t)l.in_step, (ptrdiff_t)l.out_step };
    OCT_TRY(oct_quantize_blocks(&m, &f, pool, (uint8_t *)(uintptr_t)b->codes->data, (float *)(uintptr_t)b->scale->data,
                                b->zero ? (uint8_t *)(uintptr_t)b->zero->data : NULL, &b->sqnr, err));
    j->blocks[node] = b;
    if (j->opts.forget)
        j->opts.forget(j->opts.forget_arg, w->data, w->bytes);
    return OCT_OK;
}
