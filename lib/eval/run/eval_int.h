/* lib/eval/run/eval_int.h -- internals of an evaluation, shared by the files of this folder. */
#ifndef OCT_EVAL_EVAL_INT_H
#define OCT_EVAL_EVAL_INT_H

#include "eval/engines/twin_differences.h"
#include "eval/metrics/error_sum.h"
#include "eval/run/eval.h"
#include "eval/run/output_match.h"
#include "eval/parts/part.h"
#include "eval/metrics/tokens.h"
#include "observers/stats.h"
#include "runtime/runner.h"

/* A buffer of floats that grows on demand. */
typedef struct ev_floats {
    float *v;
    size_t cap;
} ev_floats;
oct_status ev_reserve(ev_floats *f, size_t n, oct_err *err);
void ev_release(ev_floats *f);

/* ---- layer_errors.c: values that both the reference and another model compute ---- */

typedef struct ev_layers ev_layers;
/* models[0] is the reference; feed as for oct_runner_create. */
oct_status ev_layers_create(const oct_eval_model *models, size_t n_models, oct_pool *pool, const oct_input_desc *feed,
                            size_t n_feed, ev_layers **l, oct_err *err);
void ev_layers_destroy(ev_layers *l);
/* Runs the first n samples of a batch of `rows` (oct_batch_rows) in all models. */
oct_status ev_layers_feed(ev_layers *l, const oct_array *const *arrays, int64_t rows, size_t n, oct_err *err);
/* save: appends what was gathered so far. load: adds what a part has saved. r->bad: the part is of other models. label:
 * the part's file. */
oct_status ev_layers_save(const ev_layers *l, oct_buf *b, oct_err *err);
oct_status ev_layers_load(ev_layers *l, struct oct_bytes *r, const char *label, oct_err *err);
/* The layers of models[k], the worst first; in arena. */
oct_status ev_layers_result(const ev_layers *l, size_t k, oct_arena *arena, oct_eval_layer **layers, size_t *n_layers,
                            oct_err *err);

/* The node that computes a value. Nodes that only quantize or dequantize it are passed over. NULL: there is none. */
const oct_node *ev_computing_node(const oct_graph *g, int value);

/* ---- layer_values.c: which values and which quantized values occur ---- */

oct_eval_range ev_range_of(const oct_quant *q); /* q NULL: the value is not quantized */

/* Which quantized values of a tensor occur, counted from the smallest, over all samples. */
enum { EV_CODES = 256 };
typedef struct ev_codes {
    bool known; /* the range is known */
    oct_eval_range range;
    uint64_t n, clipped, saturated;
    bool seen[EV_CODES];
} ev_codes;
/* real, here: f32[n], the values in the float model and in the quantized model. */
void ev_codes_add(ev_codes *c, const float *real, const float *here, size_t n);
double ev_codes_used(const ev_codes *c);

/* The smallest and the largest value of each channel. */
typedef struct ev_channels {
    int64_t n;
    int axis;
    float *lo, *hi; /* [n]; NULL: none were seen, or there are too many channels */
    bool unsteady;  /* the number of channels varies */
} ev_channels;
/* Adds the first n elements x of a tensor, in C order. */
oct_status ev_channels_add(ev_channels *c, oct_arena *a, const oct_operand *t, const float *x, size_t n, oct_err *err);
bool ev_channels_known(const ev_channels *real, const ev_channels *here);
int64_t ev_channels_dead(const ev_channels *real, const ev_channels *here);

void ev_histogram_of(const oct_stats *s, const oct_eval_range *r, oct_eval_histogram *h);
/* ---- eval_sets.c: sets of samples, for metrics that are functions of a set ---- */

typedef struct ev_sets ev_sets;
/* j is borrowed as long as the sets exist. per_class: also gather classes if no metric needs them. */
oct_status ev_sets_create(const oct_judging *j, const oct_metric *const *metric, size_t n_metric, bool per_class,
                          size_t n_models, ev_sets **s, oct_err *err);
void ev_sets_destroy(ev_sets *s);      /* NULL allowed */
bool ev_sets_wanted(const ev_sets *s); /* whether samples must be added */
/* Adds a sample as model k saw it. Models must come in order. */
oct_status ev_sets_add(ev_sets *s, size_t k, const oct_set_view *v, oct_err *err);
/* For a part of an evaluation: samples are saved one by one, and not kept. To be called before the first sample. */
void ev_sets_set_apart(ev_sets *s);
void ev_sets_save(ev_sets *s, size_t k, oct_buf *b);
/* Adds what was saved of a sample, for model k. Models must come in order. r->bad: the data are not valid. */
oct_status ev_sets_load(ev_sets *s, size_t k, struct oct_bytes *r, oct_err *err);
oct_status ev_sets_finish(ev_sets *s, oct_err *err); /* after the last one */
/* Fills the value of c, a score with its metric, for model k. */
oct_status ev_sets_score(const ev_sets *s, size_t k, oct_pool *pool, oct_eval_score *c, oct_err *err);
/* Does not change *t if samples have no classes. */
oct_status ev_sets_classes(const ev_sets *s, size_t k, oct_arena *arena, oct_class_table *t, oct_err *err);
/* Sets the drop and its interval from the difference of the metric and its interval. flip: more is better, so a drop is
 * the negative difference. */
