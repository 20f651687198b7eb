/* Rewrites products so that a constant matrix is the second factor of a MatMul.
 *
 * Pointwise convolutions become products of channels that are last, if their weights will be in blocks, or if they are
 * asked to be dynamic: ConvInteger takes twice the time of that form.
 *
 * Products whose constant is the first factor, W X, become X^T W^T with a Transpose before and after. This is done
 * if they will be dynamic, because that form is fast: one operator in ONNX Runtime. MatMulInteger with W as the first
 * factor is not: its weights must be u8, and additional nodes convert its result to float. It is also done if the
 * weights will be in blocks, because MatMulNBits takes them only as the second factor. */
#include "forms/write/forms_write.h"
#include "ops/traits.h"
#include "quant/job/job.h"
#include "quant/weights/weights.h"

/* The Transposes take about as long as M + K products of each column, while integers save a part of M K. In
 * measurements with ONNX Runtime, from this limit on no number of columns between 16 and 1024 was slower than float. */
#define LEAST_GAIN 48
/* The same for convolutions, which compute on channels that are first without any: with 64 to 256 channels they
 * took 1.1 to 1.5 times as long on 3136 positions. */
#define LEAST_GAIN_CONV 64

static bool pays(const oct_tensor *w) /* [m][k], and of a convolution [1]... */
{
    const double m = (double)w->dims[0], k = (double)w->dims[1];
    return m * k >= (w->rank > 2 ? LEAST_GAIN_CONV : LEAST_GAIN) * (m + k);
}

/* Whether a node should be dynamic, or would be without data. */
static bool wants_dynamic(const oct_qjob *j, int id)
{
    const oct_scheme scheme = oct_row_of(j, id)->scheme;
    return scheme == OCT_SCHEME_DYNAMIC || (scheme == OCT_SCHEME_STATIC && !j->opts.have_data);
}

/* Whether small values of a tensor may be critical for a logarithm or a quotient before a layer reads them. Then the
 * product will be kept float. */
static bool may_decide(const oct_graph *g, int value)
{
    enum { MOST = 32 };
    int seen[MOST] = { value }, n = 1;
    for (int i = 0; i < n; i++)
        for (size_t u = 0; u < g->value[seen[i]].n_uses; u++) {
            const oct_use use = g->value[seen[i]].uses[u];
            const oct_op *op = use.slot >= 0 ? oct_op_of(g, use.node) : NULL;
            if (!op || use.slot > 31 || n + g->node[use.node].n_out > MOST ||
                oct_node_delicate(g, use.node) >> use.slot & 1)
                return true;
            for (int k = 0; !oct_op_is_layer(op) && k < g->node[use.node].n_out; k++) {
                const int out = g->node[use.node].out[k];
                bool known = out < 0;
                for (int m = 0; m < n; m++)
                    known |= seen[m] == out;
                if (!known)
                    seen[n++] = out;
            }
        }
    return false;
}

static bool is_turnable(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const bool blocks = oct_row_of(j, id)->scheme == OCT_SCHEME_WEIGHT_ONLY;
    const oct_target_form form = blocks ? OCT_TARGET_WEIGHT_ONLY : OCT_TARGET_DYNAMIC;
    if (!(blocks || wants_dynamic(j, id)) || oct_no_turn(j, id) || !oct_target_lists(j->opts.target, n->op, form))
        return false;
    return blocks || !may_decide(j->g, n->out[0]); /* with weights in blocks, activations stay float */
}

bool oct_is_left_product(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    return oct_op_of(j->g, id)->weights.computed && n->n_in > 1 && n->in[0] >= 0 && n->in[1] >= 0 &&
           oct_value_is_constant(&j->g->value[n->in[0]]) && !oct_value_is_constant(&j->g->value[n->in[1]]);
}

const char *oct_no_turn(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    if (!oct_may_transpose_product(j->g, id))
        return "its constant is the first factor, and not a single matrix, or the rank of its data is unknown";
    const oct_tensor *w = j->g->value[n->in[0]].constant;
    if (!pays(w))
        return "its constant is the first factor, and too small to gain from a transposition";
    return oct_constant_is_finite(j, n->in[0]) ? NULL : "its weights are not finite";
}

const char *oct_no_pointwise(const oct_qjob *j, int id)
{
    return oct_is_pointwise(j->g, id) && !pays(j->g->value[j->g->node[id].in[1]].constant)
               ? "it multiplies each position by a small matrix, and as a product it would transpose more than it saves"
               : "only products of matrices have weights in blocks";
}

/* A rule may be for the operator that it is now, unless it is for all or for this name. */
static bool becomes_product(const oct_qjob *j, int id)
{
    const oct_policy_row *row = oct_row_of(j, id);
    const bool blocks = row->scheme == OCT_SCHEME_WEIGHT_ONLY, dynamic = row->scheme == OCT_SCHEME_DYNAMIC;
    const oct_target_form form = blocks ? OCT_TARGET_WEIGHT_ONLY : OCT_TARGET_DYNAMIC;
    if (!(blocks || dynamic) || !(j->opts.scheme == row->scheme || row->named) || (row->block && !row->named) ||
        !oct_is_pointwise(j->g, id) || !pays(j->g->value[j->g->node[id].in[1]].constant) ||
        !oct_constant_is_finite(j, j->g->node[id].in[1]) ||
        !oct_target_lists(j->opts.target, OCT_POINTWISE_BECOMES, form))
        return false;
    return blocks || !may_decide(j->g, j->g->node[id].out[0]);
}

oct_status oct_transpose_products(oct_qjob *j, bool *any, oct_err *err)
{
    int *turned = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *turned),
        *last = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *last);
    *any = false;
    if (!turned || !last)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_layer; i++) {
        const int id = j->layer[i];
        if (becomes_product(j, id)) {
            const char *name = j->g->node[id].name;
            OCT_TRY(oct_pointwise_product(j->g, id, last, err));
            if (j->opts.log && j->opts.log->change)
                j->opts.log->change(j->opts.log->arg, "turn",
                                    "the pointwise Conv is a MatMul now, of channels that are last", name);
            *any = true;
            continue;
        }
        if (!is_turnable(j, id))
            continue;
        const char *name = j->g->node[id].name;
        OCT_TRY(oct_transpose_product(j->g, id, turned, err));
        if (j->opts.log && j->opts.log->change)
            j->opts.log->change(j->opts.log->arg, "turn",
                                "its constant is the second factor now, as its input and result are transposed", name);
        *any = true;
    }
    if (*any)
        oct_graph_prune(j->g);
    return OCT_OK;
}
