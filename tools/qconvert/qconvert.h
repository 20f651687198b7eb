/* tools/qconvert/qconvert.h -- one conversion, from arguments to report; shared by the files that do its steps. */
#ifndef OCT_TOOLS_QCONVERT_H
#define OCT_TOOLS_QCONVERT_H

#include "base/json.h"
#include "common/common.h"
#include "eval/gates.h"
#include "quant/convert.h"
#include "quant/round_parts.h"

#include <string.h>

typedef struct convert_args {
    const char *model, *output, *node;
    tool_data data;
    const char *calib, *policy, *target, *scheme, *format, *observer, *dump_policy, *metric, *sensitivity_file;
    oct_cli_list max_drop; /* [METRIC=]D */
    const char *decode, *truth; /* a rule for outputs, and a file of what is true of the samples; NULL: none */
    const char *min_agreement, *target_size, *sarif;
    const char *source, *statement, *evaluation; /* of verify */
    const char *recorded; /* the command to record, instead of what these options say; NULL: none */
    double target_bits, min_sqnr, time_limit;
    int64_t trials;
    oct_metric_command command;    /* --metric-cmd; command NULL: none */
    const char *bits, *block_size, *accuracy_level; /* of weights in blocks */
    const char *effort;
    bool symmetric, sensitivity, strict;
    double budget;         /* percent */
    oct_cli_list disabled; /* passes */
    oct_cli_list methods, no_methods, rules; /* rules: --set */
    oct_cli_list input_types, output_types; /* [NAME=]TYPE */
    const char *input_layout;
    oct_cli_list rounding_files;
    const char *html;
    int argc; /* the command line, for the page */
    char *const *argv;
    bool dry_run, no_save; /* no_save: of lint and explain */
    bool print_policy, list_passes, list_targets, list_methods, bias_correction, recover, keep_io_types;
} convert_args;

/* The user's file that describes the target, or NULL: a built-in one. */
static inline const char *target_file(const convert_args *a)
{
    return oct_target_is_file(a->target) ? a->target : NULL;
}

/* The target's name, where --target auto is that of this machine, or its file. */
static inline const char *target_word(const convert_args *a)
{
    return strcmp(a->target, "auto") == 0 ? oct_target_here() : a->target;
}

typedef struct session {
    oct_cli *cli;
    const convert_args *a;
    oct_conversion c;     /* what was done */
    oct_model *m;
    oct_target *target;
    oct_source *src;      /* NULL without --data */
    char *output;         /* path, also when nothing is written */
    oct_goal goals[OCT_GOALS_MAX]; /* --max-drop, --min-sqnr, --min-agreement */
    size_t n_goals;
    oct_gates gates;      /* --max-drop as it was read */
    oct_decode *rule;     /* what results are judged by; NULL: nothing is said */
    oct_truth *truth;
    double budget;        /* share */
    double began;         /* oct_now() */
    oct_buf made_by;      /* the command as it will be recorded, as its length counts */
    oct_record record;    /* digests of what is read, for the same place */
    oct_rounding_share share; /* --shard */
    double *other_db;     /* of the conversion that this one is compared with (fold_choice.c); or NULL */
} session;

/* session.c: options and the model, the samples, then the decisions. close releases all, also after a failure. */
oct_status session_open(session *s, oct_cli *cli, const convert_args *a, oct_err *err);
oct_status session_take(session *s, oct_err *err); /* part of decide */
oct_status session_decide(session *s, oct_err *err);
void session_close(session *s);
/* The layers of g, which holds the session's model, as they would be with samples. They last as long as *job, which the caller destroys, also
 * after a failure. */
oct_status session_preview(const session *s, oct_graph *g, oct_qjob **job, oct_layer **layers, size_t *n, oct_err *err);

/* fold_choice.c: for decide, where preprocessing is to be part of layers that round otherwise for it (--input-type). Before: has a conversion without that
 * measured on the samples. After: makes the conversion without it, in a session opened anew, where an output lost more than it may. */
oct_status fold_measure(session *s, oct_err *err);
oct_status fold_take_back(session *s, oct_err *err);

/* command.c: the command, in a form that does not depend on what cannot change the model. bare: files without their folders, for what is
 * written; else as they were given. Release with oct_buf_free. */
void session_command(const session *s, bool bare, oct_buf *b);
/* Whether a command without its folders is that text. */
bool command_is_like(const char *command, const char *bare);

/* main.c: reads a command as session_command writes it. No option is among those it takes that writes a file. Then as after oct_cli_parse. */
oct_status qconvert_read_command(oct_cli *cli, convert_args *a, int argc, char **argv, oct_err *err);

/* verdict.c: what was measured, in words. */
void verdict_clause(const session *s, oct_buf *b);
/* " on 64 samples that calibration did not see" */
void verdict_samples(const session *s, uint64_t n, oct_buf *b);
/* "difference -1.56 points, 95 % interval -5.81 to 2.70" */
void verdict_difference(const oct_eval_score *x, oct_buf *b);

/* "goal: ..." for each, and what the trials for them did. */
void verdict_goals(const session *s, FILE *f);

/* report.c, print_json.c */
oct_status report_print(const session *s, oct_err *err);
oct_status report_json(const session *s, oct_err *err);
/* Opens an object with what was decided for a layer; whoever asks closes it. */
void report_decision(oct_json *j, const void *layer);

/* page.c: the page for a browser, where --html asks for it. */
oct_status page_write(const session *s, oct_err *err);

/* size_report.c: the curve of size against loss, where schemes were chosen for a size; else nothing. */
oct_status size_report_print(const session *s, FILE *f, oct_err *err);
/* dry_report.c: what a run without --dry-run is expected to take here, from what this one has taken until now: estimates. */
typedef struct dry_estimate {
    double seconds, memory; /* bytes, the most at a time */
} dry_estimate;
dry_estimate dry_estimated(const session *s);
void dry_report_print(const session *s, FILE *f); /* nothing without --dry-run */
/* times_report.c: expected times, of shorter runs than half a millisecond nothing. */
oct_status times_report_print(const session *s, FILE *f, oct_err *err);
void size_report_json(oct_json *j, const session *s);

/* advice.c: what to try instead, samples or bf16, and what it would gain. */
oct_status advice_print(const session *s, oct_err *err);

/* The commands. */
oct_status qconvert_run(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_explain(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_verify(oct_cli *cli, const convert_args *a, oct_err *err);

#endif
