/* lib/eval/metrics/tokens.h -- finds the token that the logits of a language model predict at each position. Private to
 * lib/eval. */
#ifndef OCT_EVAL_TOKENS_H
#define OCT_EVAL_TOKENS_H

#include "data/data.h"
#include "graph/graph.h"

/* Logits have the shape [N, L, V]. The ids are an integer input with shape [N, L]: those of a decoder
 * (`decoder_input_ids`, or another name with "decoder" in it), if the model has any, because the logits of an
 * encoder-decoder are about these; else `input_ids`; else the one whose second dimension has the symbol of the logits'
 * second dimension; else the only one whose name is not that of masks, positions or types. The mask is the input
 * `attention_mask`, or `decoder_attention_mask` for the ids of a decoder, if its shape is [N, L]. */
typedef struct oct_tokens {
    /* [N][L]: the id at the next position. It is -1 at the last position, where the id is negative, and where the mask
     * of one of the two positions is 0 */
    int64_t *next;
    size_t length;    /* L; 0: the outputs are not about tokens */
    int64_t *present; /* [N][L]: 0 where the mask says that there is no token; valid while n_present is not 0 */
    size_t n_present, cap_present;
    int64_t *made; /* memory for ids and masks */
    size_t cap;
} oct_tokens;

/* Finds them for a batch. g: the model, for symbols of dimensions. rank, dims: the shape of the logits. asked: a metric
 * is about tokens alone; otherwise outputs that cannot be about these tokens (ids beyond V, several inputs that could
 * hold them) have none. OCT_EMALFORMED: an id is V or more. OCT_EUSAGE: several inputs could hold the ids. */
oct_status oct_tokens_take(oct_tokens *t, const oct_graph *g, const oct_input_desc *inputs, const oct_batch *b,
                           int rank, const int64_t *dims, bool asked, oct_err *err);
/* Finds which places of outputs [N, L, C] have a token: by the input `decoder_attention_mask` or `attention_mask` of
 * shape [N, L]. Without one, n_present is 0. */
oct_status oct_tokens_find_present(oct_tokens *t, const oct_input_desc *inputs, const oct_batch *b, int rank,
                                   const int64_t *dims, oct_err *err);
void oct_tokens_free(oct_tokens *t);

#endif
