/* lib/eval/tokens.h -- which token each position of a language model's logits foretells. Private to lib/eval. */
#ifndef OCT_EVAL_TOKENS_H
#define OCT_EVAL_TOKENS_H

#include "data/data.h"

/* Logits are [N, L, V]. The ids are the input of that name, `input_ids`, or else the first one of integers that is [N, L]; the mask is the input
 * `attention_mask`, where it is [N, L]. */
typedef struct oct_tokens {
    int64_t *next;  /* [N][L]: ids one position later, -1 at the last one, where it is negative, and where the mask of one of the two positions is 0 */
    size_t length;  /* L; 0: the outputs are not of tokens */
    int64_t *made;  /* room for ids and masks */
    size_t cap;
} oct_tokens;

/* Of a batch. rank, dims: of the logits. OCT_EMALFORMED: an id is V or more. */
oct_status oct_tokens_take(oct_tokens *t, const oct_input_desc *inputs, const oct_batch *b, int rank, const int64_t *dims, oct_err *err);
void oct_tokens_free(oct_tokens *t);

#endif
