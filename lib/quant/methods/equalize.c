/* Equalization: scales layers against each other so that the channels between them have similar ranges (Nagel et al.,
 * Data-Free Quantization Through Weight Equalization and Bias Correction, 2019, section 4.1). Weights have a scale for
 * each output channel here. So the gain is in the activations, which have one scale for all channels.
 *
 * Full strength does harm if a small channel matters little, because the weights that read it become small in
 * comparison with others. So each set of layers gets the strength that a model of its noise finds best. All changes
 * together are kept only if the outputs of other samples improve by a margin. Factors are powers of two, so the float
 * function does not change by a single bit.
 *
 * Clamps with a bound (ReLU6) are a method of their own. Channels before them are scaled to at most half of the bound,
 * which a later sample may exceed; then it is cut. So ranges are those of many samples, which takes time: with a few,
 * MobileNetV2 lost 9 dB on others. */
#include "quant/convert/convert_int.h"

#include "quant/job/placed.h"
#include "quant/methods/scaling.h"
#include "quant/methods/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_FALL 0.5 /* a set is scaled if the noise that its readers see falls at least to this share */
enum { CLAMPED_SAMPLES = 128 };
#define BELOW 2.0f     /* times: a scaled channel stays so far below the bound of a clamp */
#define LEAST_GAIN 1.0 /* dB that the outputs must gain from all sets together */
enum { STRENGTHS = 4, MOST_BITS = 10 };

/* A set of layers with the ranges of its channels. */
typedef struct set {
    const oct_scaling *s;
    float *lo, *hi; /* [channels]: ranges of the values that are quantized */
    int *exponent;
    bool chosen;
    double
        noise[2]; /* the noise that its readers see relative to their signal: unscaled, and with the chosen factors */
} set;

typedef struct work {
    oct_conversion *c;
    oct_arena *a;
    bool clamped; /* sets with a bound, and no others */
    set *set;
    size_t n, chosen;
    const oct_tensor **was; /* [n_was]: the original constants, by value of the graph */
    oct_arena *scaled;      /* memory of the scaled constants */
    size_t n_was;
} work;

/* ---- statistics ---- */

static bool take_ranges(set *x, const oct_calib *c, const char *name)
{
    const oct_calib_tensor *t = oct_calib_find(c, name);
    if (!t || t->chan.channels != (size_t)x->s->channels)
        return false;
    for (size_t k = 0; k < t->chan.channels; k++) {
        x->lo[k] = fminf(x->lo[k], t->chan.c[k].min);
        x->hi[k] = fmaxf(x->hi[k], t->chan.c[k].max);
    }
    return true;
}

/* Finds the values between the layers that are quantized, and their ranges. A set without such values has nothing to
 * gain. */
static oct_status find_ranges(work *w, oct_err *err)
{
    const oct_qjob *j = w->c->job;
    size_t n = 0;
    const char **name = oct_arena_calloc(w->a, j->n_values + 1, sizeof *name);
    int *axis = oct_arena_calloc(w->a, j->n_values + 1, sizeof *axis);
    oct_calib *c = NULL;
    if (!name || !axis)
        return oct_nomem(err);
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->set[i].s->n_values; k++) {
            const oct_scaled *v = &w->set[i].s->value[k];
            if (!oct_is_wanted(j, v->value) && !v->clamped)
                continue;
            name[n] = j->g->value[v->value].name;
            axis[n++] = v->axis;
        }
    const oct_few few = { name, axis, n, .channels = true, .all = w->clamped ? CLAMPED_SAMPLES : 0 };
    oct_status st = n ? oct_statistics_few(w->c, &few, &c, err) : OCT_OK;
    for (size_t i = 0; st == OCT_OK && n && i < w->n; i++)
        for (size_t k = 0; k < w->set[i].s->n_values; k++)
            take_ranges(&w->set[i], c, j->g->value[w->set[i].s->value[k].value].name);
    oct_calib_destroy(c);
    return st;
}

/* ---- the strength ---- */

/* Scales channels by a power `strength` of their ratio to the largest channel. Channels that are always zero are not
 * changed. */
static void scale_to(const set *x, int strength, int *exponent)
{
    float top = 0;
    for (int64_t c = 0; c < x->s->channels; c++)
        top = fmaxf(top, fmaxf(x->hi[c], -x->lo[c]));
    for (int64_t c = 0; c < x->s->channels; c++) {
        const float own = fmaxf(x->hi[c], -x->lo[c]);
        int have, full;
        frexpf(own, &have);
        frexpf(top, &full);
        const int lacks = own > 0 ? full - have : 0;
        exponent[c] = (lacks < MOST_BITS ? lacks : MOST_BITS) * strength / STRENGTHS;
        while (exponent[c] > 0 && ldexpf(own, exponent[c]) * BELOW > x->s->bound)
            exponent[c]--;
    }
}

