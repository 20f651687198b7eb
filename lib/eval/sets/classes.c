/* The label and the predicted class of each sample. */
#include "eval/sets/classes.h"

#include "eval/metrics/class_sums.h"
#include "eval/sets/judging.h"
#include "base/bytes.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 1 << 24 }; /* limit for the number in a part's file */

typedef struct pair {
    int32_t label, found; /* found is -1 if the scores are not numbers */
} pair;

typedef struct classes {
    oct_set base;
    pair *v; /* [base.n] */
    size_t cap;
    size_t classes;
} classes;

size_t oct_class_of(const float *v, size_t n, double threshold)
{
    size_t best = 0;
    if (n == 1)
        return isnan(v[0]) ? OCT_NO_CLASS : (double)v[0] > threshold;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best] || (isnan(v[best]) && !isnan(v[i])))
            best = i;
    return n && !isnan(v[best]) ? best : OCT_NO_CLASS;
}

/* Two scores are also compared with the threshold, if one is declared. -1: there is no class. */
static int32_t found_class(const oct_decode *r, const oct_set_tensor *t)
{
    const size_t c = t->n == 2 && r->has_threshold ? oct_class_of(t->v + 1, 1, r->threshold)
                                                   : oct_class_of(t->v, t->n, r->threshold);
    return c == OCT_NO_CLASS ? -1 : (int32_t)c;
}

/* An output that is the class itself. How many classes there are is not known but from those that occur. */
static oct_status add_answer(classes *c, int64_t label, float found, const char *name, oct_err *err)
{
    enum { MOST = 1 << 20 }; /* sums are kept for each class up to the largest */
    if (!(found >= 0 && found < (float)MOST) || label >= MOST)
        return oct_fail(err, OCT_EMALFORMED, "%s: label %lld and class %g are not both from 0 to %d", name,
                        (long long)label, (double)found, MOST - 1);
    if (!OCT_SET_GROW(c->v, c->base.n, c->cap))
        return oct_nomem(err);
    const pair p = { (int32_t)label, (int32_t)found };
    const size_t n = (size_t)(p.label > p.found ? p.label : p.found) + 1;
    c->v[c->base.n++] = p;
    c->classes = n > c->classes ? n : c->classes < 2 ? 2 : c->classes;
    c->base.scratch = OCT_SUMS_OF_CLASS * c->classes;
    return OCT_OK;
}

static oct_status classes_add(oct_set *s, const oct_set_view *v, oct_err *err)
{
    classes *c = (classes *)s;
    const oct_set_tensor *t;
    if (v->label < 0)
        return OCT_OK;
    OCT_TRY(oct_output_find(&s->judging->rule->output, 0, v->out, v->n_out, &t, err));
    if (t->codes && t->n == 1)
        return add_answer(c, v->label, t->v[0], v->name, err);
    const size_t n = t->n == 1 ? 2 : t->n;
    if (!t->n || (uint64_t)v->label >= n || n > INT32_MAX) {
        oct_fail(err, OCT_EMALFORMED, "%s: label %lld, but output '%s' has %zu classes (counted from 0)", v->name,
                 (long long)v->label, t->name, n);
        oct_hint(err, "labels that count from 1 need 1 subtracted");
        return OCT_EMALFORMED;
    }
    if (!OCT_SET_GROW(c->v, s->n, c->cap))
        return oct_nomem(err);
    c->v[s->n++] = (pair){ (int32_t)v->label, found_class(s->judging->rule, t) };
    c->classes = n > c->classes ? n : c->classes;
    s->scratch = OCT_SUMS_OF_CLASS * c->classes;
    return OCT_OK;
}

static void classes_release(oct_set *s)
{
    oct_free(((classes *)s)->v);
}

/* Writes the number of samples, the number of classes, and the pairs. */
static void classes_save(oct_set *s, oct_buf *b)
{
    classes *c = (classes *)s;
    oct_buf_add_u64(b, s->n);
    oct_buf_add_u64(b, c->classes);
    for (size_t i = 0; i < s->n; i++) {
        oct_buf_add_u32(b, (uint32_t)c->v[i].label);
        oct_buf_add_u32(b, (uint32_t)c->v[i].found);
    }
    s->n = 0;
}

