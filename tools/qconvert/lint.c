/* qconvert lint: whether a target runs a finished model on integers, what goes wrong, and which targets the file fits.
 * For a float model it says what a conversion would make of it. */
#include "qconvert/lint.h"

#include "api/choices.h"
#include "api/inspect.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"
#include "common/print_answer.h"
#include "common/print_rows.h"

#include <math.h>

/* ---- for people ---- */

static const char *scheme_cell(char dst[TOOL_CELL], const oct_item *row, const char *path)
{
    return oct_item_true(row, "integer") ? "int8" : oct_item_text(row, path);
}

static oct_status print_nodes(const oct_item *report, FILE *f, oct_err *err)
{
    static const tool_column runs[] = {
        { "node", "name", NULL }, { "op", "op", NULL }, { "runs as", "runs", NULL }, { "why", "why", NULL }
    };
    static const tool_column would_run[] = { { "node", "name", NULL },
                                             { "op", "op", NULL },
                                             { "would run as", "scheme", scheme_cell, true },
                                             { "why", "why", NULL } };
    const bool quantized = oct_item_true(report, "quantized");
    oct_print(f, "\n");
    OCT_TRY(tool_print_rows(oct_item_at(report, quantized ? "nodes" : "conversion"), SIZE_MAX,
                            quantized ? runs : would_run, OCT_COUNT(runs), f, err));
    oct_print(f,
              quantized ? "\n%.0f of %.0f nodes run on integers in %s.\n"
                        : "\nA float model: %.0f of %.0f nodes would run on integers in %s.\n",
              oct_item_number(report, "integer_nodes"), oct_item_number(report, "counted_nodes"),
              oct_item_text(report, "target"));
    return OCT_OK;
}

static void print_findings(const oct_item *list, FILE *f)
{
    for (const oct_item *x = NULL; (x = oct_item_next(list, x));)
        if (oct_item_true(x, "concerns"))
            oct_print(f, "%s: '%s' (%s): %s\n", oct_item_text(x, "kind"), oct_item_text(x, "node"),
                      oct_item_text(x, "op"), oct_item_text(x, "text"));
}

static oct_status print(const oct_item *report, bool every, FILE *f, oct_err *err)
{
    tool_print_answer(oct_item_at(report, "answer"), f);
    if (!every)
        return OCT_OK;
    OCT_TRY(print_nodes(report, f, err));
    print_findings(oct_item_at(report, "traps"), f);
    print_findings(oct_item_at(report, "findings"), f);
    return OCT_OK;
}

/* A row for each target. */
static oct_status print_targets(const oct_item *const *report, size_t n, FILE *f, oct_err *err)
{
    oct_table *t = oct_table_of("lrrrl", (const char *[]){ "target", "layers int8", "work int8", "traps", "verdict" });
    for (size_t i = 0; i < n; i++) {
        const oct_item *r = report[i], *traps = oct_item_at(r, "traps");
        const double share = oct_item_number(r, "integer_share");
        char work[32];
        oct_table_row(t);
        oct_table_cell(t, "%s", oct_item_text(r, "target"));
        oct_table_cell(t, "%.0f of %.0f", oct_item_number(r, "integer_layers"),
                       oct_item_number(r, "layers_with_weights"));
        oct_table_cell(t, "%s", isnan(share) ? "not known" : oct_fmt_percent(work, share));
        oct_table_cell(t, "%zu", oct_item_count(traps, ""));
        oct_table_cell(t, "%s",
                       !oct_item_true(r, "quantized")   ? "if converted"
                       : oct_item_true(r, "fits")       ? "fits"
                       : oct_item_count(traps, "") == 0 ? "does not fit"
                                                        : "does not load");
    }
    const oct_status st = oct_table_print(t, f, err);
    oct_table_destroy(t);
    if (st == OCT_OK)
        oct_print(f, "work: multiply-accumulates; lint with one --target says why\n");
    return st;
}

/* ---- gates ---- */

/* A target of a report, as the gates judge it. */
typedef struct gated {
    const char *target, *unfit; /* unfit: why it does not fit; NULL: it fits */
    double layers, integer, share;
} gated;

/* OCT_EGOAL: the target runs too little of the model on integers, or with --strict it does not fit. */
static oct_status judge(const convert_args *a, gated g, oct_err *err)
{
    const char *of = "multiply-accumulates";
    double least = 0;
    if (a->min_integer)
        OCT_TRY(oct_share_parse("--min-integer", "multiply-accumulates", a->min_integer, &least, err));
    if (isnan(g.share)) { /* shapes are not known */
        g.share = g.layers > 0 ? g.integer / g.layers : 0;
        of = "layers with weights";
    }
    if (a->min_integer && g.share < least)
        return oct_fail(err, OCT_EGOAL,
                        "--min-integer: %.4g %% of the %s run on integers in %s, at least %.4g %% are asked for",
                        100 * g.share, of, g.target, 100 * least);
    if (!a->lint_strict || !g.unfit)
        return OCT_OK;
    return oct_fail(err, OCT_EGOAL, "--strict: the model %s %s", g.unfit, g.target);
}

