/* lib/ops/text/op_tfidf.c -- TfIdfVectorizer on integers: how often each n-gram of a pool occurs in a row. */
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <string.h>

enum { LONGEST = 64 }; /* of an n-gram */

/* The pool: n-grams of one item, then of two, ...; those of n items begin at start[n - 1] and have ids from id[n - 1]
 * on. */
typedef struct pool {
    const int64_t *items, *column;
    const float *weight; /* by column; NULL: ones */
    int n_weights;
    int64_t start[LONGEST + 1], id[LONGEST + 1];
    int sizes;
    int64_t columns, least, most, skips;
    enum { COUNT, PRESENCE } mode;
    bool weighted;
    int64_t *sorted; /* ids, those of each length sorted by their items */
} pool;

static oct_status read_counts(const oct_node *node, pool *p, int n_items, int n_columns, oct_err *err)
{
    int n;
    const int64_t *counts = oct_node_ints(node, "ngram_counts", &n);
    if (counts == NULL || n > LONGEST)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'ngram_counts' is missing or has more than %d values", LONGEST);
    p->sizes = n;
    p->id[0] = 0;
    for (int i = 0; i < n; i++) {
        const int64_t end = i + 1 < n ? counts[i + 1] : n_items;
        if (counts[i] < 0 || end < counts[i] || end > n_items)
            return oct_fail(err, OCT_EMALFORMED, "attribute 'ngram_counts': %lld to %lld of %d items",
                            (long long)counts[i], (long long)end, n_items);
        p->start[i] = counts[i];
        p->id[i + 1] = p->id[i] + (end - counts[i]) / (i + 1);
    }
    if (p->id[n] > n_columns)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'ngram_indexes' has %d values for %lld n-grams", n_columns,
                        (long long)p->id[n]);
    return OCT_OK;
}

static oct_status read_pool(const oct_node *node, pool *p, oct_err *err)
{
    int n_items, n_columns;
    const char *mode = oct_node_str(node, "mode", "");
    *p = (pool){ .least = oct_node_int(node, "min_gram_length", 0),
                 .most = oct_node_int(node, "max_gram_length", 0),
                 .skips = oct_node_int(node, "max_skip_count", 0) };
    p->items = oct_node_ints(node, "pool_int64s", &n_items);
    p->column = oct_node_ints(node, "ngram_indexes", &n_columns);
    p->weight = oct_node_floats(node, "weights", &p->n_weights);
    p->mode = strcmp(mode, "IDF") == 0 ? PRESENCE : COUNT;
    p->weighted = strcmp(mode, "TF") != 0 && p->weight != NULL;
    if (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 && strcmp(mode, "TFIDF") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'mode' is '%s'", mode);
    if (oct_node_attr(node, "pool_strings") != NULL)
        return oct_fail(err, OCT_EUNSUPPORTED, "n-grams of strings");
    if (p->least < 1 || p->most < p->least || p->most > LONGEST || p->skips < 0 || n_columns < 1)
        return oct_fail(err, OCT_EMALFORMED, "n-grams of %lld to %lld items with %lld skips, into %d columns",
                        (long long)p->least, (long long)p->most, (long long)p->skips, n_columns);
    for (int i = 0; i < n_columns; i++) {
        if (p->column[i] < 0 || p->column[i] >= INT32_MAX)
            return oct_fail(err, OCT_EMALFORMED, "attribute 'ngram_indexes' holds %lld", (long long)p->column[i]);
        p->columns = p->column[i] >= p->columns ? p->column[i] + 1 : p->columns;
    }
    return read_counts(node, p, n_items, n_columns, err);
}

static oct_status tfidf_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    pool p;
    oct_out_dtype(c, 0, OCT_F32);
    OCT_TRY(read_pool(oct_in_node(c), &p, err));
    if (x.rank > 2)
        return oct_fail(err, OCT_EMALFORMED, "the input has %d dimensions, expected 1 or 2", x.rank);
    if (x.rank == 2)
        return oct_out_shape(c, 0, 2, (oct_dim[]){ x.d[0], oct_dim_of(p.columns) }, err);
    return x.rank < 0 ? OCT_OK : oct_out_shape(c, 0, 1, (oct_dim[]){ oct_dim_of(p.columns) }, err);
}

