/* lib/twins/twin_broadcast.h -- walks over a result whose operands may be repeated along axes. */
#ifndef OCT_TWINS_TWIN_BROADCAST_H
#define OCT_TWINS_TWIN_BROADCAST_H

#include "twins/twin_int.h"

/* from[i]: the element of the operand that element i of the result is made of; in scratch. Fails where shapes do not
 * fit. */
oct_status oct_twin_repeat(const oct_twin_call *c, const oct_twin_tensor *operand, const int64_t **from, oct_err *err);

#endif
