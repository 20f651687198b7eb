/* lib/quant/job.h -- the inside of a quantization job, shared by the files that do its steps.
 *
 * A decision has one home. place.c and half.c give each node its scheme and mark the values that need quantization parameters; choose_qparams.c
 * chooses those; weights.c and block_weights.c quantize constants. All of these are kept as the oct_quant that annotate.c hangs on values. */
#ifndef OCT_QUANT_JOB_H
#define OCT_QUANT_JOB_H

#include "kernels/nbits/nbits.h"
#include "ops/op.h"
#include "ops/traits.h"
#include "quant/quant.h"

/* Quantized weights: what one input of a node becomes. */
typedef struct qweights {
    oct_quant quant;    /* as the value carries it */
    int matrix;         /* the value that was quantized */
    int value;          /* the value that carries quant in the graph that is being annotated; -1: none yet */
    double sqnr;        /* dB of the rounding, over all weights of the node */
    const char *remedy; /* against saturation; as in oct_layer_decision */
    /* What a later decision may use again; not of weights in blocks: */
    float *largest;     /* magnitudes of the channels */
    const float *widened; /* what the steps of the channels are multiplied by so that pairs are safe, or NULL */
    int limit;          /* quantized values lie within -limit..limit */
    oct_tensor *qvals;  /* signed, whatever quant.dtype is; f32 where they are another model's: the real numbers */
    double signal, noise;
    bool checked, safe; /* oct_pairs_safe of the quantized values, once asked */
} qweights;

/* By what the means of a product's output channels were off: sums of squares over the channels. */
typedef struct qshift {
    double weights, inputs; /* as weights and activations were rounded; inputs 0 where that was not measured */
    double left;            /* with the correction, which ends in a rounded bias */
    int64_t channels;       /* 0: not corrected */
} qshift;

/* The table whose rows a node picks (oct_op.picks), with quantized rows. */
typedef struct qtable {
    int tied;                 /* the product that multiplies by the same numbers, whose quantized weights serve both; -1: none */
    const oct_tensor *with;   /* the tensor of its weights when that was found */
    bool by_rows;             /* a row of the table is one of the quantized values, not a column */
    oct_quant quant;          /* where it is not tied: s8 with a scale a row */
    double sqnr;
} qtable;

/* The weights of a layer that computes on reals (stored_weights.c). */
typedef struct qstored {
    oct_quant quant[2]; /* of a recurrent layer's inputs 1 and 2: s8 with a scale a row; or of input 1: a scale for each output channel, n == 0 behind it */
    const oct_tensor *of; /* input 1 */
    double sqnr;
} qstored;

typedef struct qnode {
    oct_policy_row row;    /* what the policy asks for; widened: with activations of 16 bits */
    oct_policy_row ruled;  /* widened: the same as rules have it */
    oct_scheme scheme;     /* what the node gets */
    bool absorbed;         /* a clamp that goes away, because the quantizer of the integer node before it clamps */
    const char *why;
    const char *barred;    /* found while deciding: keeps the node float */
    const char *wide;      /* found while deciding: its activations have 16 bits where it runs on integers, and why; NULL: nothing says so (wide.c) */
    bool wide_by_cost;     /* the target's costs say so */
    bool widened;
    uint32_t rounds;       /* bit i: input i is read quantized, though the node computes on reals (place_around.c) */
    bool rounds_outputs;   /* and so are its results */
    oct_dtype activations; /* that it computes on, decided (types_meet.c) */
    oct_scheme by_cost;    /* what the target's costs chose instead (by_cost.c): OCT_SCHEME_DYNAMIC, OCT_SCHEME_WEIGHT_ONLY (in 8 bits) or OCT_SCHEME_FLOAT; OCT_SCHEME_AUTO: nothing */
    bool rangeless;        /* found while deciding: a value that it reads or makes has no statistics */
    qweights *weights[2];  /* of inputs 1 and 2 (W and R of an LSTM), or NULL; products of one matrix in blocks share them */
    qtable *table;         /* what is picked from, or NULL */
    qstored *stored;       /* or NULL */
    const oct_tensor *checked; /* the table of which is known ... */
    bool finite;               /* ... whether all of it is finite */
    const oct_quant *bias; /* s32 at s_x * s_w, or NULL */
    qshift shift;
    oct_layer_decision decision;
} qnode;

