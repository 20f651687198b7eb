/* lib/eval/run/eval.h -- compares models over samples: metrics, output and layer errors, latency, size and memory.
 *
 * models[0] is the reference ("float"); the others are compared with it over the same samples, in one pass that keeps
 * sums only: memory does not depend on the number of samples. Sums go sample by sample in the order of the data, so
 * that the numbers do not depend on the batch (latency apart). Models that quantize dynamically use one scale for a
 * batch, as ONNX Runtime does, so their results do depend on the batch. */
#ifndef OCT_EVAL_EVAL_H
#define OCT_EVAL_EVAL_H

#include "base/pool.h"
#include "base/progress.h"
#include "data/data.h"
#include "eval/sets/classes.h"
#include "eval/metrics/costs.h"
#include "eval/run/environment.h"
#include "eval/run/input_fit.h"
#include "eval/parts/kept_outputs.h"
#include "eval/sets/judging.h"
#include "eval/pairs/layer_pairs.h"
#include "eval/metrics/metric_command.h"
#include "eval/metrics/metric.h"
#include "eval/run/output_form.h"
#include "eval/parts/part.h"
#include "graph/graph.h"
#include "runtime/carry.h"
#include "twins/twins.h"

enum { OCT_MOST_BLOCK_BITS = 8 }; /* of weights that are stored in blocks */

typedef struct oct_eval_model {
    const char *name;              /* the name in reports: the path */
    const oct_graph *graph;        /* borrowed; not changed */
    uint64_t size_bytes;           /* bytes of the file and its external data */
    const char *scaled;            /* its metadata `octet.scaled` (scaled.h), or NULL */
    bool bf16;                     /* run it as described at oct_plan_opts.bf16 */
    const oct_remote_opts *remote; /* the other runtime that runs the file `name`; NULL: ours */
    const oct_twin *twin;          /* it is computed as that runtime does; NULL: as ours */
    bool unwritten;                /* no file has this graph: a twin computes the one that would be written of it */
} oct_eval_model;

typedef struct oct_eval_options {
    oct_pool *pool;
    size_t batch; /* how many samples run together; 0: 1. If the model fixes its batch size, that is used instead. */
    const oct_metric *const *metrics; /* NULL: the metrics that apply */
    size_t n_metrics;
    const oct_metric *const
        *needed; /* [n_needed]: additional metrics that gates ask for; those that are computed anyway count once */
    size_t n_needed;
    const oct_drop_limit
        *main_limit;        /* of the first metric: refused before the run if it cannot be one of a share; NULL: none */
    const oct_decode *rule; /* what the outputs mean; NULL: it is inferred from their shapes */
    const oct_truth *truth; /* the truth about the samples, other than labels; NULL: none */
    bool per_class;         /* fill oct_eval_model_result.classes */
    const oct_metric_command *command; /* a metric of a command, which comes first; NULL: none */
    /* how many samples are used to compare layers, broken ones counted; 0: none, -1: all. Where a model has a twin, it
     * is compared with ours */
    int64_t layer_samples;
    double latency_seconds; /* how many seconds to spend on timing in all; 0: no timing */
    int latency_runs;       /* the least number of timed runs of each model; 0: 9 */
    /* take the times from runs over the samples, if there are latency_runs of them. The first runs then use one thread,
     * until latency_runs and latency_seconds are reached; runs that made plans do not count */
    bool time_samples;
    bool profile; /* gather oct_eval_model_result.steps */
    /* [n_states]: outputs of the first model that become inputs for the next sample of a recording. Each model has its
     * own. The source must be opened with these inputs as its states. */
    const oct_state *states;
    size_t n_states;
    /* outputs of the first model on samples that run alone are taken from here, and kept here: it then runs only for
     * its times, or where they are missing. Without latency_seconds nothing is said of plans (peak_bytes, steps). Void
     * with states and commands. NULL: it runs on all samples */
    oct_kept_outputs *kept;
    bool only_float; /* there is one model, and metrics that compare it with another are checked as if there were one */
    oct_progress_fn progress; /* may be NULL */
    void *progress_arg;
} oct_eval_options;

/* The value of a metric for one model. */
typedef struct oct_eval_score {
    const oct_metric *metric;
    double value;     /* NaN: the metric does not apply to this model */
    double reference; /* the value for the float model; NaN: it has none */
    double drop;      /* how much worse than the float model; NaN: this is the float model, or there is no reference */
    double lo, hi;    /* 95 % paired interval of the drop; NaN: none */
    const char *method; /* the name of the method of the interval; NULL: none */
    bool within_noise;  /* the interval contains 0 */
    uint64_t n;         /* how many samples counted */
    uint64_t lost;      /* how many have a score for this model or the float model alone; each counts as a loss */
    bool one_number;    /* a command has printed one for all samples */
    double per_sample;  /* tokens of a sample on average, if the scores are about tokens */
    double chance;      /* its value for guessed classes; NaN: it is not of classes */
} oct_eval_score;
/* The change of the metric's value against the float model, as value minus reference, with its interval: the sign is
 * that of the change, whichever way is better. For metrics whose drop is not a difference of values (oct_metric.lost),
 * the drop itself. Every report shows this. */
