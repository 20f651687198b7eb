/* qconvert lint: how a target runs each node of a finished model, what goes wrong, and which targets the file fits. For
 * a float model it shows what a conversion would make of it. */
#include "qconvert/lint.h"

#include "cli/textfmt.h"
#include "common/print_rows.h"
#include "quant/lint/examine.h"

typedef struct linter {
    session s;
    oct_calib *table; /* --calib */
    oct_lint *l;
    oct_qjob *job; /* for a float model: the intended decisions of a conversion */
    oct_layer *layers;
    size_t n_layers;
    oct_lint_verdict v;    /* for the requested target */
    oct_lint_verdict *all; /* for every built-in target */
    size_t n_all;
} linter;

/* ---- the report ---- */

static void put_node(oct_json *j, const void *row)
{
    static const char *const runs[] = { [OCT_STANDS_FLOAT] = "float",
                                        [OCT_STANDS_INTEGER] = "int8",
                                        [OCT_STANDS_BLOCKS] = "blocks",
                                        [OCT_STANDS_LEFT] = "left",
                                        [OCT_STANDS_APART] = "float" };
    const oct_lint_node *x = row;
    const oct_stand_kind kind = x->stand.kind;
    oct_json_str(j, "name", x->name);
    oct_json_str(j, "op", x->op);
    oct_json_str(j, "runs", runs[kind]);
    oct_json_bool(j, "integer", kind == OCT_STANDS_INTEGER);
    oct_json_bool(j, "lost", x->lost);
    oct_json_str(j, "why", x->stand.why);
    if (x->with)
        oct_json_str(j, "with", x->with);
}

static void put_findings(oct_json *j, const char *key, const oct_finding *f, size_t n, const oct_target *t)
{
    oct_json_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "kind", oct_finding_name(f[i].kind));
        oct_json_str(j, "node", f[i].name);
        oct_json_str(j, "op", f[i].op);
        oct_json_str(j, "text", f[i].text);
        oct_json_bool(j, "concerns", oct_finding_concerns(&f[i], t));
        oct_json_close(j);
    }
    oct_json_close(j);
}

/* Why a file does not fit a target. */
static void misfit_text(const oct_lint_verdict *v, oct_buf *b)
{
    if (v->n_trap)
        oct_buf_printf(b, "it does not load it: '%s': %s", v->trap[0].name, v->trap[0].text);
    else if (v->lost)
        oct_buf_printf(b, "%zu of %zu quantized layers %s: '%s': %s", v->lost, v->layers,
                       v->left ? "are left to the runtime" : "run in float", v->first_lost, v->first_why);
    else if (v->saturating)
        oct_buf_printf(b, "sums of %zu layer%s may saturate at 16 bits", v->saturating, v->saturating == 1 ? "" : "s");
    else
        oct_buf_puts(b, "nothing in it runs on integers");
}

static void put_target(oct_json *j, const void *row)
{
    const oct_lint_verdict *v = row;
    oct_buf why = OCT_BUF_INIT;
    oct_json_str(j, "name", v->target);
    oct_json_bool(j, "fits", v->fits);
    oct_json_int(j, "nodes", (int64_t)v->n);
    oct_json_int(j, "integer_nodes", (int64_t)v->integer);
    oct_json_int(j, "quantized_layers", (int64_t)v->layers);
    oct_json_int(j, "float_layers", (int64_t)v->lost);
    oct_json_int(j, "saturating_layers", (int64_t)v->saturating);
    oct_json_int(j, "traps", (int64_t)v->n_trap);
    if (!v->fits) {
        misfit_text(v, &why);
        oct_json_str(j, "why", oct_buf_str(&why));
    }
    oct_buf_free(&why);
}

static void put_report(const linter *x, oct_document *to)
{
    const oct_layer_count c = oct_layers_count(x->layers, x->n_layers);
    const bool quantized = x->l->quantized;
    oct_json json = { .to = to }, *j = &json;
    oct_report_open(j, "octet-lint-2");
    oct_json_str(j, "model", x->s.a->x.model);
    oct_json_str(j, "target", x->v.target);
    oct_json_bool(j, "quantized", quantized);
    oct_json_int(j, "counted_nodes", (int64_t)(quantized ? x->v.n : c.nodes));
    oct_json_int(j, "integer_nodes", (int64_t)(quantized ? x->v.integer : c.integer_nodes));
    oct_json_rows(j, "nodes", x->v.node, x->v.n, sizeof *x->v.node, put_node);
    oct_json_rows(j, "conversion", x->layers, x->n_layers, sizeof *x->layers, oct_report_decision);
    put_findings(j, "findings", x->l->finding, x->l->n_finding, x->s.of.target);
    put_findings(j, "traps", x->v.trap, x->v.n_trap, x->s.of.target);
    oct_json_rows(j, "targets", x->all, x->n_all, sizeof *x->all, put_target);
    oct_json_close(j);
}

/* ---- text ---- */

static const char *scheme_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return oct_item_true(row, "integer") ? "int8" : oct_item_text(row, path);
}

