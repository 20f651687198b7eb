/* COCO's matching, box by box. */
#include "eval/sets/match_boxes.h"

#include "base/mem.h"

#include <string.h>

static double overlap_of(const oct_box *x, const oct_object *o)
{
    const oct_box as = { .x1 = o->x1, .y1 = o->y1, .x2 = o->x2, .y2 = o->y2 };
    return o->crowd ? oct_overlap_crowd(x, &as) : oct_overlap(x, &as);
}

bool oct_object_is_ignored(const oct_object *o, oct_matched by)
{
    return o->crowd || (by == OCT_MATCHED_POINTS && !o->needs_points);
}

/* The object that a box is matched with, or n. overlap[n] are its overlaps. Objects that are to be found come first in
 * `order`. */
static size_t best_object(oct_matched by, const oct_object *objects, const size_t *order, const double *overlap,
                          const bool *taken, size_t n, double least)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        const size_t o = order[i];
        if (taken[o] && !objects[o].crowd)
            continue;
        if (best < n && !oct_object_is_ignored(&objects[best], by) && oct_object_is_ignored(&objects[o], by))
            break; /* any other object is preferred to a crowd */
        if (overlap[o] < least)
            continue;
        least = overlap[o];
        best = o;
    }
    return best;
}

/* Orders objects: first those that are to be found, then the others, each in their order. */
static void order_objects(oct_matched by, const oct_object *objects, size_t n, size_t *order)
{
    size_t at = 0;
    for (int ignored = 0; ignored < 2; ignored++)
        for (size_t i = 0; i < n; i++)
            if (oct_object_is_ignored(&objects[i], by) == ignored)
                order[at++] = i;
}

/* The overlaps as NumPy's linspace computes them. */
static double least_overlap(int t)
{
    return t == OCT_OVERLAPS - 1 ? 0.95 : t * ((0.95 - 0.5) / (OCT_OVERLAPS - 1)) + 0.5;
}

oct_status oct_match_overlaps(oct_matched by, const double *overlap, size_t n_boxes, const oct_object *objects,
                              size_t n_objects, oct_match *match, oct_err *err)
{
    if (n_boxes)
        memset(match, 0, n_boxes * sizeof *match);
    if (!n_objects || !n_boxes)
        return OCT_OK;
    size_t *order = oct_calloc(n_objects, sizeof *order), taken_size;
    bool *taken = oct_mul_size(n_objects, OCT_OVERLAPS, &taken_size) ? oct_calloc(taken_size, sizeof *taken) : NULL;
    const bool enough = order && taken;
    if (enough)
        order_objects(by, objects, n_objects, order);
    for (size_t i = 0; enough && i < n_boxes; i++)
        for (int t = 0; t < OCT_OVERLAPS; t++) {
            bool *of = taken + (size_t)t * n_objects;
            const size_t o = best_object(by, objects, order, overlap + i * n_objects, of, n_objects, least_overlap(t));
            if (o == n_objects)
                continue;
            of[o] = true;
            *(oct_object_is_ignored(&objects[o], by) ? &match[i].ignored : &match[i].hit) |= (uint16_t)(1u << t);
        }
    oct_free(order);
    oct_free(taken);
    return enough ? OCT_OK : oct_nomem(err);
}

oct_status oct_match_boxes(const oct_box *boxes, size_t n_boxes, const oct_object *objects, size_t n_objects,
                           oct_match *match, oct_err *err)
{
    size_t n;
    double *overlap = oct_mul_size(n_boxes, n_objects, &n) ? oct_calloc(n + 1, sizeof *overlap) : NULL;
    if (!overlap)
        return oct_nomem(err);
    for (size_t i = 0; i < n_boxes; i++)
        for (size_t o = 0; o < n_objects; o++)
            overlap[i * n_objects + o] = overlap_of(&boxes[i], &objects[o]);
    const oct_status s = oct_match_overlaps(OCT_MATCHED_BOXES, overlap, n_boxes, objects, n_objects, match, err);
    oct_free(overlap);
    return s;
}
