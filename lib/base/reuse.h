/* lib/base/reuse.h -- a cache of freed large blocks, because new pages from the system often cost more than the work
 * that is done with them. Used by mem.c only; any thread.
 *
 * Blocks in use and cached blocks together never exceed the largest amount that was in use at a time, so the cache does
 * not raise the peak memory of a program. */
#ifndef OCT_BASE_REUSE_H
#define OCT_BASE_REUSE_H

#include "base/status.h"

/* Blocks below this size are left to the heap. */
enum { OCT_REUSE_LEAST = 256 << 10 };

/* A block of at least `size` bytes, a multiple of 64 from OCT_REUSE_LEAST on, aligned to 64 bytes; NULL: no memory. */
void *oct_reuse_alloc(size_t size);
/* Takes a block that any function of the heap returned, and caches or frees it. */
void oct_reuse_free(void *p);

#endif
