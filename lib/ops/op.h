/* lib/ops/op.h -- what the program knows about an operator: one record, in the file of its family.
 *
 * A record says how its output shapes follow from its inputs, how it is computed, in which layouts,
 * what quantization may do with it, and how a node is raised to a newer opset. ops.c lists all records;
 * adding an operator touches its file, that list and the build. */
#ifndef OCT_OPS_OP_H
#define OCT_OPS_OP_H

#include "base/pool.h"
#include "ops/datum.h"

/* ------------------------------------------------------------------ shape inference */

/* Context of one inference call: what is known of the node's inputs is set, constants and known values included. */
typedef struct oct_infer {
    oct_graph *g;
    int node;
    int64_t opset; /* version of the node's domain */
    /* Infers a nested graph of the node from what is set for its inputs; captured values have been passed on. anew:
     * drops first what an earlier call found. *fits: false when shapes contradict each other, as in a branch that is
     * never taken with them; what was found until then stays. NULL where nodes with nested graphs are not inferred. */
    oct_status (*body)(oct_graph *nested, bool anew, bool *fits, oct_err *err);
} oct_infer;

/* ------------------------------------------------------------------ running */

/* The memory layout of a tensor of rank >= 3. Dimensions are always given in ONNX's order [N, C, spatial...]; the
 * layout only says how they are stored. */
typedef enum oct_tensor_layout {
    OCT_LAYOUT_PLAIN = 0,        /* C order of the dimensions               */
    OCT_LAYOUT_CHANNELS_LAST = 1 /* dimension 1 innermost: N, spatial..., C */
} oct_tensor_layout;

/* A tensor as an operator sees it. */
typedef struct oct_operand {
    oct_dtype dtype;
    int rank;
    int64_t dims[OCT_MAX_RANK];
    int64_t count; /* elements */
    oct_tensor_layout layout;
    int64_t pitch; /* channels last: distance in elements between positions, if the channels are a section of a larger
                      tensor; 0: the number of channels */
    void *data;    /* NULL at prepare time unless constant */
    bool constant; /* data do not change, so they may be packed at prepare time */
    const oct_quant *q; /* quantization of the integers; NULL: plain numbers */
    int value;          /* value index in the plan's graph, or -1 */
} oct_operand;

/* The product of n dimensions; 0 if it exceeds 63 bits, which happens only in tensors without elements. */
static inline int64_t oct_product(const int64_t *dims, int n)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(product, dims[i], &product))
            return 0;
    return product;
}

/* Strides in elements per ONNX dimension, following the layout. */
void oct_operand_strides(const oct_operand *t, int64_t strides[OCT_MAX_RANK]);

/* A clamp fused into an operator's last step, on real values, before quantization of the output. */
typedef struct oct_epilogue {
    bool clamp;
    float lo, hi; /* -INFINITY or INFINITY: no bound */
} oct_epilogue;

typedef struct oct_op oct_op;

/* One planned call of an operator. */
typedef struct oct_step {
    const oct_op *op;
    const oct_node *node; /* attributes and name */
    int64_t opset;
    oct_operand **in; /* NULL: absent */
    oct_operand **out;
    int n_in, n_out;
    oct_epilogue epilogue;
    int residual;   /* index of an input that is added to the results before the epilogue: float32, not constant, with
                       their shape and layout; 0: none */
    void *state;    /* set by prepare, in its arena: packed weights, geometry */
    size_t scratch; /* bytes that run needs, 64-byte aligned; set by prepare */
    const char *algorithm, *kernel; /* set by prepare, for profiles: names of the algorithm and of the record of the
                                       multiplying kernel; constant texts, NULL: there is no choice */
    uint32_t overwrites; /* set by prepare; bit i: output 0 may share the memory of input i, if no other step reads that
                            then or later */
    struct oct_step
        *wide;    /* the call on float32 if 16-bit floats are converted for it; set by oct_step_prepare, else NULL */
    bool in_bf16; /* set together with it: a product whose factors are bf16 */
} oct_step;

