/* lib/eval/parts/kept_outputs.h -- the outputs of a reference model, kept by sample, so that several evaluations over
 * the same samples run it once. */
#ifndef OCT_EVAL_KEPT_OUTPUTS_H
#define OCT_EVAL_KEPT_OUTPUTS_H

#include "base/mem.h"
#include "ops/op.h"

/* Type and shape of each output, and its values as f32. */
typedef struct oct_kept_sample oct_kept_sample;
struct oct_kept_sample {
    int64_t index;
    size_t n;             /* outputs */
    oct_operand *operand; /* [n]; without data */
    float **v;            /* [n][operand.count] */
    oct_kept_sample *next;
};

typedef struct oct_kept_outputs oct_kept_outputs;
/* limit: bytes. Samples beyond it are not kept, so that the model runs on them again. NULL: no memory. */
oct_kept_outputs *oct_kept_create(size_t limit);
void oct_kept_destroy(oct_kept_outputs *k); /* NULL allowed */
/* Call it when the model, or what samples consist of, has changed: all that was kept is released. */
void oct_kept_forget(oct_kept_outputs *k);

/* What is kept of the sample with this position in the stream (oct_batch.indices); NULL: nothing. */
const oct_kept_sample *oct_kept_find(const oct_kept_outputs *k, int64_t index);
/* Keeps copies of the outputs of a sample of which nothing is kept, if the limit allows. OCT_ENOMEM. */
oct_status oct_kept_add(oct_kept_outputs *k, int64_t index, const oct_operand *operand, float *const *v, size_t n,
                        oct_err *err);

/* How often the model ran on a sample since all began, and how often outputs that were kept took the place of a run. */
typedef struct oct_kept_count {
    uint64_t runs, taken;
} oct_kept_count;
oct_kept_count *oct_kept_counted(oct_kept_outputs *k);

#endif
