/* Nodes around a pair of values: those that do not change a value, and clamps and affine functions that only one of two
 * models has. */
#include "eval/pairs/pairs_int.h"

#include "ops/core/quantized.h"
#include "ops/traits.h"

#include <string.h>

enum { MOST_ADVANCES = 6, MOST_STEPS = 1000 };

/* ---- one node ---- */

static bool same_shape(const oct_shape *a, const oct_shape *b)
{
    if (a->rank < 0 || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->d[i].n != b->d[i].n || (a->d[i].n < 0 && a->d[i].sym != b->d[i].sym &&
                                       (!a->d[i].sym || !b->d[i].sym || strcmp(a->d[i].sym, b->d[i].sym) != 0)))
            return false;
    return true;
}

static bool is_real(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F16 || t == OCT_BF16 || t == OCT_F64;
}

bool pair_is_integer(const oct_value *v)
{
    return !v->quant && v->dtype != OCT_UNDEFINED && !is_real(v->dtype);
}

/* Whether output 0 of a node equals its input 0 except for rounding: the same elements in the same places. */
bool pair_is_same(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_op *op = oct_op_of(g, node);
    if (n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 || n->out[0] < 0)
        return false;
    if (oct_border_of(g, n) != OCT_NO_BORDER)
        return true;
    const oct_value *x = &g->value[n->in[0]], *y = &g->value[n->out[0]];
    return op && (op->is_qdq || (op->converts && is_real(x->dtype) && is_real(y->dtype)) ||
                  (op->alias && same_shape(&x->shape, &y->shape)));
}

int pair_data_inputs(const oct_graph *g, const oct_node *n, int in[PAIR_HOPS])
{
    int count = 0;
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0 && !oct_value_is_constant(&g->value[n->in[k]]) && count++ < PAIR_HOPS)
            in[count - 1] = n->in[k];
    return count;
}

static bool is_product(const oct_op *op)
{
    return op && op->quant == OCT_QUANT_WEIGHTED;
}

bool pair_same_operator(const pair_search *s, int f, int q)
{
    const oct_node *a = &s->g[PAIR_REAL]->node[f], *b = &s->g[PAIR_OTHER]->node[q];
    const oct_op *x = oct_op_of(s->g[PAIR_REAL], f), *y = oct_op_of(s->g[PAIR_OTHER], q);
    float lo, hi;
    if (strcmp(a->op, b->op) == 0)
        return true;
    if (is_product(x) && is_product(y))
        return x->weights.kernel == y->weights.kernel;
    return oct_op_clamp(s->g[PAIR_REAL], f, &lo, &hi) && oct_op_clamp(s->g[PAIR_OTHER], q, &lo, &hi);
}

/* ---- nodes that follow a value ---- */

typedef enum behind { NOTHING = 0, CLAMP = 1, AFFINE = 2, OTHER = 4 } behind;

static behind kind_of(const oct_graph *g, int node)
{
    float lo, hi;
    const oct_op *op = oct_op_of(g, node);
    const oct_node *n = &g->node[node];
    int in[PAIR_HOPS];
    if (!op || n->n_out < 1 || n->out[0] < 0 || pair_data_inputs(g, n, in) != 1)
        return OTHER;
    if (oct_op_clamp(g, node, &lo, &hi))
        return CLAMP;
    if (n->n_in < 2 || !same_shape(&g->value[in[0]].shape, &g->value[n->out[0]].shape))
        return OTHER;
    return op->quant == OCT_QUANT_ARITH || op->adds || op->multiplies || strcmp(n->op, "BatchNormalization") == 0
               ? AFFINE
               : OTHER;
}

/* The kinds of all nodes that read a value, as a set of bits. Nodes that do not change it are passed over. */
static unsigned kinds_behind(const oct_graph *g, int value, int hops)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < g->value[value].n_uses; i++) {
        const oct_use *u = &g->value[value].uses[i];
        const bool same = u->slot == 0 && pair_is_same(g, u->node);
        kinds |= same && hops < PAIR_HOPS ? kinds_behind(g, g->node[u->node].out[0], hops + 1)
                 : same                   ? 0
                                          : (unsigned)kind_of(g, u->node);
    }
    return kinds;
}

/* If a clamp or affine node alone reads a value: its kind and its result. */
static behind next_behind(const oct_graph *g, int value, int *result)
{
    for (int hops = 0; hops < PAIR_HOPS && oct_value_used_once(&g->value[value]); hops++) {
        const oct_use *u = &g->value[value].uses[0];
        if (u->slot < 0 || g->node[u->node].n_out < 1 || g->node[u->node].out[0] < 0)
            return NOTHING;
        *result = g->node[u->node].out[0];
        if (u->slot || !pair_is_same(g, u->node)) {
            const behind kind = kind_of(g, u->node);
            return kind == OTHER ? NOTHING : kind;
        }
        value = *result;
    }
    return NOTHING;
}

