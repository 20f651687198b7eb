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
 * states, and must not have delivered a sample. Results do not depend on threads. */
oct_status oct_follow(oct_source *src, const oct_graph *g, const oct_state *states, size_t n, oct_err *err);

#endif
