/* qconvert lint: how a target runs each node of a finished model, what goes wrong, and which targets the file fits. For
 * a float model it shows what a conversion would make of it. */
#include "qconvert/lint.h"

#include "api/inspect.h"
#include "cli/textfmt.h"
#include "common/print_rows.h"

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

static oct_status write_reports(oct_cli *cli, const convert_args *a, const oct_item *report, oct_err *err)
{
    OCT_TRY(tool_write_report(cli->json, oct_json_text, report, err));
    OCT_TRY(tool_write_report(a->sarif, lint_sarif, report, err));
    return cli->quiet ? OCT_OK : print(report, oct_cli_result(cli), err);
}

oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err)
{
    const octet_convert_options x = convert_options(cli, a);
    const char *const written[] = { cli->json, a->sarif };
    const oct_session_host host = {
        .voice = tool_voice(cli), .written = written, .n_written = OCT_COUNT(written), .spill = true
    };
    oct_document *report = oct_document_create();
    oct_status s = report ? oct_session_lint(&x, &host, report, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = write_reports(cli, a, oct_document_root(report), err);
    oct_document_destroy(report);
    return s;
}
