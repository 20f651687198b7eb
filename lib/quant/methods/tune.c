/* Chooses the observer for the range of each tensor by measurements.
 *
 * Minimizing the squared error of a tensor clips rare large values. Most layers tolerate this, but some do not. So each
 * tensor is rounded with each candidate, and the error after the layers that read it is compared. The float model runs,
 * and its values are rounded when they are shown. When the next values are shown, they are compared with those of the
 * float model and replaced by these. So a single run gives the cost of a candidate for all tensors, each with real
 * inputs, and after any activation that follows.
 *
 * Ranges that are judged on one half of the samples come from the statistics of the other half. Otherwise, a range that
 * clips the values it was made from would seem better than it is. But these ranges have seen half as many samples as
 * those of the model that is written, and so miss more values: a new value exceeds the largest of n by a chance of 1/(n
 * + 1). So the noise at the outputs is the mean of that with these ranges and of that with ranges from all samples,
 * where nothing exceeds the largest value: about what a new sample meets. 16 bits have room for values beyond all
 * samples: there, twice the range is used unless another candidate is better.
 *
 * Each candidate for the whole model is measured at the outputs, sample by sample, so that chance does not decide. The
 * choice for each tensor is compared with the best of these on the other half of the samples. In small models, other
 * candidates of single tensors are tried at the outputs as well, and the other half decides whether they are kept. Rows
 * of the policy that name an observer are not changed. */
#include "kernels/reduce.h"

#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/methods/by_metric.h"
#include "quant/place/place.h"
#include "quant/simulate/simulate_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The widest ranges come first: among nearly equal candidates a wide one is safer for data that differ from the
 * samples. The last one is wider still, and is used only for 16 bits. */
static const char *const candidates[] = {
    "minmax", "hist-mse=4", "hist-mse", "hist-percentile=99.99", "hist-percentile=99.9", "minmax=2"
};
enum { N = sizeof candidates / sizeof candidates[0], ROOMY = N - 1, USUAL = 2 }; /* USUAL: oct_observer_default */
#define SAMPLES ((oct_sim_size){ 2400000000, 4, 32 })                            /* for each half */
#define BEHIND_DB                                                                                       \
    0.5 /* on one half: a candidate that is so far behind another one is not measured on the other half \
         */
#define CLEARLY \
    0.9 /* a factor on the cost of the candidate for the whole model: a tensor gets another one only below it */
#define MARGIN_DB 0.5 /* dB at the outputs that another candidate for the whole model must gain */
#define TIE_DB 0.1    /* dB: of candidates that are closer none is the better one */
#define FEW_DB 0.3    /* dB more for each time that there are more samples than make the noise */
#define EACH_DB                                                                                                  \
    2.0 /* dB that a choice for each tensor must gain over that, because it fits these samples more closely than \
           future data */
#define CHANCE 1.0   /* how many standard errors the mean gain of a sample must be above 0 */
#define LITTLE 0.01  /* share of the mean noise of a sample: smaller differences are ignored */
#define NEAR 2.0     /* a factor on the cost: candidates of a tensor within it are tried at the outputs */
#define STEP_DB 0.05 /* dB that such a trial must gain */
#define TRIAL_MACS \
    8e9 /* multiply-accumulates of all such trials; they are not started if this allows too few of them */
enum { LEAST_TRIALS = 8, MOST_TRIALS = 200 };
enum {
    LEAST_JUDGES = 16
}; /* how many samples a half needs to judge a choice for each tensor; fewer would be too much a matter of chance */
enum {
    OF_ALL = 2
}; /* beside the halves 0 and 1, whose parameters are from the other one: parameters from all samples */
enum {
    LANES = 4,
    LANE_BYTES = 48 << 20
}; /* how many samples run at a time, and the memory for the float model's values of each */

/* A sample that is running. */
typedef struct lane {
    float **real;   /* [taps]: values of the float model; NULL: not kept */
    size_t used;    /* how much of the memory they use */
    int64_t *count; /* [taps] */
    double *signal; /* [taps] */
    double *error;  /* [taps][N] */
    bool failed;
} lane;

