/* qconvert MODEL: the whole way, and what is said about it. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"
#include "eval/report.h"

#include <string.h>

/* How the metric stands to --max-drop, and whether the samples can tell. */
static void print_goal(const session *s, FILE *f)
{
    char text[OCT_GATE_TEXT];
    if (s->verdict && s->a->max_drop)
        oct_print(f, "goal: %s\n", oct_report_gate(text, session_score(s), &s->limit));
}

static oct_status convert(session *s, oct_err *err)
{
    const convert_args *a = s->a;
    if (a->dump_policy)
        OCT_TRY(session_dump_policy(s, err));
    OCT_TRY(a->dry_run ? session_measure(s, err) : session_save(s, err));
    if (s->cli->json)
        OCT_TRY(report_json(s, err));
    if (s->cli->quiet)
        return OCT_OK;
    OCT_TRY(report_print(s, err));
    print_goal(s, oct_cli_result(s->cli));
    return s->calib ? OCT_OK : advice_print(s, err);
}

/* A goal that was not met is said last, and is the exit code. */
static oct_status goal(const session *s, oct_err *err)
{
    if (!s->missed)
        return OCT_OK;
    char text[OCT_GATE_TEXT];
    oct_buf b = OCT_BUF_INIT;
    verdict_samples(s, session_score(s)->n, &b);
    oct_fail(err, OCT_EGOAL, "%s; judged%s", oct_report_gate(text, session_score(s), &s->limit), oct_buf_str(&b));
    oct_buf_free(&b);
    oct_hint(err, "the best that was found is in %s; the path given to -o was not touched", s->output);
    return OCT_EGOAL;
}

oct_status qconvert_run(oct_cli *cli, const convert_args *a, oct_err *err)
{
    session s;
    oct_status st = session_open(&s, cli, a, err);
    if (st == OCT_OK)
        st = convert(&s, err);
    if (st == OCT_OK)
        st = goal(&s, err);
    session_close(&s);
    return st;
}