oct_interval oct_eval_change(const oct_eval_score *s);
/* Whether the samples do not show that the model does better than guessing (within two standard errors), and are so
 * many, 20 and more, that a useful one would. */
bool oct_eval_is_guess(const oct_eval_score *s);

/* Whether a score of samples has no interval because there are too few of them (fewer than OCT_BCA_LEAST). */
bool oct_eval_has_few(const oct_eval_score *s);
/* Whether it has none for any reason, as where a command prints one number for all samples: then no limit is met or
 * missed for certain. */
bool oct_eval_lacks_interval(const oct_eval_score *s);

/* How a score compares with a limit on its drop. The estimate decides whether the limit is met. The interval decides
 * whether the samples suffice to be sure. */
typedef struct oct_eval_gate {
    double allowed;   /* the limit, in the units of the drop */
    bool missed;      /* the drop exceeds the limit, or is unknown */
    bool unsure;      /* the limit lies inside the interval, or there is none */
    uint64_t samples; /* if unsure: approximately how many samples would suffice; 0: not known */
} oct_eval_gate;
oct_eval_gate oct_eval_judge(const oct_eval_score *s, const oct_drop_limit *limit);

typedef struct oct_eval_output {
    const char *name;
    oct_output_form form;
    double sqnr_db; /* INFINITY: the outputs are equal; NaN: values differ that are not finite, or no numbers were
                       compared */
    double cosine, max_abs; /* NaN: no numbers were compared */
    double matched; /* of codes and rows: the share of all of them that was found again; NaN: it consists of numbers, or
                       there were none */
    uint64_t broken; /* values that are NaN, or of which one is infinite and the float model's is another; for the float
                        model, NaN */
    uint64_t compared; /* how many samples were compared. Numbers of another length are not */
    uint64_t apart;    /* in how many samples it has another number of values than the reference's */
    double longer;     /* how many values it has more than the reference's, over all samples: 0.1 is a tenth; negative:
                          less; NaN: the reference has none */
} oct_eval_output;

typedef struct oct_eval_latency {
    double median, q1, q3; /* seconds for one sample */
    int runs;              /* 0: not timed */
} oct_eval_latency;

/* How many times faster a model is than the reference, from pairs of consecutive runs: the quartiles over the pairs. */
typedef struct oct_eval_speed {
    double median, q1, q3;
    int runs; /* how many pairs; 0: it was not timed, or is the reference itself */
} oct_eval_speed;

/* The conclusion from a speed. */
typedef enum oct_speed_verdict {
    OCT_SPEED_UNKNOWN, /* there are few runs, or the quartiles differ by more than a factor of 1.5, because the machine
                          was busy */
    OCT_SPEED_SAME,    /* 1 lies between the quartiles */
    OCT_SPEED_FASTER,
    OCT_SPEED_SLOWER
} oct_speed_verdict;
oct_speed_verdict oct_eval_speed_judge(const oct_eval_speed *s);

typedef struct oct_eval_step {
    const char *name, *op, *scheme;
    const char *algorithm, *kernel; /* as oct_step_info has them */
    double seconds;                 /* per call: the median over the runs that were profiled */
    uint64_t macs, bytes;
    bool scattered; /* the quartiles are far apart (oct_is_scattered) */
    double roof;    /* as in oct_eval_cost */
} oct_eval_step;

/* A layer whose integers are others in the runtime of a twin than in ours, which are ONNX Runtime's. */
typedef struct oct_eval_difference {
    const char *name, *op;  /* of the layer; as .tflite names the operator */
    uint64_t values;        /* how many were compared */
    uint64_t own, all;      /* how many differ: on equal operands; with what differs before it */
    int own_most, all_most; /* by how many steps at most */
} oct_eval_difference;

typedef struct oct_eval_output_difference {
    const char *name;
    uint64_t values, differ;
    double most; /* in the output's unit */
} oct_eval_output_difference;

/* Over the samples that layers are compared on. */
typedef struct oct_eval_differences {
    const char *runtime;        /* NULL: the model is no twin, or nothing was compared */
    size_t layers;              /* how many were compared */
    oct_eval_difference *layer; /* [n]: those that differ on equal operands, in the model's order */
    size_t n;
    oct_eval_output_difference *output; /* [n_outputs] of the result */
} oct_eval_differences;