typedef struct oct_prep {
    oct_arena *arena; /* lives as long as the step */
    int threads;      /* size of the pool that will run it, for per-thread scratch */
    bool fast_pack;   /* only a few runs follow, so packing does not search for a faster order */
    bool bf16; /* float32 inputs 0 and 1 of OCT_QUANT_WEIGHTED are rounded to bf16, and products of bf16 (kernels/bgemm)
                  are used if available */
    struct oct_packed_refs *packed; /* the plan's references to packed weights shared with other plans (core/packed.h);
                                       NULL: none are shared */
} oct_prep;

typedef struct oct_run {
    oct_pool *pool;
    void *scratch;      /* step->scratch bytes */
    uint64_t iteration; /* iteration number of the surrounding loops, 0 outside of loops: random numbers differ between
                           iterations */
    bool again;         /* the inputs that are weights are those of the run before, and scratch is as that left it */
} oct_run;

/* One call of an operator that allocates its results: control flow, sequences, optionals, strings. */
typedef struct oct_exec {
    const oct_node *node;
    int64_t opset;
    oct_datum *const *in; /* [node->n_in]; NULL: absent */
    oct_datum **out;      /* [node->n_out], NULL at first: receives a reference for each output that the node has */
    oct_pool *pool;
    int64_t max_trips; /* most iterations of one loop */
    /* Runs the node's graph `attr` on in[n_in], the graph's own inputs; captured values are supplied by the caller of
     * exec. out[n_out] gets a reference to each of its outputs; borrowed data in them lasts until the next call. */
    oct_status (*body)(void *arg, const char *attr, oct_datum *const *in, size_t n_in, oct_datum **out, size_t n_out,
                       oct_err *err);
    void *arg;
} oct_exec;

/* ------------------------------------------------------------------ quantization traits */

typedef enum oct_quant_trait {
    OCT_QUANT_NONE = 0, /* stays float                                                     */
    OCT_QUANT_WEIGHTED, /* Conv, Gemm, MatMul: multiply-accumulate; the weights are input 1, packed by prepare when
                           constant */
    OCT_QUANT_SAME,     /* moves data: the output has the parameters of input 0 (MaxPool, Reshape) */
    OCT_QUANT_JOIN,     /* all data inputs and the output can share parameters (Concat) */
    OCT_QUANT_ARITH,    /* arithmetic on several quantized inputs; the output has its own parameters (Add, Mul) */
    OCT_QUANT_UNARY,    /* function of one quantized tensor; the output has its own parameters (Sigmoid, AveragePool) */
    OCT_QUANT_RECURRENT /* LSTM, GRU, RNN: weights are inputs 1 and 2; quantized dynamically if at all */
} oct_quant_trait;

/* Whether results may exceed the range of float16 if inputs do not, so that they are not assumed to fit without
 * statistics. */
typedef enum oct_growth {
    OCT_GROWS_NOT = 0,
    OCT_GROWS_SUMS, /* with the number of elements */
    OCT_GROWS,
    OCT_GROWS_ON_ITSELF,  /* where both inputs are one (x * x) */
    OCT_GROWS_BY_DIVISOR, /* where input 1 is computed */
    OCT_GROWS_BY_POWER    /* unless input 1 is a constant from 0 to 1 */
} oct_growth;

/* How outputs depend on decisions about values: a small change of a value near a limit changes such outputs completely,
 * or moves them. */
typedef enum oct_decision {
    OCT_DECIDES_NOT = 0,
    OCT_DECIDES,    /* each element is one of a few answers: a truth value, a class, an index (Greater, ArgMax) */
    OCT_CLASSIFIES, /* each element of output 0 is one of a few answers, the other outputs are numbers
                       (LinearClassifier) */
    OCT_LISTS,  /* also the number or the order of the outputs' rows depends on values (NonZero, NonMaxSuppression) */
    OCT_SORTS,  /* output 0 has the values in sorted order, output 1 their indices (TopK) */
    OCT_RETURNS /* puts elements back to their indices, so that an order that depends on values ends here
                   (ScatterElements) */
} oct_decision;

