/* Whether results leave the range of their operands: by the records, and by combinations of nodes. */
#include "ops/traits.h"

/* The exponent of a power, where it is one constant; else below 0. */
static float exponent(const oct_graph *g, const oct_node *n)
{
    const oct_tensor *k = oct_node_constant(g, n, 1);
    return k && k->data && k->dtype == OCT_F32 && k->count == 1 ? *(const float *)k->data : -1.0f;
}

oct_growth oct_node_growth(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    bool grows = false;
    if (!op || op->grows == OCT_GROWS_SUMS)
        return op ? OCT_GROWS_SUMS : OCT_GROWS_NOT;
    switch (op->grows) {
    case OCT_GROWS: grows = true; break;
    case OCT_GROWS_ON_ITSELF: grows = n->in[0] == n->in[1]; break;
    case OCT_GROWS_BY_DIVISOR: grows = !oct_node_constant(g, n, 1); break;
    case OCT_GROWS_BY_POWER: grows = !(exponent(g, n) >= 0.0f && exponent(g, n) <= 1.0f); break;
    default: break;
    }
    return grows && !oct_node_compresses(g, node) ? OCT_GROWS : OCT_GROWS_NOT;
}

uint32_t oct_node_delicate(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    const bool plain = op && op->grows == OCT_GROWS_BY_POWER && exponent(g, &g->node[node]) >= 0.0f;
    return op && !plain ? op->delicate : 0;
}

/* ---- divisions by what was reduced from the dividend ---- */

enum { MOST = 24 }; /* values that are followed */

/* Values from which one follows, without those behind layers. */
typedef struct origins {
    int value[MOST];
    size_t n;
    bool reduced, divided; /* whether a reduction, or what turns sizes round, stands among them */
} origins;

static void add_origin(origins *o, int value)
{
    bool known = value < 0 || o->n == MOST;
    for (size_t i = 0; i < o->n; i++)
        known |= o->value[i] == value;
    if (!known)
        o->value[o->n++] = value;
}

static origins origins_of(const oct_graph *g, int value)
{
    origins o = { .n = 0 };
    add_origin(&o, value);
    for (size_t i = 0; i < o.n; i++) {
        const int p = g->value[o.value[i]].producer;
        const oct_op *op = p >= 0 ? oct_op_of(g, p) : NULL;
        if (!op || oct_op_is_layer(op))
            continue;
        o.reduced |= op->reduces;
        o.divided |= op->grows == OCT_GROWS_BY_POWER || (op->grows && op->delicate);
        for (int k = 0; k < g->node[p].n_in; k++)
            add_origin(&o, g->node[p].in[k]);
    }
    return o;
}

static bool share_origin(const oct_graph *g, const origins *o, int value)
{
    const origins other = origins_of(g, value);
    for (size_t i = 0; i < o->n; i++)
        for (size_t k = 0; k < other.n; k++)
            if (o->value[i] == other.value[k] && !g->value[other.value[k]].constant)
                return true;
    return false;
}

/* Whether the node divides the value of input i by a reduction of it, or multiplies it by the reciprocal. */
static bool normalizes(const oct_graph *g, const oct_node *n, int i, bool divides)
{
    const origins by = origins_of(g, n->in[!i]);
    return by.reduced && (divides || by.divided) && share_origin(g, &by, n->in[i]);
}

bool oct_node_compresses(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    if (!op || op->compresses || op->fixed_range)
        return op != NULL;
    if (n->n_in != 2 || n->in[0] < 0 || n->in[1] < 0)
        return false;
    if (op->grows == OCT_GROWS_BY_DIVISOR)
        return normalizes(g, n, 0, true);
    return op->multiplies && n->in[0] != n->in[1] && (normalizes(g, n, 0, false) || normalizes(g, n, 1, false));
}
