/* Resize and Upsample: nearest, linear and cubic, every coordinate mode, axis by axis. */
#include "kernels/layout.h"
#include "kernels/rows.h"
#include "ops/core/elem.h"
#include "ops/core/infer.h"
#include "ops/core/q8.h"

#include <math.h>
#include <string.h>

enum { MAX_TAPS = 4 };

/* The node's arguments for an input of known shape. */
typedef struct resize_args {
    int rank;
    bool resized[OCT_MAX_RANK];
    double scale[OCT_MAX_RANK];
    int64_t out[OCT_MAX_RANK];
    double roi_lo[OCT_MAX_RANK], roi_hi[OCT_MAX_RANK];
} resize_args;

typedef struct axis_plan {
    int64_t n_in, n_out;
    int axis, taps;
    int32_t *index;
    float *weight;    /* NULL: nearest */
    uint8_t *outside; /* n_out: 1 where the extrapolation value goes, or NULL */
} axis_plan;

typedef struct resize_state {
    axis_plan axis[OCT_MAX_RANK];
    int n;
    float extrapolation;
    size_t half;  /* scratch: two halves for intermediate results */
    bool doubles; /* interpolates a type without a kernel */
} resize_state;

/* ------------------------------------------------------------------ arguments */

/* Numbers of a constant input: floats or integers. -1 when absent, empty or not constant. */
static int numbers(const oct_tensor *t, double *v)
{
    if (!t || !t->data || t->count == 0 || t->count > 2 * OCT_MAX_RANK)
        return -1;
    for (int64_t i = 0; i < t->count; i++)
        switch (t->dtype) {
        case OCT_F32: v[i] = ((const float *)t->data)[i]; break;
        case OCT_F64: v[i] = ((const double *)t->data)[i]; break;
        case OCT_S64: v[i] = (double)((const int64_t *)t->data)[i]; break;
        default: return -1;
        }
    return (int)t->count;
}

/* The axes that scales, sizes and roi speak of. */
static oct_status named_axes(const oct_node *n, int rank, int axes[OCT_MAX_RANK], int *count, oct_err *err)
{
    const int64_t *v = oct_node_ints(n, "axes", count);
    if (!v) {
        *count = rank;
        for (int i = 0; i < rank; i++)
            axes[i] = i;
        return OCT_OK;
    }
    if (*count > rank)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'axes' names %d of %d axes", *count, rank);
    for (int i = 0; i < *count; i++)
        OCT_TRY(oct_axis(v[i], rank, &axes[i], err));
    return OCT_OK;
}

static void apply_policy(const oct_node *n, resize_args *a, const int64_t *dims, const double *size, const int *axes,
                         int count)
{
    const char *policy = oct_node_str(n, "keep_aspect_ratio_policy", "stretch");
    if (strcmp(policy, "stretch") == 0)
        return;
    bool larger = strcmp(policy, "not_larger") != 0;
    double best = 0;
    for (int i = 0; i < count; i++) {
        double s = size[i] / (double)dims[axes[i]];
        if (i == 0 || (larger ? s > best : s < best))
            best = s;
    }
    for (int i = 0; i < count; i++) {
        a->scale[axes[i]] = best;
        a->out[axes[i]] = oct_int_of_double(floor(best * (double)dims[axes[i]] + 0.5));
    }
}

