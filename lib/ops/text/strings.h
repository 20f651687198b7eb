/* lib/ops/text/strings.h -- exec() on strings for operators of other families (op_string.c). */
#ifndef OCT_OPS_STRINGS_H
#define OCT_OPS_STRINGS_H

#include "ops/op.h"

/* Equal of strings, with broadcasting. */
oct_status oct_strings_equal(oct_exec *x, oct_err *err);
/* Cast and CastLike from and to strings. Numbers become the shortest decimal that reads back as the same number, "NaN",
 * "INF" or
 * "-INF"; what is read is such a number, in any case of letters; OCT_EMALFORMED when it is none. */
oct_status oct_strings_cast(oct_exec *x, oct_err *err);

#endif
