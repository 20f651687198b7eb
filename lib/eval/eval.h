/* lib/eval/eval.h -- compares models over samples: metrics, output and layer errors, latency, size and memory.
 *
 * models[0] is the reference ("float"); the others are compared with it over the same samples, in one pass that keeps sums
 * only: memory does not depend on the number of samples. Sums go sample by sample in the order of the data, so that the
 * numbers do not depend on the batch (latency apart). Models that quantize dynamically use one scale for a batch, as ONNX Runtime does,
 * so their results do depend on the batch. */
#ifndef OCT_EVAL_EVAL_H
#define OCT_EVAL_EVAL_H

#include "base/pool.h"
#include "base/progress.h"
#include "data/data.h"
#include "eval/classes.h"
#include "eval/costs.h"
#include "eval/environment.h"
#include "eval/input_fit.h"
#include "eval/judging.h"
#include "eval/layer_pairs.h"
#include "eval/metric_command.h"
#include "eval/metric.h"
#include "eval/part.h"
#include "graph/graph.h"
#include "runtime/carry.h"

typedef struct oct_eval_model {
    const char *name;       /* shown: the path */
    const oct_graph *graph; /* borrowed; not changed */
    uint64_t size_bytes;    /* the file with its external data */
    const char *scaled;     /* its metadata of that name (scaled.h), or NULL */
    bool bf16;              /* run as oct_plan_opts.bf16 says */
    const oct_remote_opts *remote; /* another runtime runs the file `name`; NULL: ours */
} oct_eval_model;

typedef struct oct_eval_options {
    oct_pool *pool;
    size_t batch;                    /* samples at a time; 0: 1. A batch the model fixes overrides it. */
    const oct_metric *const *metrics; /* NULL: those that apply */
    size_t n_metrics;
    const oct_metric *const *needed;  /* n_needed metrics more, which gates ask for; those that are there already count once */
    size_t n_needed;
    const oct_decode *rule;             /* what the outputs mean; NULL: what they seem to be */
    const oct_truth *truth;           /* of the samples, beside labels; NULL: none */
    bool per_class;                   /* fill oct_eval_model_result.classes */
    const oct_metric_command *command; /* its metric comes first; NULL: none */
    int64_t layer_samples;           /* samples over which layers are compared, broken ones counted: 0 none, -1 all */
    double latency_seconds;          /* time to spend on timing, in all; 0: no timing */
    int latency_runs;                /* the least number of runs of each model; 0: 9 */
    bool time_samples;               /* use the times of runs over the samples, except runs that made plans: of the first ones, which run on one
                                      * thread until latency_runs and latency_seconds are reached, if there are latency_runs in all */
    bool profile;                    /* gather oct_eval_model_result.steps */
    const oct_state *states;         /* n_states outputs of the first model that become inputs for the next sample of a recording; each model has its own.
                                      * The source is opened with these inputs as its states. */
    size_t n_states;
    oct_progress_fn progress;        /* may be NULL */
    void *progress_arg;
} oct_eval_options;

/* A metric of one model. */
typedef struct oct_eval_score {
    const oct_metric *metric;
    double value;      /* NaN: does not apply to this model */
    double reference;  /* the float model's; NaN: has none */
    double drop;       /* how much worse than float; NaN when this is the float model or has no reference */
    double lo, hi;     /* 95 % paired interval of the drop; NaN: none */
    const char *method; /* of the interval, for people; NULL: none */
    bool within_noise; /* the interval holds 0 */
    uint64_t n;        /* samples that counted */
    double per_sample; /* tokens of each, on average, where scores are of tokens */
} oct_eval_score;

/* How a score compares with a limit of its drop. The estimate decides whether the limit is met, the interval whether there are enough
 * samples to be sure. */
typedef struct oct_eval_gate {
    double allowed;   /* the limit, in the units of the drop */
    bool missed;      /* the drop is beyond it, or unknown */
    bool unsure;      /* the limit lies inside the interval */
    uint64_t samples; /* if unsure: about how many samples would be enough; 0: not known */
} oct_eval_gate;
oct_eval_gate oct_eval_judge(const oct_eval_score *s, const oct_drop_limit *limit);

typedef struct oct_eval_output {
    const char *name;
    double sqnr_db;    /* INFINITY: equal; NaN: values that are not finite differ */
    double cosine, max_abs;
} oct_eval_output;

typedef struct oct_eval_latency {
    double median, q1, q3; /* seconds for one sample */
    int runs;              /* 0: not timed */
} oct_eval_latency;

/* How many times faster than the reference, of pairs of runs that followed each other: quartiles over the pairs. */
typedef struct oct_eval_speed {
    double median, q1, q3;
    int runs; /* pairs; 0: not timed, or the reference itself */
} oct_eval_speed;

