/* Overlaps of masks, and of keypoints. */
#include "eval/sets/object_overlaps.h"

#include "base/mem.h"
#include "kernels/math.h"

#include <math.h>

bool oct_overlaps_known(const oct_judging *j, oct_matched by)
{
    const oct_box_rule *b = j->rule ? &j->rule->box : NULL;
    if (by == OCT_MATCHED_BOXES)
        return true;
    return b && j->truth && (by == OCT_MATCHED_MASKS ? b->prototypes.given : b->keypoints.given);
}

/* ---- masks ---- */

typedef struct prototypes {
    const float *v; /* [n][h][w] */
    size_t n;
    int64_t w, h;
    double *sum; /* [h][w] by one box's coefficients, where it was computed */
} prototypes;

static oct_status open_prototypes(const oct_overlap_case *c, size_t coefficients, prototypes *p, oct_err *err)
{
    enum { RANK = 3 };
    const oct_set_tensor *t;
    OCT_TRY(oct_output_find(&c->judging->rule->box.prototypes, RANK, c->out, c->n_out, &t, err));
    if (t->rank != RANK || (uint64_t)t->dims[0] != coefficients || t->dims[1] < 1 || t->dims[2] < 1) {
        char text[96];
        return oct_fail(err, OCT_EUSAGE, "--decode: %zu coefficients, and prototypes of shape %s", coefficients,
                        oct_dims_text(text, t->rank, t->dims));
    }
    *p = (prototypes){ .v = t->v, .n = coefficients, .h = t->dims[1], .w = t->dims[2] };
    p->sum = oct_calloc((size_t)(p->w * p->h), sizeof *p->sum);
    return p->sum ? OCT_OK : oct_nomem(err);
}

/* Whole numbers from `from` on to before `to`, both of them between 0 and n. */
typedef struct span {
    int64_t from, to;
} span;

/* The pixels whose middle lies between two coordinates. */
static span pixels_of(double a, double b, double n)
{
    const double from = fmin(fmax(ceil(a - 0.5), 0), n), to = fmin(fmax(ceil(b - 0.5), from), n);
    return (span){ (int64_t)from, (int64_t)to };
}

/* Where the middle of a pixel of the picture lies among n places of prototypes that cover `size` pixels of the input.
 */
static double place_of(int64_t pixel, double scale, double shift, double size, int64_t n)
{
    const double at = (((double)pixel + 0.5) * scale + shift) * (double)n / size - 0.5;
    return fmin(fmax(at, 0), (double)(n - 1));
}

static span places_of(span pixels, double scale, double shift, double size, int64_t n)
{
    const double a = place_of(pixels.from, scale, shift, size, n), b = place_of(pixels.to - 1, scale, shift, size, n);
    return (span){ (int64_t)floor(a), (int64_t)fmin(floor(b) + 2, (double)n) };
}

static void sum_prototypes(prototypes *p, const double *coefficient, span x, span y)
{
    for (int64_t r = y.from; r < y.to; r++)
        for (int64_t k = x.from; k < x.to; k++) {
            const float *v = p->v + r * p->w + k;
            double sum = 0;
            for (size_t i = 0; i < p->n; i++)
                sum += coefficient[i] * (double)v[(int64_t)i * p->w * p->h];
            p->sum[r * p->w + k] = sum;
        }
}

static double interpolate(const prototypes *p, double x, double y)
{
    const int64_t x0 = (int64_t)x, y0 = (int64_t)y, x1 = x0 + 1 < p->w ? x0 + 1 : x0, y1 = y0 + 1 < p->h ? y0 + 1 : y0;
    const double fx = x - (double)x0, fy = y - (double)y0, *a = p->sum + y0 * p->w, *b = p->sum + y1 * p->w;
    return (a[x0] * (1 - fx) + a[x1] * fx) * (1 - fy) + (b[x0] * (1 - fx) + b[x1] * fx) * fy;
}

