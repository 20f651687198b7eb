/* lib/ops/attention/merged.h -- what the attention operators of com.microsoft share: integer masks, and a past of keys
 * and values. */
#ifndef OCT_OPS_MERGED_H
#define OCT_OPS_MERGED_H

#include "ops/attention/attention.h"

/* Integer masks: lengths of the samples (and starts), or a number for each key that is 0 if it is masked; masked scores
 * get mask_filter_value. */
typedef struct oct_merged_mask {
    oct_operand keys; /* bool [batch][1][1 or rows][total], or rank 0 */
    bool lengths, starts;
    size_t keys_at, lengths_at, starts_at;
} oct_merged_mask;

typedef struct oct_merged {
    oct_attn a;
    oct_merged_mask mask;
    oct_heads past_k, past_v;
    size_t offset_at, k_at, v_at; /* scratch: joined keys and values unless they are outputs */
} oct_merged;

/* An input or output of a step; NULL: absent. */
static inline const oct_operand *oct_input_of(const oct_step *s, int slot)
{
    return slot >= 0 && slot < s->n_in ? s->in[slot] : NULL;
}

static inline const oct_operand *oct_output_of(const oct_step *s, int slot)
{
    return slot < s->n_out ? s->out[slot] : NULL;
}

/* Attribute num_heads; OCT_EMALFORMED where it is missing or below 1. */
oct_status oct_merged_heads(const oct_node *n, int64_t *heads, oct_err *err);

/* Plans the attention t->a, with a mask and a bias for the scores (NULL: none). Takes memory from the end of a scratch
 * of *scratch bytes, which begins with that of the attention. */
oct_status oct_merged_prepare(oct_merged *t, const oct_operand *mask, const oct_operand *bias, size_t *scratch,
                              const oct_prep *p, oct_err *err);

/* Writes the past and then new keys or values to `to`. */
oct_attn_part oct_merged_join(const oct_run *r, const oct_heads *past, const oct_heads *fresh, void *to);

/* Sets all members of io except q, k, v, y and scores. keys must live as long as io. */
void oct_merged_io(const oct_merged *t, const oct_step *s, const oct_run *r, const oct_operand *mask,
                   const oct_operand *bias, oct_operand *keys, oct_attn_io *io);

#endif
