/* lib/quant/convert/convert.h -- a conversion from model, samples and options to the graph that is written, and the
 * record of what was done. Its functions are called in the order in which they stand: open, take, read_table, decide,
 * make, judge, write, close.
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
#include "eval/run/denormal.h"
#include "eval/run/eval.h"
#include "eval/report/report.h"
#include "forms/write/ends.h"
#include "onnx/model.h"
#include "quant/budget/float_bytes.h"
#include "quant/job/layers.h"
#include "quant/methods/methods.h"
#include "quant/inputs/norm_match.h"
#include "quant/convert/record.h"
#include "twins/twins.h"

/* How a conversion reports while it works. Each function may be NULL. */
typedef struct oct_convert_listener {
    oct_progress_fn progress;
    void (*note)(
        void *arg, int level,
        const char *text); /* one line; level 0 is for everybody, 1 for verbose output, OCT_NOTE_WARNING is a warning */
    void (*chosen)(void *arg, const oct_source *src); /* it is settled which samples are used */
    void (*taken)(void *arg, const oct_source *src);  /* a pass over them has ended */
    /* the graph as it is behind a step: "read", "prepared" (shapes, opset, passes), "scaled" (methods of the graph),
     * "decided" (values carry their quantization), "written"; of a nested graph nothing */
    void (*graph)(void *graph_arg, const char *step, const oct_graph *g);
    void *graph_arg;
    void *arg;
} oct_convert_listener;

/* A metric that may get worse by no more than a limit. An SQNR of at least D dB is stated as a drop of at most
 * 10^(-D/10), an agreement of at least P as a drop of at most 1 - P. */
typedef struct oct_goal {
    const char *option; /* the option that asked for it, for messages */
    const char *metric; /* its name; NULL: the one that counts */
    oct_drop_limit limit;
} oct_goal;
enum { OCT_GOALS_MAX = 8 };

/* One measurement of the goals. The first trial of a conversion is the result of its methods, with no layer changed for
 * the goal. */
