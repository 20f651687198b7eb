/* lib/eval/sets/sample_set.h -- metrics of a set of samples that are not a mean of scores: F1, average precision,
 * correlations.
 *
 * The contribution of each sample is kept for each model, as counts or matched scores. Memory grows with the number of
 * samples, but not with the size of their outputs. The value of a metric is a function of a set and of how often each
 * sample is drawn. Its paired interval comes from drawing the same samples for both models. */
#ifndef OCT_EVAL_SAMPLE_SET_H
#define OCT_EVAL_SAMPLE_SET_H

#include "base/buf.h"
#include "base/pool.h"
#include "data/data.h"

typedef struct oct_judging oct_judging; /* judging.h */

/* One output of a sample. */
typedef struct oct_set_tensor {
    const char *name;
    int rank;
    const int64_t *dims; /* without the batch, if the output can be divided into samples */
    const float *v;
    size_t n;
    bool codes; /* a single value is the class itself, not its score (ArgMax) */
} oct_set_tensor;

/* A sample as a model and the float model saw it. */
typedef struct oct_set_view {
    const char *name;
    int64_t index, label;      /* position in the data; label, where -1 is none */
    const oct_set_tensor *out; /* [n_out], in the order of the float model's outputs */
    const oct_set_tensor *ref; /* the float model's; the same pointer when this is the float model */
    size_t n_out;
    const oct_batch
        *batch; /* the sample is row `row` of `rows` in it; rows is 0 if the arrays belong to this sample alone */
    size_t row;
    int64_t rows;
    const oct_source *source;     /* NULL: there was no preprocessing */
    const oct_input_desc *inputs; /* describe the arrays of the batch */
} oct_set_view;

/* The kinds of tasks. Each has its own kind of set. */
typedef enum oct_set_kind {
    OCT_SET_NONE,
    OCT_SET_CLASSES,   /* a class for each sample */
    OCT_SET_MAPS,      /* a class for each pixel */
    OCT_SET_PAIRS,     /* similarity of pairs of samples */
    OCT_SET_BOXES,     /* objects in pictures */
    OCT_SET_SEQUENCES, /* a label for each place of a sample, or a text */
    OCT_SET_RETRIEVAL, /* documents found for queries */
    OCT_SET_VALUES,    /* numbers, compared with those of the float model; for any task */
    OCT_SET_KINDS
} oct_set_kind;

/* The contributions of the samples to one model. Each kind has further members after these. */
typedef struct oct_set {
    const struct oct_set_type *type;
    const oct_judging *judging;
    size_t n;       /* how many samples (or pairs) count; draws refer to them */
    size_t scratch; /* how many doubles a value needs as working memory, after `finish` */
    bool apart;     /* samples are saved one by one, so that results of two samples together cannot be computed yet */
} oct_set;

struct oct_bytes; /* base/bytes.h */

typedef struct oct_set_type {
    size_t size; /* size of the structure that begins with an oct_set */
    /* Adds a sample. The same samples must count for every model. */
    oct_status (*add)(oct_set *s, const oct_set_view *v, oct_err *err);
    /* Called after the last sample, for example to sort. NULL: nothing to do. */
    oct_status (*finish)(oct_set *s, oct_err *err);
    void (*release)(oct_set *s); /* frees what add and finish have allocated, but not s itself */
    /* For parts of an evaluation (part.h), before `finish`. save: appends the contributions of the samples added so
     * far, and drops them. load: adds what save has written for one sample. Invalid bytes set r->bad, and leave the set
     * in a state from which metrics can be computed. */
    void (*save)(oct_set *s, oct_buf *b);
    oct_status (*load)(oct_set *s, struct oct_bytes *r, oct_err *err);
} oct_set_type;
extern const oct_set_type *const oct_set_types[OCT_SET_KINDS];

/* The value of a metric if sample i counts draws[i] times (NULL: each once). scratch: f64[s->scratch]. NaN: it has no
 * value. */
typedef double (*oct_set_value)(const oct_set *s, const double *draws, double *scratch);

oct_status oct_set_create(oct_set_kind kind, const oct_judging *j, oct_set **s, oct_err *err);
void oct_set_free(oct_set *s); /* NULL allowed */
oct_status oct_set_finish(oct_set *s, oct_err *err);
oct_status oct_set_value_of(const oct_set *s, oct_set_value fn, double *value, oct_err *err);

/* The 95 % interval of fn(other) - fn(reference), or of fn(other) alone (reference NULL), from 2000 resamples, which
 * are the same for both models. The method is BCa; its acceleration comes from leaving out one of at most 200 groups of
 * samples at a time. NaN: there are fewer than OCT_BCA_LEAST samples, or more than one resample in twenty has no value.
 * The result does not depend on threads. */
oct_status oct_set_interval(const oct_set *reference, const oct_set *other, oct_set_value fn, oct_pool *pool,
                            double *lo, double *hi, oct_err *err);

/* Grows an array, if necessary, so that it can hold one more element; *cap is its capacity. False: memory ran out. */
bool oct_set_grow(void **v, size_t n, size_t *cap, size_t size);
#define OCT_SET_GROW(v, n, cap) oct_set_grow((void **)&(v), (n), &(cap), sizeof *(v))

#endif
