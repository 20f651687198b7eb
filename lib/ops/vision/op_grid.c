/* lib/ops/vision/op_grid.c -- GridSample (one to three spatial dimensions, every mode) and AffineGrid. */
#include "ops/core/args.h"
#include "ops/vision/sample.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ GridSample */

typedef enum filter { NEAREST, LINEAR, CUBIC } filter;
typedef enum border { ZEROS, BORDER, REFLECTION } border;

typedef struct grid {
    filter filter;
    border border;
    bool align;
} grid;

static oct_status read_modes(const oct_node *n, grid *g, oct_err *err)
{
    const char *mode = oct_node_str(n, "mode", "linear"), *pad = oct_node_str(n, "padding_mode", "zeros");
    g->align = oct_node_int(n, "align_corners", 0) != 0;
    g->filter = strcmp(mode, "nearest") == 0                                 ? NEAREST
                : strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0 ? CUBIC
                                                                             : LINEAR;
    g->border = strcmp(pad, "border") == 0 ? BORDER : strcmp(pad, "reflection") == 0 ? REFLECTION : ZEROS;
    if (g->filter == LINEAR && strcmp(mode, "linear") != 0 && strcmp(mode, "bilinear") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'mode' is '%s'", mode);
    if (g->border == ZEROS && strcmp(pad, "zeros") != 0)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'padding_mode' is '%s'", pad);
    return OCT_OK;
}

static oct_status grid_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), g = oct_in_shape(c, 1);
    oct_dim d[OCT_MAX_RANK];
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0 || g.rank < 0)
        return OCT_OK;
    char tx[128], tg[128];
    bool ok = x.rank >= 3 && g.rank == x.rank && (g.d[g.rank - 1].n < 0 || g.d[g.rank - 1].n == x.rank - 2) &&
              (x.d[0].n < 0 || g.d[0].n < 0 || x.d[0].n == g.d[0].n);
    if (!ok)
        return oct_fail(err, OCT_EMALFORMED, "a grid %s for an input %s", oct_shape_text(&g, tg, sizeof tg),
                        oct_shape_text(&x, tx, sizeof tx));
    d[0] = x.d[0].n >= 0 ? x.d[0] : g.d[0];
    d[1] = x.d[1];
    for (int i = 2; i < x.rank; i++)
        d[i] = g.d[i - 1];
    return oct_out_shape(c, 0, x.rank, d, err);
}

static oct_status grid_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0], *g = s->in[1];
    grid *state = oct_arena_calloc(p->arena, 1, sizeof *state);
    if (state == NULL)
        return oct_nomem(err);
    s->state = state;
    OCT_TRY(read_modes(s->node, state, err));
    if (x->rank - 2 > OCT_SAMPLE_DIMS || oct_dom_of(x->dtype) == OCT_DOM_NONE ||
        (g->dtype != OCT_F32 && g->dtype != OCT_F64))
        return oct_fail(err, OCT_EUNSUPPORTED, "%d dimensions of %s at places of %s", x->rank, oct_dtype_name(x->dtype),
                        oct_dtype_name(g->dtype));
    for (int i = 2; i < x->rank && s->out[0]->count > 0; i++)
        if (x->dims[i] < 1)
            return oct_fail(err, OCT_EMALFORMED, "dimension %d of the input is empty", i);
    return OCT_OK;
}

/* From -1..1 to pixels. As float32, so that ties of `nearest` fall as they do elsewhere. */
static double pixel_of(double v, int64_t n, bool align, bool single)
{
    if (single) {
        const float f = (float)v, size = (float)n;
        return (double)(align ? (f + 1.0f) / 2.0f * (size - 1.0f) : ((f + 1.0f) * size - 1.0f) / 2.0f);
    }
    return align ? (v + 1.0) / 2.0 * (double)(n - 1) : ((v + 1.0) * (double)n - 1.0) / 2.0;
}

/* Mirrors p at the borders until it lies between lo and hi. */
static double reflect(double p, double lo, double hi)
{
    const double range = hi - lo;
    if (!(range > 0.0))
        return lo;
    const double away = p < lo ? lo - p : p > hi ? p - hi : -1.0;
    if (!(away >= 0.0) || !(away < 0x1p52))
        return away >= 0.0 ? lo : p;
    const double times = floor(away / range), rest = away - times * range;
    const bool even = fmod(times, 2.0) == 0.0;
    return (p < lo) == even ? lo + rest : hi - rest;
}

