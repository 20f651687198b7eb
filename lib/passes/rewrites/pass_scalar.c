/* Pass: scales and zero points of whole tensors become scalars. Torch's QAT export gives them one dimension with one
 * element. ONNX Runtime treats that in some places as a scale for each channel: it leaves such layers in float, and for
 * some opsets it refuses the model. A constant with only one channel keeps its list of one scale. */
#include "passes/pass.h"

#include "ops/op.h"

#include <string.h>

enum { SCALE = 1, ZERO_POINT = 2, QPARAMS_END = 3 };

static bool is_one_in_a_row(const oct_graph *g, const oct_node *n, int slot)
{
    const oct_tensor *t = oct_node_constant(g, n, slot);
    return t && t->data && t->rank == 1 && t->count == 1;
}

/* Whether a constant has one channel, so that its scale is that of the channel. */
static bool has_channels(const oct_graph *g, const oct_node *n)
{
    const oct_value *x = &g->value[n->in[0]];
    const int64_t axis = oct_node_int(n, "axis", 1), at = axis < 0 ? axis + x->shape.rank : axis;
    return x->constant && at >= 0 && at < x->shape.rank && x->shape.d[at].n == 1;
}

/* The scalar for a constant. All its readers share it. */
static oct_status scalar_of(oct_graph *g, int from, int *v, oct_err *err)
{
    const oct_tensor *t = g->value[from].constant;
    const char *name = oct_arena_printf(g->arena, "%s_scalar", g->value[from].name);
    if (!name)
        return oct_nomem(err);
    *v = oct_graph_find(g, name);
    const oct_tensor *made = *v >= 0 ? g->value[*v].constant : NULL;
    if (made && made->data && made->rank == 0 && made->dtype == t->dtype && made->bytes == t->bytes &&
        memcmp(made->data, t->data, t->bytes) == 0)
        return OCT_OK;
    return oct_graph_new_const(g, name, t->dtype, 0, NULL, t->data, v, err);
}

static oct_status make_scalar(oct_graph *g, int id, int slot, oct_err *err)
{
    int v;
    OCT_TRY(scalar_of(g, g->node[id].in[slot], &v, err));
    return oct_graph_set_input(g, id, slot, v, err);
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    const oct_op *op = oct_op_of(g, id);
    const oct_node *n = &g->node[id];
    const bool scale = is_one_in_a_row(g, n, SCALE), zero_point = is_one_in_a_row(g, n, ZERO_POINT);
    if (!op || !op->is_qdq || n->n_in < 2 || n->in[0] < 0 || (!scale && !zero_point) ||
        oct_node_int(n, "block_size", 0) || has_channels(g, n))
        return OCT_OK;
    const oct_tensor *s = oct_graph_constant(g, n->in[SCALE]);
    if (!s || s->count != 1)
        return OCT_OK; /* one zero point, but a scale for each channel */
    for (int slot = SCALE; slot < QPARAMS_END; slot++)
        if (is_one_in_a_row(g, n, slot))
            OCT_TRY(make_scalar(g, id, slot, err));
    oct_node_drop_attr(g, id, "axis");
    oct_pass_note(log, self, g->node[id].op, oct_node_label(g, id));
    return OCT_OK;
}

const oct_pass oct_pass_scalar = { "scalar", "make scales and zero points per tensor scalars", .at = at };
