/* qconvert lint: how a target runs each node of a finished model, what goes wrong, and which targets the file fits. For
 * a float model it shows what a conversion would make of it. */
#include "qconvert/lint.h"

#include "cli/text_table.h"
#include "cli/textfmt.h"

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

static const char *runs_as(const oct_stand *s)
{
    static const char *const as[] = { [OCT_STANDS_FLOAT] = "float",
                                      [OCT_STANDS_INTEGER] = "int8",
                                      [OCT_STANDS_BLOCKS] = "blocks",
                                      [OCT_STANDS_LEFT] = "left",
                                      [OCT_STANDS_APART] = "float" };
    return as[s->kind];
}

/* ---- JSON ---- */

static void put_node(oct_json *j, const void *row)
{
    const oct_lint_node *x = row;
    oct_json_str(j, "name", x->name);
    oct_json_str(j, "op", x->op);
    oct_json_str(j, "runs", runs_as(&x->stand));
    oct_json_bool(j, "integer", x->stand.kind == OCT_STANDS_INTEGER);
    oct_json_str(j, "why", x->stand.why);
    if (x->with)
        oct_json_str(j, "with", x->with);
}

static void put_finding(oct_json *j, const void *row)
{
    const oct_finding *x = row;
    oct_json_str(j, "kind", oct_finding_name(x->kind));
    oct_json_str(j, "node", x->name);
    oct_json_str(j, "op", x->op);
    oct_json_str(j, "text", x->text);
}

static void put_target(oct_json *j, const void *row)
{
    const oct_lint_verdict *v = row;
    oct_json_str(j, "name", v->target);
    oct_json_bool(j, "fits", v->fits);
    oct_json_int(j, "nodes", (int64_t)v->n);
    oct_json_int(j, "integer_nodes", (int64_t)v->integer);
    oct_json_int(j, "quantized_layers", (int64_t)v->layers);
    oct_json_int(j, "float_layers", (int64_t)v->lost);
    oct_json_int(j, "saturating_layers", (int64_t)v->saturating);
    oct_json_int(j, "traps", (int64_t)v->n_trap);
}

static oct_status lint_json(const linter *x, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_json j = OCT_JSON_INIT(&b);
    tool_json_open(&j, "octet-lint-2");
    oct_json_str(&j, "model", x->s.a->model);
    oct_json_str(&j, "target", x->v.target);
    oct_json_bool(&j, "quantized", x->l->quantized);
    oct_json_rows(&j, "nodes", x->v.node, x->v.n, sizeof *x->v.node, put_node);
    oct_json_rows(&j, "conversion", x->layers, x->n_layers, sizeof *x->layers, report_decision);
    oct_json_rows(&j, "findings", x->l->finding, x->l->n_finding, sizeof *x->l->finding, put_finding);
    oct_json_rows(&j, "traps", x->v.trap, x->v.n_trap, sizeof *x->v.trap, put_finding);
    oct_json_rows(&j, "targets", x->all, x->n_all, sizeof *x->all, put_target);
    return tool_write_json(x->s.cli->json, &j, err);
}

/* ---- text ---- */

