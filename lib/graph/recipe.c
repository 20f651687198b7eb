/* How folded constants were computed, and computing them again. */
#include "graph/graph_int.h"

oct_status oct_graph_note_recipe(oct_graph *g, int node, const oct_tensor *const *made, const oct_recipe **recipe,
                                 oct_err *err)
{
    const oct_node *n = &g->node[node];
    *recipe = NULL;
    if (!n->n_in) /* it holds what it makes */
        return OCT_OK;
    oct_recipe *r = oct_arena_calloc(g->arena, 1, sizeof *r);
    const oct_tensor **from = oct_arena_calloc(g->arena, (size_t)n->n_in + 1, sizeof *from);
    if (!r || !from)
        return oct_nomem(err);
    for (int i = 0; i < n->n_in; i++)
        from[i] = oct_graph_constant(g, n->in[i]);
    *r = (oct_recipe){ .node = *n, .from = from, .opset = oct_graph_opset(g, n->domain) };
    r->made = oct_arena_memdup(g->arena, made, (size_t)n->n_out * sizeof *made);
    r->node.in = oct_arena_memdup(g->arena, n->in, (size_t)n->n_in * sizeof *n->in);
    r->node.attr = oct_arena_memdup(g->arena, n->attr, n->n_attr * sizeof *n->attr);
    if (!r->made || !r->node.in || !r->node.attr)
        return oct_nomem(err);
    r->node.out = NULL;
    r->node.cap_attr = n->n_attr;
    *recipe = r;
    return OCT_OK;
}

/* ---- what a constant was computed from ---- */

static bool listed(const oct_tensor *const *list, size_t n, const oct_tensor *t)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == t)
            return true;
    return false;
}

bool oct_graph_sources(const oct_graph *g, int value, oct_sources *s)
{
    const oct_recipe *todo[OCT_RECIPE_NODES] = { g->value[value].recipe };
    *s = (oct_sources){ .nodes = todo[0] != NULL };
    for (size_t done = 0; done < s->nodes; done++) {
        const oct_recipe *r = todo[done];
        if (r->opset != oct_graph_opset(g, r->node.domain))
            return false;
        for (int i = 0; i < r->node.n_in; i++) {
            const oct_tensor *t = r->from[i];
            const oct_recipe *of = t ? g->value[r->node.in[i]].recipe : NULL;
            if (!t || t->dtype == OCT_STRING)
                continue;
            of = of && of->made[g->value[r->node.in[i]].made_slot] == t ? of : NULL;
            bool seen = !of;
            for (size_t k = 0; k < s->nodes && !seen; k++)
                seen = todo[k] == of;
            if (seen && (of || listed(s->of, s->n, t)))
                continue;
            if ((of ? s->nodes : s->n) == OCT_RECIPE_NODES)
                return false;
            if (of) {
                todo[s->nodes++] = of;
            } else {
                s->of[s->n++] = t;
                s->bytes += t->bytes;
            }
        }
    }
    return s->nodes > 0;
}

/* ---- computing it again ---- */

/* What stands for a tensor in a graph, from now on. */
typedef struct stand_in {
    const oct_graph *g;
    const oct_tensor *t;
    int value;
} stand_in;

struct oct_unfolding {
    oct_arena *arena;
    stand_in *list;
    size_t n, cap;
};

oct_unfolding *oct_unfolding_create(void)
{
    oct_arena *a = oct_arena_create();
    oct_unfolding *u = a ? oct_arena_calloc(a, 1, sizeof *u) : NULL;
    if (u)
        u->arena = a;
    else
        oct_arena_destroy(a);
    return u;
}

void oct_unfolding_destroy(oct_unfolding *u)
{
    if (u)
        oct_arena_destroy(u->arena);
}

static oct_status remember(oct_unfolding *u, const oct_graph *g, const oct_tensor *t, int value, oct_err *err)
{
    if (!OCT_GROW(u->arena, u->list, u->n, u->cap))
        return oct_nomem(err);
    u->list[u->n++] = (stand_in){ g, t, value };
    return OCT_OK;
}

