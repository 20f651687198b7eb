/* lib/eval/metrics/metric.h -- the metrics. Each has one record in one table (metric.c).
 *
 * A metric computes a score for each sample from the outputs of a model. Its value is the mean of the scores, and two
 * models are compared sample by sample. Metrics of the whole set (sqnr, maxerr) have no scores: they are computed from
 * oct_error sums. They say nothing about the float model itself, so that their drop is a loss with a definition of its
 * own. Other metrics are functions of a set (sample_set.h). */
#ifndef OCT_EVAL_METRIC_H
#define OCT_EVAL_METRIC_H

#include "eval/run/output_match.h"
#include "eval/sets/sample_set.h"
#include "eval/metrics/summary.h"

/* ---- the difference between two tensors, over everything that was added ---- */

typedef struct oct_error {
    double signal, noise; /* sum y^2, and sum (y - yq)^2 */
    double other, dot;    /* sum yq^2, and sum y yq */
    double max_abs;       /* largest |y - yq| */
    uint64_t n;
    uint64_t broken; /* elements of which one is not finite and the other differs */
} oct_error;

/* Adds n values; y is the reference. The order of additions depends only on n. So adding sample by sample gives the
 * same result for every batch size. Elements that are the same infinity, or both NaN, are equal and add nothing. */
void oct_error_add(oct_error *e, const float *y, const float *yq, size_t n);
void oct_error_join(oct_error *e, const oct_error *part);
double oct_error_sqnr(const oct_error *e); /* in dB; INFINITY if all are equal, NaN if there are broken elements */
/* The smallest of several; NaN if one is NaN. Outputs of which nothing was compared (n is 0) do not count; NaN if there
 * are no others. */
double oct_metric_sqnr(const oct_error *outputs, size_t n);
double oct_error_cosine(const oct_error *e); /* 1 if both tensors are all zero, 0 if one is */

/* ---- metrics ---- */

/* A sample as a model and the float model saw it. All rows belong to this sample. */
typedef struct oct_sample_view {
    const float *out; /* f32[n_out]: the first output of the model */
    const float *ref; /* f32[n_out]: that of the float model; the same pointer if this is the float model */
    size_t n_out;
    const float *in;         /* f32[n_out]: the first input, if it has the shape of the first output; else NULL */
    const oct_error *errors; /* one per output, of this sample */
    const oct_match_count
        *match; /* one per output: of codes and rows, how much of them was found again; NULL: there are none */
    size_t n_errors;
    bool codes;             /* the first output is an answer itself (oct_output_form), and no score */
    int64_t label;          /* -1: there is none */
    const int64_t *next;    /* [tokens]: the token that the values at each position predict (n_out / tokens values); -1:
                               that position does not count */
    size_t tokens;          /* 0: the outputs are not about tokens */
    const int64_t *present; /* [n_out / width]: 0 at places that are padding; NULL: all are there */
    size_t k;               /* for top-k: oct_metric.k */
    double threshold;       /* for outputs with one value: above it is class 1 */
    size_t width; /* how many values form a distribution, or are the scores of one position; it divides n_out. 0: there
                     are none */
    bool logits;  /* the distributions are the softmax of these values */
} oct_sample_view;

/* The facts that determine which metrics apply. */
typedef struct oct_metric_case {
    bool labels;    /* samples have labels */
    size_t classes; /* how many values the first output has for a sample if its shape is [N, classes], ignoring
                       dimensions of 1; else 0 */
    bool list; /* the first output has the scores of one class for each sample: as `classes`, but [classes] suffices
                  where samples run alone */
    size_t positions; /* how many positions the first output has for a sample if its shape is [positions, classes],
                         ignoring dimensions of 1; else 0 */
    bool
        competes; /* its positions compete: it is a Softmax or the like over its last dimension, or looks like logits */
    bool single;  /* the first output has one value for each sample */
    bool codes;   /* the first output consists of answers, not of scores: truth values, classes */
    bool names;   /* these are strings */
    bool numbers; /* it consists of real numbers in fixed places */
    bool any_numbers, any_codes; /* some output does; some output consists of codes or rows (oct_output_form) */
    bool reconstruction;         /* the first input has the shape of the first output */
    bool compared;               /* there are other models than the float model */
    oct_set_kind set;            /* the kind of set for the task */
    bool truth;                  /* there is a truth other than labels */
    bool texts, tags;            /* of sequences: the truth has texts; the rule has tags */
    bool masks, keypoints;       /* the rule says where those of boxes are */
} oct_metric_case;

