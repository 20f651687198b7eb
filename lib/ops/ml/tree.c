#include "ops/ml/tree.h"

#include "ops/core/elem.h"

#include <math.h>
#include <stdio.h>

oct_status oct_tree_ints(const oct_node *n, const char *name, int64_t want, const int64_t **v, oct_err *err)
{
    int count;
    *v = oct_node_ints(n, name, &count);
    return count == want ? OCT_OK
                         : oct_fail(err, OCT_EMALFORMED, "'%s' has %d values, not %lld", name, count, (long long)want);
}

oct_status oct_tree_numbers(const oct_node *n, const char *name, int64_t want, oct_arena *arena, double **v,
                            int64_t *count, oct_err *err)
{
    char other[64];
    int n_list;
    const float *list = oct_node_floats(n, name, &n_list);
    snprintf(other, sizeof other, "%s_as_tensor", name);
    const oct_attr *a = oct_node_attr(n, other) ? oct_node_attr(n, other) : oct_node_attr(n, name);
    oct_operand o = { .dtype = OCT_F32, .count = n_list, .data = (void *)(uintptr_t)list };
    if (a && a->type == OCT_ATTR_TENSOR && a->t && a->t->data)
        o = (oct_operand){ .dtype = a->t->dtype, .count = a->t->count, .data = (void *)(uintptr_t)a->t->data };
    if (oct_dom_of(o.dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EMALFORMED, "'%s' is no tensor of numbers", name);
    *count = o.count;
    if (want >= 0 && o.count != want)
        return oct_fail(err, OCT_EMALFORMED, "'%s' has %lld values, not %lld", name, (long long)o.count,
                        (long long)want);
    if (!(*v = oct_arena_calloc(arena, (size_t)o.count + 1, sizeof **v)))
        return oct_nomem(err);
    for (int64_t i = 0; i < o.count; i++)
        (*v)[i] = oct_elem_double(&o, i);
    return OCT_OK;
}

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
