/* lib/ops/vision/op_roi.c -- pooling of regions of interest: RoiAlign, MaxRoiPool. */
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

/* Output [regions, channels, height, width] for regions of `columns` values. */
static oct_status roi_infer(const oct_infer *c, int columns, int64_t height, int64_t width, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), r = oct_in_shape(c, 1);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (height < 1 || width < 1)
        return oct_fail(err, OCT_EMALFORMED, "an output of %lld x %lld", (long long)height, (long long)width);
    if (x.rank >= 0 && x.rank != 4)
        return oct_fail(err, OCT_EMALFORMED, "the input has %d dimensions, expected 4", x.rank);
    if (r.rank >= 0 && (r.rank != 2 || (r.d[1].n >= 0 && r.d[1].n != columns)))
        return oct_fail(err, OCT_EMALFORMED, "the regions are not rows of %d values", columns);
    if (x.rank < 0 || r.rank < 0)
        return OCT_OK;
    return oct_out_shape(c, 0, 4, (oct_dim[]){ r.d[0], x.d[1], oct_dim_of(height), oct_dim_of(width) }, err);
}

static oct_status roi_types(const oct_step *s, oct_err *err)
{
    const oct_dtype t = s->in[0]->dtype;
    if ((t != OCT_F32 && t != OCT_F64) || s->in[1]->dtype != t)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s with regions of %s", oct_dtype_name(t),
                        oct_dtype_name(s->in[1]->dtype));
    if (s->in[0]->dims[2] < 1 || s->in[0]->dims[3] < 1 || s->in[0]->dims[2] > INT32_MAX ||
        s->in[0]->dims[3] > INT32_MAX)
        return oct_fail(err, OCT_EMALFORMED, "the input is empty");
    return OCT_OK;
}

static oct_status check_image(const oct_operand *x, double image, oct_err *err)
{
    if (!(image >= 0.0 && image < (double)x->dims[0]))
        return oct_fail(err, OCT_EMALFORMED, "a region of image %g of %lld", image, (long long)x->dims[0]);
    return OCT_OK;
}

/* ------------------------------------------------------------------ RoiAlign */

static oct_status align_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    return roi_infer(c, 4, oct_node_int(n, "output_height", 1), oct_node_int(n, "output_width", 1), err);
}

typedef struct align {
    const oct_operand *x, *rois, *batch, *y;
    double scale, offset;
    int64_t ratio;
    bool max, single;
} align;

static oct_status align_read(const oct_step *s, align *a, oct_err *err)
{
    const oct_node *n = s->node;
    const char *mode = oct_node_str(n, "mode", "avg"),
               *shift = oct_node_str(n, "coordinate_transformation_mode", "half_pixel");
    const bool half = s->opset >= 16 && strcmp(shift, "half_pixel") == 0;
    *a = (align){ s->in[0],
                  s->in[1],
                  s->in[2],
                  s->out[0],
                  (double)oct_node_float(n, "spatial_scale", 1.0f),
                  half ? 0.5 : 0.0,
                  oct_node_int(n, "sampling_ratio", 0),
                  strcmp(mode, "max") == 0,
                  s->in[0]->dtype == OCT_F32 };
    if ((!a->max && strcmp(mode, "avg") != 0) || (!half && s->opset >= 16 && strcmp(shift, "output_half_pixel") != 0))
        return oct_fail(err, OCT_EMALFORMED, "mode '%s' or coordinate_transformation_mode '%s'", mode, shift);
    if (a->ratio < 0 || a->ratio > 256)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'sampling_ratio' is %lld", (long long)a->ratio);
    return OCT_OK;
}

static oct_status align_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    align a;
    OCT_TRY(roi_types(s, err));
    OCT_TRY(align_read(s, &a, err));
    if (a.batch->dtype != OCT_S64 || a.batch->count != a.rois->dims[0])
        return oct_fail(err, OCT_EMALFORMED, "there is not one int64 index of an image for each region");
    return OCT_OK;
}

/* One value of the type in use: float32 places are rounded as such, since the number of samples depends on them. */
static double rounded(const align *a, double v)
{
    return a->single ? (double)(float)v : v;
}

/* Samples along one axis of one bin: place i is start + (i + 0.5) * step. */
typedef struct line {
    double start, step;
    int64_t n;           /* samples, those outside of the image included */
    int64_t first, last; /* [first, last) holds all inside */
} line;

static void set_line(const align *a, double begin, double end, int64_t bins, int64_t bin, int64_t size, line *l)
{
    begin = rounded(a, rounded(a, begin * a->scale) - a->offset);
    end = rounded(a, rounded(a, end * a->scale) - a->offset);
    double length = rounded(a, end - begin);
    if (a->offset == 0.0 && !(length >= 1.0))
        length = 1.0;
    const double part = rounded(a, length / (double)bins), count = a->ratio > 0 ? (double)a->ratio : ceil(part);
    *l = (line){ rounded(a, begin + rounded(a, (double)bin * part)), 0, 0, 0, 0 };
    if (!(count > 0.0 && count < 0x1p31) || !(fabs(begin) < 0x1p31))
        return;
    l->n = (int64_t)count;
    l->step = rounded(a, part / count);
    /* Of a huge region only the samples near the image are looked at. */
    const double low = (-1.0 - l->start) / l->step - 2.0, high = ((double)size - l->start) / l->step + 2.0;
    const double least = l->step > 0.0 ? low : 0.0, most = l->step > 0.0 ? high : count;
    l->first = least > 0.0 ? (least < count ? (int64_t)least : l->n) : 0;
    l->last = most < count ? (most > 0.0 ? (int64_t)most : 0) : l->n;
}

