/* Additional contents for the page about the models: how each node runs and why, which operators are gone, and what
 * made the file. */
#include "qeval/qeval.h"

#include "base/name_map.h"
#include "common/page_findings.h"
#include "ops/op.h"

#include <math.h>
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

static oct_status take_layers(const oct_eval_model_result *m, const oct_lint_verdict *v, oct_arena *a,
                              oct_page_model *to, oct_err *err)
{
    oct_name_map floats;
    oct_page_layer *list = oct_arena_calloc(a, v->n + 1, sizeof *list);
    if (!list)
        return oct_nomem(err);
    OCT_TRY(oct_name_map_init(&floats, m->n_layers, a, err));
    for (size_t i = 0; i < m->n_layers; i++)
        if (strcmp(m->layers[i].scheme, "int8") != 0)
            oct_name_map_add(&floats, m->layers[i].name, i);
    for (size_t i = 0; i < v->n; i++)
        list[i] = (oct_page_layer){ .name = v->node[i].name,
                                    .op = v->node[i].op,
                                    .scheme = scheme_of(m, &floats, &v->node[i]),
                                    .why = v->node[i].stand.why,
                                    .sqnr_weights = NAN,
                                    .sqnr_output = NAN };
    to->layer = list;
    to->n_layers = v->n;
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

/* Adds a line for each operator of g of which the other graph has fewer nodes. */
static oct_status add_lines(const oct_graph *g, const op_counts *own, const op_counts *other, const char *format,
                            oct_arena *a, oct_page_lines *lines, oct_page_line *v, oct_err *err)
{
    for (size_t k = 0; k < own->number.n; k++) {
        const int id = g->order[own->first[k]];
        const oct_op *record = oct_op_of(g, id);
        const size_t there = oct_name_map_find(&other->number, g->node[id].op),
                     left = there == SIZE_MAX ? 0 : other->n[there];
        if (own->n[k] <= left || (record && record->is_qdq))
            continue;
        const char *text = oct_arena_printf(a, format, own->n[k], left);
        if (!text)
            return oct_nomem(err);
        v[lines->n++] = (oct_page_line){ g->node[id].op, NULL, text, own->n[k] - left };
    }
    return OCT_OK;
}

static oct_status take_changes(const oct_graph *was, const oct_graph *is, oct_arena *a, oct_page_lines *lines,
                               oct_err *err)
{
    op_counts before, after;
    oct_page_line *v = oct_arena_calloc(a, was->n_order + is->n_order + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    *lines = (oct_page_lines){ v, 0 };
    OCT_TRY(count_ops(was, a, &before, err));
    OCT_TRY(count_ops(is, a, &after, err));
    OCT_TRY(add_lines(was, &before, &after, "%zu in the float model, %zu in this one", a, lines, v, err));
    return add_lines(is, &after, &before, "%zu in this one, %zu in the float model", a, lines, v, err);
}

/* ---- a model ---- */

static oct_status take_model(const oct_eval_model *models, const oct_eval_result *r, size_t k, const oct_target *t,
                             oct_lint **lint, oct_arena *a, oct_page_model *to, oct_err *err)
{
    oct_lint_verdict v;
    oct_page_line *line;
    OCT_TRY(oct_lint_open(models[k].graph, NULL, lint, err));
    OCT_TRY(oct_lint_judge(*lint, t, &v, err));
    if (!r->models[k].runner) /* the reasons are about our runtime */
        OCT_TRY(take_layers(&r->models[k], &v, a, to, err));
    OCT_TRY(take_changes(models[0].graph, (*lint)->read, a, &to->changes, err));
    OCT_TRY(tool_page_findings(*lint, &v, t, 0, &line, &to->findings.n, err));
    to->findings.v = line;
    return OCT_OK;
}

oct_status qeval_page_open(const oct_eval_model *models, oct_model *const *loaded, const oct_eval_result *r,
                           const qeval_args *a, const oct_cli *cli, oct_arena *arena, qeval_page *p, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    *p = (qeval_page){ .n = r->n_models };
    oct_page_model *m = oct_arena_calloc(arena, r->n_models + 1, sizeof *m);
    p->lint = oct_arena_calloc(arena, r->n_models + 1, sizeof *p->lint);
    tool_command_line(&b, cli, a->argc, a->argv);
    p->notes = (oct_page_notes){ .title = "Evaluation",
                                 .command = b.failed ? NULL : oct_arena_strdup(arena, oct_buf_str(&b)),
                                 .model = m };
    oct_buf_free(&b);
    if (!m || !p->lint || !p->notes.command)
        return oct_nomem(err);
    OCT_TRY(oct_target_open(target_name, &p->target, err));
    for (size_t k = 1; k < r->n_models; k++)
        if (!models[k].bf16)
            OCT_TRY_WITHIN(take_model(models, r, k, p->target, &p->lint[k], arena, &m[k], err), err, "%s",
                           models[k].name);
    for (size_t k = 0; k < r->n_models; k++)
        m[k].command = loaded[k] ? oct_model_meta(loaded[k], "octet.command") : NULL;
    return OCT_OK;
}

void qeval_page_close(qeval_page *p)
{
    for (size_t k = 0; p->lint && k < p->n; k++)
        oct_lint_close(p->lint[k]);
    oct_target_close(p->target);
}
