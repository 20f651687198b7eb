/* lib/eval/follow.h -- states of samples as a model leaves them: each sample gets what the one before it makes. */
#ifndef OCT_EVAL_FOLLOW_H
#define OCT_EVAL_FOLLOW_H

#include "data/data.h"
#include "graph/graph.h"
#include "runtime/carry.h"

/* Runs g over all samples of src, one by one and in order, and fills the states of each with the outputs of the one before. So samples are complete, and whoever
 * takes them may run them in any order. Samples that are not given are run, too. g is copied; its constants must outlive the source, which
 * has been opened with these inputs as its states and must not have given a sample yet. Results do not depend on threads. */
oct_status oct_follow(oct_source *src, const oct_graph *g, const oct_state *states, size_t n, oct_err *err);

#endif