/* ------------------------------------------------------------------ the record */

/* Which layouts run() accepts. */
typedef enum oct_layout_rule {
    OCT_RULE_PLAIN = 0, /* everything plain */
    OCT_RULE_SPATIAL,   /* input 0 and the outputs channels-last (rank >= 3); other inputs plain */
    OCT_RULE_ANY,       /* any mixture, by oct_operand_strides(); the plan chooses that of the output */
} oct_layout_rule;

/* How the time of a run grows with shapes. traits.h counts the multiply-accumulates of OCT_WORK_OUTPUTS and
 * OCT_WORK_INPUTS. */
typedef enum oct_work {
    OCT_WORK_EACH = 0, /* with the elements */
    OCT_WORK_OUTPUTS,  /* every element of output 0 is a sum of products over the input channels and the kernel */
    OCT_WORK_INPUTS,   /* every weight is used once at each position of input 0: ConvTranspose, recurrent operators */
    OCT_WORK_PAIRS     /* at most the square of the number of elements: windows */
} oct_work;

/* Describes the weights of a linear operator, and the data they are multiplied by. Negative dimensions are counted from
 * the last. traits.h and weight_axes.h derive from this what holds for a node. */
typedef struct oct_weights {
    uint32_t slots;              /* bit i: input i holds weights */
    int out, in;                 /* dimensions of the weights with the output and the input channels */
    const char *transposed;      /* attribute that, if not 0, exchanges the two; or NULL */
    int data;                    /* dimension of input 0 with the input channels */
    const char *data_transposed; /* attribute that, if not 0, exchanges dimensions -1 and -2 of it; or NULL */
    int bias;                    /* index of the input that is added to the output channels; 0: none */
    bool kernel; /* dimensions from 2 on are those of a kernel, and attribute `group` divides dimension 0 into groups */
    bool computed; /* may also be a second data input (MatMul) */
    bool blocks;   /* matrices can be quantized in blocks along the input channels (com.microsoft.MatMulNBits) */
} oct_weights;

struct oct_op {
    const char *type;
    const char *domain; /* "" default, "com.microsoft", ... */
    int since, until;   /* first and last opset (inclusive) this record is for; until 0: open */
    int min_in, max_in; /* max -1: any number */
    uint32_t optional;  /* bit i: input i may be absent although i < min_in */
    int min_out, max_out;

    /* Sets element type, shape and (where they matter) known values of the outputs as far as possible, and leaves the
     * rest unchanged. OCT_EMALFORMED for nodes that the specification forbids; the caller adds file and node. */
    oct_status (*infer)(const oct_infer *c, oct_err *err);

    /* prepare (may be NULL): checks types and shapes, packs constants, sets state and scratch. OCT_EUNSUPPORTED
     * when this combination of types cannot run. run: computes all outputs; allocates nothing. Both handle
     * real operands of every type the operator allows here, and, where `integer` says so, quantized ones
     * (operand->q set): then all data inputs and the output are u8 or s8 with q. */
    oct_status (*prepare)(oct_step *s, const oct_prep *p, oct_err *err);
    oct_status (*run)(const oct_step *s, const oct_run *r, oct_err *err);
    oct_layout_rule layout;
    bool alias; /* output 0 has the bytes of input 0 with other dimensions (Reshape, Identity); run is not needed */

