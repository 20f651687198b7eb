/* qconvert FOLDER: a folder of models in, a folder out. */
#include "api/folder/folder.h"
#include "base/number_text.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"
#include "qconvert/qconvert.h"

/* "int8 12 of 14": what most layers with weights have become. */
static void put_layers(oct_table *t, const oct_item *m)
{
    const long long blocks = (long long)oct_item_whole(m, "weight_only_layers"),
                    integer = (long long)oct_item_whole(m, "int8_layers"),
                    half = (long long)oct_item_whole(m, "half_layers"),
                    all = (long long)oct_item_whole(m, "layers_with_weights");
    const long long changed = blocks ? blocks : integer ? integer : half;
    oct_table_cell(t, changed ? "%lld of %lld" : "", changed, all);
}

static oct_status print_models(const oct_item *report, FILE *f, oct_err *err)
{
    const oct_item *models = oct_item_at(report, "models");
    oct_table *t = oct_table_create();
    oct_table_column(t, "file", OCT_LEFT);
    oct_table_column(t, "scheme", OCT_LEFT);
    oct_table_column(t, "layers", OCT_RIGHT);
    oct_table_column(t, "before", OCT_RIGHT);
    oct_table_column(t, "after", OCT_RIGHT);
    oct_table_column(t, "SQNR", OCT_RIGHT);
    for (const oct_item *m = NULL; (m = oct_item_next(models, m));) {
        char was[32], is[32], db[32];
        const char *scheme = oct_item_text(m, "scheme");
        oct_table_row(t);
        oct_table_cell(t, "%s", oct_item_text(m, "result"));
        oct_table_cell(t, "%s", scheme ? scheme : "by size");
        put_layers(t, m);
        oct_table_cell(t, "%s", oct_fmt_bytes(was, (uint64_t)oct_item_whole(m, "bytes_before")));
        oct_table_cell(t, "%s", oct_fmt_bytes(is, (uint64_t)oct_item_whole(m, "bytes_after")));
        oct_table_cell(t, "%s",
                       oct_item_at(m, "output_sqnr_db") ? oct_fmt_db(db, oct_item_number(m, "output_sqnr_db")) : "");
    }
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

static void print_files(const oct_item *report, FILE *f)
{
    int copied = 0;
    for (const oct_item *x = NULL; (x = oct_item_next(oct_item_at(report, "files"), x));) {
        const char *why = oct_item_text(x, "why"), *what = oct_item_text(x, "what");
        if (why)
            oct_print(f, "%s: %s (%s)\n", what, oct_item_text(x, "file"), why);
        else if (strcmp(what, "amended") == 0)
            oct_print(f, "%s: %s\n", what, oct_item_text(x, "file"));
        else
            copied++;
    }
    if (copied)
        oct_print(f, "copied: %d other file%s\n", copied, copied == 1 ? "" : "s");
}

/* "model.onnx: 41 % of the file is float: Gather (wte: its table is small)" */
static void print_floats(const oct_item *m, FILE *f)
{
    const oct_item *floats = oct_item_at(m, "float_bytes");
    double share = 0;
    for (const oct_item *x = NULL; (x = oct_item_next(floats, x));)
        share += oct_item_number(x, "share");
    if (share > 0)
        oct_print(f, "%s: %.0f %% of the file is float: ", oct_item_text(m, "result"), 100 * share);
    for (const oct_item *x = NULL; (x = oct_item_next(floats, x));) {
        const char *why = oct_item_text(x, "why"), *op = oct_item_text(x, "op");
        oct_print(f, "%s%s (%s%s%s)", x == oct_item_of(floats, 0) ? "" : ", ", *op ? op : "in nested graphs",
                  oct_item_text(x, "largest"), why ? ": " : "", why ? why : "");
    }
    if (share > 0)
        oct_print(f, "\n");
}

static oct_status print(oct_cli *cli, const oct_item *report, oct_err *err)
{
    FILE *f = oct_cli_result(cli);
    OCT_TRY(print_models(report, f, err));
    print_files(report, f);
    for (const oct_item *m = NULL; (m = oct_item_next(oct_item_at(report, "models"), m));)
        print_floats(m, f);
    for (const oct_item *m = NULL; (m = oct_item_next(oct_item_at(report, "models"), m));)
        if (oct_item_text(m, "shared_data"))
            oct_print(f, "%s shares %s\n", oct_item_text(m, "result"), oct_item_text(m, "shared_data"));
    oct_print(f, "%s\n", oct_item_text(report, "text"));
    return OCT_OK;
}

oct_status qconvert_folder(oct_cli *cli, const convert_args *a, oct_err *err)
{
    const octet_convert_options x = convert_options(cli, a);
    const char *const written[] = { cli->json };
    const oct_session_host host = {
        .voice = tool_voice(cli), .written = written, .n_written = OCT_COUNT(written), .spill = true
    };
    oct_document *report = oct_document_create();
    oct_status s = report ? oct_folder_convert(&x, a->recipe, &host, report, err) : oct_nomem(err);
    if (s == OCT_OK || s == OCT_EGOAL) {
        const oct_status w =
            tool_write_report(cli->json, oct_json_text, oct_document_root(report), s == OCT_OK ? err : NULL);
        s = w == OCT_OK ? s : w;
    }
    if (s == OCT_OK && !cli->quiet)
        s = print(cli, oct_document_root(report), err);
    oct_document_destroy(report);
    return s;
}
