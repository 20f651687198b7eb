/* Embeddings, and the cosines of pairs. For consecutive pairs one embedding is kept at a time; for listed pairs all
 * are. */
#include "eval/sets/similarity.h"

#include "eval/sets/similarity_int.h"

#include "eval/metrics/correlation.h"
#include "eval/sets/judging.h"
#include "base/bytes.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- embeddings ---- */

/* The mask of the sample's tokens: 1 if a token counts. NULL: all count. Memory for it: made, s64[length]. */
static oct_status read_mask(const oct_set_view *v, int64_t length, int64_t *made, const int64_t **mask, oct_err *err)
{
    *mask = NULL;
    for (size_t i = 0; i < v->batch->n_tensors; i++) {
        const oct_array *a = &v->batch->tensors[i];
        if (strcmp(v->inputs[i].name, "attention_mask") != 0)
            continue;
        const size_t bytes = (size_t)oct_dtype_bits(a->dtype) / 8, row = v->rows > 0 ? v->row : 0;
        if (a->rank != 2 || a->dims[1] != length)
            return OCT_OK;
        OCT_TRY(oct_array_convert(a->dtype, (const char *)a->data + row * (size_t)length * bytes, OCT_S64, made,
                                  (size_t)length, err));
        *mask = made;
    }
    return OCT_OK;
}

/* The mean of the rows of t that the mask keeps. */
static oct_status mean_rows(const oct_set_view *v, const oct_set_tensor *t, double *e, oct_err *err)
{
    const size_t length = (size_t)t->dims[0], n = (size_t)t->dims[1];
    const int64_t *mask;
    int64_t *made = oct_calloc(length + 1, sizeof *made);
    double counted = 0;
    if (!made)
        return oct_nomem(err);
    const oct_status s = read_mask(v, t->dims[0], made, &mask, err);
    for (size_t i = 0; i < length && s == OCT_OK; i++) {
        if (mask && !mask[i])
            continue;
        counted++;
        for (size_t k = 0; k < n; k++)
            e[k] += t->v[i * n + k];
    }
    for (size_t k = 0; k < n && counted > 0; k++)
        e[k] /= counted;
    oct_free(made);
    return s;
}

static oct_status make_embedding(const oct_set *s, const oct_set_view *v, oct_embedding *e, oct_err *err)
{
    const oct_decode *r = s->judging->rule;
    const oct_set_tensor *t;
    const int rank = r->pooling == OCT_POOL_NONE ? 1 : 2;
    OCT_TRY(oct_output_find(&r->output, rank, v->out, v->n_out, &t, err));
    if (t->rank != rank) {
        oct_fail(err, OCT_EUSAGE, "output '%s' has %d dimensions for a sample, and %d are embedded so", t->name,
                 t->rank, rank);
        oct_hint(err, "pooling=mean and pooling=cls take tokens, [L,D]; pooling=none takes an embedding, [D]");
        return OCT_EUSAGE;
    }
    e->index = v->index;
    e->n = (size_t)t->dims[rank - 1];
    if (!(e->v = oct_calloc(e->n + 1, sizeof *e->v)))
        return oct_nomem(err);
    if (r->pooling == OCT_POOL_MEAN)
        return mean_rows(v, t, e->v, err);
    for (size_t i = 0; i < e->n && (rank == 1 || t->dims[0] > 0); i++)
        e->v[i] = t->v[i];
    return OCT_OK;
}

double oct_embedding_cosine(const oct_embedding *a, const oct_embedding *b)
{
    double aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        aa += a->v[i] * a->v[i];
        bb += b->v[i] * b->v[i];
        ab += a->v[i] * b->v[i];
    }
    const double norm = sqrt(aa) * sqrt(bb);
    return ab / (norm > 1e-12 ? norm : 1e-12);
}

/* ---- the set ---- */

static oct_status add_pair(oct_pairs *p, const oct_embedding *a, const oct_embedding *b, double score, oct_err *err)
{
    if (!OCT_SET_GROW(p->x, p->base.n, p->cap_x) || !OCT_SET_GROW(p->y, p->base.n, p->cap_y))
        return oct_nomem(err);
    const double c = oct_embedding_cosine(a, b);
    p->x[p->base.n] = isnan(c) ? 0 : c;
    p->y[p->base.n++] = score;
    return OCT_OK;
}

static void drop_kept(oct_pairs *p)
{
    while (p->n_kept)
        oct_free(p->kept[--p->n_kept].v);
}

/* Joins the second half of a pair, which came last, with the first. */
static oct_status join_last(oct_pairs *p, oct_err *err)
{
    size_t n;
    const oct_truth *t = p->base.judging->truth;
    const oct_truth_pair *truth = oct_truth_pairs(t, &n);
    const oct_embedding *e = &p->kept[p->n_kept - 1];
    oct_status st = OCT_OK;
    if (!oct_truth_consecutive(t) || p->base.type != &oct_set_of_pairs)
        return OCT_OK;
    if (p->n_kept == 2 && e->index % 2 && e[-1].index == e->index - 1) {
        if ((uint64_t)e->index / 2 >= n)
            st = oct_fail(err, OCT_EMALFORMED, "%s: %zu scores, and none for pair %lld (counted from 0)",
                          oct_truth_path(t), n, (long long)e->index / 2);
        else
            st = add_pair(p, &e[-1], e, truth[e->index / 2].score, err);
        drop_kept(p);
    } else if (p->n_kept == 2) { /* the embedding before it has no other half */
        oct_free(p->kept[0].v);
        p->kept[0] = p->kept[1];
        p->n_kept = 1;
    }
    return st;
}

