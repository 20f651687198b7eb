#include "base/sections.h"

#include <stdio.h>

enum { HEAD = 12, END = 0 };

/* ---- writing ---- */

static void put(oct_sections_out *s, const void *data, size_t n)
{
    s->hash = oct_hash(s->hash, data, n);
    oct_out_write(&s->out, data, n);
}

static void put_head(oct_sections_out *s, uint32_t tag, uint64_t size)
{
    uint8_t head[HEAD];
    oct_le_put(head, tag, 4);
    oct_le_put(head + 4, size, 8);
    put(s, head, sizeof head);
}

oct_status oct_sections_create(oct_sections_out *s, const oct_sections_form *form, const char *path, oct_err *err)
{
    char first[64];
    *s = (oct_sections_out){ .hash = OCT_HASH_INIT };
    OCT_TRY(oct_out_open(&s->out, path, err));
    put(s, first, (size_t)snprintf(first, sizeof first, "%s %u\n", form->name, form->version));
    return OCT_OK;
}

oct_status oct_sections_add(oct_sections_out *s, uint32_t tag, const oct_buf *bytes, oct_err *err)
{
    if (bytes->failed)
        return oct_nomem(err);
    put_head(s, tag, bytes->len);
    put(s, oct_buf_str(bytes), bytes->len);
    return OCT_OK;
}

oct_status oct_sections_commit(oct_sections_out *s, oct_err *err)
{
    uint8_t hash[8];
    put_head(s, END, sizeof hash);
    oct_le_put(hash, s->hash, sizeof hash);
    put(s, hash, sizeof hash);
    return oct_out_commit(&s->out, err);
}

/* ---- reading ---- */

bool oct_section_next(oct_bytes *sections, uint32_t *tag, oct_bytes *section)
{
    if (!sections->n)
        return false;
    *tag = oct_bytes_u32(sections);
    *section = oct_bytes_part(sections, oct_bytes_u64(sections));
    return !sections->bad;
}

static oct_status refuse(const oct_sections_form *form, const char *label, oct_status s, const char *is,
                         const char *why, oct_err *err)
{
    oct_fail(err, s, "%s: this %s %s%s", label, is, form->what, why);
    oct_hint(err, "%s", form->again);
    return s;
}

oct_status oct_sections_open(const oct_sections_form *form, const void *data, size_t size, const char *label,
                             oct_bytes *sections, oct_err *err)
{
    char first[64];
    const size_t name = strlen(form->name);
    const size_t n = (size_t)snprintf(first, sizeof first, "%s %u\n", form->name, form->version);
    if (size <= name || memcmp(data, first, name + 1) != 0)
        return refuse(form, label, OCT_EMALFORMED, "is not", "", err);
    if (size >= n && memcmp(data, first, n) != 0)
        return refuse(form, label, OCT_EUNSUPPORTED, "is", " that another version of Octet wrote", err);
    oct_bytes left = { data, size, false }, end = { 0 };
    uint32_t tag = ~0u;
    (void)oct_bytes_take(&left, n);
    *sections = left;
    while (tag != END && oct_section_next(&left, &tag, &end))
        ;
    if (left.bad || tag != END || left.n || end.n != 8)
        return refuse(form, label, OCT_EMALFORMED, "is", " that is cut short, or whose sizes do not fit", err);
    if (oct_hash(OCT_HASH_INIT, data, size - 8) != oct_bytes_u64(&end))
        return refuse(form, label, OCT_EMALFORMED, "is", " that was changed: its checksum is another", err);
    sections->n -= HEAD + 8;
    return OCT_OK;
}
