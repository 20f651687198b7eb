/* Of ai.onnx.ml: TreeEnsembleClassifier and TreeEnsembleRegressor, whose nodes are listed by tree and number.
 *
 * As in TreeEnsemble, splits are compared as doubles, and weights add in double and are rounded once. Of two classes
 * that both have weights the one with the larger sum wins, as of more; ONNX Runtime 1.31 answers with 1 or 0, whatever
 * the labels, and by the sum of the second class alone. */
#include "ops/core/elem.h"
#include "ops/ml/class_scores.h"
#include "ops/ml/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ML "ai.onnx.ml"

typedef enum aggregate { SUM, AVERAGE, LEAST, MOST, AGGREGATES } aggregate;

/* A node's tree and number, to be found by. */
typedef struct key {
    int64_t tree, number, at;
} key;

typedef struct forest {
    int64_t n_nodes, n_trees, n_results;
    oct_tree_fork *node; /* children that are leaves are counted like nodes */
    bool *is_leaf;
    key *key;              /* [n_nodes], sorted */
    int64_t *root;         /* [n_trees] */
    int64_t *from;         /* [n_nodes + 1]: the weights of node i are from[i] .. from[i + 1] */
    int64_t *result;       /* of a weight */
    const double **weight; /* of a weight, in the order of nodes */
    const double *base;    /* [n_base] */
    int64_t n_base;
    int64_t n_features;
    aggregate aggregate;
    oct_ml_transform transform;
    int64_t only;      /* the class that alone has weights; -1: several have */
    bool all_positive; /* no weight is negative */
} forest;

/* ------------------------------------------------------------------ reading the attributes */

static int compare_keys(const void *a, const void *b)
{
    const key *x = a, *y = b;
    return x->tree != y->tree ? (x->tree < y->tree ? -1 : 1) : (x->number > y->number) - (x->number < y->number);
}

/* The node of a tree by its number; -1: there is none. */
static int64_t find(const forest *f, int64_t tree, int64_t number)
{
    const key want = { .tree = tree, .number = number };
    const key *k = f->n_nodes ? bsearch(&want, f->key, (size_t)f->n_nodes, sizeof want, compare_keys) : NULL;
    return k ? k->at : -1;
}

static oct_status read_mode(const char *word, uint8_t *mode, bool *is_leaf, oct_err *err)
{
    static const char *const names[] = {
        "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"
    };
    *is_leaf = strcmp(word, "LEAF") == 0;
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strcmp(word, names[i]) == 0) {
            *mode = (uint8_t)i;
            return OCT_OK;
        }
    return *is_leaf ? OCT_OK : oct_fail(err, OCT_EMALFORMED, "a node has mode '%.40s'", word);
}

static oct_status link_children(const oct_node *n, forest *f, const int64_t *tree, bool *is_child, oct_err *err)
{
    static const char *const names[2] = { "nodes_falsenodeids", "nodes_truenodeids" };
    for (int side = 0; side < 2; side++) {
        const int64_t *number;
        OCT_TRY(oct_tree_ints(n, names[side], f->n_nodes, &number, err));
        for (int64_t i = 0; i < f->n_nodes; i++) {
            if (f->is_leaf[i])
                continue;
            const int64_t to = find(f, tree[i], number[i]);
            if (to < 0)
                return oct_fail(err, OCT_EMALFORMED, "node %lld of tree %lld leads to node %lld, which is not there",
                                (long long)i, (long long)tree[i], (long long)number[i]);
            f->node[i].child[side] = to;
            f->node[i].leaf[side] = f->is_leaf[to];
            is_child[to] = true;
        }
    }
    return OCT_OK;
}

/* The root of a tree is its node to which no other leads. */
static oct_status find_roots(forest *f, const bool *is_child, oct_err *err)
{
    for (int64_t i = 0; i < f->n_nodes;) {
        int64_t next = i, root = -1, n = 0;
        for (; next < f->n_nodes && f->key[next].tree == f->key[i].tree; next++)
            if (!is_child[f->key[next].at]) {
                root = f->key[next].at;
                n++;
            }
        if (n != 1)
            return oct_fail(err, OCT_EMALFORMED, "tree %lld has %lld roots", (long long)f->key[i].tree, (long long)n);
        f->root[f->n_trees++] = root;
        i = next;
    }
    return OCT_OK;
}

