/* lib/eval/sample_set.h -- metrics of a set of samples, which are no mean of scores: F1, average precision, correlations.
 *
 * What a sample contributes is kept for each model, as counts or matched scores: memory grows by these with the samples, not by their outputs. The
 * value of a metric is a function of a set and of how often each sample is drawn, so that its paired interval comes from drawing the samples of both
 * models alike. */
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
    const int64_t *dims; /* without the batch, where the output divides into samples */
    const float *v;
    size_t n;
} oct_set_tensor;

/* A sample as a model and the float model saw it. */
typedef struct oct_set_view {
    const char *name;
    int64_t index, label;      /* position in the data; -1: no label */
    const oct_set_tensor *out; /* n_out, in the order of the float model's */
    const oct_set_tensor *ref; /* the float model's; the same pointer when this is the float model */
    size_t n_out;
    const oct_batch *batch;    /* with the sample as row `row` of `rows` (0: the arrays are the sample) */
    size_t row;
    int64_t rows;
    const oct_source *source;  /* NULL: there were no steps */
    const oct_input_desc *inputs; /* of the batch's tensors */
} oct_set_view;

/* What judging is about: one kind of set each. */
typedef enum oct_set_kind {
    OCT_SET_NONE,
    OCT_SET_CLASSES, /* a class for each sample */
    OCT_SET_MAPS,    /* a class for each pixel */
    OCT_SET_PAIRS,   /* similarity of pairs of samples */
    OCT_SET_BOXES,   /* objects in pictures */
    OCT_SET_VALUES,  /* numbers, beside float's: whatever judging is about */
    OCT_SET_KINDS
} oct_set_kind;

/* What samples contributed to one model. Each kind has more behind this. */
typedef struct oct_set {
    const struct oct_set_type *type;
    const oct_judging *judging;
    size_t n;       /* samples (of pairs: pairs) that count, by which draws go */
    size_t scratch; /* doubles that a value needs, once finished */
    bool apart;     /* it is saved after each sample, so that what two of them make together cannot be made yet */
} oct_set;

struct ev_bytes; /* part_bytes.h */

typedef struct oct_set_type {
    size_t size; /* of the structure that begins with an oct_set */
    /* Takes a sample; the same samples count for every model. */
    oct_status (*add)(oct_set *s, const oct_set_view *v, oct_err *err);
    /* After the last sample: sorts and so on. NULL: nothing to do. */
    oct_status (*finish)(oct_set *s, oct_err *err);
    void (*release)(oct_set *s); /* what add and finish have made; not s itself */
    /* Before finish, for parts of an evaluation (part.h): appends what the samples added so far contribute, and forgets them; adds what this wrote, of
     * one sample. Bytes that it cannot have written are told by r->bad, and leave nothing that a metric could not be computed of. */
    void (*save)(oct_set *s, oct_buf *b);
    oct_status (*load)(oct_set *s, struct ev_bytes *r, oct_err *err);
} oct_set_type;
extern const oct_set_type *const oct_set_types[OCT_SET_KINDS];

/* The value of a metric where sample i counts draws[i] times (NULL: each once). scratch: f64[s->scratch]. NaN: there is none. */
typedef double (*oct_set_value)(const oct_set *s, const double *draws, double *scratch);

oct_status oct_set_create(oct_set_kind kind, const oct_judging *j, oct_set **s, oct_err *err);
void oct_set_free(oct_set *s); /* NULL allowed */
oct_status oct_set_finish(oct_set *s, oct_err *err);
oct_status oct_set_value_of(const oct_set *s, oct_set_value fn, double *value, oct_err *err);

/* The 95 % interval of fn(other) - fn(reference), or of fn(other) alone (reference NULL), of 2000 resamples of the samples, the same for both models:
 * BCa, whose acceleration comes from leaving out one of at most 200 groups of samples at a time. NaN for fewer than OCT_BCA_LEAST samples and where
 * more than one in twenty resamples has no value. Depends on the sets alone, not on threads. */
oct_status oct_set_interval(const oct_set *reference, const oct_set *other, oct_set_value fn, oct_pool *pool, double *lo, double *hi, oct_err *err);

/* Grows an array of elements of a size to hold one more; *cap of them fit. False: no memory. */
bool oct_set_grow(void **v, size_t n, size_t *cap, size_t size);
#define OCT_SET_GROW(v, n, cap) oct_set_grow((void **)&(v), (n), &(cap), sizeof *(v))

#endif