typedef struct search {
    oct_conversion *c;
    oct_qjob *j;
    oct_arena *a;
    oct_sim *half[2];
    const oct_sim_core *core;
    size_t taps;
    int n;     /* how many candidates this job has */
    bool *all; /* [n_values]: true */
    oct_observer_spec spec[N];
    const oct_quant *
        *made[OF_ALL + 1][N]; /* [n_values]: the parameters by each candidate, for judging on either half, and OF_ALL */
    lane *lane;               /* [samples] */
    size_t first;             /* the first of the samples that are running */
    int now;                  /* the candidate that is measured; -1: the float values are kept */
    double (*cost)[N];        /* [n_values], at the root: the noise after the readers, relative to the signal */
    unsigned char *choice;    /* [n_values], at the root: the chosen candidate */
    int suits;                /* the candidate for the whole model */
    double *db;               /* [samples of both halves]: working memory */
} search;

/* ---- candidates ---- */

static bool is_searched(const search *x, size_t v)
{
    return oct_quant_of(x->j, v) && oct_params_root(x->j, (int)v) == (int)v && !x->j->g->value[v].constant;
}

/* Whether there are statistics of halves, which few samples lack. */
static bool has_halves(const search *x)
{
    return x->c->half[0];
}

static oct_status make_candidate(search *x, int from, int k, oct_err *err)
{
    oct_qjob *j = x->j;
    const oct_quant **made = oct_arena_calloc(x->a, j->n_values + 1, sizeof *made);
    bool changed;
    if (!made)
        return oct_nomem(err);
    OCT_TRY(oct_observer_parse(candidates[k], &x->spec[k], err));
    j->observer = x->spec[k];
    OCT_TRY(oct_choose_qparams(j, has_halves(x) && from != OF_ALL ? x->c->half[!from] : x->c->calib, &changed, err));
    for (size_t v = 0; v < j->n_values; v++)
        made[v] = oct_quant_of(j, v);
    x->made[from][k] = made;
    return OCT_OK;
}

/* Whether a value has 16 bits; to be called after the candidates are known. */
static bool has_room(const oct_qjob *j)
{
    for (size_t v = 0; v < j->n_values; v++)
        if (oct_quant_of(j, v) && oct_dtype_bits(oct_quant_of(j, v)->dtype) == 16)
            return true;
    return false;
}

/* Makes the parameters that are judged on a half from the statistics of the other half, if there are statistics of
 * halves, and those OF_ALL. */
static oct_status make_candidates(search *x, oct_err *err)
{
    const oct_observer_spec usual = x->j->observer;
    for (int k = 0; k < N && (k < ROOMY || has_room(x->j)); x->n = ++k)
        for (int from = 0; from <= OF_ALL; from++)
            OCT_TRY(make_candidate(x, from, k, err));
    x->j->observer = usual;
    return OCT_OK;
}

/* Gives values the parameters of candidate k, or, if k is N, of the chosen candidates: those for judging on a half, or
 * those OF_ALL. */
static void use(const search *x, int from, int k)
{
    for (size_t v = 0; v < x->j->n_values; v++)
        oct_set_quant(x->j, (int)v, x->made[from][k < N ? k : x->choice[oct_params_root(x->j, (int)v)]][v]);
}

/* ---- errors after the readers ---- */

enum { IN_CACHE = 4096 }; /* how many values are processed at a time */

static double power_of(const float *v, size_t n)
{
    static const float none[IN_CACHE];
    double sum = 0;
    for (size_t at = 0; at < n; at += IN_CACHE)
        sum += oct_squared_error_f32(v + at, none, n - at < IN_CACHE ? n - at : IN_CACHE);
    return sum;
}

static void keep(lane *w, size_t tap, const oct_operand *t)
{
    const size_t n = (size_t)t->count, room = LANE_BYTES / sizeof(float);
    if (n > room - w->used)
        return;
    oct_free(w->real[tap]);
    if (!(w->real[tap] = oct_alloc(n * sizeof(float)))) {
        w->failed = true;
        return;
    }
    memcpy(w->real[tap], t->data, n * sizeof(float));
    w->count[tap] = t->count;
    w->signal[tap] = power_of(w->real[tap], n);
    w->used += n;
}

static void compare(const search *x, lane *w, size_t tap, const oct_operand *t)
{
    const float *real = w->real[tap];
    if (!real || w->count[tap] != t->count)
        return;
    float *own = t->data;
    double sum = 0;
    for (size_t n = (size_t)t->count, at = 0; at < n; at += IN_CACHE) {
        const size_t part = n - at < IN_CACHE ? n - at : IN_CACHE;
        sum += oct_squared_error_f32(own + at, real + at, part);
        oct_sim_round_to(x->j, x->core->tapped[tap], real + at, part, own + at);
    }
    w->error[tap * N + (size_t)x->now] = sum;
}

