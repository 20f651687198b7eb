/* lib/quant/inputs/input_fold.h -- makes the preprocessing of pixels, (x - mean) / std and the order of channels, a
 * part of a float model.
 *
 * The model then reads p = (pixel - zero) / std, with one std and one integer zero for all channels, so that a byte
 * represents p exactly. If the steps have this form already, the model is not changed. Otherwise the convolutions that
 * read the input absorb the differences between channels: in their weights, in their biases, and in their padding. A
 * Pad of each channel with its own mean replaces the zeros around the normalised picture. Between the input and the
 * convolutions there may be nodes that only move pixels: Transpose, and Pad, whose value becomes the pixel that stands
 * for it. */
#ifndef OCT_QUANT_INPUT_FOLD_H
#define OCT_QUANT_INPUT_FOLD_H

#include "data/pictures/preprocess.h"
#include "graph/graph.h"

/* dB: how much folding may cost. It is measured at each output if possible; otherwise it is estimated at the first
 * layer by the formulas of uniform rounding */
#define OCT_FOLD_LOSS 0.5

typedef struct oct_input_fold {
    const char *why_not; /* the reason why the graph and the steps were not changed; NULL: they were folded */
    bool exact;   /* the layers that read the pixels are rounded as those that read the float model's own input */
    float std;    /* one std for all channels */
    int32_t zero; /* 0..255 */
    int *reads; /* values with such numbers: what the convolutions read, or the input itself, and all that moving nodes
                   read and make; in g's arena */
    size_t n_reads;
} oct_input_fold;

/* Folds mean, std and order of s, all of which must be set, into the layers that read input v of g. channels: the
 * dimension of the channels. s is reduced to the remaining steps: one mean and std, and RGB. If folding changes how
 * layers are rounded, *before becomes g as it was (cloned if *before is NULL), with nodes that compute the former input
 * from the new one; the caller destroys it, also after a failure. before NULL: v is not an input, and the caller adapts
 * what computes it. not_so: a reason not to fold, or NULL. */
oct_status oct_input_fold_steps(oct_graph *g, int v, int channels, oct_steps *s, const char *not_so, oct_graph **before,
                                oct_input_fold *f, oct_err *err);

#endif