void ev_set_drop(oct_eval_score *c, const oct_interval *d, bool flip);

/* ---- latency.c ---- */

/* The least and the largest number of timed runs. */
enum { EV_LEAST_RUNS = 9, EV_MOST_RUNS = 1000 };

/* A model and the times of its runs, which alternate with those of the other models. */
typedef struct ev_timed {
    const char *name;
    oct_engine *engine; /* borrowed */
    double *seconds;    /* [EV_MOST_RUNS] */
    size_t n;
} ev_timed;

/* Fills latency, peak_bytes and counts of steps of r->models. If o asks for timing and t has no runs, the models run
 * alternately on one sample (arrays, with per_run samples in a run). */
oct_status ev_time_models(ev_timed *t, size_t n_models, const oct_array *arrays, int64_t per_run,
                          const oct_eval_options *o, oct_eval_result *r, oct_err *err);
/* Runs the models in turn: at least `least` times each, and at least this many seconds in all. */
oct_status ev_time_rounds(ev_timed *t, size_t n_models, const oct_array *arrays, int least, double seconds,
                          oct_err *err);
/* Compares ratios of pairs, not the ratio of medians: what slows the machine down affects both runs of a pair. The
 * times are not sorted yet. OCT_ENOMEM. */
oct_status ev_compare_pairs(const ev_timed *reference, const ev_timed *t, oct_eval_speed *s, oct_err *err);
/* The latency from at least one run of per_run samples; sorts the times. */
oct_eval_latency ev_latency_of(ev_timed *t, int64_t per_run);

/* ---- profile.c, measure_machine.c ---- */

/* Fills steps and costs of r->models, and r->machine. */
oct_status ev_profile_models(ev_timed *t, size_t n_models, const oct_array *arrays, const oct_eval_model *models,
                             oct_pool *pool, oct_eval_result *r, oct_err *err);
oct_status ev_measure_machine(oct_pool *pool, oct_eval_machine *m, oct_err *err);

/* ---- the state of an evaluation: eval.c runs it, eval_parts.c saves and restores it ---- */

typedef struct ev_tally {
    oct_paired pair; /* differences from the reference model */
    double sum;
    double weight; /* how many tokens the scores are about, if they are sums over tokens */
    uint64_t n;
    uint64_t lost; /* samples that have a score for one of the two models alone */
} ev_tally;

/* What was compared of an output, over all samples. */
typedef struct ev_output_tally {
    oct_match_count match;       /* of codes and rows */
    uint64_t compared, apart;    /* samples: those that were compared, and those where the output has another number of
                                    values than the reference's */
    uint64_t values, ref_values; /* how many values it has, and how many the reference has */
} ev_output_tally;

typedef struct ev_subject {
    const oct_eval_model *model;
    oct_engine engine;
    size_t *from;              /* output i of the reference corresponds to output from[i] of this model */
    ev_floats *out;            /* per output: its values for the batch, f32 */
    oct_error_sum *sum;        /* per output */
    oct_error *total;          /* the same rounded, at the end */
    oct_error *sample;         /* per output: the error of one sample */
    oct_match_count *match;    /* per output: the same of codes and rows */
    ev_output_tally *compared; /* per output */
    int64_t *row;              /* per output: how many elements it has for one sample */
    ev_tally *tally;           /* per metric */
    double *seconds;           /* times of the runs in which no model made a plan */
    size_t n_seconds;
    double last; /* time of the last run */
    const oct_plan
        *plan; /* the plan of the last run, used only to notice a change; NULL: none, as in another runtime */
    oct_set_tensor *tensor;   /* per output: its values for one sample, for sets */
    int64_t *dims;            /* their dimensions: [n_out][OCT_MAX_RANK] */
    bool *apart;              /* per output: in this batch it has another number of values than the reference's */
    oct_command_run *command; /* the run of a metric from a command, or NULL */
    oct_input_fit *fit;
    size_t n_fit;
    oct_carry *carry;
    oct_twin_differences *differences; /* of a twin; NULL: not asked for */
} ev_subject;

