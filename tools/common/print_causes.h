/* tools/common/print_causes.h -- prints the cost of rounding each value and each layer. */
#ifndef OCT_TOOLS_PRINT_CAUSES_H
#define OCT_TOOLS_PRINT_CAUSES_H

#include "base/document.h"
#include "base/status.h"

#include <stdio.h>

/* Prints the member `sensitivity` of a report as a table with bars. every: all rows, not only the worst ones. Prints
 * nothing if nothing was measured. */
oct_status tool_print_causes(const oct_item *x, bool every, FILE *f, oct_err *err);

#endif