static oct_status print_table(const oct_item *report, FILE *f, oct_err *err)
{
    static const tool_column runs[] = {
        { "node", "name", NULL }, { "op", "op", NULL }, { "runs as", "runs", NULL }, { "why", "why", NULL }
    };
    static const tool_column would_run[] = { { "node", "name", NULL },
                                             { "op", "op", NULL },
                                             { "would run as", "scheme", scheme_cell, true },
                                             { "why", "why", NULL } };
    const bool quantized = oct_item_true(report, "quantized");
    return tool_print_rows(oct_item_at(report, quantized ? "nodes" : "conversion"), SIZE_MAX,
                           quantized ? runs : would_run, OCT_COUNT(runs), f, err);
}

static void print_findings(const oct_item *list, FILE *f)
{
    for (const oct_item *x = NULL; (x = oct_item_next(list, x));)
        if (oct_item_true(x, "concerns"))
            oct_print(f, "%s: '%s' (%s): %s\n", oct_item_text(x, "kind"), oct_item_text(x, "node"),
                      oct_item_text(x, "op"), oct_item_text(x, "text"));
}

static oct_status print(const oct_item *report, FILE *f, oct_err *err)
{
    const oct_item *targets = oct_item_at(report, "targets");
    const bool quantized = oct_item_true(report, "quantized");
    size_t n = 0;
    OCT_TRY(print_table(report, f, err));
    oct_print(f,
              quantized ? "\n%.0f of %.0f nodes run on integers in %s.\n"
                        : "\nA float model: %.0f of %.0f nodes would run on integers in %s.\n",
              oct_item_number(report, "integer_nodes"), oct_item_number(report, "counted_nodes"),
              oct_item_text(report, "target"));
    print_findings(oct_item_at(report, "traps"), f);
    print_findings(oct_item_at(report, "findings"), f);
    for (const oct_item *t = NULL; (t = oct_item_next(targets, t));)
        if (!oct_item_true(t, "fits"))
            oct_print(f, "not %s: %s\n", oct_item_text(t, "name"), oct_item_text(t, "why"));
    fputs(quantized ? "fits:" : "fits, in float:", f);
    for (const oct_item *t = NULL; (t = oct_item_next(targets, t));)
        if (oct_item_true(t, "fits"))
            oct_print(f, "%s %s", n++ ? "," : "", oct_item_text(t, "name"));
    fputs(n ? "\n" : " none\n", f);
    return OCT_OK;
}

static oct_status write_reports(const linter *x, const oct_item *report, oct_err *err)
{
    oct_cli *cli = x->s.cli;
    if (!report)
        return oct_nomem(err);
    OCT_TRY(tool_write_report(cli->json, oct_json_text, report, err));
    OCT_TRY(tool_write_report(x->s.a->sarif, lint_sarif, report, err));
    return cli->quiet ? OCT_OK : print(report, oct_cli_result(cli), err);
}

/* ---- the whole command ---- */

static oct_status judge_all(linter *x, oct_err *err)
{
    size_t n = 0;
    while (oct_target_builtin(n, NULL))
        n++;
    OCT_TRY(oct_lint_judge(x->l, x->s.of.target, &x->v, err));
    if (!(x->all = oct_arena_calloc(x->l->arena, n + 1, sizeof *x->all)))
        return oct_nomem(err);
    for (; x->n_all < n; x->n_all++) {
        oct_target *t;
        OCT_TRY(oct_target_open(oct_target_builtin(x->n_all, NULL), &t, err));
        const oct_status s = oct_lint_judge(x->l, t, &x->all[x->n_all], err);
        oct_lint_verdict *v = &x->all[x->n_all];
        v->target = oct_target_builtin(x->n_all, NULL);
        const char *why = v->first_why ? v->first_why : "";
        v->first_why = oct_arena_strdup(
            x->l->arena, why); /* this text belongs to the target, which is closed; its nodes are not needed again */
        oct_target_close(t);
        OCT_TRY(s);
        if (!v->first_why)
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status lint(linter *x, oct_cli *cli, const convert_args *a, oct_err *err)
{
    OCT_TRY(session_open(&x->s, cli, a, true, err));
    if (a->x.calib)
        OCT_TRY(oct_calib_load(a->x.calib, &x->table, err));
    OCT_TRY_WITHIN(oct_lint_open(x->s.of.m->graph, x->table, &x->l, err), err, "%s", a->x.model);
    OCT_TRY(judge_all(x, err));
    if (!x->l->quantized) /* last, because it changes the model's graph */
        OCT_TRY_WITHIN(oct_session_preview(&x->s.of, x->s.of.m->graph, &x->job, &x->layers, &x->n_layers, err), err,
                       "%s", a->x.model);
    oct_document *report = oct_document_create();
    if (!report)
        return oct_nomem(err);
    put_report(x, report);
    const oct_status st = write_reports(x, oct_document_root(report), err);
    oct_document_destroy(report);
    return st;
}

oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err)
{
    linter x = { .job = NULL };
    const oct_status s = lint(&x, cli, a, err);
    oct_qjob_destroy(x.job);
    oct_lint_close(x.l);
    oct_calib_destroy(x.table);
    session_close(&x.s);
    return s;
}
