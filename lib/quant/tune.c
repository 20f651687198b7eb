/* Which observer chooses the ranges: measured, not guessed.
 *
 * The best rule differs by model: least squared error clips rare large values, which classifiers forgive and box regressions do
 * not. So the job is decided with each candidate, the quantized graphs run in our own runtime on some of the samples that a calibration
 * runs in float anyway, and the candidate whose worst output is closest to float stays. Rows of the policy that name an observer
 * keep it. */
#include "quant/convert_int.h"
#include "quant/job.h"

#include "eval/metric.h"
#include "runtime/runner.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* Widest ranges first: among nearly equal ones that is safer for data unlike the samples. */
static const char *const candidates[] = { "minmax", "hist-mse=4", "hist-mse" };
enum { N = sizeof candidates / sizeof candidates[0], USUAL = N - 1 }; /* USUAL: oct_observer_default */
#define MARGIN_DB 0.1 /* the least that counts as better */

/* One candidate: what it makes of the graph, and its runner, for one thread at a time. */
typedef struct trial {
    pthread_mutex_t lock;
    oct_graph *g;
    oct_runner *runner;
    oct_error *error;       /* [samples][outputs]; summed up in this order, whatever the threads do */
} trial;

typedef struct tuner {
    oct_qjob *j;
    const oct_calib *c;
    pthread_mutex_t lock;   /* while the candidates are made */
    bool made;
    oct_status status;      /* of that */
    oct_err err;
    int64_t samples, every; /* so many, each of so many that pass by */
    trial t[N];
} tuner;

/* Decides with candidate i and rewrites a copy of the graph; the job's own graph stays float. */
static oct_status make(tuner *u, int i, oct_err *err)
{
    oct_qjob *j = u->j;
    trial *t = &u->t[i];
    OCT_TRY(oct_observer_parse(candidates[i], &j->observer, err));
    OCT_TRY(oct_qjob_decide(j, u->c, err));
    OCT_TRY(oct_quantized_copy(j, &t->g, err));
    t->error = oct_calloc((size_t)u->samples * j->g->n_output + 1, sizeof *t->error);
    if (!t->error)
        return oct_nomem(err);
    /* Few runs follow, so weights are packed fast. */
    return oct_runner_create(t->g, &(oct_plan_opts){ .no_passes = true, .fast_pack = true }, NULL, 0, &t->runner, err);
}

/* Made by the first thread that needs them, while others calibrate on. */
static oct_status make_all(tuner *u, oct_err *err)
{
    pthread_mutex_lock(&u->lock);
    for (int i = 0; i < N && u->status == OCT_OK && !u->made; i++)
        u->status = make(u, i, &u->err);
    u->made = true;
    pthread_mutex_unlock(&u->lock);
    if (u->status != OCT_OK && err)
        *err = u->err;
    return u->status;
}

/* How far a candidate's output is from the float one; what has no numbers, or another size, does not count. */
static oct_status compare(const oct_operand *real, const oct_operand *own, oct_error *e, oct_err *err)
{
    const size_t n = (size_t)real->count;
    if (own->count != real->count)
        return OCT_OK;
    float *x = oct_calloc(2 * n + 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    if (oct_operand_to_f32(real, x, NULL) == OCT_OK && oct_operand_to_f32(own, x + n, NULL) == OCT_OK)
        oct_error_add(e, x, x + n, n);
    oct_free(x);
    return OCT_OK;
}

static oct_status try_one(trial *t, size_t sample, const oct_batch *b, const oct_plan *real, oct_err *err)
{
    oct_plan *own;
    OCT_TRY(oct_runner_run(t->runner, b->tensors, &own, err));
    const size_t n = oct_plan_n_outputs(real);
    for (size_t k = 0; k < n; k++)
        OCT_TRY(compare(oct_plan_output(real, k), oct_plan_output(own, k), &t->error[sample * n + k], err));
    return OCT_OK;
}

/* Threads begin with different candidates, so that they seldom wait for each other. */
static oct_status sample(void *arg, int64_t at, const oct_batch *b, const oct_plan *real, oct_err *err)
{
    tuner *u = arg;
    const int64_t last = at + (int64_t)b->n - 1, round = last / u->every;
    if (round * u->every < at || round >= u->samples)
        return OCT_OK;
    oct_status s = make_all(u, err);
    for (int i = 0; i < N && s == OCT_OK; i++) {
        trial *t = &u->t[(round + i) % N];
        pthread_mutex_lock(&t->lock);
        s = try_one(t, (size_t)round, b, real, err);
        pthread_mutex_unlock(&t->lock);
    }
    return s;
}

/* The smallest SQNR over the outputs. */
static double quality(const tuner *u, int i)
{
    const size_t n = u->j->g->n_output;
    double least = INFINITY;
    for (size_t k = 0; k < n; k++) {
        oct_error sum = { 0 };
        for (size_t s = 0; s < (size_t)u->samples; s++)
            oct_error_join(&sum, &u->t[i].error[s * n + k]);
        const double q = oct_error_sqnr(&sum);
        least = isnan(q) ? -INFINITY : fmin(q, least);
    }
    return least;
}

static oct_status choose(tuner *u, oct_method_result *r, oct_err *err)
{
    double top = -INFINITY;
    int best = 0;
    for (int i = 0; i < N; i++)
        top = fmax(top, quality(u, i));
    while (best < N - 1 && !(quality(u, best) >= top - MARGIN_DB))
        best++;
    r->measure = "output SQNR";
    r->unit = "dB";
    r->before = quality(u, USUAL);
    r->after = quality(u, best);
    memcpy(r->choice, candidates[best], strlen(candidates[best]) + 1);
    return oct_observer_parse(candidates[best], &u->j->observer, err);
}

static bool worth_it(const oct_qjob *j)
{
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_is_product(j, j->layer[i]) && !j->node[j->layer[i]].row.observer.observer)
            return true;
    return false;
}

