/* Reads parts. */
#include "eval/parts/part_bytes.h"

#include <stdlib.h>

enum { TAIL = 24 }; /* bytes: the size of the rest, the number of samples, the checksum */

oct_status oct_part_broken(const oct_part *p, const char *what, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: %s", p->path, what);
    oct_hint(err, "run qeval --shard %u/%u again", p->index, p->count);
    return OCT_EMALFORMED;
}

static oct_status not_a_part(const oct_part *p, const char *what, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: %s", p->path, what);
    oct_hint(err, "parts are what qeval --shard I/N -o FILE writes; make this one again");
    return OCT_EMALFORMED;
}

/* Whether the bytes are records of samples in ascending order. */
static bool records_fill(const oct_part *p)
{
    ev_bytes r = { p->records, p->n_records, false };
    uint64_t n = 0, last = 0;
    for (; r.n && !r.bad; n++) {
        const uint64_t index = ev_take_u64(&r);
        (void)ev_take_bytes(&r, ev_take_u64(&r));
        if ((n && index <= last) || index > INT64_MAX)
            return false;
        last = index;
    }
    return !r.bad && n == p->samples;
}

oct_status oct_part_parse(oct_part *p, const void *data, size_t size, const char *label, oct_err *err)
{
    const size_t magic = sizeof EV_PART_MAGIC - 1;
    *p = (oct_part){ .path = label };
    if (size < magic || memcmp(data, EV_PART_MAGIC, magic) != 0)
        return not_a_part(p, "this is no part of an evaluation", err);
    if (size < magic + TAIL)
        return not_a_part(p, "the part is cut short", err);
    ev_bytes tail = { (const uint8_t *)data + size - TAIL, TAIL, false },
             r = { (const uint8_t *)data + magic, size - magic - TAIL, false };
    const uint64_t rest = ev_take_u64(&tail);
    p->samples = ev_take_u64(&tail);
    if (oct_hash(OCT_HASH_INIT, data, size - 8) != ev_take_u64(&tail))
        return not_a_part(p, "the part is cut short or was changed: its checksum is another", err);
    p->index = ev_take_u32(&r);
    p->count = ev_take_u32(&r);
    const size_t n = ev_take_count(&r, 1);
    const uint8_t *asked = n ? ev_take(&r, n - 1) : NULL;
    if (!asked || p->index >= p->count || rest > r.n || memchr(asked, 0, n - 1))
        return not_a_part(p, "sizes in the part do not fit", err);
    p->records = r.p;
    p->n_records = r.n - (size_t)rest;
    p->rest = r.p + p->n_records;
    p->n_rest = (size_t)rest;
    if (!records_fill(p))
        return not_a_part(p, "the part's samples are not in order", err);
    if (!(p->asked = oct_alloc(n)))
        return oct_nomem(err);
    memcpy(p->asked, asked, n - 1);
    p->asked[n - 1] = '\0';
    return OCT_OK;
}

oct_status oct_part_open(oct_part *p, const char *path, oct_err *err)
{
    oct_map m;
    *p = (oct_part){ .path = path };
    OCT_TRY(oct_map_open(&m, path, err));
    const oct_status s = oct_part_parse(p, m.data, m.size, path, err);
    p->map = m;
    if (s != OCT_OK)
        oct_part_close(p);
    return s;
}

void oct_part_close(oct_part *p)
{
    oct_free(p->asked);
    oct_map_close(&p->map);
    *p = (oct_part){ 0 };
}

/* ---- several parts ---- */

static oct_status check_same(const oct_part *first, const oct_part *x, oct_err *err)
{
    if (strcmp(first->asked, x->asked) == 0 && first->count == x->count)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s is a part of another evaluation than %s", x->path, first->path);
    oct_hint(err, "parts go together where models, samples, options and N of --shard I/N are the same");
    return OCT_EUSAGE;
}

