/* lib/data/arrays/shard_writer.h -- samples as tar shards (WebDataset): NNNNNN.jpg or another suffix, and NNNNNN.cls
 * for a label. */
#ifndef OCT_DATA_SHARD_WRITER_H
#define OCT_DATA_SHARD_WRITER_H

#include "base/progress.h"
#include "base/status.h"

#include <stdint.h>

typedef struct oct_pack_options {
    const char *const *specs; /* n_specs, as in oct_source_options; each sample is one tensor */
    size_t n_specs;
    const char *prefix;       /* shards are PREFIX-000000.tar and so on */
    int64_t count;            /* maximum number of samples in a shard; 0: no limit */
    int64_t size;             /* number of bytes at which a shard is full; 0: no limit */
    oct_progress_fn progress; /* may be NULL */
    void *progress_arg;
} oct_pack_options;

/* Copies the files of samples as they are, rows of arrays as .npy, in their order, numbered from 0. The bytes depend on
 * the samples alone: no time, no owner. A shard takes its name when it is complete; when a later one fails, all are
 * removed. *samples and *shards: how many were written. OCT_EUSAGE      there are such shards already, or what
 * oct_source_open says of specs OCT_EIO, OCT_EMALFORMED, OCT_EUNSUPPORTED  a sample that cannot be read, named; no
 * sample at all */
oct_status oct_pack(const oct_pack_options *o, int64_t *samples, int64_t *shards, oct_err *err);

#endif