typedef struct qvalue {
    bool wanted;      /* a quantizer stands on it */
    bool ranged;      /* its range decides whether 16-bit floats hold it */
    bool asked;       /* a rule may ask for its statistics, or make a node integer that needs them */
    int axis;         /* dimension of channels for per-channel moments; -1 the last, 0 none */
    int same;         /* value whose parameters it shares (union-find parent); itself at the root */
    int next;         /* from the root on: the next wanted value that shares the parameters, or -1 */
    float clamp_lo, clamp_hi; /* of the clamp that its quantizer does, at the root of all that share; -inf, inf */
    /* at the root: */
    bool symmetric;   /* a rule asks so for one of those that share; then their quantizers do no clamp */
    bool apart;       /* the target wants one scale for values whose clamps differ */
    bool made;        /* an integer node makes one of them */
    const oct_policy_row *row; /* speaks for all; or NULL */
    /* decided: */
    const oct_quant *quant;   /* one for all that share it; NULL: not yet */
    const oct_quant *as[4];   /* u8, s8, u16, s16: what readers have that compute on another type; NULL: none does */
    const char *observer;
    const char *misfit; /* why parameters that the table gives are not taken as they are; NULL: they are, or it gives none */
    double sqnr;      /* dB of rounding and clipping, expected */
} qvalue;

/* A graph that a node holds. */
typedef struct qbody {
    int node;
    size_t at;         /* of oct_node_graph_at */
    struct oct_qjob *job;
} qbody;

typedef struct oct_qlayer {
    struct oct_qjob *job;
    int node;
} oct_qlayer;

struct oct_qjob {
    oct_arena *arena;  /* of the outermost job */
    const char *where; /* "" or the path to this body, ending in / */
    qbody *body;       /* of nodes in order */
    size_t n_body, cap_body;
    oct_graph *g;
    oct_arena *lasting; /* outlives the graph's copies, and has all that values carry */
    oct_qjob_opts opts;
    /* By value: what rounding did to the means of its channels on measured samples, [moved_channels[v]]; NULL: not measured. */
    double **moved;
    size_t *moved_channels;
    struct oct_job_costs *costs; /* of layer_costs.c; NULL: none are known */
    oct_target_times expected; /* as it is placed */
    oct_observer_spec observer; /* where the policy names none */
    oct_observer_spec *chosen;  /* [n_values]: before that, of the root of those that share parameters; NULL: of none */
    qnode *node;       /* [n_nodes], by node of g */
    qvalue *value;     /* [n_values] */
    size_t n_nodes, n_values;
    int *layer;        /* nodes in order */
    size_t n_layer;
    /* with those of bodies, for oct_qjob_values and oct_qjob_layer: */
    const char **all_wanted;
    int *all_axes;
    size_t n_all_wanted;
    oct_qlayer *all;
    size_t n_all, cap_all;
};

/* Whether a node computes on integers whose parameters are known before it runs; nodes added since the job was made do not. */
static inline bool oct_is_static(const oct_qjob *j, int node)
{
    return node >= 0 && node < (int)j->n_nodes && j->node[node].scheme == OCT_SCHEME_STATIC && !j->node[node].absorbed;
}

/* The same of a product, such as Conv or MatMul. */
static inline bool oct_is_product(const oct_qjob *j, int node)
{
    return oct_is_static(j, node) && oct_op_of(j->g, node)->quant == OCT_QUANT_WEIGHTED;
}

/* Whether a target takes a type of activations beside any weights. */
static inline bool oct_takes_activations(const oct_target *t, oct_dtype activations)
{
    return oct_target_takes(t, activations, OCT_U8) || oct_target_takes(t, activations, OCT_S8);
}