/* The two pixels at a place and the weight of the second; false outside. */
static bool neighbours(double p, int64_t size, int64_t at[2], double *weight)
{
    if (!(p >= -1.0 && p <= (double)size))
        return false;
    p = p > 0.0 ? p : 0.0;
    at[0] = (int64_t)p;
    at[1] = at[0] + 1;
    *weight = p - (double)at[0];
    if (at[0] >= size - 1) {
        at[0] = at[1] = size - 1;
        *weight = 0.0;
    }
    return true;
}

/* Adds one sample, interpolated among four pixels, to a sum or a maximum of c channels. */
#define ADD_SAMPLE(type)                                                                                      \
    do {                                                                                                      \
        const type *x = image, w[4] = { (type)(hy * hx), (type)(hy * wx), (type)(wy * hx), (type)(wy * wx) }; \
        const type *p[4] = { x + (ty[0] * width + tx[0]) * c, x + (ty[0] * width + tx[1]) * c,                \
                             x + (ty[1] * width + tx[0]) * c, x + (ty[1] * width + tx[1]) * c };              \
        type *y = out;                                                                                        \
        for (int64_t i = 0; i < c; i++) {                                                                     \
            const type v0 = w[0] * p[0][i], v1 = w[1] * p[1][i], v2 = w[2] * p[2][i], v3 = w[3] * p[3][i];    \
            if (!max) {                                                                                       \
                y[i] += ((v0 + v1) + v2) + v3;                                                                \
                continue;                                                                                     \
            }                                                                                                 \
            const type a = v0 > v1 ? v0 : v1, b = v2 > v3 ? v2 : v3, most = a > b ? a : b;                    \
            y[i] = y[i] > most ? y[i] : most;                                                                 \
        }                                                                                                     \
    } while (0)

static void add_sample(const align *j, const void *image, double py, double px, void *out, bool *outside)
{
    int64_t ty[2], tx[2];
    double wy, wx;
    const int64_t width = j->x->dims[3], c = j->x->dims[1];
    const bool max = j->max;
    if (!neighbours(py, j->x->dims[2], ty, &wy) || !neighbours(px, width, tx, &wx)) {
        *outside = true;
        return;
    }
    const double hy = rounded(j, 1.0 - wy), hx = rounded(j, 1.0 - wx);
    if (j->single)
        ADD_SAMPLE(float);
    else
        ADD_SAMPLE(double);
}

static void fill(const align *j, void *out, double v)
{
    for (int64_t i = 0; i < j->x->dims[1]; i++)
        if (j->single)
            ((float *)out)[i] = (float)v;
        else
            ((double *)out)[i] = v;
}

static void finish(const align *j, void *out, double count, bool zero)
{
    for (int64_t i = 0; i < j->x->dims[1]; i++) {
        float *f = (float *)out + i;
        double *d = (double *)out + i;
        if (j->single)
            *f = j->max ? (zero && !(*f > 0.0f) ? 0.0f : *f) : *f / (float)count;
        else
            *d = j->max ? (zero && !(*d > 0.0) ? 0.0 : *d) : *d / count;
    }
}

static void align_bins(void *arg, size_t begin, size_t end, size_t thread)
{
    const align *j = arg;
    const int64_t c = j->x->dims[1], h = j->x->dims[2], w = j->x->dims[3], oh = j->y->dims[2], ow = j->y->dims[3];
    const size_t size = oct_elem_size(j->x->dtype);
    for (size_t item = begin; item < end; item++) {
        const int64_t bin = (int64_t)item % (oh * ow), roi = (int64_t)item / (oh * ow);
        const int64_t image = ((const int64_t *)j->batch->data)[roi];
        double box[4];
        line ly, lx;
        for (int i = 0; i < 4; i++)
            box[i] = j->single ? (double)((const float *)j->rois->data)[roi * 4 + i]
                               : ((const double *)j->rois->data)[roi * 4 + i];
        set_line(j, box[1], box[3], oh, bin / ow, h, &ly);
        set_line(j, box[0], box[2], ow, bin % ow, w, &lx);
        char *out = (char *)j->y->data + item * (size_t)c * size;
        const char *x = (const char *)j->x->data + (size_t)(image * h * w * c) * size;
        bool outside = ly.first > 0 || lx.first > 0 || ly.last < ly.n || lx.last < lx.n || ly.n == 0 || lx.n == 0;
        fill(j, out, j->max ? -(double)INFINITY : 0.0);
        for (int64_t iy = ly.first; iy < ly.last; iy++)
            for (int64_t ix = lx.first; ix < lx.last; ix++)
                add_sample(j, x, rounded(j, ly.start + rounded(j, ((double)iy + 0.5) * ly.step)),
                           rounded(j, lx.start + rounded(j, ((double)ix + 0.5) * lx.step)), out, &outside);
        const double count = (double)ly.n * (double)lx.n;
        finish(j, out, count > 1.0 ? count : 1.0, outside);
    }
}

