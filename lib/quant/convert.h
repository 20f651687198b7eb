/* lib/quant/convert.h -- a conversion from model, samples and options to the graph that is written, and the record of what was done.
 * Its functions are called in the order in which they stand: open, take, read_table, decide, make, judge, write, close.
 *
 *   oct_convert_opts o = { .name = "m.onnx", .job = { .target = target }, .methods = oct_methods_default() };
 *   oct_conversion c;
 *   s = oct_conversion_open(&c, &o, err);
 *
 * The record is read between these steps; only the functions here change it. */
#ifndef OCT_QUANT_CONVERT_H
#define OCT_QUANT_CONVERT_H

#include "base/buf.h"
#include "base/progress.h"
#include "data/data.h"
#include "encodings/encodings.h"
#include "eval/denormal.h"
#include "eval/eval.h"
#include "eval/report.h"
#include "forms/ends.h"
#include "onnx/model.h"
#include "quant/layers.h"
#include "quant/methods.h"
#include "quant/norm_match.h"
#include "quant/record.h"

/* How a conversion reports while it works. Each function may be NULL. */
typedef struct oct_convert_listener {
    oct_progress_fn progress;
    void (*note)(void *arg, int level, const char *text); /* one line; level 0 is for everybody, 1 for verbose output, OCT_NOTE_WARNING is a warning */
    void (*chosen)(void *arg, const oct_source *src);     /* it is settled which samples are used */
    void (*taken)(void *arg, const oct_source *src);      /* a pass over them has ended */
    void *arg;
} oct_convert_listener;
enum { OCT_NOTE_WARNING = -1 };

/* A metric that may get worse by no more than a limit. An SQNR of at least D dB is stated as a drop of at most 10^(-D/10), an agreement of at least P
 * as a drop of at most 1 - P. */
typedef struct oct_goal {
    const char *option;   /* the option that asked for it, for messages */
    const char *metric;   /* its name; NULL: the one that counts */
    oct_drop_limit limit;
} oct_goal;
enum { OCT_GOALS_MAX = 8 };

/* One measurement of the goals. The first trial of a conversion is the result of its methods, with no layer changed for the goal. */
typedef struct oct_goal_trial {
    size_t layers;   /* with weights, left float */
    size_t wide;     /* with weights, that got activations of 16 bits */
    double macs;     /* the share of the multiply-accumulates left float */
    double sqnr;     /* of the outputs, dB */
    bool met, taken; /* all goals; this is the result */
    uint64_t samples;
    oct_eval_score score[OCT_GOALS_MAX]; /* by goal */
} oct_goal_trial;

/* An input or output that is to have another type than float32. */
typedef struct oct_end_ask {
    const char *name; /* each input or output that has no request of its own, if NULL */
    oct_dtype type;   /* OCT_U8, OCT_S8, OCT_F16 */
    bool output;
} oct_end_ask;

/* What became of such a request. */
typedef struct oct_conversion_end {
    oct_end record;  /* what the file says of it */
    oct_end close;   /* how the graph is made to match, when everything else is done */
    const char *how; /* for people, once the model is written: how the type is reached, or why it is not */
    bool reached, compared; /* compared: the loss at the outputs decides whether the preprocessing of pixels is folded */
    bool was_bytes;         /* the float model's input has this type already, so the file needs no entry for it */
    const char *chain_end;  /* if nodes of the model normalise pixels: the value that the layers read of them (passes/input_chain.h); else NULL */
} oct_conversion_end;

/* Denormal numbers among a layer's weights. If layers share weights, only the first of them is listed. */
typedef struct oct_layer_denormals {
    const char *layer, *op;
    const void *first; /* the weights */
    uint64_t n, of;    /* denormal numbers, and all weights */
    bool zeros;        /* whether they are written as zeros: they are if the layer is quantized or in 16 bits */
} oct_layer_denormals;

/* A limit for the size of the file: one of the three; all 0: no limit. */
typedef struct oct_size_limit {
    uint64_t bytes; /* at most */
    double share;   /* of the float file's bytes */
    double bits;    /* for each weight of the layers that can be chosen, on average, scales included */
} oct_size_limit;
/* "25%", "12MB", "1.5GiB", "80000": OCT_EUSAGE names the option. */
oct_status oct_size_limit_parse(const char *option, const char *text, oct_size_limit *l, oct_err *err);

