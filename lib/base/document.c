/* A document is an array of its values, each before those inside it. */
#include "base/document.h"

#include "base/document_int.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oct_document {
    oct_arena *arena;
    oct_item *item;
    size_t n, cap, depth;
    size_t open[64]; /* what is not closed, from the outermost */
    bool failed;     /* out of memory; later values are dropped */
};

/* ---- writing ---- */

oct_document *oct_document_create(void)
{
    oct_document *d = oct_calloc(1, sizeof *d);
    if (d && (d->arena = oct_arena_create_on_heap()))
        return d;
    oct_free(d);
    return NULL;
}

void oct_document_destroy(oct_document *d)
{
    if (d)
        oct_arena_destroy(d->arena);
    oct_free(d);
}

static const char *own_text(oct_document *d, const char *s)
{
    const char *own = s ? oct_arena_strdup(d->arena, s) : NULL;
    d->failed |= s && !own;
    return own;
}

void oct_document_add(oct_document *d, oct_item x)
{
    x.key = own_text(d, x.key);
    if (x.kind == OCT_ITEM_TEXT)
        x.of.text = own_text(d, x.of.text);
    d->failed |= d->n == UINT32_MAX || !OCT_GROW(d->arena, d->item, d->n, d->cap);
    if (d->failed)
        return;
    if (d->depth)
        d->item[d->open[d->depth - 1]].count++;
    x.span = 1;
    x.count = 0;
    d->item[d->n++] = x;
}

void oct_document_open(oct_document *d, const char *key, char kind)
{
    const size_t at = d->n;
    oct_document_add(d, (oct_item){ .key = key, .kind = kind == '{' ? OCT_ITEM_OBJECT : OCT_ITEM_LIST });
    d->open[d->depth++] = at; /* a writer goes no deeper than this has room */
}

void oct_document_close(oct_document *d)
{
    const size_t at = d->open[--d->depth];
    if (!d->failed)
        d->item[at].span = (uint32_t)(d->n - at);
}

/* ---- reading ---- */

const oct_item *oct_document_root(const oct_document *d)
{
    return d && !d->failed && d->n ? d->item : NULL;
}

const oct_item *oct_item_next(const oct_item *list, const oct_item *x)
{
    if (!list)
        return NULL;
    x = x ? x + x->span : list + 1;
    return x < list + list->span ? x : NULL;
}

const oct_item *oct_item_of(const oct_item *list, size_t i)
{
    const oct_item *x = oct_item_next(list, NULL);
    while (x && i--)
        x = oct_item_next(list, x);
    return x;
}

static const oct_item *member(const oct_item *object, const char *name, size_t n)
{
    for (const oct_item *x = NULL; (x = oct_item_next(object, x));)
        if (x->key && strncmp(x->key, name, n) == 0 && !x->key[n])
            return x;
    return NULL;
}

const oct_item *oct_item_member(const oct_item *object, const char *name)
{
    return member(object, name, strlen(name));
}

const oct_item *oct_item_at(const oct_item *x, const char *path)
{
    for (; *path; path += *path == '.') {
        const size_t n = strcspn(path, ".");
        x = oct_item_is_list(x) ? oct_item_of(x, strtoul(path, NULL, 10)) : member(x, path, n);
        path += n;
    }
    return x;
}

const char *oct_item_name(const oct_item *x)
{
    return x->key;
}

double oct_item_number(const oct_item *x, const char *path)
{
    x = oct_item_at(x, path);
    switch (x ? x->kind : OCT_ITEM_NULL) {
    case OCT_ITEM_WHOLE: return (double)x->of.whole;
    case OCT_ITEM_NUMBER: return x->of.number;
    case OCT_ITEM_TRUE: return 1;
    case OCT_ITEM_FALSE: return 0;
    default: return NAN;
    }
}

int64_t oct_item_whole(const oct_item *x, const char *path)
{
    x = oct_item_at(x, path);
    return x && x->kind == OCT_ITEM_WHOLE ? x->of.whole : 0;
}

const char *oct_item_text(const oct_item *x, const char *path)
{
    x = oct_item_at(x, path);
    return x && x->kind == OCT_ITEM_TEXT ? x->of.text : NULL;
}

bool oct_item_true(const oct_item *x, const char *path)
{
    x = oct_item_at(x, path);
    return x && x->kind == OCT_ITEM_TRUE;
}

size_t oct_item_count(const oct_item *x, const char *path)
{
    x = oct_item_at(x, path);
    return x ? x->count : 0;
}

bool oct_item_is_list(const oct_item *x)
{
    return x && x->kind == OCT_ITEM_LIST;
}

static bool is_object(const oct_item *x)
{
    return x && x->kind == OCT_ITEM_OBJECT;
}

bool oct_item_is_any(const oct_item *x)
{
    if (!x || x->kind == OCT_ITEM_NULL || x->kind == OCT_ITEM_FALSE)
        return false;
    return oct_item_is_list(x) || is_object(x) ? x->count > 0
           : x->kind == OCT_ITEM_TEXT          ? *x->of.text != 0
           : x->kind == OCT_ITEM_NUMBER        ? !isnan(x->of.number) && x->of.number != 0
           : x->kind == OCT_ITEM_WHOLE         ? x->of.whole != 0
                                               : true;
}