typedef struct ev_evaluation {
    const oct_eval_options *o;
    const oct_eval_model *models;
    oct_arena *arena;
    oct_source *src;
    oct_input_desc *inputs;
    size_t n_inputs;
    ev_subject *subject;
    const oct_array **arrays; /* per subject: the arrays that it read last */
    size_t n_subject, n_out;
    oct_operand *operand;   /* per output: type and shape in the model that ran last */
    oct_operand *reference; /* and in the reference; data are borrowed until its next run, NULL where it did not run */
    float **values;         /* per output: those of the reference, while they are kept */
    int64_t *count, *row;   /* per output: how many elements it has for the batch, and for one sample */
    bool *by_row;           /* per output: it can be divided into samples */
    oct_output_form *form;  /* per output */
    int *open_axis; /* per output: the dimension whose size is not known before a run, if it cannot be the batch; else
                       -1 */
    ev_floats rows[2], scale; /* rows of the two outputs that are compared, and what their columns are measured by */
    ev_floats taken;          /* bytes: rows that were found again */
    const oct_metric **metric;
    size_t n_metric;
    oct_metric_case kase;
    oct_judging judging;
    oct_decode rule;   /* a rule with the default values */
    ev_sets *sets;     /* NULL until the metrics are decided */
    bool logits;       /* divergences interpret the first output as logits */
    size_t width;      /* how many values of it form a distribution */
    bool of_tokens;    /* a metric uses tokens, if there are any */
    bool need_tokens;  /* a metric is only about tokens */
    oct_tokens tokens; /* the tokens of the batch */
    bool decided;      /* the metrics are decided, which happens after the first batch */
    bool timed;        /* there were enough runs over samples to take times from */
    double seconds;    /* their total time */
    bool one_number;   /* the command printed one number for all samples */
    ev_floats in;
    const float *in_f32; /* the first input of the batch, if it has the shape of the first output */
    oct_array *first;    /* the first sample, for timing */
    int64_t first_rows;  /* samples in it */
    int64_t most_rows;   /* the number of samples in the largest batch; 0: all samples came alone */
    ev_layers *layers;
    int64_t layer_samples;
    int64_t fixed_batch;    /* the batch size that the source must deliver; 0: any */
    int64_t given, bad;     /* the numbers of samples, set at the end */
    bool labels;            /* the samples have labels */
    int64_t unlabelled;     /* samples without one */
    double *score, *weight; /* of one sample: [n_metric][n_subject] */
    oct_part_out *part;     /* if an evaluation is made in parts, the contributions of samples are written here, and not
                               kept in tallies and sets; else NULL */
    oct_buf first_blob;     /* for a part: its first sample */
    oct_joined *joined;     /* if parts are joined: what they contain; else NULL */
    oct_arena *kept;        /* the arena of the result */
} ev_evaluation;

/* Runs a batch in all models. After the first batch it decides what is measured, and keeps its first sample for
 * timing. */
oct_status ev_run_models(ev_evaluation *e, const oct_batch *b, int64_t rows, oct_err *err);

/* ---- eval_metrics.c ---- */

/* Infers from the first batch of the reference, its first output and the rows in it, what the outputs mean. */
void ev_decide_case(ev_evaluation *e, const oct_operand *out, int64_t rows);
/* Then the metrics, and makes room for their scores. */
oct_status ev_decide_metrics(ev_evaluation *e, oct_err *err);

/* ---- eval_scores.c ---- */

/* Scores sample i of the batch, and counts it or, for a part, writes it. */
oct_status ev_score_sample(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err);
/* Counts the scores of a sample, in e->score and e->weight. A NaN does not count. */
void ev_take_scores(ev_evaluation *e);
/* Runs the metric that is a command for each model. It is the first one. */
oct_status ev_run_metric_command(ev_evaluation *e, oct_err *err);

/* ---- eval_result.c ---- */

/* Fills r from e, and takes the times that are asked for. */
oct_status ev_fill_result(ev_evaluation *e, oct_eval_result *r, oct_err *err);

/* ---- eval_outputs.c ---- */

/* Finds out what the outputs consist of, and along which dimension rows lie. */
oct_status ev_outputs_open(ev_evaluation *e, oct_err *err);
void ev_outputs_close(ev_evaluation *e);
/* Sets the shape of output i for one sample, s->tensor[i], from its values t for the batch and s->row[i]: without the
 * batch dimension, if there is one. Several rows of a batch may belong to one sample. */
void ev_output_shape(const ev_evaluation *e, ev_subject *s, size_t i, const oct_operand *t, int64_t rows);
/* The values of an output as numbers, f32[t->count]. Strings, as the names of classes, become numbers by a hash: they
 * are answers, equal or not. */
oct_status ev_output_values(const oct_operand *t, float *to, oct_err *err);
/* Compares the outputs for sample i of the batch with the reference. An output that cannot be divided into samples
 * counts once. */
oct_status ev_outputs_compare(ev_evaluation *e, ev_subject *s, size_t i, oct_err *err);
void ev_output_result(const ev_evaluation *e, const ev_subject *s, size_t i, oct_eval_output *o);

/* ---- eval_parts.c ---- */

/* For a part: called when the first batch has run; when sample i of a batch has been scored and added to the sets; and
 * after the last sample. */
oct_status ev_part_begin(ev_evaluation *e, int64_t rows, oct_err *err);
oct_status ev_part_sample(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err);
oct_status ev_part_end(ev_evaluation *e, oct_err *err);
/* Restores everything that parts contain, as if their samples had been run here. */
oct_status ev_join_parts(ev_evaluation *e, oct_parts *parts, oct_err *err);

#endif