static void show(void *arg, size_t sample, size_t tap, const oct_operand *t)
{
    const search *x = arg;
    lane *w = &x->lane[x->first + sample];
    if (t->dtype != OCT_F32)
        return;
    if (x->now < 0)
        keep(w, tap, t);
    else
        compare(x, w, tap, t);
}

static oct_status open_lane(const search *x, lane *w, oct_err *err)
{
    w->real = oct_arena_calloc(x->a, x->taps + 1, sizeof *w->real);
    w->count = oct_arena_calloc(x->a, x->taps + 1, sizeof *w->count);
    w->signal = oct_arena_calloc(x->a, x->taps + 1, sizeof *w->signal);
    w->error = oct_arena_calloc(x->a, x->taps * N + 1, sizeof *w->error);
    return w->real && w->count && w->signal && w->error ? OCT_OK : oct_nomem(err);
}

static void free_values(const search *x, lane *w)
{
    for (size_t i = 0; w->real && i < x->taps; i++)
        oct_free(w->real[i]);
    w->real = NULL;
}

/* Runs some samples of the first half, starting with the given one. */
static oct_status run_lanes(search *x, oct_sim *some, oct_err *err)
{
    bool failed = false;
    oct_status s = OCT_OK;
    for (size_t i = 0; i < some->n_samples; i++)
        OCT_TRY(open_lane(x, &x->lane[x->first + i], err));
    for (x->now = -1; x->now < x->n && s == OCT_OK; x->now++) {
        if (x->now >= 0)
            use(x, 0, x->now);
        s = oct_sim_show(some, x->all, show, x, err);
    }
    for (size_t i = 0; i < some->n_samples; i++) {
        lane *w = &x->lane[x->first + i];
        free_values(x, w);
        failed |= w->failed;
    }
    return s == OCT_OK && failed ? oct_nomem(err) : s;
}

/* Adds the noise at a tap to the cost of each tensor that it was computed from. todo: [n_value + 1], a list of values
 * to be followed backwards. */
static void charge(search *x, const oct_graph *g, const int *tap_of, int tap, const double *noise, bool *seen,
                   int *todo)
{
    size_t n = 0;
    for (todo[n++] = tap; n > 0;) {
        const int p = g->value[todo[--n]].producer;
        for (int i = 0; p >= 0 && i < g->node[p].n_in; i++) {
            const int u = g->node[p].in[i];
            if (u < 0 || seen[u])
                continue;
            seen[u] = true;
            if (tap_of[u] < 0) {
                todo[n++] = u;
                continue;
            }
            const int root = oct_params_root(x->j, x->core->tapped[tap_of[u]]);
            for (int k = 0; k < N; k++)
                x->cost[root][k] += noise[k];
        }
    }
}

static oct_status charge_all(search *x, size_t samples, oct_err *err)
{
    const oct_graph *g = x->core->graph[SIM_REAL].g;
    int *tap_of = oct_arena_calloc(x->a, g->n_value + 1, sizeof *tap_of),
        *todo = oct_arena_calloc(x->a, g->n_value + 1, sizeof *todo);
    bool *seen = oct_arena_calloc(x->a, g->n_value + 1, sizeof *seen);
    if (!tap_of || !todo || !seen)
        return oct_nomem(err);
    memset(tap_of, -1, g->n_value * sizeof *tap_of);
    for (size_t i = 0; i < x->taps; i++) {
        const int v = oct_sim_way(x->j, x->core->tapped[i]) == OCT_SIM_OWN ? oct_graph_find(g, x->core->tap[i]) : -1;
        if (v >= 0) /* those behind the values on which errors are measured are not in the graph, and cost nothing */
            tap_of[v] = (int)i;
    }
    for (size_t i = 0; i < x->taps; i++) {
        double signal = 0, noise[N] = { 0 };
        const int v = oct_sim_way(x->j, x->core->tapped[i]) == OCT_SIM_OWN ? oct_graph_find(g, x->core->tap[i]) : -1;
        if (v < 0)
            continue;
        for (size_t s = 0; s < samples; s++) {
            signal += x->lane[s].signal[i];
            for (int k = 0; k < N; k++)
                noise[k] += x->lane[s].error[i * N + (size_t)k];
        }
        for (int k = 0; k < N; k++)
            noise[k] = signal > 0 ? noise[k] / signal : 0;
        memset(seen, 0, g->n_value * sizeof *seen);
        charge(x, g, tap_of, v, noise, seen, todo);
    }
    return OCT_OK;
}

