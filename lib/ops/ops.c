/* The list of operators, and what is asked of it. */
#include "ops/op.h"

#include "base/io.h"

#include <math.h>
#include <pthread.h>
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

/* Lists of records whose types have the same hash, in the order of the table. Passes look up records so often that a
 * linear search took most of the time of large graphs. */
enum { SLOTS = 1024 };
static uint16_t first_of[SLOTS], next_of[OCT_COUNT(all)]; /* 1 + the index of a record; 0: none */

static size_t slot_of(const char *type)
{
    return (size_t)oct_hash(OCT_HASH_INIT, type, strlen(type)) % SLOTS;
}

static void index_records(void)
{
    for (size_t i = OCT_COUNT(all) - 1; i-- > 0;) {
        uint16_t *first = &first_of[slot_of(all[i]->type)];
        next_of[i] = *first;
        *first = (uint16_t)(i + 1);
    }
}

const oct_op *oct_op_find(const char *domain, const char *type, int64_t opset)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, index_records);
    for (uint16_t i = first_of[slot_of(type)]; i; i = next_of[i - 1]) {
        const oct_op *op = all[i - 1];
        if (opset >= op->since && (op->until == 0 || opset <= op->until) && strcmp(op->type, type) == 0 &&
            strcmp(op->domain, domain) == 0)
            return op;
    }
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