typedef struct oct_goal_trial {
    size_t layers;   /* with weights, left float */
    size_t wide;     /* with weights, that got activations of 16 bits */
    size_t others;   /* operators without weights, left float */
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
    bool reached,
        compared;          /* compared: the loss at the outputs decides whether the preprocessing of pixels is folded */
    bool was_bytes;        /* the float model's input has this type already, so the file needs no entry for it */
    const char *chain_end; /* if nodes of the model normalise pixels: the value that the layers read of them
                              (passes/input_chain.h); else NULL */
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

/* Everything is borrowed until the conversion is closed. */
typedef struct oct_convert_opts {
    const char *name;         /* what messages and records call the model */
    const char *policy;       /* a file of rules that follow the built-in ones, or NULL */
    const char *const *rules; /* [n_rules]: one rule each, 'MATCH=COLUMNS', which follow those of the file (--set) */
    size_t n_rules;
    const char *observer; /* the observer for every tensor; NULL: the policy names it */
    oct_qjob_opts job; /* target, scheme, blocks, passes, threads; the conversion sets policy, log, have_data and what
                          methods set */
    oct_method_set methods;
    bool synthetic; /* samples are generated (data/source/synthetic.h): they give ranges, and no method chooses by them
                     */
    bool whole; /* samples are not divided into halves that find ranges and compare them, because some samples may be
                   broken */
    const double
        *budget; /* the share of the multiply-accumulates that mixed precision may leave float; NULL: 0.03; 0: none */
    /* measure the cost of each value and of each layer's weights; otherwise only those costs of values are known that a
     * method measured */
    bool sensitivity;
    const char
        *sensitivity_file; /* a file that keeps these measurements; what it has is not measured again; NULL: none */
    oct_size_limit
        size; /* schemes are chosen for this size, by the loss for each byte saved, among all that the target runs */
    const char *made_by;      /* the command to be recorded, with what can change the model; may be NULL */
    const oct_record *record; /* digests of all inputs except the samples, to be recorded; NULL: nothing is recorded */
    const char *metric;       /* the metric that counts; NULL: the first that applies */
    const oct_metric_command *command; /* an additional metric, which counts if `metric` is NULL; NULL: none */
    const oct_end_ask *ends;           /* [n_ends]: types of inputs and outputs */
    size_t n_ends;
    bool nhwc; /* these inputs have pictures with the channels last */
    const struct oct_state
        *states; /* [n_states]: those that the samples were opened with (eval/run/follow.h); their numbers are of m */
    size_t n_states;
    const oct_decode *rule; /* what the outputs mean to the metrics; NULL: there is no rule */
    const oct_truth *truth; /* the truth about the samples, other than labels; NULL: none */
    const oct_twin *twin;   /* results are judged as that runtime computes them; NULL: as ours does */
    const oct_goal *goals;  /* what the result has to meet, at most OCT_GOALS_MAX */
    size_t n_goals;
    int trials; /* the largest number of trials to reach the goals; 0: the result is only judged */
    int64_t
        layer_samples; /* on how many of its samples the verdict compares layers and times steps; 0: it does neither */
    double time_limit; /* seconds after opening at which no more trials begin; 0: no limit. With a limit, the result
                          depends on the machine. */
    /* Refuses a prepared graph that the caller could not write in its format in the end, before any work is done on it;
     * NULL: there is nothing to refuse. */
    oct_status (*writable)(const oct_graph *g, oct_err *err);
    /* Joins nodes that such a file has one operator for, before anything is decided; NULL: as they are. */
    oct_status (*join)(oct_graph *g, oct_err *err);
    oct_convert_listener listener;
} oct_convert_opts;

/* A point of the curve of size against loss: the previous point, with one layer in more bytes. */
typedef struct oct_size_point {
    /* the layer, and its new form: "u4/block32", "8 bits" (the form without a limit), "fp16", "float"; both are "" in
     * the first point */
    const char *layer, *form;
    double bytes, sqnr; /* about, the bytes of the file, and the expected dB at the outputs (without samples: of all
                           weights and inputs) */
    bool taken;         /* the result has this form for the layer, or one of more bytes */
} oct_size_point;

/* A form for all layers that can have it, with the others in float, if that is within the limit; form "" is the choice
 * layer by layer. */
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
    double sqnr;            /* expected of what was chosen */
    bool measured;          /* the loss was measured on samples; otherwise it is estimated from weights and inputs */
    bool missed;            /* even the smallest size exceeds the limit */
    oct_size_rival *rival;  /* [n_rivals], 0 if none fits; the first has form "" */
    size_t n_rivals, taken; /* taken: the index of the result */
    size_t samples;         /* how many samples compared the rivals; 0: none did */
} oct_size_choice;

/* The samples on which a conversion is judged. */
typedef enum oct_judged_on {
    OCT_JUDGED_OTHERS, /* samples that calibration did not see */
    OCT_JUDGED_SAME,   /* the samples of calibration, because there are too few to keep some aside */
    OCT_JUDGED_ANY     /* any samples: nothing was calibrated */
} oct_judged_on;

/* A change that a pass made. */
typedef struct oct_change {
    const char *pass, *what, *node;
} oct_change;

/* A value, or the weights of a layer, and what rounding it costs at the outputs while everything else stays float. */
typedef struct oct_cause {
    const char *value; /* the name of the value; NULL: the weights and the bias of the layer */
    bool whole;        /* without a value: everything about the layer, its inputs too */
    const char *layer; /* the name of the node that makes the value; "": the value is an input of the model */
    const char *op;    /* the operator of the layer; "" if there is no layer */
    int node;          /* the node of the layer in the job's graph, or -1 */
    double noise;      /* the noise at the outputs relative to the signal, summed over the outputs */
    /* its share of the cost of all causes. That cost is the larger of two: the sum of the single costs, and the cost of
     * all together; so shares add up to at most 1. */
    double share;
    double sqnr; /* SQNR of the outputs in dB if nothing else is rounded */
    double gain; /* approximate gain of the outputs in dB if this alone is left float */
} oct_cause;

/* A node that stays float or gets 16-bit activations, because rounding a value beside it to 8 bits would cost too
 * much. */
typedef struct oct_promotion {
    const char *layer, *value; /* the names of the node and of the value */
    double macs;               /* share of the multiply-accumulates of the model; NaN: unknown */
    double loss, gain; /* loss: the share of the loss that the value causes; gain: approximately how many dB the outputs
                          gain without it */
    bool beyond_budget, wide;
} oct_promotion;

