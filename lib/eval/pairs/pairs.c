/* Finds corresponding values of two models: by name, and the list of all pairs. */
#include "eval/pairs/pairs_int.h"

#include "forms/forms.h"
#include "ops/core/quantized.h"
#include "passes/pass.h"

#include <string.h>

const char *oct_pair_word(oct_pair_how how)
{
    static const char *const words[] = { "name", "structure", "weights" };
    return words[how];
}

/* ---- names ---- */

/* The value of a graph that stands for a name: the value itself, or in operator form the integers that the runtime
 * shows under that name. -1: none. */
static int find_value(const oct_graph *g, const char *name)
{
    int at = oct_graph_find(g, name);
    oct_buf integers = OCT_BUF_INIT;
    if (at >= 0)
        return at;
    oct_buf_printf(&integers, "%s_quantized", name);
    at = integers.failed ? -1 : oct_graph_find(g, oct_buf_str(&integers));
    oct_buf_free(&integers);
    return at;
}

static void find_place(const oct_graph *g, const char *name, oct_buf *path, oct_value_location *found)
{
    const int at = find_value(g, name);
    const oct_graph *nested;
    if (at >= 0 && g->value[at].producer >= 0 && found->n++ == 0)
        *found = (oct_value_location){ g, at, 1 };
    for (size_t i = 0; i < g->n_order && g->n_nested; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++) {
            const size_t here = path ? path->len : 0, before = found->n;
            if (path)
                oct_node_put_path(g, g->order[i], k, path);
            find_place(nested, name, path, found);
            if (path && (before || !found->n))
                oct_buf_cut(path, here);
        }
}

oct_value_location oct_value_location_of(const oct_graph *g, const char *name, oct_buf *path)
{
    oct_value_location p = { .n = 0 };
    find_place(g, name, path, &p);
    return p;
}

/* Whether a value is worth comparing: it is computed, and has real numbers. */
static bool is_compared(const oct_value *v)
{
    return !v->dead && v->producer >= 0 && !v->constant &&
           (v->dtype == OCT_F32 || v->dtype == OCT_UNDEFINED || v->dtype == OCT_F16);
}

/* ---- the search ---- */

typedef struct finder {
    pair_search s;
    const oct_graph *spelled[2];
    const int *now[2]; /* by value of `spelled`: the value of s.g with the same numbers */
    int *back[2];      /* by value of s.g: the value of `spelled` that is compared for it, or -1 */
    int *reals;        /* by value of s.g[PAIR_OTHER]: the value of `spelled` that is dequantized from it, or -1 */
    bool *weighed;     /* by node of s.g[PAIR_OTHER]: its weights belong to a pair */
    bool walks;        /* both graphs were read, so that they can be walked */
} finder;

/* How well a value of `spelled` represents its numbers. The output of a layer is better than its quantized values, and
 * these are better than dequantized values for readers, because an integer runtime never computes those. */
static int rank_of(const oct_graph *g, int v)
{
    const int p = g->value[v].producer;
    const oct_op *op = p >= 0 ? oct_op_of(g, p) : NULL;
    return p < 0 ? 0 : op && op->is_qdq ? 1 + (strcmp(op->type, oct_op_between(true)->type) == 0) : 3;
}

static oct_status read_graph(finder *f, int k, oct_graph **read, oct_err *err)
{
    const oct_graph *g = f->spelled[k];
    OCT_TRY(oct_graph_clone(g, read, err));
    OCT_TRY(oct_infer_shapes(*read, err));
    OCT_TRY(oct_forms_read(*read, NULL, &f->now[k], err));
    oct_graph_prune(*read);
    f->s.g[k] = *read;
    const size_t n = (*read)->n_value;
    f->s.mate[k] = oct_arena_alloc(f->s.arena, (n + 1) * sizeof **f->s.mate);
    f->back[k] = oct_arena_alloc(f->s.arena, (n + 1) * sizeof **f->back);
    f->s.taken[k] = oct_arena_calloc(f->s.arena, (*read)->n_node + 1, sizeof **f->s.taken);
    f->reals = oct_arena_alloc(f->s.arena, (n + 1) * sizeof *f->reals);
    if (!f->s.mate[k] || !f->back[k] || !f->s.taken[k] || !f->reals)
        return oct_nomem(err);
    for (size_t v = 0; v < n; v++)
        f->s.mate[k][v] = f->back[k][v] = f->reals[v] = -1;
    for (size_t v = 0; v < g->n_value; v++) {
        const int to = g->value[v].dead ? -1 : f->now[k][v];
        if (to >= 0 && (f->back[k][to] < 0 || rank_of(g, (int)v) > rank_of(g, f->back[k][to])))
            f->back[k][to] = (int)v;
        if (to >= 0 && rank_of(g, (int)v) == 1)
            f->reals[to] = (int)v;
    }
    return OCT_OK;
}

/* The float graph after its passes, for example with normalizations folded, for comparing its weights. NULL if the
 * passes do not accept the graph. */
