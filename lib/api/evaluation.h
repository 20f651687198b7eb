/* lib/api/evaluation.h -- a comparison of models over samples, from typed options (include/octet/octet.h) to a report.
 * The functions are called in the order in which they stand. */
#ifndef OCT_API_EVALUATION_H
#define OCT_API_EVALUATION_H

#include "api/files.h"
#include "api/samples.h"

/* Who runs an evaluation, and what it wants of it besides. */
typedef struct oct_evaluation_host {
    oct_voice voice;
    void (*missed)(void *arg, const char *model, const char *text); /* each missed gate but the last; NULL: nobody */
    const char *command;                                            /* the command line, for the page */
    bool other, alone;          /* other: something else than a comparison is asked for; alone: of one model */
    const char *const *written; /* [n_written]: files that this run writes; each may be NULL */
    size_t n_written;
    octet_texts parts;                     /* parts to join: they name models, samples and how these are judged */
    const struct oct_given_samples *given; /* for x.samples.get; NULL: none are given */
} oct_evaluation_host;

typedef struct oct_evaluation oct_evaluation;

/* Reads gates and how results are judged, and loads the models. *s: NULL after a failure. */
oct_status oct_evaluation_open(const octet_evaluate_options *x, const oct_evaluation_host *h, oct_evaluation **s,
                               oct_err *err);
/* Runs the models over the samples, or joins h->parts; judges the result by gates and baseline, times the sweep, and
 * warns of what makes it doubtful. */
oct_status oct_evaluation_run(oct_evaluation *s, oct_err *err);
/* Makes the report of the result, of schema octet-eval-1, with what the page needs if there will be one. */
oct_status oct_evaluation_report(oct_evaluation *s, oct_document *to, oct_err *err);
/* Whether layers were compared at length, here or in the parts. */
bool oct_evaluation_shows_layers(const oct_evaluation *s);
/* OCT_EGOAL, with a text for it: a gate was missed. */
oct_status oct_evaluation_gates(const oct_evaluation *s, oct_err *err);
/* evaluation_parts.c: in place of running all samples, writes the part of x.shard. */
oct_status oct_evaluation_part(oct_evaluation *s, const char *path, oct_err *err);
void oct_evaluation_close(oct_evaluation *s); /* NULL allowed */

/* evaluation_outputs.c: in place of a comparison, writes the outputs of the only model for all samples into an .npz. */
oct_status oct_evaluation_outputs(oct_evaluation *e, const char *path, oct_err *err);
/* evaluation_check.c: in place of it, runs the only model on the ONNX test case of the samples. Appends the reports as
 * JSON and as JUnit XML, and a line for people. OCT_EGOAL: outputs are others. */
typedef struct oct_case_reports {
    oct_buf json, junit, text;
} oct_case_reports;
oct_status oct_evaluation_check(const oct_evaluation *s, double rtol, double atol, oct_case_reports *to, oct_err *err);
/* evaluation_inside.c: in place of it, what the only model computes for the first sample: each NODE=FILE is written as
 * .npy. steps: gets the steps that ran as text; NULL: nobody asks. */
oct_status oct_evaluation_look_inside(oct_evaluation *e, octet_texts nodes, oct_buf *steps, oct_err *err);
/* evaluation_sensitivity.c: without any of the above, what quantizing each value and layer costs: the report, of schema
 * octet-sensitivity-1. file: keeps measurements; or NULL. */
oct_status oct_evaluation_sensitivity(const octet_evaluate_options *x, const char *file, const oct_evaluation_host *h,
                                      oct_document *to, oct_err *err);

#endif