/* The result of measuring the causes of the loss. */
typedef struct oct_causes {
    oct_cause *cause; /* [n], the worst first */
    size_t n, small; /* small: how many causes are below `least` of the noise of their kind; these were not measured one
                        by one */
    double least;
    bool weights; /* the weights of layers were measured too */
    size_t samples;
    /* SQNR of the outputs in dB with everything rounded, with the values alone, and with the weights alone; NaN: not
     * measured */
    double all, of_values, of_weights;
    double sum;          /* SQNR of the outputs in dB if the errors of all causes were independent */
    double worst_output; /* of `all`: the SQNR of the output that loses most; NaN: not measured */
    const char *
        *left_out; /* [n_left_out]: the names of the nodes at which something is rounded that was not simulated */
    size_t n_left_out;
} oct_causes;

/* A few quantized layers that cause most of the loss. */
typedef struct oct_culprits {
    const char *names;  /* the names of the layers, as text for people; NULL: there are no such layers */
    const char **layer; /* [n], each */
    size_t n;
    double macs; /* their share of the multiply-accumulates */
    double gain; /* dB that the outputs gain without them, measured on other samples than those that found the layers */
} oct_culprits;

/* A larger budget of mixed precision with which the outputs would be of use, tried in the simulation. */
typedef struct oct_remedy {
    double budget; /* share of the multiply-accumulates; 0: none was found, or none was needed */
    double sqnr;   /* dB that the outputs had, on the samples that judge; NAN: not measured */
} oct_remedy;

/* The scheme dynamic in place of static, tried in the simulation and, where it gains there, at the outputs. */
#define OCT_DYNAMIC_GAIN 3.0 /* dB that it must gain to be worth a word */
typedef struct oct_dynamic_trial {
    bool gains;    /* it would gain that, and no metric that decides is worse; false also where it was not tried */
    double sqnr;   /* dB of the outputs with it, on the samples that judge; NAN: not measured */
    bool scaled;   /* methods for static layers have scaled the graph, which the command would not do: a guess */
    double larger; /* bytes of the weights with it, as a factor */
    double size;   /* bytes of the file, about; 0: not known */
    double better; /* dB in the simulation */
    bool free;     /* it costs neither bytes nor time */
    bool taken;    /* so it is the result */
    oct_eval_score score; /* with it, by the metric that decides; metric NULL: none does */
} oct_dynamic_trial;

/* Layers that were left float in the end, because much was lost and float costs little (finer_trial.c). */
typedef struct oct_finer {
    size_t nodes;         /* 0: none */
    double before, after; /* dB of the outputs on the samples that judge */
    double longer;        /* the expected time, as a factor, by the table that gives the most */
} oct_finer;

/* Another scheme, as it did on the samples that judge (cure_trial.c). */
enum { OCT_TRIED = 3 };
typedef struct oct_tried {
    oct_scheme scheme; /* OCT_SCHEME_AUTO: none was tried */
    double sqnr;       /* dB of the outputs; NaN: it could not be tried */
    double size;       /* bytes of the file, about; 0: not known */
    bool worse;        /* a score is worse than the float model's by more than chance, or the outputs are broken */
} oct_tried;

/* An option that would win back what was lost: a budget in percent, or a scheme; neither: none is known, as where the
 * scheme is the one in use. */
typedef struct oct_cure {
    double budget;
    const char *scheme; /* NULL: it is the budget, if that is not 0 */
    double sqnr;        /* dB that the outputs had when it was tried; NaN: it is a guess */
    double size;        /* bytes of the file, about; 0: not known */
} oct_cure;

/* What it gives and costs: "67.5 dB when it was tried, about 804 kB, in float16"; "a
 * guess". Returns dst. */
enum { OCT_CURE_TEXT = 160 };
const char *oct_cure_text(char dst[OCT_CURE_TEXT], const oct_cure *x);

/* "with them in float the outputs gain 7.3 dB, for 1.2 % of the multiply-accumulates", or that the outputs would be the
 * float model's. Returns dst. */
