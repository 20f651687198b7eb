/* ai.onnx.preview.FlexAttention, by shape inference alone: a pass puts the nodes of its definition in its place
 * (passes/rewrites/pass_flex.c). */
#include "ops/core/infer.h"

static oct_status graph_of(const oct_node *n, const char *attr, oct_err *err)
{
    const oct_graph *g = oct_node_graph(n, attr);
    if (oct_node_attr(n, attr) && (!g || g->n_input != 1 || g->n_output != 1))
        return oct_fail(err, OCT_EMALFORMED, "'%s' is no graph of one input and one output", attr);
    return OCT_OK;
}

/* Whether two dimensions are known and differ. */
static bool differ(oct_dim a, oct_dim b)
{
    return a.n >= 0 && b.n >= 0 && a.n != b.n;
}

static oct_status flex_infer(const oct_infer *c, oct_err *err)
{
    oct_shape q = oct_in_shape(c, 0), k = oct_in_shape(c, 1), v = oct_in_shape(c, 2);
    OCT_TRY(graph_of(oct_in_node(c), "score_mod", err));
    OCT_TRY(graph_of(oct_in_node(c), "prob_mod", err));
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (q.rank < 0 || k.rank < 0 || v.rank < 0)
        return OCT_OK;
    if (q.rank != 4 || k.rank != 4 || v.rank != 4)
        return oct_fail(err, OCT_EMALFORMED, "Q, K and V have %d, %d and %d dimensions, expected 4", q.rank, k.rank,
                        v.rank);
    if (differ(k.d[1], v.d[1]) || differ(k.d[2], v.d[2]) || differ(q.d[3], k.d[3]))
        return oct_fail(err, OCT_EMALFORMED, "K and V differ in heads or length, or Q and K in the size of a head");
    if (q.d[1].n >= 0 && k.d[1].n >= 0 && (k.d[1].n == 0 ? q.d[1].n != 0 : q.d[1].n % k.d[1].n != 0))
        return oct_fail(err, OCT_EMALFORMED, "%lld heads of queries cannot share %lld of keys", (long long)q.d[1].n,
                        (long long)k.d[1].n);
    return oct_out_shape(c, 0, 4, (oct_dim[]){ q.d[0], q.d[1], q.d[2], v.d[3] }, err);
}

const oct_op oct_op_flex_attention = {
    OCT_SCHEMA("FlexAttention", "ai.onnx.preview", 1, 3, 3, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = flex_infer,
};
