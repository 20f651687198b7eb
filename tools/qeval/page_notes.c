/* Additional contents for the page about the models: how each node runs and why, which operators are gone, and what made the file. */
#include "qeval/qeval.h"

#include "common/page_findings.h"
#include "ops/op.h"

#include <math.h>
#include <string.h>

/* The runtime that the reasons are about: the one that evaluates. */
static const char target_name[] = "octet";

static const char *scheme_of(const oct_eval_model_result *m, const oct_lint_node *node)
{
    if (node->stand.kind == OCT_STANDS_BLOCKS)
        return "weight-only";
    for (size_t i = 0; i < m->n_layers; i++) /* 16-bit floats do not depend on the target */
        if (strcmp(m->layers[i].name, node->name) == 0 && strcmp(m->layers[i].scheme, "int8") != 0)
            return m->layers[i].scheme;
    return node->stand.kind == OCT_STANDS_INTEGER ? "int8" : "float";
}

static oct_status take_layers(const oct_eval_model_result *m, const oct_lint_verdict *v, oct_arena *a, oct_page_model *to, oct_err *err)
{
    oct_page_layer *list = oct_arena_calloc(a, v->n + 1, sizeof *list);
    if (!list)
        return oct_nomem(err);
    for (size_t i = 0; i < v->n; i++)
        list[i] = (oct_page_layer){ .name = v->node[i].name, .op = v->node[i].op, .scheme = scheme_of(m, &v->node[i]), .why = v->node[i].stand.why, .sqnr_weights = NAN,
                                    .sqnr_output = NAN };
    to->layer = list;
    to->n_layers = v->n;
    return OCT_OK;
}

/* ---- operators that disappeared or are new ---- */

static size_t count_op(const oct_graph *g, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_order; i++)
        n += strcmp(g->node[g->order[i]].op, op) == 0;
    return n;
}

/* Adds a line for the operator of node i of g, if the other graph has fewer nodes with it and no earlier node of g has it. */
static oct_status count_line(const oct_graph *g, size_t i, const oct_graph *other, const char *format, oct_arena *a, oct_page_lines *lines, oct_page_line *v, oct_err *err)
{
    const oct_op *record = oct_op_of(g, g->order[i]);
    const char *op = g->node[g->order[i]].op;
    const size_t n = count_op(g, op), left = count_op(other, op);
    if (n <= left || (record && record->is_qdq))
        return OCT_OK;
    for (size_t k = 0; k < i; k++)
        if (strcmp(g->node[g->order[k]].op, op) == 0)
            return OCT_OK;
    const char *text = oct_arena_printf(a, format, n, left);
    v[lines->n++] = (oct_page_line){ op, NULL, text, n - left };
    return text ? OCT_OK : oct_nomem(err);
}

static oct_status take_changes(const oct_graph *was, const oct_graph *is, oct_arena *a, oct_page_lines *lines, oct_err *err)
{
    oct_page_line *v = oct_arena_calloc(a, was->n_order + is->n_order + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    *lines = (oct_page_lines){ v, 0 };
    for (size_t i = 0; i < was->n_order; i++)
        OCT_TRY(count_line(was, i, is, "%zu in the float model, %zu in this one", a, lines, v, err));
    for (size_t i = 0; i < is->n_order; i++)
        OCT_TRY(count_line(is, i, was, "%zu in this one, %zu in the float model", a, lines, v, err));
    return OCT_OK;
}

/* ---- a model ---- */

static oct_status take_model(const oct_eval_model *models, const oct_eval_result *r, size_t k, const oct_target *t, oct_lint **lint, oct_arena *a, oct_page_model *to, oct_err *err)
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

oct_status qeval_page_open(const oct_eval_model *models, oct_model *const *loaded, const oct_eval_result *r, const qeval_args *a, const oct_cli *cli, oct_arena *arena,
                           qeval_page *p, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    *p = (qeval_page){ .n = r->n_models };
    oct_page_model *m = oct_arena_calloc(arena, r->n_models + 1, sizeof *m);
    p->lint = oct_arena_calloc(arena, r->n_models + 1, sizeof *p->lint);
    tool_command_line(&b, cli, a->argc, a->argv);
    p->notes = (oct_page_notes){ .title = "Evaluation", .command = b.failed ? NULL : oct_arena_strdup(arena, oct_buf_str(&b)), .model = m };
    oct_buf_free(&b);
    if (!m || !p->lint || !p->notes.command)
        return oct_nomem(err);
    OCT_TRY(oct_target_open(target_name, &p->target, err));
    for (size_t k = 1; k < r->n_models; k++)
        if (!models[k].bf16)
            OCT_TRY_WITHIN(take_model(models, r, k, p->target, &p->lint[k], arena, &m[k], err), err, "%s", models[k].name);
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
