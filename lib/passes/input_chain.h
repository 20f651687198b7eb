/* lib/passes/input_chain.h -- preprocessing that a model begins with: one chain of nodes behind an input that scale and shift its channels, put them in
 * the opposite order, and move them from the last dimension to dimension 1. */
#ifndef OCT_PASSES_INPUT_CHAIN_H
#define OCT_PASSES_INPUT_CHAIN_H

#include "graph/graph.h"

enum { OCT_CHAIN_CHANNELS = 4 };

/* What stands at the end of the chain is (x - mean[c]) / std[c] of channel c there, of rank 4 with channels in dimension 1. */
typedef struct oct_input_chain {
    int input, end; /* values */
    int n;          /* channels */
    double mean[OCT_CHAIN_CHANNELS], std[OCT_CHAIN_CHANNELS];
    bool last;      /* the input has its channels last */
    bool reversed;  /* the end has them in the opposite order */
} oct_input_chain;

/* The chain behind an input of float32, shapes being inferred; false: none, or no steps of the size that pixels need: where all means and stds are below
 * 2 the input holds other numbers. */
bool oct_input_chain_find(const oct_graph *g, int input, oct_input_chain *c);

/* Whether an input of uint8 is read by one Cast to float32 alone, behind which such a chain begins. */
bool oct_input_chain_of_bytes(const oct_graph *g, int input);
/* Makes such an input one of float32, without the Cast. */
oct_status oct_input_chain_widen(oct_graph *g, int input, oct_err *err);

/* Puts one Sub and one Div for all channels in the place of the chain, behind a Transpose where channels were last: the end, which keeps its name, is
 * (x - zero) / std. The order of channels is that of the input then. */
oct_status oct_input_chain_replace(oct_graph *g, const oct_input_chain *c, float zero, float std, oct_err *err);
/* Takes away what is left of these two between an input and the end, so that the input holds what the end held. */
oct_status oct_input_chain_drop(oct_graph *g, const char *input, const char *end, oct_err *err);

#endif