enum { OCT_CULPRITS_TEXT = 160 };
const char *oct_culprits_text(char dst[OCT_CULPRITS_TEXT], const oct_culprits *k);

/* How much of a quantized model has a counterpart in its float model. */
typedef struct oct_adopted {
    size_t values, layers;             /* activations, and layers with quantized weights, that have a counterpart */
    size_t other_values, other_layers; /* those that have none, or whose scales are only known at run time */
} oct_adopted;

/* A tensor whose scale and zero point in the table could not be used; only its range was used. */
typedef struct oct_misfit {
    const char *tensor, *why; /* why: the reason, as one clause */
} oct_misfit;

/* How a table was used whose ranges come from another tool. */
typedef struct oct_pinned {
    size_t ranges, exact; /* ranges: the tensors with such a range; exact: those of them that have the scale and zero
                             point of the table */
    oct_misfit *misfit;
    size_t n_misfit;
    size_t missing; /* tensors that have no range, and so stayed float */
} oct_pinned;

/* How long a run of the result takes in ONNX Runtime on one thread, in shares of the float model's time there, by its
 * own provider and with Octet's (docs/provider.md), on CPUs of a table of costs. */
typedef struct oct_in_onnxruntime {
    const char *costs; /* the table; NULL: nothing is known */
    double own, with_provider;
} oct_in_onnxruntime;

