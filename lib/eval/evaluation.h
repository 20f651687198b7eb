/* lib/eval/evaluation.h -- the state of an evaluation, shared by eval.c and eval_parts.c. Private to lib/eval. */
#ifndef OCT_EVAL_EVALUATION_H
#define OCT_EVAL_EVALUATION_H

#include "eval/error_sum.h"
#include "eval/eval_int.h"
#include "eval/part.h"
#include "eval/tokens.h"

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

/* ---- eval.c, for eval_parts.c ---- */

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