/* Output size and scale per axis. *known false: an argument is not constant. */
static oct_status read_args(const oct_node *n, int64_t opset, const oct_tensor *const in[4], int rank,
                            const int64_t *dims, resize_args *a, bool *known, oct_err *err)
{
    double v[2 * OCT_MAX_RANK], roi[2 * OCT_MAX_RANK];
    int axes[OCT_MAX_RANK], count, n_attr, have;
    bool by_size = false;
    *a = (resize_args){ .rank = rank };
    *known = false;
    OCT_TRY(named_axes(n, rank, axes, &count, err));
    const float *attr = oct_node_floats(n, "scales", &n_attr);
    bool upsample = strcmp(n->op, "Upsample") == 0;
    if (attr && upsample && opset < 9) {
        have = n_attr;
        for (int i = 0; i < n_attr && i < OCT_MAX_RANK; i++)
            v[i] = attr[i];
    } else {
        int slot = upsample || opset < 11 ? 1 : 2;
        have = numbers(in[slot], v);
        if (have < 0 && slot == 2 && (have = numbers(in[3], v)) >= 0)
            by_size = true;
    }
    if (have < 0)
        return OCT_OK;
    if (have != count)
        return oct_fail(err, OCT_EMALFORMED, "%d %s for %d axes", have, by_size ? "sizes" : "scales", count);
    bool has_roi = !upsample && opset >= 11 && numbers(in[1], roi) == 2 * count;
    bool crop = strcmp(oct_node_str(n, "coordinate_transformation_mode", ""), "tf_crop_and_resize") == 0;
    for (int i = 0; i < rank; i++) {
        a->out[i] = dims[i];
        a->scale[i] = 1;
        a->roi_hi[i] = 1;
    }
    for (int i = 0; i < count; i++) {
        int x = axes[i];
        if (has_roi && crop) {
            a->roi_lo[x] = roi[i];
            a->roi_hi[x] = roi[count + i];
        }
        if (!(v[i] > 0) || v[i] > 1e9)
            return oct_fail(err, OCT_EMALFORMED, "a scale or size is %g", v[i]);
        a->scale[x] = by_size ? v[i] / (double)dims[x] : v[i];
        a->out[x] =
            by_size ? (int64_t)v[i]
                    : oct_int_of_double(floor((double)(float)v[i] * (a->roi_hi[x] - a->roi_lo[x]) * (double)dims[x]));
    }
    if (by_size)
        apply_policy(n, a, dims, v, axes, count);
    for (int i = 0; i < count; i++)
        if (a->out[axes[i]] < 0 || a->out[axes[i]] > INT32_MAX)
            return oct_fail(err, OCT_EMALFORMED, "axis %d would have size %lld", axes[i], (long long)a->out[axes[i]]);
    for (int i = 0; i < rank; i++)
        a->resized[i] = a->out[i] != dims[i] || a->scale[i] != 1 || crop;
    *known = true;
    return OCT_OK;
}

static oct_status resize_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 1 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    const oct_tensor *in[4] = { NULL };
    for (int i = 1; i < 4; i++)
        in[i] = oct_in_value(c, i) ? oct_in_value(c, i)->constant : NULL;
    /* Unknown dimensions count as 1 while the others are worked out. */
    int64_t dims[OCT_MAX_RANK];
    for (int i = 0; i < x.rank; i++)
        dims[i] = x.d[i].n >= 0 ? x.d[i].n : 1;
    resize_args a;
    bool known;
    oct_dim d[OCT_MAX_RANK], sizes[OCT_MAX_RANK];
    OCT_TRY(read_args(oct_in_node(c), c->opset, in, x.rank, dims, &a, &known, err));
    for (int i = 0; i < x.rank; i++) {
        d[i] = (oct_dim){ -1, NULL };
        if (known && x.d[i].n >= 0)
            d[i].n = a.out[i];
        else if (known && a.scale[i] == 1)
            d[i] = x.d[i];
    }
    if (!known && !in[3] && c->opset >= 11 && oct_in_ints(c, 3, sizes, OCT_MAX_RANK) == x.rank)
        memcpy(d, sizes, sizeof sizes);
    return oct_out_shape(c, 0, x.rank, d, err);
}

/* ------------------------------------------------------------------ coordinates (ONNX Resize-13, -18, -19) */

typedef enum coordinate {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
    CROP
} coordinate;

static oct_status read_coordinate(const oct_node *n, int64_t opset, coordinate *mode, oct_err *err)
{
    static const char *const names[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize" };
    *mode = ASYMMETRIC;
    if (strcmp(n->op, "Upsample") == 0 || opset < 11)
        return OCT_OK;
    const char *s = oct_node_str(n, "coordinate_transformation_mode", "half_pixel");
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strcmp(s, names[i]) == 0) {
            *mode = (coordinate)i;
            return OCT_OK;
        }
    return oct_fail(err, OCT_EMALFORMED, "attribute 'coordinate_transformation_mode' is '%s'", s);
}

/* In float32, as ONNX Runtime computes it: nearest picks depend on it. */
static float original(coordinate mode, int64_t i, float scale, int64_t in, int64_t out, double lo, double hi)
{
    float x = (float)i;
    switch (mode) {
    case HALF_PIXEL: return (x + 0.5f) / scale - 0.5f;
    case HALF_PIXEL_SYMMETRIC: {
        float adjust = (float)out / (scale * (float)in), center = (float)in / 2.0f, offset = center * (1.0f - adjust);
        return offset + (x + 0.5f) / scale - 0.5f;
    }
    case PYTORCH_HALF_PIXEL: return out > 1 ? (x + 0.5f) / scale - 0.5f : 0.0f;
    case ALIGN_CORNERS: return out == 1 ? 0.0f : x * (float)(in - 1) / (float)(out - 1);
    case ASYMMETRIC: return x / scale;
    case TF_HALF_PIXEL: return (x + 0.5f) / scale;
    case CROP:
        return out > 1 ? (float)lo * (float)(in - 1) + x * (float)(hi - lo) * (float)(in - 1) / (float)(out - 1)
                       : 0.5f * (float)(lo + hi) * (float)(in - 1);
    }
    return x;
}

