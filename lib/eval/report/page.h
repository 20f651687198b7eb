/* lib/eval/report/page.h -- additional contents for the page of a report (oct_report_html), which the caller provides:
 * what was decided for each layer and why, what was changed, what is wrong with the models, and how to make everything
 * again. Missing contents are not shown. */
#ifndef OCT_EVAL_PAGE_H
#define OCT_EVAL_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A layer of one model. Strings other than name and op may be NULL. */
typedef struct oct_page_layer {
    const char *name, *op; /* of the node */
    const char *scheme;    /* "int8", "dynamic", "weight-only", "stored", "fp16", "bf16" or "float" */
    const char *why;       /* the rule that chose it, or the reason why it stays float; one clause */
    const char *weights;   /* "s8, per channel" */
    const char *remedy;    /* what was done against sums that saturate */
    const char *observer;  /* the observer that found the range of its output */
    double sqnr_weights,
        sqnr_output; /* expected SQNR in dB of rounding the weights, and of rounding the output; NaN: not known */
    double loss;     /* share of the loss at the outputs that it causes; 0: not known */
    uint64_t macs;   /* multiply-accumulates for a sample; 0: none, or not known */
} oct_page_layer;

/* A line of a list. */
typedef struct oct_page_line {
    const char *kind;  /* the pass, or the kind of finding; lines with the same kind and text are shown as one */
    const char *where; /* a node; "" or NULL: it concerns no single node */
    const char *text;
    size_t count; /* how often; 0: once */
} oct_page_line;

typedef struct oct_page_lines {
    const oct_page_line *v;
    size_t n;
} oct_page_lines;

/* A step of the curve of size against loss. */
typedef struct oct_page_point {
    double bytes, sqnr;       /* bytes of the file, and the expected SQNR at the outputs in dB */
    bool taken;               /* the model has this step */
    const char *layer, *form; /* the layer that changed in this step, and its new form; "" for the first step */
} oct_page_point;

/* Contents for one model of the evaluation. */
typedef struct oct_page_model {
    const oct_page_layer *layer; /* in the order of the network */
    size_t n_layers;
    oct_page_lines changes;      /* changes before quantizing */
    oct_page_lines methods;      /* methods that were used for accuracy */
    oct_page_lines findings;     /* what is wrong, or may be */
    const char *command;         /* the command that made it; NULL: not known */
    const oct_page_point *curve; /* [n_curve], by bytes, if the model was made for a size */
    size_t n_curve;
    double limit; /* for the curve: the limit in bytes; 0: none */
} oct_page_model;

/* Contents for the whole page. Everything is borrowed. */
typedef struct oct_page_notes {
    const char *title;           /* "Evaluation" */
    const char *samples;         /* which samples they are: "that calibration did not see"; NULL: nothing is said */
    const char *command;         /* the command of this run; NULL: not shown */
    const oct_page_model *model; /* [n_models of the result] */
} oct_page_notes;

#endif