    /* For operators whose output shapes depend on data (NonZero, Compress): sets rank, dims and dtype of the outputs
     * from the inputs' data. Called after prepare, when outputs have no dimensions yet, and before run, which may use
     * what measure has left in scratch. Such records have a plain layout and do not widen. */
    oct_status (*measure)(const oct_step *s, const oct_run *r, oct_err *err);
    /* For operators that no plan can contain: sequences, optionals, strings, nested graphs. If there is a run as well,
     * exec replaces it if an input is not a tensor, or an input or output is a tensor of strings. */
    oct_status (*exec)(oct_exec *x, oct_err *err);
    oct_work work;
    oct_weights weights;
    int batch;               /* the batch dimension of input 0 ... */
    const char *batch_first; /* ... or dimension 0 if this attribute is not 0; may be NULL */
    bool repeats;            /* runs the graph that it holds any number of times (Loop, Scan) */
    bool draws; /* random numbers, which depend on the node's name (or seed) and the iteration: never folded */
    bool adds;  /* output 0 is the sum of all inputs (Add, Sum) */
    /* Bit i: output 0 is positively homogeneous in these inputs together. Multiplying all of them by positive factors,
     * one for each index of a kept dimension, multiplies output 0 by the same factors, and bit-exactly so for powers of
     * two; other inputs do not matter (ReLU, Add, MaxPool, the data of PRelu, scale and bias of LayerNormalization).
     * Operators that alias or permute, and clamps at 0, need not set it: oct_homogeneous_in. */
    uint32_t homogeneous;
    bool multiplies; /* output 0 is the product of the two inputs (Mul), and so homogeneous in each of them */
    bool permutes;   /* output 0 is input 0 with its dimensions in the order of `perm` (Transpose) */
    bool is_qdq;     /* output 0 is input 0 except for rounding (QuantizeLinear, DequantizeLinear) */
    bool picks;      /* output 0 has the elements of input 0 at the indices of input 1 along `axis` (Gather): rows of a
                        table, if axis is 0 */
    bool joins;   /* output 0 joins the inputs along `axis`; inputs with a pitch are in their place already (Concat) */
    bool pitched; /* output 0 may have a pitch if it is float32, or has 8 bits with one scale */
    bool takes_nan; /* NaN is a value that it replaces or tests for (Imputer, IsNaN) */
    bool moves;     /* run moves elements without interpreting them, so that they can be strings (oct_op_run_alone) */

    /* Whether a step can run on integers; `s` has shapes and attributes, operands have dtype and q. NULL: never. */
    bool (*integer)(const oct_step *s);

    /* Why a node has no integer form with its attributes, in one clause; NULL: it has one. The member is NULL where
     * attributes do not matter. */
    const char *(*no_integer)(const oct_node *n);

    /* Whether a section of the outputs, along any dimensions but the last, is computed from the same section of the
     * inputs alone, which may be broadcast to the outputs, and from whole matrices of inputs in weights.slots; a step
     * for the section then gives the same bits. NULL: never. */
    bool (*by_rows)(const oct_step *s);

    uint32_t experts; /* bit i: input i holds the matrices of experts, [experts][outputs][inputs] (MoE) */

    bool dynamic; /* with constant weights it can be written in a form with dynamic quantization of input 0 */
    bool body;    /* ... which files spell with the body of a Scan (forms/write/write_recurrent.c), and which pays where
                     its    state is wide */
    const char *scheme; /* for reports of the runtime: the scheme that the operator has by definition, "int8" or
                           "weight-only"; NULL: real numbers */
    bool shared_scale;  /* quantizes an input dynamically with one scale for all samples of a batch */

    /* Computes in float32 only: 16-bit floats are converted before and after (oct_step_prepare). Records without it
     * handle OCT_F16 and OCT_BF16 like OCT_F32. In both cases results are those of float32, rounded once. */
    bool widens;

    /* The output is a sequence of maps, which is held as the table of their values: a runtime around Octet makes it. */
    bool makes_maps;

    /* The first opset in which the operator supports float16, if later than 13, and bfloat16, if later than 22; -1:
     * none. */
    int f16, bf16;
    uint32_t counts; /* bit i: input i is a count or a position, for which 16-bit floats are too coarse (Range, the
                        sizes of Resize) */
    bool converts;   /* output 0 is input 0 in another type (Cast) */
    oct_growth grows;
    uint32_t delicate; /* bit i: small values of input i are critical: rounded to 0 they give infinite or NaN results
                          (Log, the divisor of Div) */
    bool compresses;   /* results have moderate magnitudes for inputs of any magnitude (Log, Sqrt, normalizations) */
    bool reduces;      /* output 0 reduces input 0 along dimensions (ReduceMean, GlobalAveragePool) */

