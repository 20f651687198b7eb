/* qconvert MODEL: the whole conversion, and its messages. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"

/* Makes the report and writes it as JSON, where one is asked for; with text also for people. */
static oct_status write_report(const session *s, bool text, oct_err *err)
{
    oct_document *d = oct_document_create();
    if (d)
        oct_session_report(&s->of, d);
    const oct_item *report = oct_document_root(d);
    oct_status st = tool_write_report(s->cli->json, oct_json_text, report, err);
    if (st == OCT_OK && text)
        st = oct_session_page(&s->of, err);
    if (st == OCT_OK && text && !s->cli->quiet)
        st = report_print(s, report, err);
    oct_document_destroy(d);
    return st;
}

static oct_status print_advice(const session *s, oct_err *err)
{
    oct_document *d = oct_document_create();
    const oct_status st = d ? oct_session_advice(&s->of, d, err) : oct_nomem(err);
    const oct_item *lines = oct_document_root(d);
    for (const oct_item *x = NULL; st == OCT_OK && (x = oct_item_next(lines, x));)
        oct_print(oct_cli_result(s->cli), "%s\n", oct_item_text(x, ""));
    oct_document_destroy(d);
    return st;
}

static oct_status convert(session *s, oct_err *err)
{
    const oct_status fits = oct_session_fits(&s->of, err);
    if (fits != OCT_OK) {
        OCT_TRY(write_report(s, false, err));
        return fits;
    }
    OCT_TRY(oct_session_make(&s->of, err));
    if (s->a->print_graph)
        return tool_write_text("-", &s->graph_text, err);
    OCT_TRY(write_report(s, true, err));
    if (!s->cli->quiet) {
        verdict_goals(s, oct_cli_result(s->cli));
        OCT_TRY(print_advice(s, err));
    }
    return oct_session_goal(&s->of, err);
}

oct_status qconvert_run(oct_cli *cli, const convert_args *a, oct_err *err)
{
    session s;
    oct_status st = session_open(&s, cli, a, false, err);
    if (st == OCT_OK)
        st = oct_session_decide(&s.of, err);
    if (st == OCT_OK)
        st = convert(&s, err);
    session_close(&s);
    return st;
}