static double inside(const grid *g, double p, int64_t n)
{
    if (p != p)
        return -2.0; /* nowhere */
    if (g->border == BORDER &&
        g->filter == CUBIC) /* pixels are clamped, not the place; this far out it does not matter */
        return p < -0x1p30 ? -0x1p30 : p > 0x1p30 ? 0x1p30 : p;
    if (g->border == BORDER)
        return p < 0.0 ? 0.0 : p > (double)(n - 1) ? (double)(n - 1) : p;
    if (g->border == REFLECTION)
        return g->align ? reflect(p, 0.0, (double)(n - 1)) : reflect(p, -0.5, (double)n - 0.5);
    return p;
}

/* Index of a neighbour, or -1 for a zero. */
static int64_t neighbour(const grid *g, double at, int64_t n)
{
    if (at >= 0.0 && at <= (double)(n - 1))
        return (int64_t)at;
    if (g->border == ZEROS || !(fabs(at) < 0x1p31))
        return -1;
    const double p = g->border == BORDER ? at : inside(g, at, n);
    return p < 0.0 ? 0 : p > (double)(n - 1) ? n - 1 : (int64_t)p;
}

static void cubic_weights(double t, double w[4])
{
    const double a = -0.75;
    for (int i = 0; i < 4; i++) {
        const double d = fabs(t + 1.0 - i); /* distance from neighbour i - 1 */
        w[i] = d <= 1.0 ? ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0 : ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
    }
}

static void axis_taps(const grid *g, double p, int64_t n, oct_axis_taps *t)
{
    static const int width[] = { [NEAREST] = 1, [LINEAR] = 2, [CUBIC] = 4 };
    p = inside(g, p, n);
    *t = (oct_axis_taps){ .n = width[g->filter], .weight = { 1.0 } };
    const double low = g->filter == NEAREST ? rint(p) : floor(p), first = g->filter == CUBIC ? low - 1.0 : low;
    if (g->filter == LINEAR) {
        t->weight[1] = p - low;
        t->weight[0] = 1.0 - t->weight[1];
    } else if (g->filter == CUBIC) {
        cubic_weights(p - low, t->weight);
    }
    for (int i = 0; i < t->n; i++)
        t->index[i] = neighbour(g, first + i, n);
}

typedef struct job {
    const grid *g;
    const oct_operand *x, *grid, *y;
    int64_t points, pixels; /* of one image: of the output, of the input */
} job;

static void sample_points(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    const oct_operand *x = j->x;
    const int n = x->rank - 2;
    const int64_t c = x->dims[1];
    const bool single = j->grid->dtype == OCT_F32;
    const size_t size = oct_elem_size(x->dtype);
    for (size_t item = begin; item < end; item++) {
        oct_axis_taps axis[OCT_SAMPLE_DIMS];
        oct_tap taps[OCT_SAMPLE_TAPS];
        for (int i = 0; i < n; i++) {
            const int64_t at = (int64_t)item * n + (n - 1 - i),
                          size_i = x->dims[2 + i]; /* the grid's last value is of the first axis */
            const double v = single ? (double)((const float *)j->grid->data)[at] : ((const double *)j->grid->data)[at];
            axis_taps(j->g, pixel_of(v, size_i, j->g->align, single), size_i, &axis[i]);
        }
        const int count = oct_taps_join(axis, x->dims + 2, n, taps);
        const int64_t image = (int64_t)item / j->points * j->pixels * c;
        oct_blend(x->dtype, (const char *)x->data + (size_t)image * size, taps, count, c,
                  (char *)j->y->data + item * (size_t)c * size);
    }
}

static oct_status grid_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    job j = { s->state, s->in[0], s->in[1], s->out[0], 1, 1 };
    if (j.y->count == 0)
        return OCT_OK;
    for (int i = 2; i < j.x->rank; i++) {
        j.points *= j.y->dims[i];
        j.pixels *= j.x->dims[i];
    }
    oct_pool_for(r->pool, (size_t)(j.y->dims[0] * j.points), 256, sample_points, &j);
    return OCT_OK;
}

