/* lib/quant/quant.h -- post-training quantization of a graph, in four steps: place, calibrate, decide, rewrite.
 * (convert.h has the whole conversion, from a model to a checked file.)
 *
 * Weight-only layers need no statistics: their weights are rounded in blocks (blocks.h), and their activations stay
 * float.
 *
 * The bodies of If, Loop and Scan go through the same steps as the graph around them (bodies.c). Their inputs and
 * outputs stay float. */
#ifndef OCT_QUANT_QUANT_H
#define OCT_QUANT_QUANT_H

#include "forms/write/forms_write.h"
#include "graph/graph.h"
#include "observers/calib.h"
#include "observers/observer.h"
#include "passes/pass.h"
#include "quant/policy/policy.h"
#include "targets/target.h"

/* What was decided for a node, and why. */
typedef struct oct_layer_decision {
    const oct_graph *graph; /* the graph of the node: the job's graph, or one that an If, Loop or Scan holds */
    const char *where;      /* the path to that graph: "If_3/then_branch/"; "" for the job's graph */
    int node;               /* the index of the node in `graph` */
    const char *name, *op;  /* the name of the node */
    oct_scheme scheme;
    bool integer;      /* the node runs on integers in the target */
    const char *why;   /* the rule that chose the scheme, or the reason why the node stays float; one clause */
    oct_dtype weights; /* element type of the written weights; OCT_UNDEFINED: no weights */
    bool per_channel;
    int block; /* how many weights share a scale; 0: the weights are not in blocks */
    const char
        *remedy; /* what was done against 16-bit saturation: "proved safe", "u8 weights", ...; NULL: it cannot happen */
    const char *observer; /* the observer of the output, by its name in policies, or "pinned"; NULL: none */
    float scale;          /* parameters of the output; scale 0: the output is float */
    int32_t zero_point;
    double sqnr_weights;        /* SQNR of the rounded weights in dB; NaN: no weights */
    double on_floats, expected; /* nanoseconds of this node in float, and as it is decided, by the table with which the
                                   model gains least; NaN: unknown */
    double sqnr_output;         /* expected SQNR of rounding and clipping the output, in dB; NaN: unknown */
    bool barred;                /* it stays float although no rule says so: the reason was found while deciding */
    bool rangeless;             /* it stays float because a value that it reads or makes has no statistics */
    bool wide;                  /* it has 16-bit activations for such a reason */
    bool rounded;               /* it computes in float, between quantizers */
    const oct_policy_row *row;  /* what the policy asks for, as far as the target supports it */
} oct_layer_decision;

/* Weights that came quantized and were written otherwise, as a rule asks. */
typedef struct oct_given_weights {
    int node; /* of the outermost graph: the layer */
    const char *remedy;
    oct_dtype type;
    bool per_channel;
    double sqnr; /* in dB against the given ones, of their quantized values; INFINITY: they are the same numbers */
} oct_given_weights;

/* Quantization parameters of a value that are known before any statistics, for example of pixels. They are those of u8;
 * for s8 the zero point is 128 less. */
typedef struct oct_given_params {
    int value; /* a value of the outermost graph */
    float scale;
    int32_t zero;
    bool range_alone; /* no parameters are given: statistics of the value are needed */
} oct_given_params;

