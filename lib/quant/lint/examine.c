/* Examines a finished model: walks its graphs, and judges its nodes for a target. */
#include "quant/lint/examine.h"

#include "forms/forms.h"
#include "forms/qlinear.h"
#include "ops/traits.h"
#include "passes/pass.h"

/* ---- opening ---- */

static size_t count_nodes(const oct_graph *g)
{
    const oct_graph *nested;
    size_t n = g->n_order;
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            n += count_nodes(nested);
    return n;
}

static oct_status place_of(oct_arena *a, const char *where, const oct_graph *g, int node, size_t k, const char **place,
                           oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_node_put_path(g, node, k, &b);
    *place = b.failed ? NULL : oct_arena_printf(a, "%s%s", where, oct_buf_str(&b));
    oct_buf_free(&b);
    return *place ? OCT_OK : oct_nomem(err);
}

typedef oct_status finder(oct_lint *l, const oct_graph *g, const char *where, oct_err *err);

/* Looks for faults in a graph and in those that its nodes hold. */
static oct_status find_all(oct_lint *l, finder *find, const oct_graph *g, const char *where, oct_err *err)
{
    const oct_graph *nested;
    const char *place;
    OCT_TRY(find(l, g, where, err));
    for (size_t i = 0; i < g->n_order; i++)
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++) {
            OCT_TRY(place_of(l->arena, where, g, g->order[i], k, &place, err));
            OCT_TRY(find_all(l, find, nested, place, err));
        }
    return OCT_OK;
}

static oct_status look(oct_lint *l, const oct_graph *model, oct_err *err)
{
    OCT_TRY(oct_graph_clone(model, &l->g, err));
    OCT_TRY(oct_infer_shapes(l->g, err));
    OCT_TRY(oct_check_types(l->g, err));
    OCT_TRY(oct_passes_flatten(l->g, err));
    OCT_TRY(oct_infer_shapes(l->g, err));
    l->quantized = oct_has_quantized(l->g);
    l->nodes = count_nodes(l->g);
    OCT_TRY(oct_graph_clone(l->g, &l->read, err));
    OCT_TRY(oct_forms_read(l->read, NULL, NULL, err));
    oct_graph_prune(l->read);
    OCT_TRY(find_all(l, oct_hazards_find, l->read, "", err));
    return find_all(l, oct_rounded_find, l->g, "", err);
}

oct_status oct_lint_open(const oct_graph *model, const oct_calib *table, oct_lint **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_lint *l = a ? oct_arena_calloc(a, 1, sizeof *l) : NULL;
    *out = NULL;
    if (!l) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    l->arena = a;
    l->table = table;
    const oct_status s = look(l, model, err);
    if (s != OCT_OK) {
        oct_lint_close(l);
        return s;
    }
    *out = l;
    return OCT_OK;
}

void oct_lint_close(oct_lint *l)
{
    if (!l)
        return;
    oct_graph_destroy(l->read);
    oct_graph_destroy(l->g);
    oct_arena_destroy(l->arena);
}

/* ---- judging ---- */

/* Whether a node is a product or a recurrent layer that the file has quantized: its weights, or both factors. One of
 * real weights between quantizers was left float. */
static bool is_quantized_layer(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    const oct_qlinear *f = oct_qlinear_of(n);
    if (f)
        return oct_op_is_layer(oct_op_find("", f->op, f->opset));
    if (op && op->scheme)
        return true;
    for (int i = 0; i < 2 && i < n->n_in && oct_op_is_layer(op); i++) {
        if (i == 0 && oct_input_at(n, 1) >= 0 && g->value[n->in[1]].constant)
            continue;
        const int p = n->in[i] >= 0 ? g->value[n->in[i]].producer : -1;
        if (p >= 0 && oct_op_of(g, p) && oct_op_of(g, p)->is_qdq)
            return true;
    }
    return false;
}

static oct_status take_trap(oct_lint *l, const oct_target *t, const oct_graph *g, int id, bool integer,
                            const char *name, oct_lint_verdict *v, oct_err *err)
{
    const char *lacks = oct_target_lacks(t, g, id), *why = lacks ? lacks : oct_target_refuses(t, g, id, integer);
    if (!why)
        return OCT_OK;
    if (!OCT_GROW(l->arena, v->trap, v->n_trap, v->cap_trap))
        return oct_nomem(err);
    v->trap[v->n_trap++] = (oct_finding){ .kind = OCT_FINDING_TRAP, .name = name, .op = g->node[id].op, .text = why };
    return OCT_OK;
}

/* Whether a node is a layer whose weights are constant, in any form. */
static bool has_weights(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    if (!oct_op_is_layer(op) || !op->weights.slots)
        return op && op->scheme;
    const int slot = __builtin_ctz(op->weights.slots);
    return slot < n->n_in && n->in[slot] >= 0 && oct_value_is_constant(&g->value[n->in[slot]]);
}

/* Counts the weights and the work of the last node of the list. read: the graph with quantization at its values; NULL:
 * it has no such node. */