/* What a process has written that rounds a part of the layers (round_parts.h). */
typedef struct oct_rounding_written {
    const char *method, *next; /* NULL: nothing was written; next: the method that continues from this one, or NULL */
    size_t layers, of;         /* the layers in this part, and all layers */
} oct_rounding_written;

/* Everything is borrowed until the conversion is closed. */
typedef struct oct_convert_opts {
    const char *name;      /* what messages and records call the model */
    const char *policy;    /* a file of rules that follow the built-in ones, or NULL */
    const char *const *rules; /* [n_rules]: one rule each, 'MATCH=COLUMNS', which follow those of the file (--set) */
    size_t n_rules;
    const char *observer;  /* the observer for every tensor; NULL: the policy names it */
    oct_qjob_opts job;     /* target, scheme, blocks, passes, threads; the conversion sets policy, log, have_data and what methods set */
    oct_method_set methods;
    bool synthetic;        /* samples are generated (data/synthetic.h): they give ranges, and no method chooses by them */
    bool whole;            /* samples are not divided into halves that find ranges and compare them, because some samples may be broken */
    const double *budget;  /* the share of the multiply-accumulates that mixed precision may leave float; NULL: 0.03; 0: none */
    /* measure the cost of each value and of each layer's weights; otherwise only those costs of values are known that a method measured */
    bool sensitivity;
    const char *sensitivity_file; /* a file that keeps these measurements; what it has is not measured again; NULL: none */
    struct oct_memo *sensitivity_parts; /* measurements of all parts (memo.h), or NULL; with them, nothing is measured for causes */
    const struct oct_rounding_share *rounding_share; /* oct_conversion_decide ends after rounding this part of the layers; NULL: it does not */
    const char *const *rounding_files; /* [n_rounding_files]: files of such parts; their weights are used instead of rounding again (round_parts.h) */
    size_t n_rounding_files;
    oct_size_limit size;   /* schemes are chosen for this size, by the loss for each byte saved, among all that the target runs */
    const char *made_by;   /* the command to be recorded, with what can change the model; may be NULL */
    const oct_record *record; /* digests of all inputs except the samples, to be recorded; NULL: nothing is recorded */
    const char *metric;    /* the metric that counts; NULL: the first that applies */
    const oct_metric_command *command; /* an additional metric, which counts if `metric` is NULL; NULL: none */
    const oct_end_ask *ends; /* [n_ends]: types of inputs and outputs */
    size_t n_ends;
    bool nhwc;             /* these inputs have pictures with the channels last */
    bool unfolded;         /* if folding the preprocessing of pixels would change how layers are rounded, nodes in front of the model normalise instead */
    const double *other_db; /* by output: methods_db of the conversion that does the opposite, with as many outputs, for comparison; or NULL */
    const oct_decode *rule; /* what the outputs mean to the metrics; NULL: there is no rule */
    const oct_truth *truth; /* the truth about the samples, other than labels; NULL: none */
    const oct_goal *goals; /* what the result has to meet, at most OCT_GOALS_MAX */
    size_t n_goals;
    int trials;            /* the largest number of trials to reach the goals; 0: the result is only judged */
    int64_t layer_samples; /* on how many of its samples the verdict compares layers and times steps; 0: it does neither */
    double time_limit;     /* seconds after opening at which no more trials begin; 0: no limit. With a limit, the result depends on the machine. */
    oct_convert_listener listener;
} oct_convert_opts;

/* A point of the curve of size against loss: the previous point, with one layer in more bytes. */
typedef struct oct_size_point {
    /* the layer, and its new form: "u4/block32", "8 bits" (the form without a limit), "fp16", "float"; both are "" in the first point */
    const char *layer, *form;
    double bytes, sqnr;       /* about, the bytes of the file, and the expected dB at the outputs (without samples: of all weights and inputs) */
    bool taken;               /* the result has this form for the layer, or one of more bytes */
} oct_size_point;

/* A form for all layers that can have it, with the others in float, if that is within the limit; form "" is the choice layer by layer. */
typedef struct oct_size_rival {
    const char *form;
    bool between; /* with form "": operators between layers are float, though the policy has them on integers */
    uint64_t bytes;
    double sqnr; /* dB of the worst output, on samples that did not choose; without samples as in oct_size_choice */
} oct_size_rival;

