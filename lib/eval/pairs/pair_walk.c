/* Finds pairs by structure: both graphs are walked from paired values through the same operators. */
#include "eval/pairs/pairs_int.h"

#include "ops/traits.h"

#include <math.h>
#include <string.h>

enum { MOST_CANDIDATES = 64 };

/* ---- nodes that move values ---- */

/* Follows `way` from a node's output to its input. False: that is not possible. */
static bool follow_permutation(const oct_graph *g, const oct_node *n, pair_way *way)
{
    const int rank = g->value[n->out[0]].shape.rank;
    const oct_attr *perm = oct_node_attr(n, "perm");
    pair_way next = { .rank = rank };
    if (rank < 1 || rank > OCT_MAX_RANK || way->reshaped || (way->rank && way->rank != rank) ||
        (perm && perm->n != rank))
        return false;
    for (int i = 0; i < rank; i++) {
        const int64_t k = way->rank ? way->at[i] : i, d = perm ? perm->ints[k] : rank - 1 - k;
        if (d < 0 || d >= rank)
            return false;
        next.at[i] = (int)d;
    }
    *way = next;
    return true;
}

/* One step towards the origin of a value, through a node that only moves it; -1: there is no such node. */
static int go_up(const oct_graph *g, int value, pair_way *way)
{
    const int p = g->value[value].producer;
    const oct_op *op = p >= 0 ? oct_op_of(g, p) : NULL;
    const oct_node *n = p >= 0 ? &g->node[p] : NULL;
    if (!op || n->n_in < 1 || n->in[0] < 0 || n->n_out < 1 || n->out[0] != value)
        return -1;
    if (pair_is_same(g, p))
        return n->in[0];
    if (op->permutes)
        return follow_permutation(g, n, way) ? n->in[0] : -1;
    if (!op->alias || way->rank)
        return -1;
    way->reshaped = true;
    return n->in[0];
}

/* The nearest paired value of which this one is moved elements; -1: there is none. */
static int find_mated(const pair_search *s, int k, int value, pair_way *way)
{
    for (int hops = 0; value >= 0 && hops < PAIR_HOPS; hops++) {
        if (s->mate[k][value] >= 0)
            return value;
        value = go_up(s->g[k], value, way);
    }
    return -1;
}

/* Whether `value` consists of moved elements of `from`. */
static bool comes_from(const oct_graph *g, int value, int from, pair_way *way)
{
    for (int hops = 0; value >= 0 && hops < PAIR_HOPS; hops++) {
        if (value == from)
            return true;
        value = go_up(g, value, way);
    }
    return false;
}

static bool is_trivial(const pair_way *w)
{
    for (int i = 0; i < w->rank; i++)
        if (w->at[i] != i)
            return false;
    return true;
}

/* How the dimensions of v, an input in the other graph, correspond to those of u in the float graph. False: they are
 * different values. */
static bool relate(const pair_search *s, int u, int v, pair_way *net)
{
    pair_way wq = { 0 }, wf = { 0 };
    const int q = find_mated(s, PAIR_OTHER, v, &wq);
    if (q < 0)
        return false;
    const int f = s->mate[PAIR_OTHER][q];
    if (!comes_from(s->g[PAIR_REAL], u, f, &wf))
        return false;
    const pair_way *own = &s->way[f];
    *net = (pair_way){ 0 };
    if (is_trivial(&wq) && is_trivial(&wf) && is_trivial(own))
        return true;
    const int rank = own->rank ? own->rank : wq.rank ? wq.rank : wf.rank;
    if (wq.reshaped || wf.reshaped || (wq.rank && wq.rank != rank) || (wf.rank && wf.rank != rank))
        return false;
    net->rank = rank;
    for (int i = 0; i < rank; i++) { /* dimension i of v is dimension d of f: find the dimension of u */
        const int m = wq.rank ? wq.at[i] : i, d = own->rank ? own->at[m] : m;
        for (int j = 0; j < rank; j++)
            if ((wf.rank ? wf.at[j] : j) == d)
                net->at[i] = j;
    }
    if (is_trivial(net))
        *net = (pair_way){ 0 };
    return true;
}

