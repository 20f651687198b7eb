/* lib/quant/job/job.h -- internals of a quantization job, shared by the files that implement its steps.
 *
 * Each decision is made in one place. place.c and half.c give each node its scheme and mark the values that need
 * quantization parameters. choose_ranges.c chooses these parameters. weights.c and block_weights.c quantize constants.
 * All results are kept as oct_quant, which annotate.c attaches to values. */
#ifndef OCT_QUANT_JOB_H
#define OCT_QUANT_JOB_H

#include "kernels/nbits/nbits.h"
#include "ops/op.h"
#include "ops/traits.h"
#include "quant/place/constraints.h"
#include "quant/quant.h"

/* The quantized weights made of one input of a node. */
typedef struct qweights {
    oct_quant quant;    /* the parameters that the value carries */
    int matrix;         /* the value before quantization */
    double sqnr;        /* SQNR of the rounding in dB, over all weights of the node */
    const char *remedy; /* what was done against saturation; as in oct_layer_decision */
    /* Kept for later decisions; not set for weights in blocks: */
    float *largest;       /* the largest magnitude of each channel */
    const float *widened; /* by channel: the factor on the scale that makes pairs safe from saturation; NULL: no scale
                             was widened */
    int limit;            /* quantized values lie within -limit..limit */
    oct_tensor *qvals; /* signed, whatever quant.dtype is; f32 if they come from another model: then these are the real
                          numbers */
    double signal, noise;
    bool checked, safe; /* checked: oct_pairs_safe was asked about the quantized values; safe: its answer */
} qweights;

/* The error of the mean of a layer's output channels: squares, summed over the channels. */
typedef struct qshift {
    double weights,
        inputs; /* the error from rounded weights, and from rounded activations; inputs is 0 if that was not measured */
    double left;      /* the error that remains after the correction, whose result is rounded into the bias */
    int64_t channels; /* how many channels; 0: nothing was corrected */
} qshift;

/* The table of which a node picks rows (oct_op.picks), quantized. */
typedef struct qtable {
    int tied; /* the product that multiplies by the same numbers: its quantized weights serve both; -1: there is none */
    const oct_tensor *with; /* the tensor of that product's weights at the time when it was found */
    bool by_rows;           /* a row of the table is a row of the quantized values; false: a column */
    oct_quant quant;        /* if tied is -1: s8 with a scale for each row */
    double sqnr;
} qtable;

/* The 8-bit weights of a layer that computes in float (stored_weights.c). */
typedef struct qstored {
    /* inputs 1 and 2 of a recurrent layer, s8 with a scale for each row; or input 1 of another layer, with a scale for
     * each output channel, and n == 0 for the second */
    oct_quant quant[2];
    const oct_tensor *of; /* the tensor of input 1 */
    double sqnr;
} qstored;

typedef struct qnode {
    oct_policy_row policy; /* what the policy asks for */
    oct_policy_row row;    /* that, as the constraints change it (place.c) */
    bool widened;          /* they gave `row` 16-bit activations */
    oct_scheme scheme;     /* the scheme that was decided */
    bool absorbed; /* a clamp that is removed, because the quantizer of the integer node before it clamps as well */
    const char *why;
    uint32_t rounds;       /* bit i: input i passes a quantizer, although the node computes in float (place_around.c) */
    bool rounds_outputs;   /* the same of its outputs */
    oct_dtype activations; /* the decided type of the activations that it computes on (types_meet.c) */
    qweights *weights[2];  /* of inputs 1 and 2 (W and R of an LSTM), or NULL; products that share a matrix in blocks
                              share these */
    qtable *table;         /* the quantized table that it picks from, or NULL */
    qstored *stored;       /* its weights in 8 bits if it computes in float, or NULL */
    const oct_tensor *checked; /* the table that was checked for numbers that are not finite */
    bool finite;               /* whether all numbers of `checked` are finite */
    const oct_quant *bias;     /* s32 with scale s_x * s_w, or NULL */
    qshift shift;
    oct_layer_decision decision;
} qnode;

