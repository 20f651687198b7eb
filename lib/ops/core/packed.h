/* lib/ops/core/packed.h -- packed weights, which plans share.
 *
 * Plans of one model pack the same bytes again: those of two threads that calibrate, those of candidates that differ in their
 * activations alone. What turns out to be equal is kept once for the process, for as long as a plan holds it. */
#ifndef OCT_OPS_PACKED_H
#define OCT_OPS_PACKED_H

#include "ops/op.h"

/* What one plan holds; zeroed at first. */
typedef struct oct_packed_refs {
    struct oct_packed_ref *first;
    size_t bytes; /* of all that it holds, shared or not */
} oct_packed_refs;

/* In prepare: memory to pack `size` bytes into, aligned to 64; NULL: no memory. */
void *oct_packed_new(const oct_prep *p, size_t size);
/* Once, when it is filled: where the bytes are from now on. Nobody may change them any more. */
void *oct_packed_done(const oct_prep *p, void *packed, size_t size);

/* Gives up all that a plan holds. */
void oct_packed_release(oct_packed_refs *refs);

#endif
