/* lib/eval/sets/similarity_int.h -- internals of lib/eval/sets: embeddings that are kept until all samples have come.
 */
#ifndef OCT_EVAL_SIMILARITY_INT_H
#define OCT_EVAL_SIMILARITY_INT_H

#include "eval/sets/sample_set.h"

typedef struct oct_embedding {
    int64_t index; /* the position of the sample */
    double *v;     /* [n] */
    size_t n;
} oct_embedding;

typedef struct oct_pairs {
    oct_set base;
    double *x, *y; /* [base.n]: cosines, and given scores */
    size_t cap_x, cap_y;
    uint32_t *by_x, *by_y; /* [base.n]: indices in ascending order */
    oct_embedding *kept;   /* by the positions of the samples */
    size_t n_kept, cap_kept;
} oct_pairs;

/* Those of the set of pairs; a set that begins with an oct_pairs, and is of another type, keeps all embeddings. */
oct_status oct_pairs_add(oct_set *s, const oct_set_view *v, oct_err *err);
void oct_pairs_release(oct_set *s);
void oct_pairs_save(oct_set *s, oct_buf *b);
oct_status oct_pairs_load(oct_set *s, struct oct_bytes *r, oct_err *err);

/* The embedding of a sample; NULL: it did not come. */
const oct_embedding *oct_pairs_kept(const oct_pairs *p, int64_t index);
double oct_embedding_cosine(const oct_embedding *a, const oct_embedding *b);

#endif
