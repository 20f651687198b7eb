/* lib/api/evaluation.h -- a comparison of models over samples, from typed options (include/octet/octet.h) to a report.
 * The functions are called in the order in which they stand. */
#ifndef OCT_API_EVALUATION_H
#define OCT_API_EVALUATION_H

#include "api/files.h"
#include "api/samples.h"
#include "eval/gates/baseline.h"
#include "eval/metrics/metric_command.h"
#include "eval/parts/part.h"
#include "eval/report/report.h"
#include "quant/lint/examine.h"

/* Who runs an evaluation, and what it wants of it besides. */
typedef struct oct_evaluation_host {
    oct_voice voice;
    void (*missed)(void *arg, const char *model, const char *text); /* each missed gate but the last; NULL: nobody */
    const char *command;                                            /* the command line, for the page */
    bool other, alone;          /* other: something else than a comparison is asked for; alone: of one model */
    const char *const *written; /* [n_written]: files that this run writes; each may be NULL */
    size_t n_written;
    octet_texts parts;       /* parts to join: they name models, samples and how these are judged */
    oct_given_samples given; /* for x.samples.get */
} oct_evaluation_host;

typedef struct oct_evaluation {
    octet_evaluate_options x; /* what was asked for; texts are borrowed */
    oct_evaluation_host h;
    oct_arena *arena;
    oct_pool *pool;
    oct_model **loaded;
    oct_eval_model *models; /* [n_models], the float one first */
    size_t n_models;
    oct_samples samples;
    oct_source *src; /* NULL until samples are opened */
    oct_remote_opts remote;
    oct_metric_command command;
    oct_gates gates, part_gates; /* part_gates: of the parts' command lines */
    oct_parts parts;             /* none: samples are run */
    uint64_t *hash;              /* of each model when the parts were made */
    int64_t layer_samples;       /* of parts, as in oct_eval_options */
    oct_baseline *baseline;      /* NULL: not given */
    oct_decode *decode;          /* NULL: not given */
    oct_truth *truth;
} oct_evaluation;

/* Reads gates and how results are judged, and loads the models. Call oct_evaluation_close also after a failure. */
oct_status oct_evaluation_open(oct_evaluation *s, const octet_evaluate_options *x, const oct_evaluation_host *h,
                               oct_err *err);
/* Opens the samples for the inputs of all models; a part of oct_evaluation_run, as the next one. */
oct_status oct_evaluation_open_samples(oct_evaluation *s, oct_err *err);
/* The options for lib/eval, in the arena. */
oct_status oct_evaluation_options(const oct_evaluation *s, oct_eval_options *o, oct_err *err);
/* Runs the models over the samples. The caller frees *r, also after a failure. c: what the report says of them, valid
 * as long as s. */
oct_status oct_evaluation_run(oct_evaluation *s, oct_eval_result **r, oct_report_context *c, oct_err *err);
/* evaluation_parts.c: in place of running all samples, writes the part of x.shard; and joins h.parts. */
oct_status oct_evaluation_part(oct_evaluation *s, const char *path, oct_err *err);
oct_status oct_evaluation_join(oct_evaluation *s, oct_eval_result **r, oct_report_context *c, oct_err *err);
/* Judges a result by gates and baseline, times the sweep, and warns of what makes it doubtful. */
oct_status oct_evaluation_judge(oct_evaluation *s, oct_eval_result *r, oct_report_context *c, oct_err *err);
/* Makes the report, of schema octet-eval-1, with what the page needs if there will be one. */
oct_status oct_evaluation_report(oct_evaluation *s, oct_eval_result *r, const oct_report_context *c, oct_document *to,
                                 oct_err *err);
/* OCT_EGOAL, with a text for it: a gate was missed. */
oct_status oct_evaluation_gates(const oct_evaluation *s, const oct_eval_result *r, const oct_report_context *c,
                                oct_err *err);
void oct_evaluation_close(oct_evaluation *s);

/* evaluation_outputs.c: in place of a comparison, writes the outputs of the only model for all samples into an .npz. */
oct_status oct_evaluation_outputs(oct_evaluation *e, const char *path, oct_err *err);
/* evaluation_inside.c: in place of it, what the only model computes for the first sample: each NODE=FILE is written as
 * .npy. steps: gets the steps that ran as text; NULL: nobody asks. */
oct_status oct_evaluation_look_inside(oct_evaluation *e, octet_texts nodes, oct_buf *steps, oct_err *err);
/* evaluation_sensitivity.c: without any of the above, what quantizing each value and layer costs: the report, of schema
 * octet-sensitivity-1. file: keeps measurements; or NULL. */
oct_status oct_evaluation_sensitivity(const octet_evaluate_options *x, const char *file, const oct_evaluation_host *h,
                                      oct_document *to, oct_err *err);

/* For the files that implement these: reads what parts have in common; the failure that a file has changed since; the
 * options of the gates by their kinds, NULL where not given; whether an output is an input. kept: another file that is
 * read and written; or NULL. */
oct_status oct_evaluation_take_parts(oct_evaluation *s, oct_err *err);
oct_status oct_evaluation_changed(const char *path, oct_err *err);
void oct_evaluation_gate_texts(const octet_evaluate_options *x, const char *gate[OCT_GATE_KINDS]);
oct_status oct_evaluation_check_outputs(const octet_evaluate_options *x, const oct_evaluation_host *h, const char *kept,
                                        oct_err *err);

/* evaluation_page.c: what the page says about the models beside what was measured; oct_report_context.put_notes. */
typedef struct oct_evaluation_notes {
    const oct_evaluation *e;
    const oct_eval_result *r;
    oct_target *target; /* opened when it is needed; the caller closes it */
    oct_status st;      /* of the first failure, with its reason in *err */
    oct_err *err;
} oct_evaluation_notes;
void oct_evaluation_put_notes(oct_json *j, size_t k, const void *notes);

#endif
