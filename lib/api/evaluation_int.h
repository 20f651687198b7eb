/* lib/api/evaluation_int.h -- an evaluation under way. Private to lib/api. */
#ifndef OCT_API_EVALUATION_INT_H
#define OCT_API_EVALUATION_INT_H

#include "api/evaluation.h"
#include "api/samples_int.h"
#include "eval/gates/baseline.h"
#include "eval/metrics/metric_command.h"
#include "eval/parts/part.h"
#include "eval/report/report.h"
#include "onnx/model.h"
#include "quant/lint/examine.h"

struct oct_evaluation {
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
    const oct_twin *twin; /* NULL: not asked for */
    oct_metric_command command;
    oct_gates gates, part_gates; /* part_gates: of the parts' command lines */
    oct_parts parts;             /* none: samples are run */
    uint64_t *hash;              /* of each model when the parts were made */
    int64_t layer_samples;       /* of parts, as in oct_eval_options */
    oct_baseline *baseline;      /* NULL: not given */
    oct_decode *decode;          /* NULL: not given */
    oct_truth *truth;
    oct_eval_result *result; /* NULL until the samples were run */
    oct_report_context context;
};

/* Opens the samples for the inputs of all models. */
oct_status oct_evaluation_open_samples(oct_evaluation *s, oct_err *err);
/* The options for lib/eval, in the arena. */
oct_status oct_evaluation_options(const oct_evaluation *s, oct_eval_options *o, oct_err *err);
/* evaluation_parts.c: the result of all parts. */
oct_status oct_evaluation_join(oct_evaluation *s, oct_err *err);

/* Reads what parts have in common; the failure that a file has changed since; the
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

/* evaluation_answer.c: what to do next, as the members "answer" and "next"; oct_report_context.put_more. */
void oct_evaluation_put_answer(oct_json *j, const void *evaluation);

#endif
