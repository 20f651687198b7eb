/* MaxPool, AveragePool, LpPool and their global forms; float and 8-bit. Global max and Lp pools are windows of the
 * whole image. 1-D is 2-D of height 1. The largest of 3-D windows is the largest of what 2-D windows leave of each
 * slice; other 3-D windows, float64 and MaxPool's indices run as plain loops. */
#include "kernels/math.h"
#include "kernels/pooling.h"
#include "kernels/reduce.h"
#include "ops/core/elem.h"
#include "ops/core/q8.h"
#include "ops/nn/window.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind;

typedef struct pool_state {
    pool_kind kind;
    bool global;
    oct_pool2d g;
    oct_window win; /* fitted, for 3-D */
    float p;
    bool include_pad;
    bool plain;  /* runs as plain loops */
    bool slices; /* 3-D: g for each slice, then `depth` over their results, which are kept in between */
    oct_pool2d depth;
} pool_state;

static oct_status pool_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    const oct_node *n = oct_in_node(c);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    oct_out_dtype(c, 1, OCT_S64);
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank < 3)
        return oct_fail(err, OCT_EMALFORMED, "input '%s' has %d dimensions, expected 3 or more",
                        oct_in_value(c, 0)->name, x.rank);
    oct_window w;
    OCT_TRY(oct_window_read(n, x.rank - 2, NULL, &w, err));
    OCT_TRY(oct_window_infer(c, &w, x.d[1], 0, err));
    return n->n_out > 1 ? oct_window_infer(c, &w, x.d[1], 1, err) : OCT_OK;
}

static oct_status global_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank < 2 || x.rank > OCT_MAX_RANK)
        return oct_fail(err, OCT_EMALFORMED, "input '%s' has %d dimensions", oct_in_value(c, 0)->name, x.rank);
    oct_dim d[OCT_MAX_RANK] = { x.d[0], x.d[1] };
    for (int i = 2; i < x.rank; i++)
        d[i] = oct_dim_of(1);
    return oct_out_shape(c, 0, x.rank, d, err);
}

/* ------------------------------------------------------------------ preparing */

/* Of the last two dimensions of x and y, or of the last one; those in front of them are images of their own. */
static oct_pool2d plane_of(const oct_window *w, bool include_pad, const oct_operand *x, const oct_operand *y)
{
    const int at = w->n - 1, up = w->n > 1 ? at - 1 : -1; /* the width's index; the height's */
    return (oct_pool2d){
        .n = (size_t)(x->dims[0] * (w->n > 2 ? x->dims[2] : 1)),
        .c = (size_t)x->dims[1],
        .h = up < 0 ? 1 : (size_t)x->dims[2 + up],
        .w = (size_t)x->dims[2 + at],
        .oh = up < 0 ? 1 : (size_t)y->dims[2 + up],
        .ow = (size_t)y->dims[2 + at],
        .kh = up < 0 ? 1 : (size_t)w->kernel[up],
        .kw = (size_t)w->kernel[at],
        .sh = up < 0 ? 1 : (size_t)w->stride[up],
        .sw = (size_t)w->stride[at],
        .dh = up < 0 ? 1 : (size_t)w->dilation[up],
        .dw = (size_t)w->dilation[at],
        .pt = up < 0 ? 0 : (size_t)w->before[up],
        .pl = (size_t)w->before[at],
        .pb = up < 0 ? 0 : (size_t)w->after[up],
        .pr = (size_t)w->after[at],
        .count_include_pad = include_pad,
    };
}