static oct_status read_nodes(const oct_node *n, forest *f, oct_arena *arena, oct_err *err)
{
    const int64_t *tree, *number, *feature, *tracks = NULL;
    double *split;
    int64_t count_splits;
    int count;
    const oct_attr *modes = oct_node_attr(n, "nodes_modes");
    oct_node_ints(n, "nodes_treeids", &count);
    f->n_nodes = count;
    f->node = oct_arena_calloc(arena, (size_t)count + 1, sizeof *f->node);
    f->is_leaf = oct_arena_calloc(arena, (size_t)count + 1, sizeof *f->is_leaf);
    f->key = oct_arena_calloc(arena, (size_t)count + 1, sizeof *f->key);
    f->root = oct_arena_calloc(arena, (size_t)count + 1, sizeof *f->root);
    bool *is_child = oct_arena_calloc(arena, (size_t)count + 1, sizeof *is_child);
    if (!f->node || !f->is_leaf || !f->key || !f->root || !is_child)
        return oct_nomem(err);
    OCT_TRY(oct_tree_ints(n, "nodes_treeids", count, &tree, err));
    OCT_TRY(oct_tree_ints(n, "nodes_nodeids", count, &number, err));
    OCT_TRY(oct_tree_ints(n, "nodes_featureids", count, &feature, err));
    OCT_TRY(oct_tree_numbers(n, "nodes_values", count, arena, &split, &count_splits, err));
    if (oct_node_attr(n, "nodes_missing_value_tracks_true"))
        OCT_TRY(oct_tree_ints(n, "nodes_missing_value_tracks_true", count, &tracks, err));
    if (!modes || modes->type != OCT_ATTR_STRINGS || modes->n != count)
        return oct_fail(err, OCT_EMALFORMED, "'nodes_modes' is no list of %d words", count);
    for (int i = 0; i < count; i++) {
        f->key[i] = (key){ tree[i], number[i], i };
        f->node[i] =
            (oct_tree_fork){ .split = split[i], .feature = feature[i], .nan_is_true = tracks && tracks[i] != 0 };
        OCT_TRY(read_mode(modes->strings[i], &f->node[i].mode, &f->is_leaf[i], err));
        if (!f->is_leaf[i] && (feature[i] < 0 || feature[i] >= f->n_features))
            return oct_fail(err, OCT_EMALFORMED, "node %d asks for feature %lld of %lld", i, (long long)feature[i],
                            (long long)f->n_features);
    }
    if (count)
        qsort(f->key, (size_t)count, sizeof *f->key, compare_keys);
    for (int i = 1; i < count; i++)
        if (compare_keys(&f->key[i - 1], &f->key[i]) == 0)
            return oct_fail(err, OCT_EMALFORMED, "node %lld of tree %lld is there twice", (long long)f->key[i].number,
                            (long long)f->key[i].tree);
    OCT_TRY(link_children(n, f, tree, is_child, err));
    return find_roots(f, is_child, err);
}

/* The attributes of leaves: their names begin with class_ or target_. */
static const char *const class_names[] = { "class_treeids", "class_nodeids", "class_ids", "class_weights" };
static const char *const target_names[] = { "target_treeids", "target_nodeids", "target_ids", "target_weights" };

static oct_status read_weights(const oct_node *n, forest *f, const char *const *names, oct_arena *arena, oct_err *err)
{
    const int64_t *tree, *number, *result;
    double *weight;
    int64_t n_weights;
    OCT_TRY(oct_tree_numbers(n, names[3], -1, arena, &weight, &n_weights, err));
    OCT_TRY(oct_tree_ints(n, names[0], n_weights, &tree, err));
    OCT_TRY(oct_tree_ints(n, names[1], n_weights, &number, err));
    OCT_TRY(oct_tree_ints(n, names[2], n_weights, &result, err));
    f->from = oct_arena_calloc(arena, (size_t)f->n_nodes + 2, sizeof *f->from);
    f->result = oct_arena_calloc(arena, (size_t)n_weights + 1, sizeof *f->result);
    f->weight = oct_arena_calloc(arena, (size_t)n_weights + 1, sizeof *f->weight);
    int64_t *leaf = oct_arena_calloc(arena, (size_t)n_weights + 1, sizeof *leaf);
    if (!f->from || !f->result || !f->weight || !leaf)
        return oct_nomem(err);
    f->only = n_weights ? result[0] : -1;
    f->all_positive = true;
    for (int64_t i = 0; i < n_weights; i++) {
        leaf[i] = find(f, tree[i], number[i]);
        if (leaf[i] < 0 || result[i] < 0 || result[i] >= f->n_results)
            return oct_fail(err, OCT_EMALFORMED, "weight %lld is of node %lld of tree %lld and result %lld of %lld",
                            (long long)i, (long long)number[i], (long long)tree[i], (long long)result[i],
                            (long long)f->n_results);
        f->from[leaf[i] + 2]++;
        f->only = result[i] == f->only ? f->only : -1;
        f->all_positive &= !(weight[i] < 0.0);
    }
    for (int64_t i = 2; i < f->n_nodes + 2; i++)
        f->from[i] += f->from[i - 1];
    for (int64_t i = 0; i < n_weights; i++) { /* afterwards from[k] is where the weights of node k begin */
        const int64_t at = f->from[leaf[i] + 1]++;
        f->result[at] = result[i];
        f->weight[at] = &weight[i];
    }
    return OCT_OK;
}

