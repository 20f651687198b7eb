/* lib/eval/run/follow.h -- computes the states of recorded samples: each sample gets the states that the model returned
 * for the previous one. */
#ifndef OCT_EVAL_FOLLOW_H
#define OCT_EVAL_FOLLOW_H

#include "data/data.h"
#include "graph/graph.h"
#include "runtime/carry.h"

/* Runs g over all samples of src, one by one and in order, and sets the states of each sample to the outputs for the
 * previous one. The samples are then complete and can be run in any order. Samples that are not delivered are run as
 * well. g is copied; its constants must outlive the source. The source must have been opened with these inputs as its
 * states, and must not have delivered a sample. inputs: those that the source was opened with, for
 * oct_lengthen_masks; NULL: masks stay. Results do not depend on threads. */
oct_status oct_follow(oct_source *src, const oct_graph *g, const oct_state *states, size_t n,
                      const oct_input_desc *inputs, oct_err *err);

/* For a source whose states are set elsewhere: masks and positions of its samples fit a cache among the states, which
 * holds the tokens of the samples before. A mask that is as long as the ids gets a 1 for each token in the cache,
 * unless the model gives both one symbol; positions 0, 1, 2, ... go on from there. Does nothing for other models.
 * OCT_ENOMEM.
 */
oct_status oct_lengthen_masks(oct_source *src, const oct_graph *g, const oct_state *states, size_t n,
                              const oct_input_desc *inputs, oct_err *err);

#endif
