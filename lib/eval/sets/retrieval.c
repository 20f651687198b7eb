/* Ranks of relevant documents, query by query. */
#include "eval/sets/retrieval.h"

#include "base/mem.h"
#include "eval/sets/judging.h"
#include "eval/sets/similarity_int.h"

#include <math.h>
#include <stdlib.h>

/* A relevant document of a query. */
typedef struct hit {
    uint32_t rank; /* from 1 */
    double gain;
} hit;

typedef struct query {
    size_t first, n; /* its hits */
} query;

typedef struct retrieval {
    oct_pairs pairs; /* the embeddings; pairs.base.n is the number of queries */
    query *q;
    hit *hit;
    size_t n_hit, cap_q, cap_hit;
} retrieval;

static int by_index(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_query(const void *a, const void *b)
{
    const oct_truth_pair *x = a, *y = b;
    return x->a != y->a ? (x->a > y->a) - (x->a < y->a) : (x->b > y->b) - (x->b < y->b);
}

/* The distinct documents that came, in order: *document is to be released with oct_free. */
static oct_status find_documents(const oct_pairs *p, const oct_truth_pair *t, size_t n, const oct_embedding ***document,
                                 size_t *n_documents, oct_err *err)
{
    int64_t *b = oct_calloc(n + 1, sizeof *b);
    *document = oct_calloc(n + 1, sizeof **document);
    *n_documents = 0;
    if (!b || !*document) {
        oct_free(b);
        return oct_nomem(err);
    }
    for (size_t i = 0; i < n; i++)
        b[i] = t[i].b;
    qsort(b, n, sizeof *b, by_index);
    for (size_t i = 0; i < n; i++) {
        const oct_embedding *e = i && b[i] == b[i - 1] ? NULL : oct_pairs_kept(p, b[i]);
        if (e)
            (*document)[(*n_documents)++] = e;
    }
    oct_free(b);
    return OCT_OK;
}

/* The rank of a document: how many others are nearer, of equally near ones those with smaller positions. NaN is
 * farthest. */
static uint32_t rank_of(const double *near, const oct_embedding *const *document, size_t n, size_t at, int64_t self)
{
    uint32_t rank = 1;
    const double mine = isnan(near[at]) ? -INFINITY : near[at];
    for (size_t i = 0; i < n; i++) {
        const double other = isnan(near[i]) ? -INFINITY : near[i];
        rank += document[i]->index != self && (other > mine || (other == mine && i < at));
    }
    return rank;
}

static oct_status add_hit(retrieval *r, uint32_t rank, double gain, oct_err *err)
{
    if (!OCT_SET_GROW(r->hit, r->n_hit, r->cap_hit))
        return oct_nomem(err);
    r->hit[r->n_hit++] = (hit){ rank, gain };
    return OCT_OK;
}

/* t[n]: the pairs of one query, by document. near: room for its cosines. */
static oct_status add_query(retrieval *r, const oct_truth_pair *t, size_t n, const oct_embedding *const *document,
                            size_t n_documents, double *near, oct_err *err)
{
    const oct_embedding *e = oct_pairs_kept(&r->pairs, t->a);
    const query q = { .first = r->n_hit };
    for (size_t i = 0; e && i < n_documents; i++)
        near[i] = oct_embedding_cosine(e, document[i]);
    for (size_t i = 0, d = 0; e && i < n; i++) {
        while (d < n_documents && document[d]->index < t[i].b)
            d++;
        if (d < n_documents && document[d]->index == t[i].b && t[i].score > 0 && t[i].b != t[i].a &&
            (i == 0 || t[i].b != t[i - 1].b))
            OCT_TRY(add_hit(r, rank_of(near, document, n_documents, d, t->a), t[i].score, err));
    }
    if (r->n_hit == q.first)
        return OCT_OK;
    if (!OCT_SET_GROW(r->q, r->pairs.base.n, r->cap_q))
        return oct_nomem(err);
    r->q[r->pairs.base.n++] = (query){ q.first, r->n_hit - q.first };
    return OCT_OK;
}

static oct_status finish(oct_set *s, oct_err *err)
{
    retrieval *r = (retrieval *)s;
    size_t n, n_documents = 0;
    const oct_truth_pair *given = oct_truth_pairs(s->judging->truth, &n);
    const oct_embedding **document = NULL;
    oct_truth_pair *t = oct_calloc(n + 1, sizeof *t);
    double *near = NULL;
    oct_status st = t ? find_documents(&r->pairs, given, n, &document, &n_documents, err) : oct_nomem(err);
    if (st == OCT_OK && !(near = oct_calloc(n_documents + 1, sizeof *near)))
        st = oct_nomem(err);
    for (size_t i = 0; t && i < n; i++)
        t[i] = given[i];
    if (st == OCT_OK)
        qsort(t, n, sizeof *t, by_query);
    for (size_t i = 0, end; i < n && st == OCT_OK; i = end) {
        for (end = i + 1; end < n && t[end].a == t[i].a; end++)
            ;
        st = add_query(r, t + i, end - i, document, n_documents, near, err);
    }
    oct_free(near);
    oct_free(t);
    oct_free(document);
    if (st == OCT_OK && !s->n)
        st = oct_fail(err, OCT_EMALFORMED, "%s: no query and relevant document are both among the samples",
                      oct_truth_path(s->judging->truth));
    return st;
}

static void release(oct_set *s)
{
    retrieval *r = (retrieval *)s;
    oct_pairs_release(s);
    oct_free(r->q);
    oct_free(r->hit);
}

const oct_set_type oct_set_of_retrieval = { sizeof(retrieval), oct_pairs_add,  finish,
                                            release,           oct_pairs_save, oct_pairs_load };

/* ---- values ---- */

typedef double (*of_query)(const hit *h, size_t n, size_t k);

static double mean(const oct_set *s, const double *draws, of_query value, size_t k)
{
    const retrieval *r = (const retrieval *)s;
    double sum = 0, n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const double w = draws ? draws[i] : 1;
        if (w > 0)
            sum += w * value(r->hit + r->q[i].first, r->q[i].n, k);
        n += w;
    }
    return n > 0 ? sum / n : NAN;
}

