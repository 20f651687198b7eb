/* tools/qconvert/qconvert.h -- one conversion, from arguments to report; shared by the files that do its steps. */
#ifndef OCT_TOOLS_QCONVERT_H
#define OCT_TOOLS_QCONVERT_H

#include "common/common.h"
#include "eval/denormal.h"
#include "eval/eval.h"
#include "quant/calibrate.h"
#include "quant/layers.h"

typedef struct convert_args {
    const char *model, *output, *node;
    tool_data data;
    const char *calib, *policy, *target, *scheme, *format, *observer, *dump_policy, *max_drop, *metric;
    const char *bits, *block_size; /* of weights in blocks */
    bool symmetric;
    oct_cli_list disabled; /* passes */
    bool dry_run, no_save; /* no_save: of explain */
    bool print_policy, list_passes, list_targets, bias_correction, recover, keep_io_types;
} convert_args;

/* The user's file that describes the target, or NULL: a built-in one. */
static inline const char *target_file(const convert_args *a)
{
    return oct_target_is_file(a->target) ? a->target : NULL;
}

/* Which samples a conversion is judged on. */
typedef enum judged_on {
    JUDGED_OTHERS, /* that calibration did not see */
    JUDGED_SAME,   /* those it was calibrated with, as there are too few to keep some aside */
    JUDGED_ANY     /* nothing was calibrated */
} judged_on;

/* What a pass did. */
typedef struct change {
    const char *pass, *what, *node;
} change;

typedef struct session {
    oct_cli *cli;
    const convert_args *a;
    oct_arena *arena;
    oct_model *m;
    oct_policy *policy;
    oct_target *target;
    oct_scheme scheme;
    oct_qjob_opts blocks; /* what is said of weights in blocks */
    oct_source *src;   /* NULL without --data */
    oct_calib *calib;  /* NULL without data and table */
    oct_qjob *job;
    oct_graph *fl;     /* the prepared float graph, for the check */
    char *output;      /* path, also when nothing is written */
    oct_layer *layers;
    size_t n_layers;
    change *changes;
    size_t n_changes, cap_changes;
    bool out_of_memory; /* in the log of changes */
    uint64_t size_before, size_after; /* with external data */
    double sqnr;       /* of the outputs on the samples of the verdict; NaN: not measured */
    oct_eval_result *verdict; /* float against quantized; NULL: not measured */
    bool looked_for_denormals;
    oct_denormals denormals;  /* of the float model, when they were looked for */
    judged_on judged;
    const char *unjudged;     /* why there is no verdict though there are samples; NULL: nothing to say */
    oct_drop_limit limit; /* --max-drop */
    bool missed;       /* that goal */
} session;

/* session.c: loads, makes the job, has it decided. Sets s->layers. close releases all. */
oct_status session_open(session *s, oct_cli *cli, const convert_args *a, oct_err *err);
void session_close(session *s);
oct_pass_log session_log(session *s);
/* Options common to every job of the run. */
oct_qjob_opts session_opts(const session *s);
/* Sets what the options say of weights in blocks. OCT_EUSAGE when no layer could have them. */
oct_status block_options(oct_cli *cli, const convert_args *a, const oct_policy *policy, oct_qjob_opts *o, oct_err *err);

/* statistics.c */
/* --calib; OCT_EUSAGE for the table of another model. */
oct_status session_read_table(session *s, oct_err *err);
/* Calibrates where there are samples, measures what may be measured, decides. */
oct_status session_decide(session *s, oct_err *err);

/* save.c */
/* Makes the model in memory, and sets size_after by what would be written. */
oct_status session_measure(session *s, oct_err *err);
/* Also judges, writes and checks it. */
oct_status session_save(session *s, oct_err *err);
/* The command, in a form that does not depend on what cannot change the model. bare: files without their folders, for what is written;
 * else as they were given. Release with oct_buf_free. */
void session_command(const session *s, bool bare, oct_buf *b);
/* The decisions as a policy table that makes them again. */
oct_status session_dump_policy(const session *s, oct_err *err);

/* judge.c */
/* Decides whether samples are kept aside; before any are read. calibrates: whether statistics are asked of them. */
void session_keep_aside(session *s, bool calibrates);
/* Runs both graphs over samples; sets verdict, judged, sqnr and missed, or unjudged. */
oct_status session_judge(session *s, const oct_graph *q, oct_err *err);
const oct_eval_score *session_score(const session *s);

/* verdict.c: what was measured, in words. */
void verdict_clause(const session *s, oct_buf *b);
/* " on 64 samples that calibration did not see" */
void verdict_samples(const session *s, uint64_t n, oct_buf *b);
/* "difference -1.56 points, 95 % interval -5.81 to 2.70" */
void verdict_difference(const oct_eval_score *x, oct_buf *b);

/* report.c, json.c */
oct_status report_print(const session *s, oct_err *err);
oct_status report_json(const session *s, oct_err *err);

/* advice.c: which samples to give, and what it would gain. preview: the same model's graph before any pass. */
oct_status advice_print(const session *s, oct_err *err);

/* The commands. */
oct_status qconvert_run(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_explain(oct_cli *cli, const convert_args *a, oct_err *err);

#endif
