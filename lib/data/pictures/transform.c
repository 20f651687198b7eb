/* lib/data/pictures/transform.c -- from a sample's part to the input's tensor: decode, resize, crop, order, normalise,
 * lay out, convert, check. Runs on the decoding threads. */
#include "data/pictures/image.h"
#include "data/arrays/npy.h"
#include "data/pictures/placing.h"
#include "data/readers/readers.h"
#include "data/text/token_rows.h"

#include "base/io.h"
#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The input as the steps see it. */
typedef struct target {
    const oct_input_desc *in;
    const oct_steps *steps;
    bool nhwc, sound;
    bool *setup; /* set before a failure that is not the sample's */
    oct_seen *seen;
} target;

static bool channels_like(int64_t c)
{
    return c == 1 || c == 3 || c == 4;
}

bool oct_input_is_nhwc(const oct_input_desc *in, const oct_steps *s)
{
    if (s->has_layout)
        return s->layout == OCT_LAYOUT_NHWC;
    return in->rank >= 3 && channels_like(in->dims[in->rank - 1]) && !channels_like(in->dims[in->rank - 3]);
}

bool oct_input_is_picture(const oct_input_desc *in)
{
    enum { SMALLEST = 16 };
    const oct_dtype t = in->dtype;
    if (in->rank != 4 || (t != OCT_F32 && t != OCT_F16 && t != OCT_BF16 && t != OCT_F64 && t != OCT_U8))
        return false;
    const int64_t *d = in->dims;
    const bool last = d[1] != 3 && d[1] != 1 && (d[3] == 3 || d[3] == 1);
    const int64_t c = d[last ? 3 : 1], h = d[last ? 1 : 2], w = d[last ? 2 : 3];
    if (h < 1 && w < 1)
        return c == 3;
    return (c == 3 || c == 1) && h >= SMALLEST && w >= SMALLEST && h <= 2 * w && w <= 2 * h;
}

static int64_t model_dim(const target *t, char which)
{
    if (t->in->rank != 4 && t->in->rank != 3)
        return -1;
    const int64_t *d = t->in->dims + (t->in->rank - 3);
    switch (which) {
    case 'c': return t->nhwc ? d[2] : d[0];
    case 'h': return t->nhwc ? d[0] : d[1];
    default: return t->nhwc ? d[1] : d[2];
    }
}

static oct_status check_size(const target *t, int w, int h, oct_err *err)
{
    int64_t mw = model_dim(t, 'w'), mh = model_dim(t, 'h');
    if ((mw < 0 || mw == w) && (mh < 0 || mh == h))
        return OCT_OK;
    mw = mw < 0 ? w : mw;
    mh = mh < 0 ? h : mh;
    oct_fail(err, OCT_EMALFORMED, "picture is %dx%d (width x height) after the steps, input '%s' needs %lldx%lld", w, h,
             t->in->name, (long long)mw, (long long)mh);
    if (w >= mw && h >= mh)
        oct_hint(
            err,
            "add crop=%lldx%lld (centre), resize=%lldx%lld (stretch) or letterbox=%lldx%lld (pad, as for detectors) to "
            "--preprocess%s",
            (long long)mw, (long long)mh, (long long)mw, (long long)mh, (long long)mw, (long long)mh,
            mw == 224 && mh == 224 ? "; a preset, as imagenet, resizes and crops" : "");
    else
        oct_hint(err, "add resize=%lldx%lld (stretch), or resize= and crop=, to --preprocess", (long long)mw,
                 (long long)mh);
    return OCT_EMALFORMED;
}

static oct_status too_small(const oct_image *im, const char *step, int w, int h, oct_err *err)
{
    return oct_fail(err, OCT_EMALFORMED, "picture is %dx%d (width x height), smaller than %s=%dx%d", im->w, im->h, step,
                    w, h);
}