static oct_status fuse(finder *f, oct_graph **fused, oct_err *err)
{
    oct_err why = OCT_ERR_INIT;
    oct_status s = oct_graph_clone(f->spelled[PAIR_REAL], fused, &why);
    if (s == OCT_OK)
        s = oct_infer_shapes(*fused, &why);
    if (s == OCT_OK)
        s = oct_passes_run(*fused, NULL, 0, NULL, &why);
    if (s == OCT_OK)
        f->s.g[PAIR_FUSED] = *fused;
    return s == OCT_ENOMEM ? oct_nomem(err) : OCT_OK;
}

static void join_inputs(finder *f)
{
    const oct_graph *g = f->s.g[PAIR_REAL], *h = f->s.g[PAIR_OTHER];
    bool any = false;
    for (size_t i = 0; i < g->n_input; i++) {
        const int v = oct_graph_find(h, g->value[g->input[i]].name);
        any |= v >= 0 && h->value[v].is_input;
        if (v >= 0 && h->value[v].is_input)
            pair_join(&f->s, g->input[i], v, OCT_PAIR_NAME, NULL);
    }
    for (size_t i = 0; i < g->n_input && i < h->n_input && !any; i++)
        pair_join(&f->s, g->input[i], h->input[i], OCT_PAIR_NAME, NULL);
}

/* Pairs values with the same name in the outermost graphs. */
static void join_names(finder *f)
{
    const oct_graph *g = f->spelled[PAIR_REAL];
    for (size_t v = 0; v < g->n_value; v++) {
        const int w = is_compared(&g->value[v]) ? find_value(f->spelled[PAIR_OTHER], g->value[v].name) : -1;
        int x = f->now[PAIR_REAL][v], y = w >= 0 ? f->now[PAIR_OTHER][w] : -1;
        if (x < 0 || y < 0 || f->spelled[PAIR_OTHER]->value[w].producer < 0 || !pair_alike(&f->s, x, y))
            continue;
        const int was = x;
        pair_advance(&f->s, false, &x, &y);
        pair_join(&f->s, x, y, x == was ? OCT_PAIR_NAME : OCT_PAIR_STRUCTURE, NULL);
    }
}

static oct_status search(finder *f, oct_err *err)
{
    f->s.way = oct_arena_calloc(f->s.arena, f->s.g[PAIR_REAL]->n_value + 1, sizeof *f->s.way);
    f->s.how = oct_arena_calloc(f->s.arena, f->s.g[PAIR_REAL]->n_value + 1, sizeof *f->s.how);
    f->weighed = oct_arena_calloc(f->s.arena, f->s.g[PAIR_OTHER]->n_node + 1, sizeof *f->weighed);
    if (!f->s.way || !f->s.how || !f->weighed)
        return oct_nomem(err);
    join_inputs(f);
    join_names(f);
    for (bool any = true; any;) {
        OCT_TRY(pair_walk(&f->s, err));
        OCT_TRY(pair_by_weights(&f->s, &any, err));
    }
    return OCT_OK;
}

/* ---- the list ---- */

typedef struct listing {
    finder *f;
    oct_pairs *p;
    size_t cap, order;
} listing;

static oct_status put(listing *l, const oct_pair *pair, oct_err *err)
{
    if (!OCT_GROW(l->p->arena, l->p->pair, l->p->n, l->cap))
        return oct_nomem(err);
    l->p->pair[l->p->n++] = *pair;
    return OCT_OK;
}

/* What all readers of a value read: the value itself, or its rounded form if all of them round it alike. */
static int read_as(const oct_graph *g, int v)
{
    int as = v;
    for (size_t i = 0; i < g->value[v].n_uses && !g->value[v].quant && !g->value[v].is_output; i++) {
        const oct_use *u = &g->value[v].uses[i];
        const oct_node *n = u->slot == 0 ? &g->node[u->node] : NULL;
        const int to = n && oct_border_of(g, n) == OCT_BORDER_ROUNDS ? n->out[0] : -1;
        if (to < 0 || (as != v && !oct_quant_same(g->value[as].quant, g->value[to].quant)))
            return v;
        as = as == v ? to : as;
    }
    return as;
}

/* Whether no node computes on a value's quantized values. Then its real numbers may differ from what these
 * represent. */
static oct_status is_read_as_reals(const oct_graph *g, int v, bool *reals, oct_err *err)
{
    *reals = true;
    for (size_t i = 0; i < g->value[v].n_uses; i++) {
        oct_compute how = OCT_ON_QUANTIZED;
        if (g->value[v].uses[i].slot >= 0)
            OCT_TRY(oct_compute_of(g, g->value[v].uses[i].node, &how, err));
        *reals &= how == OCT_ON_REALS;
    }
    return OCT_OK;
}