static const int64_t *gram(const pool *p, int n, int64_t id)
{
    return p->items + p->start[n - 1] + (id - p->id[n - 1]) * n;
}

static int compare(const int64_t *a, const int64_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Puts v[at] into its place below a heap whose top is the largest. */
static void sift_down(const pool *p, int n, int64_t *v, int64_t at, int64_t count)
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(gram(p, n, v[child]), gram(p, n, v[child + 1]), n) < 0)
            child++;
        if (compare(gram(p, n, v[at]), gram(p, n, v[child]), n) >= 0)
            return;
        const int64_t t = v[at];
        v[at] = v[child];
        v[child] = t;
    }
}

static void sort_grams(const pool *p, int n)
{
    int64_t *v = p->sorted + p->id[n - 1], count = p->id[n] - p->id[n - 1];
    for (int64_t i = 0; i < count; i++)
        v[i] = p->id[n - 1] + i;
    for (int64_t i = count / 2 - 1; i >= 0; i--)
        sift_down(p, n, v, i, count);
    for (int64_t m = count - 1; m > 0; m--) {
        const int64_t t = v[0];
        v[0] = v[m];
        v[m] = t;
        sift_down(p, n, v, 0, m);
    }
}

static oct_status tfidf_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    pool *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    if (s->in[0]->dtype != OCT_S32 && s->in[0]->dtype != OCT_S64)
        return oct_fail(err, OCT_EUNSUPPORTED, "n-grams of %s", oct_dtype_name(s->in[0]->dtype));
    OCT_TRY(read_pool(s->node, t, err));
    if ((t->sorted = oct_arena_calloc(p->arena, (size_t)t->id[t->sizes] + 1, sizeof *t->sorted)) == NULL)
        return oct_nomem(err);
    for (int n = 1; n <= t->sizes; n++)
        sort_grams(t, n);
    return OCT_OK;
}

/* The id of an n-gram, the last one where the pool has it twice; -1: it has not. */
static int64_t find(const pool *p, const int64_t *items, int n)
{
    const int64_t *v = p->sorted + p->id[n - 1];
    int64_t lo = 0, hi = p->id[n] - p->id[n - 1], found = -1;
    while (lo < hi) {
        const int64_t mid = (lo + hi) / 2;
        if (compare(gram(p, n, v[mid]), items, n) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < p->id[n] - p->id[n - 1] && compare(gram(p, n, v[lo]), items, n) == 0; lo++)
        found = v[lo] > found ? v[lo] : found;
    return found;
}

/* Counts the n-grams whose items lie `step` apart. Single items have no distance: they are counted once. */
static void count_row(const pool *p, const oct_operand *x, int64_t first, int64_t length, float *y)
{
    for (int64_t step = 1; step <= p->skips + 1 && step <= length; step++)
        for (int64_t at = 0; at < length; at++) {
            int64_t items[LONGEST];
            for (int n = 1; n <= p->most && n <= p->sizes && at + (n - 1) * step < length; n++) {
                items[n - 1] = oct_elem_int(x, first + at + (n - 1) * step);
                const int64_t id = n < p->least || (n == 1 && step > 1) ? -1 : find(p, items, n);
                if (id >= 0)
                    y[p->column[id]] += 1.0f;
            }
        }
}

static oct_status tfidf_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const pool *p = s->state;
    const oct_operand *x = s->in[0];
    float *y = s->out[0]->data;
    const int64_t rows = s->out[0]->count / p->columns, length = rows > 0 ? x->count / rows : 0;
    memset(y, 0, (size_t)s->out[0]->count * sizeof *y);
    for (int64_t row = 0; row < rows; row++, y += p->columns) {
        count_row(p, x, row * length, length, y);
        for (int64_t i = 0; i < p->columns; i++) {
            if (p->mode == PRESENCE && y[i] > 0.0f)
                y[i] = 1.0f;
            if (p->weighted && i < p->n_weights)
                y[i] *= p->weight[i];
        }
    }
    return OCT_OK;
}

const oct_op oct_op_tfidf = {
    OCT_SCHEMA("TfIdfVectorizer", "", 9, 1, 1, 1, 1),
    .infer = tfidf_infer,
    .prepare = tfidf_prepare,
    .run = tfidf_run,
};