/* The first of three dimensions as the height; a line holds all pixels of a slice. */
static oct_pool2d depth_of(const oct_window *w, const oct_pool2d *slice, const oct_operand *x, const oct_operand *y)
{
    const size_t pixels = slice->oh * slice->ow;
    return (oct_pool2d){
        .n = (size_t)x->dims[0],
        .c = slice->c,
        .h = (size_t)x->dims[2],
        .w = pixels,
        .oh = (size_t)y->dims[2],
        .ow = pixels,
        .kh = (size_t)w->kernel[0],
        .kw = 1,
        .sh = (size_t)w->stride[0],
        .sw = 1,
        .dh = (size_t)w->dilation[0],
        .dw = 1,
        .pt = (size_t)w->before[0],
        .pb = (size_t)w->after[0],
    };
}

static oct_status whole_image(pool_state *st, const oct_operand *x, oct_err *err)
{
    st->win = (oct_window){ .n = x->rank - 2 };
    if (st->win.n < 1 || st->win.n > OCT_SPATIAL_MAX)
        return oct_fail(err, OCT_EUNSUPPORTED, "%d spatial dimensions; 1 to %d are supported", st->win.n,
                        OCT_SPATIAL_MAX);
    for (int i = 0; i < st->win.n; i++) {
        st->win.kernel[i] = x->dims[2 + i];
        st->win.stride[i] = st->win.dilation[i] = 1;
    }
    return OCT_OK;
}

static oct_status pool_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    pool_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    const oct_operand *x = s->in[0], *y = s->out[0];
    if (!st)
        return oct_nomem(err);
    s->state = st;
    st->kind = strstr(s->op->type, "Max") ? POOL_MAX : strstr(s->op->type, "Lp") ? POOL_LP : POOL_AVERAGE;
    st->global = strncmp(s->op->type, "Global", 6) == 0;
    st->include_pad = oct_node_int(s->node, "count_include_pad", 0) != 0;
    st->p = (float)oct_node_int(s->node, "p", 2);
    bool bytes = x->dtype == OCT_U8 || x->dtype == OCT_S8, real = x->dtype == OCT_F32 || x->dtype == OCT_F64;
    if (!real && !(bytes && (x->q || st->kind == POOL_MAX)))
        return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s cannot be run", s->op->type, oct_dtype_name(x->dtype));
    if (st->global) {
        OCT_TRY(whole_image(st, x, err));
    } else {
        OCT_TRY(oct_window_read(s->node, x->rank - 2, NULL, &st->win, err));
        for (int i = 0; i < st->win.n; i++) {
            int64_t out;
            OCT_TRY(oct_window_fit(&st->win, i, x->dims[2 + i], &out, err));
            if (st->win.before[i] < 0 || st->win.after[i] < 0)
                return oct_fail(err, OCT_EMALFORMED, "attribute 'pads' is negative");
        }
    }
    const bool loops = x->dtype == OCT_F64 || (s->n_out > 1 && s->out[1]);
    st->slices = !loops && st->win.n == 3 && st->kind == POOL_MAX;
    st->plain = loops || (st->win.n > 2 && !st->slices);
    if (st->win.n <= 2 || st->slices)
        st->g = plane_of(&st->win, st->include_pad, x, y);
    if (!st->slices)
        return OCT_OK;
    st->depth = depth_of(&st->win, &st->g, x, y);
    return oct_mul_size(st->g.n * st->g.c, st->depth.w, &s->scratch) &&
                   oct_mul_size(s->scratch, oct_elem_size(x->dtype), &s->scratch)
               ? OCT_OK
               : oct_nomem(err);
}

/* ------------------------------------------------------------------ running */

/* A window over up to three dimensions, those that are not there of size 1. */
typedef struct solid {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], before[3], after[3];
} solid;

static solid solid_of(const pool_state *st, const oct_operand *x, const oct_operand *y)
{
    const oct_window *w = &st->win;
    solid v = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0 }, { 0 } };
    for (int i = 0, k = 3 - w->n; i < w->n; i++, k++) {
        v.in[k] = x->dims[2 + i];
        v.out[k] = y->dims[2 + i];
        v.kernel[k] = w->kernel[i];
        v.stride[k] = w->stride[i];
        v.dilation[k] = w->dilation[i];
        v.before[k] = w->before[i];
        v.after[k] = w->after[i];
    }
    return v;
}