static oct_status read_forest(const oct_node *n, int64_t n_features, int64_t n_results, const char *const *names,
                              forest *f, oct_arena *arena, oct_err *err)
{
    double *base;
    *f = (forest){ .n_results = n_results, .n_features = n_features };
    OCT_TRY(oct_ml_transform_of(n, &f->transform, err));
    OCT_TRY(read_nodes(n, f, arena, err));
    OCT_TRY(read_weights(n, f, names, arena, err));
    OCT_TRY(oct_tree_numbers(n, "base_values", -1, arena, &base, &f->n_base, err));
    f->base = base;
    const bool one = f->n_base == 1 && (n_results == 1 || (n_results == 2 && f->only >= 0));
    if (f->n_base && f->n_base != n_results && !one)
        return oct_fail(err, OCT_EMALFORMED, "%lld base values for %lld results", (long long)f->n_base,
                        (long long)n_results);
    return OCT_OK;
}

/* ------------------------------------------------------------------ a sample */

/* The weights of the leaves of all trees, by result. seen[n_results] counts those of each. */
static oct_status add_trees(const forest *f, const oct_operand *x, int64_t row, double *v, int64_t *seen, oct_err *err)
{
    memset(v, 0, (size_t)f->n_results * sizeof *v);
    if (seen)
        memset(seen, 0, (size_t)f->n_results * sizeof *seen);
    for (int64_t t = 0; t < f->n_trees; t++) {
        const int64_t root = f->root[t];
        const int64_t leaf = f->is_leaf[root] ? root : oct_tree_leaf_of(f->node, f->n_nodes, root, x, row);
        if (leaf < 0)
            return oct_fail(err, OCT_EMALFORMED, "nodes of a tree lead in a circle");
        for (int64_t i = f->from[leaf]; i < f->from[leaf + 1]; i++) {
            const int64_t to = f->result[i];
            const double w = *f->weight[i];
            if (!seen || f->aggregate == SUM || f->aggregate == AVERAGE)
                v[to] += w;
            else if (!seen[to]++ || (f->aggregate == LEAST ? w < v[to] : w > v[to]))
                v[to] = w;
        }
    }
    return OCT_OK;
}

/* ------------------------------------------------------------------ TreeEnsembleRegressor */

static oct_status regressor_infer(const oct_infer *c, oct_err *err)
{
    return oct_ml_targets_infer(c, "n_targets", err);
}

static oct_status read_aggregate(const oct_node *n, aggregate *a, oct_err *err)
{
    static const char *const names[AGGREGATES] = { "SUM", "AVERAGE", "MIN", "MAX" };
    const char *word = oct_node_str(n, "aggregate_function", "SUM");
    for (int i = 0; i < AGGREGATES; i++)
        if (strcmp(word, names[i]) == 0) {
            *a = (aggregate)i;
            return OCT_OK;
        }
    return oct_fail(err, OCT_EMALFORMED, "aggregate_function is '%.40s'", word);
}

static oct_status regressor_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    int64_t rows, features;
    forest *f = oct_arena_calloc(p->arena, 1, sizeof *f);
    if (!f)
        return oct_nomem(err);
    s->state = f;
    OCT_TRY(oct_ml_rows(s->in[0], &rows, &features, err));
    OCT_TRY(read_forest(s->node, features, s->out[0]->dims[1], target_names, f, p->arena, err));
    OCT_TRY(read_aggregate(s->node, &f->aggregate, err));
    return oct_mul_size((size_t)f->n_results, sizeof(double) + sizeof(int64_t), &s->scratch) ? OCT_OK : oct_nomem(err);
}

