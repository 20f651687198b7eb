/* tools/qconvert/qconvert.h -- a conversion from arguments to report; shared by the files that implement the steps. */
#ifndef OCT_TOOLS_QCONVERT_H
#define OCT_TOOLS_QCONVERT_H

#include "base/json.h"
#include "common/common.h"
#include "eval/gates/gates.h"
#include "quant/convert/convert.h"

#include <string.h>

typedef struct convert_args {
    const char *model, *output, *node;
    tool_data data;
    const char *calib, *policy, *target, *scheme, *format, *observer, *dump_policy, *metric, *sensitivity_file;
    oct_cli_list max_drop;      /* [METRIC=]D */
    const char *decode, *truth; /* a rule for outputs, and a file with the truth about the samples; NULL: not given */
    const char *min_agreement, *target_size, *sarif;
    const char *source, *statement, *evaluation; /* options of verify */
    const char *recorded; /* the command to record instead of these options; NULL: record these */
    double target_bits, min_sqnr, time_limit;
    int64_t trials;
    oct_metric_command command; /* the metric of --metric-cmd; its command is NULL if it is not given */
    const char *bits, *block_size, *accuracy_level; /* for weights in blocks */
    const char *effort;
    bool symmetric, sensitivity, strict;
    double budget;                           /* in percent */
    oct_cli_list disabled;                   /* disabled passes */
    oct_cli_list methods, no_methods, rules; /* methods that are on and off, and the rules of --set */
    oct_cli_list input_types, output_types;  /* [NAME=]TYPE */
    const char *input_layout;
    const char *html;
    int argc; /* the command line, for the page */
    char *const *argv;
    bool dry_run, no_save;   /* no_save: for lint and explain */
    const char *print_graph; /* a step, or NULL */
    bool dot, print_policy, list_passes, list_targets, list_methods, bias_correction, recover, keep_io_types;
} convert_args;

/* The user's file that describes the target, or NULL: a built-in one. */
static inline const char *target_file(const convert_args *a)
{
    return oct_target_is_file(a->target) ? a->target : NULL;
}

/* The name of the target, where --target auto means this machine's; or its file. */
static inline const char *target_word(const convert_args *a)
{
    return strcmp(a->target, "auto") == 0 ? oct_target_here() : a->target;
}

typedef struct session {
    oct_cli *cli;
    const convert_args *a;
    oct_conversion c; /* the conversion */
    oct_model *m;     /* as loaded; what is made of it is c.m */
    oct_target *target;
    oct_source *src;               /* NULL without --data */
    char *output;                  /* its path, also if nothing will be written */
    oct_goal goals[OCT_GOALS_MAX]; /* --max-drop, --min-sqnr, --min-agreement */
    size_t n_goals;
    oct_gates gates;  /* --max-drop as parsed */
    oct_decode *rule; /* how results are judged; NULL: no rule is given */
    oct_truth *truth;
    double budget;      /* as a share */
    double began;       /* the time of the start, from oct_now() */
    oct_buf made_by;    /* the command that will be recorded; it is needed early because its length counts */
    oct_buf graph_text; /* for --print-graph */
    oct_record record;  /* digests of inputs that will be recorded */
} session;

/* session.c: opens options and the model, takes the samples, then decides. close releases everything, also after a
 * failure. */
oct_status session_open(session *s, oct_cli *cli, const convert_args *a, oct_err *err);
oct_status session_take(session *s, oct_err *err); /* a part of session_decide */
oct_status session_decide(session *s, oct_err *err);
void session_close(session *s);
/* The layers of g, which holds the session's model, as they would be with samples. They exist as long as *job, which
 * the caller destroys, also after a failure. */
oct_status session_preview(const session *s, oct_graph *g, oct_qjob **job, oct_layer **layers, size_t *n, oct_err *err);

/* command.c: the command in a form that is independent of everything that cannot change the model. bare: without the
 * folders of files, as it is written to the model; else with the paths as given. Release it with oct_buf_free. */
void session_command(const session *s, bool bare, oct_buf *b);
/* Whether a command equals that text, if folders are ignored. */
bool command_is_like(const char *command, const char *bare);

/* main.c: parses a command in the form of session_command. It accepts no option that writes a file. Errors as from
 * oct_cli_parse. */
oct_status qconvert_read_command(oct_cli *cli, convert_args *a, int argc, char **argv, oct_err *err);

/* verdict.c: texts about what was measured. */
void verdict_clause(const session *s, oct_buf *b);
/* " on 64 samples that calibration did not see" */
void verdict_samples(const session *s, uint64_t n, oct_buf *b);
/* "difference -1.56 points, 95 % interval -5.81 to 2.70" */
void verdict_difference(const oct_eval_score *x, oct_buf *b);

/* Prints "goal: ..." for each goal, and what the trials did. */
void verdict_goals(const session *s, FILE *f);

/* print_json.c: makes the report. */
void report_document(const session *s, oct_document *to);
/* report.c: prints it as text, as the options say how much of it; and its summary in one sentence. */
oct_status report_print(const session *s, const oct_item *report, oct_err *err);
void report_sentence(const session *s, oct_buf *b);
/* Opens an object with the decision about a layer. The caller closes it. */
void report_decision(oct_json *j, const void *layer);
/* The same with all that is known of the layer, and the reason in these words; and lists of what passes changed and of
 * methods. */
void report_layer(oct_json *j, const oct_layer *l, const char *why);
void report_passes(oct_json *j, const oct_conversion *c);
void report_methods(oct_json *j, const oct_conversion *c);

/* page.c: writes the page for a browser, if --html asks for it. */
oct_status page_write(const session *s, oct_err *err);

/* size_report.c: prints the curve of size against loss, if schemes were chosen for a size. */
oct_status size_report_print(const oct_item *report, bool every, FILE *f, oct_err *err);
/* dry_report.c: estimates what a run without --dry-run takes on this machine, from what this run has taken so far. */
typedef struct dry_estimate {
    double seconds, memory; /* memory: the most bytes at a time */
} dry_estimate;
dry_estimate dry_estimated(const session *s);
void dry_report_print(const session *s, FILE *f); /* prints nothing without --dry-run */
/* times_report.c: prints expected times, unless a run takes less than half a millisecond. */
oct_status times_report_print(const oct_item *report, bool every, FILE *f, oct_err *err);
/* The same: what ONNX Runtime takes with Octet's provider and without, if that is known. */
void times_report_provider(const oct_item *report, FILE *f);
void size_report_json(oct_json *j, const session *s);

/* advice.c: what else to try, such as samples or bf16, and the gain. */
oct_status advice_print(const session *s, oct_err *err);

/* The commands. */
oct_status qconvert_run(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_explain(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_verify(oct_cli *cli, const convert_args *a, oct_err *err);

#endif