/* Whether some operator reads both values, or nothing reads either. steps: how many readers may be examined; when it is
 * used up, the answer is no. */
static bool read_alike(const pair_search *s, int real, int other, int *steps)
{
    const oct_graph *g = s->g[PAIR_REAL], *h = s->g[PAIR_OTHER];
    const oct_value *x = &g->value[real], *y = &h->value[other];
    if (x->n_uses == 0 || y->n_uses == 0)
        return x->n_uses == y->n_uses;
    for (size_t i = 0; i < x->n_uses; i++) {
        const oct_use *u = &x->uses[i];
        if (u->slot == 0 && pair_is_same(g, u->node)) {
            if (--*steps > 0 && read_alike(s, g->node[u->node].out[0], other, steps))
                return true;
            continue;
        }
        for (size_t k = 0; k < y->n_uses && --*steps > 0; k++) {
            const oct_use *w = &y->uses[k];
            if (w->slot == 0 && pair_is_same(h, w->node) ? read_alike(s, real, h->node[w->node].out[0], steps)
                                                         : pair_same_operator(s, u->node, w->node))
                return true;
        }
    }
    return false;
}

int pair_behind_affine(const oct_graph *g, int value)
{
    int next;
    for (int i = 0; i < MOST_ADVANCES && next_behind(g, value, &next) == AFFINE; i++)
        value = next;
    return value;
}

void pair_advance(const pair_search *s, bool folded, int *real, int *other)
{
    int f = *real, q = *other, next;
    if (folded) {
        *real = f = pair_behind_affine(s->g[PAIR_REAL], f);
        *other = q = pair_behind_affine(s->g[PAIR_OTHER], q);
    }
    for (int i = 0; i < MOST_ADVANCES; i++) {
        const behind kf = next_behind(s->g[PAIR_REAL], f, &next);
        if (kf && !(kinds_behind(s->g[PAIR_OTHER], q, 0) & (unsigned)kf)) {
            f = next;
            continue;
        }
        const behind kq = next_behind(s->g[PAIR_OTHER], q, &next);
        if (!kq || (kinds_behind(s->g[PAIR_REAL], f, 0) & (unsigned)kq))
            break;
        q = next;
    }
    if ((f == *real && q == *other) || !read_alike(s, f, q, &(int){ MOST_STEPS }))
        return;
    *real = f;
    *other = q;
}

/* Whether a node shifts or scales its first input by constants. */
static bool shifts(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    int in[PAIR_HOPS];
    return n->n_in == 2 && n->n_out == 1 && n->out[0] >= 0 && pair_data_inputs(g, n, in) == 1 && in[0] == n->in[0] &&
           same_shape(&g->value[in[0]].shape, &g->value[n->out[0]].shape);
}

/* Whether a node multiplies integers by their scales, as when rows of a table stored in 8 bits become float. A zero
 * point may be subtracted before. */
static bool scales_integers(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    for (int k = 0; op && op->multiplies && k < g->node[node].n_in; k++) {
        int p = g->node[node].in[k] >= 0 ? g->value[g->node[node].in[k]].producer : -1;
        for (int hops = 0; hops < MOST_ADVANCES && p >= 0 && shifts(g, p); hops++)
            p = g->value[g->node[p].in[0]].producer;
        const oct_op *from = p >= 0 ? oct_op_of(g, p) : NULL;
        if (from && from->converts && g->node[p].in[0] >= 0 && pair_is_integer(&g->value[g->node[p].in[0]]))
            return true;
    }
    return false;
}

int pair_layer_of(const pair_search *s, int k, int value)
{
    const oct_graph *g = s->g[k];
    for (int hops = 0; hops < PAIR_HOPS; hops++) {
        const int p = g->value[value].producer;
        int in[PAIR_HOPS];
        if (p < 0 || scales_integers(g, p))
            return -1;
        const behind kind = pair_is_same(g, p) ? CLAMP : kind_of(g, p);
        if (kind == OTHER)
            return p;
        if (!pair_data_inputs(g, &g->node[p], in)) /* it is computed from constants alone */
            return p;
        if (g->value[in[0]].producer < 0)
            return p;
        value = in[0];
    }
    return -1;
}

bool pair_alike(const pair_search *s, int real, int other)
{
    const int f = pair_layer_of(s, PAIR_REAL, real), q = pair_layer_of(s, PAIR_OTHER, other);
    const oct_shape *x = &s->g[PAIR_REAL]->value[real].shape, *y = &s->g[PAIR_OTHER]->value[other].shape;
    if (x->rank >= 0 && y->rank >= 0 && x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank && i < y->rank; i++)
        if (x->d[i].n >= 0 && y->d[i].n >= 0 && x->d[i].n != y->d[i].n)
            return false;
    return f < 0 || q < 0 || pair_same_operator(s, f, q) || !oct_op_of(s->g[PAIR_OTHER], q) ||
           !oct_op_of(s->g[PAIR_REAL], f);
}
