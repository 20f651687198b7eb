/* The names of samples that a truth knows: sorted, and found again. */
#include "eval/sets/truth_int.h"

#include "base/io.h"

#include <stdlib.h>
#include <string.h>

static size_t stem_of(const char *base)
{
    const size_t n = strlen(base);
    const char *dot = strrchr(base, '.');
    return dot && dot != base && base[n - 1] != ']' ? (size_t)(dot - base) : n; /* "x.npy[3]" is a row of an array */
}

static int compare_base(const char *have, const char *want, bool stem)
{
    if (!stem)
        return strcmp(have, want);
    const size_t n = stem_of(have), m = stem_of(want);
    const int d = strncmp(have, want, n < m ? n : m);
    return d ? d : (n > m) - (n < m);
}

/* Compares what precedes the last dot, and then the whole name. */
static int by_base(const void *a, const void *b)
{
    const oct_truth_named *x = a, *y = b;
    const int s = compare_base(x->base, y->base, true), d = strcmp(x->base, y->base);
    return s ? s : d ? d : strcmp(x->path, y->path);
}

/* The same without stems. */
static int by_whole_base(const void *a, const void *b)
{
    const oct_truth_named *x = a, *y = b;
    const int d = strcmp(x->base, y->base);
    return d ? d : strcmp(x->path, y->path);
}

static int by_index(const void *a, const void *b)
{
    const oct_truth_named *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

void oct_truth_sort(oct_truth *t)
{
    for (size_t i = 0; i < t->n_names && !t->by_index; i++)
        t->name[i].base = oct_path_base(t->name[i].path);
    if (t->n_names)
        qsort(t->name, t->n_names, sizeof *t->name, t->by_index ? by_index : t->by_stem ? by_base : by_whole_base);
}

/* Whether `path` equals `name` or is the end of it. */
static bool ends_so(const char *name, const char *path)
{
    const size_t n = strlen(name), m = strlen(path);
    return m <= n && strcmp(name + n - m, path) == 0 && (m == n || name[n - m - 1] == '/');
}

static const oct_truth_named *find_index(const oct_truth *t, int64_t index)
{
    size_t lo = 0, hi = t->n_names;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->name[mid].index < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->n_names && t->name[lo].index == index ? &t->name[lo] : NULL;
}

const oct_truth_named *oct_truth_find(const oct_truth *t, const char *name, int64_t index)
{
    const char *base = oct_path_base(name);
    size_t lo = 0, hi = t->n_names;
    if (t->by_index)
        return find_index(t, index);
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (compare_base(t->name[mid].base, base, t->by_stem) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    size_t end = lo;
    for (; end < t->n_names && compare_base(t->name[end].base, base, t->by_stem) == 0; end++)
        if (ends_so(name, t->name[end].path))
            return &t->name[end];
    return end == lo + 1 ? &t->name[lo] : NULL;
}