typedef struct qvalue {
    bool wanted; /* a quantizer is placed on it */
    bool ranged; /* its range decides whether it fits 16-bit floats */
    bool asked;  /* a rule may ask for its statistics, or may make a node static that needs them */
    int axis;    /* for per-channel moments, the dimension that holds the channels; -1: the last; 0: no moments */
    int same;    /* a value with the same parameters (the parent in a union-find forest); the root refers to itself */
    int group;   /* the root of the values that share parameters for another reason than a Concat */
    int next;    /* a list that starts at the root: the next wanted value with the same parameters, or -1 */
    float clamp_lo,
        clamp_hi; /* at the root: the bounds of the clamp that the quantizers perform; -inf and inf if there is none */
    /* set at the root: */
    bool symmetric; /* a rule asks for symmetric parameters for one of these values; then their quantizers perform no
                       clamp */
    bool apart;     /* the target needs one scale for values that have different clamps */
    bool made;      /* an integer node computes one of these values */
    const oct_policy_row *row; /* the policy row that decides for all of them; or NULL */
    /* results: */
    const oct_quant *quant; /* the parameters, the same for all that share them; NULL: not decided yet */
    const oct_quant *as[4]; /* by type (u8, s8, u16, s16): the parameters for readers that compute on that type; NULL:
                               there is no such reader */
    const char *observer;
    const char *misfit; /* the reason why parameters of the table were not used as they are; NULL: they were, or the
                           table has none */
    double sqnr;        /* expected SQNR of rounding and clipping in dB */
} qvalue;

/* A subgraph that a node holds. */
typedef struct qbody {
    int node;
    size_t at; /* the index for oct_node_graph_at */
    struct oct_qjob *job;
} qbody;

typedef struct oct_qlayer {
    struct oct_qjob *job;
    int node;
} oct_qlayer;

struct oct_qjob {
    oct_arena *arena;  /* the arena of the outermost job */
    const char *where; /* "" or the path to this subgraph, which ends in "/" */
    qbody *body;       /* [n_body], in the order of the nodes */
    size_t n_body, cap_body;
    oct_graph *g;
    oct_arena *lasting; /* memory that lives longer than copies of the graph; it holds whatever values carry */
    oct_qjob_opts opts;
    /* by value: how rounding shifted the mean of each channel on measured samples, [moved_channels[v]]; NULL: not
     * measured */
    double **moved;
    size_t *moved_channels;
    struct oct_job_costs *costs; /* of layer_costs.c; NULL: no costs are known */
    oct_target_times expected;   /* what the current placement is expected to take */
    oct_observer_spec observer;  /* the observer for values whose policy names none */
    /* [n_values], indexed by the root of values that share parameters: an observer that has precedence; NULL: there is
     * none at all */
    oct_observer_spec *chosen;
    qnode *node; /* [n_nodes], indexed by the node of g */
    oct_constraints constraints;
    double *work;    /* [n_nodes]: multiply-accumulates, with usual sizes for dimensions that the model leaves open */
    double all_work; /* of all layers */
    qvalue *value;   /* [n_values] */
    size_t n_nodes, n_values;
    int *layer; /* [n_layer], nodes in order */
    size_t n_layer;
    int *picker; /* [n_picker], those of them that pick rows */
    size_t n_picker;
    /* including those of subgraphs, for oct_qjob_values and oct_qjob_layer: */
    const char **all_wanted;
    int *all_axes;
    size_t n_all_wanted;
    oct_qlayer *all;
    size_t n_all, cap_all;
};

/* Whether a node computes on integers with parameters that are known before it runs. Nodes added after the job was made
 * do not. */
static inline bool oct_is_static(const oct_qjob *j, int node)
{
    return node >= 0 && node < (int)j->n_nodes && j->node[node].scheme == OCT_SCHEME_STATIC && !j->node[node].absorbed;
}

/* The same for matrix products and convolutions. */
static inline bool oct_is_product(const oct_qjob *j, int node)
{
    return oct_is_static(j, node) && oct_op_of(j->g, node)->quant == OCT_QUANT_WEIGHTED;
}

/* Whether a target takes this type of activations together with weights of some type. */
static inline bool oct_takes_activations(const oct_target *t, oct_dtype activations)
{
    return oct_target_takes(t, activations, OCT_U8) || oct_target_takes(t, activations, OCT_S8);
}

/* The form in which a target runs a node of a quantized scheme. */
static inline oct_target_form oct_form_of(oct_scheme s)
{
    return s == OCT_SCHEME_STATIC    ? OCT_TARGET_STATIC
           : s == OCT_SCHEME_DYNAMIC ? OCT_TARGET_DYNAMIC
                                     : OCT_TARGET_WEIGHT_ONLY;
}