static oct_status print_table(const linter *x, FILE *f, oct_err *err)
{
    const char *const titles[] = { "node", "op", x->l->quantized ? "runs as" : "would run as", "why" };
    oct_table *t = oct_table_of("llll", titles);
    for (size_t i = 0; i < x->v.n && x->l->quantized; i++) {
        const oct_lint_node *n = &x->v.node[i];
        oct_table_texts(t, (const char *[]){ n->name, n->op, runs_as(&n->stand), n->stand.why });
    }
    for (size_t i = 0; i < x->n_layers; i++) {
        const oct_layer *n = &x->layers[i];
        oct_table_texts(t, (const char *[]){ n->name, n->d.op, n->d.integer ? "int8" : oct_scheme_name(n->d.scheme),
                                             n->d.why });
    }
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

static void print_count(const linter *x, FILE *f)
{
    const oct_layer_count c = oct_layers_count(x->layers, x->n_layers);
    if (x->l->quantized)
        oct_print(f, "\n%zu of %zu nodes run on integers in %s.\n", x->v.integer, x->v.n, x->v.target);
    else
        oct_print(f, "\nA float model: %zu of %zu nodes would run on integers in %s.\n", c.integer_nodes, c.nodes,
                  x->v.target);
}

static void print_findings(const linter *x, FILE *f, const oct_finding *finding, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (oct_finding_concerns(&finding[i], x->s.target))
            oct_print(f, "%s: '%s' (%s): %s\n", oct_finding_name(finding[i].kind), finding[i].name, finding[i].op,
                      finding[i].text);
}

static void print_misfit(FILE *f, const oct_lint_verdict *v)
{
    if (v->n_trap)
        oct_print(f, "not %s: it does not load it: '%s': %s\n", v->target, v->trap[0].name, v->trap[0].text);
    else if (v->lost)
        oct_print(f, "not %s: %zu of %zu quantized layers %s: '%s': %s\n", v->target, v->lost, v->layers,
                  v->left ? "are left to the runtime" : "run in float", v->first_lost, v->first_why);
    else if (v->saturating)
        oct_print(f, "not %s: sums of %zu layer%s may saturate at 16 bits\n", v->target, v->saturating,
                  v->saturating == 1 ? "" : "s");
    else
        oct_print(f, "not %s: nothing in it runs on integers\n", v->target);
}

static void print_fits(const linter *x, FILE *f)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_all; i++)
        if (!x->all[i].fits)
            print_misfit(f, &x->all[i]);
    fputs(x->l->quantized ? "fits:" : "fits, in float:", f);
    for (size_t i = 0; i < x->n_all; i++)
        if (x->all[i].fits)
            oct_print(f, "%s %s", n++ ? "," : "", x->all[i].target);
    fputs(n ? "\n" : " none\n", f);
}

static oct_status print(const linter *x, oct_err *err)
{
    FILE *f = oct_cli_result(x->s.cli);
    OCT_TRY(print_table(x, f, err));
    print_count(x, f);
    print_findings(x, f, x->v.trap, x->v.n_trap);
    print_findings(x, f, x->l->finding, x->l->n_finding);
    print_fits(x, f);
    return OCT_OK;
}

/* ---- the whole command ---- */

static oct_status judge_all(linter *x, oct_err *err)
{
    size_t n = 0;
    while (oct_target_builtin(n, NULL))
        n++;
    OCT_TRY(oct_lint_judge(x->l, x->s.target, &x->v, err));
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
    OCT_TRY(session_open(&x->s, cli, a, err));
    if (a->calib)
        OCT_TRY(oct_calib_load(a->calib, &x->table, err));
    OCT_TRY_WITHIN(oct_lint_open(x->s.m->graph, x->table, &x->l, err), err, "%s", a->model);
    OCT_TRY(judge_all(x, err));
    if (!x->l->quantized) /* last, because it changes the model's graph */
        OCT_TRY_WITHIN(session_preview(&x->s, x->s.m->graph, &x->job, &x->layers, &x->n_layers, err), err, "%s",
                       a->model);
    if (cli->json)
        OCT_TRY(lint_json(x, err));
    if (a->sarif)
        OCT_TRY(lint_sarif(a->sarif, a->model, x->l, x->s.target, &x->v, err));
    return cli->quiet ? OCT_OK : print(x, err);
}

oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err)
{
    linter x = { .job = NULL };
    convert_args own = *a;
    own.no_save = true;
    const oct_status s = lint(&x, cli, &own, err);
    oct_qjob_destroy(x.job);
    oct_lint_close(x.l);
    oct_calib_destroy(x.table);
    session_close(&x.s);
    return s;
}