typedef struct oct_conversion {
    oct_convert_opts o;
    oct_arena *arena;
    oct_policy *policy;
    oct_model *m;    /* borrowed, or a copy of what was taken (oct_conversion_take_ends): it is what is made */
    oct_source *src; /* borrowed; NULL without samples */
    oct_shape *seen; /* [n_seen]: the shapes of inputs in the first chosen sample; NULL: none was looked at */
    size_t n_seen;
    const char *table; /* path of the table that was read; borrowed; NULL: none was */
    oct_calib *calib;  /* NULL without samples and without a table */
    oct_encodings_match
        match; /* how a table of another tool was matched; form NULL: the table is one of ours, or there is none */
    oct_pinned pinned;
    oct_calib *half[2]; /* the statistics of each half of the samples, so that ranges found on one half are judged on
                           the other; or NULL */
    oct_norm_target
        *target; /* [n_target]: if samples are generated, what the model's normalizations say about its training data */
    size_t n_target;
    oct_graph *like; /* the graph over which generated samples are calibrated: its layers reach these targets
                        (norm_match.h); or NULL */
    oct_conversion_end *end;
    size_t n_end;
    /* the float model without the folding: added nodes compute its former inputs from the pixels. NULL unless folding
     * changes how layers are rounded */
    oct_graph *from_pixels;
    struct oct_fold *fold; /* whether preprocessing is folded (fold_trial.c); NULL: no input asks for it */
    oct_given_params
        *given; /* parameters of pixel inputs, which are known before any statistics; the job's options refer to them */
    oct_qjob *job;
    size_t n_prepared; /* how many nodes the graph had before the methods ran; nodes that methods add have higher
                          numbers */
    oct_change *changes;
    size_t n_changes, cap_changes;
    const char **warnings;
    size_t n_warnings, cap_warnings;
    size_t first_fault, n_faults; /* those of the warnings that say what lint finds in the result */
    size_t n_found, n_not_loaded; /* what it finds there, and of these the nodes that the target does not load */
    bool out_of_memory;           /* memory ran out while a change or a warning was logged */
    bool gathered,
        decided; /* gathered: statistics are complete; decided: the decisions are those of the job's current settings */
    uint64_t revision; /* grows whenever decisions change */
    oct_pass_log log;  /* writes into `changes` */
    struct oct_sim_core
        *sim;               /* the simulation that methods share while they run; NULL: no method has asked for it yet */
    oct_kept_outputs *kept; /* outputs of the float model; NULL: nothing was evaluated so far */
    oct_layer *layers;
    size_t n_layers;
    oct_arena *lasting;   /* memory of the job's decisions */
    oct_arena *equalized; /* memory of constants that were scaled; or NULL */
    oct_buf scaled;       /* for the metadata: which values had their channels multiplied by a method, and by what
                             (eval/run/scaled.h) */
    const oct_method *const *known; /* [n_known]: the methods among all steps (steps.inc) */
    size_t n_known;
    /* convert.c: runs the methods of one kind again, for trials that begin with other decisions */
    oct_status (*run_methods)(struct oct_conversion *c, oct_method_step kind, oct_err *err);
    void (*end_sim)(struct oct_conversion *c); /* simulate.c: ends sim; NULL: there is none */
    oct_method_result *methods;                /* [n_methods], in the order of the table */
    size_t n_methods;
    const struct oct_sensitivity *sensitivity; /* the sensitivities of values, if a method has measured them; or NULL */
    oct_causes causes;                         /* n is 0 if nothing was measured */
    oct_culprits culprits;
    oct_remedy remedy;
    oct_dynamic_trial dynamic;
    oct_finer finer;
    oct_tried tried[OCT_TRIED];
    oct_promotion *promoted;
    size_t n_promoted;
    uint64_t size_before, size_after; /* bytes of the files, external data included */
    oct_float_bytes
        *floats; /* [n_floats]: what above a twentieth of the bytes stayed float, unless that was asked for */
    size_t n_floats;
    bool recorded;                     /* the model that is converted has a record of its own */
    bool was_quantized;                /* the model that is converted has quantized values */
    oct_in_onnxruntime in_onnxruntime; /* an estimate */
    oct_given_weights *given_weights;  /* [n_given_weights] */
    size_t n_given_weights, cap_given_weights;
    oct_size_choice size;              /* the choice for o.size */
    struct oct_size_units *size_units; /* the choices of schemes that may still change for o.size */
    oct_graph *adopted;                /* the quantized model whose decisions were adopted; or NULL */
    oct_graph *fl;                     /* the prepared float graph, with which the result is compared */
    oct_judged_on judged;
    double seen_gap; /* dB by which the SQNR is better on samples that calibrated than on those that judge, where that
                        is much; else 0 */
    oct_eval_result *verdict;      /* the comparison of the float and the quantized graph; NULL: there was none */
    double sqnr;                   /* SQNR of the outputs in dB on the samples of the verdict; NaN: not measured */
    oct_layer_denormals *denormal; /* [n_denormal], of the layers that have denormal weights */
    size_t n_denormal;
    bool looked_for_denormals;
    oct_denormals denormals; /* those of the float model, if looked_for_denormals */
    const char
        *unjudged; /* the reason why samples are there but nothing was judged; NULL: there is nothing to explain */
    bool missed;   /* a goal was not reached */
    bool curable;  /* a warning or notice of loss names an option that loses less: oct_conversion_cure */
    bool lossy;    /* a warning says that the result loses more than necessary, or more than is useful */
    double began;  /* when it began, in seconds as oct_now returns them */
    struct oct_trial_start *before_rounding; /* the decisions with which trials for the goals start (max_drop.c); NULL:
                                              there will be no trials */
    oct_goal_trial *trials; /* [n_trials]; the first has no layer changed for the goals; NULL: nothing was tried */
    size_t n_trials;
    bool stopped; /* the time limit ended the trials */
    oct_record_entry
        read;     /* the record of the samples that decided; absent if no samples did, or nothing is recorded */
    bool divided; /* the samples kept aside were halved: one half chose among trials, and the other judges */
} oct_conversion;

/* Initializes *c and reads the policy. Call oct_conversion_close also after a failure. Errors: OCT_EUSAGE, OCT_EIO,
 * OCT_EMALFORMED. */
oct_status oct_conversion_open(oct_conversion *c, const oct_convert_opts *o, oct_err *err);
void oct_conversion_close(oct_conversion *c);

/* How many nodes of a graph belong to quantization. */
size_t oct_quantized_nodes(const oct_graph *g);
/* Sets the model, as it was loaded. It is borrowed, and its graph is changed from now on (but see take_ends). */
void oct_conversion_take(oct_conversion *c, oct_model *m);
/* Reads a calibration table, or ranges in the format of another tool (encodings/encodings.h). OCT_EUSAGE: the table was
 * made from another model. */
