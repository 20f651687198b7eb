/* Compensated rounding of a layer, group by group, on its inputs. It is done a second time so that no pair of products
 * saturates in 16 bits. */
#include "quant/rounding/rounding_int.h"

#include "base/stop.h"
#include "quant/convert/convert_int.h"
#include "quant/rounding/ldlq.h"
#include "quant/weights/saturate.h"

#include <string.h>

/* WIDTHS: steps of the factor between one and two. TRIED_DEPTH: layers with at most so many inputs are rounded with
 * several factors to compare their noise */
enum { WIDTHS = 16, TRIED_DEPTH = 256 };

/* Working memory for rounding a group. */
typedef struct rgroup {
    const rlayer *x;
    oct_ldlq *k;
    int64_t *pair;      /* [depth] */
    float *own, *scale; /* [outs]: the scales of the weights, and those by which they are rounded */
    float *centre,
        *factor; /* [outs]: factors on the scales: the centre of those that are tried, and the one that is tried */
    float *best; /* the best factor */
    double *noise, *least; /* the noise with a factor, and the least so far; expected or measured */
    double *expected;      /* [WIDTHS + 1][outs] */
} rgroup;

static void close_group(rgroup *w)
{
    oct_ldlq_destroy(w->k);
    oct_free(w->pair);
    oct_free(w->own);
    oct_free(w->scale);
    oct_free(w->centre);
    oct_free(w->factor);
    oct_free(w->best);
    oct_free(w->noise);
    oct_free(w->least);
    oct_free(w->expected);
}

static bool open_group(rgroup *w, const rlayer *x)
{
    const size_t outs = (size_t)x->outs;
    *w = (rgroup){ .x = x, .k = oct_ldlq_create((size_t)x->depth, outs, (size_t)x->rows) };
    w->pair = oct_calloc((size_t)x->depth, sizeof *w->pair);
    w->own = oct_calloc(outs, sizeof *w->own);
    w->scale = oct_calloc(outs, sizeof *w->scale);
    w->centre = oct_calloc(outs, sizeof *w->centre);
    w->factor = oct_calloc(outs, sizeof *w->factor);
    w->best = oct_calloc(outs, sizeof *w->best);
    w->noise = oct_calloc(outs, sizeof *w->noise);
    w->least = oct_calloc(outs, sizeof *w->least);
    w->expected = oct_calloc((WIDTHS + 1) * outs, sizeof *w->expected);
    for (int64_t i = 0; w->pair && i < x->depth; i++)
        w->pair[i] = oct_pair_of(x->sums, &x->l, i);
    return w->k && w->pair && w->own && w->scale && w->centre && w->factor && w->best && w->noise && w->least &&
           w->expected;
}

/* Keeps the factors whose noise[outs] is the least so far. Outputs that share a scale share a sum of noise. */
static void keep_best(rgroup *w, double *noise, bool first)
{
    const int64_t outs = w->x->outs;
    for (int64_t o = 1; w->x->scales == 1 && o < outs; o++)
        noise[0] += noise[o];
    for (int64_t o = 0; o < outs; o++) {
        const double own = noise[w->x->scales == 1 ? 0 : o];
        if (first || own < w->least[o]) {
            w->least[o] = own;
            w->best[o] = w->factor[o];
        }
    }
}

static oct_status round_bound(rgroup *w, const float *factor)
{
    for (int64_t o = 0; o < w->x->outs; o++)
        w->scale[o] = w->own[o] * factor[o];
    return oct_ldlq_round(w->k, w->scale, w->x->limit, OCT_PAIR_MOST, w->noise);
}

/* Chooses factors from 1 to 2 by the expected noise. In layers with few inputs chance has a large effect, so nearby
 * factors are tried as well. */
static oct_status choose_steps(rgroup *w)
{
    const int64_t outs = w->x->outs;
    float width[WIDTHS + 1];
    for (int f = 0; f <= WIDTHS; f++)
        width[f] = 1 + (float)f / WIDTHS;
    oct_ldlq_expect(w->k, w->own, WIDTHS + 1, width, OCT_PAIR_MOST, w->expected);
    for (int f = 0; f <= WIDTHS; f++) {
        for (int64_t o = 0; o < outs; o++)
            w->factor[o] = width[f];
        keep_best(w, w->expected + f * outs, f == 0);
    }
    memcpy(w->centre, w->best, (size_t)outs * sizeof *w->centre);
    for (int f = -1; w->x->depth <= TRIED_DEPTH && f <= 3; f++) {
        for (int64_t o = 0; o < outs; o++) {
            const float factor = w->centre[o] + (float)f / WIDTHS;
            w->factor[o] = factor < 1 ? 1 : factor > 2 ? 2 : factor;
        }
        OCT_TRY(round_bound(w, w->factor));
        keep_best(w, w->noise, f == -1);
    }
    return OCT_OK;
}

/* Keeps the rounded values of a group, and its noise. */
static void keep_rounded(const rgroup *w, int64_t group, int8_t *qvals, double *noise)
{
    const rlayer *x = w->x;
    const int8_t *rounded = oct_ldlq_qvals(w->k);
    for (int64_t i = 0; i < x->depth; i++) {
        int8_t *to = qvals + oct_weight_at(&x->l, group, 0, i);
        for (int64_t o = 0; o < x->outs; o++)
            to[o * x->l.out_step] = rounded[i * x->outs + o];
    }
    for (int64_t o = 0; o < x->outs; o++)
        *noise += w->noise[o];
}

static void take_group(rgroup *w, const float *weights, int64_t group)
{
    const rlayer *x = w->x;
    float *to = oct_ldlq_weights(w->k);
    oct_ldlq_inputs(w->k, x->x + group * x->depth * x->rows);
    for (int64_t i = 0; i < x->depth; i++) {
        const float *from = weights + oct_weight_at(&x->l, group, 0, i);
        for (int64_t o = 0; o < x->outs; o++)
            to[i * x->outs + o] = from[o * x->l.out_step];
    }
    for (int64_t o = 0; o < x->outs; o++)
        w->own[o] = x->own[x->scales > 1 ? group * x->outs + o : 0];
}

static oct_status round_group(rgroup *w, rlayer *x, int64_t group)
{
    double noise[2] = { 0 };
    bool seen;
    OCT_TRY(oct_ldlq_begin(w->k, x->to.bound ? w->pair : NULL, &seen));
    OCT_TRY(oct_ldlq_round(w->k, w->own, x->limit, OCT_LDLQ_UNBOUND, w->noise));
    keep_rounded(w, group, x->to.qvals, &noise[0]);
    if (x->to.bound) {
        OCT_TRY(choose_steps(w));
        OCT_TRY(round_bound(w, w->best));
        keep_rounded(w, group, x->to.safe_qvals, &noise[1]);
        memcpy(x->to.widened + (x->scales > 1 ? group * x->outs : 0), w->best,
               (size_t)(x->scales > 1 ? x->outs : 1) * sizeof *w->best);
    }
    for (int i = 0; i < 2 && seen; i++)
        x->to.noise[i] += noise[i];
    return OCT_OK;
}

oct_status oct_rounder_compensate(const rounder *r, rlayer *x)
{
    const float *weights = oct_layer_weights(r->j->g, x->node)->data;
    rgroup w;
    oct_status s = open_group(&w, x) ? OCT_OK : OCT_ENOMEM;
    for (int64_t g = 0; g < x->l.groups && s == OCT_OK; g++) {
        take_group(&w, weights, g);
        s = oct_stop_check(NULL);
        if (s == OCT_OK)
            s = round_group(&w, x, g);
    }
    close_group(&w);
    return s;
}
