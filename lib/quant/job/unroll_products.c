/* Rewrites products with several matrices, [experts][k][n], as a product for each matrix, between a Split of the data
 * where each matrix has its own, and a Concat. This is done if the weights will be in blocks: MatMulNBits takes one
 * matrix, which is then rounded with the samples that its own data make. */
#include "forms/edit.h"
#include "ops/traits.h"
#include "passes/match.h"
#include "quant/job/job.h"
#include "quant/weights/weights.h"

enum { MOST_MATRICES = 128, SPLIT_SINCE = 13 };

typedef struct several {
    int node;
    int64_t matrices;
    bool splits; /* each matrix has data of its own; false: all multiply the same */
} several;

/* The dimensions of data and result must be known to have one matrix after another. */
static bool match(const oct_qjob *j, int id, several *s)
{
    const oct_graph *g = j->g;
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    const oct_tensor *w = oct_layer_weights(g, id);
    if (!op || !op->weights.blocks || !w || w->rank != 3 || w->dtype != OCT_F32 || !w->data || n->n_in != 2 ||
        n->n_out != 1 || oct_row_of(j, id)->scheme != OCT_SCHEME_WEIGHT_ONLY || oct_graph_opset(g, "") < SPLIT_SINCE ||
        !oct_target_lists(j->opts.target, n->op, OCT_TARGET_WEIGHT_ONLY))
        return false;
    const oct_shape *x = &g->value[n->in[0]].shape;
    const int64_t own = x->rank >= 3 ? x->d[x->rank - 3].n : -1;
    *s = (several){ id, w->dims[0], own > 1 };
    return w->dims[0] > 1 && w->dims[0] <= MOST_MATRICES && (own == 1 || own == w->dims[0]) &&
           oct_value_used_once(&g->value[n->in[1]]) && !g->value[n->in[1]].is_output &&
           oct_constant_is_finite(j, n->in[1]);
}

/* One matrix, which refers to the constant. */
static oct_status matrix_of(oct_graph *g, int w, int64_t e, int *v, oct_err *err)
{
    const oct_tensor *all = g->value[w].constant;
    oct_tensor *one = oct_arena_memdup(g->arena, all, sizeof *all);
    const char *name = oct_arena_printf(g->arena, "%s.%lld", g->value[w].name, (long long)e);
    if (!one || !name || !(one->dims = oct_arena_memdup(g->arena, all->dims + 1, 2 * sizeof *all->dims)))
        return oct_nomem(err);
    one->rank = 2;
    one->count = all->count / all->dims[0];
    one->bytes = (size_t)one->count * sizeof(float);
    one->data = (const float *)all->data + e * one->count;
    return oct_edit_refer(g, name, "", one, v, err);
}

static oct_status unroll(oct_graph *g, const several *s, oct_err *err)
{
    const int id = s->node, x = g->node[id].in[0], w = g->node[id].in[1], y = g->node[id].out[0];
    const int rank = g->value[x].shape.rank, axis = rank - 3;
    const char *base = g->value[y].name;
    int split = -1, concat, part, v;
    OCT_TRY(oct_graph_add_node(g, "Concat", "", g->node[id].name, (int)s->matrices, 1, oct_graph_next(g, id), &concat,
                               err));
    if (s->splits) {
        OCT_TRY(oct_graph_add_node(g, "Split", "", "", 1, (int)s->matrices, id, &split, err));
        OCT_TRY(oct_graph_set_input(g, split, 0, x, err));
        OCT_TRY(oct_node_set_int(g, split, "axis", axis, err));
        if (oct_graph_opset(g, "") >= 18)
            OCT_TRY(oct_node_set_int(g, split, "num_outputs", s->matrices, err));
    }
    for (int64_t e = 0; e < s->matrices; e++) {
        int product, from = x;
        const char *name = oct_arena_printf(g->arena, "%s.%lld", oct_node_label(g, id), (long long)e);
        if (!name)
            return oct_nomem(err);
        if (s->splits) {
            OCT_TRY(oct_edit_value(g, g->value[x].name, "_part", OCT_F32, -1, &from, err));
            OCT_TRY(oct_graph_set_output(g, split, (int)e, from, err));
        }
        OCT_TRY(matrix_of(g, w, e, &v, err));
        OCT_TRY(oct_edit_value(g, base, "_part", OCT_F32, -1, &part, err));
        OCT_TRY(oct_graph_add_node(g, "MatMul", "", name, 2, 1, id, &product, err));
        OCT_TRY(oct_graph_set_input(g, product, 0, from, err));
        OCT_TRY(oct_graph_set_input(g, product, 1, v, err));
        OCT_TRY(oct_graph_set_output(g, product, 0, part, err));
        OCT_TRY(oct_graph_set_input(g, concat, (int)e, part, err));
    }
    OCT_TRY(oct_node_set_int(g, concat, "axis", axis, err));
    oct_graph_remove_node(g, id);
    return oct_graph_set_output(g, concat, 0, y, err);
}

oct_status oct_unroll_products(oct_qjob *j, bool *any, oct_err *err)
{
    *any = false;
    for (size_t i = 0; i < j->n_layer; i++) {
        several s;
        if (!match(j, j->layer[i], &s))
            continue;
        const char *name = j->g->node[s.node].name;
        OCT_TRY(unroll(j->g, &s, err));
        if (j->opts.log && j->opts.log->change)
            j->opts.log->change(j->opts.log->arg, "unroll", "each of its matrices has a product of its own", name);
        *any = true;
    }
    if (!*any)
        return OCT_OK;
    oct_graph_prune(j->g);
    return oct_infer_shapes(j->g, err);
}
