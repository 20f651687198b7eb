/* ai.onnx.ml.TreeEnsemble: each sample walks down every tree; the leaves' weights are put together by target.
 *
 * Splits and features are compared as doubles, which hold every value of the operator's types; weights add in double,
 * trees in order, and are rounded once. Transforms are numbered as the specification does it; ONNX Runtime 1.31 takes 1
 * and 2 for each other. */
#include "ops/core/elem.h"
#include "ops/ml/class_scores.h"
#include "ops/ml/tree.h"

#include <math.h>
#include <string.h>

enum { AVERAGE, SUM, LEAST, MOST, AGGREGATES };

typedef struct forest {
    int64_t n_nodes, n_leaves, n_trees, targets;
    int aggregate;
    oct_ml_transform transform;
    const oct_tree_fork *node;
    const int64_t *root, *target;
    const double *weight;
} forest;

/* ------------------------------------------------------------------ reading the attributes */

static oct_status read_child(const forest *f, oct_tree_fork *k, int side, int64_t leaf, int64_t child, oct_err *err)
{
    k->leaf[side] = leaf != 0;
    k->child[side] = child;
    if (child < 0 || child >= (leaf != 0 ? f->n_leaves : f->n_nodes))
        return oct_fail(err, OCT_EMALFORMED, "a node leads to %s %lld of %lld", leaf != 0 ? "leaf" : "node",
                        (long long)child, (long long)(leaf != 0 ? f->n_leaves : f->n_nodes));
    return OCT_OK;
}

/* The sets of the nodes that ask for membership, in the order of these, each ended by a NaN. */
static oct_status read_sets(const oct_node *n, forest *f, oct_tree_fork *node, oct_arena *arena, oct_err *err)
{
    double *v;
    int64_t count, at = 0;
    OCT_TRY(oct_tree_numbers(n, "membership_values", -1, arena, &v, &count, err));
    for (int64_t i = 0; i < f->n_nodes; i++) {
        if (node[i].mode != OCT_TREE_MEMBER)
            continue;
        if (at >= count)
            return oct_fail(err, OCT_EMALFORMED, "'membership_values' has no set for node %lld", (long long)i);
        node[i].set = v + at;
        while (at < count && !isnan(v[at]))
            at++;
        node[i].n_set = v + at - node[i].set;
        at++;
    }
    return OCT_OK;
}

static oct_status read_nodes(const oct_node *n, forest *f, oct_arena *arena, oct_err *err)
{
    const int64_t *feature, *leaf[2], *child[2], *tracks = NULL;
    double *mode, *split;
    int64_t count;
    OCT_TRY(oct_tree_numbers(n, "nodes_modes", f->n_nodes, arena, &mode, &count, err));
    OCT_TRY(oct_tree_numbers(n, "nodes_splits", f->n_nodes, arena, &split, &count, err));
    OCT_TRY(oct_tree_ints(n, "nodes_featureids", f->n_nodes, &feature, err));
    OCT_TRY(oct_tree_ints(n, "nodes_falseleafs", f->n_nodes, &leaf[0], err));
    OCT_TRY(oct_tree_ints(n, "nodes_trueleafs", f->n_nodes, &leaf[1], err));
    OCT_TRY(oct_tree_ints(n, "nodes_falsenodeids", f->n_nodes, &child[0], err));
    OCT_TRY(oct_tree_ints(n, "nodes_truenodeids", f->n_nodes, &child[1], err));
    if (oct_node_attr(n, "nodes_missing_value_tracks_true"))
        OCT_TRY(oct_tree_ints(n, "nodes_missing_value_tracks_true", f->n_nodes, &tracks, err));
    oct_tree_fork *node = oct_arena_calloc(arena, (size_t)f->n_nodes + 1, sizeof *node);
    if (!node)
        return oct_nomem(err);
    for (int64_t i = 0; i < f->n_nodes; i++) {
        if (!(mode[i] >= 0 && mode[i] < OCT_TREE_MODES) || feature[i] < 0)
            return oct_fail(err, OCT_EMALFORMED, "node %lld has mode %g and feature %lld", (long long)i, mode[i],
                            (long long)feature[i]);
        node[i] = (oct_tree_fork){
            .split = split[i], .feature = feature[i], .mode = (uint8_t)mode[i], .nan_is_true = tracks && tracks[i] != 0
        };
        for (int side = 0; side < 2; side++)
            OCT_TRY(read_child(f, &node[i], side, leaf[side][i], child[side][i], err));
    }
    f->node = node;
    return read_sets(n, f, node, arena, err);
}

static oct_status read_leaves(const oct_node *n, forest *f, oct_arena *arena, oct_err *err)
{
    double *weight;
    OCT_TRY(oct_tree_numbers(n, "leaf_weights", f->n_leaves, arena, &weight, &f->n_leaves, err));
    OCT_TRY(oct_tree_ints(n, "leaf_targetids", f->n_leaves, &f->target, err));
    for (int64_t i = 0; i < f->n_leaves; i++)
        if (f->target[i] < 0 || f->target[i] >= f->targets)
            return oct_fail(err, OCT_EMALFORMED, "leaf %lld is of target %lld of %lld", (long long)i,
                            (long long)f->target[i], (long long)f->targets);
    f->weight = weight;
    return OCT_OK;
}