/* A coordinate's whole part once it is rounded; far outside the axis it stays outside. */
static int64_t whole(float x)
{
    const int64_t at = oct_int_of_double((double)x), far = (int64_t)1 << 40;
    return at < -far ? -far : at > far ? far : at;
}

static int64_t nearest(const char *mode, float x, bool shrinks, bool upsample)
{
    if (upsample)
        return whole(floorf(x));
    if (strcmp(mode, "floor") == 0)
        return whole(floorf(x));
    if (strcmp(mode, "ceil") == 0)
        return whole(ceilf(x));
    if (strcmp(mode, "round_prefer_ceil") == 0)
        return whole(floorf(x + 0.5f));
    if (strcmp(mode, "simple") == 0)
        return whole(shrinks ? ceilf(x) : floorf(x));
    return x == floorf(x) + 0.5f ? whole(floorf(x)) : whole(floorf(x + 0.5f)); /* round_prefer_floor */
}

/* Keys' cubic kernel with parameter a, for the four neighbours of fraction t. */
static void cubic(float t, float a, float w[4])
{
    float x[4] = { t + 1.0f, t, 1.0f - t, 2.0f - t };
    for (int k = 0; k < 4; k++)
        w[k] = k == 1 || k == 2 ? ((a + 2.0f) * x[k] - (a + 3.0f)) * x[k] * x[k] + 1.0f
                                : ((a * x[k] - 5.0f * a) * x[k] + 8.0f * a) * x[k] - 4.0f * a;
}

/* ------------------------------------------------------------------ preparing */

static int64_t limit(int64_t x, int64_t n)
{
    return x < 0 ? 0 : x >= n ? n - 1 : x;
}

static void fill_taps(const oct_node *n, axis_plan *p, int64_t i, float x)
{
    int32_t *index = p->index + i * p->taps;
    float *w = p->weight + i * p->taps;
    if (p->taps == 2) {
        /* Coordinates are held inside before the weights are taken, so that borders repeat. */
        x = x < 0.0f ? 0.0f : x > (float)(p->n_in - 1) ? (float)(p->n_in - 1) : x;
        int64_t at = whole(floorf(x));
        index[0] = (int32_t)limit(at, p->n_in);
        index[1] = (int32_t)limit(at + 1, p->n_in);
        w[1] = x - (float)at;
        w[0] = 1.0f - w[1];
        return;
    }
    int64_t at = whole(floorf(x));
    cubic(x - (float)at, oct_node_float(n, "cubic_coeff_a", -0.75f), w);
    bool exclude = oct_node_int(n, "exclude_outside", 0) != 0;
    float sum = 0.0f;
    for (int k = 0; k < 4; k++) {
        int64_t from = at - 1 + k;
        index[k] = (int32_t)limit(from, p->n_in);
        if (exclude && (from < 0 || from >= p->n_in))
            w[k] = 0.0f;
        sum += w[k];
    }
    for (int k = 0; exclude && k < 4; k++)
        w[k] /= sum;
}

/* Antialiased shrinking (ONNX Resize-18): the kernel is stretched by 1 / scale and its weights sum to 1; neighbours
 * outside count as the border's value, or not at all with exclude_outside. */
static void fill_stretched(const oct_node *n, axis_plan *p, int64_t i, float at, float scale, bool is_cubic)
{
    int32_t *index = p->index + i * p->taps;
    float *w = p->weight + i * p->taps, a = oct_node_float(n, "cubic_coeff_a", -0.75f), sum = 0.0f;
    bool exclude = oct_node_int(n, "exclude_outside", 0) != 0;
    int64_t first = whole(floorf(at)) - p->taps / 2 + 1;
    for (int k = 0; k < p->taps; k++) {
        int64_t from = first + k;
        float d = fabsf(((float)from - at) * scale);
        if (!is_cubic)
            w[k] = d < 1.0f ? 1.0f - d : 0.0f;
        else if (d < 1.0f)
            w[k] = ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f;
        else
            w[k] = d < 2.0f ? ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a : 0.0f;
        if (exclude && (from < 0 || from >= p->n_in))
            w[k] = 0.0f;
        index[k] = (int32_t)limit(from, p->n_in);
        sum += w[k];
    }
    for (int k = 0; k < p->taps; k++)
        w[k] /= sum;
}

