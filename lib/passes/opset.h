/* lib/passes/opset.h -- raising a graph to a newer opset of the default domain. */
#ifndef OCT_PASSES_OPSET_H
#define OCT_PASSES_OPSET_H

#include "passes/pass.h"

/* Rewrites every node step by step (op->raise) until the opset of the default domain is `target`. Does nothing if the
 * opset is at least that. OCT_EUNSUPPORTED names a node whose operator has no record, because it might have changed.
 * The graph may then be changed in part, and must be dropped. */
oct_status oct_raise_opset(oct_graph *g, int64_t target, oct_err *err);

/* Raises the nodes from position `at` of the order up to node `until` (-1: to the end) from one opset to another one,
 * which the graph has already. This is for nodes that were copied from elsewhere. */
oct_status oct_raise_part(oct_graph *g, size_t at, int until, int64_t from, int64_t to, oct_err *err);
/* Whether an operator of the default domain in opset `from` can be expressed in opset `to`: by raising it, or, if `to`
 * is older, because it did not change in between. */
bool oct_opset_same(const char *op, int64_t from, int64_t to);

#endif
