/* tools/qconvert/qconvert.h -- a conversion from arguments to report; shared by the files that implement the steps. */
#ifndef OCT_TOOLS_QCONVERT_H
#define OCT_TOOLS_QCONVERT_H

#include "api/session.h"
#include "common/common.h"

#include <string.h>

typedef struct convert_args {
    octet_convert_options x; /* as far as arguments are values of its members */
    const char *node;
    tool_data data;
    oct_cli_list max_drop; /* [METRIC=]D */
    oct_cli_list targets;  /* of a conversion and of lint */
    bool lint_strict;
    const char *min_integer, *sarif;
    const char *source, *statement, *evaluation;    /* options of verify */
    const char *bits, *block_size, *accuracy_level; /* for weights in blocks */
    oct_cli_list disabled;                          /* disabled passes */
    oct_cli_list methods, no_methods, rules;        /* methods that are on and off, and the rules of --set */
    oct_cli_list input_types, output_types;         /* [NAME=]TYPE */
    int argc;                                       /* the command line, for the page */
    char *const *argv;
    const char *print_graph; /* a step, or NULL */
    const char *recipe;      /* NULL: not given */
    bool dot, print_policy, list_passes, list_targets, list_methods, list_recipes;
} convert_args;

typedef struct session {
    oct_cli *cli;
    const convert_args *a;
    oct_session *of; /* the conversion */
    oct_buf command; /* the command line, for the page */
} session;

/* arguments.c: the options of the library that the arguments stand for. */
octet_convert_options convert_options(const oct_cli *cli, const convert_args *a);
/* report.c: prints the report as text, as the options say how much of it. */
oct_status report_print(const session *s, const oct_item *report, oct_err *err);

/* targets_report.c: compares targets, prints the table and writes the report as JSON. to: gets the report. */
oct_status targets_compare(oct_cli *cli, const octet_convert_options *x, octet_texts targets, oct_document *to,
                           oct_err *err);

/* size_report.c: prints the curve of size against loss, if schemes were chosen for a size. */
oct_status size_report_print(const oct_item *report, FILE *f, oct_err *err);
/* times_report.c: prints the layers whose times change most, unless a run takes less than half a millisecond. */
oct_status times_report_print(const oct_item *report, FILE *f, oct_err *err);

/* The commands. */
oct_status qconvert_run(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_targets(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_folder(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_lint(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_explain(oct_cli *cli, const convert_args *a, oct_err *err);
oct_status qconvert_verify(oct_cli *cli, const convert_args *a, oct_err *err);

#endif