static oct_status plan_axis(const oct_step *s, const oct_prep *p, const resize_args *a, int axis, coordinate mode,
                            int taps, axis_plan *x, oct_err *err)
{
    float scale = (float)a->scale[axis];
    bool is_cubic = taps == 4, stretched = taps > 1 && scale < 1.0f && oct_node_int(s->node, "antialias", 0);
    if (stretched) {
        float support = ceilf((is_cubic ? 2.0f : 1.0f) / scale);
        if (support > 1e6f)
            return oct_fail(err, OCT_EUNSUPPORTED, "Resize with antialias by a scale of %g cannot be run",
                            (double)scale);
        taps = 2 * (int)support;
    }
    *x = (axis_plan){ .n_in = s->in[0]->dims[axis], .n_out = a->out[axis], .axis = axis, .taps = taps };
    size_t n;
    if (!oct_mul_size((size_t)x->n_out, (size_t)taps, &n) || n > INT32_MAX)
        return oct_nomem(err);
    x->index = oct_arena_calloc(p->arena, n + 1, sizeof *x->index);
    x->weight = taps > 1 ? oct_arena_calloc(p->arena, n + 1, sizeof *x->weight) : NULL;
    x->outside = mode == CROP ? oct_arena_calloc(p->arena, (size_t)x->n_out + 1, 1) : NULL;
    if (!x->index || (taps > 1 && !x->weight) || (mode == CROP && !x->outside))
        return oct_nomem(err);
    bool upsample = strcmp(s->node->op, "Upsample") == 0;
    const char *round = oct_node_str(s->node, "nearest_mode", s->opset < 11 ? "simple" : "round_prefer_floor");
    for (int64_t i = 0; i < x->n_out; i++) {
        float at = original(mode, i, scale, x->n_in, x->n_out, a->roi_lo[axis], a->roi_hi[axis]);
        if (scale == 1.0f && x->n_in == x->n_out && mode != CROP)
            at = (float)i;
        if (x->outside && (at < 0.0f || at > (float)(x->n_in - 1)))
            x->outside[i] = 1;
        if (taps == 1)
            x->index[i] = (int32_t)limit(nearest(round, at, scale < 1.0f, upsample), x->n_in);
        else if (stretched)
            fill_stretched(s->node, x, i, at, scale, is_cubic);
        else
            fill_taps(s->node, x, i, at);
    }
    return OCT_OK;
}

