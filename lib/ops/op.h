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

/* How a tensor of rank >= 3 lies in memory. Dimensions are always given in ONNX's order [N, C, spatial...];
 * the layout only says how they are stored. */
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
    int64_t pitch;      /* channels last: elements from one position to the next, where the channels are some of a wider
                           tensor's; 0: as many as channels */
    void *data;         /* at prepare time NULL unless constant */
    bool constant;      /* data is fixed: may be packed at prepare time */
    const oct_quant *q; /* quantization: the integers stand for reals; NULL: plain numbers */
    int value;          /* value index in the plan's graph, or -1 */
} oct_operand;

/* The product of n dimensions; 0 where it takes more than 63 bits, which happens only in tensors without elements. */
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
    float lo, hi; /* -INFINITY and INFINITY for an open side */
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
    int residual;   /* input that is added to the results before the epilogue: float32, not constant, of their shape and
                       layout; 0: none */
    void *state;    /* set by prepare, in its arena: packed weights, geometry */
    size_t scratch; /* bytes that run needs, 64-byte aligned; set by prepare */
    const char *algorithm, *kernel; /* set by prepare, for profiles: which algorithm of several, and the name of the
                                       record whose function multiplies; constant texts, NULL: there is no choice */
    uint32_t overwrites; /* set by prepare; bit i: output 0 may share the memory of input i, if no other step reads that
                            then or later */
    struct oct_step
        *wide;    /* the same call on float32, set by oct_step_prepare where 16-bit floats are converted; else NULL */
    bool in_bf16; /* set with it: a product whose factors are of bf16 */
} oct_step;

typedef struct oct_prep {
    oct_arena *arena; /* lives as long as the step */
    int threads;      /* size of the pool that will run it, for per-thread scratch */
    bool fast_pack;   /* few runs follow: packing takes no time to find a faster order */
    bool bf16;        /* float32 inputs 0 and 1 of OCT_QUANT_WEIGHTED are to be of bf16, and what has a product of bf16
                         (kernels/bgemm) takes it */
    struct oct_packed_refs
        *packed; /* the plan's references to packed weights that plans share (core/packed.h); NULL: none are shared */
} oct_prep;

typedef struct oct_run {
    oct_pool *pool;
    void *scratch;      /* step->scratch bytes */
    uint64_t iteration; /* counts the loops around, and is 0 outside of any: random numbers differ between iterations */
} oct_run;

/* One call of an operator that makes its results itself: control flow, sequences, optionals, strings. */
typedef struct oct_exec {
    const oct_node *node;
    int64_t opset;
    oct_datum *const *in; /* [node->n_in]; NULL: absent */
    oct_datum **out; /* [node->n_out], NULL at first: a reference each, but for outputs that the node does not have */
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
    OCT_QUANT_SAME,     /* moves data: output has the parameters of input 0 (MaxPool, Reshape) */
    OCT_QUANT_JOIN,     /* all data inputs and the output may share parameters (Concat)      */
    OCT_QUANT_ARITH,    /* arithmetic on several quantized inputs, own output parameters (Add, Mul) */
    OCT_QUANT_UNARY,    /* function of one quantized tensor, own output parameters (Sigmoid, AveragePool) */
    OCT_QUANT_RECURRENT /* LSTM, GRU, RNN: weights are inputs 1 and 2; quantized dynamically if at all */
} oct_quant_trait;

/* Whether results leave float16's range where inputs do not, so that without statistics they are not taken to fit. */
typedef enum oct_growth {
    OCT_GROWS_NOT = 0,
    OCT_GROWS_SUMS, /* with the number of elements */
    OCT_GROWS,
    OCT_GROWS_ON_ITSELF,  /* where both inputs are one (x * x) */
    OCT_GROWS_BY_DIVISOR, /* where input 1 is computed */
    OCT_GROWS_BY_POWER    /* unless input 1 is a constant from 0 to 1 */
} oct_growth;

/* How values decide on outputs: a small change of a value that is near a limit changes such outputs as a whole, or
 * moves them. */
typedef enum oct_decision {
    OCT_DECIDES_NOT = 0,
    OCT_DECIDES, /* each element is one of a few answers: a truth value, a class, the place of the largest (Greater,
                    ArgMax) */
    OCT_LISTS,   /* the number of the outputs' rows, or their order, follows from values as well (NonZero,
                    NonMaxSuppression) */
    OCT_SORTS,   /* output 0 has the values themselves in their order, and output 1 their places (TopK) */
    OCT_RETURNS  /* what was taken out goes back to its place, so that an order that values chose ends here
                    (ScatterElements) */
} oct_decision;

/* ------------------------------------------------------------------ the record */

