/* lib/passes/input_chain.h -- preprocessing at the beginning of a model: a chain of nodes after an input that scale and
 * shift its channels, reverse their order, or move them from the last dimension to dimension 1. */
#ifndef OCT_PASSES_INPUT_CHAIN_H
#define OCT_PASSES_INPUT_CHAIN_H

#include "graph/graph.h"

enum { OCT_CHAIN_CHANNELS = 4 };

/* At the end of the chain, channel c is (x - mean[c]) / std[c]. The value has rank 4. */
typedef struct oct_input_chain {
    int input, end; /* the values at both ends */
    int n;          /* the number of channels */
    double mean[OCT_CHAIN_CHANNELS], std[OCT_CHAIN_CHANNELS];
    bool last;     /* the channels of the input are last */
    int axis;      /* the dimension of the channels at the end: 1, or 3 if they are last there, too */
    bool reversed; /* the chain reverses the order of the channels */
} oct_input_chain;

/* Finds the chain after a float32 input; shapes must have been inferred. False: there is none, or its numbers are too
 * small for pixels. If all means and stds are below 2, the input is not pixels. */
bool oct_input_chain_find(const oct_graph *g, int input, oct_input_chain *c);

/* Whether a uint8 input is read only by one Cast to float32, after which such a chain begins. */
bool oct_input_chain_of_bytes(const oct_graph *g, int input);
/* Changes such an input to float32 and removes the Cast. */
oct_status oct_input_chain_widen(oct_graph *g, int input, oct_err *err);

/* Replaces the chain by one Sub and one Div for all channels, after a Transpose if the chain has moved them. The end
 * keeps its name and becomes (x - zero) / std. The order of channels is then that of the input. */
oct_status oct_input_chain_replace(oct_graph *g, const oct_input_chain *c, float zero, float std, oct_err *err);
/* Removes these two nodes between an input and the end, so that the input holds what the end held. */
oct_status oct_input_chain_drop(oct_graph *g, const char *input, const char *end, oct_err *err);

#endif
