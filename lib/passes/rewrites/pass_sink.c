/* Pass: moves the activation behind a Squeeze or Reshape of a layer's output to the layer, where it is a part of its
 * quantizer. */
#include "passes/shape_moves.h"

#include "passes/match.h"

/* Clip has its bounds as numbers, Relu has none: neither depends on the shape. */
static bool is_activation(const oct_graph *g, const oct_node *n, int slot)
{
    return (oct_is_op(n, "Relu") || oct_is_op(n, "Clip")) && slot == 0 && n->n_out == 1 && n->out[0] >= 0 &&
           g->value[n->in[0]].dtype == OCT_F32;
}

/* layer -> x -> move -> ... -> y -> activation -> z becomes layer -> x -> activation -> w -> move -> ... -> z */
static oct_status sink(oct_graph *g, int layer, int first, int last, int activation, oct_err *err)
{
    const int x = g->node[layer].out[0], z = g->node[activation].out[0];
    int w;
    OCT_TRY(oct_graph_new_value(g, g->value[x].name, OCT_F32, &w, err));
    g->value[w].shape = g->value[x].shape;
    OCT_TRY(oct_graph_set_output(g, activation, 0, w, err));
    OCT_TRY(oct_graph_set_output(g, last, 0, z, err));
    OCT_TRY(oct_graph_set_input(g, first, 0, w, err));
    return oct_graph_set_input(g, activation, 0, x, err);
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    oct_layer l;
    int last, slot, first;
    if (!oct_biased_layer_of(g, id, &l))
        return OCT_OK;
    const int next = oct_reader_past_moves(g, &l, &last, &slot);
    if (next < 0 || last == id || !is_activation(g, &g->node[next], slot))
        return OCT_OK;
    first = oct_sole_reader(g, g->node[id].out[0], &slot);
    oct_pass_note(log, self, g->node[next].op, g->node[next].name);
    return sink(g, id, first, last, next, err);
}

const oct_pass oct_pass_sink = { "sink", "move Relu and Clip behind a reshaped layer to the layer", .at = at };