static inline void oct_set_scheme(oct_qjob *j, int node, oct_scheme scheme, const char *why)
{
    j->node[node].scheme = scheme;
    j->node[node].why = why;
}

static inline bool oct_is_f32(const oct_qjob *j, int value)
{
    return value >= 0 && j->g->value[value].dtype == OCT_F32;
}

/* Whether a node reads an input as integers, or after a quantizer. If it runs on integers, these inputs are its
 * activations. */
bool oct_reads_quantized(const oct_qjob *j, int node, int slot);
/* The clamp that belongs to a layer on integers, as the target takes it: no quantizer stands between the two. -1: there
 * is none. */
int oct_clamp_of(const oct_qjob *j, int node);
/* Whether the outputs of a node pass a quantizer: the node runs on integers, or stands between quantizers. */
static inline bool oct_makes_quantized(const oct_qjob *j, int node)
{
    return oct_is_static(j, node) || (node >= 0 && node < (int)j->n_nodes && j->node[node].rounds_outputs);
}

/* Whether the job asks for statistics of a value. */
static inline bool oct_is_observed(const oct_qjob *j, int value)
{
    return j->value[value].ranged || j->value[value].asked || (j->value[value].wanted && !j->g->value[value].constant);
}

/* prepare_graph.c: makes a model's graph one that a job can decide: shapes, opset, float32, passes. *source: the widest
 * narrow float type that it had. */
oct_status oct_job_prepare(oct_graph *g, const oct_qjob_opts *o, oct_dtype *source, oct_err *err);
/* policy_rows.c: reads what the policy asks of each node, and lists the nodes. */
oct_status oct_job_read_policy(oct_qjob *j, oct_err *err);
/* job.c: opens a job of a prepared graph, with jobs of its subgraphs. */
oct_status oct_job_open(oct_arena *a, oct_graph *g, const oct_qjob_opts *opts, const char *where, oct_qjob **job,
                        oct_err *err);
/* Replaces constants that folding made by the nodes that compute them, if that makes the file smaller, in the job's
 * graph or a copy, and notes it in the log (may be NULL). */
oct_status oct_job_unfold(const oct_qjob *j, oct_graph *g, const oct_pass_log *log, oct_err *err);
/* Gives q, in which n is set, n scales of 0 for the caller to fill in, and n zero points. Their memory lasts as long as
 * the values that carry q. */
oct_status oct_new_scales(oct_qjob *j, oct_quant *q, int32_t zero, float **scale, oct_err *err);

/* bodies.c: opens jobs of the subgraphs of j->g, lists them all, and runs each step on them. */
oct_status oct_bodies_open(oct_qjob *j, oct_err *err);
oct_status oct_bodies_list(oct_qjob *j, oct_err *err);
oct_status oct_bodies_decide(oct_qjob *j, const oct_calib *c, oct_err *err);
/* Runs a step that changes the subgraphs of g, which is the job's graph or a copy of it; to be called before the same
 * step of the graph around them. */
oct_status oct_bodies_do(const oct_qjob *j, oct_graph *g, oct_status (*step)(const oct_qjob *, oct_graph *, oct_err *),
                         oct_err *err);

/* place_around.c: after the other schemes are chosen, places quantizers around nodes that compute in float, as the
 * target wants them. */
void oct_place_around(oct_qjob *j);
/* place.c: chooses schemes of nodes, the values that need parameters, and which of them share parameters. It is called
 * again after constraints were added. */
oct_status oct_job_place(oct_qjob *j, oct_err *err);
/* usual_shapes.c: counts the multiply-accumulates of the nodes, once in the life of a job. If nothing is known of the
 * sizes, every weight counts once. */
oct_status oct_job_count_work(oct_qjob *j, oct_err *err);
/* The share of all multiply-accumulates that a node has. */
static inline double oct_work_share(const oct_qjob *j, int node)
{
    return j->work[node] / j->all_work;
}
/* A copy of the job's graph in which dimensions of inputs that are open have usual sizes: one sample, and 128 of
 * everything else. *copy is NULL if all sizes are known, if such sizes contradict each other, or for a body. */