/* ---- comparing two nodes ---- */

/* Whether a node treats all elements in the same way, wherever they are. */
static bool is_elementwise(const oct_graph *g, int node)
{
    float lo, hi;
    const oct_op *op = oct_op_of(g, node);
    const oct_node *n = &g->node[node];
    if (!op || n->n_out < 1 || n->out[0] < 0)
        return false;
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0 && oct_value_is_constant(&g->value[n->in[k]]) && g->value[n->in[k]].constant &&
            g->value[n->in[k]].constant->count > 1)
            return false;
    return oct_op_clamp(g, node, &lo, &hi) || op->adds || op->multiplies ||
           (op->layout == OCT_RULE_ANY && op->quant == OCT_QUANT_UNARY && !op->reduces);
}

/* Whether two nodes compute on the same values. net: the order of the other's dimensions. */
static bool same_inputs(const pair_search *s, int f, int q, pair_way *net)
{
    int u[PAIR_HOPS], v[PAIR_HOPS];
    const oct_op *op = oct_op_of(s->g[PAIR_REAL], f);
    const int n = pair_data_inputs(s->g[PAIR_REAL], &s->g[PAIR_REAL]->node[f], u),
              m = pair_data_inputs(s->g[PAIR_OTHER], &s->g[PAIR_OTHER]->node[q], v);
    const bool swaps = n == 2 && op && (op->adds || op->multiplies);
    if (n != m || n < 1 || n > PAIR_HOPS)
        return false;
    for (int turn = 0; turn < 1 + swaps; turn++) {
        bool same = true;
        for (int k = 0; k < n && same; k++) {
            pair_way one;
            same = relate(s, u[k], v[turn ? n - 1 - k : k], &one) && (k == 0 || memcmp(&one, net, sizeof one) == 0);
            *net = one;
        }
        if (same)
            return !net->rank || (is_elementwise(s->g[PAIR_REAL], f) && is_elementwise(s->g[PAIR_OTHER], q));
    }
    return false;
}

static bool same_attribute(const oct_attr *a, const oct_attr *b)
{
    if (!b || a->type != b->type || a->n != b->n)
        return false;
    switch (a->type) {
    case OCT_ATTR_INT: return a->i == b->i;
    case OCT_ATTR_FLOAT: return a->f == b->f;
    case OCT_ATTR_STRING: return a->s_len == b->s_len && memcmp(a->s, b->s, a->s_len) == 0;
    case OCT_ATTR_INTS: return a->n == 0 || memcmp(a->ints, b->ints, (size_t)a->n * sizeof *a->ints) == 0;
    default: return true;
    }
}

/* How many constants and attributes differ, other than weights. */
static int count_differences(const pair_search *s, int f, int q)
{
    const oct_node *a = &s->g[PAIR_REAL]->node[f], *b = &s->g[PAIR_OTHER]->node[q];
    int differ = a->n_out != b->n_out;
    for (size_t i = 0; i < a->n_attr; i++)
        differ += !same_attribute(&a->attr[i], oct_node_attr(b, a->attr[i].name));
    for (int k = 0; k < a->n_in && k < b->n_in; k++) {
        const oct_tensor *x = oct_graph_constant(s->g[PAIR_REAL], a->in[k]),
                         *y = oct_graph_constant(s->g[PAIR_OTHER], b->in[k]);
        if (x && y && x->data && y->data && x->dtype == y->dtype && x->dtype != OCT_STRING)
            differ += x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0;
    }
    return differ;
}

/* Nodes that only move elements must move them in the same way. If not, it is a transposition that only one model
 * has. */
static bool moves_alike(const pair_search *s, int f, int q)
{
    const oct_op *op = oct_op_of(s->g[PAIR_REAL], f);
    return !op || !op->permutes || count_differences(s, f, q) == 0;
}

