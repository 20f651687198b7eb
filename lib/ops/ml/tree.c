#include "ops/ml/tree.h"

#include "ops/core/elem.h"

#include <math.h>

static bool test(const oct_tree_fork *k, double v)
{
    bool member = false;
    if (isnan(v) && k->nan_is_true)
        return true;
    switch (k->mode) {
    case OCT_TREE_LEQ: return v <= k->split;
    case OCT_TREE_LT: return v < k->split;
    case OCT_TREE_GTE: return v >= k->split;
    case OCT_TREE_GT: return v > k->split;
    case OCT_TREE_EQ: return v == k->split;
    case OCT_TREE_NEQ: return v != k->split;
    default:
        for (int64_t i = 0; i < k->n_set; i++)
            member |= k->set[i] == v;
        return member;
    }
}

int64_t oct_tree_leaf_of(const oct_tree_fork *node, int64_t n, int64_t at, const oct_operand *x, int64_t row)
{
    const int64_t features = x->dims[x->rank - 1];
    for (int64_t i = 0; i < n; i++) {
        const oct_tree_fork *k = &node[at];
        const bool side = test(k, oct_elem_double(x, row * features + k->feature));
        at = k->child[side];
        if (k->leaf[side])
            return at;
    }
    return -1;
}