static oct_status judge_report(const convert_args *a, const oct_item *r, oct_err *err)
{
    return judge(a,
                 (gated){ .target = oct_item_text(r, "target"),
                          .unfit = oct_item_true(r, "fits")        ? NULL
                                   : oct_item_true(r, "quantized") ? "does not fit"
                                                                   : "is not quantized, and so not yet fit for",
                          .layers = oct_item_number(r, "layers_with_weights"),
                          .integer = oct_item_number(r, "integer_layers"),
                          .share = oct_item_number(r, "integer_share") },
                 err);
}

/* The same of models that were converted for it. */
static oct_status judge_converted(const convert_args *a, const oct_item *report, oct_err *err)
{
    for (const oct_item *r = NULL; (r = oct_item_next(oct_item_at(report, "targets"), r));)
        OCT_TRY(judge(a,
                      (gated){ .target = oct_item_text(r, "target"),
                               .unfit = oct_item_number(r, "findings") > 0 ? "would not fit" : NULL,
                               .layers = oct_item_number(r, "layers_with_weights"),
                               .integer = oct_item_number(r, "int8_layers"),
                               .share = oct_item_number(r, "integer_share") },
                      err));
    return OCT_OK;
}

/* ---- the whole ---- */

/* Several reports in one: of schema octet-lints-1. */
static oct_status write_json(const char *path, const oct_item *const *report, size_t n, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    if (!path)
        return OCT_OK;
    if (n > 1)
        oct_buf_printf(&b, "{\n\"schema\": \"%s\",\n\"version\": \"%s\",\n\"%s\": [\n", "octet-lints-1", OCT_VERSION,
                       "reports");
    for (size_t i = 0; i < n; i++) {
        oct_buf_puts(&b, i ? ",\n" : "");
        oct_json_text(report[i], &b);
    }
    if (n > 1)
        oct_buf_puts(&b, "]\n}\n");
    const oct_status st = oct_write_text(path, &b, err);
    oct_buf_free(&b);
    return st;
}

static oct_status write_reports(oct_cli *cli, const convert_args *a, const oct_item *const *report, size_t n,
                                oct_err *err)
{
    FILE *f = oct_cli_result(cli);
    OCT_TRY(write_json(cli->json, report, n, err));
    OCT_TRY(tool_write_report(a->sarif, lint_sarif, report[0], err));
    if (!cli->quiet)
        OCT_TRY(n == 1 ? print(report[0], cli->verbose, f, err) : print_targets(report, n, f, err));
    for (size_t i = 0; i < n; i++)
        OCT_TRY(judge_report(a, report[i], err));
    return OCT_OK;
}

/* With samples a float model is converted: then its loss and its size are known, too. */
static oct_status lint_converted(oct_cli *cli, const convert_args *a, oct_err *err)
{
    const char *usual = oct_target_builtin(0, NULL);
    const octet_texts one = { &usual, 1 };
    oct_document *d = oct_document_create();
    octet_convert_options x = convert_options(cli, a);
    x.dry_run = true;
    oct_status s = !d         ? oct_nomem(err)
                   : a->sarif ? oct_fail(err, OCT_EUSAGE,
                                         "--sarif is for a model that is quantized, or for a float "
                                         "model without --data")
                              : targets_compare(cli, &x, a->targets.n ? tool_texts(a->targets) : one, d, err);
    if (s == OCT_OK)
        s = judge_converted(a, oct_document_root(d), err);
    oct_document_destroy(d);
    return s;
}

oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err)
{
    octet_convert_options x = convert_options(cli, a);
    const char *const written[] = { cli->json, a->sarif };
    const oct_session_host host = {
        .voice = tool_voice(cli), .written = written, .n_written = OCT_COUNT(written), .spill = true
    };
    const size_t n = a->targets.n ? a->targets.n : 1;
    double share;
    if (a->min_integer)
        OCT_TRY(oct_share_parse("--min-integer", "multiply-accumulates", a->min_integer, &share, err));
    if (n > 1 && a->sarif)
        return oct_fail(err, OCT_EUSAGE, "--sarif is for one target, and --target names %zu", n);
    if (oct_samples_any(&x.samples))
        return lint_converted(cli, a, err);
    oct_document **d = oct_calloc(n, sizeof *d);
    const oct_item **report = oct_calloc(n, sizeof *report);
    oct_status s = d && report ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < n; i++) {
        x.target = a->targets.n ? a->targets.v[i] : NULL;
        d[i] = oct_document_create();
        s = d[i] ? oct_session_lint(&x, &host, d[i], err) : oct_nomem(err);
        report[i] = oct_document_root(d[i]);
        if (s == OCT_OK && !report[i])
            s = oct_nomem(err);
    }
    if (s == OCT_OK)
        s = write_reports(cli, a, report, n, err);
    for (size_t i = 0; d && i < n; i++)
        oct_document_destroy(d[i]);
    oct_free(d);
    oct_free(report);
    return s;
}