/* What was chosen for a size. */
typedef struct oct_size_choice {
    uint64_t limit, least; /* bytes; 0: no limit; least: the smallest size that was found */
    uint64_t now;          /* of the file as it is decided */
    oct_size_point *point; /* [n] */
    size_t n;
    double sqnr;           /* expected of what was chosen */
    bool measured;         /* the loss was measured on samples; otherwise it is estimated from weights and inputs */
    bool missed;           /* even the smallest size exceeds the limit */
    oct_size_rival *rival; /* [n_rivals], 0 if none fits; the first has form "" */
    size_t n_rivals, taken; /* taken: the index of the result */
    size_t samples;        /* how many samples compared the rivals; 0: none did */
} oct_size_choice;

/* Which samples a conversion is judged on. */
typedef enum oct_judged_on {
    OCT_JUDGED_OTHERS, /* that calibration did not see */
    OCT_JUDGED_SAME,   /* those it was calibrated with, as there are too few to keep some aside */
    OCT_JUDGED_ANY     /* nothing was calibrated */
} oct_judged_on;

/* What a pass did. */
typedef struct oct_change {
    const char *pass, *what, *node;
} oct_change;

/* Something that is rounded, and what that alone costs at the outputs, everything else being float. */
typedef struct oct_cause {
    const char *value; /* its name; NULL: the weights and the bias of the layer */
    const char *layer; /* name of the node that makes the value; "": an input of the model makes it */
    const char *op;    /* of the layer; "" */
    int node;          /* the layer in the job's graph, or -1 */
    double noise;      /* of the signal, summed over the outputs */
    double share;      /* of what all of them cost, each alone, or together where that is more: shares add up to at most 1 */
    double sqnr;       /* dB, of the outputs if nothing else were rounded */
    double gain;       /* dB, about, that the outputs gain where it alone is left float */
} oct_cause;

/* A node that stays float, or gets activations of 16 bits, because of what rounding a value beside it to 8 would cost. */
typedef struct oct_promotion {
    const char *layer, *value; /* names */
    double macs;               /* share of the multiply-accumulates */
    double loss, gain;         /* share of the loss that the value causes; dB, about, that the outputs gain without it */
    bool beyond_budget, wide;
} oct_promotion;

/* What was found by measuring causes. */
typedef struct oct_causes {
    oct_cause *cause;  /* worst first */
    size_t n, small;   /* small: things that cause less than `least` of the noise of their kind, and were not told apart */
    double least;
    bool weights;      /* of layers were measured too */
    size_t samples;
    double all, of_values, of_weights; /* dB, of the outputs with everything rounded, or one kind; NaN: not measured */
    double sum;        /* dB, of the outputs if the errors of all causes were independent */
} oct_causes;

/* Few layers that cause most of the loss, and are not float. */
typedef struct oct_culprits {
    const char *names; /* of the layers, for people; NULL: there are none */
    size_t n;
    double macs;       /* share of the multiply-accumulates */
    double gain;       /* dB, measured on other samples than those that found them */
} oct_culprits;

/* What of a quantized model has a counterpart in its float model. */
typedef struct oct_adopted {
    size_t values, layers;             /* activations; layers with quantized weights */
    size_t other_values, other_layers; /* those that have none, or no scales before the model runs */
} oct_adopted;

/* A tensor for which the table gives parameters that could not be taken as they are; its range was. */
typedef struct oct_misfit {
    const char *tensor, *why; /* why: one clause */
} oct_misfit;

/* What became of a table whose ranges other tools have found. */
typedef struct oct_pinned {
    size_t ranges, exact; /* tensors with such a range; of those the ones with the scale and zero point that the table gives */
    oct_misfit *misfit;
    size_t n_misfit;
    size_t missing;       /* tensors that lack a range, and so stayed real */
} oct_pinned;