static oct_status check_kind(const oct_step *s, int *taps, oct_err *err)
{
    const char *mode = oct_node_str(s->node, "mode", "nearest");
    *taps = strcmp(mode, "nearest") == 0                                   ? 1
            : strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0 ? 2
            : strcmp(mode, "cubic") == 0                                   ? 4
                                                                           : 0;
    if (!*taps)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'mode' is '%s'", mode);
    if (*taps > 1 && oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "Resize (%s) of %s cannot be run", mode,
                        oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

static oct_tensor as_tensor(const oct_operand *t)
{
    return (oct_tensor){ .dtype = t->dtype, .rank = t->rank, .count = t->count, .data = t->data };
}

static oct_status resize_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    resize_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    int taps;
    coordinate mode;
    resize_args a;
    bool known;
    if (!st)
        return oct_nomem(err);
    s->state = st;
    OCT_TRY(check_kind(s, &taps, err));
    OCT_TRY(read_coordinate(s->node, s->opset, &mode, err));
    oct_tensor t[4] = { { 0 } };
    const oct_tensor *in[4] = { NULL };
    for (int i = 1; i < 4 && i < s->n_in; i++)
        if (s->in[i] && s->in[i]->constant) {
            t[i] = as_tensor(s->in[i]);
            in[i] = &t[i];
        }
    OCT_TRY(read_args(s->node, s->opset, in, s->in[0]->rank, s->in[0]->dims, &a, &known, err));
    if (!known)
        return oct_fail(err, OCT_EUNSUPPORTED, "scales or sizes of %s are not constant", s->node->op);
    if (s->in[0]->count == 0 && s->out[0]->count != 0)
        return oct_fail(err, OCT_EMALFORMED, "nothing cannot become %lld elements", (long long)s->out[0]->count);
    st->extrapolation = oct_node_float(s->node, "extrapolation_value", 0.0f);
    int64_t count = s->in[0]->count, largest = 0;
    for (int i = 0; i < a.rank; i++) {
        if (a.out[i] != s->out[0]->dims[i])
            return oct_fail(err, OCT_EINTERNAL, "axis %d: size %lld differs from the inferred %lld", i,
                            (long long)a.out[i], (long long)s->out[0]->dims[i]);
        if (!a.resized[i])
            continue;
        OCT_TRY(plan_axis(s, p, &a, i, mode, taps, &st->axis[st->n++], err));
        count = s->in[0]->dims[i] ? count / s->in[0]->dims[i] * a.out[i] : 0;
        largest = count > largest ? count : largest;
    }
    size_t bytes;
    st->doubles = taps > 1 && s->in[0]->dtype != OCT_F32;
    largest = st->doubles && s->in[0]->count > largest ? s->in[0]->count : largest;
    if (!oct_dtype_bytes(st->doubles ? OCT_F64 : s->in[0]->dtype, largest, &bytes) || bytes > SIZE_MAX / 4)
        return oct_nomem(err);
    st->half = oct_round_up(bytes, 64);
    s->scratch = st->n > 1 || st->doubles ? 2 * st->half : 0;
    return OCT_OK;
}

/* ------------------------------------------------------------------ running */

static void fill_outside(const axis_plan *x, float value, size_t outer, size_t inner, float *y)
{
    for (size_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < x->n_out; i++)
            for (size_t k = 0; x->outside[i] && k < inner; k++)
                y[(o * (size_t)x->n_out + (size_t)i) * inner + k] = value;
}

/* Along one axis, as oct_resize_axis_f32. */
static void resize_axis_f64(const axis_plan *x, const double *from, int64_t outer, int64_t inner, double fill,
                            double *to)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < x->n_out; i++)
            for (int64_t k = 0; k < inner; k++) {
                double sum = 0.0;
                for (int t = 0; t < x->taps; t++)
                    sum += (double)x->weight[i * x->taps + t] *
                           from[(o * x->n_in + x->index[i * x->taps + t]) * inner + k];
                to[(o * x->n_out + i) * inner + k] = x->outside && x->outside[i] ? fill : sum;
            }
}

/* n elements between two types, in one of which the values are whole or double. */
static void convert(const oct_operand *from, const void *data, oct_dtype to, void *dst, int64_t n)
{
    for (int64_t first = 0; first < n; first += 1024) {
        oct_chunk c;
        const int64_t part = n - first < 1024 ? n - first : 1024;
        const void *v = oct_elem_load(from->dtype, data, first, 1, part, &c);
        oct_elem_store(to, dst, first, 1, part, oct_dom_of(from->dtype), v);
    }
}

/* Types without a kernel: float64 throughout, rounded once; integers are truncated. */
static void run_doubles(const resize_state *st, const oct_step *s, const oct_run *r)
{
    double *half[2] = { r->scratch, (double *)(void *)((char *)r->scratch + st->half) };
    oct_operand now = *s->in[0];
    convert(&now, now.data, OCT_F64, half[0], now.count);
    for (int i = 0; i < st->n; i++) {
        const axis_plan *x = &st->axis[i];
        int64_t stride[OCT_MAX_RANK];
        oct_operand_strides(&now, stride);
        const int64_t inner = stride[x->axis], outer = now.count / inner / x->n_in;
        resize_axis_f64(x, half[i % 2], outer, inner, (double)st->extrapolation, half[(i + 1) % 2]);
        now.dims[x->axis] = x->n_out;
        now.count = now.count / x->n_in * x->n_out;
    }
    now.dtype = OCT_F64;
    convert(&now, half[st->n % 2], s->out[0]->dtype, s->out[0]->data, now.count);
}