/* The centre of the picture as it is stored. */
static oct_status precrop(const oct_steps *s, oct_image *im, oct_err *err)
{
    int w, h;
    oct_precrop_size(s, im->w, im->h, &w, &h);
    if (w > im->w || h > im->h)
        return too_small(im, "precrop", w, h, err);
    return oct_image_window(im, oct_centre_of(im->w, w), oct_centre_of(im->h, h), w, h, 0, err);
}

/* Scaled by one factor until a side fits, sides rounded to the nearest, halves to even; an odd margin is larger
 * behind. */
static oct_status letterbox(const oct_steps *s, oct_image *im, oct_err *err)
{
    int w, h;
    oct_letter_size(s, im->w, im->h, &w, &h);
    OCT_TRY(oct_image_resize(im, w, h, s->interp, err));
    return oct_image_window(im, -oct_centre_of(s->letter_w, im->w), -oct_centre_of(s->letter_h, im->h), s->letter_w,
                            s->letter_h, oct_steps_pad(s), err);
}

static oct_status geometry(const oct_steps *s, oct_image *im, int *x0, int *y0, int *w, int *h, oct_err *err)
{
    if (s->precrop_w || s->precrop > 0)
        OCT_TRY(precrop(s, im, err));
    if (s->letter_w)
        OCT_TRY(letterbox(s, im, err));
    if (s->resize_short || s->resize_w) {
        int rw, rh;
        oct_resize_size(s, im->w, im->h, &rw, &rh);
        OCT_TRY(oct_image_resize(im, rw, rh, s->interp, err));
    }
    *w = s->crop_w ? s->crop_w : im->w;
    *h = s->crop_h ? s->crop_h : im->h;
    if (*w > im->w || *h > im->h) {
        too_small(im, "crop", *w, *h, err);
        oct_hint(err, "add resize=%d before crop", *w > *h ? *w : *h);
        return OCT_EMALFORMED;
    }
    *x0 = oct_centre_of(im->w, *w);
    *y0 = oct_centre_of(im->h, *h);
    return OCT_OK;
}

static float pick(const float *v, int n, int c, float none)
{
    return n == 0 ? none : n == 1 ? v[0] : v[c];
}