oct_status oct_conversion_read_table(oct_conversion *c, const char *path, oct_err *err);
/* Takes the types that the options ask for at inputs and outputs. Call it after take and read_table, and before samples
 * are opened for the inputs of c->m. steps: the preprocessing of each input. If mean, std and order of an input with
 * pixels are folded into the model, its steps are reduced to the rest. From here on, c->m may be a copy of the model
 * that was taken, which is left alone. OCT_EUSAGE: there is no such input or output, or none to which the options
 * apply. */
oct_status oct_conversion_take_ends(oct_conversion *c, oct_steps *steps, oct_err *err);
/* Prepares the graph, gathers statistics, runs the methods and decides every layer.
 * src: the samples, opened for the model's inputs with `hold`; borrowed; NULL: none. If folding preprocessing
 * changes how layers are rounded, the model is first converted without it on the same samples, and what was decided
 * with it is given up if an output has lost too much; then src gets all of the preprocessing. Errors in the model's
 * content name the model. OCT_EUSAGE: a requested method lacks what it needs. */
oct_status oct_conversion_decide(oct_conversion *c, oct_source *src, oct_err *err);

/* An alternative to deciding: adopts the decisions of a quantized model that was made from this one, in any form and by
 * any tool. If o.sensitivity is set, it measures the cost of each decision (c->causes, c->culprits). src: as in decide.
 * OCT_EUSAGE: the two models have nothing in common. */
oct_status oct_conversion_adopt(oct_conversion *c, oct_source *src, const oct_graph *quantized, oct_adopted *found,
                                oct_err *err);

/* Makes the model in memory, as it will be written to `output`. judged: if there are samples, keep the float graph for
 * oct_conversion_judge. command (may be NULL) is recorded in the metadata, together with the trials. */
oct_status oct_conversion_make(oct_conversion *c, const char *output, const char *command, bool judged, oct_err *err);
/* Runs both graphs over the samples. Sets verdict, judged, sqnr and missed; or unjudged. */
oct_status oct_conversion_judge(oct_conversion *c, const char *output, oct_err *err);
/* The reason why the judged result is of little use: it is not smaller than the model and, as far as is known, not
 * faster. NULL: it is smaller or faster, or the model is so small (64 kB) that its nodes take more bytes than its
 * weights, or there was nothing to quantize. */
const char *oct_conversion_no_gain(const oct_conversion *c);
/* What would win back what was lost, whatever that is. */
oct_cure oct_conversion_cure(const oct_conversion *c);
/* The last change before the model is written: its inputs and outputs get their types. Warns if nothing is gained. */
oct_status oct_conversion_close_graph(oct_conversion *c, const char *output, oct_err *err);
/* Writes the model, with a warning if nothing is gained; reads the file back and checks it. A file that fails the check
 * does not replace the output. */
oct_status oct_conversion_write(oct_conversion *c, const char *output, oct_err *err);
/* The same, except that the output is not replaced yet: the caller commits or aborts the draft. *d is NULL after a
 * failure. */
oct_status oct_conversion_draft(oct_conversion *c, const char *output, oct_model_draft **d, oct_err *err);

/* The score of a goal, taken from the verdict. */
oct_eval_score oct_conversion_goal_score(const oct_conversion *c, size_t goal);
/* Text such as "top1: -0.40 points (...), worse, at most 0.5 points worse are allowed: met, ..."; for sqnr in dB.
 * Returns dst. */
const char *oct_goal_text(char dst[OCT_GATE_TEXT], const oct_goal *g, const oct_eval_score *s);
/* Text such as "2 layers left float for the goal, with 1.0 % of the multiply-accumulates, and 1 with activations of 16
 * bits". Returns dst. */
enum { OCT_TRIAL_TEXT = 200 };
const char *oct_goal_trial_text(char dst[OCT_TRIAL_TEXT], const oct_goal_trial *t);
/* The score that counts: that of the requested metric, else of the first metric that compares with the float model.
 * NULL: there is none. */
const oct_eval_score *oct_conversion_score(const oct_conversion *c);
/* The options of a job as in this run, for a forecast. */
oct_qjob_opts oct_conversion_job_opts(const oct_conversion *c);
/* Appends the decisions as rows of a policy table. A conversion with that table makes the same decisions. */
void oct_conversion_put_policy(const oct_conversion *c, oct_buf *b);

#endif
