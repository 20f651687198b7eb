/* lib/quant/rounding/block_inputs.h -- what layers read over samples: in the float model, and in the one whose weights
 * are rounded so far.
 *
 * Layers are asked for in groups, in the order of the graph; a run of a sample goes on where that of the group before
 * has ended. Memory: the plan of the float model and that of the quantized one, the samples (64 MB at most), states
 * between groups (256 MB at most; without them runs begin anew), and what a group reads, OCT_BLOCK_ROWS floats a
 * channel and model. Results do not depend on threads: each sample has rows of its own. */
#ifndef OCT_QUANT_BLOCK_INPUTS_H
#define OCT_QUANT_BLOCK_INPUTS_H

#include "quant/convert/convert.h"

/* How many positions of a value are kept. They are spread evenly over the samples. */
enum { OCT_BLOCK_ROWS = 8192 };

/* A value that layers read, for which inputs are gathered. The iterations of a body are gathered, too. */
typedef struct oct_block_input {
    const size_t *name; /* [n_names]: indices among the names that oct_block_inputs_open was given; several if layers
                           of several graphs have the same weights, whose inputs are then gathered together */
    size_t n_names;
    int axis;      /* the dimension that holds its channels; -1: the last */
    int64_t depth; /* how many channels */
    float *x[2]; /* [depth][OCT_BLOCK_ROWS], zeroed by the caller. x[0]: inputs in the float model; x[1]: inputs in the
                    rounded model, or NULL */
} oct_block_input;

typedef struct oct_block_inputs oct_block_inputs;

/* Opens the samples of the half that chooses: 8 to 128 samples, as many as take about 4e11 multiply-accumulates.
 * names[n]: all values that will be asked for, each once; borrowed. OCT_EUNSUPPORTED: the model cannot be run. */
oct_status oct_block_inputs_open(oct_conversion *c, const char *const *names, size_t n, oct_block_inputs **b,
                                 oct_err *err);
void oct_block_inputs_close(oct_block_inputs *b); /* b may be NULL */
/* Fills x of n values. The rounded model is the job with its current decisions. Positions at which attention_mask is 0
 * are left out. */
oct_status oct_block_inputs_take(oct_block_inputs *b, oct_block_input *group, size_t n, oct_err *err);

#endif
