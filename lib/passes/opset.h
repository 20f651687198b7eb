/* lib/passes/opset.h -- raising a graph to a newer opset of the default domain. */
#ifndef OCT_PASSES_OPSET_H
#define OCT_PASSES_OPSET_H

#include "passes/pass.h"

/* Rewrites every node step by step (op->raise) until the default domain stands at `target`. No-op when it is there
 * already. OCT_EUNSUPPORTED names a node whose operator has no record (it might have changed) or that subgraphs
 * hide; the graph may then be partly changed and must be dropped. */
oct_status oct_raise_opset(oct_graph *g, int64_t target, oct_err *err);

#endif