static oct_status classes_load(oct_set *s, oct_bytes *r, oct_err *err)
{
    classes *c = (classes *)s;
    const size_t n = (size_t)oct_bytes_u64(r), most = (size_t)oct_bytes_u64(r);
    r->bad |= n > r->n / 8 || most > MOST_CLASSES;
    for (size_t i = 0; i < n && !r->bad; i++) {
        const uint32_t label = oct_bytes_u32(r), found = oct_bytes_u32(r);
        r->bad |= label >= most || (found >= most && found != UINT32_MAX);
        if (r->bad)
            return OCT_OK;
        if (!OCT_SET_GROW(c->v, s->n, c->cap))
            return oct_nomem(err);
        c->v[s->n++] = (pair){ (int32_t)label, (int32_t)found };
        c->classes = most > c->classes ? most : c->classes;
        s->scratch = OCT_SUMS_OF_CLASS * c->classes;
    }
    return OCT_OK;
}

const oct_set_type oct_set_of_classes = { sizeof(classes), classes_add,  NULL,
                                          classes_release, classes_save, classes_load };

/* ---- shares ---- */

static oct_class_sums sums_of(const classes *c, const double *draws, double *scratch)
{
    const oct_class_sums sums = oct_class_sums_in(scratch, c->classes);
    for (size_t i = 0; i < c->base.n; i++) {
        const double w = draws ? draws[i] : 1;
        if (c->v[i].label == c->v[i].found) {
            sums.hit[c->v[i].label] += w;
        } else {
            sums.missed[c->v[i].label] += w;
            if (c->v[i].found >= 0)
                sums.extra[c->v[i].found] += w;
        }
    }
    return sums;
}

static double share_of(oct_share what, const oct_set *s, const double *draws, double *scratch)
{
    const classes *c = (const classes *)s;
    const oct_class_sums sums = sums_of(c, draws, scratch);
    if (c->classes == 2 && !s->judging->rule->macro)
        return oct_share_of(what, sums.hit[1], sums.extra[1], sums.missed[1]);
    return oct_share_mean(what, &sums);
}

double oct_classes_precision(const oct_set *s, const double *draws, double *scratch)
{
    return share_of(OCT_SHARE_PRECISION, s, draws, scratch);
}

double oct_classes_recall(const oct_set *s, const double *draws, double *scratch)
{
    return share_of(OCT_SHARE_RECALL, s, draws, scratch);
}

double oct_classes_f1(const oct_set *s, const double *draws, double *scratch)
{
    return share_of(OCT_SHARE_F1, s, draws, scratch);
}

/* ---- tables ---- */

static int by_label(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return x->label != y->label ? (x->label > y->label) - (x->label < y->label)
                                : (x->found > y->found) - (x->found < y->found);
}

static void fill_cells(const pair *v, size_t n, oct_class_table *t)
{
    for (size_t i = 0; i < n; i++) {
        oct_confused *last = t->n_cells ? &t->cell[t->n_cells - 1] : NULL;
        if (last && last->label == v[i].label && last->taken_for == v[i].found)
            last->samples++;
        else
            t->cell[t->n_cells++] = (oct_confused){ v[i].label, v[i].found, 1 };
    }
}

void oct_class_row_add(oct_class_table *t, int64_t class_number, double hit, double extra, double missed, double own)
{
    if (hit + extra + missed > 0)
        t->row[t->n_rows++] = (oct_class_row){ class_number,
                                               (uint64_t)(hit + missed),
                                               oct_share_of(OCT_SHARE_PRECISION, hit, extra, missed),
                                               oct_share_of(OCT_SHARE_RECALL, hit, extra, missed),
                                               oct_share_of(OCT_SHARE_F1, hit, extra, missed),
                                               own };
}

oct_status oct_classes_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err)
{
    const classes *c = (const classes *)s;
    *t = (oct_class_table){ 0 };
    double *scratch = oct_arena_calloc(arena, s->scratch + 1, sizeof *scratch);
    pair *sorted = oct_arena_calloc(arena, s->n + 1, sizeof *sorted);
    t->row = oct_arena_calloc(arena, c->classes + 1, sizeof *t->row);
    t->cell = oct_arena_calloc(arena, s->n + 1, sizeof *t->cell);
    if (!scratch || !sorted || !t->row || !t->cell)
        return oct_nomem(err);
    if (s->n) {
        memcpy(sorted, c->v, s->n * sizeof *sorted);
        qsort(sorted, s->n, sizeof *sorted, by_label);
    }
    fill_cells(sorted, s->n, t);
    const oct_class_sums sums = sums_of(c, NULL, scratch);
    for (size_t i = 0; i < sums.n; i++)
        oct_class_row_add(t, (int64_t)i, sums.hit[i], sums.extra[i], sums.missed[i], NAN);
    return OCT_OK;
}
