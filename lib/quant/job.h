/* lib/quant/job.h -- the inside of a quantization job, shared by the files that do its steps. */
#ifndef OCT_QUANT_JOB_H
#define OCT_QUANT_JOB_H

#include "kernels/nbits/nbits.h"
#include "ops/op.h"
#include "ops/traits.h"
#include "quant/quant.h"

typedef enum oct_role {
    OCT_ROLE_FLOAT = 0,
    OCT_ROLE_PRODUCT,  /* Conv, Gemm, MatMul on integers */
    OCT_ROLE_INTEGER,  /* another operator on integers */
    OCT_ROLE_CLAMP,    /* a clamp that the quantized output of the node before it does: goes away */
    OCT_ROLE_DYNAMIC,  /* a product whose activation is quantized when it runs */
    OCT_ROLE_HALF,     /* computes on 16-bit floats */
    OCT_ROLE_BLOCKS    /* a product of float activations with weights in blocks */
} oct_role;

typedef struct qnode {
    oct_role role;
    oct_policy_row row;
    const char *why;
    const char *barred; /* found while deciding: keeps the node float */
    oct_layer_decision decision;
} qnode;

/* A value that gets a grid. */
typedef struct qvalue {
    bool wanted;      /* a quantizer stands on it */
    bool ranged;      /* its range decides whether 16-bit floats hold it */
    int axis;         /* dimension of channels for per-channel moments; -1 the last, 0 none */
    bool constant;    /* a constant operand of an integer operator (not a product's weight) */
    int same;         /* value whose grid it shares (union-find parent); itself at the root */
    bool symmetric;   /* at the root: a rule asks so for one of those that share the grid; then its quantizer does no clamp */
    float clamp_lo, clamp_hi; /* of the clamp that its quantizer does; -inf, inf */
    /* decided: */
    bool has_grid;
    oct_dtype dtype;
    oct_qparams q;
    const char *observer;
    double sqnr;      /* dB of rounding and clipping, expected */
} qvalue;

/* By what the means of a product's output channels were off: sums of squares over the channels. */
typedef struct qshift {
    double weights, inputs; /* as weights and activations were rounded; inputs 0 where that was not measured */
    double left;            /* with the correction, which ends in a rounded bias */
    int64_t channels;       /* 0: not corrected */
} qshift;

/* A product's quantized weights. */
typedef struct qweights {
    oct_dtype dtype;   /* OCT_S8 or OCT_U8 */
    int64_t channels;  /* scales: 1 or output channels */
    int axis;
    int64_t block;     /* weights along axis that share a scale; 0: all */
    float *largest;    /* magnitudes of the channels */
    float *scale;
    int limit;         /* codes lie within -limit..limit */
    oct_tensor *codes; /* signed whatever dtype is; written with the top bit flipped where that is u8 */
    const oct_tensor *written; /* as dtype has them, once they were written; all copies of the graph share it */
    bool checked, safe; /* oct_pairs_safe of the codes, once asked */
    int32_t *bias;     /* at s_x * s_w, or NULL */
    int64_t n_bias;
    qshift shift;
    double sqnr;
    const char *remedy;
} qweights;

/* A product's weights in blocks. */
typedef struct qblocks {
    oct_nbits_form form;
    int matrix;        /* the value that was quantized ... */
    bool transposed;   /* ... n x k, as Gemm with transB has it */
    oct_quant quant;   /* codes by columns */
    double sqnr;
    int value;         /* that carries it in the graph that is being annotated; -1 not yet */
} qblocks;

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
    oct_arena *lasting; /* of the graph that the job was made for: outlives its copies */
    oct_qjob_opts opts;
    /* Moments of product inputs on some samples, as they are and as quantization leaves them; NULL: not measured. Owned. */
    oct_calib *exact, *rounded;
    oct_observer_spec observer; /* where the policy names none */
    qnode *node;       /* [n_nodes], by node of g */
    qvalue *value;     /* [n_values] */
    size_t n_nodes, n_values;
    qweights **weights; /* by node; NULL where there are none */
    qweights **recurrence; /* of an LSTM: R, whose scales and codes are its own; all else is in weights, which is W */
    qblocks **blocks;   /* the same of weights in blocks; products of one matrix share them */
    const char **wanted; /* names of the values of g that need statistics, as the model has them */
    int *wanted_axes, *wanted_value;
    size_t n_wanted;
    int *layer;        /* nodes in order */
    size_t n_layer;
    /* with those of bodies, for oct_qjob_values and oct_qjob_layer: */
    const char **all_wanted;
    int *all_axes;
    size_t n_all_wanted;
    oct_qlayer *all;
    size_t n_all;
};

