/* lib/eval/eval_int.h -- the parts of an evaluation, shared by eval.c, layer_errors.c and latency.c. */
#ifndef OCT_EVAL_EVAL_INT_H
#define OCT_EVAL_EVAL_INT_H

#include "eval/error_sum.h"
#include "eval/eval.h"
#include "eval/part.h"
#include "eval/tokens.h"
#include "observers/stats.h"
#include "runtime/runner.h"

/* A buffer of floats that grows. */
typedef struct ev_floats {
    float *v;
    size_t cap;
} ev_floats;
oct_status ev_reserve(ev_floats *f, size_t n, oct_err *err);
void ev_release(ev_floats *f);

/* ---- layer_errors.c: values that the reference and another model both compute ---- */

typedef struct ev_layers ev_layers;
/* models[0] is the reference; feed as for oct_runner_create. */
oct_status ev_layers_create(const oct_eval_model *models, size_t n_models, oct_pool *pool, const oct_input_desc *feed,
                            size_t n_feed, ev_layers **l, oct_err *err);
void ev_layers_destroy(ev_layers *l);
/* Runs the first n samples of a batch of `rows` (oct_batch_rows) in all models. */
oct_status ev_layers_feed(ev_layers *l, const oct_array *const *arrays, int64_t rows, size_t n, oct_err *err);
/* What was gathered so far, and adding that of a part. r->bad: it is none of these models; label: the part's
 * file. */
oct_status ev_layers_save(const ev_layers *l, oct_buf *b, oct_err *err);
oct_status ev_layers_load(ev_layers *l, struct ev_bytes *r, const char *label, oct_err *err);
/* Layers of models[k], worst first, in arena. */
oct_status ev_layers_result(const ev_layers *l, size_t k, oct_arena *arena, oct_eval_layer **layers, size_t *n_layers,
                            oct_err *err);

/* ---- layer_values.c: what values take, and codes make of them ---- */

oct_eval_range ev_range_of(const oct_quant *q); /* NULL: of what is not quantized */

/* Codes of a value, from the smallest on, over all that was fed. */
enum { EV_CODES = 256 };
typedef struct ev_codes {
    bool known;           /* range is */
    oct_eval_range range;
    uint64_t n, clipped, saturated;
    bool seen[EV_CODES];
} ev_codes;
/* real, here: f32[n], the float model's values and those of the quantized one. */
void ev_codes_add(ev_codes *c, const float *real, const float *here, size_t n);
double ev_codes_used(const ev_codes *c);

/* The extremes of each channel. */
typedef struct ev_channels {
    int64_t n;
    int axis;
    float *lo, *hi; /* [n]; NULL: none yet, or too many */
    bool unsteady;  /* n is not always the same */
} ev_channels;
/* The first n elements x, in C order, of a tensor. */
oct_status ev_channels_add(ev_channels *c, oct_arena *a, const oct_operand *t, const float *x, size_t n, oct_err *err);
bool ev_channels_known(const ev_channels *real, const ev_channels *here);
int64_t ev_channels_dead(const ev_channels *real, const ev_channels *here);

void ev_histogram_of(const oct_stats *s, const oct_eval_range *r, oct_eval_histogram *h);
/* ---- eval_sets.c: sets of samples, by the metrics that are functions of them ---- */

typedef struct ev_sets ev_sets;
/* j is borrowed, as long as the sets live. per_class: also where no metric needs classes. */
oct_status ev_sets_create(const oct_judging *j, const oct_metric *const *metric, size_t n_metric, bool per_class, size_t n_models, ev_sets **s,
                          oct_err *err);
void ev_sets_destroy(ev_sets *s); /* NULL allowed */
bool ev_sets_wanted(const ev_sets *s); /* whether samples are to be given */
/* A sample as model k saw it; models in order. */
oct_status ev_sets_add(ev_sets *s, size_t k, const oct_set_view *v, oct_err *err);
/* For a part of an evaluation: samples are saved one by one, and not kept. Before the first. */
void ev_sets_set_apart(ev_sets *s);
void ev_sets_save(ev_sets *s, size_t k, oct_buf *b);
/* What was saved of a sample, for model k; models in order. r->bad: it is none. */
oct_status ev_sets_load(ev_sets *s, size_t k, struct ev_bytes *r, oct_err *err);
oct_status ev_sets_finish(ev_sets *s, oct_err *err); /* after the last one */
/* Fills what c, a score with its metric, says of model k. */
oct_status ev_sets_score(const ev_sets *s, size_t k, oct_pool *pool, oct_eval_score *c, oct_err *err);
/* Leaves *t alone where samples have no classes. */
oct_status ev_sets_classes(const ev_sets *s, size_t k, oct_arena *arena, oct_class_table *t, oct_err *err);
/* The drop and its interval, from those of how much more the metric is (flip: more is better). */
void ev_set_drop(oct_eval_score *c, const oct_interval *d, bool flip);

/* ---- latency.c ---- */

/* The largest number of runs that are timed. */
enum { EV_LEAST_RUNS = 9, EV_MOST_RUNS = 1000 };

/* A model and the seconds of its runs, which alternate with those of the other models. */
typedef struct ev_timed {
    const char *name;
    oct_engine *engine; /* borrowed */
    double *seconds;    /* [EV_MOST_RUNS] */
    size_t n;
} ev_timed;