/* How well two nodes with the same inputs match; -INFINITY: they do not. */
static oct_status fit(const pair_search *s, int f, int q, double *score, bool *folded, oct_err *err)
{
    double db;
    *folded = false;
    *score = -INFINITY;
    if (!pair_same_operator(s, f, q) || !moves_alike(s, f, q))
        return OCT_OK;
    OCT_TRY(pair_compare_weights(s, f, q, &db, folded, err));
    if (isinf(db) && db < 0)
        return OCT_OK;
    *score = (isnan(db) ? 0 : fmin(db, 200)) - 10 * count_differences(s, f, q);
    return OCT_OK;
}

/* ---- the walk ---- */

void pair_join(pair_search *s, int real, int other, oct_pair_how how, const pair_way *way)
{
    if (real < 0 || other < 0 || s->mate[PAIR_REAL][real] >= 0 || s->mate[PAIR_OTHER][other] >= 0)
        return;
    s->mate[PAIR_REAL][real] = other;
    s->mate[PAIR_OTHER][other] = real;
    s->how[real] = (uint8_t)how;
    s->way[real] = way ? *way : (pair_way){ 0 };
}

/* The nodes of the float graph that read a value, or moved elements of it. */
static void gather(const pair_search *s, int value, int hops, int node[MOST_CANDIDATES], size_t *n)
{
    const oct_graph *g = s->g[PAIR_REAL];
    for (size_t i = 0; i < g->value[value].n_uses && *n < MOST_CANDIDATES; i++) {
        const oct_use *u = &g->value[value].uses[i];
        const oct_op *op = u->slot < 0 ? NULL : oct_op_of(g, u->node);
        node[(*n)++] = u->node;
        if (op && u->slot == 0 && hops < PAIR_HOPS && g->node[u->node].n_out > 0 && g->node[u->node].out[0] >= 0 &&
            (pair_is_same(g, u->node) || op->permutes || op->alias))
            gather(s, g->node[u->node].out[0], hops + 1, node, n);
    }
}

static void join_nodes(pair_search *s, int f, int q, bool folded, const pair_way *net)
{
    const oct_node *a = &s->g[PAIR_REAL]->node[f], *b = &s->g[PAIR_OTHER]->node[q];
    s->taken[PAIR_REAL][f] = s->taken[PAIR_OTHER][q] = true;
    for (int k = 0; k < a->n_out && k < b->n_out; k++) {
        int x = a->out[k], y = b->out[k];
        if (x < 0 || y < 0)
            continue;
        if (k == 0)
            pair_advance(s, folded, &x, &y);
        pair_join(s, x, y, OCT_PAIR_STRUCTURE, net);
    }
}

/* Finds the float node that corresponds to a node of the other graph. */
static oct_status match_node(pair_search *s, int q, bool *found, oct_err *err)
{
    int candidate[MOST_CANDIDATES], in[PAIR_HOPS], best = -1;
    size_t n = 0;
    double most = -INFINITY;
    bool folded = false;
    pair_way net = { 0 }, way = { 0 };
    if (pair_data_inputs(s->g[PAIR_OTHER], &s->g[PAIR_OTHER]->node[q], in) < 1)
        return OCT_OK;
    const int from = find_mated(s, PAIR_OTHER, in[0], &way);
    if (from < 0)
        return OCT_OK;
    gather(s, s->mate[PAIR_OTHER][from], 0, candidate, &n);
    for (size_t i = 0; i < n; i++) {
        double score;
        bool behind;
        pair_way one = { 0 };
        if (s->taken[PAIR_REAL][candidate[i]] || !same_inputs(s, candidate[i], q, &one))
            continue;
        OCT_TRY(fit(s, candidate[i], q, &score, &behind, err));
        if (score > most) {
            most = score;
            best = candidate[i];
            folded = behind;
            net = one;
        }
    }
    if (best >= 0)
        join_nodes(s, best, q, folded, &net);
    *found |= best >= 0;
    return OCT_OK;
}

oct_status pair_walk(pair_search *s, oct_err *err)
{
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < s->g[PAIR_OTHER]->n_order; i++) {
            const int q = s->g[PAIR_OTHER]->order[i];
            if (!s->taken[PAIR_OTHER][q])
                OCT_TRY(match_node(s, q, &found, err));
        }
    }
    return OCT_OK;
}
