/* Values whose NaN the model itself tests for or replaces. */
#include "ops/core/tested_nan.h"

#include "ops/op.h"

#include <string.h>

enum { MOST_READERS = 64 };

static const oct_node *maker(const oct_graph *g, int value, const char *op)
{
    const int p = value >= 0 ? g->value[value].producer : -1;
    return p >= 0 && !g->node[p].domain[0] && strcmp(g->node[p].op, op) == 0 ? &g->node[p] : NULL;
}

/* Whether a condition is IsNaN of the value. */
static bool asks(const oct_graph *g, int condition, int value)
{
    const oct_node *n = maker(g, condition, "IsNaN");
    return n && n->in[0] == value;
}

/* Whether a reader is Where(IsNaN(value), other, value), or the same with Not and the other order. */
static bool replaces(const oct_graph *g, oct_use u, int value)
{
    const oct_node *n = &g->node[u.node], *is_not = n->n_in == 3 ? maker(g, n->in[0], "Not") : NULL;
    if (n->domain[0] || strcmp(n->op, "Where") != 0 || n->n_in != 3)
        return false;
    return u.slot == 2 ? n->in[1] != value && asks(g, n->in[0], value)
                       : u.slot == 1 && n->in[2] != value && is_not && asks(g, is_not->in[0], value);
}

/* *left bounds how many values are looked at; at 0 the answer is no. */
static bool all_take(const oct_graph *g, int value, int *left)
{
    const oct_value *x = &g->value[value];
    bool all = x->n_uses > 0 && !x->is_output && (*left)-- > 0;
    for (size_t i = 0; i < x->n_uses && all; i++) {
        const oct_use u = x->uses[i];
        const oct_op *op = u.slot >= 0 ? oct_op_of(g, u.node) : NULL;
        const bool takes = op && (op->takes_nan || replaces(g, u, value));
        all = takes || (op && (op->alias || op->moves || op->quant == OCT_QUANT_JOIN));
        for (int k = 0; all && !takes && k < g->node[u.node].n_out; k++)
            all = g->node[u.node].out[k] < 0 || all_take(g, g->node[u.node].out[k], left);
    }
    return all;
}

bool oct_tests_nan(const oct_graph *g, int value)
{
    int left = MOST_READERS;
    return all_take(g, value, &left);
}