oct_status oct_usual_shapes(const oct_qjob *j, oct_graph **copy, oct_err *err);
/* The root of the values that share their parameters with this one. */
int oct_params_root(const oct_qjob *j, int value);
/* How many of the first inputs of an integer node are activations. */
int oct_data_inputs(const oct_qjob *j, int node);
/* The node that computes a value, where a clamp that is removed is passed over; or -1. */
int oct_maker_node(const oct_qjob *j, int value);
/* The value that the quantizer after output 0 of a node applies to: that output, or the output of the clamp that the
 * quantizer performs; or -1. */
int oct_quantized_output(const oct_qjob *j, int node);

/* wide.c: the 16-bit type that a node's activations would have instead of those of its policy. OCT_UNDEFINED: the
 * target takes none, or the activations do not have 8 bits. */
oct_dtype oct_wide_type(const oct_qjob *j, int id);
/* Whether a node on 8-bit integers may get 16-bit activations: the target takes them, and no cost table says that they
 * take longer than floats. */
bool oct_may_be_wide(const oct_qjob *j, int id);
/* Called before nodes are placed, with the rows that the policy asks for: widens those of nodes with a constraint. */
oct_status oct_fit_widths(oct_qjob *j, oct_err *err);
/* Called after that: records the reason at the nodes that run on integers. */
void oct_tell_widths(oct_qjob *j);

/* by_cost.c: chooses schemes by the time that layers take in the target according to its cost tables. It reads no clock
 * and does not ask the CPU that converts, so the choices are the same everywhere. */
/* Called when nodes are placed. Adds constraints for nodes that leave the scheme of the policy: products become
 * dynamic, get weights in 8-bit blocks (if the runtime may then quantize the other factor in blocks too) or stay float;
 * other operators stay float; nodes that stay on integers may get 16-bit activations. Layers whose scheme is set by a
 * rule of the user are not changed. If something was chosen, nodes are placed anew. */
oct_status oct_choose_by_cost(oct_qjob *j, oct_err *err);

/* layer_costs.c: estimates the times of the current placement, into j->expected. */
void oct_expect(oct_qjob *j);
/* The times of one node in nanoseconds, in float and as it is decided, by the table with which the model gains least.
 * NaN: unknown. */
void oct_expect_node(const oct_qjob *j, int node, double *on_floats, double *decided);

/* half.c: after the other schemes are chosen, chooses the nodes that compute in 16-bit floats, and the values whose
 * range must be known for that. */
oct_status oct_half_place(oct_qjob *j, oct_err *err);
/* Among a node's inputs followed by its outputs, the i-th, if it has the type of the computation and is float32; else
 * -1. */
int oct_half_operand(const oct_qjob *j, int id, int i);
/* half_range.c: keeps nodes in float32 with a constant or, if c is not NULL, a value that exceeds the type. *changed is
 * set if there is one. */
oct_status oct_half_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);
/* The same for nodes on 8 bits whose results depend on small values (Log, divisors), unless 8 bits are known to
 * represent these. */
oct_status oct_bytes_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);
/* The 16-bit float type that a node computes in, or OCT_UNDEFINED. Nodes added after the job was made have none. */
oct_dtype oct_half_type(const oct_qjob *j, int node);
/* SQNR in dB of rounding a constant to t; NaN: the constant is not f32. */
double oct_half_sqnr(const oct_tensor *c, oct_dtype t);

/* choose_ranges.c: chooses scale and zero point of all values that need them. */
oct_status oct_choose_qparams(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);

/* part_joins.c: called when parameters are chosen. Values that share them with what a Concat joins, and would lose too
 * much, get their own when nodes are placed anew; or the Concat stays float, if the target needs one scale. *changed is
 * set if there are new ones. */
oct_status oct_part_joins(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);

/* factors.c: called when parameters are chosen. Products of two activations that the target does not multiply with
 * these parameters get others around 0, or stay float. *changed is set if something has changed. */
oct_status oct_fit_factors(oct_qjob *j, bool *changed, oct_err *err);

/* types_meet.c: chooses parameters of a value for readers that compute on another type than the node that makes it. */
oct_status oct_choose_conversions(oct_qjob *j, const oct_calib *c, oct_err *err);
/* The parameters of a node's quantized input, as it reads it: those of the value, or those of its conversion to another
 * type; NULL: there are none. */
const oct_quant *oct_read_as(const oct_qjob *j, int node, int slot);
/* Parameters of this type that an observer chooses from the statistics of the values that share their parameters with
 * `root`. */