/* Opset 20 has other names for the filters, as they are not of two dimensions alone. */
static oct_status grid_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    const char *mode = oct_node_str(&g->node[node], "mode", "");
    if (from != 19 || (strcmp(mode, "bilinear") != 0 && strcmp(mode, "bicubic") != 0))
        return OCT_OK;
    return oct_node_set_str(g, node, "mode", strcmp(mode, "bilinear") == 0 ? "linear" : "cubic", err);
}

const oct_op oct_op_grid_sample = {
    OCT_SCHEMA("GridSample", "", 16, 2, 2, 1, 1),
    .infer = grid_infer,
    .prepare = grid_prepare,
    .run = grid_run,
    .layout = OCT_RULE_SPATIAL,
    .raise = grid_raise,
    .widens = true,
};

/* ------------------------------------------------------------------ AffineGrid */

static oct_status affine_infer(const oct_infer *c, oct_err *err)
{
    oct_shape t = oct_in_shape(c, 0);
    oct_dim size[6], d[5];
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    const int count = oct_in_ints(c, 1, size, 6);
    const int n = count >= 0 ? count - 2 : t.rank == 3 && t.d[1].n >= 0 && t.d[1].n < OCT_MAX_RANK ? (int)t.d[1].n : -1;
    if (t.rank >= 0 && (t.rank != 3 || (t.d[1].n >= 0 && t.d[2].n >= 0 && t.d[2].n != t.d[1].n + 1)))
        return oct_fail(err, OCT_EMALFORMED, "the matrices are not 2 x 3 or 3 x 4");
    if (t.rank < 0 || (count < 0 && n < 0))
        return OCT_OK;
    if (n < 2 || n > 3 || (t.d[1].n >= 0 && t.d[1].n != n))
        return oct_fail(err, OCT_EMALFORMED, "a size of %d dimensions, with matrices of %lld rows", n + 2,
                        (long long)t.d[1].n);
    d[0] = t.d[0];
    for (int i = 0; i < n; i++)
        d[1 + i] = count >= 0 ? size[2 + i] : (oct_dim){ -1, NULL };
    for (int i = 1; i <= n; i++)
        if (d[i].n < -1 || d[i].sym == oct_minus_one)
            return oct_fail(err, OCT_EMALFORMED, "a size is negative");
    d[n + 1] = oct_dim_of(n);
    return oct_out_shape(c, 0, n + 2, d, err);
}

static oct_status affine_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (s->in[0]->dtype != OCT_F32 && s->in[0]->dtype != OCT_F64)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

/* Centre of pixel i of n in -1..1; with align the first and the last are the ends. */
static double centre(int64_t i, int64_t n, bool align)
{
    if (align)
        return n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1.0 : -1.0;
    return (double)(2 * i + 1) / (double)n - 1.0;
}

static oct_status affine_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *t = s->in[0], *y = s->out[0];
    const int n = y->rank - 2;
    const bool align = oct_node_int(s->node, "align_corners", 0) != 0;
    const int64_t points = y->count / (y->count > 0 ? y->dims[0] * n : 1);
    if (t->dims[1] != n || t->dims[2] != n + 1 || (y->count > 0 && t->dims[0] != y->dims[0]))
        return oct_fail(err, OCT_EMALFORMED, "the matrices do not fit a grid of %d dimensions", n);
    for (int64_t item = 0; item < y->count / n; item++) {
        double at[OCT_SAMPLE_DIMS + 1], row[OCT_SAMPLE_DIMS + 1];
        int64_t rest = item % points;
        for (int i = n - 1; i >= 0; i--) { /* at[0] is along the last axis */
            at[n - 1 - i] = centre(rest % y->dims[1 + i], y->dims[1 + i], align);
            rest /= y->dims[1 + i];
        }
        at[n] = 1.0;
        for (int i = 0; i < n; i++) {
            double sum = 0.0;
            const int64_t from = (item / points * n + i) * (n + 1);
            for (int k = 0; k <= n; k++) {
                row[k] = t->dtype == OCT_F32 ? (double)((const float *)t->data)[from + k]
                                             : ((const double *)t->data)[from + k];
                sum += row[k] * at[k];
            }
            oct_elem_store(y->dtype, y->data, item * n + i, 1, 1, OCT_DOM_D, &sum);
        }
    }
    return OCT_OK;
}

const oct_op oct_op_affine_grid = {
    OCT_SCHEMA("AffineGrid", "", 20, 2, 2, 1, 1),
    .infer = affine_infer,
    .prepare = affine_prepare,
    .run = affine_run,
    .widens = true,
};
