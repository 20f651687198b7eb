/* Overlaps of boxes, and non-maximum suppression. */
#include "eval/sets/boxes.h"

#include "base/mem.h"

#include <stdlib.h>

enum { MOST_CANDIDATES = 30000 }; /* only this many of the best boxes are examined */

void oct_boxes_free(oct_boxes *b)
{
    oct_free(b->v);
    *b = (oct_boxes){ 0 };
}

static double area(const oct_box *a)
{
    return (a->x2 - a->x1) * (a->y2 - a->y1);
}

static double both(const oct_box *a, const oct_box *b)
{
    const double x1 = a->x1 > b->x1 ? a->x1 : b->x1, x2 = a->x2 < b->x2 ? a->x2 : b->x2;
    const double y1 = a->y1 > b->y1 ? a->y1 : b->y1, y2 = a->y2 < b->y2 ? a->y2 : b->y2;
    return x2 > x1 && y2 > y1 ? (x2 - x1) * (y2 - y1) : 0;
}

double oct_overlap(const oct_box *a, const oct_box *b)
{
    const double i = both(a, b), u = area(a) + area(b) - i;
    return u > 0 ? i / u : 0;
}

double oct_overlap_crowd(const oct_box *a, const oct_box *crowd)
{
    const double i = both(a, crowd), u = area(a);
    return u > 0 ? i / u : 0;
}

static int best_first(const void *a, const void *b)
{
    const oct_box *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    if (x->row != y->row)
        return x->row > y->row ? 1 : -1;
    return (x->class_place > y->class_place) - (x->class_place < y->class_place);
}

static bool stays(const oct_boxes *b, size_t kept, const oct_box *x, double limit, bool all, int64_t most_of_class)
{
    int64_t same = 0;
    for (size_t i = 0; i < kept; i++) {
        const bool of_class = b->v[i].class_place == x->class_place;
        same += of_class;
        if ((all || of_class) && limit <= 1 && oct_overlap(&b->v[i], x) > limit)
            return false;
    }
    return same < most_of_class;
}

void oct_boxes_suppress(oct_boxes *b, double limit, bool all, int64_t most, bool most_of_class)
{
    if (b->n)
        qsort(b->v, b->n, sizeof *b->v, best_first);
    const size_t looked_at = b->n < MOST_CANDIDATES ? b->n : MOST_CANDIDATES;
    size_t kept = 0;
    for (size_t i = 0; i < looked_at && (most_of_class || (int64_t)kept < most); i++)
        if (stays(b, kept, &b->v[i], limit, all, most_of_class ? most : INT64_MAX))
            b->v[kept++] = b->v[i];
    b->n = kept;
}
