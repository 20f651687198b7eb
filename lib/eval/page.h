/* lib/eval/page.h -- what the page of a report (oct_report_html) shows beside what an evaluation found: what was decided for each layer and
 * why, what was changed, what is wrong with the models, and how to make it all again. Whoever knows these fills them; what is absent is not shown. */
#ifndef OCT_EVAL_PAGE_H
#define OCT_EVAL_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A layer of one model. Strings may be NULL but for name and op. */
typedef struct oct_page_layer {
    const char *name, *op;  /* of the node */
    const char *scheme;     /* "int8", "dynamic", "weight-only", "stored", "fp16", "bf16" or "float" */
    const char *why;        /* the rule that chose it, or why it stays float: one clause */
    const char *weights;    /* "s8, per channel" */
    const char *remedy;     /* against sums that saturate */
    const char *observer;   /* that found the range of its output */
    double sqnr_weights, sqnr_output; /* dB, expected of rounding the weights, and of the grid of the output; NaN: not known */
    double loss;            /* share of the loss at the outputs that it causes; 0: not known */
    uint64_t macs;          /* multiply-accumulates of a sample; 0: none, or not known */
} oct_page_layer;

/* A line of a list. */
typedef struct oct_page_line {
    const char *kind;  /* the pass, or the kind of finding; several lines of one kind and text are shown as one */
    const char *where; /* a node; "" or NULL: no one place */
    const char *text;
    size_t count;      /* how often; 0: once */
} oct_page_line;

typedef struct oct_page_lines {
    const oct_page_line *v;
    size_t n;
} oct_page_lines;

/* A step of the curve of size against loss. */
typedef struct oct_page_point {
    double bytes, sqnr;       /* of the file; dB expected at the outputs */
    bool taken;               /* the model has this step */
    const char *layer, *form; /* what changed against the step before: a layer, and what it becomes; "": the first */
} oct_page_point;

/* Of one model of the evaluation. */
typedef struct oct_page_model {
    const oct_page_layer *layer; /* in the order of the network */
    size_t n_layers;
    oct_page_lines changes;      /* what was done before quantizing */
    oct_page_lines methods;      /* what was done for accuracy */
    oct_page_lines findings;     /* what is wrong, or may be */
    const char *command;         /* that made it; NULL: not known */
    const oct_page_point *curve; /* [n_curve], where it was made for a size, by bytes */
    size_t n_curve;
    double limit;                /* of the curve: bytes that are allowed; 0: none */
} oct_page_model;

/* All is borrowed. */
typedef struct oct_page_notes {
    const char *title;           /* "Evaluation" */
    const char *samples;         /* which they are: "that calibration did not see"; NULL: nothing to say */
    const char *command;         /* of this run; NULL: not told */
    const oct_page_model *model; /* [n_models of the result] */
} oct_page_notes;

#endif