static double recall(const hit *h, size_t n, size_t k)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += h[i].rank <= k;
    return (double)found / (double)n;
}

static double ndcg(const hit *h, size_t n, size_t k)
{
    double got = 0, best = 0;
    for (size_t i = 0; i < n; i++) {
        size_t place = 1; /* in the best order */
        for (size_t o = 0; o < n; o++)
            place += h[o].gain > h[i].gain || (h[o].gain == h[i].gain && o < i);
        got += h[i].rank <= k ? h[i].gain / log2(1 + (double)h[i].rank) : 0;
        best += place <= k ? h[i].gain / log2(1 + (double)place) : 0;
    }
    return best > 0 ? got / best : 0;
}

static double reciprocal(const hit *h, size_t n, size_t k)
{
    uint32_t first = h[0].rank;
    for (size_t i = 1; i < n; i++)
        first = h[i].rank < first ? h[i].rank : first;
    return 1.0 / first;
}

/* A metric's function has no argument for how many documents count. */
#define FIRST(name, value, k)                                                           \
    double oct_retrieval_##name(const oct_set *s, const double *draws, double *scratch) \
    {                                                                                   \
        return mean(s, draws, value, k);                                                \
    }
FIRST(recall_1, recall, 1)
FIRST(recall_5, recall, 5)
FIRST(recall_10, recall, 10)
FIRST(recall_100, recall, 100)
FIRST(ndcg_10, ndcg, 10)
FIRST(ndcg_100, ndcg, 100)
FIRST(mrr, reciprocal, 0)