typedef struct oct_qjob_opts {
    const oct_policy *policy; /* borrowed */
    const oct_target *target; /* borrowed */
    const oct_calib *calib;   /* statistics that rules ask for, or NULL; borrowed */
    bool late;                /* late rules apply from the start */
    oct_scheme scheme;        /* OCT_SCHEME_AUTO: as the policy says */
    oct_dtype activations;    /* OCT_U8 or OCT_S8 instead of what the policy says; OCT_UNDEFINED: as the policy says */
    const char *const *disabled; /* graph passes */
    size_t n_disabled;
    const oct_pass_log *log; /* gets the changes that passes make, as long as the job exists; may be NULL */
    bool have_data;    /* statistics will be available, so layers can be static; false: only dynamic and weight-only */
    bool bias_weights; /* biases compensate the mean error of rounded weights, if the table has the means of the inputs
                        */
    bool safe_pairs;   /* if sums of pairs saturate and it costs little, weights are changed to be safe instead of
                          becoming u8 */
    bool rounds_later; /* weights of static products become safe only when they are rounded again (rounding.c) */
    bool half_io;      /* float32 inputs and outputs of the graph become 16-bit floats too (--no-keep-io-types) */
    /* Weights in blocks, if the policy does not say: number of bits, 4 or 8 (0: 4); how many weights share a scale (0:
     * 32, and for 8 bits 32 to 128, whichever is fastest). */
    int bits, block;
    bool symmetric;
    bool block_bytes; /* the runtime may quantize the activations of such products in the same blocks (accuracy_level 4)
                       */
    bool may_block;   /* layers may get weights in blocks although no rule says so */
    bool blocks_qdq;  /* write DequantizeLinear of opset 21 instead of MatMulNBits */
    bool operators;   /* write operators on integers instead of float operators between QuantizeLinear and
                         DequantizeLinear */
    const oct_given_weights *given_weights;
    size_t n_given_weights;
    const oct_given_params *given; /* [n_given]; values of bodies cannot be given */
    size_t n_given;
    const oct_shape *seen; /* [n_seen]: the shapes of the graph's inputs in a sample; n_seen 0: no sample was seen */
    size_t n_seen;
    bool waiting;       /* large matrices of 16-bit floats are read when they are rounded, not before: only the model's
                           weights are asked for, without samples */
    int threads;        /* threads for rounding weights in blocks; 0: one for each processor */
    oct_dtype source;   /* the float type of the model, if an earlier job read it as float32 (oct_qjob_source); else
                           OCT_UNDEFINED */
    oct_arena *lasting; /* memory for the decided weights and parameters, to which the graph refers from then on; NULL:
                           the graph's arena */
} oct_qjob_opts;

/* How long a run of the model takes in the target on one thread, by each of its tables of costs (targets/target.h):
 * nanoseconds in float, and as it is decided. Nodes that no table knows are left out of both. A batch size that is not
 * known counts as 1, and other dimensions as 128, where no sample tells them. */
typedef struct oct_target_times {
    size_t n;     /* how many tables; 0: the target has none */
    size_t least; /* the table with which the model gains least */
    double on_floats[4], decided[4];
} oct_target_times;

typedef struct oct_qjob oct_qjob;

/* Prepares g (opset, fusion passes) and places quantizers: which nodes become integer, which values need parameters,
 * and which values share them. g is changed here, and by annotate or rewrite; it must outlive the job. */
oct_status oct_qjob_create(oct_graph *g, const oct_qjob_opts *opts, oct_qjob **job, oct_err *err);
void oct_qjob_destroy(oct_qjob *j);

/* Applies the policy again, including late rules, with the statistics (NULL: none) that rules ask for. The list of
 * wanted values may change, and decisions must be made anew. */
oct_status oct_qjob_reread(oct_qjob *j, const oct_calib *c, oct_err *err);
/* Applies the policy again as if the job had been made with another scheme, on the graph as it is. The same follows. */
oct_status oct_qjob_set_scheme(oct_qjob *j, oct_scheme scheme, oct_err *err);
/* Multiplications of all layers of g in one run, counted as by oct_node_macs, where a batch size that is not fixed
 * counts as one; 1 if none is known. */
int64_t oct_graph_macs(const oct_graph *g);

/* OCT_F16, OCT_BF16 or OCT_F64: the float type of the model, which is read as float32. OCT_UNDEFINED: the model has
 * float32. */
