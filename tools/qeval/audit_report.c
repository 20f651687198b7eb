/* qeval audit FOLDER, qeval FOLDER NEW: variants of the models of a folder. */
#include "api/folder/folder.h"
#include "base/number_text.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"
#include "qeval/qeval.h"

#include <math.h>
#include <string.h>

/* The first metric, as "perplexity 3.05 (3.04)", or where it compares the two models as "agreement 0.98". */
static void put_metric(oct_table *t, const oct_item *v)
{
    const oct_item *floats = oct_item_at(v, "float_metrics");
    for (const oct_item *x = NULL; (x = oct_item_next(oct_item_at(v, "metrics"), x));) {
        const double was = oct_item_number(oct_item_member(floats, oct_item_name(x)), ""), is = oct_item_number(x, "");
        if (isnan(is))
            continue;
        oct_table_cell(t, isnan(was) ? "%s %.4g" : "%s %.4g (%.4g)", oct_item_name(x), is, was);
        return;
    }
    oct_table_cell(t, "%s", "");
}

static oct_status print_variants(const oct_item *report, FILE *f, oct_err *err)
{
    oct_table *t = oct_table_create();
    oct_table_column(t, "file", OCT_LEFT);
    oct_table_column(t, "bytes", OCT_RIGHT);
    oct_table_column(t, "SQNR", OCT_RIGHT);
    oct_table_column(t, "metric (float)", OCT_LEFT);
    oct_table_column(t, "verdict", OCT_LEFT);
    for (const oct_item *v = NULL; (v = oct_item_next(oct_item_at(report, "variants"), v));) {
        char bytes[32], db[32];
        const char *file = oct_item_text(v, "file");
        const double sqnr = oct_item_number(v, "output_sqnr_db");
        oct_table_row(t);
        oct_table_cell(t, "%s", file ? file : oct_item_text(v, "model"));
        oct_table_cell(t, "%s",
                       oct_item_whole(v, "bytes") ? oct_fmt_bytes(bytes, (uint64_t)oct_item_whole(v, "bytes")) : "");
        oct_table_cell(t, "%s", isnan(sqnr) ? "" : oct_fmt_db(db, sqnr));
        put_metric(t, v);
        oct_table_cell(t, "%s", oct_item_text(v, "verdict"));
    }
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

static oct_status print(oct_cli *cli, const oct_item *report, oct_err *err)
{
    FILE *f = oct_cli_result(cli);
    OCT_TRY(print_variants(report, f, err));
    for (const oct_item *v = NULL; (v = oct_item_next(oct_item_at(report, "variants"), v));) {
        const char *why = oct_item_text(v, "why"), *verdict = oct_item_text(v, "verdict");
        const char *file = oct_item_text(v, "file") ? oct_item_text(v, "file") : oct_item_text(v, "model");
        const bool named = why && strncmp(why, file, strlen(file)) == 0; /* errors of loading name the file */
        if (why && strcmp(verdict, "loads") != 0)
            oct_print(f, "%s: %s%s%s\n", verdict, named ? "" : file, named ? "" : ": ", why);
    }
    oct_print(f, "%s\n", oct_item_text(report, "text"));
    return OCT_OK;
}

oct_status qeval_folder(const octet_evaluate_options *x, const char *recipe, oct_cli *cli, oct_err *err)
{
    const char *const written[] = { cli->json };
    const oct_evaluation_host h = { .voice = tool_voice(cli), .written = written, .n_written = OCT_COUNT(written) };
    oct_document *report = oct_document_create();
    const oct_status judged = report ? oct_folder_audit(x, recipe, &h, report, err) : oct_nomem(err);
    oct_status s = judged;
    if (judged == OCT_OK || judged == OCT_EGOAL) {
        s = tool_write_report(cli->json, oct_json_text, oct_document_root(report), judged == OCT_OK ? err : NULL);
        if (s == OCT_OK && !cli->quiet)
            s = print(cli, oct_document_root(report), judged == OCT_OK ? err : NULL);
        s = s == OCT_OK ? judged : s;
    }
    oct_document_destroy(report);
    return s;
}
