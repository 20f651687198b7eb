/* Rewrites products with several matrices, [experts][k][n], as a product for each matrix, between a Split of the data
 * where each matrix has its own, and a Concat. This is done if the weights will be in blocks: MatMulNBits takes one
 * matrix, which is then rounded with the samples that its own data make. (forms/write/unroll_product.c) */
#include "quant/job/unroll_products.h"

#include "forms/write/forms_write.h"
#include "ops/traits.h"
#include "passes/match.h"
#include "passes/pass.h"
#include "quant/job/placed.h"
#include "quant/weights/weights.h"

enum { MOST_MATRICES = 128, SPLIT_SINCE = 13 };

/* The dimension of the matrices must be known in the data. *splits: there each matrix has its own; else all multiply
 * the same. */
static bool match(const oct_qjob *j, int id, bool *splits)
{
    const oct_graph *g = j->g;
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    const oct_tensor *w = oct_layer_weights(g, id);
    if (!op || !op->weights.blocks || !w || w->rank != 3 || w->dtype != OCT_F32 || !w->data || n->n_in != 2 ||
        n->n_out != 1 || oct_row_of(j, id)->scheme != OCT_SCHEME_WEIGHT_ONLY || oct_graph_opset(g, "") < SPLIT_SINCE ||
        !oct_target_lists(j->opts.target, n->op, OCT_TARGET_WEIGHT_ONLY))
        return false;
    const oct_shape *x = &g->value[n->in[0]].shape;
    const int64_t own = x->rank >= 3 ? x->d[x->rank - 3].n : -1;
    *splits = own > 1;
    return w->dims[0] > 1 && w->dims[0] <= MOST_MATRICES && (own == 1 || own == w->dims[0]) &&
           oct_value_used_once(&g->value[n->in[1]]) && !g->value[n->in[1]].is_output &&
           oct_constant_is_finite(j, n->in[1]);
}

oct_status oct_unroll_products(oct_qjob *j, bool *any, oct_err *err)
{
    *any = false;
    for (size_t i = 0; i < j->n_layer; i++) {
        bool splits;
        if (!match(j, j->layer[i], &splits))
            continue;
        const char *name = j->g->node[j->layer[i]].name;
        OCT_TRY(oct_unroll_product(j->g, j->layer[i], splits, err));
        if (j->opts.log && j->opts.log->change)
            j->opts.log->change(j->opts.log->arg, "unroll", "each of its matrices has a product of its own", name);
        *any = true;
    }
    if (!*any)
        return OCT_OK;
    oct_graph_prune(j->g);
    return oct_infer_shapes(j->g, err);
}
