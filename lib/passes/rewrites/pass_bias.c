/* Fusion: a MatMul of more than two dimensions with a constant matrix, followed by the Add of a constant row, becomes a
 * Gemm between Reshapes, which move no data. Its sums start at the bias. (pass_gemm.c does this for two dimensions,
 * also in models that are written.) */
#include "passes/fuse.h"
#include "passes/match.h"

typedef struct product {
    int mul, add; /* nodes */
    int64_t rows, depth, columns;
} product;

static bool match(oct_graph *g, int id, product *y)
{
    oct_layer l;
    int64_t d[OCT_MAX_RANK], rows;
    float *shift;
    if (!oct_is_op(&g->node[id], "MatMul") || !oct_biased_layer_of(g, id, &l) || g->node[id].in[0] < 0)
        return false;
    const oct_value *x = &g->value[g->node[id].in[0]], *out = &g->value[g->node[id].out[0]];
    const int rank = x->shape.rank, add = oct_only_reader(g, g->node[id].out[0]);
    if (rank < 3 || x->dtype != OCT_F32 || out->dtype != OCT_F32 || !oct_shape_known(&x->shape, d) ||
        !oct_count(d, rank - 1, &rows) || add < 0 || !oct_is_op(&g->node[add], "Add") || g->node[add].n_out != 1 ||
        !oct_same_dims(g, g->node[id].out[0], g->node[add].out[0]))
        return false;
    *y = (product){ id, add, rows, d[rank - 1], l.channels };
    const int bias = oct_other_input(&g->node[add], g->node[id].out[0]);
    return bias >= 0 && oct_channel_const(g, bias, &l, rank, &shift);
}

static oct_status fuse(oct_graph *g, const product *y, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    const int x = g->node[y->mul].in[0], sum = g->node[y->add].out[0];
    oct_layer l;
    float *shift;
    int flat, own, gemm = y->mul;
    OCT_TRY(oct_match_value(g, x, 2, (const int64_t[]){ y->rows, y->depth }, &flat, err));
    OCT_TRY(oct_match_value(g, sum, 2, (const int64_t[]){ y->rows, y->columns }, &own, err));
    OCT_TRY(oct_match_reshape(g, x, flat, y->mul, err));
    OCT_TRY(oct_match_reshape(g, own, sum, y->add, err));
    oct_biased_layer_of(g, gemm, &l);
    if (!oct_channel_const(g, oct_other_input(&g->node[y->add], g->node[gemm].out[0]), &l, g->value[x].shape.rank,
                           &shift))
        return oct_nomem(err);
    oct_graph_remove_node(g, y->add);
    OCT_TRY(oct_graph_set_output(g, gemm, 0, own, err));
    OCT_TRY(oct_graph_set_input(g, gemm, 0, flat, err));
    g->node[gemm].op = "Gemm";
    g->node[gemm].opset = 13;
    oct_pass_note(log, self, "MatMul+Add", g->node[gemm].name);
    return oct_layer_affine(g, &l, NULL, shift, err);
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    product y;
    return match(g, id, &y) ? fuse(g, &y, self, log, err) : OCT_OK;
}

const oct_pass oct_pass_bias = { "bias", "make products with a constant matrix and bias a Gemm", .at = at };