static oct_status measure_costs(search *x, oct_sim *s, oct_err *err)
{
    if (!(x->lane = oct_arena_calloc(x->a, s->n_samples + 1, sizeof *x->lane)))
        return oct_nomem(err);
    const size_t at_once = s->core->threads < LANES ? s->core->threads : LANES;
    for (x->first = 0; x->first < s->n_samples; x->first += at_once) {
        const size_t left = s->n_samples - x->first;
        oct_sim some = { s->core, s->sample + x->first, left < at_once ? left : at_once };
        OCT_TRY(run_lanes(x, &some, err));
    }
    return charge_all(x, s->n_samples, err);
}

/* ---- errors at the outputs ---- */

/* The loss of a choice at the outputs. Weights are not rounded, because their noise would hide the effect of ranges. */
typedef struct outcome {
    double *noise[2]; /* by half, [samples]: the noise relative to the signal of the half, summed over the outputs;
                         NULL: not measured */
    double sqnr[2];   /* dB */
} outcome;

static void add_noise(const oct_sim *s, size_t output, double share, double *noise)
{
    double signal = 0;
    for (size_t i = 0; i < s->n_samples; i++)
        signal += s->sample[i]->error[output].signal;
    for (size_t i = 0; i < s->n_samples && signal > 0; i++) {
        const oct_error *e = &s->sample[i]->error[output];
        noise[i] += e->broken ? INFINITY : share * e->noise / signal;
    }
}

/* Measures with the parameters from one set of samples, which counts for a share of the outcome. Returns the noise of
 * the worst output in *noise. */
static oct_status measure_share(const search *x, int half, int from, int k, double share, double *to, double *noise,
                                oct_err *err)
{
    oct_sim *s = x->half[half];
    oct_sim_loss loss;
    use(x, from, k);
    OCT_TRY(oct_sim_measure(s, &(oct_sim_mask){ .weights = OCT_SIM_FLOAT_WEIGHTS }, &loss, err));
    for (size_t i = 0; i < x->core->n_outputs; i++)
        add_noise(s, i, share, to);
    *noise += share * pow(10, -loss.sqnr / 10);
    return OCT_OK;
}

static oct_status measure(const search *x, int half, int k, outcome *o, oct_err *err)
{
    double noise = 0, *of = oct_arena_calloc(x->a, x->half[half]->n_samples + 1, sizeof *of);
    if (!of)
        return oct_nomem(err);
    const double share = has_halves(x) ? 0.5 : 1;
    OCT_TRY(measure_share(x, half, half, k, share, of, &noise, err));
    if (has_halves(x))
        OCT_TRY(measure_share(x, half, OF_ALL, k, share, of, &noise, err));
    o->noise[half] = of;
    o->sqnr[half] = -10 * log10(noise);
    return OCT_OK;
}

static oct_status measure_both(const search *x, int k, outcome *o, oct_err *err)
{
    for (int h = 0; h < 2; h++)
        if (!o->noise[h])
            OCT_TRY(measure(x, h, k, o, err));
    return OCT_OK;
}

static double sum_of(const search *x, int half, const outcome *o)
{
    double sum = 0;
    for (size_t i = 0; i < x->half[half]->n_samples; i++)
        sum += o->noise[half][i];
    return sum;
}

/* db[]: how many dB each sample of the halves `from`..1 changes from one choice to the other. Differences that are
 * small in comparison with the noise count little. Returns how many there are. */
static size_t losses(const search *x, int from, const outcome *was, const outcome *now)
{
    size_t n = 0;
    for (int h = from; h < 2; h++) {
        const double little = LITTLE * sum_of(x, h, was) / (double)x->half[h]->n_samples;
        for (size_t i = 0; i < x->half[h]->n_samples; i++)
            x->db[n++] = little > 0 ? 10 * log10((now->noise[h][i] + little) / (was->noise[h][i] + little)) : 0;
    }
    return n;
}