/* count: samples of the pass that compares; 0: it is not known how many. Their ranges come from table c, which must not hold these samples
 * where it can be helped. */
static void start(tuner *u, oct_conversion *v, const oct_calib *c, int64_t count)
{
    u->j = v->job;
    u->c = c;
    u->samples = oct_measured_samples(v);
    u->every = count > u->samples ? count / u->samples : 1;
}

static void end(tuner *u)
{
    for (int i = 0; i < N; i++) {
        trial *t = &u->t[i];
        oct_runner_destroy(t->runner);
        oct_graph_destroy(t->g);
        oct_free(t->error);
        pthread_mutex_destroy(&t->lock);
    }
    pthread_mutex_destroy(&u->lock);
}

/* ---- the samples ---- */

/* Ranges that are judged on the samples they come from look better the more they clip. So with enough samples candidates come
 * from a table of the odd ones, and the even ones judge them on their way into a table of their own. */
static oct_status by_halves(oct_conversion *c, tuner *u, oct_calib *odd, oct_err *err)
{
    const int64_t total = oct_source_count(c->src);
    OCT_TRY(oct_statistics_gather(c, &(oct_gather){ .i = 1, .n = 2, .total = total }, odd, err));
    start(u, c, odd, (total + 1) / 2);
    const oct_gather even = { .n = 2, .before = (int64_t)odd->samples, .total = total, .each = sample, .each_arg = u };
    OCT_TRY(oct_statistics_gather(c, &even, c->calib, err));
    return oct_calib_merge(c->calib, odd, err);
}

/* Few samples: they are run once more, and judge the ranges that come from them. */
static oct_status on_the_same(oct_conversion *c, tuner *u, oct_calib *none, oct_err *err)
{
    OCT_TRY(oct_statistics_gather(c, &(oct_gather){ 0 }, c->calib, err));
    start(u, c, c->calib, 0);
    return oct_statistics_gather(c, &(oct_gather){ .most = u->samples, .each = sample, .each_arg = u }, none, err);
}

static oct_status run(oct_conversion *c, oct_method_result *r, oct_err *err)
{
    enum { LEAST_SPLIT = 16 }; /* fewer are not split: halves would be worse than the optimism they avoid */
    const bool split = !c->o.whole && oct_source_count(c->src) >= LEAST_SPLIT;
    if (!worth_it(c->job)) {
        r->why = "no layer has a choice of observers";
        return OCT_OK;
    }
    tuner u = { .c = NULL };
    oct_calib *odd = oct_calib_create();
    pthread_mutex_init(&u.lock, NULL);
    for (int i = 0; i < N; i++)
        pthread_mutex_init(&u.t[i].lock, NULL);
    oct_status st = !odd ? oct_nomem(err) : split ? by_halves(c, &u, odd, err) : on_the_same(c, &u, odd, err);
    if (st == OCT_OK)
        st = choose(&u, r, err);
    end(&u);
    oct_calib_destroy(odd);
    if (st == OCT_OK)
        oct_statistics_complete(c);
    oct_conversion_changed(c);
    return st;
}

const oct_method oct_method_observer_search = {
    .name = "observer-search",
    .summary = "ranges by the observer that loses least of the outputs, measured, where the policy leaves a choice",
    .step = OCT_STEP_RANGES,
    .needs = OCT_NEEDS_SAMPLES,
    .by_default = true,
    .run = run,
};