typedef enum oct_metric_kind {
    OCT_METRIC_PROPORTION, /* scores are 0 or 1, and the value is between 0 and 1, shown in percent */
    OCT_METRIC_MEAN,
    OCT_METRIC_TOKENS, /* scores are sums of logarithms over tokens, and the value is exp of their mean over the tokens
                          of all samples */
    OCT_METRIC_WHOLE,  /* there are no scores; it is computed from sums over the whole set */
    OCT_METRIC_SET     /* there are no scores; it is a function of a set */
} oct_metric_kind;

typedef struct oct_metric {
    const char *name, *summary, *unit;
    const char *shapes; /* the outputs for which it is defined, N being the samples. NULL: any; those of sets are found
                           by the rule */
    bool (*defined)(const oct_metric_case *c); /* NULL: always */
    oct_metric_kind kind;
    bool larger_is_better;
    bool relative; /* it compares with the float model's outputs, and so says nothing about the float model itself */
    bool (*applies)(const oct_metric_case *c);
    /* The score of a sample. NaN: the sample does not count (it has no label). */
    double (*score)(const oct_sample_view *s);
    /* For OCT_METRIC_TOKENS: how many tokens the score is about. */
    double (*weight)(const oct_sample_view *s);
    size_t k;                                                             /* for top-k */
    bool truth;                                                           /* it needs a truth other than labels */
    enum { OCT_NEEDS_BOXES, OCT_NEEDS_MASKS, OCT_NEEDS_KEYPOINTS } needs; /* what the rule is to say of boxes */
    bool distributions;                                                   /* it needs oct_sample_view.width */
    bool of_all; /* its scores are of all outputs, not of the first alone */
    const struct oct_metric *(*as)(const oct_metric_case *c); /* the record that this name stands for with such outputs;
                                                                 NULL, or returns NULL: this one */
    /* For OCT_METRIC_SET: functions for the value, by the kinds of sets for which it is defined. If the metric says
     * nothing about the float model, also one for the drop. */
    oct_set_value set[OCT_SET_KINDS], set_loss;
    /* For OCT_METRIC_WHOLE: the value is the smallest or largest over the outputs. loss: its drop (0: the outputs are
     * equal; INFINITY: values differ that are not finite). lost: the text after a number, as in "0.01 of the signal is
     * noise". */
    double (*whole)(const oct_error *outputs, size_t n);
    double (*loss)(const oct_error *outputs, size_t n);
    const char *lost; /* also for set_loss */
} oct_metric;

/* Whether its values are shares. These are shown in percent, and their differences in points. */
bool oct_metric_in_percent(const oct_metric *m);

/* The i-th metric; NULL after the last. */
const oct_metric *oct_metric_at(size_t i);
/* Finds a metric by name; top1 to top999 are names. OCT_EUSAGE: there is none, and the hint has the nearest name. */
oct_status oct_metric_find(const char *name, const oct_metric **m, oct_err *err);
/* For tables of options: name and summary of the i-th metric. "top#" stands for all of top-k. */
const char *oct_metric_names(size_t i, const char **summary);

/* The record that a metric's name stands for with such outputs: another one of the same name where the outputs give it
 * another meaning. */
const oct_metric *oct_metric_as(const oct_metric *m, const oct_metric_case *c);
/* OCT_EUSAGE: the metric is not defined for such outputs; shape: that of the first output, for the message. */
oct_status oct_metric_check(const oct_metric *m, const oct_metric_case *c, const char *shape, oct_err *err);

/* Whether a metric suits what is judged, as far as the rule and the truth tell; called before any sample is read.
 * OCT_EUSAGE: it is a function of another kind of set, or needs a truth that is missing. */
oct_status oct_metric_suits(const oct_metric *m, const oct_judging *j, oct_err *err);

/* ---- how much worse is allowed ---- */

/* "0.01" (in the metric's own units), "0.5%" (0.005), or "0.5r%" (relative to the float model). */
typedef struct oct_drop_limit {
    double value;
    bool relative;
} oct_drop_limit;
oct_status oct_drop_limit_parse(const char *text, oct_drop_limit *d, oct_err *err);
/* "0.99" or "99%": a share above 0. OCT_EUSAGE names the option, and what it is a share of. */
oct_status oct_share_parse(const char *option, const char *of, const char *text, double *share, oct_err *err);
/* Checks that the limit can be used for the metric. OCT_EUSAGE: it is relative, and the float model has no value; or it
 * is 1 or more of a metric in percent, so that no model could miss it. */
oct_status oct_drop_limit_check(const oct_drop_limit *d, const oct_metric *m, oct_err *err);
/* The limit as an absolute drop. */
double oct_drop_allowed(const oct_drop_limit *d, double reference);
/* Whether a drop exceeds the limit. NaN does. */
bool oct_drop_exceeds(const oct_drop_limit *d, double reference, double drop);

#endif
