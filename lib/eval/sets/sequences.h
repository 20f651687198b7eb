/* lib/eval/sets/sequences.h -- a label for each place of a sample, or a text. */
#ifndef OCT_EVAL_SEQUENCES_H
#define OCT_EVAL_SEQUENCES_H

#include "eval/sets/classes.h"

/* The truth has labels or a text for each sample. The output has scores [L,C] for each place, or the labels themselves,
 * [L]. */
extern const oct_set_type oct_set_of_sequences;

/* Labels: the mean of F1 over those that occur in the truth or were found; labels below 0 in the truth do not count,
 * nor does the tag O. */
double oct_sequences_token_f1(const oct_set *s, const double *draws, double *scratch);
/* Entities by tags such as B-PER, as conlleval and seqeval find them: F1 of all together. */
double oct_sequences_entity_f1(const oct_set *s, const double *draws, double *scratch);
/* Edits (substituted, inserted and left out) per word or character of the truth. */
double oct_sequences_wer(const oct_set *s, const double *draws, double *scratch);
double oct_sequences_cer(const oct_set *s, const double *draws, double *scratch);

/* Precision, recall and F1 of each label. In arena. */
oct_status oct_sequences_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err);

#endif