/* What a pixel's values are gathered in: as many channels as a chunk holds. */
typedef struct sums {
    oct_dom dom; /* of the values: float, double, or (MaxPool alone) integers */
    oct_chunk v;
} sums;

static double to_power(double x, double p)
{
    return x > 0.0 ? oct_exp(p * oct_log(x)) : 0.0;
}

/* Quantized values are averaged as the reals that they stand for; the largest code stands for the largest real. */
static bool averages_qvals(const pool_state *st, const oct_operand *x)
{
    return x->q && st->kind == POOL_AVERAGE;
}

static void begin(const pool_state *st, const oct_operand *x, int64_t c, sums *y)
{
    const bool max = st->kind == POOL_MAX;
    const oct_dtype t = x->dtype;
    y->dom = averages_qvals(st, x) ? OCT_DOM_F : oct_dom_of(t);
    for (int64_t i = 0; i < c; i++) {
        if (y->dom == OCT_DOM_F)
            y->v.f[i] = max ? -FLT_MAX : 0.0f;
        else if (y->dom == OCT_DOM_D)
            y->v.d[i] = max ? -DBL_MAX : 0.0;
        else
            y->v.i[i] = t == OCT_U8 ? 0 : INT8_MIN;
    }
}

#define TAKE_MAX(type, member)               \
    for (int64_t i = 0; i < c; i++) {        \
        const type x = ((const type *)v)[i]; \
        if (x > y->v.member[i] || x != x) {  \
            y->v.member[i] = x;              \
            if (best)                        \
                best[i] = position;          \
        }                                    \
    }

/* Takes the values v of one input position in; best: positions of the largest so far, or NULL. */
static void take_position(const pool_state *st, const void *v, int64_t c, int64_t position, sums *y, int64_t *best)
{
    if (st->kind == POOL_MAX) {
        switch (y->dom) {
        case OCT_DOM_F: TAKE_MAX(float, f) break;
        case OCT_DOM_D: TAKE_MAX(double, d) break;
        default: TAKE_MAX(int64_t, i) break;
        }
        return;
    }
    for (int64_t i = 0; i < c; i++) {
        if (y->dom == OCT_DOM_D) {
            const double x = ((const double *)v)[i], m = fabs(x);
            y->v.d[i] += st->kind == POOL_AVERAGE ? x
                         : st->p == 1.0f          ? m
                         : st->p == 2.0f          ? m * m
                                                  : to_power(m, (double)st->p);
        } else {
            const float x = ((const float *)v)[i], m = fabsf(x);
            y->v.f[i] += st->kind == POOL_AVERAGE ? x : st->p == 1.0f ? m : st->p == 2.0f ? m * m : oct_powf(m, st->p);
        }
    }
}

static void finish(const pool_state *st, int64_t count, int64_t c, sums *y)
{
    for (int64_t i = 0; i < c; i++) {
        float *f = &y->v.f[i];
        double *d = &y->v.d[i];
        if (st->kind == POOL_AVERAGE && y->dom == OCT_DOM_D)
            *d /= (double)count;
        else if (st->kind == POOL_AVERAGE)
            *f /= count ? (float)count : 1.0f;
        else if (st->kind == POOL_LP && st->p != 1.0f && y->dom == OCT_DOM_D)
            *d = st->p == 2.0f ? sqrt(*d) : to_power(*d, 1.0 / (double)st->p);
        else if (st->kind == POOL_LP && st->p != 1.0f)
            *f = st->p == 2.0f ? sqrtf(*f) : oct_powf(*f, 1.0f / st->p);
    }
}