static oct_status found_mask(const oct_overlap_case *c, prototypes *p, const oct_box *box, const double *coefficient,
                             oct_mask *m, oct_err *err)
{
    const oct_placing *at = &c->placing;
    const span x = pixels_of(box->x1, box->x2, c->picture_w), y = pixels_of(box->y1, box->y2, c->picture_h);
    const uint64_t w = (uint64_t)c->picture_w, h = (uint64_t)c->picture_h;
    uint64_t last = 0;
    oct_mask_begin(m);
    if (x.to > x.from && y.to > y.from)
        sum_prototypes(p, coefficient, places_of(x, at->sx, at->tx, c->w, p->w),
                       places_of(y, at->sy, at->ty, c->h, p->h));
    for (int64_t k = x.from; k < x.to; k++) {
        const double px = place_of(k, at->sx, at->tx, c->w, p->w);
        for (int64_t r = y.from; r < y.to; r++) {
            const bool inside = interpolate(p, px, place_of(r, at->sy, at->ty, c->h, p->h)) > 0;
            if (inside != (m->n & 1) && !oct_mask_turn(m, &last, (uint64_t)k * h + (uint64_t)r))
                return oct_nomem(err);
        }
        if (m->n & 1 && !oct_mask_turn(m, &last, (uint64_t)k * h + (uint64_t)y.to))
            return oct_nomem(err);
    }
    return oct_mask_turn(m, &last, w * h) ? OCT_OK : oct_nomem(err);
}

static oct_status object_masks(const oct_overlap_case *c, const oct_object *objects, size_t n, oct_mask *mask,
                               oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!objects[i].shape) {
            oct_fail(err, OCT_EMALFORMED, "%s: an object has no mask", oct_truth_path(c->judging->truth));
            oct_hint(err, "metrics of masks need polygons or runs of each object: segmentation in COCO's JSON");
            return OCT_EMALFORMED;
        }
        OCT_TRY_WITHIN(oct_mask_of_object(objects[i].shape, c->unit_x, c->unit_y, (int64_t)c->picture_w,
                                          (int64_t)c->picture_h, &mask[i], err),
                       err, "%s", oct_truth_path(c->judging->truth));
    }
    return OCT_OK;
}

static oct_status overlap_masks(const oct_overlap_case *c, const oct_box *boxes, size_t n_boxes,
                                const oct_object *objects, size_t n_objects, double *overlap, oct_err *err)
{
    prototypes p = { 0 };
    oct_mask found = { 0 };
    size_t columns;
    double *coefficient = NULL;
    oct_mask *mask = oct_calloc(n_objects + 1, sizeof *mask);
    oct_status s = mask ? object_masks(c, objects, n_objects, mask, err) : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_boxes_columns(&c->judging->rule->box.coefficients, "coefficients", c->out, c->n_out, boxes, n_boxes,
                              &coefficient, &columns, err);
    if (s == OCT_OK)
        s = open_prototypes(c, columns, &p, err);
    for (size_t i = 0; i < n_boxes && s == OCT_OK; i++) {
        s = found_mask(c, &p, &boxes[i], coefficient + i * columns, &found, err);
        for (size_t o = 0; o < n_objects && s == OCT_OK; o++)
            overlap[i * n_objects + o] = oct_mask_overlap(&found, &mask[o], objects[o].crowd);
    }
    for (size_t o = 0; mask && o < n_objects; o++)
        oct_mask_free(&mask[o]);
    oct_mask_free(&found);
    oct_free(mask);
    oct_free(coefficient);
    oct_free(p.sum);
    return s;
}

/* ---- keypoints ---- */

/* Of COCO's people, from the nose to the ankles. */
enum { COCO_POINTS = 17 };
static const double coco_sigma[COCO_POINTS] = { 0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072,
                                                0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089 };

