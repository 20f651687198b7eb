/* lib/eval/run/decoder_inputs.h -- what the inputs of a decoder are for, when it is run on one piece of a text after
 * the other: by names, types and symbols of dimensions. */
#ifndef OCT_EVAL_DECODER_INPUTS_H
#define OCT_EVAL_DECODER_INPUTS_H

#include "graph/graph.h"
#include "runtime/carry.h"

/* What becomes of an input from one piece to the next. */
typedef enum oct_input_turn {
    OCT_TURN_NONE,      /* it stays */
    OCT_TURN_STATE,     /* what the last run returned */
    OCT_TURN_IDS,       /* the next tokens */
    OCT_TURN_MASK,      /* it grows by the next tokens: it is of all tokens, those of the cache too */
    OCT_TURN_ALONG,     /* it is as long as the ids */
    OCT_TURN_POSITIONS, /* numbers that go on */
    OCT_TURN_FLAG       /* whether there is a cache */
} oct_input_turn;

/* Sets turn[i] for each input of g, of which n are states, and *ids. Returns how many inputs may hold the ids: if it is
 * not 1, *ids is one of them, if any, and turns other than states are not set. */
int oct_decoder_inputs(const oct_graph *g, const oct_state *states, size_t n, oct_input_turn *turn, size_t *ids);

/* Finds the states of a decoder among those of its inputs that name a past or a cache: the output of the same type and
 * rank whose name is the same without words such as "past", "present" and "new". Inputs of which no single output can
 * be the next content are left out. states holds `most`, of which *n are known already; inputs of these stay as they
 * are. OCT_EUNSUPPORTED: there are more. */
oct_status oct_cache_pairs(const oct_graph *g, oct_state *states, size_t most, size_t *n, oct_err *err);

#endif