static oct_status resize_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const resize_state *st = s->state;
    size_t size = (size_t)oct_dtype_bits(s->in[0]->dtype) / 8;
    if (s->out[0]->count == 0)
        return OCT_OK;
    if (st->n == 0) {
        memcpy(s->out[0]->data, s->in[0]->data, (size_t)s->in[0]->count * size);
        return OCT_OK;
    }
    if (st->doubles) {
        run_doubles(st, s, r);
        return OCT_OK;
    }
    const void *from = s->in[0]->data;
    oct_operand now = *s->in[0];
    for (int i = 0; i < st->n; i++) {
        const axis_plan *x = &st->axis[i];
        void *to = i == st->n - 1 ? s->out[0]->data : (char *)r->scratch + (size_t)(i % 2) * st->half;
        int64_t stride[OCT_MAX_RANK];
        oct_operand_strides(&now, stride);
        size_t inner = (size_t)stride[x->axis], outer = (size_t)now.count / inner / (size_t)x->n_in;
        if (x->taps == 1)
            oct_resize_axis_nearest(r->pool, from, outer, (size_t)x->n_in, inner, (size_t)x->n_out, x->index, size, to);
        else
            oct_resize_axis_f32(r->pool, from, outer, (size_t)x->n_in, inner, (size_t)x->n_out, x->taps, x->index,
                                x->weight, to);
        if (x->outside && now.dtype == OCT_F32)
            fill_outside(x, st->extrapolation, outer, inner, to);
        now.dims[x->axis] = x->n_out;
        now.count = now.count / x->n_in * x->n_out;
        from = to;
    }
    return OCT_OK;
}

static bool resize_integer(const oct_step *s)
{
    return strcmp(oct_node_str(s->node, "mode", "nearest"), "nearest") == 0 && oct_q8(s->in[0]) && oct_q8(s->out[0]) &&
           oct_q8_same(s->in[0], s->out[0]);
}

/* ------------------------------------------------------------------ raising */

/* Opset 11: Resize gains roi before scales and coordinate modes; what opset 10 computed is "asymmetric", and its
 * nearest is floor when enlarging (which "floor" says for both directions used by exporters). */
static oct_status to_11(oct_graph *g, int node, oct_err *err)
{
    if (g->node[node].n_in < 2 || g->node[node].in[1] < 0)
        return oct_fail(err, OCT_EMALFORMED, "the scales are missing");
    int scales = g->node[node].in[1];
    OCT_TRY(oct_graph_set_input(g, node, 2, scales, err));
    OCT_TRY(oct_graph_set_input(g, node, 1, -1, err));
    OCT_TRY(oct_node_set_str(g, node, "coordinate_transformation_mode", "asymmetric", err));
    if (strcmp(oct_node_str(&g->node[node], "mode", "nearest"), "nearest") == 0)
        OCT_TRY(oct_node_set_str(g, node, "nearest_mode", "floor", err));
    /* Opset 11 wants roi to be there, if only empty. */
    int roi;
    int64_t none = 0;
    float nothing = 0;
    OCT_TRY(oct_graph_new_const_f32(g, "roi", 1, &none, &nothing, &roi, err));
    return oct_graph_set_input(g, node, 1, roi, err);
}

static oct_status resize_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    return from + 1 == 11 ? to_11(g, node, err) : OCT_OK;
}

/* Upsample: scales become an input in 9; in 10 it is deprecated and becomes Resize. */
static oct_status upsample_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    int n, v;
    if (from + 1 == 9) {
        const float *scales = oct_node_floats(&g->node[node], "scales", &n);
        int64_t dims = n;
        if (!scales)
            return oct_fail(err, OCT_EMALFORMED, "attribute 'scales' is missing");
        OCT_TRY(oct_graph_new_const_f32(g, "scales", 1, &dims, scales, &v, err));
        OCT_TRY(oct_graph_set_input(g, node, 1, v, err));
        oct_node_drop_attr(g, node, "scales");
    }
    if (from + 1 == 10) {
        g->node[node].op = "Resize";
        g->node[node].changed = g->changed = true;
    }
    return OCT_OK;
}

static const char *resize_no_integer(const oct_node *n)
{
    return strcmp(oct_node_str(n, "mode", "nearest"), "nearest") == 0 ? NULL : "the target interpolates in float";
}

const oct_op oct_op_resize = {
    OCT_SCHEMA("Resize", "", 10, 1, 4, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = resize_infer,
    .prepare = resize_prepare,
    .run = resize_run,
    .layout = OCT_RULE_SPATIAL,
    .integer = resize_integer,
    .no_integer = resize_no_integer,
    .quant = OCT_QUANT_SAME,
    .raise = resize_raise,
    .widens = true,
    .counts = ~1u,
};
const oct_op oct_op_upsample = {
    OCT_SCHEMA("Upsample", "", 7, 1, 2, 1, 1),
    .until = 9,
    .work = OCT_WORK_PAIRS,
    .infer = resize_infer,
    .prepare = resize_prepare,
    .run = resize_run,
    .layout = OCT_RULE_SPATIAL,
    .quant = OCT_QUANT_SAME,
    .raise = upsample_raise,
    .widens = true,
};
