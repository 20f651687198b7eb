/* Pass: moves a constant Pad with zeros on the spatial dimensions into the pads of the convolution after it. */
#include "passes/fuse.h"

#include <string.h>

/* The pads of the Pad node, [2 * rank]. False: it is not a constant Pad with value 0. */
static bool zero_pads(const oct_graph *g, const oct_node *n, int rank, int64_t *pads)
{
    if (!oct_is_op(n, "Pad") || strcmp(oct_node_str(n, "mode", "constant"), "constant") != 0)
        return false;
    int count;
    const int64_t *attr = oct_node_ints(n, "pads", &count);
    if (attr) {
        if (count != 2 * rank || oct_node_float(n, "value", 0.0f) != 0.0f)
            return false;
        memcpy(pads, attr, (size_t)count * sizeof *pads);
        return true;
    }
    const oct_tensor *t = oct_node_constant(g, n, 1);
    if (!t || t->dtype != OCT_S64 || !t->data || oct_input_at(n, 3) >= 0 || t->count != 2 * rank)
        return false;
    if (oct_input_at(n, 2) >= 0) {
        const oct_tensor *v = g->value[n->in[2]].constant;
        if (!v || v->dtype != OCT_F32 || v->count != 1 || !v->data || *(const float *)v->data != 0.0f)
            return false;
    }
    memcpy(pads, t->data, (size_t)t->count * sizeof *pads);
    return true;
}

static oct_status try_pad(oct_graph *g, int id, bool *fused, oct_err *err)
{
    const oct_node *n = &g->node[id];
    *fused = false;
    if (n->n_in < 1 || n->in[0] < 0 || n->n_out != 1 || n->out[0] < 0)
        return OCT_OK;
    int rank = g->value[n->in[0]].shape.rank, slot;
    int64_t pads[2 * OCT_MAX_RANK], merged[2 * OCT_MAX_RANK];
    if (rank < 3 || rank > OCT_MAX_RANK || !zero_pads(g, n, rank, pads) || pads[0] || pads[1] || pads[rank] ||
        pads[rank + 1])
        return OCT_OK;
    int conv = oct_sole_reader(g, n->out[0], &slot);
    if (conv < 0 || slot != 0 || !oct_is_op(&g->node[conv], "Conv") ||
        strncmp(oct_node_str(&g->node[conv], "auto_pad", "NOTSET"), "SAME", 4) == 0)
        return OCT_OK;
    int count, s = rank - 2;
    const int64_t *own = oct_node_ints(&g->node[conv], "pads", &count);
    if (count != 2 * s || strcmp(oct_node_str(&g->node[conv], "auto_pad", "NOTSET"), "VALID") == 0)
        own = NULL;
    for (int i = 0; i < 2 * s; i++) {
        int64_t pad = pads[i < s ? 2 + i : rank + 2 + i - s];
        /* A negative pad crops. The zeros of the convolution would then replace data, so the Pad is kept. */
        if (pad < 0 || pad > INT32_MAX)
            return OCT_OK;
        merged[i] = pad + (own ? own[i] : 0);
    }
    int x = n->in[0], y = n->out[0];
    oct_node_drop_attr(g, conv, "auto_pad");
    OCT_TRY(oct_node_set_ints(g, conv, "pads", merged, 2 * s, err));
    OCT_TRY(oct_graph_set_input(g, conv, 0, x, err));
    oct_graph_remove_node(g, id);
    oct_graph_remove_value(g, y);
    *fused = true;
    return OCT_OK;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    for (size_t i = 0; i < g->n_order;) {
        bool fused;
        const char *name = g->node[g->order[i]].name;
        OCT_TRY(try_pad(g, g->order[i], &fused, err));
        if (fused)
            oct_pass_note(log, self, "Pad", name);
        i += !fused;
    }
    return OCT_OK;
}

const oct_pass oct_pass_pad = { "pad", "put Pad with zeros into the convolution behind it", run };