/* The value of `spelled` that is shown for `as`, which the readers of y read. */
static oct_status choose_shown(const finder *f, int y, int as, int *shown, oct_err *err)
{
    const oct_graph *g = f->s.g[PAIR_OTHER];
    const int p = g->value[as].producer;
    bool reals = false;
    if (p >= 0 && oct_border_of(g, &g->node[p]) == OCT_BORDER_ROUNDS && f->reals[as] >= 0)
        OCT_TRY(is_read_as_reals(g, as, &reals, err));
    *shown = reals ? f->reals[as] : f->back[PAIR_OTHER][as];
    *shown = *shown >= 0 ? *shown : f->back[PAIR_OTHER][y];
    return OCT_OK;
}

static oct_status put_outer(listing *l, int v, oct_err *err)
{
    finder *f = l->f;
    const pair_search *s = &f->s;
    const int x = f->now[PAIR_REAL][v], y = x >= 0 && f->back[PAIR_REAL][x] == v ? s->mate[PAIR_REAL][x] : -1,
              w = y >= 0 ? f->back[PAIR_OTHER][y] : -1;
    if (w < 0 || f->spelled[PAIR_OTHER]->value[w].producer < 0 || f->spelled[PAIR_OTHER]->value[w].constant ||
        pair_is_integer(&s->g[PAIR_OTHER]->value[y]))
        return OCT_OK;
    const oct_value *names = f->spelled[PAIR_OTHER]->value;
    const int as = read_as(s->g[PAIR_OTHER], y), layer = pair_layer_of(s, PAIR_OTHER, y);
    const oct_quant *q = s->g[PAIR_OTHER]->value[as].quant;
    int shown;
    OCT_TRY(choose_shown(f, y, as, &shown, err));
    oct_pair p = { .value = f->spelled[PAIR_REAL]->value[v].name,
                   .other = names[w].name,
                   .shown = names[shown].name,
                   .held = s->g[PAIR_OTHER]->value[as].name,
                   .how = (oct_pair_how)s->how[x],
                   .order = l->order,
                   .rank = s->way[x].rank,
                   .quant = q && q->n > 0 ? q : NULL };
    memcpy(p.axes, s->way[x].at, sizeof p.axes);
    if (layer >= 0 && !f->weighed[layer])
        OCT_TRY(pair_fill_weights(s, &p, x, y, err));
    if (p.weights.name)
        f->weighed[layer] = true;
    return put(l, &p, err);
}

/* A value of a subgraph, or of graphs that were not read: by name alone. A name that several subgraphs use for values
 * of their own is left out. */
static oct_status put_named(listing *l, const oct_value *v, oct_err *err)
{
    const oct_value_location at = oct_value_location_of(l->f->spelled[PAIR_OTHER], v->name, NULL);
    if (at.n != 1 || oct_value_location_of(l->f->spelled[PAIR_REAL], v->name, NULL).n > 1)
        return OCT_OK;
    const char *other = at.g->value[at.value].name;
    return put(l, &(oct_pair){ .value = v->name, .other = other, .shown = other, .held = other, .order = l->order },
               err);
}

static oct_status list(listing *l, const oct_graph *g, oct_err *err)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *node = &g->node[g->order[i]];
        const oct_graph *nested;
        for (int k = 0; k < node->n_out; k++) {
            if (node->out[k] < 0 || !is_compared(&g->value[node->out[k]]))
                continue;
            if (g->outer || !l->f->walks)
                OCT_TRY(put_named(l, &g->value[node->out[k]], err));
            else
                OCT_TRY(put_outer(l, node->out[k], err));
            l->order++;
        }
        for (size_t k = 0; (nested = oct_node_graph_at(node, k)); k++)
            OCT_TRY(list(l, nested, err));
    }
    return OCT_OK;
}

static oct_status find(finder *f, oct_pairs *p, oct_err *err)
{
    oct_err why = OCT_ERR_INIT;
    oct_status s = OCT_OK;
    for (int k = 0; k < 2 && s == OCT_OK; k++)
        s = read_graph(f, k, &p->read[k], &why);
    f->walks = s == OCT_OK;
    if (s == OCT_ENOMEM)
        return oct_nomem(err);
    if (f->walks) {
        OCT_TRY(fuse(f, &p->read[PAIR_FUSED], err));
        OCT_TRY(search(f, err));
    }
    return list(&(listing){ .f = f, .p = p }, f->spelled[PAIR_REAL], err);
}

oct_status oct_pairs_find(const oct_graph *real, const oct_graph *other, oct_pairs *p, oct_err *err)
{
    *p = (oct_pairs){ .arena = oct_arena_create() };
    finder f = { .s = { .arena = p->arena }, .spelled = { real, other } };
    const oct_status s = p->arena ? find(&f, p, err) : oct_nomem(err);
    if (s != OCT_OK)
        oct_pairs_free(p);
    return s;
}

void oct_pairs_free(oct_pairs *p)
{
    for (size_t k = 0; k < OCT_COUNT(p->read); k++)
        oct_graph_destroy(p->read[k]);
    oct_arena_destroy(p->arena);
    *p = (oct_pairs){ 0 };
}