static oct_status check_channels(const target *t, int c, oct_err *err)
{
    const oct_steps *s = t->steps;
    if ((s->n_mean > 1 && s->n_mean != c) || (s->n_std > 1 && s->n_std != c))
        return oct_fail(err, OCT_EUSAGE, "mean= or std= gives %d numbers, input '%s' has %d channel%s here",
                        s->n_mean > 1 ? s->n_mean : s->n_std, t->in->name, c, c == 1 ? "" : "s");
    if ((s->n_mean || s->n_std) && t->in->dtype != OCT_F32 && t->in->dtype != OCT_F16 && t->in->dtype != OCT_BF16 &&
        t->in->dtype != OCT_F64) {
        oct_fail(err, OCT_EUSAGE, "mean= and std= make real numbers, input '%s' is %s", t->in->name,
                 oct_dtype_name(t->in->dtype));
        oct_hint(err, "write INPUT/ before the step to give it to another input, or leave it out");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

/* Pillow's weights of red, green and blue for 8 bits; the same in real numbers for float. */
static float gray_of(const oct_image *im, size_t at)
{
    if (im->f32) {
        const float *p = (const float *)im->data + at;
        return (19595.0f * p[0] + 38470.0f * p[1] + 7471.0f * p[2]) / 65536.0f;
    }
    const uint8_t *p = (const uint8_t *)im->data + at;
    return (float)((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
}

/* One channel of the window into dst, `stride` values apart. from < 0: gray of three. */
static void emit_channel(const oct_image *im, int x0, int y0, int w, int h, int from, float mean, float std, float *dst,
                         size_t stride)
{
    float table[256];
    for (int i = 0; i < 256; i++)
        table[i] = ((float)i - mean) / std;
    for (int y = 0; y < h; y++) {
        size_t at = ((size_t)(y + y0) * (size_t)im->w + (size_t)x0) * (size_t)im->c;
        for (int x = 0; x < w; x++, at += (size_t)im->c, dst += stride) {
            if (from < 0)
                *dst = (gray_of(im, at) - mean) / std;
            else if (im->f32)
                *dst = (((const float *)im->data)[at + (size_t)from] - mean) / std;
            else
                *dst = table[((const uint8_t *)im->data)[at + (size_t)from]];
        }
    }
}

/* f32 block to the input's type, in place of a. */
static oct_status to_dtype(oct_array *a, oct_dtype dtype, oct_err *err)
{
    if (a->dtype == dtype)
        return OCT_OK;
    oct_array b;
    OCT_TRY(oct_array_create(&b, dtype, a->rank, a->dims, err));
    oct_status s = oct_array_convert(a->dtype, a->data, dtype, b.data, (size_t)oct_array_count(a), err);
    if (s != OCT_OK) {
        oct_array_free(&b);
        return s;
    }
    oct_array_free(a);
    *a = b;
    return OCT_OK;
}

/* Pixels are whole numbers up to 255, so that integer inputs take them through float exactly. */
static oct_status pixels_to_dtype(oct_array *a, oct_dtype dtype, oct_err *err)
{
    if (dtype == OCT_F32 || dtype == OCT_F16 || dtype == OCT_BF16 || dtype == OCT_F64)
        return to_dtype(a, dtype, err);
    const size_t n = (size_t)oct_array_count(a);
    const float *f = a->data;
    uint8_t *bytes = oct_alloc(n);
    if (!bytes)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)f[i];
    oct_array small = { .dtype = OCT_U8, .rank = a->rank, .data = bytes, .bytes = n, .owned = true };
    memcpy(small.dims, a->dims, sizeof small.dims);
    oct_array_free(a);
    *a = small;
    return to_dtype(a, dtype, err);
}

static oct_status emit(const target *t, const oct_image *im, int x0, int y0, int w, int h, oct_array *out, oct_err *err)
{
    const oct_steps *s = t->steps;
    int64_t mc = model_dim(t, 'c');
    bool gray = s->has_order && s->order == OCT_ORDER_GRAY;
    *t->setup = true; /* until the picture fits */
    if (mc == 1 && im->c == 3 && !gray) {
        oct_fail(err, OCT_EMALFORMED, "picture has 3 channels, input '%s' has 1", t->in->name);
        oct_hint(err, "add order=gray to --preprocess");
        return OCT_EMALFORMED;
    }
    int c = gray ? 1 : im->c == 1 && mc != 1 ? 3 : im->c;
    if (mc >= 0 && mc != c)
        return oct_fail(err, OCT_EMALFORMED, "picture has %d channel%s, input '%s' has %lld", c, c == 1 ? "" : "s",
                        t->in->name, (long long)mc);
    OCT_TRY(check_size(t, w, h, err));
    OCT_TRY(check_channels(t, c, err));
    if (im->f32 && t->in->dtype != OCT_F32 && t->in->dtype != OCT_F16 && t->in->dtype != OCT_BF16 &&
        t->in->dtype != OCT_F64)
        return oct_fail(err, OCT_EUNSUPPORTED, "values are float32, the model's input is %s",
                        oct_dtype_name(t->in->dtype));
    *t->setup = false;
    int64_t dims[4] = { 1, t->nhwc ? h : c, t->nhwc ? w : h, t->nhwc ? c : w };
    int lead = t->in->rank == 3 ? 0 : 1;
    OCT_TRY(oct_array_create(out, OCT_F32, 3 + lead, dims + 1 - lead, err));
    bool bgr = s->has_order && s->order == OCT_ORDER_BGR && im->c == 3;
    for (int k = 0; k < c; k++) {
        int from = im->c == 1 ? 0 : gray ? -1 : bgr ? 2 - k : k;
        size_t plane = t->nhwc ? (size_t)k : (size_t)k * (size_t)w * (size_t)h;
        emit_channel(im, x0, y0, w, h, from, pick(s->mean, s->n_mean, k, 0.0f), pick(s->std, s->n_std, k, 1.0f),
                     (float *)out->data + plane, t->nhwc ? (size_t)c : 1);
    }
    return im->f32 ? to_dtype(out, t->in->dtype, err) : pixels_to_dtype(out, t->in->dtype, err);
}

/* Takes im: it is released here. */
static oct_status from_image(const target *t, oct_image *im, oct_array *out, oct_err *err)
{
    int x0, y0, w, h;
    oct_status s = OCT_OK;
    t->seen->size = (oct_picture_size){ im->w, im->h };
    t->seen->real = im->f32;
    if (t->in->rank != 4 && t->in->rank != 3 && t->in->rank >= 0) {
        char text[96];
        *t->setup = true;
        s = oct_fail(err, OCT_EMALFORMED, "a picture cannot feed input '%s' of shape %s", t->in->name,
                     oct_dims_text(text, t->in->rank, t->in->dims));
    }
    if (s == OCT_OK)
        s = geometry(t->steps, im, &x0, &y0, &w, &h, err);
    if (s == OCT_OK)
        s = emit(t, im, x0, y0, w, h, out, err);
    oct_image_free(im);
    return s;
}

/* An array that is a picture: where its channels are. -1: the row is no picture for this input. */
enum { ROW_HW, ROW_CHW, ROW_HWC };
static int picture_form(const target *t, int rank, const int64_t *d)
{
    if (t->in->rank != 4 || rank < 2 || rank > 3)
        return -1;
    if (rank == 2)
        return ROW_HW;
    int64_t mc = model_dim(t, 'c');
    bool gray = t->steps->has_order && t->steps->order == OCT_ORDER_GRAY;
    bool first = mc >= 0 ? d[0] == mc || (gray && d[0] == 3) : channels_like(d[0]);
    bool last = mc >= 0 ? d[2] == mc || (gray && d[2] == 3) : channels_like(d[2]);
    if (first && last)
        return t->nhwc ? ROW_HWC : ROW_CHW;
    return first ? ROW_CHW : last ? ROW_HWC : -1;
}

static bool needs_picture(const target *t, int form)
{
    const oct_steps *s = t->steps;
    return s->precrop_w || s->precrop > 0 || s->letter_w || s->resize_short || s->resize_w || s->crop_w ||
           s->has_order || form == (t->nhwc ? ROW_CHW : ROW_HWC);
}

static oct_status array_to_image(const oct_array *a, const int64_t *d, int form, oct_image *im, oct_err *err)
{
    int64_t c = form == ROW_HW ? 1 : form == ROW_CHW ? d[0] : d[2];
    int64_t h = form == ROW_CHW ? d[1] : d[0], w = form == ROW_CHW ? d[2] : d[1];
    bool f32 = a->dtype != OCT_U8;
    if (c < 1 || c > 4)
        return oct_fail(err, OCT_EMALFORMED, "resize, crop and order need 1 to 4 channels, found %lld", (long long)c);
    OCT_TRY(oct_image_create(im, w, h, (int)c, f32, err));
    const size_t n = (size_t)c * (size_t)h * (size_t)w, size = f32 ? 4 : 1, plane = (size_t)h * (size_t)w;
    uint8_t *flat = im->data;
    if (form == ROW_CHW && !(flat = oct_alloc(n * size)))
        return oct_nomem(err);
    oct_status s = oct_array_convert(a->dtype, a->data, f32 ? OCT_F32 : OCT_U8, flat, n, err);
    if (form == ROW_CHW && s == OCT_OK)
        for (size_t k = 0; k < (size_t)c; k++)
            for (size_t i = 0; i < plane; i++)
                memcpy((char *)im->data + (i * (size_t)c + k) * size, flat + (k * plane + i) * size, size);
    if (form == ROW_CHW)
        oct_free(flat);
    return s;
}

/* (x - mean) / std in place on f32, channels found from the layout. */
static oct_status normalise(const target *t, oct_array *a, oct_err *err)
{
    const oct_steps *s = t->steps;
    if (!s->n_mean && !s->n_std)
        return OCT_OK;
    const int axis = a->rank < 2 ? -1 : t->nhwc || a->rank == 2 ? a->rank - 1 : a->rank >= 3 ? a->rank - 3 : -1;
    const int64_t c = axis < 0 ? 1 : a->dims[axis];
    if (s->n_mean > 1 || s->n_std > 1)
        OCT_TRY(check_channels(t, (int)(c > 4 ? 5 : c), err));
    size_t inner = 1, n = (size_t)oct_array_count(a);
    for (int i = axis + 1; axis >= 0 && i < a->rank; i++)
        inner *= (size_t)a->dims[i];
    float *x = a->data;
    for (size_t i = 0; i < n; i++) {
        int k = s->n_mean > 1 || s->n_std > 1 ? (int)(i / inner % (size_t)c) : 0;
        x[i] = (x[i] - pick(s->mean, s->n_mean, k, 0.0f)) / pick(s->std, s->n_std, k, 1.0f);
    }
    return OCT_OK;
}

static oct_status check_shape(const target *t, const oct_array *a, oct_err *err)
{
    const oct_input_desc *in = t->in;
    char have[96], want[96];
    bool fits = in->rank < 0 || in->rank == a->rank;
    for (int i = 0; fits && in->rank > 0 && i < a->rank; i++)
        fits = in->dims[i] < 0 || in->dims[i] == a->dims[i] || (i == 0 && a->dims[0] == 1);
    if (fits)
        return OCT_OK;
    *t->setup = true;
    oct_fail(err, OCT_EMALFORMED, "the sample is %s, input '%s' is %s", oct_dims_text(have, a->rank, a->dims), in->name,
             oct_dims_text(want, in->rank, in->dims));
    if (t->sound && t->steps->features)
        oct_hint(err, "the number behind log-mel=, fbank= or mfcc= is a dimension of the input");
    else if (t->sound && in->rank > 0 && in->rank < 4 && in->dims[in->rank - 1] > 0)
        oct_hint(err,
                 "frame=%lld in --preprocess cuts recordings into windows of that length, and pads the last one; rate= "
                 "resamples",
                 (long long)in->dims[in->rank - 1]);
    else if (t->sound)
        oct_hint(err, "frame= and hop= in --preprocess cut a recording into windows; log-mel=, fbank= and mfcc= make "
                      "features of it");
    else if (in->rank == 4 && a->rank == 4)
        oct_hint(err, "resize= and crop= in --preprocess change height and width, layout= the order of dimensions");
    return OCT_EMALFORMED;
}

static oct_status plain_array(const target *t, const oct_array *a, bool row, oct_array *out, oct_err *err)
{
    const oct_input_desc *in = t->in;
    int64_t dims[OCT_ARRAY_RANK + 1] = { 1 };
    int rank = a->rank;
    memcpy(dims + row, a->dims, sizeof a->dims);
    if (row && in->rank == 4 && a->rank == 2) { /* [H,W]: a channel of one */
        dims[1] = t->nhwc ? a->dims[0] : 1;
        dims[2] = t->nhwc ? a->dims[1] : a->dims[0];
        dims[3] = t->nhwc ? 1 : a->dims[1];
        rank++;
    }
    bool real = t->steps->n_mean || t->steps->n_std;
    if (real)
        OCT_TRY(check_channels(&(target){ .in = in, .steps = &(oct_steps){ .n_mean = 1 } }, 1, err));
    OCT_TRY(oct_array_create(out, real ? OCT_F32 : in->dtype, rank + row, dims, err));
    oct_status s = oct_array_convert(a->dtype, a->data, out->dtype, out->data, (size_t)oct_array_count(a), err);
    *t->setup = s == OCT_EUNSUPPORTED; /* the types do not go together, whatever the values */
    OCT_TRY(s);
    OCT_TRY(normalise(t, out, err));
    OCT_TRY(to_dtype(out, in->dtype, err));
    return check_shape(t, out, err);
}

static oct_status from_array(const target *t, const oct_array *a, bool row, oct_array *out, bool *stack, oct_err *err)
{
    /* A whole input of one row is a row: it can be stacked and take all the steps. */
    oct_array view = *a;
    if (!row && t->in->rank >= 1 && a->rank == t->in->rank && a->dims[0] == 1) {
        view.rank--;
        memmove(view.dims, view.dims + 1, (size_t)view.rank * sizeof view.dims[0]);
        row = true;
    }
    *stack = row;
    int form = row ? picture_form(t, view.rank, view.dims) : -1;
    if (form >= 0 && needs_picture(t, form)) {
        oct_image im = { 0 };
        oct_status s = array_to_image(&view, view.dims, form, &im, err);
        t->seen->turned = form == (t->nhwc ? ROW_CHW : ROW_HWC);
        if (s == OCT_OK)
            return from_image(t, &im, out, err);
        oct_image_free(&im);
        return s;
    }
    const oct_steps *s = t->steps;
    if (s->resize_short || s->resize_w || s->crop_w || s->has_order) {
        char text[96];
        *t->setup = true;
        oct_fail(err, OCT_EMALFORMED, "resize, crop and order are for pictures, the sample for input '%s' is %s",
                 t->in->name, oct_dims_text(text, view.rank, view.dims));
        oct_hint(err, "write INPUT/ before the steps to give them to the input of pictures");
        return OCT_EMALFORMED;
    }
    return plain_array(t, &view, row, out, err);
}

/* The contents of a .npy or .pb; a leading 1 or the input's own rank makes it whole. */
static oct_status from_array_bytes(const target *t, const uint8_t *p, size_t n, oct_array *out, bool *stack,
                                   oct_err *err)
{
    oct_array a = { 0 };
    oct_npy head;
    char *name = NULL;
    oct_status s;
    if (oct_npy_header_size(p, n)) {
        s = oct_npy_parse(p, n, &head, err);
        if (s == OCT_OK && n - head.offset < head.bytes)
            s = oct_fail(err, OCT_EMALFORMED, "cut short: %zu bytes of data, the header says %zu", n - head.offset,
                         head.bytes);
        if (s == OCT_OK && head.fortran) {
            oct_fail(err, OCT_EUNSUPPORTED, "Fortran order is not supported here");
            oct_hint(err, "store it with numpy.ascontiguousarray");
            s = OCT_EUNSUPPORTED;
        }
        if (s == OCT_OK) {
            a = (oct_array){ .dtype = head.dtype,
                             .rank = head.rank,
                             .data = (void *)(uintptr_t)(p + head.offset),
                             .bytes = head.bytes };
            memcpy(a.dims, head.dims, sizeof a.dims);
            if (oct_input_is_picture(t->in) && a.rank == t->in->rank && a.dims[0] > 1 && t->in->dims[0] < 0) {
                *t->setup = true; /* of pictures the first dimension counts samples; of others it may be a length */
                s = oct_fail(err, OCT_EMALFORMED, "holds %lld rows, expected one sample", (long long)a.dims[0]);
                oct_hint(err, "give the file itself to --data: then every row is a sample");
            }
        }
    } else {
        s = oct_pb_parse(p, n, &a, &name, err);
    }
    if (s == OCT_OK)
        s = from_array(t, &a, t->in->rank >= 0 && a.rank < t->in->rank, out, stack, err);
    oct_array_free(&a);
    oct_free(name);
    return s;
}

static oct_status from_bytes(const target *t, const uint8_t *p, size_t n, bool array, oct_array *out, bool *stack,
                             oct_err *err)
{
    if (array)
        return from_array_bytes(t, p, n, out, stack, err);
    oct_image im;
    OCT_TRY(oct_image_decode(p, n, &im, err));
    *stack = t->in->rank != 3;
    return from_image(t, &im, out, err);
}

static oct_status from_tokens(const target *t, const oct_part *part, oct_array *out, bool *stack, oct_err *err)
{
    oct_array row = { 0 };
    OCT_TRY(oct_token_fit(t->in, t->steps, part, &row, t->setup, err));
    const oct_status s = from_array(t, &row, true, out, stack, err);
    oct_array_free(&row);
    return s;
}

static bool holds_array(const char *path)
{
    return oct_has_suffix(path, ".npy") || oct_has_suffix(path, ".pb");
}

/* Nothing is there to read. All else that keeps a file from being opened is no fault of the sample. */
static bool is_absent(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return !S_ISREG(st.st_mode);
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
}

static oct_status decode(const target *t, const oct_part *part, oct_array *out, bool *stack, oct_err *err)
{
    if (part->kind == OCT_PART_NONE)
        return oct_fail(err, OCT_EMALFORMED, "nothing for input '%s'", t->in->name);
    if (oct_steps_of_sound(t->steps) && !part->sound) {
        *t->setup = true;
        oct_fail(
            err, OCT_EMALFORMED,
            "channel, rate, lead, frame, hop and features are for recordings, and the sample for input '%s' is not one",
            t->in->name);
        oct_hint(err, "write INPUT/ before the steps to give them to the input of recordings");
        return OCT_EMALFORMED;
    }
    if (oct_steps_of_tokens(t->steps) && !part->fill) {
        *t->setup = true;
        oct_fail(err, OCT_EMALFORMED,
                 "ids, length and pad-id are for files of token ids, and the sample for input '%s' is from none",
                 t->in->name);
        oct_hint(err, "write INPUT/ before the steps to give them to the input of token ids");
        return OCT_EMALFORMED;
    }
    if (part->fill)
        return from_tokens(t, part, out, stack, err);
    if (part->kind == OCT_PART_FILE) {
        oct_map m;
        oct_status s = oct_map_open(&m, part->path, err);
        if (s != OCT_OK) {
            *t->setup = !is_absent(part->path);
            return s;
        }
        s = from_bytes(t, m.data, m.size, holds_array(part->path), out, stack, err);
        oct_map_close(&m);
        return s;
    }
    if (part->kind == OCT_PART_BYTES)
        return from_bytes(t, part->array.data, part->array.bytes, part->path && holds_array(part->path), out, stack,
                          err);
    return from_array(t, &part->array, part->kind == OCT_PART_ROW, out, stack, err);
}

oct_status oct_part_decode(const oct_input_desc *in, const oct_steps *steps, const oct_part *part, oct_array *out,
                           bool *stack, bool *setup, oct_seen *seen, oct_err *err)
{
    *out = (oct_array){ 0 };
    *seen = (oct_seen){ 0 };
    const target t = { in, steps, oct_input_is_nhwc(in, steps), part->sound, setup, seen };
    *stack = *setup = false;
    oct_status s = decode(&t, part, out, stack, err);
    if (s == OCT_OK) {
        int64_t at = in->takes_nan ? -1 : oct_array_find_nan(out);
        if (at >= 0)
            s = oct_fail(err, OCT_ENUMERIC, "NaN for input '%s' at index %lld of the sample", in->name, (long long)at);
    }
    if (part->shared)
        *stack = false;
    if (s != OCT_OK)
        oct_array_free(out);
    return s;
}
