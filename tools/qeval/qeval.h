/* tools/qeval/qeval.h -- the options of the command line, and functions that print results. */
#ifndef OCT_TOOLS_QEVAL_H
#define OCT_TOOLS_QEVAL_H

#include "api/evaluation.h"
#include "api/report_forms.h"
#include "common/common.h"
#include "common/print_rows.h"

typedef struct qeval_args {
    octet_evaluate_options x; /* as far as arguments are values of its members */
    oct_cli_list others;      /* quantized models */
    tool_data data;
    oct_cli_list metrics, max_drop;
    int argc; /* the command line, for the page */
    char *const *argv;
    bool layers, latency, check, sensitivity;
    double rtol, atol;
    oct_cli_list dump; /* NODE=FILE */
    bool print_plan;
    const char *part;   /* the output file for a part of the samples; NULL: all samples are evaluated */
    oct_cli_list parts; /* parts to be joined; empty: samples are run */
    bool audit;
    const char *recipe; /* of a folder; NULL: not given */
    const char *outputs, *junit, *markdown, *sensitivity_file;
} qeval_args;

/* Prints the comparison: the verdict, the numbers that matter, gates and the worst layers. every: all tables, with what
 * explains them. all_layers: every layer, not only
 * the worst ones; steps: the profile of steps, if there is one. */
oct_status qeval_print(const oct_item *report, bool all_layers, bool steps, bool every, FILE *f, oct_err *err);

/* print_verdict.c: the metric that counts: the first that is judged by labels, else the first share of samples that
 * float agrees with; NULL: there is none. */
const oct_item *qeval_counting(const oct_item *report, const oct_item *model);
/* Prints in a sentence or two whether each quantized model is as accurate, and meets its gates. */
void qeval_print_verdict(const oct_item *report, FILE *f);
/* print_classes.c: prints each class of a model and which classes are confused, if that was requested. */
oct_status qeval_print_classes(const oct_item *report, const oct_item *model, FILE *f, oct_err *err);

/* rank_causes.c: measures the cost of quantizing each value and each layer of the quantized model, prints it and writes
 * the JSON. */
oct_status qeval_sensitivity(const octet_evaluate_options *x, const char *file, const oct_evaluation_host *h,
                             oct_cli *cli, oct_err *err);

/* audit_report.c: judges the variants of the models of a folder, and prints it. */
oct_status qeval_folder(const octet_evaluate_options *x, const char *recipe, oct_cli *cli, oct_err *err);

#endif