/* job.c: a job of a prepared graph, with those of its bodies. */
oct_status oct_job_open(oct_arena *a, oct_graph *g, const oct_qjob_opts *opts, const char *where, oct_qjob **job, oct_err *err);

/* bodies.c: jobs of the graphs that nodes of j->g hold; lists of them all; each step in them. */
oct_status oct_bodies_open(oct_qjob *j, oct_err *err);
oct_status oct_bodies_list(oct_qjob *j, oct_err *err);
oct_status oct_bodies_decide(oct_qjob *j, const oct_calib *c, oct_err *err);
/* A step that changes their graphs, before that of the graph around them. */
oct_status oct_bodies_do(oct_qjob *j, oct_status (*step)(oct_qjob *, oct_err *), oct_err *err);
/* Lets the job and its bodies' jobs work on g, a copy of its graph. */
void oct_bodies_move(oct_qjob *j, oct_graph *g);

/* place.c: roles, wanted values, shared grids. May be run again after more nodes were forced to float. */
oct_status oct_job_place(oct_qjob *j, oct_err *err);
int oct_grid_root(const oct_qjob *j, int value);
/* The policy row of the integer node that makes a value, through a clamp, or of the first node that reads it on integers; or NULL. */
const oct_policy_row *oct_maker_row(const oct_qjob *j, int value);
const oct_policy_row *oct_reader_row(const oct_qjob *j, int value);
/* The value on which the quantizer behind node's output 0 stands: the output, or that of the clamp it does. */
int oct_quantized_output(const oct_qjob *j, int node);

/* half.c: after other roles are chosen, the nodes that compute on 16-bit floats, and the values whose range must be known for it. */
oct_status oct_half_place(oct_qjob *j, oct_err *err);
/* Bars nodes with a constant or (c not NULL) a value that the type does not hold; *changed is set where one was barred. */
oct_status oct_half_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);
/* The type that a node computes on, or OCT_UNDEFINED: not on 16-bit floats. Nodes added since the job was made have none. */
oct_dtype oct_half_type(const oct_qjob *j, int node);
/* dB of rounding a constant to t; NaN: not f32. */
double oct_half_sqnr(const oct_tensor *c, oct_dtype t);

/* grids.c: grids of all wanted values. */
oct_status oct_choose_grids(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err);

/* job.c: a copy of the graph whose values carry what is decided now, which plans run as it is; the job's own graph stays float. */
oct_status oct_quantized_copy(oct_qjob *j, oct_graph **copy, oct_err *err);

/* weights.c: quantizes the weights and bias of a product whose input has a grid. For bias correction: real, the mean of
 * the activation per input channel, NULL: none; and rounded, that of what its codes stand for, NULL when it was not measured. */
oct_status oct_quantize_weights(oct_qjob *j, int node, const double *real, const double *rounded, size_t n, oct_err *err);

/* weights.c: the type of weights, proved safe from saturation or not, that the target takes beside activations of a type; and the
 * sentence that says why, or NULL. OCT_S8 that could saturate must be of 7 bits. */
const char *oct_weights_type(const oct_qjob *j, oct_weight_type asked, oct_dtype activations, bool safe, oct_dtype *type);
/* recurrent.c: W and R of an LSTM: a scale for each of [dirs][gates * hidden] rows, or [dirs]. */
oct_status oct_quantize_recurrent(oct_qjob *j, int node, oct_err *err);

/* block_weights.c: how a row of the policy, or else the job, wants weights in blocks. */
oct_nbits_form oct_block_form(const oct_qjob *j, const oct_policy_row *row);
/* Why a product's weights cannot be in blocks, or NULL. */
const char *oct_no_blocks(const oct_qjob *j, int node);
/* Chooses grids and codes of a product's weights, once: no statistics change them. */
oct_status oct_make_blocks(oct_qjob *j, int node, oct_pool *pool, oct_err *err);

/* saturate.c: whether u8 x s8 products of two neighbouring k cannot leave 16 bits, whatever codes the activation takes:
 * in each pair the positive weights sum to at most 128, the negative ones too (255 * 128 < 2^15). Pairs are formed as
 * ONNX Runtime's kernels form them: along k = (ky, kx, ic) and along k = (ic, ky, kx). codes: of one matrix, as ONNX stores them. */
bool oct_pairs_safe(const oct_weight_layout *l, const int8_t *codes);

#endif