oct_status oct_params_as(oct_qjob *j, const oct_calib *c, int root, oct_dtype type, const oct_quant **q, oct_err *err);
/* The type of activations that a policy row asks for. */
oct_dtype oct_asked_activations(const oct_qjob *j, const oct_policy_row *row);

/* annotate.c: a copy of the graph whose values carry the current decisions, ready to be run. The job's own graph stays
 * float. */
oct_status oct_quantized_copy(const oct_qjob *j, oct_graph **copy, oct_err *err);

/* A copy as oct_qjob_rewrite makes it, to find the size of the file. */
oct_status oct_written_copy(const oct_qjob *j, oct_graph **copy, oct_err *err);

/* annotate.c: in a copy of the job's graph, makes nodes that read value v on integers read value `to` instead. */
oct_status oct_redirect(const oct_qjob *j, oct_graph *g, int v, int to, oct_err *err);

/* weights.c: quantizes weights and biases according to the nodes' schemes. c (may be NULL) holds the means by which
 * biases are corrected. */
oct_status oct_decide_weights(oct_qjob *j, const oct_calib *c, oct_err *err);

/* The type of the activations by which a layer's weights are multiplied. */
oct_dtype oct_activations_of(const oct_qjob *j, int node);
/* weights.c: biases of s8 with one scale of their own, for targets that have such: the least power of two, not below a
 * step of the bias, in which its values fit into a byte; and the bias rounded to whole numbers of that, which stays
 * s32. */
float oct_own_bias_scale(const oct_quant *b);
void oct_round_to_own_bias(oct_quant *b);

/* shared_weights.c: iterates over the layers that share their 8-bit weights with a node, the node included: the first
 * whose index is above `after`; -1: there are no more. The first one (after = -1) owns the weights, and the others use
 * them. */
int oct_weights_next(const oct_qjob *j, int node, int after);

/* unfold_constants.c: replaces constants that folding made by the nodes that compute them, where that makes the file
 * smaller. Called when everything is decided, before annotating. g: the job's graph or a copy of it. *n, *saved: as
 * in oct_unfold. */
oct_status oct_unfold_constants(const oct_qjob *j, oct_graph *g, size_t *n, size_t *saved, oct_err *err);
/* The same before nodes are given 16-bit floats, so that the restored nodes get them too. */
oct_status oct_unfold_half(oct_graph *g, size_t *n, size_t *saved, oct_err *err);
/* Whether the constant weights of a product were computed from so much smaller inputs that they enlarge the file even
 * when quantized. */
bool oct_weights_grow(const oct_qjob *j, int node, int bits);
/* Whether a large constant is written in float anyway, in addition to what integer operators read of it. These then
 * read it through a quantizer. */
bool oct_operand_stays_real(const oct_qjob *j, const oct_graph *g, int value);

/* row_tables.c: the reason why rows that a node picks are not quantized, or NULL. *is_table: whether the node picks
 * from a float table at all. */
const char *oct_no_table(const oct_qjob *j, int node, bool *is_table);
/* Whether a product multiplies by the numbers of such a table. */
bool oct_is_tied(const oct_qjob *j, int product);
/* Whether a table with a product's numbers stays in the file as floats. */
bool oct_tied_stays_real(const oct_qjob *j, int product);
/* Quantizes all tables. Called after the weights of products are quantized, because a table with the same numbers uses
 * these. */
oct_status oct_decide_tables(oct_qjob *j, oct_err *err);
bool oct_tensor_is_finite(const oct_tensor *t);
/* Rounds a float32 tensor to s8 with a scale for each row along its last dimension. Adds the squares of its values to
 * *signal, and those of the errors to *noise. */
oct_status oct_quantize_rows(oct_qjob *j, const oct_tensor *t, oct_quant *quant, double *signal, double *noise,
                             oct_err *err);

/* 8-bit weights of layers that compute in float (stored_weights.c). In order: the reason why a layer cannot have them,
 * or NULL; whether it has them; quantizes them. */
const char *oct_no_stored(const oct_qjob *j, int node);
static inline bool oct_is_stored(const oct_qjob *j, int node)
{
    const oct_scheme scheme = j->node[node].scheme;
    const oct_op *op = scheme == OCT_SCHEME_WEIGHT_ONLY ? oct_op_of(j->g, node) : NULL;
    return scheme == OCT_SCHEME_STORED || (op && op->quant == OCT_QUANT_RECURRENT);
}
oct_status oct_decide_stored(oct_qjob *j, int node, oct_err *err);