typedef struct oct_conversion {
    oct_convert_opts o;
    oct_arena *arena;
    oct_policy *policy;
    oct_model *m;      /* borrowed */
    oct_source *src;   /* borrowed; NULL without samples */
    const char *table; /* path of a table that was read, or NULL; borrowed */
    oct_calib *calib;  /* NULL without samples and table */
    oct_encodings_match match; /* form NULL: the table is one of our own, or there is none */
    oct_pinned pinned;
    oct_calib *half[2];      /* of calib what each half of the samples says, so that ranges are judged on others than made them; or NULL */
    oct_norm_target *target; /* [n_target]: what the model says of the data it was trained with, where samples are made ... */
    size_t n_target;
    oct_graph *like;         /* ... and the graph that takes these as such data; else NULL */
    oct_conversion_end *end;
    size_t n_end;
    oct_graph *from_pixels;   /* the float model as it was, of what layers that took over preprocessing read now, where they round otherwise for it; else
                               * NULL */
    double *methods_db;       /* [n_methods_db], by output: the SQNR of what the methods gave, on the samples that judge; or NULL: only o.unfolded and
                               * o.other_db ask for it */
    size_t n_methods_db, worst_db; /* worst_db: the output at which folding costs most */
    const char *worst_output; /* its name */
    bool fold_lost;           /* an output lost more by folding than it may (o.other_db): the conversion was given up, and is to be made again with o.unfolded */
    oct_given_params *given; /* of the job's options */
    oct_qjob *job;
    size_t n_prepared;       /* nodes of the graph as methods found it; those that they add stand behind these */
    oct_change *changes;
    size_t n_changes, cap_changes;
    const char **warnings;
    size_t n_warnings, cap_warnings;
    bool out_of_memory;      /* in the log of changes or warnings */
    bool gathered, decided;  /* statistics are complete; decisions are those of the job's settings */
    uint64_t revision;       /* grows with each change of decisions */
    struct oct_round_parts *round_parts; /* of the options' files; NULL: there are none */
    oct_rounding_written written; /* of o.rounding_share: nothing else was decided */
    oct_pass_log log;         /* into `changes` */
    struct oct_sim_core *sim; /* the simulation while methods run, NULL: nobody has asked for it */
    oct_layer *layers;
    size_t n_layers;
    oct_arena *lasting;      /* of the job's decisions */
    oct_arena *equalized;    /* constants of the graph that were scaled, or NULL */
    oct_buf scaled;          /* what the metadata says of values whose channels a method multiplied (eval/scaled.h) */
    oct_method_result *methods; /* of the table, in its order */
    size_t n_methods;
    const struct oct_sensitivity *sensitivity; /* of values, as a method has measured it; NULL: none has */
    oct_causes causes;          /* n 0: not known */
    oct_culprits culprits;
    oct_promotion *promoted;
    size_t n_promoted;
    uint64_t size_before, size_after; /* with external data */
    oct_size_choice size;     /* what was chosen for o.size */
    struct oct_size_units *size_units; /* while schemes may still change for it */
    oct_graph *adopted;       /* the quantized model whose decisions were taken, or NULL */
    oct_graph *fl;            /* the prepared float graph, where the result is judged */
    oct_judged_on judged;
    oct_eval_result *verdict; /* float against quantized; NULL: not measured */
    double sqnr;              /* of the outputs on the samples of the verdict; NaN: not measured */
    oct_layer_denormals *denormal; /* of layers that have any */
    size_t n_denormal;
    bool looked_for_denormals;
    oct_denormals denormals;  /* of the float model, when they were looked for */
    const char *unjudged;     /* why there is no verdict though there are samples; NULL: nothing to say */
    bool missed;              /* a goal */
    bool lossy;               /* a warning says that more is lost than need be, or than is of use */
    double began;             /* seconds, as oct_now has them */
    struct oct_decisions *before_rounding; /* of trials (goal.c); NULL: there will be none */
    oct_goal_trial *trials;        /* the first: without any; NULL where nothing was tried */
    size_t n_trials;
    bool stopped;             /* by the time limit */
    oct_record_entry read;    /* the samples that decided; not there: none did, or nothing is recorded */
    bool divided;             /* of the samples kept aside one half chose among trials, and the other judges */
} oct_conversion;

/* Reads the policy. c is to be closed, also after a failure. OCT_EUSAGE, OCT_EIO, OCT_EMALFORMED. */
oct_status oct_conversion_open(oct_conversion *c, const oct_convert_opts *o, oct_err *err);
void oct_conversion_close(oct_conversion *c);