/* How many times more samples there are than make the noise: n sum x^2 / (sum x)^2, 1 if all have the same. */
static double concentration(const search *x, int from, const outcome *o)
{
    double n = 0, sum = 0, squares = 0;
    for (int h = from; h < 2; h++)
        for (size_t i = 0; i < x->half[h]->n_samples; i++) {
            n++;
            sum += o->noise[h][i];
            squares += o->noise[h][i] * o->noise[h][i];
        }
    return squares > 0 && isfinite(squares) ? n * squares / (sum * sum) : 1;
}

/* Whether the noise of the halves `from`..1 falls by this many dB, and by more than chance explains. If few samples
 * make most of the noise, a range may cut the values of the next such sample, which costs far more than it gained: then
 * it must gain more. */
static bool wins(const search *x, int from, const outcome *was, const outcome *now, double gain)
{
    double before = 0, after = 0, sum = 0, squares = 0;
    for (int h = from; h < 2; h++) {
        before += sum_of(x, h, was);
        after += sum_of(x, h, now);
    }
    const size_t n = losses(x, from, was, now);
    for (size_t i = 0; i < n; i++)
        sum += x->db[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x->db[i] - mean) * (x->db[i] - mean);
    const double error = n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : 0;
    gain += FEW_DB * (concentration(x, from, was) - 1);
    return after * pow(10, gain / 10) <= before && -mean >= CHANCE * error;
}

/* ---- choosing ---- */

/* The candidate with the widest ranges. */
static int widest(const search *x)
{
    return x->n > ROOMY ? ROOMY : 0;
}

/* The number that is reported: dB, the mean of both halves. */
static double number_of(const outcome *o)
{
    return (o->sqnr[0] + o->sqnr[1]) / 2;
}

static bool is_measured(const outcome *o)
{
    return o->noise[0] && o->noise[1];
}

/* Chooses the candidate for the whole model: the widest one, which is safest for other samples, or a narrower one that
 * gains more than chance. The second half is measured if the first one does not show a loss. The usual observer, which
 * a conversion has without a search, takes the place of one whose number is worse; ranges of 16 bits are an exception,
 * as they have room. */
static oct_status choose_one(search *x, outcome *o, oct_err *err)
{
    x->suits = widest(x);
    OCT_TRY(measure_both(x, x->suits, &o[x->suits], err));
    OCT_TRY(measure_both(x, USUAL, &o[USUAL], err));
    for (int k = 0; k < ROOMY; k++) {
        if (k == x->suits)
            continue;
        if (!o[k].noise[0])
            OCT_TRY(measure(x, 0, k, &o[k], err));
        if (sum_of(x, 0, &o[k]) > pow(10, BEHIND_DB / 10) * sum_of(x, 0, &o[x->suits]))
            continue;
        OCT_TRY(measure_both(x, k, &o[k], err));
        if (wins(x, 0, &o[x->suits], &o[k], MARGIN_DB))
            x->suits = k;
    }
    if (x->suits != ROOMY && number_of(&o[x->suits]) < number_of(&o[USUAL]) - TIE_DB)
        x->suits = USUAL;
    return OCT_OK;
}

/* Chooses for each tensor the candidate for the whole model, or another one if that costs clearly less. A value that no
 * other layer reads is not clipped: there the largest values matter most, and no later layer averages the error. */
static void choose_each(search *x, int usual)
{
    for (size_t v = 0; v < x->j->n_values; v++) {
        const double *cost = x->cost[v];
        int best = usual;
        for (int k = 0; k < x->n; k++)
            best = cost[k] < CLEARLY * cost[usual] && cost[k] < cost[best] ? k : best;
        x->choice[v] = (unsigned char)(cost[best] > 0 ? best : widest(x));
    }
}

/* Among the searched tensors that are not done, the one with the greatest cost; or -1. */
static int next_of(const search *x, const bool *done)
{
    int worst = -1;
    for (size_t v = 0; v < x->j->n_values; v++)
        if (!done[v] && is_searched(x, v) && (worst < 0 || x->cost[v][x->choice[v]] > x->cost[worst][x->choice[worst]]))
            worst = (int)v;
    return worst;
}

/* Tries other candidates of a tensor at the outputs. *runs: how many runs remain. */
static oct_status refine_one(search *x, int v, int *runs, double *best, oct_err *err)
{
    const double limit = NEAR * x->cost[v][x->choice[v]];
    for (int k = 0; k < x->n && *runs > 0; k++) {
        const unsigned char was = x->choice[v];
        outcome tried = { { NULL } };
        if (k == was || x->cost[v][k] > limit)
            continue;
        x->choice[v] = (unsigned char)k;
        OCT_TRY(measure(x, 0, N, &tried, err));
        --*runs;
        if (tried.sqnr[0] >= *best + STEP_DB)
            *best = tried.sqnr[0];
        else
            x->choice[v] = was;
    }
    return OCT_OK;
}

