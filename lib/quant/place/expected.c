/* lib/quant/place/expected.c -- sums the costs of layers. */
#include "quant/place/expected.h"

#include "kernels/bgemm/bgemm.h"
#include "kernels/qgemm/qgemm.h"
#include "ops/traits.h"

/* The size of the product that a layer computes, for one group. False: it has none whose time depends on the type. */
static bool extent_of(const oct_layer *l, oct_extent *e, int64_t *groups)
{
    const oct_node *node = &l->d.graph->node[l->d.node];
    const oct_op *op = oct_op_of(l->d.graph, l->d.node);
    *groups = oct_node_int(node, "group", 1);
    if (!l->product || (op && op->quant == OCT_QUANT_RECURRENT) || l->depth < 1 || *groups < 1 ||
        l->weight_count / l->depth < *groups)
        return false;
    const int64_t n = l->weight_count / l->depth / *groups;
    *e = (oct_extent){ .rows = (size_t)(l->macs / l->weight_count), .n = (size_t)n, .depth = (size_t)l->depth };
    return n > 1 || *groups == 1;
}

oct_expected oct_expected_times(const oct_layer *layers, size_t n, oct_isa have)
{
    oct_expected sum = { 0 };
    for (size_t i = 0; i < n; i++) {
        oct_extent e;
        int64_t groups;
        if (!extent_of(&layers[i], &e, &groups))
            continue;
        const double decided =
            (layers[i].d.integer ? oct_qgemm_choose(have, &e, false) : oct_sgemm_choose(have, &e)).cost;
        const double bf16 = oct_bgemm_choose(have, &e).cost;
        if (decided <= 0 || bf16 <= 0)
            continue;
        sum.decided += (double)groups * decided;
        sum.bf16 += (double)groups * bf16;
    }
    return sum;
}
