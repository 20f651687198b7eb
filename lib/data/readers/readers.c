/* lib/data/readers/readers.c -- what readers share. */
#include "data/readers/readers.h"

#include "base/io.h"
#include "base/mem.h"
#include "data/data_config.h" /* made by the build */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

char *oct_strprintf(const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : oct_alloc((size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

void oct_part_free(oct_part *p)
{
    oct_free(p->path);
    oct_array_free(&p->array);
    *p = (oct_part){ 0 };
}

oct_status oct_part_own(oct_part *p, oct_err *err)
{
    const oct_array view = p->array;
    if (view.owned || !view.data)
        return OCT_OK;
    OCT_TRY(oct_array_create(&p->array, view.dtype, view.rank, view.dims, err));
    memcpy(p->array.data, view.data, view.bytes);
    return OCT_OK;
}

void oct_item_free(oct_item *it, size_t n)
{
    oct_free(it->name);
    it->name = NULL;
    it->label = -1;
    it->inside = false;
    for (size_t i = 0; i < n; i++)
        oct_part_free(&it->parts[i]);
}

bool oct_has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcasecmp(path + n - m, suffix) == 0;
}

static const char *const pictures[] = { "jpg", "jpeg", "png", "bmp", "webp" };
static const char *const others[] = { "npy", "pb", "wav", "wave" };

static const char *find(const char *const *list, size_t n, const char *kind)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(kind, list[i]) == 0)
            return list[i];
    return NULL;
}

const char *oct_sample_kind(const char *kind)
{
#ifndef OCT_HAVE_WEBP
    if (strcasecmp(kind, "webp") == 0)
        return NULL;
#endif
    const char *known = find(pictures, OCT_COUNT(pictures), kind);
    return known ? known : find(others, OCT_COUNT(others), kind);
}

/* Behind the last dot; "" where there is none. */
static const char *kind_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && dot > path ? dot + 1 : "";
}

bool oct_is_image_file(const char *path)
{
    return find(pictures, OCT_COUNT(pictures), kind_of(path)) != NULL;
}

bool oct_is_sample_file(const char *path)
{
    return oct_sample_kind(kind_of(path)) != NULL;
}

bool oct_is_sound_file(const char *path)
{
    return oct_has_suffix(path, ".wav") || oct_has_suffix(path, ".wave");
}

bool oct_label_parse(const char *text, int64_t *label)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || errno || v < -1 || end[strspn(end, " \t\r\n")])
        return false;
    *label = v;
    return true;
}

uint64_t oct_file_stamp(uint64_t h, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return h;
    const int64_t now[] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
    return oct_hash(h, now, sizeof now);
}
