/* lib/base/reuse.h -- large blocks that were freed and wait to be used again: pages that the system hands out anew cost
 * more than most of what is done with them. For mem.c alone; any thread.
 *
 * Blocks in use and blocks that wait together never take more than the most that were in use at a time: so waiting adds
 * nothing to the peak of a program. */
#ifndef OCT_BASE_REUSE_H
#define OCT_BASE_REUSE_H

#include "base/status.h"

/* Blocks below this size are the heap's own affair. */
enum { OCT_REUSE_LEAST = 256 << 10 };

/* A block of at least `size` bytes, a multiple of 64 from OCT_REUSE_LEAST on, aligned to 64 bytes; NULL: no memory. */
void *oct_reuse_alloc(size_t size);
/* Takes a block of the heap, whichever function it is from, to wait or to be freed. */
void oct_reuse_free(void *p);

#endif
