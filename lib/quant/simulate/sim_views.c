/* How the outputs of a simulation are seen before errors are measured. The SQNR of raw numbers is that of the largest
 * ones, and these do not always decide.
 *
 * Logits that run far to one side (the scores of most places of a detector are hundreds below 0) are seen behind a
 * Sigmoid: only those near 0 decide. Boxes of very different sizes are seen in units of their own size, because a box
 * is found by the share of it that overlaps. Both are recognised by the numbers of the float model, and logits also by
 * what makes them. */
#include "quant/simulate/simulate_int.h"

#include "kernels/math.h"
#include "ops/traits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR 32.0    /* logits: at least one is so far below 0 */
#define NEAR 8.0    /* those above -NEAR may decide */
#define LITTLE 0.05 /* share of the sum of squares: if those that decide have less, SQNR tells nothing of them */
#define ONE_SIDE 4  /* times: as far is the lowest from 0, compared with the highest */
#define RARE 8 /* times: as far is the lowest, compared with at least half of all. Levels in dB are not so uneven. */
#define SOFTER 0.5f /* a factor on logits: thresholds are not all at 0, and few samples come close to one */
#define ROWS 0.99   /* share of the rows that must be corners of boxes */
#define SIZES 16    /* times: boxes differ by so much in their area, from the tenth part to nine tenths */
enum { LEAST_LOGITS = 16, LEAST_BOXES = 16, CORNERS = 4 };

/* ---- logits ---- */

/* Whether a layer with weights makes the value, with nothing but moves of data behind it. */
static bool is_made_by_layers(const oct_graph *g, int v)
{
    for (size_t n = 0; n < g->n_value; n++) {
        const int p = g->value[v].producer;
        const oct_op *op = p >= 0 ? oct_op_of(g, p) : NULL;
        if (!op || op->quant == OCT_QUANT_WEIGHTED)
            return op != NULL;
        if ((op->quant != OCT_QUANT_SAME && op->quant != OCT_QUANT_JOIN) || g->node[p].in[0] < 0)
            return false;
        v = g->node[p].in[0];
    }
    return false;
}

/* How many numbers of output k lie above a bound, and the sum of their squares. */
static double above(const oct_sim *h, size_t k, double bound, double *squares)
{
    double n = 0;
    *squares = 0;
    for (size_t i = 0; i < h->n_samples; i++)
        for (int64_t e = 0; e < h->sample[i]->count[k]; e++) {
            const double v = (double)h->sample[i]->output[k][e];
            n += v > bound;
            *squares += v > bound ? v * v : 0;
        }
    return n;
}

static bool is_one_sided(const oct_sim *h, size_t k)
{
    double least = 0, most = -INFINITY, all, near, rest;
    for (size_t i = 0; i < h->n_samples; i++) {
        const sim_sample *x = h->sample[i];
        if (x->count[k] && x->count[k] < LEAST_LOGITS)
            return false;
        for (int64_t e = 0; e < x->count[k]; e++) {
            least = fmin(least, (double)x->output[k][e]);
            most = fmax(most, (double)x->output[k][e]);
        }
    }
    if (least > -FAR || most <= -NEAR || -least < ONE_SIDE * most)
        return false;
    const double n = above(h, k, -INFINITY, &all), usual = above(h, k, least / RARE, &rest);
    above(h, k, -NEAR, &near);
    return near < LITTLE * all && 2 * usual >= n;
}

static void compress(float *x, int64_t n)
{
    for (int64_t e = 0; e < n; e++)
        x[e] = oct_sigmoidf(SOFTER * x[e]);
}

/* ---- boxes ---- */

static double area(const float *b)
{
    return ((double)b[2] - (double)b[0]) * ((double)b[3] - (double)b[1]);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whether the rows of an output are corners x1 y1 x2 y2 of boxes that differ much in size. *typical: their median area.
 */
static oct_status are_boxes(const oct_sim *h, size_t k, const oct_shape *s, bool *are, double *typical, oct_err *err)
{
    size_t rows = 0, n = 0;
    *are = false;
    if (s->rank < 2 || s->d[s->rank - 1].n != CORNERS)
        return OCT_OK;
    for (size_t i = 0; i < h->n_samples; i++)
        rows += (size_t)h->sample[i]->count[k] / CORNERS;
    double *size = rows >= LEAST_BOXES ? oct_calloc(rows, sizeof *size) : NULL;
    if (!size)
        return rows >= LEAST_BOXES ? oct_nomem(err) : OCT_OK;
    for (size_t i = 0; i < h->n_samples; i++)
        for (int64_t e = 0; e + CORNERS <= h->sample[i]->count[k]; e += CORNERS) {
            const float *b = h->sample[i]->output[k] + e;
            if (b[2] > b[0] && b[3] > b[1])
                size[n++] = area(b);
        }
    qsort(size, n, sizeof *size, by_size);
    if ((double)n >= ROWS * (double)rows) {
        *typical = size[n / 2];
        *are = size[n * 9 / 10] >= SIZES * size[n / 10];
    }
    oct_free(size);
    return OCT_OK;
}

/* By how much the errors of each box count: the inverse of its side, and of nothing smaller than a hundredth of the
 * usual area. */
static oct_status weigh(oct_sim_core *s, sim_sample *x, size_t k, double typical, oct_err *err)
{
    const int64_t rows = x->count[k] / CORNERS;
    if (!(x->weight[k] = oct_arena_calloc(s->arena, (size_t)rows + 1, sizeof(float))))
        return oct_nomem(err);
    for (int64_t r = 0; r < rows; r++)
        x->weight[k][r] = (float)(1 / sqrt(fmax(area(x->output[k] + r * CORNERS), typical / 100)));
    return OCT_OK;
}

static void scale(const float *weight, float *x, int64_t n)
{
    for (int64_t e = 0; e < n; e++)
        x[e] *= weight[e / CORNERS];
}

/* ---- all ---- */

oct_status oct_sim_view_outputs(oct_sim_core *s, const oct_sim *h, oct_err *err)
{
    const oct_graph *g = s->graph[SIM_REAL].g;
    const bool chosen = s->view != NULL; /* by the half that was kept first */
    if (!chosen && !(s->view = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *s->view)))
        return oct_nomem(err);
    for (size_t k = 0; k < s->n_outputs; k++) {
        const int v = g->output[k];
        sim_view *view = &s->view[k];
        bool boxes = false;
        if (!chosen && !s->rows[k]) {
            OCT_TRY(are_boxes(h, k, &g->value[v].shape, &boxes, &view->typical, err));
            view->kind = boxes                                           ? SIM_VIEW_BOXES
                         : is_made_by_layers(g, v) && is_one_sided(h, k) ? SIM_VIEW_LOGITS
                                                                         : SIM_VIEW_PLAIN;
        }
        for (size_t i = 0; i < h->n_samples && view->kind; i++) {
            sim_sample *x = h->sample[i];
            if (view->kind == SIM_VIEW_BOXES)
                OCT_TRY(weigh(s, x, k, view->typical, err));
            oct_sim_view(s, x, k, x->output[k], x->count[k]);
        }
    }
    return OCT_OK;
}

void oct_sim_view(const oct_sim_core *s, const sim_sample *x, size_t k, float *y, int64_t n)
{
    if (s->view[k].kind == SIM_VIEW_LOGITS)
        compress(y, n);
    else if (s->view[k].kind == SIM_VIEW_BOXES && n == x->count[k])
        scale(x->weight[k], y, n);
}
