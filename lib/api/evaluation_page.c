/* Additional contents for the page about the models: how each node runs and why, which operators are gone, and what
 * made the file. */
#include "api/evaluation_int.h"

#include "api/page_findings.h"
#include "eval/pairs/name_map.h"
#include "ops/op.h"

#include <stdio.h>
#include <string.h>

/* The runtime that the reasons are about: the one that evaluates. */
static const char target_name[] = "octet";

/* floats: the layers that compute in floats, of any width, by name. */
static const char *scheme_of(const oct_eval_model_result *m, const oct_name_map *floats, const oct_lint_node *node)
{
    if (node->stand.kind == OCT_STANDS_BLOCKS)
        return "weight-only";
    const size_t layer = oct_name_map_find(floats, node->name);
    if (layer != SIZE_MAX) /* 16-bit floats do not depend on the target */
        return m->layers[layer].scheme;
    return node->stand.kind == OCT_STANDS_INTEGER ? "int8" : "float";
}

static oct_status put_nodes(oct_json *j, const oct_eval_model_result *m, const oct_lint_verdict *v, oct_arena *a,
                            oct_err *err)
{
    oct_name_map floats;
    OCT_TRY(oct_name_map_init(&floats, m->n_layers, a, err));
    for (size_t i = 0; i < m->n_layers; i++)
        if (strcmp(m->layers[i].scheme, "int8") != 0)
            oct_name_map_add(&floats, m->layers[i].name, i);
    oct_json_open(j, "nodes", '[');
    for (size_t i = 0; i < v->n; i++) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "name", v->node[i].name);
        oct_json_str(j, "op", v->node[i].op);
        oct_json_str(j, "scheme", scheme_of(m, &floats, &v->node[i]));
        oct_json_str(j, "why", v->node[i].stand.why);
        oct_json_bool(j, "weighted", v->node[i].weighted);
        oct_json_open(j, "from", '[');
        for (size_t k = 0; k < v->node[i].n_from; k++)
            oct_json_int(j, NULL, v->node[i].from[k]);
        oct_json_close(j);
        oct_json_close(j);
    }
    oct_json_close(j);
    return OCT_OK;
}

/* ---- operators that disappeared or are new ---- */

/* How often each operator stands in a graph. */
typedef struct op_counts {
    oct_name_map number; /* of an operator, in the order in which they first appear */
    size_t *first, *n;   /* by number: its first place in the order of the graph, and how many nodes there are */
} op_counts;

static oct_status count_ops(const oct_graph *g, oct_arena *a, op_counts *c, oct_err *err)
{
    OCT_TRY(oct_name_map_init(&c->number, g->n_order, a, err));
    c->first = oct_arena_calloc(a, g->n_order + 1, sizeof *c->first);
    c->n = oct_arena_calloc(a, g->n_order + 1, sizeof *c->n);
    if (!c->first || !c->n)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        const char *op = g->node[g->order[i]].op;
        oct_name_map_add(&c->number, op, c->number.n);
        const size_t k = oct_name_map_find(&c->number, op);
        c->first[k] = c->n[k]++ ? c->first[k] : i;
    }
    return OCT_OK;
}

/* Puts a change for each operator of g of which the other graph has fewer nodes. */
static void put_changes(oct_json *j, const oct_graph *g, const op_counts *own, const op_counts *other,
                        const char *format)
{
    for (size_t k = 0; k < own->number.n; k++) {
        const int id = g->order[own->first[k]];
        const oct_op *record = oct_op_of(g, id);
        const size_t there = oct_name_map_find(&other->number, g->node[id].op),
                     left = there == SIZE_MAX ? 0 : other->n[there];
        char text[80];
        if (own->n[k] <= left || (record && record->is_qdq))
            continue;
        snprintf(text, sizeof text, format, own->n[k], left);
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "pass", g->node[id].op);
        oct_json_str(j, "change", text);
        oct_json_int(j, "count", (int64_t)(own->n[k] - left));
        oct_json_close(j);
    }
}

static oct_status put_passes(oct_json *j, const oct_graph *was, const oct_graph *is, oct_arena *a, oct_err *err)
{
    op_counts before, after;
    OCT_TRY(count_ops(was, a, &before, err));
    OCT_TRY(count_ops(is, a, &after, err));
    oct_json_open(j, "passes", '[');
    put_changes(j, was, &before, &after, "%zu in the float model, %zu in this one");
    put_changes(j, is, &after, &before, "%zu in this one, %zu in the float model");
    oct_json_close(j);
    return OCT_OK;
}

/* ---- a model ---- */

static oct_status put_model(oct_json *j, const oct_evaluation_notes *p, size_t k, oct_err *err)
{
    oct_lint *lint = NULL;
    oct_lint_verdict v;
    oct_status st = oct_lint_open(p->e->models[k].graph, NULL, &lint, err);
    if (st == OCT_OK)
        st = oct_lint_judge(lint, p->target, &v, err);
    if (st == OCT_OK && !p->r->models[k].runner) /* the reasons are about our runtime */
        st = put_nodes(j, &p->r->models[k], &v, p->e->arena, err);
    if (st == OCT_OK)
        st = put_passes(j, p->e->models[0].graph, lint->read, p->e->arena, err);
    if (st == OCT_OK) {
        oct_json_open(j, "findings", '[');
        oct_put_findings(j, lint, &v, p->target);
        oct_json_close(j);
    }
    oct_lint_close(lint);
    OCT_TRY_WITHIN(st, err, "%s", p->e->models[k].name);
    return OCT_OK;
}

void oct_evaluation_put_notes(oct_json *j, size_t k, const void *notes)
{
    oct_evaluation_notes *p = (oct_evaluation_notes *)notes;
    if (p->st == OCT_OK && !p->target)
        p->st = oct_target_open(target_name, &p->target, p->err);
    if (p->st == OCT_OK && k && !p->e->models[k].bf16)
        p->st = put_model(j, p, k, p->err);
    const char *command = p->e->loaded[k] ? oct_model_meta(p->e->loaded[k], "octet.command") : NULL;
    if (command)
        oct_json_str(j, "made_by", command);
}
