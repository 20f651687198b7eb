/* How the outputs of a simulation are seen before errors are measured. The SQNR of raw numbers is that of the largest
 * ones, and these do not always decide.
 *
 * Logits that run far to one side (the scores of most places of a detector are hundreds below 0) are seen behind a
 * Sigmoid: only those near 0 decide. Logits that a Softmax compares are seen without the mean of each row, which no
 * Softmax sees, and behind a Softmax if rows that are decided by far outweigh the others. Boxes of very different
 * sizes are seen in units of their own size, because a box is found by the share of it that overlaps. All are
 * recognised by the numbers of the float model, and logits also by the operators around them. */
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
enum { LEAST_LOGITS = 16, LEAST_BOXES = 16, LEAST_ROWS = 16, CORNERS = 4 };

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

/* ---- rows that a Softmax compares ---- */

/* Finds the rows of an output along an axis. They are not seen as such if shapes leave open where they are. */
static bool find_rows(const oct_shape *s, int axis, sim_view *view)
{
    bool inner = true, outer = true;
    if (axis < 0 || axis >= s->rank || s->d[axis].n < 2)
        return false;
    view->along = s->d[axis].n;
    view->inner = view->outer = 1;
    for (int d = 0; d < s->rank; d++) {
        bool *known = d < axis ? &outer : &inner;
        *known &= d == axis || s->d[d].n > 0;
        if (d != axis && *known)
            *(d < axis ? &view->outer : &view->inner) *= s->d[d].n;
    }
    view->inner = inner ? view->inner : 0; /* it follows from the number of elements */
    return inner || outer;
}

/* Calls f for each row of n numbers. */
static void for_rows(const sim_view *view, float *y, int64_t n,
                     void (*f)(const sim_view *view, float *row, int64_t step, void *arg), void *arg)
{
    const int64_t inner = view->inner ? view->inner : n / (view->outer * view->along), whole = inner * view->along;
    for (int64_t at = 0; whole > 0 && at + whole <= n; at += whole)
        for (int64_t i = 0; i < inner; i++)
            f(view, y + at + i, inner, arg);
}

static void center(const sim_view *view, float *row, int64_t step, void *arg)
{
    double sum = 0;
    for (int64_t e = 0; e < view->along; e++)
        sum += (double)row[e * step];
    const float mean = (float)(sum / (double)view->along);
    for (int64_t e = 0; e < view->along; e++)
        row[e * step] -= mean;
}

/* The largest number of a row, but for the one at `except` (-1: none); *at: where it is. */
static float largest(const sim_view *view, const float *row, int64_t step, int64_t except, int64_t *at)
{
    float most = -INFINITY;
    *at = 0;
    for (int64_t e = 0; e < view->along; e++)
        if (e != except && row[e * step] > most) {
            most = row[e * step];
            *at = e;
        }
    return most;
}

static void share(const sim_view *view, float *row, int64_t step, void *arg)
{
    int64_t at;
    double sum = 0;
    const float most = largest(view, row, step, -1, &at);
    for (int64_t e = 0; e < view->along; e++)
        sum += (double)(row[e * step] = oct_expf(SOFTER * (row[e * step] - most)));
    for (int64_t e = 0; e < view->along; e++)
        row[e * step] = (float)((double)row[e * step] / sum);
}

/* What is known of the rows of an output: how far the largest number of each is above the second. */
typedef struct margins {
    double most, bound;   /* the largest margin; those from here on are counted */
    double n, far, close; /* rows, those that are counted, and those that are not decided */
    double squares,
        of_close; /* sums of squares around the mean of each row: of all, and of rows that are not decided */
} margins;

static void add_row(const sim_view *view, float *row, int64_t step, void *arg)
{
    margins *m = arg;
    int64_t first, second;
    double sum = 0, squares = 0;
    const double top = (double)largest(view, row, step, -1, &first),
                 margin = top - (double)largest(view, row, step, first, &second);
    for (int64_t e = 0; e < view->along; e++)
        sum += (double)row[e * step];
    const double mean = sum / (double)view->along;
    for (int64_t e = 0; e < view->along; e++)
        squares += ((double)row[e * step] - mean) * ((double)row[e * step] - mean);
    m->n++;
    m->far += margin >= m->bound;
    m->most = fmax(m->most, margin);
    m->squares += squares;
    m->close += margin < NEAR;
    m->of_close += margin < NEAR ? squares : 0;
}

static margins margins_of(const oct_sim *h, size_t k, const sim_view *view, double bound)
{
    margins m = { .bound = bound };
    for (size_t i = 0; i < h->n_samples; i++)
        for_rows(view, h->sample[i]->output[k], h->sample[i]->count[k], add_row, &m);
    return m;
}

/* Whether nearly all of the squares are those of rows that are decided by far, while enough others are not. */
static bool are_decided(const oct_sim *h, size_t k, const sim_view *view)
{
    const margins all = margins_of(h, k, view, 0);
    return all.most >= FAR && all.close >= LEAST_ROWS && all.of_close < LITTLE * all.squares &&
           2 * margins_of(h, k, view, all.most / RARE).far <= all.n;
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

/* Chooses how output k is seen. */
static oct_status choose_view(const oct_sim_core *s, const oct_sim *h, size_t k, sim_view *view, oct_err *err)
{
    const oct_graph *g = s->graph[SIM_REAL].g;
    const int v = g->output[k];
    const oct_shape *shape = &g->value[v].shape;
    bool boxes;
    if (s->end[k].rows)
        return OCT_OK;
    OCT_TRY(are_boxes(h, k, shape, &boxes, &view->typical, err));
    if (boxes)
        view->kind = SIM_VIEW_BOXES;
    else if (find_rows(shape, s->end[k].axis, view))
        view->kind = are_decided(h, k, view) ? SIM_VIEW_SHARES : SIM_VIEW_CENTERED;
    else if (is_made_by_layers(g, v) && is_one_sided(h, k))
        view->kind = SIM_VIEW_LOGITS;
    return OCT_OK;
}

oct_status oct_sim_view_outputs(oct_sim_core *s, const oct_sim *h, oct_err *err)
{
    const bool chosen = s->view != NULL; /* by the half that was kept first */
    if (!chosen && !(s->view = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *s->view)))
        return oct_nomem(err);
    for (size_t k = 0; k < s->n_outputs; k++) {
        sim_view *view = &s->view[k];
        if (!chosen)
            OCT_TRY(choose_view(s, h, k, view, err));
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
    const sim_view *view = &s->view[k];
    if (view->kind == SIM_VIEW_LOGITS)
        compress(y, n);
    else if (view->kind == SIM_VIEW_CENTERED || view->kind == SIM_VIEW_SHARES)
        for_rows(view, y, n, view->kind == SIM_VIEW_SHARES ? share : center, NULL);
    else if (view->kind == SIM_VIEW_BOXES && n == x->count[k])
        scale(x->weight[k], y, n);
}