static double sigma_of(const oct_box_rule *b, size_t i, size_t n)
{
    return b->n_sigmas ? b->sigma[i] : n == COCO_POINTS ? coco_sigma[i] : 1 / (double)n;
}

/* How far v lies outside of a span that is as long as the box's side on each of its sides, too. */
static double outside(double v, double lo, double hi)
{
    const double side = hi - lo;
    return fmax(0, lo - side - v) + fmax(0, v - (hi + side));
}

/* found: x and y of each keypoint, in pixels of the picture. */
static double similarity(const oct_overlap_case *c, const double *found, size_t n, const oct_object *o)
{
    double sum = 0, counted = 0;
    for (size_t i = 0; i < n; i++) {
        const double sigma = 2 * sigma_of(&c->judging->rule->box, i, n), x = found[2 * i], y = found[2 * i + 1];
        double dx = outside(x, o->x1, o->x2), dy = outside(y, o->y1, o->y2);
        if (o->n_visible) {
            if (!(o->point[3 * i + 2] > 0))
                continue;
            dx = x - o->point[3 * i] * c->unit_x;
            dy = y - o->point[3 * i + 1] * c->unit_y;
        }
        sum += oct_exp(-(dx * dx + dy * dy) / (sigma * sigma) / (o->area + 0x1p-52) / 2);
        counted++;
    }
    return counted > 0 ? sum / counted : 0;
}

static oct_status check_points(const oct_overlap_case *c, size_t columns, const oct_object *objects, size_t n,
                               oct_err *err)
{
    const oct_box_rule *b = &c->judging->rule->box;
    const size_t size = (size_t)b->point_size, points = columns / size;
    if (columns % size || !points)
        return oct_fail(err, OCT_EUSAGE, "--decode: keypoints have %zu columns, and %d numbers each", columns,
                        b->point_size);
    if (b->n_sigmas && (size_t)b->n_sigmas != points)
        return oct_fail(err, OCT_EUSAGE, "--decode: there are %zu keypoints, and %d sigmas", points, b->n_sigmas);
    for (size_t i = 0; i < n; i++)
        if (objects[i].n_points && objects[i].n_points != points)
            return oct_fail(err, OCT_EMALFORMED, "%s: an object has %zu keypoints, and the model gives %zu",
                            oct_truth_path(c->judging->truth), objects[i].n_points, points);
    return OCT_OK;
}

static oct_status overlap_points(const oct_overlap_case *c, const oct_box *boxes, size_t n_boxes,
                                 const oct_object *objects, size_t n_objects, double *overlap, oct_err *err)
{
    const size_t size = (size_t)c->judging->rule->box.point_size;
    const oct_placing *at = &c->placing;
    double *v;
    size_t columns;
    OCT_TRY(oct_boxes_columns(&c->judging->rule->box.keypoints, "keypoints", c->out, c->n_out, boxes, n_boxes, &v,
                              &columns, err));
    const oct_status s = check_points(c, columns, objects, n_objects, err);
    for (size_t i = 0; i < n_boxes && s == OCT_OK; i++) {
        double *found = v + i * columns;
        for (size_t k = 0; k < columns / size; k++) {
            const double x = (found[k * size] - at->tx) / at->sx, y = (found[k * size + 1] - at->ty) / at->sy;
            found[2 * k] = x;
            found[2 * k + 1] = y;
        }
        for (size_t o = 0; o < n_objects; o++)
            overlap[i * n_objects + o] = similarity(c, found, columns / size, &objects[o]);
    }
    oct_free(v);
    return s;
}

oct_status oct_object_overlaps(const oct_overlap_case *c, oct_matched by, const oct_box *boxes, size_t n_boxes,
                               const oct_object *objects, size_t n_objects, double *overlap, oct_err *err)
{
    return by == OCT_MATCHED_MASKS ? overlap_masks(c, boxes, n_boxes, objects, n_objects, overlap, err)
                                   : overlap_points(c, boxes, n_boxes, objects, n_objects, overlap, err);
}
