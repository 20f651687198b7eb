/* How a target runs each node of a finished model, of schema "octet-lint-2". */
#include "api/inspect.h"

#include "quant/lint/examine.h"

typedef struct linter {
    oct_session s;
    oct_calib *table;
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
    oct_json_str(j, "model", x->s.x.model);
    oct_json_str(j, "target", x->v.target);
    oct_json_bool(j, "quantized", quantized);
    oct_json_int(j, "counted_nodes", (int64_t)(quantized ? x->v.n : c.nodes));
    oct_json_int(j, "integer_nodes", (int64_t)(quantized ? x->v.integer : c.integer_nodes));
    oct_json_rows(j, "nodes", x->v.node, x->v.n, sizeof *x->v.node, put_node);
    oct_json_rows(j, "conversion", x->layers, x->n_layers, sizeof *x->layers, oct_report_decision);
    put_findings(j, "findings", x->l->finding, x->l->n_finding, x->s.target);
    put_findings(j, "traps", x->v.trap, x->v.n_trap, x->s.target);
    oct_json_rows(j, "targets", x->all, x->n_all, sizeof *x->all, put_target);
    oct_json_close(j);
}

/* ---- the whole ---- */

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

static oct_status lint(linter *x, const octet_convert_options *options, const oct_session_host *h, oct_document *to,
                       oct_err *err)
{
    OCT_TRY(oct_session_open(&x->s, options, h, err));
    if (options->calib)
        OCT_TRY(oct_calib_load(options->calib, &x->table, err));
    OCT_TRY_WITHIN(oct_lint_open(x->s.m->graph, x->table, &x->l, err), err, "%s", options->model);
    OCT_TRY(judge_all(x, err));
    if (!x->l->quantized) /* last, because it changes the model's graph */
        OCT_TRY_WITHIN(oct_session_preview(&x->s, x->s.m->graph, &x->job, &x->layers, &x->n_layers, err), err, "%s",
                       options->model);
    put_report(x, to);
    return OCT_OK;
}

oct_status oct_session_lint(const octet_convert_options *x, const oct_session_host *h, oct_document *to, oct_err *err)
{
    linter l = { .job = NULL };
    oct_session_host host = *h;
    host.no_save = true;
    const oct_status s = lint(&l, x, &host, to, err);
    oct_qjob_destroy(l.job);
    oct_lint_close(l.l);
    oct_calib_destroy(l.table);
    oct_session_close(&l.s);
    return s;
}