/* The model, as it was loaded: borrowed, and its graph is changed from here on. */
void oct_conversion_take(oct_conversion *c, oct_model *m);
/* The calibration table at path, or ranges in a form of another tool (encodings/encodings.h); OCT_EUSAGE when it was made from another model. */
oct_status oct_conversion_read_table(oct_conversion *c, const char *path, oct_err *err);
/* Behind take and read_table, and before samples are opened: what inputs and outputs are to be, where the options ask for it. steps: the preprocessing
 * of each input of the model; those of inputs that hold pixels become what is left of them once mean, std and order are folded into the model.
 * OCT_EUSAGE: there is no such input or output, or none that the options are about. */
oct_status oct_conversion_take_ends(oct_conversion *c, oct_steps *steps, oct_err *err);
/* Prepares the graph, gathers statistics, runs the methods, decides every layer; or sets fold_lost, or written. src: samples, opened for the model's inputs with
 * `hold`; borrowed; NULL: none. Errors of the model's content name it. OCT_EUSAGE when a method that was asked for lacks what it needs. */
oct_status oct_conversion_decide(oct_conversion *c, oct_source *src, oct_err *err);

/* Instead of deciding: takes the decisions of a quantized model, of any form and from any tool, that was made from this one, and measures what each
 * costs (c->causes, c->culprits), where o.sensitivity is set. src: as in decide. OCT_EUSAGE: the two have nothing in common. */
oct_status oct_conversion_adopt(oct_conversion *c, oct_source *src, const oct_graph *quantized, oct_adopted *found, oct_err *err);
/* Behind adopt, where o.sensitivity is not set: measures the part-th of so many parts of that, and appends it to `rest`, for a part's file (memo.h).
 * OCT_EUSAGE: nothing can be measured. */
oct_status oct_conversion_sensitivity_part(oct_conversion *c, uint32_t part, uint32_t parts, oct_buf *rest, size_t *measured, oct_err *err);

/* Makes the model that is to be written to output, in memory. judged: where there are samples, the float graph is kept for the judge.
 * command (may be NULL) goes into the metadata, and so do the trials. */
oct_status oct_conversion_make(oct_conversion *c, const char *output, const char *command, bool judged, oct_err *err);
/* Runs both graphs over samples; sets verdict, judged, sqnr and missed, or unjudged. */
oct_status oct_conversion_judge(oct_conversion *c, const char *output, oct_err *err);
/* Why the result, made and judged, is of little use: it is not smaller than the model and, as far as is known, not faster. NULL: it is one of the two, or
 * the model is so small (64 kB) that nodes weigh more than weights, or nothing was to be quantized. */
const char *oct_conversion_no_gain(const oct_conversion *c);
/* Writes it, with a warning where nothing is gained, reads it back and checks it; what does not pass the check takes no place. */
oct_status oct_conversion_write(oct_conversion *c, const char *output, oct_err *err);
/* The same without the last step: the draft is to be committed or aborted. NULL after a failure. */
oct_status oct_conversion_draft(oct_conversion *c, const char *output, oct_model_draft **d, oct_err *err);

/* The score of a goal in the verdict. */
oct_eval_score oct_conversion_goal_score(const oct_conversion *c, size_t goal);
/* "top1: 0.40 points worse (...), at most 0.50 points are allowed: met, ..."; of sqnr in dB. Returns dst. */
const char *oct_goal_text(char dst[OCT_GATE_TEXT], const oct_goal *g, const oct_eval_score *s);
/* "2 layers left float for the goal, with 1.0 % of the multiply-accumulates, and 1 with activations of 16 bits". Returns dst. */
enum { OCT_TRIAL_TEXT = 200 };
const char *oct_goal_trial_text(char dst[OCT_TRIAL_TEXT], const oct_goal_trial *t);
/* The score that counts: the metric asked for, else the first that compares with the float model; NULL: none. */
const oct_eval_score *oct_conversion_score(const oct_conversion *c);
/* The options of a job of the run, for a forecast. */
oct_qjob_opts oct_conversion_job_opts(const oct_conversion *c);
/* The decisions as rows of a policy table that makes them again. */
void oct_conversion_put_policy(const oct_conversion *c, oct_buf *b);

#endif