/* What an input channel contributes, with the factor that is tried. */
typedef struct scaled_input {
    double down, power,
        risen; /* down: the factor of its weights; power, risen: the power of its values, unscaled and scaled */
} scaled_input;

/* The noise of an output channel relative to its signal, at most 1; NaN without a signal. It is the noise of the input,
 * rounded in steps of `step`, and of the weights, rounded to 8 bits. v: the channel's weights. */
static double noise_at(const oct_weight_layout *l, const float *v, const scaled_input *in, double step)
{
    double top = 0, signal = 0, spread = 0, risen = 0;
    for (int64_t c = 0; c < l->ins / l->groups; c++) {
        double largest = 0, squares = 0;
        for (int64_t t = 0; t < l->taps; t++) {
            const double m = fabs((double)v[c * l->in_step + t]);
            largest = m > largest ? m : largest;
            squares += m * m;
        }
        top = largest * in[c].down > top ? largest * in[c].down : top;
        signal += squares * in[c].power;
        spread += squares * in[c].down * in[c].down;
        risen += in[c].risen;
    }
    const double weight_step = top / 127,
                 noise = (spread * step * step + (double)l->taps * risen * weight_step * weight_step) / 12;
    return signal > 0 ? noise / (noise + signal) : NAN;
}

/* The mean of that over the outputs of a reader. Channels are assumed to reach four times their standard deviation. */
static double noise_of(const work *w, const set *x, const oct_scaled_layer *l, const int *exponent, scaled_input *in)
{
    const oct_weight_layout *y = &l->weights;
    const float *v = oct_layer_weights(w->c->m->graph, l->node)->data;
    const int64_t outs = y->outs / y->groups, ins = y->ins / y->groups;
    double lo = 0, hi = 0, sum = 0;
    int64_t n = 0;
    for (int64_t c = 0; c < x->s->channels; c++) {
        const double r = fmax((double)x->hi[c], -(double)x->lo[c]) / 4;
        lo = fmin(lo, ldexp((double)x->lo[c], exponent[c]));
        hi = fmax(hi, ldexp((double)x->hi[c], exponent[c]));
        in[c] = (scaled_input){ ldexp(1, -exponent[c]), r * r, ldexp(r * r, 2 * exponent[c]) };
    }
    for (int64_t o = 0; o < y->outs; o++) {
        const double one =
            noise_at(y, v + o / outs * y->group_step + o % outs * y->out_step, in + o / outs * ins, (hi - lo) / 255);
        if (!isnan(one) && ++n)
            sum += one;
    }
    return n ? sum / (double)n : 0;
}

static oct_status noise_behind(const work *w, const set *x, const int *exponent, double *sum, oct_err *err)
{
    scaled_input *in = oct_calloc((size_t)x->s->channels + 1, sizeof *in);
    if (!in)
        return oct_nomem(err);
    *sum = 0;
    for (size_t i = 0; i < x->s->n_readers; i++)
        if (oct_is_product(w->c->job, x->s->reader[i].node))
            *sum += noise_of(w, x, &x->s->reader[i], exponent, in);
    oct_free(in);
    return OCT_OK;
}

static oct_status choose(const work *w, set *x, oct_err *err)
{
    const size_t channels = (size_t)x->s->channels, bytes = channels * sizeof(int);
    int *tried = oct_arena_calloc(w->a, 2 * channels, sizeof *tried), *last = tried + channels;
    double noise;
    if (!tried)
        return oct_nomem(err);
    OCT_TRY(noise_behind(w, x, x->exponent, &x->noise[0], err));
    double best = LEAST_FALL * x->noise[0];
    for (int strength = 1; strength <= STRENGTHS; strength++) {
        scale_to(x, strength, tried);
        if (memcmp(tried, last, bytes) == 0)
            continue; /* factors are powers of two, so that two strengths may have the same */
        memcpy(last, tried, bytes);
        OCT_TRY(noise_behind(w, x, tried, &noise, err));
        if (!(noise < best))
            continue;
        memcpy(x->exponent, tried, bytes);
        best = noise;
        x->chosen = true;
    }
    x->noise[1] = x->chosen ? best : x->noise[0];
    return OCT_OK;
}

/* Whether the noise that all sets see falls by as much as the outputs would have to gain. */
static bool promises(const work *w)
{
    double noise[2] = { 0 };
    for (size_t i = 0; i < w->n; i++)
        for (int k = 0; k < 2; k++)
            noise[k] += w->set[i].noise[k];
    return 10 * log10(noise[0] / noise[1]) >= LEAST_GAIN;
}

/* ---- the check ---- */

static oct_status scale(oct_trial *t, oct_conversion *c, oct_method_result *r, oct_arena *a, oct_err *err)
{
    work *w = t->arg;
    for (size_t i = 0; i < w->n; i++)
        OCT_TRY(
            oct_scaling_apply(&(oct_scaler){ c->m->graph, w->scaled, w->was }, w->set[i].s, w->set[i].exponent, err));
    return oct_conversion_reopen(c, err);
}