/* The form in which a target runs a node of a scheme that quantizes it. */
static inline oct_target_form oct_form_of(oct_scheme s)
{
    return s == OCT_SCHEME_STATIC ? OCT_TARGET_STATIC : s == OCT_SCHEME_DYNAMIC ? OCT_TARGET_DYNAMIC : OCT_TARGET_WEIGHT_ONLY;
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

/* Whether a node reads an input as integers, or as what a quantizer leaves of it: its data, if it runs on integers. */
bool oct_reads_quantized(const oct_qjob *j, int node, int slot);
/* Whether the quantizer behind a node makes its results: of one that runs on integers, or between quantizers. */
static inline bool oct_makes_quantized(const oct_qjob *j, int node)
{
    return oct_is_static(j, node) || (node >= 0 && node < (int)j->n_nodes && j->node[node].rounds_outputs);
}

/* Whether statistics of a value are asked for. */
static inline bool oct_is_observed(const oct_qjob *j, int value)
{
    return j->value[value].ranged || j->value[value].asked || (j->value[value].wanted && !j->g->value[value].constant);
}

/* job.c: a job of a prepared graph, with those of its bodies. */
oct_status oct_job_open(oct_arena *a, oct_graph *g, const oct_qjob_opts *opts, const char *where, oct_qjob **job, oct_err *err);
/* Undoes folding where that makes the file smaller, and says so in the log. */
oct_status oct_job_unfold(oct_qjob *j, oct_err *err);
/* Gives q, whose n is set, n scales of 0, to be filled in, and n zero points; in memory that lasts as long as what carries it. */
oct_status oct_new_scales(oct_qjob *j, oct_quant *q, int32_t zero, float **scale, oct_err *err);

/* bodies.c: jobs of the graphs that nodes of j->g hold; lists of them all; each step in them. */
oct_status oct_bodies_open(oct_qjob *j, oct_err *err);
oct_status oct_bodies_list(oct_qjob *j, oct_err *err);
oct_status oct_bodies_decide(oct_qjob *j, const oct_calib *c, oct_err *err);
/* A step that changes their graphs, before that of the graph around them. */
oct_status oct_bodies_do(oct_qjob *j, oct_status (*step)(oct_qjob *, oct_err *), oct_err *err);
/* Lets the job and its bodies' jobs work on g, a copy of its graph. */
void oct_bodies_move(oct_qjob *j, oct_graph *g);

/* place_around.c: after other schemes are chosen, quantizers around nodes that compute on reals, as the target wants them. */
void oct_place_around(oct_qjob *j);
/* place.c: schemes of nodes, wanted values, shared parameters. May be run again after more nodes were barred. */
oct_status oct_job_place(oct_qjob *j, oct_err *err);
/* The root of the values that share the parameters of one. */
int oct_params_root(const oct_qjob *j, int value);
/* How many inputs of an integer node, from the first, are activations. */
int oct_data_inputs(const oct_qjob *j, int node);
/* The node whose result a value is as far as quantization goes: through a clamp that goes away; or -1. */
int oct_maker_node(const oct_qjob *j, int value);
/* The value on which the quantizer behind node's output 0 stands: the output, or that of the clamp it does; or -1. */
int oct_quantized_output(const oct_qjob *j, int node);

/* wide.c: the type of 16 bits that a node's activations would have; OCT_UNDEFINED: the target takes none, or they are not of 8 bits. */
oct_dtype oct_wide_type(const oct_qjob *j, int id);
/* Whether a node on integers of 8 bits may have activations of 16: the target takes them, and no table says that they take longer than floats. */
bool oct_may_be_wide(const oct_qjob *j, int id);
/* Widens the rows of nodes that have a reason (wide, wide_by_cost), and narrows those that have none any more; before they are placed. */
oct_status oct_fit_widths(oct_qjob *j, oct_err *err);
/* Behind that: says so of those on integers. */
void oct_tell_widths(oct_qjob *j);

/* by_cost.c: schemes by what layers take in the target, as its tables of costs tell: no clock, and no question to the CPU that converts, so choices are
 * the same everywhere. */
/* Chooses, once nodes are placed, which of them leave the scheme of the policy: products become dynamic, get weights in blocks (where the runtime may quantize
 * the other factor by them) or stay float, other operators stay float; what stays on integers may get activations of 16 bits. Layers of which a rule of the
 * user's sets the scheme stay as it says. Places anew where something was chosen. */
oct_status oct_choose_by_cost(oct_qjob *j, oct_err *err);

/* layer_costs.c: what is expected of the job as it is placed now, into j->expected. */
void oct_expect(oct_qjob *j);
/* Of one node, by the table under which the model gains least: nanoseconds on floats, and as it is decided. NaN: unknown. */
void oct_expect_node(const oct_qjob *j, int node, double *on_floats, double *decided);

/* half.c: after other schemes are chosen, the nodes that compute on 16-bit floats, and the values whose range must be known for it. */
oct_status oct_half_place(oct_qjob *j, oct_err *err);
/* The i-th of a node's tensors, outputs behind inputs, whose type is that of the computation, if it is float32; else -1. */
int oct_half_operand(const oct_qjob *j, int id, int i);
/* half_range.c: bars nodes with a constant or (c not NULL) a value that the type does not hold; *changed is set where one was barred. */
oct_status oct_half_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);
/* The same of nodes on 8 bits that make values of which small ones decide (Log, divisors), where these are not known to be held. */
oct_status oct_bytes_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);
/* The type that a node computes on, or OCT_UNDEFINED: not on 16-bit floats. Nodes added since the job was made have none. */
oct_dtype oct_half_type(const oct_qjob *j, int node);
/* dB of rounding a constant to t; NaN: not f32. */
double oct_half_sqnr(const oct_tensor *c, oct_dtype t);

