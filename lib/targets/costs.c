/* The costs of nodes: a node's kind and work, and the line of the table that applies to them. */
#include "targets/target_int.h"

#include "ops/traits.h"

#include <math.h>
#include <string.h>

enum {
    FEW = 4
}; /* input channels, as of images: convolutions with no more than these gather their inputs in other kernels */

/* Operators that cost as much as another one, because they move as much data in the same way. */
static const struct {
    const char *op, *as;
} alike[] = { { "Split", "Slice" }, { "Gather", "Slice" }, { "DepthToSpace", "Transpose" } };

size_t oct_target_n_costs(const oct_target *t)
{
    return t->n_costs;
}

const char *oct_target_costs_name(const oct_target *t, size_t i)
{
    return t->costs[i].name;
}

const char *oct_target_costs_runtime(const oct_target *t, size_t i)
{
    return t->costs[i].runtime;
}

const char *oct_target_costs_cpus(const oct_target *t, size_t i)
{
    return t->costs[i].cpus ? t->costs[i].cpus : t->costs[i].name;
}

/* ---- kinds ---- */

static const char *kind_of_kernel(const oct_node *n, const oct_tensor *w, const oct_weight_layout *l)
{
    if (strcmp(n->op, "Conv") != 0)
        return NULL;
    if (w->rank != 4)
        return w->rank == 3 ? "conv-1d" : "conv-3d";
    if (l->groups > 1)
        return oct_is_depthwise(l) ? "conv-depthwise" : "conv-grouped";
    return l->ins <= FEW ? "conv-few" : l->taps == 1 ? "conv-1x1" : "conv";
}

/* The number of a value's elements; 0: not known. */
static double elements(const oct_graph *g, int value)
{
    double n = 1;
    const oct_shape *s = value >= 0 ? &g->value[value].shape : NULL;
    if (!s || s->rank < 0)
        return 0;
    for (int d = 0; d < s->rank; d++)
        n *= s->d[d].n > 0 ? (double)s->d[d].n : 0;
    return n;
}

/* A node's kind (NULL: it has none) and its work. */
static const char *kind_of(const oct_graph *g, int node, oct_cost_work *work)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    const oct_tensor *w = oct_layer_weights(g, node);
    oct_weight_layout l;
    for (int k = 0; k < n->n_out; k++)
        work->out += elements(g, n->out[k]);
    work->in = n->n_in ? elements(g, n->in[0]) : 0;
    if (!op || n->domain[0] || op->quant == OCT_QUANT_RECURRENT)
        return NULL;
    if (op->quant != OCT_QUANT_WEIGHTED) {
        for (size_t i = 0; i < OCT_COUNT(alike); i++)
            if (strcmp(n->op, alike[i].op) == 0)
                return alike[i].as;
        return n->op;
    }
    work->macs = (double)oct_node_macs(g, node);
    if (!w) {
        const double rows = n->n_in > 1 && work->in > 0 ? work->macs / work->in : 0; /* columns of the second factor */
        work->weights = n->n_in > 1 ? elements(g, n->in[1]) : 0;
        return rows > 0 ? "product-computed" : NULL;
    }
    if (!oct_layer_layout(g, node, &l) || l.outs < 1)
        return NULL;
    work->weights = (double)w->count;
    work->in =
        work->macs /
        ((double)l.outs / (double)l.groups); /* an element counts once for each position of the kernel that reads it */
    return op->weights.kernel ? kind_of_kernel(n, w, &l) : l.matrices == 1 ? "product" : NULL;
}

/* ---- nodes that run as one ---- */

/* Whether a node is part of x * sigmoid(x), which is one kernel on floats. The whole cost is counted at the Mul. *part:
 * the node is the Sigmoid. */
static bool in_swish(const oct_graph *g, int node, bool *part)
{
    const oct_node *n = &g->node[node];
    *part = strcmp(n->op, "Sigmoid") == 0;
    if (*part) {
        const oct_value *y = &g->value[n->out[0]];
        const oct_node *m = y->n_uses == 1 && y->uses[0].node >= 0 ? &g->node[y->uses[0].node] : NULL;
        return m && strcmp(m->op, "Mul") == 0 && (m->in[0] == n->in[0] || m->in[1] == n->in[0]);
    }
    for (int k = 0; strcmp(n->op, "Mul") == 0 && k < 2; k++) {
        const int maker = g->value[n->in[k]].producer;
        if (maker >= 0 && strcmp(g->node[maker].op, "Sigmoid") == 0 && g->node[maker].in[0] == n->in[1 - k] &&
            g->value[n->in[k]].n_uses == 1)
            return true;
    }
    return false;
}

static double cost_of(const oct_cost_table *t, const char *kind, oct_cost_how how, const oct_cost_work *w)
{
    for (size_t i = 0; i < t->n; i++) {
        const oct_cost_line *l = &t->line[i];
        if (l->how == how && strcmp(l->kind, kind) == 0)
            return (l->call + l->mac * w->macs + l->out * w->out + l->in * w->in + l->weight * w->weights) / 1000;
    }
    return NAN;
}

double oct_target_cost(const oct_target *t, size_t i, const oct_graph *g, int node, oct_cost_how how)
{
    oct_cost_work work = { 0 };
    bool part;
    const char *kind = kind_of(g, node, &work);
    if (!kind || work.out <= 0 || (oct_op_of(g, node)->quant == OCT_QUANT_WEIGHTED && work.macs <= 0))
        return NAN;
    if (how == OCT_COST_FLOAT && in_swish(g, node, &part)) {
        const double whole = cost_of(&t->costs[i], "Swish", how, &work);
        if (!isnan(whole))
            return part ? 0 : whole;
    }
    return cost_of(&t->costs[i], kind, how, &work);
}

double oct_target_border_cost(const oct_target *t, size_t i, const oct_graph *g, int value, oct_cost_border border)
{
    const oct_cost_work work = { .out = elements(g, value) };
    const double c = work.out > 0 ? cost_of(&t->costs[i], border == OCT_COST_QUANTIZE ? "quantize" : "dequantize",
                                            OCT_COST_FLOAT, &work)
                                  : 0;
    return isnan(c) ? 0 : c;
}
