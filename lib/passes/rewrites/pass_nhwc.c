/* Pass: ONNX Runtime's optimizer writes operators of com.microsoft with channels last (QLinearConv, QLinearAveragePool
 * and QLinearGlobalAveragePool with channels_last, NhwcMaxPool). They become the operators with channels first between
 * two Transposes. The runtime itself computes with channels last in any case. */
#include "passes/pass.h"

#include <string.h>

static bool is_nhwc(const oct_graph *g, const oct_node *n)
{
    static const char *const types[] = { "QLinearConv", "QLinearAveragePool", "QLinearGlobalAveragePool" };
    if (strcmp(n->domain, "com.microsoft") != 0 || n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 || n->out[0] < 0 ||
        g->value[n->in[0]].shape.rank < 3 || g->value[n->in[0]].shape.rank > OCT_MAX_RANK)
        return false;
    if (strcmp(n->op, "NhwcMaxPool") == 0)
        return n->n_out == 1;
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (strcmp(n->op, types[i]) == 0)
            return oct_node_int(n, "channels_last", 0) != 0;
    return false;
}

/* The dimension of the input that becomes dimension i of the result. */
static int64_t source(int i, int rank, bool to_last)
{
    if (i == 0)
        return 0;
    return to_last ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
}

/* If a value is the transpose of one with channels first, that one; else -1. */
static int before_transpose(const oct_graph *g, int value, int rank)
{
    const int id = g->value[value].producer;
    int n;
    if (id < 0 || !oct_is_op(&g->node[id], "Transpose"))
        return -1;
    const int64_t *perm = oct_node_ints(&g->node[id], "perm", &n);
    for (int i = 0; i < n; i++)
        if (perm[i] != source(i, rank, true))
            return -1;
    return n == rank ? g->node[id].in[0] : -1;
}

static oct_status transpose(oct_graph *g, int from, int to, int rank, bool to_last, int before, oct_err *err)
{
    int64_t perm[OCT_MAX_RANK];
    int id;
    for (int i = 0; i < rank; i++)
        perm[i] = source(i, rank, to_last);
    OCT_TRY(oct_graph_add_node(g, "Transpose", "", "", 1, 1, before, &id, err));
    OCT_TRY(oct_node_set_ints(g, id, "perm", perm, rank, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, from, err));
    return oct_graph_set_output(g, id, 0, to, err);
}

/* next: the node that follows it in the order, or -1. */
static oct_status to_channels_first(oct_graph *g, int id, int next, oct_err *err)
{
    const int x = g->node[id].in[0], y = g->node[id].out[0], rank = g->value[x].shape.rank;
    int first = before_transpose(g, x, rank), out;
    if (first < 0) {
        OCT_TRY(oct_graph_new_value(g, g->value[x].name, g->value[x].dtype, &first, err));
        OCT_TRY(transpose(g, x, first, rank, false, id, err));
    }
    OCT_TRY(oct_graph_set_input(g, id, 0, first, err));
    OCT_TRY(oct_graph_new_value(g, g->value[y].name, g->value[y].dtype, &out, err));
    OCT_TRY(oct_graph_set_output(g, id, 0, out, err));
    OCT_TRY(transpose(g, out, y, rank, true, next, err));
    oct_node_drop_attr(g, id, "channels_last");
    if (strcmp(g->node[id].op, "NhwcMaxPool") == 0) {
        g->node[id].op = "MaxPool";
        g->node[id].domain = "";
    }
    g->node[id].changed = g->changed = true;
    return OCT_OK;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i], next = i + 1 < g->n_order ? g->order[i + 1] : -1;
        if (!is_nhwc(g, &g->node[id]))
            continue;
        const char *was = g->node[id].op;
        OCT_TRY(to_channels_first(g, id, next, err));
        oct_pass_note(log, self, was, g->node[id].name);
    }
    return OCT_OK;
}

const oct_pass oct_pass_nhwc = { "nhwc", "give operators of ONNX Runtime with channels last their usual form", run,
                                 true };