/* Channels [first, first + c) of one output pixel at position `at`, in the window's order. */
static void pool_pixel(const pool_state *st, const solid *s, const oct_operand *x, int64_t image, int64_t first,
                       int64_t c, const int64_t at[3], sums *y, int64_t *best)
{
    const int64_t channels = x->dims[1];
    int64_t count = 0, padded = 0, p[3];
    begin(st, x, c, y);
    for (int64_t i = 0; best && i < c; i++)
        best[i] = 0;
    for (int64_t k = 0; k < s->kernel[0] * s->kernel[1] * s->kernel[2]; k++) {
        int64_t tap[3] = { k / s->kernel[2] / s->kernel[1], k / s->kernel[2] % s->kernel[1], k % s->kernel[2] };
        bool inside = true, frame = true;
        for (int i = 0; i < 3; i++) {
            p[i] = at[i] * s->stride[i] - s->before[i] + tap[i] * s->dilation[i];
            inside &= p[i] >= 0 && p[i] < s->in[i];
            frame &= p[i] < s->in[i] + s->after[i];
        }
        padded += frame;
        if (!inside)
            continue;
        oct_chunk raw;
        const int64_t position = (p[0] * s->in[1] + p[1]) * s->in[2] + p[2];
        const void *v = oct_elem_load(x->dtype, x->data, image + position * channels + first, 1, c, &raw);
        for (int64_t i = 0; averages_qvals(st, x) && i < c;
             i++) /* a float takes less room than the integer it comes from */
            raw.f[i] = (float)(raw.i[i] - x->q->zp[0]) * x->q->scale[0];
        take_position(st, v, c, position, y, best);
        count++;
    }
    finish(st, st->include_pad ? padded : count, c, y);
}

static void round_to_qvals(const oct_operand *y, int64_t c, oct_chunk *v)
{
    const float lo = y->dtype == OCT_U8 ? 0.0f : (float)INT8_MIN,
                hi = y->dtype == OCT_U8 ? (float)UINT8_MAX : (float)INT8_MAX;
    for (int64_t i = c - 1; i >= 0; i--) /* an integer takes more room */
        v->i[i] = (int64_t)fminf(fmaxf(rintf(v->f[i] / y->q->scale[0] + (float)y->q->zp[0]), lo), hi);
}

/* Positions in an image become MaxPool's indices: into the whole plain input, the first spatial dimension fastest when
 * column_major. */
static void finish_indices(const solid *s, bool column_major, int64_t image, int64_t c, int64_t *index)
{
    int64_t size = s->in[0] * s->in[1] * s->in[2];
    for (int64_t i = 0; i < c; i++) {
        int64_t x = index[i] % s->in[2], y = index[i] / s->in[2] % s->in[1], z = index[i] / s->in[2] / s->in[1];
        int64_t at = column_major ? (x * s->in[1] + y) * s->in[0] + z : index[i];
        index[i] = (image * c + i) * size + at;
    }
}

static void pool_plain(const pool_state *st, const oct_step *s)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    const solid v = solid_of(st, x, y);
    const bool column_major = oct_node_int(s->node, "storage_order", 0) != 0;
    const int64_t c = x->dims[1], size = v.in[0] * v.in[1] * v.in[2], pixels = v.out[0] * v.out[1] * v.out[2];
    int64_t *index = s->n_out > 1 && s->out[1] ? s->out[1]->data : NULL;
    for (int64_t i = 0; i < y->dims[0] * pixels; i++) {
        const int64_t n = i / pixels, k = i % pixels,
                      at[3] = { k / v.out[2] / v.out[1], k / v.out[2] % v.out[1], k % v.out[2] };
        for (int64_t first = 0; first < c; first += 1024) {
            const int64_t part = c - first < 1024 ? c - first : 1024;
            sums p;
            pool_pixel(st, &v, x, n * size * c, first, part, at, &p, index ? index + i * c + first : NULL);
            if (averages_qvals(st, x))
                round_to_qvals(y, part, &p.v);
            oct_elem_store(y->dtype, y->data, i * c + first, 1, part, averages_qvals(st, x) ? OCT_DOM_I : p.dom, &p.v);
        }
        if (index)
            finish_indices(&v, column_major, n, c, index + i * c);
    }
}