/* choose_qparams.c: parameters of all wanted values. */
oct_status oct_choose_qparams(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);

/* types_meet.c: parameters of the same values in the types of those that read them, where these differ from that of what makes them. */
oct_status oct_choose_conversions(oct_qjob *j, const oct_calib *c, oct_err *err);
/* What a node has of a value that it reads quantized: the value's own parameters or those of its conversion; NULL: none. */
const oct_quant *oct_read_as(const oct_qjob *j, int node, int value);
/* Parameters of a type for statistics of the values that share those of `root`, as an observer chooses them. */
oct_status oct_params_as(oct_qjob *j, const oct_calib *c, int root, oct_dtype type, const oct_quant **q, oct_err *err);
/* The type of activations that a policy row asks for. */
oct_dtype oct_asked_activations(const oct_qjob *j, const oct_policy_row *row);

/* annotate.c: a copy of the graph whose values carry what is decided now, which plans run as it is; the job's own graph stays float. */
oct_status oct_quantized_copy(oct_qjob *j, oct_graph **copy, oct_err *err);

/* The same as oct_qjob_rewrite makes it, to be counted. */
oct_status oct_written_copy(oct_qjob *j, oct_graph **copy, oct_err *err);

/* annotate.c: nodes that read value v on integers read value `to`. */
oct_status oct_redirect(oct_qjob *j, int v, int to, oct_err *err);

/* weights.c: quantizes weights and biases as the nodes' schemes say; c (may be NULL) has the means that biases are corrected by. */
oct_status oct_decide_weights(oct_qjob *j, const oct_calib *c, oct_err *err);

/* The type of activations that a layer's weights are multiplied by. */
oct_dtype oct_activations_of(const oct_qjob *j, int node);
/* shared_weights.c: of the layers that have their 8-bit weights in common with a node, itself among them, the first with an index above `after`; -1:
 * none. The one behind -1 has the weights; the others take them. */
int oct_weights_next(const oct_qjob *j, int node, int after);

/* unfold_constants.c: constants that folding made become values that are computed, where the file gets smaller by that; called when all is decided,
 * before annotating. *n, *saved: as in oct_unfold. */
oct_status oct_unfold_constants(oct_qjob *j, size_t *n, size_t *saved, oct_err *err);
/* The same before nodes are given 16-bit floats, so that these nodes get them, too. */
oct_status oct_unfold_half(oct_graph *g, size_t *n, size_t *saved, oct_err *err);
/* Whether a product's weights, a constant, were computed from so much less that they grow the file even when quantized. */
bool oct_weights_grow(const oct_qjob *j, int node, int bits);
/* Whether a large constant stands in the file as it is, beside what integer operators read of it: then these read what a quantizer makes of it. */
bool oct_operand_stays_real(const oct_qjob *j, int value);

