/* The list of operators, and what is asked of it. */
#include "ops/op.h"

#include <math.h>
#include <string.h>

#define OCT_OP(record) extern const oct_op record;
#include "ops/ops.inc"
#undef OCT_OP

static const oct_op *const all[] = {
#define OCT_OP(record) &record,
#include "ops/ops.inc"
#undef OCT_OP
    NULL,
};

const oct_op *const *oct_op_all(size_t *n)
{
    *n = OCT_COUNT(all) - 1;
    return all;
}

const oct_op *oct_op_find(const char *domain, const char *type, int64_t opset)
{
    for (size_t i = 0; all[i]; i++)
        if (strcmp(all[i]->type, type) == 0 && strcmp(all[i]->domain, domain) == 0 && opset >= all[i]->since &&
            (all[i]->until == 0 || opset <= all[i]->until))
            return all[i];
    return NULL;
}

const oct_op *oct_op_of(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    return oct_op_find(n->domain, n->op, oct_node_opset(g, n));
}

bool oct_op_shares_scales(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_op *op = oct_op_of(g, g->order[i]);
        const oct_graph *nested;
        if (op && op->shared_scale)
            return true;
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            if (oct_op_shares_scales(nested))
                return true;
    }
    return false;
}

bool oct_op_clamp(const oct_graph *g, int node, float *lo, float *hi)
{
    const oct_op *op = oct_op_of(g, node);
    *lo = -INFINITY;
    *hi = INFINITY;
    return op && op->clamp && op->clamp(g, node, lo, hi) && *lo <= *hi;
}