/* Restores the original tensors. */
static void take_back(oct_trial *t, oct_conversion *c)
{
    const work *w = t->arg;
    oct_graph *g = c->m->graph;
    for (size_t v = 0; v < w->n_was; v++)
        if (g->value[v].constant != w->was[v])
            oct_graph_set_const(g, (int)v, w->was[v]);
}

static oct_status keep_constants(work *w, oct_err *err)
{
    const oct_graph *g = w->c->m->graph;
    w->n_was = g->n_value;
    if (!(w->was = oct_arena_calloc(w->a, g->n_value + 1, sizeof *w->was)))
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        w->was[v] = g->value[v].constant;
    return OCT_OK;
}

/* *won: the layers stay scaled. */
static oct_status attempt(work *w, oct_method_result *r, bool *won, oct_err *err)
{
    oct_trial t = { .size = OCT_SIM_MANY_RUNS,
                    .graph = true,
                    .act = scale,
                    .undo = take_back,
                    .gain = LEAST_GAIN,
                    .otherwise = "layers stay as they are",
                    .arg = w };
    OCT_TRY(keep_constants(w, err));
    OCT_TRY(oct_conversion_try(w->c, &t, r, err));
    *won = t.won;
    return OCT_OK;
}

/* ---- the method ---- */

static oct_status open_sets(work *w, oct_err *err)
{
    oct_scaling *found;
    size_t all;
    OCT_TRY(oct_scalings_find(w->c->m->graph, w->a, &found, &all, err));
    for (size_t i = 0; i < all; i++)
        if (isfinite(found[i].bound) == w->clamped)
            found[w->n++] = found[i];
    if (!(w->set = oct_arena_calloc(w->a, w->n + 1, sizeof *w->set)))
        return oct_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        const size_t n = (size_t)found[i].channels;
        w->set[i] = (set){ .s = &found[i],
                           .lo = oct_arena_calloc(w->a, n, sizeof(float)),
                           .hi = oct_arena_calloc(w->a, n, sizeof(float)),
                           .exponent = oct_arena_calloc(w->a, n, sizeof(int)) };
        if (!w->set[i].lo || !w->set[i].hi || !w->set[i].exponent)
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status record(const work *w, const set *x, oct_err *err)
{
    for (size_t k = 0; x->chosen && k < x->s->n_values; k++)
        OCT_TRY(oct_scaling_record(&w->c->scaled, w->c->m->graph, &x->s->value[k], x->s->channels, x->exponent, err));
    return OCT_OK;
}

static oct_status equalize(work *w, oct_method_result *r, oct_err *err)
{
    size_t pairs = 0;
    bool won;
    OCT_TRY(open_sets(w, err));
    if (w->n == 0) {
        r->why = "no layers can be scaled against each other";
        return OCT_OK;
    }
    OCT_TRY(find_ranges(w, err));
    for (size_t i = 0; i < w->n; i++) {
        OCT_TRY(choose(w, &w->set[i], err));
        w->chosen += w->set[i].chosen;
        pairs += w->set[i].chosen ? w->set[i].s->n_readers : 0;
    }
    if (w->chosen == 0 || !promises(w)) {
        r->why = w->chosen == 0 ? "the channels between layers have ranges that are alike enough"
                                : "too few layers would gain by it";
        return OCT_OK;
    }
    if (!w->c->equalized && !(w->c->equalized = oct_arena_create()))
        return oct_nomem(err);
    w->scaled = w->c->equalized; /* what is not kept stays there, too, until the conversion ends */
    OCT_TRY(attempt(w, r, &won, err));
    if (!won)
        return OCT_OK;
    snprintf(r->choice, sizeof r->choice, "equalized %zu pair%s of layers", pairs, pairs == 1 ? "" : "s");
    for (size_t i = 0; i < w->n; i++)
        OCT_TRY(record(w, &w->set[i], err));
    return OCT_OK;
}

static oct_status run_sets(oct_conversion *c, bool clamped, oct_method_result *r, oct_err *err)
{
    work w = { .c = c, .a = oct_arena_create(), .clamped = clamped };
    const oct_status st = w.a ? equalize(&w, r, err) : oct_nomem(err);
    oct_arena_destroy(w.a);
    return st;
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    return run_sets(c, false, r, err);
}

static oct_status run_clamped(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    return run_sets(c, true, r, err);
}

const oct_method oct_method_equalize = {
    .name = "equalize",
    .summary = "layers scaled against each other, so that channels use the same range",
    .step = OCT_STEP_GRAPH,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run,
};

const oct_method oct_method_equalize_clamped = {
    .name = "equalize-clamped",
    .summary = "the same through clamps such as ReLU6",
    .step = OCT_STEP_GRAPH,
    .needs = OCT_NEEDS_SAMPLES,
    .high = true,
    .run = run_clamped,
};
