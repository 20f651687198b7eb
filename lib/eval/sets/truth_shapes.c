/* What the truth says of an object beside its box: its extent, and keypoints; from COCO's JSON. */
#include "eval/sets/truth_int.h"

#include "base/json_tree.h"

#include <math.h>
#include <string.h>

enum { LEAST_CORNERS = 3 };

/* The numbers of a list; NULL: it is not one of finite numbers. */
static double *read_numbers(oct_arena *a, oct_tree *list, size_t *n)
{
    *n = oct_tree_count(list);
    double *v = oct_tree_is_list(list) ? oct_arena_calloc(a, *n + 1, sizeof *v) : NULL;
    for (size_t i = 0; v && i < *n; i++)
        if (!oct_tree_number(oct_tree_at(list, i), &v[i]) || !isfinite(v[i]))
            return NULL;
    return v;
}

static bool read_polygons(oct_arena *arena, oct_tree *list, oct_object_mask *s)
{
    const size_t n = oct_tree_count(list);
    size_t all = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        all += oct_tree_count(oct_tree_at(list, i));
    double *xy = oct_arena_calloc(arena, all + 1, sizeof *xy);
    size_t *corners = oct_arena_calloc(arena, n + 1, sizeof *corners);
    if (!xy || !corners)
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t count;
        const double *v = read_numbers(arena, oct_tree_at(list, i), &count);
        if (!v || count % 2)
            return false;
        if (count < 2 * LEAST_CORNERS)
            continue; /* a point or a line has no extent */
        memcpy(xy + at, v, count * sizeof *v);
        at += count;
        corners[s->n_polygons++] = count / 2;
    }
    s->xy = xy;
    s->corners = corners;
    return true;
}

static bool read_runs(oct_arena *arena, oct_tree *runs, oct_object_mask *s)
{
    oct_tree *size = oct_tree_member(runs, "size"), *counts = oct_tree_member(runs, "counts");
    const char *text = oct_tree_text(counts);
    double h, w;
    if (!oct_tree_number(oct_tree_at(size, 0), &h) || !oct_tree_number(oct_tree_at(size, 1), &w) || !(h >= 1) ||
        !(w >= 1) || !(h * w <= OCT_MASK_MOST_PIXELS) || h != floor(h) || w != floor(w))
        return false;
    s->h = (int64_t)h;
    s->w = (int64_t)w;
    s->n_runs = text ? strlen(text) : oct_tree_count(counts);
    uint32_t *run = oct_arena_calloc(arena, s->n_runs + 1, sizeof *run);
    if (!run || !s->n_runs)
        return false;
    s->run = run;
    if (text)
        return oct_mask_read_runs(text, (uint64_t)(s->h * s->w), run, &s->n_runs);
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        double v;
        if (!oct_tree_number(oct_tree_at(counts, i), &v) || !(v >= 0 && v <= OCT_MASK_MOST_PIXELS) || v != floor(v))
            return false;
        run[i] = (uint32_t)v;
        sum += run[i];
    }
    return sum == (uint64_t)(s->h * s->w);
}

static oct_status read_extent(oct_truth *t, oct_tree *extent, size_t i, oct_object *o, oct_err *err)
{
    if (!extent)
        return OCT_OK;
    oct_object_mask *s = oct_arena_calloc(t->arena, 1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    o->shape = s;
    if (oct_tree_is_list(extent) ? read_polygons(t->arena, extent, s) : read_runs(t->arena, extent, s))
        return OCT_OK;
    oct_fail(err, OCT_EMALFORMED, "%s: the segmentation of annotations[%zu] is neither polygons nor runs", t->path, i);
    oct_hint(err, "polygons are lists of x and y; runs have a size and counts, which add up to the picture's pixels");
    return OCT_EMALFORMED;
}

static oct_status read_points(oct_truth *t, oct_tree *list, size_t i, oct_object *o, oct_err *err)
{
    size_t n;
    if (!list)
        return OCT_OK;
    o->point = read_numbers(t->arena, list, &n);
    if (!o->point || n % 3)
        return oct_fail(err, OCT_EMALFORMED,
                        "%s: the keypoints of annotations[%zu] are not x, y and visibility of each", t->path, i);
    o->n_points = n / 3;
    for (size_t k = 0; k < o->n_points; k++)
        o->n_visible += o->point[3 * k + 2] > 0;
    return OCT_OK;
}

oct_status oct_truth_read_shapes(oct_truth *t, oct_tree *annotation, size_t i, oct_object *o, oct_err *err)
{
    double area, visible;
    OCT_TRY(read_extent(t, oct_tree_member(annotation, "segmentation"), i, o, err));
    OCT_TRY(read_points(t, oct_tree_member(annotation, "keypoints"), i, o, err));
    o->area = (o->x2 - o->x1) * (o->y2 - o->y1);
    if (oct_tree_number(oct_tree_member(annotation, "area"), &area) && area >= 0 && isfinite(area))
        o->area = area;
    /* As COCO's evaluation: an object that says it has none need not be found. */
    if (oct_tree_number(oct_tree_member(annotation, "num_keypoints"), &visible))
        o->needs_points = visible > 0;
    else
        o->needs_points = o->n_visible > 0;
    return OCT_OK;
}