static oct_qparam qparam(const oct_operand *t)
{
    return (oct_qparam){ t->q->scale[0], t->q->zp[0] };
}

static oct_status pool_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const pool_state *st = s->state;
    const oct_operand *x = s->in[0], *y = s->out[0];
    if (y->count == 0)
        return OCT_OK;
    size_t hw = (size_t)(x->count / x->dims[0] / x->dims[1]);
    bool sign = x->dtype == OCT_S8;
    if (st->plain && !(st->global && st->kind == POOL_AVERAGE && x->dtype != OCT_F64)) {
        pool_plain(st, s);
        return OCT_OK;
    }
    void *largest = st->slices ? r->scratch : y->data;
    if (x->dtype != OCT_F32) {
        if (st->kind == POOL_MAX)
            oct_max_pool_8(r->pool, &st->g, sign, x->data, largest);
        else if (st->global)
            oct_global_average_pool_8(r->pool, sign, x->data, (size_t)x->dims[0], hw, (size_t)x->dims[1], qparam(x),
                                      qparam(y), y->data);
        else
            oct_average_pool_8(r->pool, &st->g, sign, x->data, qparam(x), qparam(y), y->data);
        if (st->slices)
            oct_max_pool_8(r->pool, &st->depth, sign, largest, y->data);
        return OCT_OK;
    }
    if (st->global && st->kind == POOL_AVERAGE)
        oct_global_average_pool_f32(r->pool, x->data, (size_t)x->dims[0], hw, (size_t)x->dims[1], y->data);
    else if (st->kind == POOL_MAX)
        oct_max_pool_f32(r->pool, &st->g, x->data, largest);
    else if (st->kind == POOL_LP)
        oct_lp_pool_f32(r->pool, &st->g, st->p, x->data, y->data);
    else
        oct_average_pool_f32(r->pool, &st->g, x->data, y->data);
    if (st->slices)
        oct_max_pool_f32(r->pool, &st->depth, largest, y->data);
    return OCT_OK;
}

static bool max_integer(const oct_step *s)
{
    return oct_q8(s->in[0]) && oct_q8(s->out[0]) && oct_q8_same(s->in[0], s->out[0]) && s->n_out == 1;
}

static bool average_integer(const oct_step *s)
{
    return oct_q8(s->in[0]) && oct_q8(s->out[0]) && s->in[0]->dtype == s->out[0]->dtype && s->in[0]->rank >= 3;
}

#define POOL(name, onnx, most_out, infers, ...)                                \
    const oct_op oct_op_##name = { OCT_SCHEMA(onnx, "", 1, 1, 1, 1, most_out), \
                                   .infer = infers,                            \
                                   .prepare = pool_prepare,                    \
                                   .run = pool_run,                            \
                                   .layout = OCT_RULE_SPATIAL,                 \
                                   .widens = true,                             \
                                   __VA_ARGS__ }
#define MAXIMUM .integer = max_integer, .quant = OCT_QUANT_SAME, .homogeneous = 1
#define AVERAGE .integer = average_integer, .quant = OCT_QUANT_UNARY, .homogeneous = 1

POOL(max_pool, "MaxPool", 2, pool_infer, .work = OCT_WORK_PAIRS, MAXIMUM);
POOL(average_pool, "AveragePool", 1, pool_infer, .work = OCT_WORK_PAIRS, AVERAGE);
POOL(lp_pool, "LpPool", 1, pool_infer, .work = OCT_WORK_PAIRS);
POOL(global_average_pool, "GlobalAveragePool", 1, global_infer, AVERAGE, .reduces = true);
POOL(global_max_pool, "GlobalMaxPool", 1, global_infer, MAXIMUM);
POOL(global_lp_pool, "GlobalLpPool", 1, global_infer, .integer = NULL);
