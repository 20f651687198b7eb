/* lib/quant/quant.h -- post-training quantization of a graph: place, calibrate, decide, rewrite. (A whole conversion, from a model
 * to a checked file: convert.h.)
 *
 * Weight-only layers need no statistics: their weights are rounded in blocks (blocks.h), and their activations stay float.
 *
 * The bodies of If, Loop and Scan go through the same steps as the graph around them (bodies.c); what goes in and out of them stays float. */
#ifndef OCT_QUANT_QUANT_H
#define OCT_QUANT_QUANT_H

#include "forms/forms_write.h"
#include "graph/graph.h"
#include "observers/calib.h"
#include "observers/observer.h"
#include "passes/pass.h"
#include "quant/policy.h"
#include "targets/target.h"

/* What was decided for a node, and why. */
typedef struct oct_layer_decision {
    const oct_graph *graph; /* the job's, or one that a node of If, Loop or Scan holds ... */
    const char *where;     /* ... and then the path to it: "If_3/then_branch/", else "" */
    int node;              /* in the graph */
    const char *name, *op; /* of the node */
    oct_scheme scheme;
    bool integer;          /* runs on integers in the target */
    const char *why;       /* the rule that chose it, or why it stays float: one clause */
    oct_dtype weights;     /* element type written; OCT_UNDEFINED: no weights */
    bool per_channel;
    int block;             /* weights that share a scale; 0: not in blocks */
    const char *remedy;    /* against 16-bit saturation: "proved safe", "u8 weights", ...; NULL where it cannot happen */
    const char *observer;  /* of the output's parameters, as a policy names it, or "pinned"; NULL: none */
    float scale;           /* of the output; 0: real output */
    int32_t zero_point;
    double sqnr_weights;   /* dB, rounding of the weights; NaN: none */
    double on_floats, expected; /* ns of the node alone, by the table under which the model gains least: on floats, and as decided; NaN: unknown */
    double sqnr_output;    /* dB, expected rounding and clipping of the output; NaN: unknown */
    bool barred;           /* float, though no rule says so: that was found while deciding */
    bool wide;             /* the same of activations of 16 bits */
    bool rounded;          /* computed on reals, between quantizers */
    const oct_policy_row *row; /* what the policy asks for, as far as the target takes it */
} oct_layer_decision;

/* Quantization parameters of a value that are known before any statistics, as of pixels: of u8, and of s8 with a zero point that is 128 less. */
typedef struct oct_given_params {
    int value;        /* in the outermost graph */
    float scale;
    int32_t zero;
    bool range_alone; /* none are given: the value's statistics are asked for */
} oct_given_params;

typedef struct oct_qjob_opts {
    const oct_policy *policy; /* borrowed */
    const oct_target *target; /* borrowed */
    const oct_calib *calib;   /* statistics that rules ask for, or NULL; borrowed */
    bool late;                /* rules that are late hold from the start */
    oct_scheme scheme;        /* OCT_SCHEME_AUTO: by the policy */
    oct_dtype activations;    /* OCT_U8 or OCT_S8 overriding the policy; OCT_UNDEFINED: by the policy */
    const char *const *disabled; /* passes */
    size_t n_disabled;
    const oct_pass_log *log;  /* of changes by passes, until the job goes; may be NULL */
    bool have_data;           /* statistics will come: static; else dynamic and weight-only */
    bool bias_weights;        /* biases make up for the mean error of rounded weights, as the table has the means of inputs */
    bool safe_pairs;          /* where sums of pairs saturate, weights are made safe from it instead of u8, if that costs little ... */
    bool rounds_later;        /* ... those of static products not until they are rounded again (rounding.c) */
    bool half_io;             /* graph inputs and outputs of float32 become 16-bit, too (--no-keep-io-types) */
    /* Weights in blocks, where the policy does not say: 4 or 8 bits (0: 4), weights that share a scale (0: 32; of 8 bits 32 to 128, whichever takes
     * least). */
    int bits, block;
    bool symmetric;
    bool block_bytes;         /* whoever runs such products may quantize their activations by the same blocks (accuracy_level 4) */
    bool may_block;           /* layers may get weights in blocks though no rule says so */
    bool blocks_qdq;          /* behind DequantizeLinear of opset 21, instead of in MatMulNBits */
    bool operators;           /* operators on integers, instead of QuantizeLinear and DequantizeLinear around real ones */
    const oct_given_params *given; /* [n_given]; not of bodies */
    size_t n_given;
    int threads;              /* for rounding weights in blocks; 0: one per processor */
    oct_dtype source;         /* what the model's floats were before an earlier job read them as float32 (oct_qjob_source); else OCT_UNDEFINED */
    oct_arena *lasting;       /* takes the weights and parameters that are decided, which the graph refers to from then on; NULL: the graph's arena */
    /* Told of weights that have been rounded in blocks and are not read again soon; NULL: nobody is. */
    void (*forget)(void *arg, const void *bytes, size_t n);
    void *forget_arg;
} oct_qjob_opts;