/* Improves one tensor after the other, those with the greatest cost first, on one half. The other half decides whether
 * the result is kept. */
static oct_status refine(search *x, outcome *chosen, oct_err *err)
{
    const size_t n = x->j->n_values;
    const double most = TRIAL_MACS / ((double)x->core->macs * (double)x->half[0]->n_samples * (has_halves(x) ? 2 : 1));
    int runs = most > MOST_TRIALS ? MOST_TRIALS : (int)most;
    unsigned char *before = oct_arena_memdup(x->a, x->choice, n);
    bool *done = oct_arena_calloc(x->a, n + 1, sizeof *done);
    outcome refined = { { NULL } };
    if (!before || !done)
        return oct_nomem(err);
    if (runs < LEAST_TRIALS)
        return OCT_OK;
    double at = chosen->sqnr[0];
    for (int v = next_of(x, done); v >= 0 && runs > 0; v = next_of(x, done)) {
        done[v] = true;
        OCT_TRY(refine_one(x, v, &runs, &at, err));
    }
    OCT_TRY(measure_both(x, N, &refined, err));
    if (wins(x, 1, chosen, &refined, STEP_DB))
        *chosen = refined;
    else
        memcpy(x->choice, before, n);
    return OCT_OK;
}

/* Chooses a candidate for each tensor, if that is better than one for the whole model. */
static oct_status choose_tensors(search *x, outcome *chosen, oct_err *err)
{
    outcome each = { { NULL } };
    OCT_TRY(measure_costs(x, x->half[0], err));
    choose_each(x, x->suits);
    OCT_TRY(measure_both(x, N, &each, err));
    if (wins(x, 1, chosen, &each, EACH_DB))
        *chosen = each;
    else
        memset(x->choice, x->suits, x->j->n_values);
    return refine(x, chosen, err);
}

/* Records the best of the candidates that were not chosen. own: tensors have candidates of their own, so that the
 * candidate for the whole model was not chosen, either. */
static void note_next(const search *x, const outcome *o, bool own, oct_method_result *r)
{
    int next = -1;
    for (int k = 0; k < x->n; k++)
        if (is_measured(&o[k]) && (own || k != x->suits) && (next < 0 || number_of(&o[k]) > number_of(&o[next])))
            next = k;
    if (next < 0)
        return;
    r->next = candidates[next];
    r->next_value = number_of(&o[next]);
}

static oct_status choose(search *x, oct_method_result *r, oct_err *err)
{
    outcome o[N] = { { { NULL } } };
    OCT_TRY(choose_one(x, o, err));
    outcome chosen = o[x->suits];
    if (x->half[0]->n_samples >= LEAST_JUDGES && x->half[1]->n_samples >= LEAST_JUDGES)
        OCT_TRY(choose_tensors(x, &chosen, err));
    else
        memset(x->choice, x->suits, x->j->n_values);
    bool own = false; /* a tensor has a candidate of its own */
    for (size_t v = 0; v < x->j->n_values; v++)
        own |= is_searched(x, v) && x->choice[oct_params_root(x->j, (int)v)] != x->suits;
    r->measure = "output SQNR";
    r->unit = "dB";
    r->before = number_of(&o[USUAL]);
    r->after = number_of(&chosen);
    r->although = r->after >= r->before - TIE_DB ? "the widest of equally good ranges is safer for other samples"
                                                 : "16 bits leave room for values that these samples do not have";
    note_next(x, o, own, r);
    return OCT_OK;
}

static oct_status search_ranges(search *x, oct_method_result *r, oct_err *err)
{
    for (int h = 0; h < 2; h++)
        OCT_TRY(oct_conversion_sim(x->c, SAMPLES, h, &x->half[h], err));
    x->core = x->half[0]->core;
    x->taps = x->core->n_taps;
    x->cost = oct_arena_calloc(x->a, x->j->n_values + 1, sizeof *x->cost);
    x->choice = oct_arena_calloc(x->a, x->j->n_values + 1, sizeof *x->choice);
    x->all = oct_arena_calloc(x->a, x->j->n_values + 1, sizeof *x->all);
    x->db = oct_arena_calloc(x->a, x->half[0]->n_samples + x->half[1]->n_samples + 1, sizeof *x->db);
    if (!x->cost || !x->choice || !x->all || !x->db)
        return oct_nomem(err);
    memset(x->all, true, x->j->n_values * sizeof *x->all);
    OCT_TRY(make_candidates(x, err));
    return choose(x, r, err);
}