static int by_index(const void *a, const void *b)
{
    const oct_part *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* Closes parts that are there already with the same bytes. v is by index. */
static oct_status drop_repeated(oct_parts *p, oct_err *err)
{
    size_t n = 0;
    oct_status s = OCT_OK;
    for (size_t i = 0; i < p->n; i++) {
        oct_part *x = &p->v[i];
        const oct_part *last = n ? &p->v[n - 1] : NULL;
        if (s != OCT_OK || !last || last->index != x->index) {
            p->v[n++] = *x;
            continue;
        }
        if (last->map.size == x->map.size && memcmp(last->map.data, x->map.data, x->map.size) == 0) {
            oct_part_close(x);
            continue;
        }
        s = oct_fail(err, OCT_EUSAGE, "%s and %s are both part %u/%u, and differ", last->path, x->path, x->index,
                     x->count);
        oct_hint(err, "leave out the one that is out of date");
        p->v[n++] = *x;
    }
    p->n = n;
    return s;
}

/* v is by index, and has each part once. */
static oct_status check_whole(const oct_parts *p, oct_err *err)
{
    for (uint32_t i = 0; i < p->v[0].count; i++)
        if (i >= p->n || p->v[i].index != i) {
            oct_fail(err, OCT_EUSAGE, "part %u/%u is missing: there are %zu of %u", i, p->v[0].count, p->n,
                     p->v[0].count);
            oct_hint(err, "name the file that qeval --shard %u/%u wrote, too", i, p->v[0].count);
            return OCT_EUSAGE;
        }
    return OCT_OK;
}

oct_status oct_parts_open(oct_parts *p, const char *const *path, size_t n, oct_err *err)
{
    *p = (oct_parts){ .v = oct_calloc(n + 1, sizeof *p->v), .at = oct_calloc(n + 1, sizeof *p->at) };
    oct_status s = p->v && p->at ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < n; i++) {
        if ((s = oct_part_open(&p->v[i], path[i], err)) == OCT_OK) {
            p->n++;
            s = check_same(&p->v[0], &p->v[i], err);
        }
    }
    if (s == OCT_OK) {
        qsort(p->v, p->n, sizeof *p->v, by_index);
        s = drop_repeated(p, err);
    }
    if (s == OCT_OK)
        s = check_whole(p, err);
    if (s != OCT_OK)
        oct_parts_close(p);
    return s;
}

void oct_parts_close(oct_parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        oct_part_close(&p->v[i]);
    oct_free(p->v);
    oct_free(p->at);
    *p = (oct_parts){ 0 };
}

static ev_bytes left_of(const oct_parts *p, size_t i)
{
    return (ev_bytes){ p->v[i].records + p->at[i], p->v[i].n_records - p->at[i], false };
}

oct_status oct_parts_next(oct_parts *p, int64_t *index, ev_bytes *record, const oct_part **from, oct_err *err)
{
    uint64_t least = UINT64_MAX;
    size_t of = 0;
    *from = NULL;
    for (size_t i = 0; i < p->n; i++) {
        ev_bytes r = left_of(p, i);
        const uint64_t at = r.n ? ev_take_u64(&r) : UINT64_MAX;
        if (r.n && at == least) {
            oct_fail(err, OCT_EMALFORMED, "%s and %s both hold sample %llu (counted from 0)", p->v[of].path,
                     p->v[i].path, (unsigned long long)at);
            oct_hint(err, "the data changed between the runs: make the parts again");
            return OCT_EMALFORMED;
        }
        if (at < least) {
            least = at;
            of = i;
        }
    }
    if (least == UINT64_MAX)
        return OCT_OK;
    ev_bytes r = left_of(p, of);
    *index = (int64_t)ev_take_u64(&r);
    *record = ev_take_bytes(&r, ev_take_u64(&r));
    p->at[of] = p->v[of].n_records - r.n;
    *from = &p->v[of];
    return record->bad ? oct_part_broken(*from, "a sample's record is cut short", err) : OCT_OK;
}

uint64_t oct_parts_samples(const oct_parts *p)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->v[i].samples;
    return n;
}