oct_dtype oct_qjob_source(const oct_qjob *j);
/* A rule of the user that another option makes void. */
typedef struct oct_void_rule {
    const char *rule, *why; /* "op:MatMul (--set:1)"; "--scheme static decides" */
    size_t nodes;           /* at which the rule would have decided something */
} oct_void_rule;
/* All such rules, in arena, in the order of the nodes. */
oct_status oct_qjob_void_rules(const oct_qjob *j, oct_arena *arena, oct_void_rule **list, size_t *n, oct_err *err);
/* Nodes whose rules ask for a type of activations that the target does not take; of the first, that type and the one
 * that stands for it. */
size_t oct_qjob_unmet(const oct_qjob *j, oct_dtype *asked, oct_dtype *taken);

/* Names of the values whose statistics decide() needs, from samples (calibrate.h) or from a table; borrowed. axes[i]:
 * the dimension along which per-channel moments are needed too (for inputs of products); -1: the last; 0: none. Values
 * of bodies are included, with the names under which the runtime shows them to taps. */
const char *const *oct_qjob_values(const oct_qjob *j, const int **axes, size_t *n);

/* Whether parameters are chosen from statistics, so that methods (methods.h) can tune and correct them. If not,
 * statistics at most decide about ranges. */
bool oct_qjob_has_qparams(const oct_qjob *j);
/* Whether a node of the outermost graph quantizes its inputs when it runs. */
bool oct_qjob_has_dynamic(const oct_qjob *j);
/* Whether anything is rounded: values, weights or stored constants, to integers or 16-bit floats. */
bool oct_qjob_rounds(const oct_qjob *j);

/* Whether a layer of the outermost graph is intended to have weights in blocks. */
bool oct_qjob_has_blocks(const oct_qjob *j);
/* Whether experts are stored in blocks, in the graph itself. */
bool oct_qjob_has_expert_blocks(const oct_qjob *j);

/* Chooses parameters from the statistics, quantizes weights and biases, and proves or prevents saturation. c may be
 * NULL if no statistics are needed. If a value is missing in the table or commented out, it stays float together with
 * the nodes beside it, and the decision says so. If it shares its parameters with a pinned value, it gets those. */
oct_status oct_qjob_decide(oct_qjob *j, const oct_calib *c, oct_err *err);
/* annotate turns the graph into a quantized graph (see forms/write/forms_write.h). rewrite also turns that into the
 * form of a file. Call one of them, once. Weights in blocks are not copied: the graph refers to memory of the job. */
oct_status oct_qjob_annotate(oct_qjob *j, oct_err *err);
oct_status oct_qjob_rewrite(oct_qjob *j, oct_err *err);
/* Sets the observer of layers whose policy row names none: hist-mse, or the one that was found best for the whole model
 * (tune.c). */
oct_observer_spec oct_qjob_observer(const oct_qjob *j);

/* Whether shapes cannot be inferred with a batch of one, as where batches of several inputs differ; false if the target
 * has no tables of costs, which need them. */
oct_status oct_qjob_needs_batch(const oct_qjob *j, bool *needs, oct_err *err);
/* The times expected with the current placement. */
oct_target_times oct_qjob_expected(const oct_qjob *j);

/* All nodes of the prepared graph that compute something, in order, without constants and removed nodes. Nodes of
 * bodies follow the node that holds them. Before oct_qjob_decide, this lists the intended decisions, on the assumption
 * that all statistics are available; types and numbers are missing. */
size_t oct_qjob_n_layers(const oct_qjob *j);
const oct_layer_decision *oct_qjob_layer(const oct_qjob *j, size_t i);
/* The k-th constraint that restricts node i beyond policy and target (place/constraints.h), in words: what, from whom
 * and why. False: there are no more. */
typedef struct oct_constraint_words {
    const char *what, *from, *why;
} oct_constraint_words;
bool oct_qjob_constraint(const oct_qjob *j, size_t i, size_t k, oct_constraint_words *words);

#endif