/* Fills latency, peak_bytes and counts of steps of r->models. Where o asks for timing and t has no runs, the models
 * are run alternately on one sample (arrays; per_run samples in it). */
oct_status ev_time_models(ev_timed *t, size_t n_models, const oct_array *arrays, int64_t per_run, const oct_eval_options *o,
                          oct_eval_result *r, oct_err *err);
/* Runs the models in turn, at least so often and so long. */
oct_status ev_time_rounds(ev_timed *t, size_t n_models, const oct_array *arrays, int least, double seconds, oct_err *err);
/* Of at least one run, of so many samples each; sorts the seconds. */
oct_eval_latency ev_latency_of(ev_timed *t, int64_t per_run);

/* ---- profile.c, measure_machine.c ---- */

/* Fills steps and costs of r->models, and r->machine. */
oct_status ev_profile_models(ev_timed *t, size_t n_models, const oct_array *arrays, const oct_eval_model *models, oct_pool *pool, oct_eval_result *r,
                             oct_err *err);
oct_status ev_measure_machine(oct_pool *pool, oct_eval_machine *m, oct_err *err);

/* ---- the state of an evaluation, which eval.c runs and eval_parts.c writes and fills ---- */

typedef struct ev_tally {
    oct_paired pair; /* against the reference model */
    double sum;
    double weight; /* tokens that the scores are of, where they are sums over tokens */
    uint64_t n;
} ev_tally;

typedef struct ev_subject {
    const oct_eval_model *model;
    oct_engine engine;
    size_t *from;      /* output i of the reference is this model's output from[i] */
    ev_floats *out;    /* per output: the batch, f32 */
    oct_error_sum *sum; /* per output */
    oct_error *total;  /* the same rounded, once all is there */
    oct_error *sample; /* per output, of one sample */
    ev_tally *tally;     /* per metric */
    double *seconds;   /* of the runs in which no model made a plan */
    size_t n_seconds;
    double last;       /* of the last run */
    const oct_plan *plan; /* of it; only compared; NULL: none, as in another runtime */
    oct_set_tensor *tensor; /* per output: of one sample, for sets */
    int64_t *dims;        /* their dimensions: [n_out][OCT_MAX_RANK] */
    bool *apart;          /* per output: it has another number of values than the reference's in this batch */
    oct_command_run *command; /* of a metric from a command, else NULL */
    oct_input_fit *fit;
    size_t n_fit;
    oct_carry *carry;
} ev_subject;

typedef struct ev_evaluation {
    const oct_eval_options *o;
    const oct_eval_model *models;
    oct_arena *arena;
    oct_source *src;
    oct_input_desc *inputs;
    size_t n_inputs;
    ev_subject *subject;
    const oct_array **arrays; /* per subject: what it read last */
    size_t n_subject, n_out;
    int64_t *count, *row; /* per output: elements in the batch, of one sample */
    bool *by_row;         /* per output: divides into samples */
    const oct_metric **metric;
    size_t n_metric;
    oct_metric_case kase;
    oct_judging judging;
    oct_decode rule;        /* of defaults */
    ev_sets *sets;        /* NULL until metrics are decided */
    bool logits;          /* what divergences take the first output for */
    size_t width;         /* values of one distribution in it */
    bool of_tokens;       /* a metric is about them, if there are some */
    bool need_tokens;     /* one is about nothing else */
    oct_tokens tokens;    /* of the batch */
    bool decided;         /* which metrics: after the first batch */
    bool timed;           /* enough runs were */
    double seconds;       /* of these, in all */
    bool one_number;      /* the command printed one for all samples */
    ev_floats in;
    const float *in_f32;  /* first input of the batch, when it has the shape of the first output */
    oct_array *first;     /* the first sample, for timing */
    int64_t first_rows;   /* samples in it */
    int64_t most_rows;    /* samples in the largest batch; 0: all came alone */
    ev_layers *layers;
    int64_t layer_samples;
    int64_t fixed_batch;  /* of the source; 0: free */
    int64_t given, bad;   /* samples, once all came */
    bool labels;          /* samples have them */
    double *score, *weight; /* of a sample: [n_metric][n_subject] */
    oct_part_out *part;   /* what samples contribute goes there, instead of into tallies and sets; NULL: it does not */
    oct_buf first_blob;   /* of a part: its first sample */
    oct_joined *joined;   /* of parts, else NULL */
    oct_arena *kept;      /* the result's */
} ev_evaluation;

/* Counts the scores of a sample, in e->score and e->weight. NaN does not count. */
void ev_take_scores(ev_evaluation *e);
/* Runs a batch in all models; where it is the first, decides what is measured and keeps its first sample for timing. */
oct_status ev_run_models(ev_evaluation *e, const oct_batch *b, int64_t rows, oct_err *err);

/* ---- eval_parts.c ---- */

/* Of a part: its first batch came; sample i of a batch has been scored and added to the sets; the last sample came. */
oct_status ev_part_begin(ev_evaluation *e, int64_t rows, oct_err *err);
oct_status ev_part_sample(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err);
oct_status ev_part_end(ev_evaluation *e, oct_err *err);
/* Everything that parts hold, as if their samples had been run here. */
oct_status ev_join_parts(ev_evaluation *e, oct_parts *parts, oct_err *err);

#endif