/* Transfers the choice to the job. The record names the candidate that most tensors have. */
static oct_status settle(search *x, oct_method_result *r, oct_err *err)
{
    oct_qjob *j = x->j;
    size_t n = 0, count[N] = { 0 };
    int most = x->suits;
    if (!(j->chosen = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *j->chosen)))
        return oct_nomem(err);
    for (size_t v = 0; v < j->n_values; v++) {
        const int k = x->choice[oct_params_root(j, (int)v)];
        j->chosen[v] = x->spec[k];
        count[k] += is_searched(x, v);
        n += is_searched(x, v);
    }
    j->observer = x->spec[x->suits];
    for (int k = 0; k < N; k++)
        most = count[k] > count[most] ? k : most;
    snprintf(r->choice, sizeof r->choice, count[most] == n ? "%s" : "%s (%zu of %zu tensors)", candidates[most],
             count[most], n);
    return OCT_OK;
}

/* Measures candidate k for the whole model, or with N the choice, by the metric: with ranges from samples that do not
 * judge. */
static oct_status score_of(search *x, int k, const unsigned char *own, oct_eval_score *score, oct_method_result *r,
                           oct_err *err)
{
    oct_conversion *c = x->c;
    oct_calib *all = c->calib;
    const size_t n = x->j->n_values;
    if (k < N)
        memset(x->choice, k, n);
    else
        memcpy(x->choice, own, n);
    OCT_TRY(settle(x, r, err));
    oct_conversion_changed(c);
    c->calib = has_halves(x) ? c->half[0] : all;
    const oct_status s = oct_metric_measure(c, score, err);
    c->calib = all;
    return s;
}

/* Where labels or a rule say what counts, a candidate for the whole model takes the place of the choice if it is better
 * by the metric, and by more than chance. */
static oct_status choose_by_metric(search *x, oct_method_result *r, oct_err *err)
{
    const size_t n = x->j->n_values;
    unsigned char *own = oct_arena_memdup(x->a, x->choice, n + 1);
    oct_eval_score best, score[ROOMY];
    int found = N, next = -1;
    if (!own)
        return oct_nomem(err);
    OCT_TRY(score_of(x, N, own, &best, r, err));
    for (int k = 0; k < ROOMY && best.metric; k++) {
        OCT_TRY(score_of(x, k, own, &score[k], r, err));
        if (oct_metric_compare(&best, &score[k]) <= 0)
            continue;
        found = k;
        best = score[k];
    }
    memcpy(x->choice, own, n);
    if (found == N)
        return OCT_OK;
    memset(x->choice, found, n);
    x->suits = found;
    for (int k = 0; k < ROOMY; k++)
        if (k != found && score[k].metric && (next < 0 || score[k].drop < score[next].drop))
            next = k;
    r->measure = best.metric->name;
    r->unit = "";
    r->before = score[USUAL].value;
    r->after = best.value;
    r->next = next < 0 ? NULL : candidates[next];
    r->next_value = next < 0 ? NAN : score[next].value;
    return OCT_OK;
}

static bool worth_it(const oct_qjob *j)
{
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_is_product(j, j->layer[i]) && !oct_row_of(j, j->layer[i])->observer.observer)
            return true;
    return false;
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    if (!worth_it(c->job)) {
        r->why = "no layer has a choice of observers";
        return OCT_OK;
    }
    c->job->chosen = NULL; /* a choice of an earlier search */
    search x = { .c = c, .j = c->job, .a = oct_arena_create() };
    oct_status s = x.a ? search_ranges(&x, r, err) : oct_nomem(err);
    if (s == OCT_OK && oct_metric_decides(c))
        s = choose_by_metric(&x, r, err);
    if (s == OCT_OK)
        s = settle(&x, r, err);
    oct_arena_destroy(x.a);
    oct_conversion_changed(c);
    return s;
}

const oct_method oct_method_observer_search = {
    .name = "observer-search",
    .summary = "for each tensor the observer that was measured to lose least",
    .step = OCT_STEP_RANGES,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run,
};
