/* lib/ops/core/waiting.h -- constants of float32 whose numbers still stand as 16-bit floats.
 *
 * A model of 16-bit floats is read as float32. Written out at once, its large matrices would take twice the room of the
 * model, although each is read once, to be rounded. So they wait (passes/to_float32.h), and are read part by part. */
#ifndef OCT_OPS_WAITING_H
#define OCT_OPS_WAITING_H

#include "ops/core/elem.h"

/* Whether the numbers of a constant can be read, at data or by oct_floats_load. */
bool oct_has_floats(const oct_tensor *t);
/* n numbers of a constant of float32, the first at [offset], `stride` apart; n is at most that of a chunk unless they
 * stand at data, next to each other. Returns a pointer to them, or buf, filled. */
const float *oct_floats_load(const oct_tensor *t, int64_t offset, int64_t stride, int64_t n, oct_chunk *buf);
/* Writes numbers that wait to data, in memory of the arena. */
oct_status oct_floats_make(oct_arena *a, const oct_tensor *t, oct_err *err);

#endif