/* Which layouts run() accepts. */
typedef enum oct_layout_rule {
    OCT_RULE_PLAIN = 0, /* everything plain */
    OCT_RULE_SPATIAL,   /* input 0 and the outputs channels-last (rank >= 3); other inputs plain */
    OCT_RULE_ANY,       /* any mixture, through oct_operand_strides(); the output's is the plan's choice */
} oct_layout_rule;

/* How the time of a run grows with shapes. traits.h counts the multiply-accumulates of OCT_WORK_OUTPUTS and
 * OCT_WORK_INPUTS. */
typedef enum oct_work {
    OCT_WORK_EACH = 0, /* with the elements */
    OCT_WORK_OUTPUTS,  /* every element of output 0 sums products along the input channels and the kernel */
    OCT_WORK_INPUTS,   /* every weight is multiplied once at each position of input 0: ConvTranspose, recurrences */
    OCT_WORK_PAIRS     /* at most with the square of the elements: windows */
} oct_work;

/* What is known of the weights of a linear operator, and of the data they are multiplied by. Dimensions below 0 count
 * from the last. traits.h says what follows for a node. */
typedef struct oct_weights {
    uint32_t slots;              /* bit i: input i holds weights */
    int out, in;                 /* their dimensions along which output and input channels lie */
    const char *transposed;      /* the attribute that exchanges the two where it is not 0, or NULL */
    int data;                    /* the dimension of input 0 along which input channels lie */
    const char *data_transposed; /* the attribute that exchanges dimensions -1 and -2 there, or NULL */
    int bias;                    /* the input that is added to the output channels; 0: there is none */
    bool kernel;   /* dimensions from 2 on are positions of a kernel, and `group` cuts dimension 0 into groups */
    bool computed; /* need not be constant: then they are a second data input (MatMul) */
    bool blocks; /* matrices of them may be quantized in blocks along the input channels (com.microsoft.MatMulNBits) */
} oct_weights;

struct oct_op {
    const char *type;
    const char *domain; /* "" default, "com.microsoft", ... */
    int since, until;   /* first and last opset (inclusive) this record is for; until 0: open */
    int min_in, max_in; /* max -1: any number */
    uint32_t optional;  /* bit i: input i may be absent, although a later one of the first min_in must be there */
    int min_out, max_out;

    /* Sets element type, shape and (where they matter) known values of the outputs, as far as they follow.
     * What is not known is left alone. OCT_EMALFORMED for what the specification forbids; the caller adds
     * file and node. */
    oct_status (*infer)(const oct_infer *c, oct_err *err);

    /* prepare (may be NULL): checks types and shapes, packs constants, sets state and scratch. OCT_EUNSUPPORTED
     * when this combination of types cannot run. run: computes all outputs; allocates nothing. Both handle
     * real operands of every type the operator allows here, and, where `integer` says so, quantized ones
     * (operand->q set): then all data inputs and the output are u8 or s8 with q. */
    oct_status (*prepare)(oct_step *s, const oct_prep *p, oct_err *err);
    oct_status (*run)(const oct_step *s, const oct_run *r, oct_err *err);
    oct_layout_rule layout;
    bool alias; /* output 0 is input 0's bytes under other dimensions (Reshape, Identity); run is not needed */

    /* Where output shapes depend on data (NonZero, Compress), which infer leaves open: sets rank, dims and dtype of the
     * outputs from the inputs' data. Called after prepare, which sees the outputs without dimensions, and before run,
     * which finds in scratch what measure left there. Such records are plain (layout), and do not widen. */
    oct_status (*measure)(const oct_step *s, const oct_run *r, oct_err *err);
    /* For what no plan can hold: sequences, optionals, strings, nested graphs. Where there is a run as well, exec is
     * called in its place when an input is no tensor, or an input or output is a tensor of strings. */
    oct_status (*exec)(oct_exec *x, oct_err *err);
    oct_work work;
    oct_weights weights;
    int batch;               /* dimension of input 0 that is the batch ... */
    const char *batch_first; /* ... or the first where this attribute is not 0; may be NULL */
    bool draws; /* random numbers, which follow from the node's name (or its seed) and the iteration: never folded */
    bool adds;  /* output 0 is the sum of the inputs (Add, Sum) */
    /* Bit i: input i. Multiplying all these inputs by positive factors, one for each index of a dimension that stays,
     * multiplies output 0 likewise, and by powers of two to the bit; other inputs do not change that (ReLU, Add,
     * MaxPool, the data of PRelu, factor and shift of LayerNormalization). Operators that alias or permute, and clamps
     * at 0, need not say so: oct_homogeneous_in. */
    uint32_t homogeneous;
    bool multiplies; /* output 0 is the product of the two inputs (Mul), and so homogeneous in either of them alone */
    bool permutes;   /* output 0 is input 0 with its dimensions in the order of `perm` (Transpose) */
    bool is_qdq; /* output 0 is input 0, but for rounding: quantized or back again (QuantizeLinear, DequantizeLinear) */
    bool picks;  /* output 0 has the elements of input 0 that input 1 names along `axis` (Gather): rows of a table, for
                    axis 0 */
    bool joins;  /* output 0 is the inputs side by side along `axis`; those that have a pitch lie there already (Concat)
                  */
    bool pitched; /* output 0 may have a pitch where it is float32 or of 8 bits with one scale */
    bool moves;   /* run moves elements without reading them, so that they can be strings (oct_op_run_alone) */

