/* lib/eval/parts/part.c -- writes parts, and reads them side by side. */
#include "eval/parts/part.h"

#include "base/mem.h"

#include <stdlib.h>

enum { HEAD = 1, SAMPLE, REST }; /* the sections; the first one and the last one stand once */

static const oct_sections_form form = { "octet-eval-part", 2, "a part of an evaluation",
                                        "parts are what qeval --shard I/N -o FILE writes; make this one again" };

/* ---- writing ---- */

oct_status oct_part_create(oct_part_out *p, const char *path, const char *asked, uint32_t index, uint32_t count,
                           oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    p->last = -1;
    OCT_TRY(oct_sections_create(&p->file, &form, path, err));
    oct_buf_add_u32(&b, index);
    oct_buf_add_u32(&b, count);
    oct_buf_add_text(&b, asked);
    const oct_status s = oct_sections_add(&p->file, HEAD, &b, err);
    oct_buf_free(&b);
    if (s != OCT_OK)
        oct_part_abort(p);
    return s;
}

oct_status oct_part_add(oct_part_out *p, int64_t index, const oct_buf *record, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    if (index <= p->last)
        return oct_fail(err, OCT_EUNSUPPORTED, "--shard needs samples in the order of the data");
    p->last = index;
    oct_buf_add_u64(&b, (uint64_t)index);
    oct_buf_add(&b, oct_buf_str(record), record->len);
    b.failed |= record->failed;
    const oct_status s = oct_sections_add(&p->file, SAMPLE, &b, err);
    oct_buf_free(&b);
    return s;
}

oct_status oct_part_commit(oct_part_out *p, const oct_buf *rest, oct_err *err)
{
    const oct_status s = oct_sections_add(&p->file, REST, rest, err);
    if (s == OCT_OK)
        return oct_sections_commit(&p->file, err);
    oct_part_abort(p);
    return s;
}

void oct_part_abort(oct_part_out *p)
{
    oct_out_abort(&p->file.out);
}

/* ---- reading ---- */

oct_status oct_part_broken(const oct_part *p, const char *what, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: %s", p->path, what);
    oct_hint(err, "%s", form.again);
    return OCT_EMALFORMED;
}

oct_status oct_part_parse(oct_part *p, const void *data, size_t size, const char *label, oct_err *err)
{
    oct_bytes all, one;
    uint32_t tag = 0;
    uint64_t last = 0;
    *p = (oct_part){ .path = label };
    OCT_TRY(oct_sections_open(&form, data, size, label, &all, err));
    if (oct_section_next(&all, &tag, &one) && tag == HEAD) {
        p->index = oct_bytes_u32(&one);
        p->count = oct_bytes_u32(&one);
        p->asked = oct_bytes_text(&one);
    }
    if (!p->asked || one.n || p->index >= p->count)
        return oct_part_broken(p, "the part does not say what it is a part of", err);
    p->left = all;
    while (oct_section_next(&all, &tag, &one) && tag == SAMPLE) {
        const uint64_t index = oct_bytes_u64(&one);
        if (one.bad || (p->samples && index <= last) || index > INT64_MAX)
            return oct_part_broken(p, "the part's samples are not in order", err);
        last = index;
        p->samples++;
        p->left.n = (size_t)(all.p - p->left.p);
    }
    if (!p->samples)
        p->left.n = 0;
    if (tag != REST || all.n)
        return oct_part_broken(p, "the part does not end in what belongs to no sample", err);
    p->rest = one;
    return OCT_OK;
}

/* path: borrowed. Errors as of oct_sections_open. */
static oct_status open_part(oct_part *p, const char *path, oct_err *err)
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
    *p = (oct_parts){ .v = oct_calloc(n + 1, sizeof *p->v) };
    oct_status s = p->v ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < n; i++) {
        if ((s = open_part(&p->v[i], path[i], err)) == OCT_OK) {
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
    *p = (oct_parts){ 0 };
}

/* Takes the next sample of a part. False: there is none. */
static bool next_sample(oct_bytes *left, int64_t *index, oct_bytes *record)
{
    uint32_t tag;
    if (!oct_section_next(left, &tag, record))
        return false;
    *index = (int64_t)oct_bytes_u64(record);
    return true;
}

oct_status oct_parts_next(oct_parts *p, int64_t *index, oct_bytes *record, const oct_part **from, oct_err *err)
{
    oct_part *first = NULL;
    for (size_t i = 0; i < p->n; i++) {
        oct_bytes left = p->v[i].left;
        int64_t at;
        if (!next_sample(&left, &at, record) || (first && at > *index))
            continue;
        if (first && at == *index) {
            oct_fail(err, OCT_EMALFORMED, "%s and %s both hold sample %lld (counted from 0)", first->path, p->v[i].path,
                     (long long)at);
            oct_hint(err, "the data changed between the runs: make the parts again");
            return OCT_EMALFORMED;
        }
        first = &p->v[i];
        *index = at;
    }
    if (first)
        (void)next_sample(&first->left, index, record);
    *from = first;
    return OCT_OK;
}

uint64_t oct_parts_samples(const oct_parts *p)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->v[i].samples;
    return n;
}
