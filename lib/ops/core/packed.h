/* lib/ops/core/packed.h -- packed weights that are shared by plans.
 *
 * Several plans of one model pack the same bytes: plans of two threads that calibrate, or of candidates that differ
 * only in their activations. Equal packed weights are kept once in the process, as long as a plan refers to them. */
#ifndef OCT_OPS_PACKED_H
#define OCT_OPS_PACKED_H

#include "ops/op.h"

/* The references of one plan; to be zeroed at first. */
typedef struct oct_packed_refs {
    struct oct_packed_ref *first;
    size_t bytes; /* bytes of all weights it refers to, shared or not */
} oct_packed_refs;

/* To be called in prepare: memory to pack `size` bytes into, aligned to 64; NULL: out of memory. */
void *oct_packed_new(const oct_prep *p, size_t size);
/* To be called when that memory is filled: returns the final address of the bytes, which must not be changed any more.
 */
void *oct_packed_done(const oct_prep *p, void *packed, size_t size);

/* Drops all references of a plan. */
void oct_packed_release(oct_packed_refs *refs);

#endif