/* row_tables.c: why rows that a node picks are not quantized, or NULL; *is_table: whether it picks from a table of reals at all. */
const char *oct_no_table(const oct_qjob *j, int node, bool *is_table);
/* Whether a product multiplies by the numbers of such a table. */
bool oct_is_tied(const oct_qjob *j, int product);
/* Whether a table of its numbers stays in the file as reals. */
bool oct_tied_stays_real(const oct_qjob *j, int product);
/* A product's quantized weights, which serve a table, with their SQNR in dB; NULL: it has none. */
const oct_quant *oct_tied_weights(const oct_qjob *j, int product, double *sqnr);
/* Quantizes all tables, after the products' weights, whose quantized values serve where they are the same numbers. */
oct_status oct_decide_tables(oct_qjob *j, oct_err *err);
/* In the graph that is being annotated. */
oct_status oct_annotate_tables(oct_qjob *j, oct_err *err);
bool oct_tensor_is_finite(const oct_tensor *t);
/* A float32 tensor in s8 with a scale for each row along its last dimension; adds the squares of its values and of what they are off by. */
oct_status oct_quantize_rows(oct_qjob *j, const oct_tensor *t, oct_quant *quant, double *signal, double *noise, oct_err *err);

/* Weights that are stored in 8 bits of layers that compute on reals (stored_weights.c): why not, or NULL; whether a layer's are; what they become; and the
 * nodes that make them real. */
const char *oct_no_stored(const oct_qjob *j, int node);
bool oct_is_stored(const oct_qjob *j, int node);
oct_status oct_decide_stored(oct_qjob *j, int node, oct_err *err);
oct_status oct_annotate_stored(oct_qjob *j, oct_err *err);

/* Whether pairs of a node's 8-bit weights are to be safe: where sums would saturate and u8 weights cost speed, or are not taken. */
typedef enum oct_pair_need { OCT_PAIRS_ANY, OCT_PAIRS_SAFE_WANTED, OCT_PAIRS_SAFE_NEEDED } oct_pair_need;
oct_pair_need oct_pairs_need(const oct_qjob *j, int node);
/* Makes a product's pairs safe by wider steps alone, where its weights are not safe and oct_pairs_need asks for it at little cost. */
oct_status oct_make_safe(oct_qjob *j, int node, oct_err *err);
/* scale[], by channel that has one: the steps of a product's weights before any are widened. */
oct_status oct_own_steps(oct_qjob *j, int node, float *scale, oct_err *err);
/* Gives a product quantized values, as ONNX stores them, at steps widened[] times its own (NULL: as they are); both are copied. */
oct_status oct_take_weights(oct_qjob *j, int node, const int8_t *qvals, const float *widened, oct_err *err);

/* turn.c: gives products whose constant is the first factor, and that are to be dynamic or to have weights in blocks, the form whose constant is the
 * second one, by nodes and values of the graph that the job has no records of. *any: whether there was one. */
oct_status oct_turn_products(oct_qjob *j, bool *any, oct_err *err);
/* Whether a product multiplies data by a constant that is its first factor. */
bool oct_is_left_product(const oct_qjob *j, int node);
/* Why such a product could not be turned, or would not gain from it; NULL: it would. */
const char *oct_no_turn(const oct_qjob *j, int node);

/* block_weights.c: why a product's weights cannot be in blocks, or NULL. */
const char *oct_no_blocks(const oct_qjob *j, int node);
/* How tables of costs name a product whose weights are in the blocks that it would have. */
oct_cost_how oct_block_cost(const oct_qjob *j, int node);
/* Chooses parameters and quantized values of a product's weights, once: no statistics change them. */
oct_status oct_make_blocks(oct_qjob *j, int node, oct_pool *pool, oct_err *err);

/* saturate.c: whether u8 x s8 products of two neighbouring k cannot leave 16 bits, whatever quantized values the activation takes:
 * in each pair the positive weights sum to at most OCT_PAIR_MOST, the negative ones too (255 * 128 < 2^15). Pairs are formed as ONNX
 * Runtime's kernels form them, along k = (ky, kx, ic). qvals: of all matrices, as ONNX stores them. */
enum { OCT_PAIR_MOST = 128 };
bool oct_pairs_safe(const oct_weight_layout *l, const int8_t *qvals);
/* Whether they add pairs in 16 bits at all. */
bool oct_adds_pairs(const oct_weight_layout *l);
/* The weight beside which one of an output channel is added; -1: none. Both are counted within the group: ic * taps + tap. */
int64_t oct_pair_of(const oct_weight_layout *l, int64_t k);

#endif