/* What a run of the model takes in the target, one thread, by each of its tables of costs (targets/target.h): nanoseconds on floats, and as it is
 * decided. What no table knows is in neither. Dimensions that are not known count as one sample and as 128. */
typedef struct oct_target_times {
    size_t n;     /* tables; 0: the target has none */
    size_t least; /* the one under which the model gains least */
    double on_floats[4], decided[4];
} oct_target_times;

typedef struct oct_qjob oct_qjob;

/* Prepares g (opset, fusion passes) and places quantizers: which nodes become integer, which values need parameters, which share them.
 * g is changed here and by annotate or rewrite; it must outlive the job. */
oct_status oct_qjob_create(oct_graph *g, const oct_qjob_opts *opts, oct_qjob **job, oct_err *err);
void oct_qjob_destroy(oct_qjob *j);

/* Reads the policy again, with late rules, by statistics (NULL: none) that rules ask for. What is wanted may change; decisions are to be made anew. */
oct_status oct_qjob_reread(oct_qjob *j, const oct_calib *c, oct_err *err);
/* Multiplications of all layers of g in one run, a free batch counting as one, as oct_node_macs has them; 1 where none is known. */
int64_t oct_graph_macs(const oct_graph *g);

/* OCT_F16, OCT_BF16 or OCT_F64: the floats of the model, which are read as float32. OCT_UNDEFINED: they are. */
oct_dtype oct_qjob_source(const oct_qjob *j);
/* Nodes whose rules ask for a type of activations that the target does not take; of the first, that type and the one that stands for it. */
size_t oct_qjob_unmet(const oct_qjob *j, oct_dtype *asked, oct_dtype *taken);

/* Names of the values whose statistics decide() wants, from samples (calibrate.h) or a table; borrowed. axes[i]: dimension along
 * which per-channel moments are wanted too (inputs of products), -1 the last, 0 none. Those of bodies are among them, as the runtime shows
 * them to taps. */
const char *const *oct_qjob_values(const oct_qjob *j, const int **axes, size_t *n);

/* Whether statistics choose parameters, so that there is something to tune and to correct (methods.h); else they decide about
 * ranges at most. */
bool oct_qjob_has_qparams(const oct_qjob *j);

/* Whether a layer of the outermost graph is to have weights in blocks. */
bool oct_qjob_has_blocks(const oct_qjob *j);

/* Chooses parameters from the statistics, quantizes weights and biases, proves or remedies saturation. c may be NULL when nothing needs
 * statistics. A value that the table lacks or has commented out stays float, with its
 * neighbours, and the decision says so; one that shares its parameters with a pinned value has these. */
oct_status oct_qjob_decide(oct_qjob *j, const oct_calib *c, oct_err *err);
/* annotate makes the graph a quantized one (forms/forms_write.h says what that is), rewrite also writes it as files spell it; one of them is
 * called, once. Weights in blocks are not copied: the graph then refers to memory of the job. */
oct_status oct_qjob_annotate(oct_qjob *j, oct_err *err);
oct_status oct_qjob_rewrite(oct_qjob *j, oct_err *err);
/* The observer of layers whose policy row names none: hist-mse, or what was found best for the whole model (tune.c). */
oct_observer_spec oct_qjob_observer(const oct_qjob *j);

/* What is expected now. */
oct_target_times oct_qjob_expected(const oct_qjob *j);

/* Every node of the prepared graph that computes (constants and removed ones are not listed), in order; behind a node that holds graphs
 * those of its graphs. Before oct_qjob_decide a layer is what it is meant to be: what decide will make of it when all statistics are
 * there, without types and numbers. */
size_t oct_qjob_n_layers(const oct_qjob *j);
const oct_layer_decision *oct_qjob_layer(const oct_qjob *j, size_t i);

#endif
