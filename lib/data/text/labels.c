/* lib/data/text/labels.c -- labels from .npy or CSV, by position or by file name. */
#include "data/text/labels.h"

#include "base/io.h"
#include "data/arrays/csv.h"
#include "data/readers/readers.h"

#include <stdlib.h>
#include <string.h>

typedef struct named {
    const char *path, *base; /* as the CSV resolves it; its last component */
    int64_t label;
} named;

struct oct_labels {
    oct_arena *arena;
    named *v; /* sorted by base, then path, when by_name */
    size_t n, cap;
    bool by_name;
};

void oct_labels_free(oct_labels *l)
{
    if (l)
        oct_arena_destroy(l->arena);
}

static named *add(oct_labels *l)
{
    if (!OCT_GROW(l->arena, l->v, l->n, l->cap))
        return NULL;
    l->v[l->n] = (named){ .label = -1 };
    return &l->v[l->n++];
}

static oct_status from_npy(oct_labels *l, const char *path, oct_err *err)
{
    oct_array a;
    char text[96];
    OCT_TRY(oct_npy_load(path, &a, err));
    const size_t n = (size_t)oct_array_count(&a);
    oct_status s = OCT_OK;
    if (a.rank < 1 || n != (size_t)a.dims[0])
        s = oct_fail(err, OCT_EMALFORMED, "%s: labels of shape %s, expected [N]", path,
                     oct_dims_text(text, a.rank, a.dims));
    const size_t size = (size_t)oct_dtype_bits(a.dtype) / 8;
    for (size_t i = 0; s == OCT_OK && i < n; i++) {
        named *e = add(l);
        if (!e)
            s = oct_nomem(err);
        else if ((s = oct_array_convert(a.dtype, (const char *)a.data + i * size, OCT_S64, &e->label, 1, err)) ==
                 OCT_EUNSUPPORTED)
            s = oct_fail(err, OCT_EMALFORMED, "%s: labels are %s, expected integers", path, oct_dtype_name(a.dtype));
        else if (s != OCT_OK || e->label < -1)
            s = oct_fail(err, OCT_EMALFORMED, "%s[%zu]: label %lld is not a class number", path, i,
                         (long long)e->label);
    }
    if (s == OCT_EMALFORMED)
        oct_hint(err, OCT_LABEL_HINT);
    oct_array_free(&a);
    return s;
}

static int by_base(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int d = strcmp(x->base, y->base);
    return d ? d : strcmp(x->path, y->path);
}

static oct_status from_rows(oct_labels *l, oct_csv *c, oct_err *err)
{
    const int file = oct_csv_column(c, "file"), label = oct_csv_column(c, "label");
    const int dir = (int)(oct_path_base(c->path) - c->path);
    if (label < 0)
        return oct_csv_fault(c, err, "no column 'label'");
    l->by_name = file >= 0;
    for (;;) {
        bool end;
        OCT_TRY(oct_csv_row(c, &end, err));
        if (end)
            break;
        named *e = add(l);
        if (!e)
            return oct_nomem(err);
        OCT_TRY(oct_csv_label(c, label, &e->label, err));
        if (!l->by_name)
            continue;
        const char *name = c->field[file];
        e->path = *name == '/' ? name : oct_arena_printf(l->arena, "%.*s%s", dir, c->path, name);
        if (!e->path)
            return oct_nomem(err);
        e->base = oct_path_base(e->path);
    }
    if (l->by_name && l->n)
        qsort(l->v, l->n, sizeof *l->v, by_base);
    return OCT_OK;
}

static oct_status from_csv(oct_labels *l, const char *path, oct_err *err)
{
    oct_csv c;
    OCT_TRY(oct_csv_open(&c, path, l->arena, err));
    const oct_status s = from_rows(l, &c, err);
    oct_csv_close(&c);
    return s;
}

oct_status oct_labels_load(const char *path, oct_labels **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_labels *l = a ? oct_arena_calloc(a, 1, sizeof *l) : NULL;
    if (!l) {
        if (a)
            oct_arena_destroy(a);
        return oct_nomem(err);
    }
    l->arena = a;
    oct_status s;
    if (oct_has_suffix(path, ".npy"))
        s = from_npy(l, path, err);
    else if (oct_has_suffix(path, ".csv"))
        s = from_csv(l, path, err);
    else
        s = oct_fail(err, OCT_EUSAGE, "%s: labels are read from .npy or .csv", path);
    if (s != OCT_OK) {
        oct_labels_free(l);
        return s;
    }
    *out = l;
    return OCT_OK;
}

bool oct_labels_find(const oct_labels *l, const char *name, int64_t index, int64_t *label)
{
    const named *hit = NULL;
    if (!l->by_name) {
        hit = index >= 0 && (uint64_t)index < l->n ? &l->v[index] : NULL;
    } else {
        const char *base = oct_path_base(name);
        size_t lo = 0, hi = l->n;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (strcmp(l->v[mid].base, base) < 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        /* The very path wins; a base name alone will do when it is the only one. */
        for (size_t i = lo; i < l->n && strcmp(l->v[i].base, base) == 0; i++)
            if (strcmp(l->v[i].path, name) == 0)
                hit = &l->v[i];
        bool only =
            lo < l->n && strcmp(l->v[lo].base, base) == 0 && (lo + 1 == l->n || strcmp(l->v[lo + 1].base, base) != 0);
        if (!hit && only)
            hit = &l->v[lo];
    }
    if (!hit)
        return false;
    *label = hit->label;
    return true;
}

int64_t oct_labels_count(const oct_labels *l)
{
    return l->by_name ? -1 : (int64_t)l->n;
}
