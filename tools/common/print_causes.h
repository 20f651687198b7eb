/* tools/common/print_causes.h -- what rounding each value and each layer costs, for people and for machines. */
#ifndef OCT_TOOLS_PRINT_CAUSES_H
#define OCT_TOOLS_PRINT_CAUSES_H

#include "base/json.h"
#include "quant/convert.h"

#include <stdio.h>

/* A table with bars; every: all rows, not only the worst. Nothing where nothing was measured. */
oct_status tool_print_causes(const oct_causes *x, bool every, FILE *f, oct_err *err);
/* The member `sensitivity` of the object that is open; none where nothing was measured. */
void tool_json_causes(oct_json *j, const oct_causes *x);

#endif
