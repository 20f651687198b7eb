/* qconvert verify MODEL: makes the model again from what its record names, and says whether it is the same. */
#include "qconvert/qconvert.h"

#include "api/inspect.h"
#include "cli/textfmt.h"

static void print(const oct_item *report, FILE *f)
{
    const oct_item *inputs = oct_item_at(report, "inputs");
    oct_print_line(f, "", 0,
                   "verified: %s is, to its last byte (%lld), what octet %s makes of:", oct_item_text(report, "model"),
                   (long long)oct_item_whole(report, "bytes"), oct_item_text(report, "version"));
    for (const oct_item *x = NULL; (x = oct_item_next(inputs, x));)
        oct_print_line(f, "", 2, "%s", oct_item_text(x, "text"));
    oct_print_line(f, "", 2, "command %s", oct_item_text(report, "command"));
}

static oct_status write_reports(oct_cli *cli, const char *statement, oct_status same, const oct_item *report,
                                const oct_item *stated, oct_err *err)
{
    OCT_TRY(tool_write_report(cli->json, oct_json_text, report, same == OCT_OK ? err : NULL));
    OCT_TRY(same);
    if (statement)
        OCT_TRY(tool_write_report(statement, oct_json_text, stated, err));
    if (!cli->quiet)
        print(report, oct_cli_result(cli));
    return OCT_OK;
}

oct_status qconvert_verify(oct_cli *cli, const convert_args *a, oct_err *err)
{
    const octet_convert_options x = convert_options(cli, a);
    const char *const written[] = { cli->json, a->statement };
    const oct_session_host host = {
        .voice = tool_voice(cli), .written = written, .n_written = OCT_COUNT(written), .spill = true
    };
    oct_document *report = oct_document_create(), *stated = oct_document_create();
    oct_status s = report && stated ? oct_session_verify(&x, &host, a->source, a->evaluation, report,
                                                         a->statement ? stated : NULL, err)
                                    : oct_nomem(err);
    if (s == OCT_OK || s == OCT_EGOAL)
        s = write_reports(cli, a->statement, s, oct_document_root(report), oct_document_root(stated), err);
    oct_document_destroy(report);
    oct_document_destroy(stated);
    return s;
}
