/* What a target does not load or run, though it is valid. */
#include "targets/target_int.h"

#include <string.h>

/* Whether the node only passes input 0 on, as far as the runtime's rewriting goes. */
static bool passes_on(const oct_node *n)
{
    static const char *const ops[] = { "Identity", "Cast", "Reshape", "Dropout", "Squeeze", "Unsqueeze", "Expand" };
    bool any = false;
    for (size_t i = 0; i < OCT_COUNT(ops); i++)
        any |= !n->domain[0] && strcmp(n->op, ops[i]) == 0;
    return any;
}

static bool is_product(const oct_node *n)
{
    return (!n->domain[0] && strcmp(n->op, "MatMul") == 0) || strcmp(n->op, "FusedMatMul") == 0;
}

static bool same_ranks(const oct_graph *g, const oct_node *n)
{
    const int a = g->value[n->in[0]].shape.rank, b = g->value[n->in[1]].shape.rank;
    return a >= 0 && a == b;
}

/* Whether a product of operands of unequal ranks reads the value, directly or what is passed on of it. */
static bool reaches_product(const oct_graph *g, int value, int depth)
{
    enum { DEEPEST = 8 };
    const oct_value *v = &g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_node *n = &g->node[v->uses[i].node];
        if (is_product(n) && !same_ranks(g, n))
            return true;
        if (depth < DEEPEST && passes_on(n) && v->uses[i].slot == 0 && n->out[0] >= 0 && reaches_product(g, n->out[0], depth + 1))
            return true;
    }
    return false;
}

/* Whether it moves dimension 0 to the last place or the last but one, and keeps the order of all others. */
static bool moves_first(const oct_attr *perm)
{
    int64_t next = 1;
    if (!perm || perm->n < 3 || (perm->ints[perm->n - 1] != 0 && perm->ints[perm->n - 2] != 0))
        return false;
    for (int64_t i = 0; i < perm->n; i++)
        if (perm->ints[i] != 0 && perm->ints[i] != next++)
            return false;
    return true;
}

static bool turns_batch(const oct_graph *g, const oct_node *n)
{
    return !n->domain[0] && strcmp(n->op, "Transpose") == 0 && moves_first(oct_node_attr(n, "perm")) && reaches_product(g, n->out[0], 0);
}

static bool is_mean_variance(const oct_graph *g, const oct_node *n)
{
    (void)g;
    return !n->domain[0] && strcmp(n->op, "MeanVarianceNormalization") == 0;
}

static bool is_scatter_reduction(const oct_graph *g, const oct_node *n)
{
    (void)g;
    return !n->domain[0] && (strcmp(n->op, "ScatterND") == 0 || strcmp(n->op, "ScatterElements") == 0) &&
           strcmp(oct_node_str(n, "reduction", "none"), "none") != 0;
}

static const struct {
    const char *name, *why;
    bool (*is)(const oct_graph *g, const oct_node *n);
} all[] = {
#define OCT_TRAP(name, versions, what, why, is) { name, why, is },
#include "targets/traps.inc"
#undef OCT_TRAP
};

const char *oct_target_trap_name(size_t i)
{
    return i < OCT_COUNT(all) ? all[i].name : NULL;
}

const char *oct_target_trap(const oct_target *t, const oct_graph *g, int node)
{
    for (size_t i = 0; i < OCT_COUNT(all); i++)
        if (t->traps >> i & 1 && all[i].is(g, &g->node[node]))
            return all[i].why;
    return NULL;
}