static void count_work(const oct_graph *g, const oct_graph *read, int id, const oct_stand *s, oct_lint_verdict *v)
{
    const oct_graph *of = read && (size_t)id < read->n_node && !read->node[id].dead ? read : g;
    const bool integer = s->kind == OCT_STANDS_INTEGER, weighted = has_weights(of, id);
    const double macs = (double)oct_node_macs(of, id);
    v->weighted += weighted;
    v->weighted_integer += weighted && integer;
    v->weighted_blocks += weighted && s->kind == OCT_STANDS_BLOCKS;
    v->macs += macs;
    v->integer_macs += integer ? macs : 0;
    v->node[v->n - 1].macs = macs;
    v->node[v->n - 1].weighted = weighted;
}

/* Finds which nodes of the list make the inputs of a node. Those that are not in the list, since they only express
 * quantization, stand for the one before them. of: [n_node]: the place of a node in the list; -1: none. */
static oct_status connect(oct_lint *l, const oct_graph *g, int id, bool listed, int *of, oct_lint_verdict *v,
                          oct_err *err)
{
    const oct_node *n = &g->node[id];
    int *from = oct_arena_alloc(l->arena, ((size_t)n->n_in + 1) * sizeof *from);
    size_t n_from = 0;
    if (!from)
        return oct_nomem(err);
    for (int k = 0; k < n->n_in; k++) {
        const int made = n->in[k] >= 0 ? g->value[n->in[k]].producer : -1;
        if (made >= 0 && of[made] >= 0)
            from[n_from++] = of[made];
    }
    if (listed) {
        v->node[v->n - 1].from = from;
        v->node[v->n - 1].n_from = n_from;
        of[id] = (int)v->n - 1;
    } else if (n_from) {
        of[id] = from[0];
    }
    return OCT_OK;
}

/* read: as in count_work. left_with: the node that holds the graph, if the target leaves it to another runtime; else
 * NULL. */
static oct_status judge_graph(oct_lint *l, const oct_target *t, const oct_graph *g, const oct_graph *read,
                              const char *where, const oct_stand *left_with, oct_lint_verdict *v, oct_err *err)
{
    oct_stand *stand;
    const oct_graph *nested;
    const char *place;
    int *of = NULL; /* as in connect; none inside bodies */
    if (g == l->g && !(of = oct_arena_alloc(l->arena, (g->n_node + 1) * sizeof *of)))
        return oct_nomem(err);
    for (size_t i = 0; of && i < g->n_node; i++)
        of[i] = -1;
    OCT_TRY(oct_target_stands(t, g, l->arena, &stand, err));
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_stand *s = &stand[id];
        if (left_with && s->kind != OCT_STANDS_APART)
            stand[id] = *left_with;
        const char *name = oct_arena_printf(l->arena, "%s%s", where, oct_node_label(g, id));
        if (!name)
            return oct_nomem(err);
        OCT_TRY(take_trap(l, t, g, id, s->kind == OCT_STANDS_INTEGER, name, v, err));
        if (s->kind != OCT_STANDS_APART) {
            v->node[v->n++] =
                (oct_lint_node){ name, g->node[id].op, *s, s->with >= 0 ? oct_node_label(g, s->with) : NULL, false };
            v->integer += s->kind == OCT_STANDS_INTEGER;
            count_work(g, read, id, s, v);
        }
        if (of)
            OCT_TRY(connect(l, g, id, s->kind != OCT_STANDS_APART, of, v, err));
        if (s->kind != OCT_STANDS_APART && is_quantized_layer(g, id)) {
            v->layers++;
            const bool lost = s->kind == OCT_STANDS_FLOAT || s->kind == OCT_STANDS_LEFT;
            v->node[v->n - 1].lost = lost;
            v->lost += lost;
            v->left |= s->kind == OCT_STANDS_LEFT;
            if (lost && !v->first_lost) {
                v->first_lost = name;
                v->first_why = s->why;
            }
        }
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++) {
            OCT_TRY(place_of(l->arena, where, g, id, k, &place, err));
            const bool is_read = read && (size_t)id < read->n_node && !read->node[id].dead;
            OCT_TRY(judge_graph(l, t, nested, is_read ? oct_node_graph_at(&read->node[id], k) : NULL, place,
                                s->kind == OCT_STANDS_LEFT ? s : left_with, v, err));
        }
    }
    return OCT_OK;
}

oct_status oct_lint_judge(oct_lint *l, const oct_target *t, oct_lint_verdict *v, oct_err *err)
{
    *v = (oct_lint_verdict){ .target = oct_target_name(t) };
    if (!(v->node = oct_arena_calloc(l->arena, l->nodes + 1, sizeof *v->node)))
        return oct_nomem(err);
    OCT_TRY(judge_graph(l, t, l->g, l->read, "", NULL, v, err));
    for (size_t i = 0; i < l->n_finding; i++)
        v->saturating += l->finding[i].kind == OCT_FINDING_SATURATES && oct_finding_concerns(&l->finding[i], t);
    v->fits = !v->n_trap && !v->lost && !v->saturating && (v->layers || v->integer || !l->quantized);
    return OCT_OK;
}
