/* lib/quant/weights/constants.h -- what the constants of nodes became. The files of this room and the methods that
 * round weights or correct biases write it. */
#ifndef OCT_QUANT_CONSTANTS_H
#define OCT_QUANT_CONSTANTS_H

#include "quant/job/scope.h"

/* The quantized weights made of one input of a node. */
typedef struct qweights {
    oct_quant quant;    /* the parameters that the value carries */
    int matrix;         /* the value before quantization */
    double sqnr;        /* SQNR of the rounding in dB, over all weights of the node */
    const char *remedy; /* what was done against saturation; as in oct_layer_decision */
    /* Not set for weights in blocks: */
    const float *widened; /* by channel: the factor on the scale that makes pairs safe from saturation; NULL: no scale
                             was widened */
    int limit;            /* quantized values lie within -limit..limit */
    oct_tensor *qvals; /* signed, whatever quant.dtype is; f32 if they come from another model: then these are the real
                          numbers */
    double signal, noise;
    bool safe; /* pairs do not saturate on the target */
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
    oct_quant quant;        /* if tied is -1: s8 with a scale for each row; u8 around 128 if at_once */
    bool at_once;           /* GatherBlockQuantized picks the rows */
    double sqnr;
} qtable;

/* The stored weights of a layer that computes in float (stored_weights.c). */
typedef struct qstored {
    /* by oct_stored_at: the matrices of a recurrent layer or of experts, s8 with a scale for each row; or the weights
     * of another layer, with a scale for each output channel (of each matrix); n == 0: there are none. Several matrices
     * may be in blocks along their inputs: u4, or s4 around 0, in the order of their elements. */
    oct_quant quant[3];
    /* what they were made of: the tensor of the first of these inputs, and what the policy asked for */
    const oct_tensor *of;
    oct_scheme scheme;
    oct_weight_type weights;
    int block;
    double sqnr;
} qstored;

/* What a node's constants became. Everything else that is decided for a node is in its scheme and its reason. */
typedef struct qconstants {
    qweights *weights[2];  /* of inputs 1 and 2 (W and R of an LSTM), or NULL; products that share a matrix in blocks
                              share these */
    qtable *table;         /* the quantized table that it picks from, or NULL */
    qstored *stored;       /* its weights in 8 bits if it computes in float, or NULL */
    const oct_quant *bias; /* s32 with scale s_x * s_w, or NULL */
    qshift shift;
} qconstants;

/* What follows from the numbers of a constant alone, found once for all decisions. */
typedef struct qfacts {
    const oct_tensor *checked; /* the tensor that was checked for numbers that are not finite; NULL: none */
    bool finite;               /* whether all its numbers are finite */
    const oct_tensor *of;      /* the tensor of which `largest` is, seen as `layout`; NULL: not found yet */
    oct_weight_layout layout;
    int64_t per;          /* how many output channels share a scale */
    const float *largest; /* the largest magnitude of each scale's channels */
} qfacts;

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
    bool by_rows, at_once;   /* of OCT_CONSTANT_ROWS: as in qtable */
    double sqnr;             /* SQNR of the rounding in dB, over all weights of the node, which its first input has */
} oct_qconstant;
enum { OCT_CONSTANT_SLOTS = 7 }; /* inputs from this one on are no such constants */
/* The index in qstored.quant of input `slot` of a node of this operator; -1: it holds no such weights. */
int oct_stored_at(const oct_op *op, int slot);
/* What input `slot` of a node becomes by the decided scheme; false: it is no quantized constant. */
bool oct_constant_of(const oct_qjob *j, int node, int slot, oct_qconstant *c);

#endif
