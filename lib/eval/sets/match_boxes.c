/* COCO's matching, box by box. */
#include "eval/sets/match_boxes.h"

#include "base/mem.h"

#include <string.h>

static double overlap_of(const oct_box *x, const oct_object *o)
{
    const oct_box as = { .x1 = o->x1, .y1 = o->y1, .x2 = o->x2, .y2 = o->y2 };
    return o->crowd ? oct_overlap_crowd(x, &as) : oct_overlap(x, &as);
}

/* The object that a box is matched with, or n. overlap[n] are its overlaps. Objects that are not crowds come first in
 * `order`. */
static size_t best_object(const oct_object *objects, const size_t *order, const double *overlap, const bool *taken,
                          size_t n, double least)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        const size_t o = order[i];
        if (taken[o] && !objects[o].crowd)
            continue;
        if (best < n && !objects[best].crowd && objects[o].crowd)
            break; /* any other object is preferred to a crowd */
        if (overlap[o] < least)
            continue;
        least = overlap[o];
        best = o;
    }
    return best;
}

/* Orders objects: first those that are not crowds, then crowds, each in their order. */
static void order_objects(const oct_object *objects, size_t n, size_t *order)
{
    size_t at = 0;
    for (int crowd = 0; crowd < 2; crowd++)
        for (size_t i = 0; i < n; i++)
            if (objects[i].crowd == crowd)
                order[at++] = i;
}

/* The overlaps as NumPy's linspace computes them. */
static double least_overlap(int t)
{
    return t == OCT_OVERLAPS - 1 ? 0.95 : t * ((0.95 - 0.5) / (OCT_OVERLAPS - 1)) + 0.5;
}

oct_status oct_match_boxes(const oct_box *boxes, size_t n_boxes, const oct_object *objects, size_t n_objects,
                           oct_match *match, oct_err *err)
{
    if (n_boxes)
        memset(match, 0, n_boxes * sizeof *match);
    if (!n_objects || !n_boxes)
        return OCT_OK;
    size_t *order = oct_calloc(n_objects, sizeof *order), taken_size;
    double *overlap = oct_calloc(n_objects, sizeof *overlap);
    bool *taken = oct_mul_size(n_objects, OCT_OVERLAPS, &taken_size) ? oct_calloc(taken_size, sizeof *taken) : NULL;
    const bool enough = order && overlap && taken;
    if (enough)
        order_objects(objects, n_objects, order);
    for (size_t i = 0; enough && i < n_boxes; i++) {
        for (size_t o = 0; o < n_objects; o++)
            overlap[o] = overlap_of(&boxes[i], &objects[o]);
        for (int t = 0; t < OCT_OVERLAPS; t++) {
            bool *of = taken + (size_t)t * n_objects;
            const size_t o = best_object(objects, order, overlap, of, n_objects, least_overlap(t));
            if (o == n_objects)
                continue;
            of[o] = true;
            *(objects[o].crowd ? &match[i].ignored : &match[i].hit) |= (uint16_t)(1u << t);
        }
    }
    oct_free(order);
    oct_free(overlap);
    oct_free(taken);
    return enough ? OCT_OK : oct_nomem(err);
}
