/* Measurements in parts: the contents of a part's file, and joining the parts. */
#include "quant/simulate/memo_int.h"

#include "eval/parts/part_bytes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const oct_part_form oct_part_of_sensitivity = { "octet-sensitivity-part 1\n", "a measurement of sensitivities",
                                                "other measurements", "qeval --sensitivity --shard",
                                                "models, samples and N of --shard I/N" };

static const char *const words[] = { "all", "weights", "values", "weights-of", "values-of" };
enum {
    OF_SITES = 3,
    ENTRY = 4 + 4 * 8
}; /* OF_SITES: words from this one on refer to sites from..to. ENTRY: bytes of an entry */

static uint32_t word_of(const oct_memo_entry *e)
{
    uint32_t i = 0;
    while (i + 1 < OCT_COUNT(words) && strcmp(words[i], e->what) != 0)
        i++;
    return i;
}

static int by_sites(const void *a, const void *b)
{
    const oct_memo_entry *x = *(const oct_memo_entry *const *)a, *y = *(const oct_memo_entry *const *)b;
    const int word = strcmp(x->what, y->what);
    return word ? word : x->from != y->from ? (x->from > y->from ? 1 : -1) : (x->to > y->to) - (x->to < y->to);
}

void oct_memo_put(const oct_memo *m, oct_buf *rest)
{
    const oct_memo_entry **asked = oct_calloc(m->n + 1, sizeof *asked);
    size_t n = 0;
    if (!asked) {
        rest->failed = true;
        return;
    }
    for (size_t i = 0; i < m->n; i++)
        if (m->e[i].asked)
            asked[n++] = &m->e[i];
    qsort(asked, n, sizeof *asked, by_sites);
    ev_put_u64(rest, m->key);
    for (size_t i = 0; i < n; i++) {
        ev_put_u32(rest, word_of(asked[i]));
        ev_put_u64(rest, asked[i]->from);
        ev_put_u64(rest, asked[i]->to);
        ev_put_f64(rest, asked[i]->loss.noise);
        ev_put_f64(rest, asked[i]->loss.sqnr);
    }
    oct_free(asked);
}

/* ---- joining ---- */

typedef struct joined {
    oct_memo_entry e;
    size_t part;
} joined;

static int by_entry(const void *a, const void *b)
{
    const joined *x = a, *y = b;
    const oct_memo_entry *p = &x->e, *q = &y->e;
    const int sites = by_sites(&p, &q);
    return sites ? sites : (x->part > y->part) - (x->part < y->part);
}

/* Reads a measurement, and checks it: it is of some sites or of all, and its noise is a number. */
static bool take_entry(ev_bytes *r, oct_memo_entry *e)
{
    const uint32_t word = ev_take_u32(r);
    const uint64_t from = ev_take_u64(r), to = ev_take_u64(r);
    e->loss.noise = ev_take_f64(r);
    e->loss.sqnr = ev_take_f64(r);
    if (r->bad || word >= OCT_COUNT(words) || to > INT32_MAX || (word < OF_SITES ? from || to : from >= to) ||
        !(e->loss.noise >= 0) || isnan(e->loss.sqnr))
        return false;
    e->from = (size_t)from;
    e->to = (size_t)to;
    snprintf(e->what, sizeof e->what, "%s", words[word]);
    return true;
}

static oct_status take_part(const oct_parts *parts, size_t i, uint64_t *key, joined *to, size_t *n, oct_err *err)
{
    const oct_part *p = &parts->v[i];
    ev_bytes r = { p->rest, p->n_rest, false };
    const uint64_t own = ev_take_u64(&r);
    if (r.bad || r.n % ENTRY || p->samples)
        return oct_part_broken(p, "the part's measurements are cut short", err);
    if (i && own != *key) {
        oct_fail(err, OCT_EUSAGE, "%s was measured with other samples, or another model, than %s", p->path,
                 parts->v[0].path);
        oct_hint(err, "files changed between the runs: make the parts again");
        return OCT_EUSAGE;
    }
    *key = own;
    while (r.n) {
        to[*n] = (joined){ .part = i };
        to[*n].e.key = own;
        if (!take_entry(&r, &to[(*n)++].e))
            return oct_part_broken(p, "a measurement of the part is none", err);
    }
    return OCT_OK;
}

/* Keeps the first part's measurement of each thing. Others must be equal to it. */
static oct_status keep_each_once(oct_memo *m, const joined *x, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const oct_memo_entry *e = &x[i].e, *had = m->n ? &m->e[m->n - 1] : NULL;
        if (!had || by_sites(&e, &had) != 0) {
            OCT_TRY(oct_memo_append(m, e, err));
            continue;
        }
        const oct_part *first = &m->parts->v[x[i - 1].part], *p = &m->parts->v[x[i].part];
        if (first == p)
            return oct_part_broken(p, "a measurement stands twice in the part", err);
        if (had->loss.noise == e->loss.noise && had->loss.sqnr == e->loss.sqnr)
            continue;
        oct_fail(err, OCT_EUSAGE, "%s and %s have different measurements of one thing (%s %zu to %zu)", first->path,
                 p->path, e->what, e->from, e->to);
        oct_hint(err, "make both again, by one version of the program");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

oct_status oct_memo_join(const oct_parts *parts, oct_arena *arena, oct_memo **out, oct_err *err)
{
    enum { MOST = 1 << 18 }; /* more than any model has, and few enough to search all for each lookup */
    oct_memo *m;
    size_t most = 0, n = 0;
    for (size_t i = 0; i < parts->n && most <= MOST; i++)
        most += parts->v[i].n_rest / ENTRY;
    if (most > MOST)
        return oct_part_broken(&parts->v[0], "there are more measurements than a model has", err);
    OCT_TRY(oct_memo_create(0, arena, &m, err));
    joined *x = oct_calloc(most + 1, sizeof *x);
    oct_status s = x ? OCT_OK : oct_nomem(err);
    m->parts = parts;
    for (size_t i = 0; i < parts->n && s == OCT_OK; i++)
        s = take_part(parts, i, &m->key, x, &n, err);
    if (s == OCT_OK) {
        qsort(x, n, sizeof *x, by_entry);
        s = keep_each_once(m, x, n, err);
    }
    oct_free(x);
    *out = m;
    return s;
}

bool oct_memo_is_closed(const oct_memo *m)
{
    return m->parts != NULL;
}

oct_status oct_memo_lacks(const oct_memo *m, const char *what, size_t from, size_t to, oct_err *err)
{
    const oct_parts *p = m->parts;
    oct_fail(err, OCT_EMALFORMED, "%s to %s lack a measurement (%s %zu to %zu)", p->v[0].path, p->v[p->n - 1].path,
             what, from, to);
    oct_hint(err, "make the parts again, by one version of the program");
    return OCT_EMALFORMED;
}

oct_status oct_memo_check(const oct_memo *m, uint64_t key, oct_err *err)
{
    if (m->key == key)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "the samples are not what they were when %s was made", m->parts->v[0].path);
    oct_hint(err, "make the parts again, or put the old files back");
    return OCT_EUSAGE;
}
