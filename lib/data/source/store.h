/* lib/data/source/store.h -- keeps undecoded samples of a stream until its end, when it is known which are chosen.
 * Private to lib/data.
 *
 * The samples whose places have the smallest hashes are kept. This criterion does not depend on the length of the
 * stream, so one pass with bounded memory is enough. */
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
    oct_kept *v; /* while it is filled, a heap with the largest hash on top; afterwards sorted by index */
    size_t n, cap, room, bytes, bound;
    size_t n_inputs;
} oct_store;

/* room: maximum number of samples, at least 1; bound: maximum number of bytes, but one sample always fits. */
void oct_store_open(oct_store *s, size_t n_inputs, size_t room, size_t bound);
void oct_store_free(oct_store *s);
/* Whether a sample with this hash would be kept now. */
bool oct_store_wants(const oct_store *s, uint64_t hash);
/* Adds a sample. hash: oct_seeded_hash of index, or 0 for one that must be kept. Takes the contents of item and leaves
 * it empty, with new parts. Drops samples that no longer fit, and from then on keeps no more samples than are left.
 * fault: why the sample is broken, or NULL. */
oct_status oct_store_add(oct_store *s, uint64_t hash, int64_t index, oct_item *item, const oct_err *fault,
                         oct_err *err);
/* Marks the n_chosen samples with the smallest hashes as chosen, and orders all by index. */
void oct_store_close(oct_store *s, int64_t n_chosen);
/* A copy whose arrays are views into the store. */
oct_status oct_store_view(const oct_store *s, size_t i, oct_item *item, oct_err *err);

#endif