static oct_status regressor_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const forest *f = s->state;
    double *v = r->scratch;
    for (int64_t row = 0; row < s->out[0]->dims[0]; row++) {
        OCT_TRY(add_trees(f, s->in[0], row, v, (int64_t *)(v + f->n_results), err));
        for (int64_t i = 0; i < f->n_results; i++) {
            v[i] = f->aggregate == AVERAGE && f->n_trees ? v[i] / (double)f->n_trees : v[i];
            v[i] += f->n_base ? f->base[i] : 0.0;
        }
        oct_ml_transform_scores(f->transform, v, f->n_results);
        oct_elem_store(OCT_F32, s->out[0]->data, row * f->n_results, 1, f->n_results, OCT_DOM_D, v);
    }
    return OCT_OK;
}

const oct_op oct_op_tree_regressor = {
    OCT_SCHEMA("TreeEnsembleRegressor", ML, 1, 1, 1, 1, 1),
    .work = OCT_WORK_PAIRS,
    .takes_nan = true,
    .infer = regressor_infer,
    .prepare = regressor_prepare,
    .run = regressor_run,
};

/* ------------------------------------------------------------------ TreeEnsembleClassifier */

static oct_status classifier_infer(const oct_infer *c, oct_err *err)
{
    oct_ml_labels labels;
    OCT_TRY(oct_ml_labels_read(oct_in_node(c), "classlabels_int64s", &labels, err));
    return oct_ml_classes_infer(c, &labels, labels.n, err);
}

/* Of two classes of which class 0 alone has weights, these are those of the second label, and class 0 gets their
 * counterpart: the rest to 1 where no weight is negative, else the same with another sign. */
static void two_scores(const forest *f, double *v, int64_t *label)
{
    const double s = v[f->only] + (f->n_base ? f->base[f->n_base > 1 ? f->only : 0] : 0.0);
    *label = s > (f->all_positive ? 0.5 : 0.0);
    if (f->only == 1) {
        v[0] = f->n_base > 1 ? f->base[0] : 0.0;
        v[1] = s;
        oct_ml_transform_scores(f->transform, v, 2);
        return;
    }
    v[0] = f->transform == OCT_ML_LOGISTIC || !f->all_positive ? -s : 1.0 - s;
    v[1] = s;
    if (f->transform == OCT_ML_LOGISTIC)
        oct_ml_transform_scores(f->transform, v, 2);
}

static oct_status score(const void *state, const oct_operand *x, int64_t row, double *v, int64_t *label, oct_err *err)
{
    const forest *f = state;
    OCT_TRY(add_trees(f, x, row, v, NULL, err));
    if (f->n_results == 2 && f->only >= 0) {
        two_scores(f, v, label);
        return OCT_OK;
    }
    *label = 0;
    for (int64_t i = 0; i < f->n_results; i++) {
        v[i] += f->n_base ? f->base[i] : 0.0;
        *label = v[i] > v[*label] ? i : *label;
    }
    oct_ml_transform_scores(f->transform, v, f->n_results);
    return OCT_OK;
}

static oct_status classifier_exec(oct_exec *x, oct_err *err)
{
    oct_ml_labels labels;
    int64_t features;
    forest f;
    OCT_TRY(oct_ml_features_of(x, &features, err));
    OCT_TRY(oct_ml_labels_read(x->node, "classlabels_int64s", &labels, err));
    oct_arena *a = oct_arena_create();
    if (!a)
        return oct_nomem(err);
    oct_status s = read_forest(x->node, features, labels.n, class_names, &f, a, err);
    if (s == OCT_OK)
        s = oct_ml_classify(x, &labels, labels.n, score, &f, err);
    oct_arena_destroy(a);
    return s;
}

const oct_op oct_op_tree_classifier = {
    OCT_SCHEMA("TreeEnsembleClassifier", ML, 1, 1, 1, 2, 2),
    .work = OCT_WORK_PAIRS,
    .takes_nan = true,
    .infer = classifier_infer,
    .exec = classifier_exec,
    .decision = OCT_CLASSIFIES,
};
