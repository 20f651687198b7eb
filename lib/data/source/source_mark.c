/* lib/data/source/source_mark.c -- the position of a source, and continuing from there in another process. */
#include "data/source/source_int.h"

#include "base/io.h"

#include <string.h>

/* A sample may turn out to be broken only when it is read, and may then have another name or none: names count from the
 * sample after it. */
void oct_source_mark_read(oct_source *s, int64_t index, const char *name, bool fine)
{
    s->read.place = index + 1;
    if (!fine) {
        s->read.names = OCT_HASH_INIT;
        s->read.names_from = index + 1;
    } else if (name && (index >= s->from.place || index >= s->from.names_from)) {
        s->read.names = oct_hash(s->read.names, name, strlen(name) + 1);
    }
}

oct_status oct_source_check_mark(oct_source *s, oct_err *err)
{
    if (s->from_checked || s->from.place == 0)
        return OCT_OK;
    s->from_checked = true;
    if (s->read.place == s->from.place && s->read.names == s->from.names) {
        s->read.names_from = s->from.names_from;
        return OCT_OK;
    }
    return oct_fail(err, OCT_EUSAGE, "the first %lld samples are not those that were read before",
                    (long long)s->from.place);
}

void oct_source_keep_marks(oct_source *s)
{
    s->marks = true;
}

oct_source_mark oct_source_where(const oct_source *s)
{
    oct_source_mark m = s->taken;
    m.given = s->given;
    m.bad = s->bad;
    return m;
}

oct_status oct_source_go_on(oct_source *s, const oct_source_mark *mark, const char *const *text, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n && i < OCT_SOURCE_BAD_TEXTS && (int64_t)i < mark->bad; i++) {
        oct_free(s->bad_text[i]);
        s->bad_index[i] = -1; /* a mark does not hold it */
        if (!(s->bad_text[i] = oct_strdup(text[i])))
            return oct_nomem(err);
    }
    s->marks = true;
    s->from = s->taken = *mark;
    s->read = (oct_source_mark){ .names = OCT_HASH_INIT };
    s->from_checked = false;
    s->given = mark->given;
    s->bad = mark->bad;
    return OCT_OK;
}

uint64_t oct_source_list_hash(const oct_source *s)
{
    uint64_t h = oct_hash(OCT_HASH_INIT, &s->total, sizeof s->total);
    for (size_t i = 0; i < s->leaves.n; i++) {
        const oct_leaf *l = &s->leaves.v[i];
        const bool named = l->reader != &oct_read_descriptor && l->reader != &oct_read_command;
        h = oct_hash(h, l->path, strlen(l->path) + 1);
        h = named ? oct_file_stamp(h, l->path) : h;
        h = l->self && l->reader->stamp ? l->reader->stamp(l->self, h) : h;
    }
    return h;
}