oct_status oct_pairs_add(oct_set *s, const oct_set_view *v, oct_err *err)
{
    oct_pairs *p = (oct_pairs *)s;
    size_t n = 0;
    if (s->judging->truth)
        oct_truth_pairs(s->judging->truth, &n);
    if (!n)
        return oct_fail(err, OCT_EUSAGE,
                        "pairs of samples need their scores: --truth scores.npy, or a CSV with a column score");
    if (!OCT_SET_GROW(p->kept, p->n_kept, p->cap_kept))
        return oct_nomem(err);
    oct_embedding *e = &p->kept[p->n_kept];
    *e = (oct_embedding){ 0 };
    p->n_kept++;
    OCT_TRY(make_embedding(s, v, e, err));
    return s->apart ? OCT_OK : join_last(p, err);
}

const oct_embedding *oct_pairs_kept(const oct_pairs *p, int64_t index)
{
    size_t lo = 0, hi = p->n_kept;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (p->kept[mid].index < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->n_kept && p->kept[lo].index == index ? &p->kept[lo] : NULL;
}

static oct_status join_listed(oct_pairs *p, oct_err *err)
{
    size_t n;
    const oct_truth_pair *truth = oct_truth_pairs(p->base.judging->truth, &n);
    for (size_t i = 0; i < n; i++) {
        const oct_embedding *a = oct_pairs_kept(p, truth[i].a), *b = oct_pairs_kept(p, truth[i].b);
        if (a && b)
            OCT_TRY(add_pair(p, a, b, truth[i].score, err));
    }
    return OCT_OK;
}

static oct_status pairs_finish(oct_set *s, oct_err *err)
{
    oct_pairs *p = (oct_pairs *)s;
    if (!oct_truth_consecutive(s->judging->truth))
        OCT_TRY(join_listed(p, err));
    if (!s->n)
        return oct_fail(
            err, OCT_EMALFORMED,
            "%s: there is no pair of which both samples are there; samples that are spread over all (-n) leave most pairs incomplete, those of --first do not",
            oct_truth_path(s->judging->truth));
    p->by_x = oct_calloc(s->n, sizeof *p->by_x);
    p->by_y = oct_calloc(s->n, sizeof *p->by_y);
    if (!p->by_x || !p->by_y)
        return oct_nomem(err);
    OCT_TRY(oct_order_of(p->x, s->n, p->by_x, err));
    s->scratch = 2 * s->n;
    return oct_order_of(p->y, s->n, p->by_y, err);
}

void oct_pairs_release(oct_set *s)
{
    oct_pairs *p = (oct_pairs *)s;
    drop_kept(p);
    oct_free(p->kept);
    oct_free(p->x);
    oct_free(p->y);
    oct_free(p->by_x);
    oct_free(p->by_y);
}

/* Writes the embeddings themselves, because the other half of a pair may be in another part. */
void oct_pairs_save(oct_set *s, oct_buf *b)
{
    oct_pairs *p = (oct_pairs *)s;
    oct_buf_add_u64(b, p->n_kept);
    for (size_t i = 0; i < p->n_kept; i++) {
        oct_buf_add_u64(b, (uint64_t)p->kept[i].index);
        oct_buf_add_u64(b, p->kept[i].n);
        for (size_t k = 0; k < p->kept[i].n; k++)
            oct_buf_add_f64(b, p->kept[i].v[k]);
    }
    drop_kept(p);
}

oct_status oct_pairs_load(oct_set *s, oct_bytes *r, oct_err *err)
{
    oct_pairs *p = (oct_pairs *)s;
    const uint64_t samples = oct_bytes_u64(r), index = samples ? oct_bytes_u64(r) : 0;
    const size_t n = samples ? oct_bytes_count(r, 8) : 0, known = p->n_kept;
    r->bad |= !s->judging->truth || samples > 1 || index > INT64_MAX ||
              (known && index <= (uint64_t)p->kept[known - 1].index);
    if (r->bad || !samples)
        return OCT_OK;
    if (!OCT_SET_GROW(p->kept, p->n_kept, p->cap_kept))
        return oct_nomem(err);
    oct_embedding *e = &p->kept[p->n_kept];
    *e = (oct_embedding){ .index = (int64_t)index, .n = n, .v = oct_calloc(n + 1, sizeof *e->v) };
    if (!e->v)
        return oct_nomem(err);
    p->n_kept++;
    for (size_t i = 0; i < n; i++)
        e->v[i] = oct_bytes_f64(r);
    return join_last(p, err);
}

const oct_set_type oct_set_of_pairs = { sizeof(oct_pairs), oct_pairs_add,  pairs_finish,
                                        oct_pairs_release, oct_pairs_save, oct_pairs_load };

/* ---- values ---- */

double oct_pairs_pearson(const oct_set *s, const double *draws, double *scratch)
{
    const oct_pairs *p = (const oct_pairs *)s;
    return oct_pearson(p->x, p->y, draws, s->n);
}

double oct_pairs_spearman(const oct_set *s, const double *draws, double *scratch)
{
    const oct_pairs *p = (const oct_pairs *)s;
    oct_ranks(p->x, p->by_x, draws, s->n, scratch);
    oct_ranks(p->y, p->by_y, draws, s->n, scratch + s->n);
    return oct_pearson(scratch, scratch + s->n, draws, s->n);
}
