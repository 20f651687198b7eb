/* lib/eval/metric.h -- the metrics: one record each, in one table (metric.c).
 *
 * A metric scores a sample from the outputs of a model; its value is the mean over the samples, and two models are
 * compared pair by pair. Metrics of the whole set (sqnr, maxerr) have no score: they follow from oct_error sums, and say
 * nothing of the float model itself, so that their drop is a loss of its own. Others are functions of a set (set.h). */
#ifndef OCT_EVAL_METRIC_H
#define OCT_EVAL_METRIC_H

#include "eval/sample_set.h"
#include "eval/summary.h"

/* ---- how far one tensor is from another, over everything fed ---- */

typedef struct oct_error {
    double signal, noise; /* sum y^2, sum (y - yq)^2 */
    double other, dot;    /* sum yq^2, sum y yq */
    double max_abs;       /* largest |y - yq| */
    uint64_t n;
    uint64_t broken;      /* elements where one is not finite and the other differs */
} oct_error;

/* Feeds n values: y is the reference. Sums go in a fixed order that depends on n alone, so feeding sample by sample
 * gives the same for every batch size. Elements where both are the same infinity or both NaN are equal and add nothing. */
void oct_error_add(oct_error *e, const float *y, const float *yq, size_t n);
void oct_error_join(oct_error *e, const oct_error *part);
double oct_error_sqnr(const oct_error *e);   /* dB; INFINITY when equal, NaN with broken elements */
double oct_metric_sqnr(const oct_error *outputs, size_t n); /* the smallest of several; NaN when one is */
double oct_error_cosine(const oct_error *e); /* 1 when both are all zero, 0 when one is */

/* ---- metrics ---- */

/* One sample as a model and the float model saw it; all rows are of this sample alone. */
typedef struct oct_sample_view {
    const float *out;    /* f32[n_out]: first output of the model */
    const float *ref;    /* f32[n_out]: the float model's, the same pointer when this is the float model */
    size_t n_out;
    const float *in;     /* f32[n_out], when the first input has the shape of the first output; else NULL */
    const oct_error *errors; /* one per output, of this sample */
    size_t n_errors;
    int64_t label;       /* -1: none */
    const int64_t *next; /* [tokens]: the token that each position's values, n_out / tokens of them, foretell; -1: none that counts */
    size_t tokens;       /* 0: the outputs are not of tokens */
    size_t k;            /* of top-k: oct_metric.k */
    double threshold;    /* of outputs of one value: above it is class 1 */
    size_t width;        /* values of one distribution; divides n_out. 0: there are none */
    bool logits;         /* distributions are the softmax of these values */
} oct_sample_view;

/* What decides which metrics apply. */
typedef struct oct_metric_case {
    bool labels;         /* samples have labels */
    size_t classes;      /* values per sample of the first output when it is [N, classes] (1s aside), else 0 */
    bool single;         /* the first output is one value per sample */
    bool reconstruction; /* the first input has the shape of the first output */
    bool compared;       /* there is a model besides the float one */
    oct_set_kind set;    /* what judging is about */
    bool truth;          /* there is a truth beside labels */
} oct_metric_case;

typedef enum oct_metric_kind {
    OCT_METRIC_PROPORTION, /* scores 0 or 1; value in 0..1, shown in percent */
    OCT_METRIC_MEAN,
    OCT_METRIC_TOKENS,     /* scores are sums of logarithms over tokens; the value is exp of their mean over the tokens of all samples */
    OCT_METRIC_WHOLE,      /* no score; of sums over the whole set */
    OCT_METRIC_SET         /* no score; a function of a set */
} oct_metric_kind;

typedef struct oct_metric {
    const char *name, *summary, *unit;
    oct_metric_kind kind;
    bool larger_is_better;
    bool relative; /* compares with the float model's outputs: says nothing of the float model itself */
    bool (*applies)(const oct_metric_case *c);
    /* NaN: the sample does not count (no label). */
    double (*score)(const oct_sample_view *s);
    /* Of OCT_METRIC_TOKENS: how many tokens the score is of. */
    double (*weight)(const oct_sample_view *s);
    size_t k;             /* of top-k */
    bool truth;           /* a set without a truth beside labels is not enough */
    bool distributions;   /* it needs oct_sample_view.width */
    /* Of OCT_METRIC_SET: the value, of each kind of set that it is defined for; of one that says nothing of the float model the drop, too. */
    oct_set_value set[OCT_SET_KINDS], set_loss;
    /* Of OCT_METRIC_WHOLE: the value, smallest or largest over the outputs; its drop (0: outputs equal, INFINITY: values that
     * are not finite differ), and what a number before it says: "0.01 of the signal is noise". */
    double (*whole)(const oct_error *outputs, size_t n);
    double (*loss)(const oct_error *outputs, size_t n);
    const char *lost; /* also of set_loss */
} oct_metric;

/* Whether its values are shares, which are shown in percent and their differences in points. */
bool oct_metric_in_percent(const oct_metric *m);

/* The i-th metric; NULL beyond the last. */
const oct_metric *oct_metric_at(size_t i);
/* By name, top1 to top999 among them; NULL and OCT_EUSAGE with the nearest name. */
oct_status oct_metric_find(const char *name, const oct_metric **m, oct_err *err);
/* For option tables: name and summary of the i-th; "top#" stands for all of top-k. */
const char *oct_metric_names(size_t i, const char **summary);

/* Whether a metric is of what is judged, as far as the rule and the truth tell: before any sample is read. OCT_EUSAGE: it is a function of sets of another
 * kind, or of a truth that is not there. */
oct_status oct_metric_suits(const oct_metric *m, const oct_judging *j, oct_err *err);

/* ---- how much worse is allowed ---- */

/* "0.01" (the metric's own units), "0.5%" (0.005), "0.5r%" (relative to float). */
typedef struct oct_drop_limit {
    double value;
    bool relative;
} oct_drop_limit;
oct_status oct_drop_limit_parse(const char *text, oct_drop_limit *d, oct_err *err);
/* "0.99", "99%": the share of samples that agree at least, as the limit of agreement's drop. OCT_EUSAGE names the option. */
oct_status oct_agreement_parse(const char *option, const char *text, oct_drop_limit *d, oct_err *err);
/* Whether the limit can be asked of the metric: OCT_EUSAGE for a relative one where float has no value. */
oct_status oct_drop_limit_check(const oct_drop_limit *d, const oct_metric *m, oct_err *err);
/* The limit as a drop. */
double oct_drop_allowed(const oct_drop_limit *d, double reference);
/* Whether a drop is beyond the limit. A NaN is. */
bool oct_drop_exceeds(const oct_drop_limit *d, double reference, double drop);

#endif