    /* Whether a step can run on integers: shapes and attributes are in `s`, operands have dtype and q. NULL: never. */
    bool (*integer)(const oct_step *s);

    /* Why a node has no integer form with its attributes, in one clause; NULL: it has one. The member is NULL where
     * attributes do not matter. */
    const char *(*no_integer)(const oct_node *n);

    bool dynamic; /* with constant weights it can be written in a form that quantizes input 0 at run time */
    bool body;    /* ... which files spell with the body of a Scan (forms/write/write_recurrent.c), and which pays where
                     its    state is wide */
    const char *scheme; /* what the operator itself computes on, "int8" or "weight-only", for the runtime's reports;
                           NULL: real numbers */
    bool shared_scale; /* quantizes an input with one scale that is computed at run time and that the samples of a batch
                          share */

    /* Computes in float32 alone: 16-bit floats are converted around prepare and run (oct_step_prepare). Records without
     * it handle OCT_F16 and OCT_BF16 as they handle OCT_F32; results are float32's, rounded once, either way. */
    bool widens;

    /* The first opset in which the operator takes float16, if later than 13, and bfloat16, if later than 22; -1: none
     * does. */
    int f16, bf16;
    uint32_t
        counts;    /* bit i: input i counts or is a place, where 16 bits round too much (Range, the sizes of Resize) */
    bool converts; /* output 0 is input 0 in another type (Cast) */
    oct_growth grows;
    uint32_t delicate; /* bit i: small values of input i decide: what is rounded to 0 makes results infinite or NaN
                          (Log, the divisor of Div) */
    bool settles;      /* results are of moderate size whatever that of the inputs (Log, Sqrt, normalizations) */
    bool reduces;      /* output 0 joins elements of input 0 along dimensions (ReduceMean) */

    oct_decision decision;
    uint32_t chooses; /* bit i: input i says which elements or rows of input 0 the output has (Gather, Compress) */

    oct_quant_trait quant;
    bool fixed_range;         /* the output's range does not depend on data (Sigmoid, Softmax, Tanh) ... */
    float range_lo, range_hi; /* ... and is this */
    bool competes;    /* elements along an axis share what there is: the same added to all of them changes nothing
                         (Softmax) */
    bool fuses_clamp; /* run applies step->epilogue */
    bool fuses_sum;   /* run adds input step->residual, which follows the operator's own inputs: its slot is max_in */
    /* Whether a node is a clamp with constant bounds, which may become an epilogue; sets the bounds it has. NULL:
     * never. See oct_op_clamp. */
    bool (*clamp)(const oct_graph *g, int node, float *lo, float *hi);

    /* Rewrites a node from opset `from` to from + 1 where the operator changed there (NULL: never changed
     * in its lifetime). Called once per step upwards; may add constants and nodes before it. */
    oct_status (*raise)(oct_graph *g, int node, int64_t from, oct_err *err);
};

/* The record for an operator at an opset; NULL when there is none. */
const oct_op *oct_op_find(const char *domain, const char *type, int64_t opset);
/* The record of a node of g; NULL when there is none. */
const oct_op *oct_op_of(const oct_graph *g, int node);
/* Whether a node of g, or of a graph nested in it, has a shared_scale: its results depend on what else is in the
 * batch. */
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

/* Runs a node by itself on in[n_in] (NULL: absent; tensors, of strings only for operators that move elements), whatever
 * is known of their shapes in g; out[n_out] gets new data. how: pool and iteration. OCT_EUNSUPPORTED when it cannot be
 * run. */
oct_status oct_op_run_alone(const oct_graph *g, int node, oct_datum *const *in, oct_datum **out, const oct_run *how,
                            oct_err *err);

/* Runs a node whose inputs are all constants and appends the results as tensors in `arena`: out[n_out], NULL
 * for absent ones. For constant folding and tests. OCT_EUNSUPPORTED when it cannot be run; max_bytes bounds the
 * outputs. */
oct_status oct_op_eval(oct_graph *g, int node, size_t max_bytes, oct_arena *arena, oct_tensor **out, oct_err *err);

#endif
