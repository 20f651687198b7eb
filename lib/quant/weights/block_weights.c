/* Decides which products get weights in blocks, and in which form. */
#include "quant/weights/blocks.h"

#include "base/io.h"
#include "base/spill.h"
#include "passes/match.h"
#include "quant/job/job.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <string.h>

enum { BITS = 4, HEAD_BITS = 8, BLOCK = 32, LARGEST_BLOCK = 128, MOST_READERS = 64 };

/* Bytes of a column. */
static size_t column_bytes(const oct_nbits_form *f)
{
    return oct_nbits_column_bytes(f) + oct_nbits_blocks(f) * sizeof(float) + oct_nbits_zero_bytes(f);
}

/* The block size if nothing determines it. With 8 bits any size loses little, so the fastest is chosen: in small blocks
 * scales take a tenth of the time, and with large blocks the last block of a column may be mostly empty. */
static size_t block_of(oct_nbits_form f)
{
    size_t best = BLOCK;
    for (size_t block = BLOCK; f.bits == 8 && block <= LARGEST_BLOCK; block *= 2) {
        oct_nbits_form least = f;
        least.block = best;
        f.block = block;
        best = column_bytes(&f) < column_bytes(&least) ? block : best;
    }
    return best;
}

/* Whether a graph around this one picks rows of a constant matrix. */
static bool is_picked_outside(const oct_graph *g)
{
    bool any = false;
    for (const oct_graph *o = g->outer; o && !any; o = o->outer)
        for (size_t i = 0; i < o->n_order && !any; i++) {
            const oct_op *op = oct_op_of(o, o->order[i]);
            const int v = oct_input_at(&o->node[o->order[i]], 0);
            const oct_tensor *t = op && op->picks && v >= 0 ? o->value[v].constant : NULL;
            any = t && t->dtype == OCT_F32 && t->rank == 2;
        }
    return any;
}

/* Whether rows are picked from tables. Then the model works on tokens or the like. */
static bool picks_rows(const oct_qjob *j)
{
    bool is_table = false;
    for (size_t i = 0; i < j->n_picker && !is_table; i++) {
        (void)oct_no_table(j, j->picker[i], &is_table);
        is_table = is_table && j->g->value[j->g->node[j->picker[i]].in[0]].constant->rank == 2;
    }
    return is_table || is_picked_outside(j->g);
}

/* Whether an output has the name and the form of scores for tokens. A decoder that is given embeddings picks none. */
static bool is_logits(const oct_value *v)
{
    return strcmp(v->name, "logits") == 0 && v->shape.rank == 3;
}

/* Whether an output is a part of a cache: by its name, or because the columns of the product are split into heads, so
 * that none of its dimensions has as many. */
static bool is_cache(const oct_value *v, int64_t columns)
{
    const int64_t last = v->shape.rank > 0 ? v->shape.d[v->shape.rank - 1].n : 0;
    bool whole = last <= 0;
    for (int d = 0; d < v->shape.rank && !whole; d++)
        whole = v->shape.d[d].n == columns;
    return strncmp(v->name, "present", 7) == 0 || !whole;
}

/* Whether a product or attention computes with a value, or with what only moves or converts its elements. *left bounds
 * how many values are looked at, as paths that part and join are walked anew; at 0 the answer is yes. */
static bool is_computed_with(const oct_graph *g, int v, int *left)
{
    const oct_value *x = &g->value[v];
    bool any = (*left)-- <= 0;
    for (size_t i = 0; i < x->n_uses && !any; i++) {
        const oct_op *op = x->uses[i].slot >= 0 ? oct_op_of(g, x->uses[i].node) : NULL;
        const int out = g->node[x->uses[i].node].out[0];
        if (op &&
            (op->alias || op->moves || op->converts || op->quant == OCT_QUANT_SAME || op->quant == OCT_QUANT_JOIN))
            any = out >= 0 && is_computed_with(g, out, left);
        else
            any = oct_op_is_layer(op) || (op && op->work == OCT_WORK_PAIRS);
    }
    return any;
}

/* Whether a product computes the output of a token model, such as logits, also if it is converted to another float
 * type. A product that is tied to a table does not count, because each of its bits counts twice. Keys and values that a
 * model gives out do not count either: attention, here or in the decoder that takes them, reads them like those of any
 * layer. */
static bool is_head(const oct_qjob *j, int node)
{
    int v = j->g->node[node].out[0], left = MOST_READERS;
    for (const oct_value *x = &j->g->value[v]; !x->is_output; x = &j->g->value[v]) {
        const oct_op *op = x->n_uses == 1 && x->uses[0].slot == 0 ? oct_op_of(j->g, x->uses[0].node) : NULL;
        if (!op || !(op->quant == OCT_QUANT_SAME || op->fixed_range || op->converts))
            return false;
        v = j->g->node[x->uses[0].node].out[0];
    }
    oct_weight_layout l;
    const oct_value *x = &j->g->value[v];
    return !is_computed_with(j->g, v, &left) && oct_layer_layout(j->g, node, &l) && !is_cache(x, l.outs) &&
           (picks_rows(j) || is_logits(x)) && !oct_is_tied(j, node);
}

