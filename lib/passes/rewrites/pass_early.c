/* Pass: before opset 7, an operand could be aligned at an axis. Such operands get the dimensions that align them in the
 * same way in newer opsets. */
#include "passes/pass.h"

#include "ops/core/args.h"

static bool is_early(const oct_graph *g, const oct_node *n, int64_t opset)
{
    return n->n_in > 1 && n->in[0] >= 0 && n->in[1] >= 0 &&
           oct_early_tail(n, opset, g->value[n->in[0]].shape.rank, g->value[n->in[1]].shape.rank) > 0;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    const int64_t opset = oct_graph_opset(g, "");
    for (size_t i = 0; opset < 7 && i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_op *op = oct_op_of(g, id);
        if (op == NULL || op->raise != oct_raise_early || !is_early(g, &g->node[id], opset))
            continue;
        OCT_TRY(oct_within_node(g, id, oct_raise_early(g, id, opset, err), err));
        oct_pass_note(log, self, g->node[id].op, g->node[id].name);
        i++; /* the Unsqueeze was inserted before it */
    }
    return OCT_OK;
}

const oct_pass oct_pass_early = { "early", "give operands of opset 6 that lie at an axis the dimensions behind it", run,
                                  true };
