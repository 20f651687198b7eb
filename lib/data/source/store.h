/* lib/data/source/store.h -- samples of a stream, as they were read, kept until its end shows which are chosen. Private
 * to lib/data.
 *
 * It keeps the samples whose places have the smallest hashes. Which these are does not depend on how long the stream
 * is, so one pass with bounded memory is enough. */
#ifndef OCT_DATA_STORE_H
#define OCT_DATA_STORE_H

#include "data/readers/readers.h"

typedef struct oct_kept {
    uint64_t hash;
    int64_t index;  /* in the stream */
    oct_err *fault; /* of a broken sample; else NULL */
    oct_item item;  /* arrays owned */
    size_t bytes;
    bool chosen;
} oct_kept;

typedef struct oct_store {
    oct_kept *v; /* a heap while it is filled, the largest hash on top; by index when it is closed */
    size_t n, cap, room, bytes, bound;
    size_t n_inputs;
} oct_store;

/* room: most samples, 1 or more; bound: most bytes, but one sample always fits. */
void oct_store_open(oct_store *s, size_t n_inputs, size_t room, size_t bound);
void oct_store_free(oct_store *s);
/* Whether a sample with this hash would be kept now. */
bool oct_store_wants(const oct_store *s, uint64_t hash);
/* Adds a sample. hash: oct_seeded_hash of index, or 0 for one that must be kept. Takes the contents of item and leaves
 * it empty, with new parts. Drops samples that no longer fit; from then on there is room only for as many as are left.
 * fault: why the sample is broken, or NULL. */
oct_status oct_store_add(oct_store *s, uint64_t hash, int64_t index, oct_item *item, const oct_err *fault,
                         oct_err *err);
/* Marks the n_chosen samples with the smallest hashes as chosen, and orders all by index. */
void oct_store_close(oct_store *s, int64_t n_chosen);
/* A copy whose arrays are views into the store. */
oct_status oct_store_view(const oct_store *s, size_t i, oct_item *item, oct_err *err);

#endif