    oct_decision decision;
    uint32_t
        chooses; /* bit i: input i selects the elements or rows of input 0 that are in the output (Gather, Compress) */

    oct_quant_trait quant;
    bool fixed_range;         /* the output's range does not depend on data (Sigmoid, Softmax, Tanh) ... */
    float range_lo, range_hi; /* ... and is this */
    bool competes;            /* adding a constant to all elements along an axis does not change the output (Softmax) */
    bool fuses_clamp;         /* run applies step->epilogue */
    bool fuses_sum; /* run can add input step->residual, which follows the operator's own inputs at slot max_in */
    /* Whether a node is a clamp with constant bounds, which may become an epilogue; sets the bounds. NULL: never. See
     * oct_op_clamp. */
    bool (*clamp)(const oct_graph *g, int node, float *lo, float *hi);

    /* Rewrites a node from opset `from` to from + 1 where the operator changed there (NULL: never changed
     * in its lifetime). Called once per step upwards; may add constants and nodes before it. */
    oct_status (*raise)(oct_graph *g, int node, int64_t from, oct_err *err);
};

/* The first members of a record, in a line: min_in_ to max_in_ inputs, and min_out_ to max_out_ outputs. */
#define OCT_SCHEMA(type_, domain_, since_, min_in_, max_in_, min_out_, max_out_)                                  \
    .type = type_, .domain = domain_, .since = since_, .min_in = min_in_, .max_in = max_in_, .min_out = min_out_, \
    .max_out = max_out_

/* The record for an operator at an opset; NULL when there is none. */
const oct_op *oct_op_find(const char *domain, const char *type, int64_t opset);
/* The record of a node of g; NULL when there is none. */
const oct_op *oct_op_of(const oct_graph *g, int node);
/* Whether nodes of a record, which may be NULL, can be run: some records tell of an operator's types alone. */
static inline bool oct_op_can_run(const oct_op *op)
{
    return op && (op->run || op->alias || op->exec);
}
/* Whether a node of g, or of a graph nested in it, has a shared_scale, so that its results depend on the other samples
 * of a batch. */
bool oct_op_shares_scales(const oct_graph *g);
/* All records, for listings and tests. */
const oct_op *const *oct_op_all(size_t *n);

/* The interval of a clamp node with constant bounds (Relu, Relu6 as Clip of any opset); false otherwise. */
bool oct_op_clamp(const oct_graph *g, int node, float *lo, float *hi);

/* prepare and run of a step's record. Where the record `widens` and operands are 16-bit floats, both see float32 in
 * their place: inputs are converted to scratch before a run, outputs rounded half to even after it; constants are
 * converted once, into the arena (a constant weight of OCT_QUANT_WEIGHTED for the time of prepare only, which packs
 * it). Such records see p->bf16 where their inputs are of it; where p asks for it, float32 ones are rounded
 * likewise. */
oct_status oct_step_prepare(oct_step *s, const oct_prep *p, oct_err *err);
oct_status oct_step_run(const oct_step *s, const oct_run *r, oct_err *err);

/* Runs a single node on in[n_in] (NULL: absent; tensors, of strings only for operators that move elements), regardless
 * of their shapes in g; out[n_out] gets new data. how: pool and iteration. OCT_EUNSUPPORTED if it cannot be run. */
oct_status oct_op_run_alone(const oct_graph *g, int node, oct_datum *const *in, oct_datum **out, const oct_run *how,
                            oct_err *err);

/* Runs a node whose inputs are all constants and appends the results as tensors in `arena`: out[n_out], NULL
 * for absent ones. For constant folding and tests. OCT_EUNSUPPORTED when it cannot be run; max_bytes bounds the
 * outputs. */
oct_status oct_op_eval(oct_graph *g, int node, size_t max_bytes, oct_arena *arena, oct_tensor **out, oct_err *err);

#endif
