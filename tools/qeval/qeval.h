/* tools/qeval/qeval.h -- what the command line says, and printing what was found. */
#ifndef OCT_TOOLS_QEVAL_H
#define OCT_TOOLS_QEVAL_H

#include "common/common.h"
#include "eval/baseline.h"
#include "eval/page.h"
#include "eval/report.h"
#include "quant/examine.h"

typedef struct qeval_args {
    const char *model;       /* the float model, or the only one */
    oct_cli_list others;     /* quantized models */
    tool_data data;
    oct_cli_list metrics;
    oct_cli_list max_drop;
    const char *gate[OCT_GATE_KINDS]; /* the values of the other gates' options, by kind; NULL: not asked */
    int argc;                         /* the command line, for the page */
    char *const *argv;
    const char *baseline;             /* an earlier report, or NULL */
    const char *gates;                /* a file of them, or NULL */
    oct_metric_command command; /* --metric-cmd; command NULL: none */
    int64_t batch, runs;
    const char *compute;     /* "bf16", or NULL */
    const char *runner, *runner_for; /* a command that runs models, or NULL; which of them: "all" (also NULL), "quant" */
    double runner_timeout;           /* seconds */
    const char *decode, *truth; /* a rule for outputs, and a file of what is true of the samples; NULL: none */
    bool per_class, layers, latency, sweep, profile, check, sensitivity;
    double rtol, atol;
    const char *part;        /* the file of a part of the samples; NULL: it is about all */
    oct_cli_list parts;      /* those to be joined; none: samples are run */
    const char *outputs, *html, *junit, *markdown, *sensitivity_file;
} qeval_args;

/* The comparison as tables. all_layers: every layer, not only the worst; steps: their profile, where there is one. */
oct_status qeval_print(const oct_eval_result *r, const oct_report_context *c, bool all_layers, bool steps, FILE *f, oct_err *err);

/* asked.c: what parts of an evaluation have in common. Appends it as a text; loaded: the models. */
oct_status qeval_put_asked(const qeval_args *a, oct_model *const *loaded, int64_t layer_samples, oct_buf *b, oct_err *err);
typedef struct qeval_joining {
    uint64_t *hash;        /* of each model, as oct_model_hash */
    int64_t layer_samples; /* as in oct_eval_options */
    oct_gates gates;       /* of the parts' command lines */
} qeval_joining;
/* Reads it into a, whose other fields stay, with texts in arena. OCT_EMALFORMED; OCT_EUSAGE: a file changed since. */
oct_status qeval_take_asked(const oct_part *p, oct_arena *arena, qeval_args *a, qeval_joining *q, oct_err *err);
oct_status qeval_changed(const char *path, oct_err *err); /* OCT_EUSAGE: the file is not what it was */
/* The same of parts of measuring sensitivities, of which q->hash alone is filled. */
oct_status qeval_put_asked_sensitivity(const qeval_args *a, oct_model *const *loaded, oct_buf *b, oct_err *err);
oct_status qeval_take_asked_sensitivity(const oct_part *p, oct_arena *arena, qeval_args *a, qeval_joining *q, oct_err *err);

/* page_notes.c: what the page says of the models. Open fills notes, which last until it is closed, also after a failure. */
typedef struct qeval_page {
    oct_page_notes notes;
    oct_target *target;
    oct_lint **lint; /* [n], of each model, or NULL */
    size_t n;
} qeval_page;
oct_status qeval_page_open(const oct_eval_model *models, oct_model *const *loaded, const oct_eval_result *r, const qeval_args *a, const oct_cli *cli, oct_arena *arena,
                           qeval_page *p, oct_err *err);
void qeval_page_close(qeval_page *p);

/* print_classes.c: each class of models[k], and which were taken for which, where that was asked for. */
oct_status qeval_print_classes(const oct_eval_result *r, size_t k, FILE *f, oct_err *err);

/* gate_options.c: gates of options and of --gates; OCT_EUSAGE where it is clear beforehand that one cannot be judged. */
oct_status qeval_read_gates(const qeval_args *a, const oct_cli *cli, oct_gates *g, oct_err *err);
/* The report of --baseline, in arena; *b stays NULL where none is asked for. */
oct_status qeval_read_baseline(const qeval_args *a, oct_arena *arena, oct_baseline **b, oct_err *err);
/* OCT_EGOAL with a line for each gate that was missed; all but the last are printed. */
oct_status qeval_judge_gates(oct_cli *cli, const oct_eval_result *r, const oct_report_context *c, oct_err *err);

/* rank_causes.c: measures what quantizing each value and each layer of the quantized model costs, prints it and writes the JSON; or writes a part of the
 * measurements (a->part). */
oct_status qeval_sensitivity(const qeval_args *a, oct_cli *cli, oct_err *err);
/* The same from all parts: a gets what these were asked for. */
oct_status qeval_join_sensitivity(qeval_args *a, const oct_parts *parts, oct_cli *cli, oct_err *err);

#endif
