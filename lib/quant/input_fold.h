/* lib/quant/input_fold.h -- preprocessing of pixels, (x - mean) / std and the order of channels, as part of a float model.
 *
 * What the model reads becomes p = (pixel - zero) / std with one std and a whole zero for all channels, so that a byte holds it exactly. Where the
 * steps have these already the model stays as it is. Else the convolutions that read the input take over what differs between channels: in their
 * weights, their biases, and where they pad, in a Pad of each channel with its own mean, which stands in for the zeros around the normalised picture. */
#ifndef OCT_QUANT_INPUT_FOLD_H
#define OCT_QUANT_INPUT_FOLD_H

#include "data/preprocess.h"
#include "graph/graph.h"

#define OCT_FOLD_LOSS 0.5 /* dB: what folding may cost, at each output where that is measured, else at the first layer by the rules of uniform rounding */

typedef struct oct_input_fold {
    const char *why_not; /* the graph and the steps stay as they were, because of this; NULL: folded */
    bool exact;          /* the layers that read the pixels round as those of the float model's own input do */
    float std;           /* one for all channels */
    int32_t zero;        /* 0..255 */
    int *reads;          /* values that hold such numbers and that the convolutions read, or the input; in g's arena */
    size_t n_reads;
} oct_input_fold;

/* Folds the mean, std and order of s, which are there, into what reads input v of g; channels: the dimension of the channels. s becomes the steps that are left:
 * one mean and std, RGB. Where that changes what is rounded, *before becomes (a clone, if it is NULL) g as it was, with nodes that make what the input held of
 * what it holds now; to be destroyed by the caller, also after a failure. before NULL: v is no input, and the caller sees to what makes it. not_so: why that is not wanted, or NULL. */
oct_status oct_input_fold_steps(oct_graph *g, int v, int channels, oct_steps *s, const char *not_so, oct_graph **before, oct_input_fold *f, oct_err *err);

#endif