/* What can be concluded from a speed. */
typedef enum oct_speed_verdict {
    OCT_SPEED_UNKNOWN, /* few runs, or the quartiles are more than a factor of 1.5 apart: the machine did other things */
    OCT_SPEED_SAME,    /* the quartiles lie on both sides of 1 */
    OCT_SPEED_FASTER,
    OCT_SPEED_SLOWER
} oct_speed_verdict;
oct_speed_verdict oct_eval_speed_judge(const oct_eval_speed *s);

typedef struct oct_eval_step {
    const char *name, *op, *scheme;
    double seconds; /* per call: the median over the runs that were profiled */
    uint64_t macs, bytes;
    bool wide;      /* the quartiles are far apart (oct_is_wide) */
} oct_eval_step;

typedef struct oct_eval_model_result {
    const char *name;
    const char *runner;     /* name and version of the runtime that ran it; NULL: ours. What a plan says is 0 with another */
    oct_eval_score *scores; /* the same metrics in the same order for every model */
    oct_eval_output *outputs;
    double sqnr_db;         /* the smallest of outputs */
    double agreement;       /* NaN: no classes */
    oct_eval_layer *layers; /* worst first, by their own error where it is known */
    size_t n_layers;
    oct_eval_latency latency;
    oct_eval_speed speed;
    uint64_t size_bytes, peak_bytes; /* peak: arena and weights of the plan for one sample */
    uint64_t arena_bytes, live_bytes; /* for intermediate tensors; live: the largest sum of those alive at one step, the lower bound */
    oct_class_table classes; /* where samples have labels and per_class is asked for */
    size_t integer_steps, weighted_steps; /* weighted: layers with constant weights; integer: those that run as int8 */
    oct_eval_step *steps;
    size_t n_steps;
    oct_eval_cost_row *costs; /* with oct_eval_options.profile, of all models but the first: in the order of the float model's run */
    size_t n_costs;
    oct_input_fit *fit;     /* its quantized inputs, and the values they were fed */
    size_t n_fit;
    bool batch_scales;      /* it quantized several samples with scales that they share */
} oct_eval_model_result;

/* Latency of all models with so many threads and samples at a time. */
typedef struct oct_sweep_cell {
    int threads;
    size_t batch;
    const oct_eval_latency *of; /* [n_models], for one sample */
} oct_sweep_cell;

typedef struct oct_eval_result {
    oct_arena *arena; /* everything here; names of layers and outputs belong to the graphs, which must outlive it */
    oct_eval_model_result *models;
    size_t n_models, n_scores, n_outputs;
    int64_t samples, bad_samples, layer_samples;
    size_t batch; /* samples at a time: what was asked for, or the models fix */
    int threads;
    double seconds;  /* that it took in all */
    const char *isa; /* set by the caller, for the report; may be NULL */
    oct_environment environment; /* as the evaluation began */
    oct_sweep_cell *sweep; /* of oct_eval_sweep; NULL: not asked for */
    size_t n_sweep;
    oct_eval_machine machine; /* measured where models are profiled */
} oct_eval_result;

/* Runs all models over all samples of src (opened for oct_eval_inputs of the same graphs). *r is to be released with
 * oct_eval_free. OCT_EMALFORMED: models whose inputs or outputs do not pair, a label beyond the classes, no samples; errors
 * of a command, of the data and of the runtime as they come, with the model's name. */
oct_status oct_eval(const oct_eval_model *models, size_t n_models, oct_source *src, const oct_eval_options *o,
                    oct_eval_result **r, oct_err *err);

/* The same in parts. oct_eval_part writes what the samples of src contribute, which may be none, and commits or aborts p; nothing is timed. *samples: how
 * many there were. OCT_EUNSUPPORTED: results depend on which samples come together, on those before, or on a command. */
oct_status oct_eval_part(const oct_eval_model *models, size_t n_models, oct_source *src, const oct_eval_options *o, oct_part_out *p, int64_t *samples,
                         oct_err *err);
/* From all parts what oct_eval finds of all samples, bit for bit; times are measured here, on the first sample. OCT_EMALFORMED: a part that holds
 * something else, OCT_EUSAGE: metrics that the parts lack. joined: filled, in the result's arena. */
typedef struct oct_joined {
    const char *preprocess;  /* as oct_source_preprocess */
    const char **bad;        /* n_bad messages of broken samples, in the order of the data */
    size_t n_bad;
    int64_t bad_samples;
} oct_joined;
oct_status oct_eval_join(const oct_eval_model *models, size_t n_models, oct_parts *parts, const oct_eval_options *o, oct_joined *joined,
                         oct_eval_result **r, oct_err *err);
void oct_eval_free(oct_eval_result *r); /* NULL allowed */

/* The inputs that samples must fill, for oct_source_options; in arena. */
oct_status oct_eval_inputs(const oct_eval_model *models, size_t n_models, oct_arena *arena, oct_input_desc **inputs,
                           size_t *n_inputs, oct_err *err);

#endif
