/* lib/ops/signal/op_dft.c -- DFT (whole, one-sided, inverse) and STFT, computed in double. */
#include "kernels/fft.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <string.h>

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

/* A scalar input of either integer type at prepare time; false when it is computed. */
static bool scalar_of(const oct_step *s, int slot, int64_t absent, int64_t *v)
{
    *v = absent;
    return input(s, slot) == NULL || oct_step_ints(s, NULL, slot, v, 1) == 1;
}

/* What both share: transforms of rows, each thread with its own memory. */
typedef struct rows {
    oct_fft fft;
    int threads;
    size_t slot; /* bytes a thread */
} rows;

static oct_status plan_rows(rows *w, int64_t n, const oct_prep *p, size_t *scratch, oct_err *err)
{
    size_t bytes;
    OCT_TRY(oct_fft_plan(&w->fft, n, p->arena, err));
    w->threads = p->threads;
    if (!oct_mul_size((size_t)n, 4, &bytes) || !oct_add_size(bytes, oct_fft_scratch(&w->fft), &bytes) ||
        !oct_mul_size(bytes, sizeof(double), &w->slot) || !oct_mul_size(w->slot, (size_t)p->threads, scratch))
        return oct_nomem(err);
    return OCT_OK;
}

/* values: how many numbers a sample has, of a real or complex signal. */
static oct_status float_type(const oct_operand *x, int64_t values, oct_err *err)
{
    const bool ok = (x->dtype == OCT_F32 || x->dtype == OCT_F64) && x->rank >= 2 && (values == 1 || values == 2);
    return ok ? OCT_OK
              : oct_fail(err, OCT_EUNSUPPORTED, "a signal of %s with %lld values a sample", oct_dtype_name(x->dtype),
                         (long long)values);
}

static double value_at(const oct_operand *x, int64_t i)
{
    return x->dtype == OCT_F32 ? (double)((const float *)x->data)[i] : ((const double *)x->data)[i];
}

static void put(const oct_operand *y, int64_t i, double v)
{
    if (y->dtype == OCT_F32)
        ((float *)y->data)[i] = (float)v;
    else
        ((double *)y->data)[i] = v;
}

/* ------------------------------------------------------------------ DFT */

/* The axis is an attribute up to opset 19, then an input. */
static oct_status signal_axis(int64_t axis, int rank, int *out, oct_err *err)
{
    OCT_TRY(oct_axis(axis, rank, out, err));
    return *out < rank - 1 ? OCT_OK
                           : oct_fail(err, OCT_EMALFORMED, "axis %lld is that of complex values", (long long)axis);
}

static oct_status dft_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    oct_shape x = oct_in_shape(c, 0);
    const bool inverse = oct_node_int(n, "inverse", 0) != 0, half = oct_node_int(n, "onesided", 0) != 0;
    oct_dim d[OCT_MAX_RANK], length = { -1, NULL };
    int64_t given, axis = c->opset < 20 ? oct_node_int(n, "axis", 1) : -2;
    int at;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    if (x.rank < 2)
        return oct_fail(err, OCT_EMALFORMED, "the signal has %d dimensions, expected 2 or more", x.rank);
    if (c->opset >= 20 && oct_in_value(c, 2) != NULL && oct_in_consts(c, 2, &axis, 1) != 1)
        return OCT_OK;
    OCT_TRY(signal_axis(axis, x.rank, &at, err));
    if (oct_in_value(c, 1) == NULL)
        length = inverse && half ? (x.d[at].n > 0 ? oct_dim_of(2 * (x.d[at].n - 1)) : length) : x.d[at];
    else if (oct_in_consts(c, 1, &given, 1) == 1)
        length = oct_dim_of(given);
    if (length.n == 0 || length.n < -1 || (oct_in_value(c, 1) != NULL && length.n > INT32_MAX))
        return oct_fail(err, OCT_EMALFORMED, "a transform of length %lld", (long long)length.n);
    for (int i = 0; i < x.rank; i++)
        d[i] = x.d[i];
    d[at] = half && !inverse ? (length.n >= 0 ? oct_dim_of(length.n / 2 + 1) : (oct_dim){ -1, NULL }) : length;
    d[x.rank - 1] = oct_dim_of(half && inverse ? 1 : 2);
    return oct_out_shape(c, 0, x.rank, d, err);
}

typedef struct dft {
    rows w;
    bool inverse, half;
    int64_t n, have, out,
        inner; /* transform, samples given and written along the axis, elements behind it but for the last dimension */
    int in_width, out_width;
    const oct_operand *x, *y;
    char *scratch;
} dft;

