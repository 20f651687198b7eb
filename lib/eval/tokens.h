/* lib/eval/tokens.h -- finds the token that the logits of a language model predict at each position. Private to lib/eval. */
#ifndef OCT_EVAL_TOKENS_H
#define OCT_EVAL_TOKENS_H

#include "data/data.h"

/* Logits have the shape [N, L, V]. The ids are the input `input_ids`, or else the first integer input with shape [N, L]. The mask is the input
 * `attention_mask`, if its shape is [N, L]. */
typedef struct oct_tokens {
    /* [N][L]: the id at the next position. It is -1 at the last position, where the id is negative, and where the mask of one of the two positions is 0 */
    int64_t *next;
    size_t length;  /* L; 0: the outputs are not about tokens */
    int64_t *made;  /* memory for ids and masks */
    size_t cap;
} oct_tokens;

/* Finds them for a batch. rank, dims: the shape of the logits. OCT_EMALFORMED: an id is V or more. */
oct_status oct_tokens_take(oct_tokens *t, const oct_input_desc *inputs, const oct_batch *b, int rank, const int64_t *dims, oct_err *err);
void oct_tokens_free(oct_tokens *t);

#endif
