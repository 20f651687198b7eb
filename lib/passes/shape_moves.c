/* Squeeze, Unsqueeze, Reshape and Flatten behind layers. */
#include "passes/shape_moves.h"

int oct_channel_dims(const oct_graph *g, const oct_layer *l, int value)
{
    const oct_shape *s = &g->value[value].shape;
    int64_t count = 1;
    for (int i = 1; i <= s->rank; i++) {
        const int64_t n = s->d[s->rank - i].n;
        if (n < 1 || n > l->channels / count)
            return 0;
        count *= n;
        if (count == l->channels)
            return i;
    }
    return 0;
}

/* Whether all axes of a Squeeze or Unsqueeze lie behind the channels of a convolution. rank: of the side that has
 * these axes. */
static bool is_behind_channels(const oct_graph *g, const oct_node *n, int rank)
{
    int count = 0;
    const int64_t *axes = oct_node_ints(n, "axes", &count);
    if (!axes && n->n_in == 2 && n->in[1] >= 0) {
        const oct_tensor *t = g->value[n->in[1]].constant;
        if (!t || t->dtype != OCT_S64 || !t->data)
            return false;
        axes = t->data;
        count = (int)t->count;
    }
    for (int i = 0; i < count; i++)
        if ((axes[i] < 0 ? axes[i] + rank : axes[i]) < 2)
            return false;
    return axes && count > 0;
}

static bool keeps_channels(const oct_graph *g, const oct_layer *l, const oct_node *n, int slot)
{
    const bool squeezes = oct_is_op(n, "Squeeze"), widens = oct_is_op(n, "Unsqueeze");
    if (slot != 0 || n->n_out != 1 || n->out[0] < 0)
        return false;
    const int before = g->value[n->in[0]].shape.rank, after = g->value[n->out[0]].shape.rank;
    if (before < 0 || after < 0)
        return false;
    if (l->conv)
        return (squeezes || widens) && is_behind_channels(g, n, squeezes ? before : after);
    return (squeezes || widens || oct_is_op(n, "Reshape") || oct_is_op(n, "Flatten")) &&
           oct_channel_dims(g, l, n->in[0]) > 0 && oct_channel_dims(g, l, n->out[0]) > 0;
}

int oct_reader_past_moves(const oct_graph *g, const oct_layer *l, int *last, int *slot)
{
    int next = oct_sole_reader(g, g->node[l->node].out[0], slot);
    *last = l->node;
    for (size_t steps = 0; next >= 0 && steps <= g->n_order && keeps_channels(g, l, &g->node[next], *slot); steps++) {
        *last = next;
        next = oct_sole_reader(g, g->node[next].out[0], slot);
    }
    return next;
}