/* quantized_constants.c: the map of quantized constants. */
typedef enum oct_constant_use {
    OCT_CONSTANT_OPERAND, /* the node computes on the quantized values */
    OCT_CONSTANT_ROWS,    /* it picks rows of them */
    OCT_CONSTANT_REALS    /* it computes on the float numbers that they stand for */
} oct_constant_use;
typedef struct oct_qconstant {
    oct_constant_use use;
    const oct_quant *quant;  /* with quantized values */
    const qweights *weights; /* of which quant is, or NULL */
    bool by_rows;            /* of OCT_CONSTANT_ROWS: as in qtable */
    double sqnr;             /* SQNR of the rounding in dB, over all weights of the node, which its first input has */
} oct_qconstant;
enum { OCT_CONSTANT_SLOTS = 3 }; /* inputs from this one on are no such constants */
/* What input `slot` of a node becomes by the decided scheme; false: it is no quantized constant. */
bool oct_constant_of(const oct_qjob *j, int node, int slot, oct_qconstant *c);

/* Whether pairs of a node's 8-bit weights must be safe from saturation: sums would saturate, and u8 weights are slower
 * or not supported. */
typedef enum oct_pair_need { OCT_PAIRS_ANY, OCT_PAIRS_SAFE_WANTED, OCT_PAIRS_SAFE_NEEDED } oct_pair_need;
oct_pair_need oct_pairs_need(const oct_qjob *j, int node);
/* Makes the pairs of a product safe by larger scales alone, if its weights are not safe and oct_pairs_need wants that
 * at little cost. */
oct_status oct_make_safe(oct_qjob *j, int node, oct_err *err);
/* The scales of a product's weights before any were widened: scale[], one for each channel that has one. */
oct_status oct_own_steps(oct_qjob *j, int node, float *scale, oct_err *err);
/* Gives a product these quantized values, in ONNX's layout, with scales widened[] times its own (NULL: its own). Both
 * are copied. */
oct_status oct_take_weights(oct_qjob *j, int node, const int8_t *qvals, const float *widened, oct_err *err);

/* transpose_products.c: rewrites products whose constant is the first factor so that the constant is the second, if
 * they shall be dynamic or have weights in blocks. The nodes and values added for this have no records in the job.
 * *any: whether a product was rewritten. */
oct_status oct_transpose_products(oct_qjob *j, bool *any, oct_err *err);
/* Whether a product has data as its second factor and a constant as its first. */
bool oct_is_left_product(const oct_qjob *j, int node);
/* The reason why such a product cannot be rewritten, or would not gain from it; NULL: it can. */
const char *oct_no_turn(const oct_qjob *j, int node);

/* block_weights.c: the reason why a product's weights cannot be in blocks, or NULL. */
const char *oct_no_blocks(const oct_qjob *j, int node);
/* The name in cost tables of a product with weights in blocks, with the blocks that it would have. */
oct_cost_how oct_block_cost(const oct_qjob *j, int node);
/* Chooses parameters and quantized values of a product's weights in blocks. Called once, because they depend on no
 * statistics. */
oct_status oct_make_blocks(oct_qjob *j, int node, oct_pool *pool, oct_err *err);

/* saturate.c: whether the sum of two neighbouring u8 x s8 products along k fits 16 bits for all values of the
 * activations. It does if in each pair the positive weights sum to at most OCT_PAIR_MOST, and the negative ones to no
 * less than its negative (255 * 128 < 2^15). sums says which weights form pairs; OCT_SUMS_EXACT: none do. qvals: all
 * matrices, in ONNX's layout. */
enum { OCT_PAIR_MOST = 128 };
bool oct_pairs_safe(oct_pair_sums sums, const oct_weight_layout *l, const int8_t *qvals);
/* Whether a layer with this layout adds pairs in 16 bits. */
bool oct_adds_pairs(oct_pair_sums sums, const oct_weight_layout *l);
/* The weight that is paired with weight k of an output channel; -1: none. Both are counted within the group: ic * taps
 * + tap. */
int64_t oct_pair_of(oct_pair_sums sums, const oct_weight_layout *l, int64_t k);

#endif
