/* lib/data/source/sample_sum.h -- a digest of the set of samples that were given. It does not depend on passes or
 * order.
 *
 * SHA-256 of a sample's place in the data and of its arrays, as the model reads them, is expanded to 1024 numbers of 16
 * bits. These are added up over all samples, each counted once (LtHash: Bellare and Micciancio 1997, Lewi and others
 * 2019). So memory grows by one bit for each sample only. The digest of the set is SHA-256 of the sums. */
#ifndef OCT_DATA_SAMPLE_SUM_H
#define OCT_DATA_SAMPLE_SUM_H

#include "base/array.h"
#include "base/sha256.h"
#include "base/status.h"

enum { OCT_SAMPLE_LANES = 1024 };

typedef struct oct_sample_sum {
    uint64_t n; /* samples */
    uint16_t lane[OCT_SAMPLE_LANES];
    uint64_t *seen; /* a bit a place */
    size_t words;
} oct_sample_sum;

/* Adds the sample at a place (from 0), of n arrays, unless it was added before. OCT_ENOMEM. */
oct_status oct_sample_sum_add(oct_sample_sum *s, int64_t place, const oct_array *arrays, size_t n, oct_err *err);
void oct_sample_sum_digest(const oct_sample_sum *s, unsigned char digest[OCT_SHA256_BYTES]);
void oct_sample_sum_free(oct_sample_sum *s);

#endif
