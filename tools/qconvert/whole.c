/* qconvert MODEL: the whole conversion, and its messages. */
#include "qconvert/qconvert.h"

#include "common/print_answer.h"

/* Makes the report and writes it as JSON, where one is asked for; with text also for people. */
static oct_status write_report(const session *s, bool text, oct_err *err)
{
    oct_document *d = oct_document_create();
    if (d)
        oct_session_report(s->of, d);
    const oct_item *report = oct_document_root(d);
    oct_status st = tool_write_report(s->cli->json, oct_json_text, report, err);
    if (st == OCT_OK && text)
        st = oct_session_page(s->of, err);
    if (st == OCT_OK && text && !s->cli->quiet)
        st = report_print(s, report, err);
    oct_document_destroy(d);
    return st;
}

static oct_status print_advice(const session *s, oct_err *err)
{
    oct_document *d = oct_document_create();
    const oct_status st = d ? oct_session_advice(s->of, d, err) : oct_nomem(err);
    if (st == OCT_OK)
        tool_print_more(oct_document_root(d), oct_cli_result(s->cli));
    oct_document_destroy(d);
    return st;
}

static oct_status convert(session *s, oct_err *err)
{
    const oct_status fits = oct_session_fits(s->of, err);
    if (fits != OCT_OK) {
        OCT_TRY(write_report(s, false, err));
        return fits;
    }
    OCT_TRY(oct_session_make(s->of, err));
    if (s->a->print_graph)
        return oct_write_text("-", oct_session_graph(s->of), err);
    OCT_TRY(write_report(s, true, err));
    if (!s->cli->quiet)
        OCT_TRY(print_advice(s, err));
    return oct_session_goal(s->of, err);
}

oct_status qconvert_run(oct_cli *cli, const convert_args *a, oct_err *err)
{
    session s = { .cli = cli, .a = a };
    tool_command_line(&s.command, cli, a->argc, a->argv);
    const char *const written[] = { cli->json };
    const octet_convert_options x = convert_options(cli, a);
    const oct_session_host host = { .voice = tool_voice(cli),
                                    .written = written,
                                    .n_written = OCT_COUNT(written),
                                    .spill = true,
                                    .command = oct_buf_str(&s.command),
                                    .graph = a->print_graph,
                                    .dot = a->dot };
    oct_status st = oct_session_open(&x, &host, &s.of, err);
    cli->output_taken = strcmp(x.model, "-") == 0 && !x.output && !x.dry_run;
    if (st == OCT_OK && s.command.failed)
        st = oct_nomem(err);
    if (st == OCT_OK)
        st = oct_session_decide(s.of, err);
    if (st == OCT_OK)
        st = convert(&s, err);
    oct_session_close(s.of);
    oct_buf_free(&s.command);
    return st;
}
