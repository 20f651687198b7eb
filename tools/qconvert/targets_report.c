/* qconvert with several targets: a file for each, and a table that compares them. */
#include "qconvert/qconvert.h"

#include "api/convert_targets.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"
#include "common/print_answer.h"

#include <math.h>

/* "12 of 12"; where none is int8, what they are instead. */
static void layers_cell(oct_table *t, const oct_item *r)
{
    const double all = oct_item_number(r, "layers_with_weights"), ints = oct_item_number(r, "int8_layers"),
                 half = oct_item_number(r, "half_layers"), blocks = oct_item_number(r, "weight_only_layers");
    oct_table_cell(t, "%.0f of %.0f%s", ints > 0 ? ints : half + blocks, all,
                   ints > 0 || half + blocks == 0 ? ""
                   : blocks > 0                   ? " stored"
                                                  : " halved");
}

static oct_status print_table(const oct_item *report, FILE *f, oct_err *err)
{
    oct_table *t =
        oct_table_of("lrrrrr", (const char *[]){ "target", "layers int8", "work int8", "accuracy", "size", "traps" });
    for (const oct_item *r = NULL; (r = oct_item_next(oct_item_at(report, "targets"), r));) {
        const double share = oct_item_number(r, "integer_share");
        const char *accuracy = oct_item_text(r, "accuracy");
        char work[32], size[32];
        oct_table_row(t);
        oct_table_cell(t, "%s", oct_item_text(r, "target"));
        layers_cell(t, r);
        oct_table_cell(t, "%s", isnan(share) ? "not known" : oct_fmt_percent(work, share));
        oct_table_cell(t, "%s", accuracy ? accuracy : "-");
        oct_table_cell(t, "%s", oct_fmt_bytes(size, (uint64_t)oct_item_whole(r, "size_bytes.after")));
        oct_table_cell(t, "%.0f", oct_item_number(r, "findings"));
    }
    const oct_status s = oct_table_print(t, f, err);
    oct_table_destroy(t);
    return s;
}

oct_status targets_compare(oct_cli *cli, const octet_convert_options *x, octet_texts targets, oct_document *to,
                           oct_err *err)
{
    const char *const written[] = { cli->json };
    const oct_session_host host = {
        .voice = tool_voice(cli), .written = written, .n_written = OCT_COUNT(written), .spill = true
    };
    FILE *f = oct_cli_result(cli);
    const oct_status s = oct_targets_convert(x, targets, &host, to, err);
    const oct_item *report = oct_document_root(to);
    if (s != OCT_OK && s != OCT_EGOAL)
        return s;
    oct_err *second = s == OCT_OK ? err : NULL;
    oct_status w = tool_write_report(cli->json, oct_json_text, report, second);
    if (w == OCT_OK && !cli->quiet && (w = print_table(report, f, second)) == OCT_OK)
        tool_print_more(oct_item_at(report, "answer"), f);
    return s == OCT_OK ? w : s;
}

oct_status qconvert_targets(oct_cli *cli, const convert_args *a, oct_err *err)
{
    const octet_convert_options x = convert_options(cli, a);
    oct_document *d = oct_document_create();
    const oct_status s = d ? targets_compare(cli, &x, tool_texts(a->targets), d, err) : oct_nomem(err);
    oct_document_destroy(d);
    return s;
}