static oct_status read_forest(const oct_node *n, forest *f, oct_arena *arena, oct_err *err)
{
    int count;
    const int64_t aggregate = oct_node_int(n, "aggregate_function", SUM),
                  transform = oct_node_int(n, "post_transform", OCT_ML_NONE);
    *f = (forest){ .targets = oct_node_int(n, "n_targets", 1) };
    if (aggregate < 0 || aggregate >= AGGREGATES || f->targets < 1)
        return oct_fail(err, OCT_EMALFORMED, "aggregate function %lld, %lld targets", (long long)aggregate,
                        (long long)f->targets);
    if (transform < 0 || transform >= OCT_ML_TRANSFORMS)
        return oct_fail(err, OCT_EUNSUPPORTED, "post_transform %lld", (long long)transform);
    f->aggregate = (int)aggregate;
    f->transform = (oct_ml_transform)transform;
    oct_node_ints(n, "nodes_featureids", &count);
    f->n_nodes = count;
    oct_node_ints(n, "leaf_targetids", &count);
    f->n_leaves = count;
    OCT_TRY(read_leaves(n, f, arena, err));
    OCT_TRY(read_nodes(n, f, arena, err));
    f->root = oct_node_ints(n, "tree_roots", &count);
    f->n_trees = count;
    if (!count)
        return oct_fail(err, OCT_EMALFORMED, "'tree_roots' has no value");
    for (int64_t i = 0; i < f->n_trees; i++)
        if (f->root[i] < 0 || f->root[i] >= f->n_nodes)
            return oct_fail(err, OCT_EMALFORMED, "tree %lld begins at node %lld of %lld", (long long)i,
                            (long long)f->root[i], (long long)f->n_nodes);
    return OCT_OK;
}

/* ------------------------------------------------------------------ the operator */

static oct_status tree_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    const int64_t targets = oct_node_int(oct_in_node(c), "n_targets", 1);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank != 2 || targets < 1)
        return oct_fail(err, OCT_EMALFORMED, "%lld targets of an input of %d dimensions, expected 2",
                        (long long)targets, x.rank);
    return oct_out_shape(c, 0, 2, (oct_dim[]){ x.d[0], oct_dim_of(targets) }, err);
}

static oct_status tree_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0];
    const oct_dom dom = oct_dom_of(x->dtype);
    forest *f = oct_arena_calloc(p->arena, 1, sizeof *f);
    if (!f)
        return oct_nomem(err);
    s->state = f;
    if (dom != OCT_DOM_F && dom != OCT_DOM_D)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(x->dtype));
    OCT_TRY(read_forest(s->node, f, p->arena, err));
    for (int64_t i = 0; i < f->n_nodes; i++)
        if (f->node[i].feature >= x->dims[1])
            return oct_fail(err, OCT_EMALFORMED, "node %lld asks for feature %lld of %lld", (long long)i,
                            (long long)f->node[i].feature, (long long)x->dims[1]);
    return oct_mul_size((size_t)f->targets, 2 * sizeof(double), &s->scratch) ? OCT_OK : oct_nomem(err);
}

/* Results of a sample, by target, into v; seen counts a target's leaves. */
static bool sample(const forest *f, const oct_operand *x, int64_t row, double *v, double *seen)
{
    memset(v, 0, (size_t)f->targets * sizeof *v);
    memset(seen, 0, (size_t)f->targets * sizeof *seen);
    for (int64_t t = 0; t < f->n_trees; t++) {
        const int64_t leaf = oct_tree_leaf_of(f->node, f->n_nodes, f->root[t], x, row);
        if (leaf < 0)
            return false;
        const int64_t to = f->target[leaf];
        const double w = f->weight[leaf];
        if (f->aggregate == SUM || f->aggregate == AVERAGE)
            v[to] += w;
        else if (seen[to] == 0.0 || (f->aggregate == LEAST ? w < v[to] : w > v[to]))
            v[to] = w;
        seen[to] += 1.0;
    }
    for (int64_t i = 0; f->aggregate == AVERAGE && i < f->targets; i++)
        v[i] /= (double)f->n_trees;
    oct_ml_transform_scores(f->transform, v, f->targets);
    return true;
}

static oct_status tree_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const forest *f = s->state;
    double *v = r->scratch, *seen = v + f->targets;
    for (int64_t row = 0; row < s->in[0]->dims[0]; row++) {
        if (!sample(f, s->in[0], row, v, seen))
            return oct_fail(err, OCT_EMALFORMED, "nodes of a tree lead in a circle");
        oct_elem_store(s->out[0]->dtype, s->out[0]->data, row * f->targets, 1, f->targets, OCT_DOM_D, v);
    }
    return OCT_OK;
}

const oct_op oct_op_tree_ensemble = {
    OCT_SCHEMA("TreeEnsemble", "ai.onnx.ml", 5, 1, 1, 1, 1),
    .work = OCT_WORK_PAIRS,
    .takes_nan = true,
    .infer = tree_infer,
    .prepare = tree_prepare,
    .run = tree_run,
};
