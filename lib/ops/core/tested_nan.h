/* lib/ops/core/tested_nan.h -- values whose NaN the model itself tests for or replaces.
 *
 * A softmax of a row that a mask hides as a whole is NaN; exporters put IsNaN and Where behind it. Tables with gaps
 * reach an Imputer or trees. NaN in such a value is a result like others, and everywhere else a fault of the sample. */
#ifndef OCT_OPS_TESTED_NAN_H
#define OCT_OPS_TESTED_NAN_H

#include "graph/graph.h"

/* Whether all that reads a value, or what only moves its elements, takes NaN: a Where does which puts something else in
 * the place of each NaN. */
bool oct_tests_nan(const oct_graph *g, int value);

#endif