typedef struct oct_eval_model_result {
    const char *name;
    const char *runner;     /* name and version of the other runtime; NULL: ours. With another runtime, fields that come
                               from our plan are 0 */
    oct_eval_score *scores; /* the same metrics in the same order for every model */
    oct_eval_output *outputs;
    double sqnr_db;         /* the smallest SQNR of an output; NaN also where no numbers were compared */
    bool broken;            /* values of an output differ that are not finite */
    double agreement;       /* NaN: there are no classes */
    oct_eval_layer *layers; /* the worst first, by their own error if it is known */
    size_t n_layers;
    oct_eval_latency latency;
    oct_eval_speed speed;
    uint64_t size_bytes, peak_bytes; /* peak: the arena and the weights of the plan for one sample */
    /* arena: memory for intermediate tensors; live: the largest sum of the tensors alive at one step, a lower bound of
     * the arena */
    uint64_t arena_bytes, live_bytes;
    oct_class_table classes; /* filled if samples have labels and per_class is set */
    size_t integer_steps,
        weighted_steps; /* weighted: how many layers have constant weights; integer: how many of them run on int8 */
    size_t block_steps[OCT_MOST_BLOCK_BITS + 1]; /* by number of bits: how many of them store weights in blocks */
    oct_eval_step *steps;
    size_t n_steps;
    oct_eval_cost_row *costs; /* if oct_eval_options.profile is set, for all models but the first: in the order of the
                                 float model's run */
    size_t n_costs;
    oct_input_fit *fit; /* its quantized inputs, with the range of the values that they got */
    size_t n_fit;
    bool batch_scales; /* it quantized several samples with common scales */
    oct_eval_differences device;
} oct_eval_model_result;

/* The latency of all models for a number of threads and a batch size. */
typedef struct oct_sweep_cell {
    int threads;
    size_t batch;
    const oct_eval_latency *of;  /* [n_models]: times for one sample */
    const oct_eval_speed *speed; /* [n_models]: against the first; that of the first itself is not set */
} oct_sweep_cell;

typedef struct oct_eval_result {
    oct_arena *arena; /* all memory of the result. The names of layers and outputs belong to the graphs, which must
                         outlive it */
    oct_eval_model_result *models;
    size_t n_models, n_scores, n_outputs;
    int64_t samples, bad_samples, layer_samples;
    int64_t unlabelled;   /* samples without a label, beside others that have one; unknown of parts: 0 */
    bool labels_too_late; /* the first samples have none, which decides what is measured */
    size_t batch;         /* how many samples ran together: as requested, or as the models demand */
    int threads;
    double seconds;              /* the duration of the evaluation */
    const char *isa;             /* instruction set, set by the caller for the report; may be NULL */
    oct_environment environment; /* the state of the machine at the beginning */
    oct_sweep_cell *sweep;       /* set by oct_eval_sweep; NULL: it was not called */
    size_t n_sweep;
    oct_eval_machine machine; /* measured if models are profiled */
} oct_eval_result;

/* Runs all models over all samples of src (opened for oct_eval_inputs of the same graphs). *r is to be released with
 * oct_eval_free. OCT_EMALFORMED: models whose inputs or outputs do not pair, a label beyond the classes, no samples;
 * errors of a command, of the data and of the runtime as they come, with the model's name. */
oct_status oct_eval(const oct_eval_model *models, size_t n_models, oct_source *src, const oct_eval_options *o,
                    oct_eval_result **r, oct_err *err);

/* The same in parts. oct_eval_part writes the contributions of the samples of src (possibly none), and commits or
 * aborts p. Nothing is timed. *samples: how many there were. OCT_EUNSUPPORTED: results depend on which samples run
 * together, on earlier samples, or on a command. */
oct_status oct_eval_part(const oct_eval_model *models, size_t n_models, oct_source *src, const oct_eval_options *o,
                         oct_part_out *p, int64_t *samples, oct_err *err);
/* Joins all parts to the result that oct_eval has for all samples, bit for bit. Times are measured here, on the first
 * sample. OCT_EMALFORMED: the contents of a part do not match. OCT_EUSAGE: the parts lack metrics. joined: filled; its
 * memory is in the arena of the result. Texts of both are borrowed from the parts. */
typedef struct oct_joined {
    const char *preprocess; /* as from oct_source_preprocess */
    const char **bad;       /* [n_bad]: messages about broken samples, in the order of the data */
    size_t n_bad;
    int64_t bad_samples;
} oct_joined;
oct_status oct_eval_join(const oct_eval_model *models, size_t n_models, oct_parts *parts, const oct_eval_options *o,
                         oct_joined *joined, oct_eval_result **r, oct_err *err);
void oct_eval_free(oct_eval_result *r); /* NULL allowed */

/* The inputs that samples must provide, for oct_source_options; in arena. */
oct_status oct_eval_inputs(const oct_eval_model *models, size_t n_models, oct_arena *arena, oct_input_desc **inputs,
                           size_t *n_inputs, oct_err *err);

#endif
