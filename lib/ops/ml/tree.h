/* lib/ops/ml/tree.h -- what both operators of decision trees share: reading attributes, a node, and a sample's way
 * down. */
#ifndef OCT_OPS_TREE_H
#define OCT_OPS_TREE_H

#include "ops/op.h"

typedef enum oct_tree_mode {
    OCT_TREE_LEQ,
    OCT_TREE_LT,
    OCT_TREE_GTE,
    OCT_TREE_GT,
    OCT_TREE_EQ,
    OCT_TREE_NEQ,
    OCT_TREE_MEMBER,
    OCT_TREE_MODES
} oct_tree_mode;

typedef struct oct_tree_fork {
    double split;
    int64_t feature, child[2]; /* [1]: where the test is true */
    const double *set;         /* OCT_TREE_MEMBER: n_set values */
    int64_t n_set;
    uint8_t mode;
    bool leaf[2], nan_is_true;
} oct_tree_fork;

/* The integers of an attribute, `want` of them. */
oct_status oct_tree_ints(const oct_node *n, const char *name, int64_t want, const int64_t **v, oct_err *err);
/* The numbers of an attribute that is a list or a tensor, or of the tensor of its name and _as_tensor; want -1: any
 * number of them. */
oct_status oct_tree_numbers(const oct_node *n, const char *name, int64_t want, oct_arena *arena, double **v,
                            int64_t *count, oct_err *err);

/* The leaf to which a row of x, [rows, features], comes from node `at` of n; -1 where nodes lead in a circle. Children
 * are nodes below n, or leaves, and features those of x. */
int64_t oct_tree_leaf_of(const oct_tree_fork *node, int64_t n, int64_t at, const oct_operand *x, int64_t row);

#endif