static oct_status align_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    align a;
    OCT_TRY(align_read(s, &a, err));
    for (int64_t i = 0; i < a.batch->count; i++)
        OCT_TRY(check_image(a.x, (double)((const int64_t *)a.batch->data)[i], err));
    if (a.y->count > 0)
        oct_pool_for(r->pool, (size_t)(a.y->count / a.x->dims[1]), 4, align_bins, &a);
    return OCT_OK;
}

/* Until opset 15 corners lay half a pixel further on than since then. */
static oct_status align_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    return from == 15 ? oct_node_set_str(g, node, "coordinate_transformation_mode", "output_half_pixel", err) : OCT_OK;
}

const oct_op oct_op_roi_align = {
    OCT_SCHEMA("RoiAlign", "", 10, 3, 3, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = align_infer,
    .prepare = align_prepare,
    .run = align_run,
    .layout = OCT_RULE_SPATIAL,
    .raise = align_raise,
    .widens = true,
};

/* ------------------------------------------------------------------ MaxRoiPool */

static oct_status max_size(const oct_node *n, int64_t size[2], oct_err *err)
{
    int count;
    const int64_t *v = oct_node_ints(n, "pooled_shape", &count);
    if (v == NULL || count != 2)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'pooled_shape' is not two sizes");
    memcpy(size, v, 2 * sizeof *v);
    return OCT_OK;
}

static oct_status max_infer(const oct_infer *c, oct_err *err)
{
    int64_t size[2];
    OCT_TRY(max_size(oct_in_node(c), size, err));
    return roi_infer(c, 5, size[0], size[1], err);
}

static oct_status max_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    return roi_types(s, err);
}

/* Pixels [*from, *to) of one bin of a region between two places. */
static void bin_range(double begin, double end, double scale, int64_t bins, int64_t bin, int64_t size, int64_t *from,
                      int64_t *to)
{
    const double first = round(begin * scale), last = round(end * scale);
    const double length = last - first + 1.0 > 1.0 ? last - first + 1.0 : 1.0, part = length / (double)bins;
    const double low = floor((double)bin * part) + first, high = ceil((double)(bin + 1) * part) + first,
                 most = (double)size;
    *from = low > 0.0 ? (low < most ? (int64_t)low : size) : 0;
    *to = high > 0.0 ? (high < most ? (int64_t)high : size) : 0;
}

static void max_of_box(const oct_operand *x, int64_t image, const int64_t y[2], const int64_t x2[2], oct_dtype t,
                       void *out)
{
    const int64_t c = x->dims[1], h = x->dims[2], w = x->dims[3];
    const bool empty = y[1] <= y[0] || x2[1] <= x2[0];
    for (int64_t i = 0; i < c; i++) {
        double most = empty ? 0.0 : -(double)INFINITY;
        for (int64_t py = y[0]; py < y[1]; py++)
            for (int64_t px = x2[0]; px < x2[1]; px++) {
                const int64_t at = ((image * h + py) * w + px) * c + i;
                const double v = t == OCT_F32 ? (double)((const float *)x->data)[at] : ((const double *)x->data)[at];
                most = v > most ? v : most;
            }
        oct_elem_store(t, out, i, 1, 1, OCT_DOM_D, &most);
    }
}

static oct_status max_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *rois = s->in[1], *y = s->out[0];
    const double scale = (double)oct_node_float(s->node, "spatial_scale", 1.0f);
    const int64_t oh = y->dims[2], ow = y->dims[3];
    for (int64_t item = 0; item < rois->dims[0] * oh * ow && y->count > 0; item++) {
        double box[5];
        int64_t py[2], px[2];
        for (int i = 0; i < 5; i++)
            box[i] = oct_elem_double(rois, item / (oh * ow) * 5 + i);
        OCT_TRY(check_image(x, box[0], err));
        bin_range(box[2], box[4], scale, oh, item / ow % oh, x->dims[2], &py[0], &py[1]);
        bin_range(box[1], box[3], scale, ow, item % ow, x->dims[3], &px[0], &px[1]);
        max_of_box(x, (int64_t)box[0], py, px, x->dtype,
                   (char *)y->data + (size_t)(item * x->dims[1]) * oct_elem_size(x->dtype));
    }
    return OCT_OK;
}

const oct_op oct_op_max_roi_pool = {
    OCT_SCHEMA("MaxRoiPool", "", 1, 2, 2, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = max_infer,
    .prepare = max_prepare,
    .run = max_run,
    .layout = OCT_RULE_SPATIAL,
    .widens = true,
};