static oct_status dft_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    dft *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    int64_t axis = oct_node_int(s->node, "axis", 1), length;
    int at;
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    OCT_TRY(float_type(x, x->dims[x->rank - 1], err));
    if ((s->opset >= 20 && !scalar_of(s, 2, -2, &axis)) || !scalar_of(s, 1, -1, &length))
        return oct_fail(err, OCT_EUNSUPPORTED, "a computed length or axis");
    OCT_TRY(signal_axis(axis, x->rank, &at, err));
    t->inverse = oct_node_int(s->node, "inverse", 0) != 0;
    t->half = oct_node_int(s->node, "onesided", 0) != 0;
    t->have = x->dims[at];
    t->out = y->dims[at];
    t->in_width = (int)x->dims[x->rank - 1];
    t->out_width = (int)y->dims[y->rank - 1];
    t->n = length >= 0 ? length : t->half && t->inverse ? 2 * (t->have - 1) : t->have;
    if (t->half && t->in_width != (t->inverse ? 2 : 1))
        return oct_fail(err, OCT_EMALFORMED, "a one-sided transform of %s values", t->inverse ? "real" : "complex");
    if (y->count == 0)
        return OCT_OK;
    if (t->n < 1 || t->out != (t->half && !t->inverse ? t->n / 2 + 1 : t->n))
        return oct_fail(err, OCT_EMALFORMED, "%lld values of a transform of length %lld", (long long)t->out,
                        (long long)t->n);
    t->inner = oct_product(x->dims + at + 1, x->rank - at - 2);
    return plan_rows(&t->w, t->n, p, &s->scratch, err);
}

/* The samples of a row: missing ones are zero; of a half spectrum the other half follows. */
static void read_row(const dft *t, int64_t base, double *v)
{
    const int64_t whole = t->half && t->inverse ? t->n / 2 + 1 : t->n, n = t->have < whole ? t->have : whole;
    memset(v, 0, (size_t)t->n * 2 * sizeof *v);
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < t->in_width; c++)
            v[2 * k + c] = value_at(t->x, (base + k * t->inner) * t->in_width + c);
    for (int64_t k = t->n / 2 + 1; t->half && t->inverse && k < t->n; k++) {
        v[2 * k] = v[2 * (t->n - k)];
        v[2 * k + 1] = -v[2 * (t->n - k) + 1];
    }
}

static void dft_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const dft *t = arg;
    double *v = (double *)(void *)(t->scratch + thread * t->w.slot), *z = v + 2 * t->n;
    const double scale = t->inverse ? 1.0 / (double)t->n : 1.0;
    for (size_t row = begin; row < end; row++) {
        const int64_t outer = (int64_t)row / t->inner, inner = (int64_t)row % t->inner;
        read_row(t, outer * t->have * t->inner + inner, v);
        oct_fft_run(&t->w.fft, t->inverse, v, z, z + 2 * t->n);
        for (int64_t k = 0; k < t->out; k++)
            for (int c = 0; c < t->out_width; c++)
                put(t->y, ((outer * t->out + k) * t->inner + inner) * t->out_width + c, z[2 * k + c] * scale);
    }
}

static oct_status dft_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    dft t = *(const dft *)s->state;
    if (s->out[0]->count == 0)
        return OCT_OK;
    t.x = s->in[0];
    t.y = s->out[0];
    t.scratch = r->scratch;
    oct_pool_for(oct_pool_threads(r->pool) > t.w.threads ? NULL : r->pool, (size_t)(t.y->count / t.out_width / t.out),
                 1, dft_rows, &t);
    return OCT_OK;
}

/* Opset 20: the axis becomes input 2, and its default another. */
static oct_status dft_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from != 19)
        return OCT_OK;
    const int64_t axis = oct_node_int(&g->node[node], "axis", 1);
    int value;
    OCT_TRY(oct_graph_new_const_s64(g, "axis", 0, NULL, &axis, &value, err));
    while (g->node[node].n_in < 2)
        OCT_TRY(oct_graph_set_input(g, node, g->node[node].n_in, -1, err));
    OCT_TRY(oct_graph_set_input(g, node, 2, value, err));
    oct_node_drop_attr(g, node, "axis");
    return OCT_OK;
}