static int remembered(const oct_unfolding *u, const oct_graph *g, const oct_tensor *t)
{
    for (size_t i = u->n; i-- > 0;)
        if (u->list[i].t == t && u->list[i].g == g)
            return u->list[i].value;
    return -1;
}

static oct_status add_again(oct_graph *g, const oct_recipe *r, int slot, int value, oct_unfolding *u, oct_err *err);

/* A new value that replaces value v, constant t; computed: by its recipe, if it has one. */
static oct_status make_again(oct_graph *g, int v, const oct_tensor *t, bool computed, oct_unfolding *u, int *out,
                             oct_err *err)
{
    const oct_recipe *r = computed ? g->value[v].recipe : NULL;
    const int slot = g->value[v].made_slot;
    OCT_TRY(oct_graph_new_value(g, g->value[v].name, t->dtype, out, err));
    OCT_TRY(oct_graph_set_dims(g, *out, t->rank, t->dims, err));
    OCT_TRY(remember(u, g, t, *out, err));
    if (r && r->made[slot] == t)
        return add_again(g, r, slot, *out, u, err);
    oct_graph_set_const(g, *out, t);
    return OCT_OK;
}

/* The value that holds t, which was constant v: v itself, where it is what the file had, else what stands for it.
 * Graphs around g have t as a constant: oct_graph_sources has not asked how they computed it. */
static oct_status source_of(oct_graph *g, int v, const oct_tensor *t, bool around, oct_unfolding *u, int *out,
                            oct_err *err)
{
    const oct_value *x = &g->value[v];
    *out = remembered(u, g, t);
    if (*out >= 0)
        return OCT_OK;
    if (!x->dead && x->constant == t && (around || !x->recipe)) {
        *out = v;
        return OCT_OK;
    }
    if (x->outer < 0)
        return make_again(g, v, t, !around, u, out, err);
    int outer;
    OCT_TRY(source_of(g->outer, x->outer, t, true, u, &outer, err));
    OCT_TRY(oct_graph_capture(g, outer, out, err));
    return remember(u, g, t, *out, err);
}

/* Adds the node of a recipe. value becomes its output `slot`; new values become its other outputs and represent the
 * former ones. */
static oct_status add_again(oct_graph *g, const oct_recipe *r, int slot, int value, oct_unfolding *u, oct_err *err)
{
    const oct_node *was = &r->node;
    int id, v;
    OCT_TRY(oct_graph_add_node(g, was->op, was->domain, was->name, was->n_in, was->n_out, g->n_order ? g->order[0] : -1,
                               &id, err));
    g->node[id].overload = was->overload;
    g->node[id].attr = was->attr;
    g->node[id].n_attr = was->n_attr;
    g->node[id].cap_attr = was->n_attr;
    g->node[id].changed = true;
    for (int k = 0; k < was->n_out; k++) {
        v = value;
        if (k != slot && !r->made[k])
            continue;
        if (k != slot) {
            OCT_TRY(oct_graph_new_value(g, g->value[value].name, r->made[k]->dtype, &v, err));
            OCT_TRY(remember(u, g, r->made[k], v, err));
        }
        OCT_TRY(oct_graph_set_output(g, id, k, v, err));
    }
    for (int i = 0; i < was->n_in; i++)
        if (r->from[i]) {
            OCT_TRY(source_of(g, was->in[i], r->from[i], false, u, &v, err));
            OCT_TRY(oct_graph_set_input(g, id, i, v, err));
        }
    return OCT_OK;
}

oct_status oct_graph_unfold(oct_graph *g, int value, oct_unfolding *u, oct_err *err)
{
    oct_value *x = &g->value[value];
    const oct_recipe *r = x->recipe;
    const int before = remembered(u, g, x->constant), slot = x->made_slot;
    g->changed = true;
    if (before >= 0) /* computed for another one already */
        return oct_graph_replace_uses(g, value, before, err);
    OCT_TRY(remember(u, g, x->constant, value, err));
    x->constant = NULL;
    x->recipe = NULL;
    return add_again(g, r, slot, value, u, err);
}