/* The form that the policy, or else the job, wants for the matrix of a node. */
static oct_nbits_form form_of(const oct_qjob *j, int node, oct_weight_layout *l)
{
    const oct_policy_row *row = oct_row_of(j, node);
    bool symmetric = row->block ? row->weights != OCT_WEIGHT_U4 && row->weights != OCT_WEIGHT_U8 : j->opts.symmetric;
    oct_nbits_form f = { .bits = oct_scheme_by_cost(&j->constraints, node) == OCT_SCHEME_WEIGHT_ONLY ? 8
                                 : j->opts.bits                                                      ? j->opts.bits
                                 : is_head(j, node)                                                  ? HEAD_BITS
                                                                                                     : BITS,
                         .zero = symmetric ? OCT_NBITS_MIDDLE : OCT_NBITS_WHOLE,
                         .bytes = j->opts.block_bytes && !j->opts.blocks_qdq };
    if (row->block)
        f.bits = row->weights == OCT_WEIGHT_S4 || row->weights == OCT_WEIGHT_U4 ? 4 : 8;
    oct_layer_layout(j->g, node, l);
    f.n = (size_t)l->outs;
    f.k = (size_t)l->ins;
    f.block = row->block ? (size_t)row->block : j->opts.block ? (size_t)j->opts.block : block_of(f);
    return f;
}

oct_cost_how oct_block_cost(const oct_qjob *j, int node)
{
    oct_weight_layout l = { 0 };
    const oct_nbits_form f = form_of(j, node, &l);
    return f.bytes       ? (f.bits == 4 ? OCT_COST_BLOCKS4_BYTES : OCT_COST_BLOCKS8_BYTES)
           : f.bits == 4 ? OCT_COST_BLOCKS4
                         : OCT_COST_BLOCKS8;
}

const char *oct_no_blocks(const oct_qjob *j, int node)
{
    const oct_tensor *w = oct_layer_weights(j->g, node), *bias = oct_layer_bias(j->g, node);
    oct_weight_layout l = { 0 };
    if (!oct_op_of(j->g, node)->weights.blocks)
        return oct_no_pointwise(j, node);
    if (oct_is_left_product(j, node)) { /* the product could not be rewritten */
        const char *why = oct_no_turn(j, node);
        return why ? why : "its constant is the first factor";
    }
    if (!w || w->rank != 2 || w->count == 0)
        return "its weights are not a constant matrix";
    const oct_nbits_form f = form_of(j, node, &l);
    if (bias && bias->count != (int64_t)f.n)
        return "its bias is not one value for each column";
    const double bytes = (double)f.n * (double)column_bytes(&f);
    return bytes < (double)w->count * sizeof(float) ? NULL
                                                    : "its columns are shorter than a block: nothing would be saved";
}

/* The weights of another product that has the same matrix in the same form; or NULL. */
static qweights *made_before(const oct_qjob *j, int matrix, const oct_quant *q)
{
    for (size_t i = 0; i < j->n_layer; i++) {
        qweights *w = j->constants[j->layer[i]].weights[0];
        if (w && w->matrix == matrix && w->quant.axis == q->axis && w->quant.dtype == q->dtype &&
            w->quant.block == q->block)
            return w;
    }
    return NULL;
}

oct_status oct_make_blocks(oct_qjob *j, int node, oct_pool *pool, oct_err *err)
{
    const oct_tensor *w = oct_layer_weights(j->g, node);
    oct_weight_layout l = { 0 };
    const oct_nbits_form f = form_of(j, node, &l);
    const bool whole = f.zero == OCT_NBITS_WHOLE;
    const oct_quant quant = { .n = (int)(f.n * oct_nbits_blocks(&f)),
                              .axis = l.in_axis,
                              .block = (int64_t)f.block,
                              .bytes = f.bytes,
                              .dtype = f.bits == 4 ? (whole ? OCT_U4 : OCT_S4)
                                       : whole     ? OCT_U8
                                                   : OCT_S8 };
    const oct_block_matrix m = { w->data ? w->data : w->narrow, l.in_step, l.out_step,
                                 w->data ? OCT_F32 : w->narrow_type };
    const int matrix = j->g->node[node].in[1];
    oct_tensor *qvals;
    qweights **own = &j->constants[node].weights[0];
    if (*own || (*own = made_before(j, matrix, &quant)))
        return OCT_OK;
    qweights *q = oct_arena_calloc(j->arena, 1, sizeof *q);
    if (!q)
        return oct_nomem(err);
    *q = (qweights){ .quant = quant, .matrix = matrix };
    /* all three are written as a whole, by all threads: large blocks come from a file, and pages cost time */
    float *scale = oct_arena_alloc(j->lasting, (size_t)quant.n * sizeof *scale);
    int32_t *zero = oct_arena_alloc(j->lasting, (size_t)quant.n * sizeof *zero);
    if (!scale || !zero)
        return oct_nomem(err);
    q->quant.scale = scale;
    q->quant.zp = zero;
    /* stored by columns, as in MatMulNBits */
    const int64_t dims[3] = { (int64_t)f.n, (int64_t)oct_nbits_blocks(&f), (int64_t)(f.block * (size_t)f.bits / 8) };
    OCT_TRY(oct_tensor_new(j->lasting, OCT_U8, 3, dims, &qvals, err));
    q->quant.qvals = qvals;
    OCT_TRY(oct_quantize_blocks(&m, &f, pool, (uint8_t *)(uintptr_t)qvals->data, scale, zero, &q->sqnr, err));
    *own = q;
    oct_spill_forget(qvals->data, qvals->bytes);
    oct_spill_forget(scale, (size_t)q->quant.n * sizeof *scale);
    oct_spill_forget(zero, (size_t)q->quant.n * sizeof *zero);
    oct_map_forget(m.w, (size_t)w->count * (w->data ? sizeof(float) : sizeof(uint16_t)));
    return OCT_OK;
}
