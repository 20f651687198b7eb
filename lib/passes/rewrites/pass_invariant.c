/* Pass: a state that a Loop or Scan only passes from one iteration to the next is taken from the graph around it
 * instead, where it may be constant. Exporters write weights as such states. */
#include "passes/pass.h"

/* The positions of a node's states: input first + k of the node; input body_in + k and output body_out + k of the body;
 * output k of the node. */
typedef struct states {
    oct_graph *body;
    int first, n;
    size_t body_in, body_out;
} states;

static bool find_states(const oct_graph *g, const oct_node *n, states *s)
{
    if (oct_is_op(n, "Loop"))
        *s = (states){ oct_node_graph(n, "body"), 2, n->n_in - 2, 2, 1 };
    else if (oct_is_op(n, "Scan") && oct_node_opset(g, n) >= 9)
        *s = (states){ oct_node_graph(n, "body"), 0, n->n_in - (int)oct_node_int(n, "num_scan_inputs", 0), 0, 0 };
    else
        return false;
    return s->body && s->n > 0 && s->n <= n->n_in && s->body->n_input >= s->body_in + (size_t)s->n &&
           s->body->n_output >= s->body_out + (size_t)s->n;
}

/* Whether a body passes on its state k unchanged, possibly through Identity. */
static bool hands_on(const states *s, int k)
{
    const oct_graph *b = s->body;
    const int in = b->input[s->body_in + (size_t)k], out = b->output[s->body_out + (size_t)k],
              p = b->value[out].producer;
    return out == in || (p >= 0 && oct_is_op(&b->node[p], "Identity") && b->node[p].in[0] == in);
}

static bool is_shown(const oct_graph *g, int v)
{
    for (size_t i = 0; i < g->n_output; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

static void drop_at(int *list, size_t *n, size_t at)
{
    --*n;
    for (size_t i = at; i < *n; i++)
        list[i] = list[i + 1];
}

/* Makes the body read the outer value `outer` instead of its state k, which is removed. */
static oct_status take_from_outside(const states *s, int k, int outer, oct_err *err)
{
    oct_graph *b = s->body;
    const int in = b->input[s->body_in + (size_t)k], out = b->output[s->body_out + (size_t)k];
    int taken;
    drop_at(b->input, &b->n_input, s->body_in + (size_t)k);
    drop_at(b->output, &b->n_output, s->body_out + (size_t)k);
    b->changed = true;
    b->value[out].is_output = is_shown(b, out);
    b->value[in].is_input = false;
    OCT_TRY(oct_graph_capture(b, outer, &taken, err));
    OCT_TRY(oct_graph_replace_uses(b, in, taken, err));
    oct_graph_remove_value(b, in);
    return OCT_OK;
}

static oct_status drop_input(oct_graph *g, int id, int slot, oct_err *err)
{
    for (int i = slot; i + 1 < g->node[id].n_in; i++)
        OCT_TRY(oct_graph_set_input(g, id, i, g->node[id].in[i + 1], err));
    oct_graph_cut_inputs(g, id, g->node[id].n_in - 1);
    return OCT_OK;
}

static oct_status drop_output(oct_graph *g, int id, int slot, oct_err *err)
{
    if (slot >= g->node[id].n_out)
        return OCT_OK;
    OCT_TRY(oct_graph_set_output(g, id, slot, -1, err));
    for (int k = slot; k + 1 < g->node[id].n_out; k++)
        OCT_TRY(oct_graph_set_output(g, id, k, g->node[id].out[k + 1], err));
    g->node[id].n_out--;
    return OCT_OK;
}

/* A value that is visible outside keeps its name: an Identity computes it. */
static oct_status stand_in(oct_graph *g, int left, int start, oct_err *err)
{
    int id;
    if (!g->value[left].is_output) {
        OCT_TRY(oct_graph_replace_uses(g, left, start, err));
        oct_graph_remove_value(g, left);
        return OCT_OK;
    }
    OCT_TRY(oct_graph_add_node(g, "Identity", "", "", 1, 1, -1, &id, err));
    OCT_TRY(oct_graph_set_input(g, id, 0, start, err));
    return oct_graph_set_output(g, id, 0, left, err);
}

/* The result of the state is its start value, after any number of iterations. */
static oct_status remove_state(oct_graph *g, int id, const states *s, int k, oct_err *err)
{
    const int outer = g->node[id].in[s->first + k], left = k < g->node[id].n_out ? g->node[id].out[k] : -1;
    OCT_TRY(take_from_outside(s, k, outer, err));
    OCT_TRY(drop_input(g, id, s->first + k, err));
    OCT_TRY(drop_output(g, id, k, err));
    if (left >= 0)
        OCT_TRY(stand_in(g, left, outer, err));
    return oct_graph_set_captures(g, id, err);
}

/* A state is kept if the body also returns it as a result. */
static bool can_go(const oct_graph *g, int id, const states *s, int k)
{
    const int in = s->body->input[s->body_in + (size_t)k];
    size_t shown = 0;
    for (size_t i = 0; i < s->body->n_output; i++)
        shown += s->body->output[i] == in;
    return g->node[id].in[s->first + k] >= 0 && hands_on(s, k) &&
           shown == (s->body->output[s->body_out + (size_t)k] == in);
}

static oct_status at(oct_graph *g, int id, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    states s;
    for (int k = 0; find_states(g, &g->node[id], &s) && k < s.n;) {
        if (!can_go(g, id, &s, k)) {
            k++;
            continue;
        }
        OCT_TRY(remove_state(g, id, &s, k, err));
        oct_pass_note(log, self, g->node[id].op, g->node[id].name);
    }
    return OCT_OK;
}

const oct_pass oct_pass_invariant = { .name = "invariant",
                                      .summary = "take what a Loop or Scan only hands on from the graph around it",
                                      .at = at };
