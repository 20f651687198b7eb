/* lib/eval/sets/retrieval.h -- documents found for queries: both are samples with embeddings, and the nearest document
 * by cosine is found first. */
#ifndef OCT_EVAL_RETRIEVAL_H
#define OCT_EVAL_RETRIEVAL_H

#include "eval/sets/sample_set.h"

/* Pairs of the truth say of query a that document b has a relevance (0: none). All samples that are some pair's b are
 * the documents; a query does not find itself. Queries without a relevant document do not count. */
extern const oct_set_type oct_set_of_retrieval;

/* Means over queries. Recall: the share of a query's relevant documents among the first k. Discounted cumulative gain:
 * relevances of the first k, each divided by log2(1 + rank), relative to the best order. Reciprocal rank: that of the
 * first relevant document. */
double oct_retrieval_recall_1(const oct_set *s, const double *draws, double *scratch);
double oct_retrieval_recall_5(const oct_set *s, const double *draws, double *scratch);
double oct_retrieval_recall_10(const oct_set *s, const double *draws, double *scratch);
double oct_retrieval_recall_100(const oct_set *s, const double *draws, double *scratch);
double oct_retrieval_ndcg_10(const oct_set *s, const double *draws, double *scratch);
double oct_retrieval_ndcg_100(const oct_set *s, const double *draws, double *scratch);
double oct_retrieval_mrr(const oct_set *s, const double *draws, double *scratch);

#endif