const oct_op oct_op_dft = {
    OCT_SCHEMA("DFT", "", 17, 1, 3, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = dft_infer,
    .prepare = dft_prepare,
    .run = dft_run,
    .raise = dft_raise,
    .widens = true,
};

/* ------------------------------------------------------------------ STFT */

enum { SIGNAL, STEP, WINDOW, FRAME };

static oct_status stft_sizes(int64_t signal, int64_t step, int64_t frame, int64_t *frames, oct_err *err)
{
    if (step < 1 || frame < 1 || frame > signal)
        return oct_fail(err, OCT_EMALFORMED, "frames of %lld every %lld samples of a signal of %lld", (long long)frame,
                        (long long)step, (long long)signal);
    *frames = (signal - frame) / step + 1;
    return OCT_OK;
}

static oct_status stft_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, SIGNAL), w = oct_in_shape(c, WINDOW);
    const bool half = oct_node_int(oct_in_node(c), "onesided", 1) != 0;
    oct_dim frames = { -1, NULL }, bins = frames, frame = frames;
    int64_t step, given;
    oct_out_dtype(c, 0, oct_in_dtype(c, SIGNAL));
    if (x.rank < 0)
        return OCT_OK;
    if (x.rank < 2 || x.rank > 3 || (w.rank >= 0 && w.rank != 1)) /* torch leaves out the last one of real signals */
        return oct_fail(err, OCT_EMALFORMED, "the signal has %d dimensions, expected 2 or 3; the window %d, expected 1",
                        x.rank, w.rank);
    if (oct_in_value(c, FRAME) != NULL)
        frame = oct_in_consts(c, FRAME, &given, 1) == 1 ? oct_dim_of(given) : frame;
    else
        frame = oct_in_value(c, WINDOW) == NULL ? x.d[1] : w.rank == 1 ? w.d[0] : frame;
    if (frame.n >= 0)
        bins = oct_dim_of(half ? frame.n / 2 + 1 : frame.n);
    if (frame.n >= 0 && x.d[1].n >= 0 && oct_in_consts(c, STEP, &step, 1) == 1) {
        frames.n = 0;
        OCT_TRY(stft_sizes(x.d[1].n, step, frame.n, &frames.n, err));
    }
    return oct_out_shape(c, 0, 4, (oct_dim[]){ x.d[0], frames, bins, oct_dim_of(2) }, err);
}

typedef struct stft {
    rows w;
    int64_t signal, step, n, frames, bins;
    int width;
    const oct_operand *x, *window, *y;
    char *scratch;
} stft;

static oct_status stft_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[SIGNAL], *window = input(s, WINDOW), *y = s->out[0];
    stft *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    const int64_t width = x->rank == 3 ? x->dims[2] : 1;
    OCT_TRY(float_type(x, width, err));
    t->signal = x->dims[1];
    t->width = (int)width;
    t->bins = y->dims[2];
    if (!scalar_of(s, STEP, 1, &t->step) || !scalar_of(s, FRAME, window != NULL ? window->count : x->dims[1], &t->n))
        return oct_fail(err, OCT_EUNSUPPORTED, "a computed step or length of the frames");
    OCT_TRY(stft_sizes(t->signal, t->step, t->n, &t->frames, err));
    const bool half = oct_node_int(s->node, "onesided", 1) != 0;
    if ((half && t->width == 2) || (window != NULL && (window->count != t->n || window->dtype != x->dtype)) ||
        t->bins != (half ? t->n / 2 + 1 : t->n) || t->frames != y->dims[1])
        return oct_fail(err, OCT_EMALFORMED,
                        "a one-sided transform of complex values, or a window that does not fit frames of %lld",
                        (long long)t->n);
    return plan_rows(&t->w, t->n, p, &s->scratch, err);
}

static void stft_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const stft *t = arg;
    double *v = (double *)(void *)(t->scratch + thread * t->w.slot), *z = v + 2 * t->n;
    for (size_t row = begin; row < end; row++) {
        const int64_t at = ((int64_t)row / t->frames * t->signal + (int64_t)row % t->frames * t->step) * t->width;
        memset(v, 0, (size_t)t->n * 2 * sizeof *v);
        for (int64_t k = 0; k < t->n; k++)
            for (int c = 0; c < t->width; c++)
                v[2 * k + c] =
                    value_at(t->x, at + k * t->width + c) * (t->window != NULL ? value_at(t->window, k) : 1.0);
        oct_fft_run(&t->w.fft, false, v, z, z + 2 * t->n);
        for (int64_t k = 0; k < 2 * t->bins; k++)
            put(t->y, (int64_t)row * 2 * t->bins + k, z[k]);
    }
}

static oct_status stft_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    stft t = *(const stft *)s->state;
    t.x = s->in[SIGNAL];
    t.window = input(s, WINDOW);
    t.y = s->out[0];
    t.scratch = r->scratch;
    if (t.y->count > 0)
        oct_pool_for(oct_pool_threads(r->pool) > t.w.threads ? NULL : r->pool, (size_t)(t.y->dims[0] * t.frames), 1,
                     stft_rows, &t);
    return OCT_OK;
}

const oct_op oct_op_stft = {
    OCT_SCHEMA("STFT", "", 17, 2, 4, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = stft_infer,
    .prepare = stft_prepare,
    .run = stft_run,
    .widens = true,
};
