/* lib/eval/sets/similarity.h -- compares the similarity of embeddings of samples with given scores of pairs. */
#ifndef OCT_EVAL_SIMILARITY_H
#define OCT_EVAL_SIMILARITY_H

#include "eval/sets/sample_set.h"

extern const oct_set_type oct_set_of_pairs;

/* Correlations of the cosines of the pairs' embeddings with the scores. */
double oct_pairs_spearman(const oct_set *s, const double *draws, double *scratch);
double oct_pairs_pearson(const oct_set *s, const double *draws, double *scratch);

#endif
