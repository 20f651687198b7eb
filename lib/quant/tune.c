/* Which observer chooses the ranges: measured, not guessed.
 *
 * The best rule differs by model: least squared error clips rare large values, which classifiers forgive and box regressions do
 * not. So the job is decided with each candidate, the quantized graphs run in our own runtime on some samples, and the
 * candidate whose worst output is closest to float stays. Rows of the policy that name an observer keep it. */
#include "quant/job.h"
#include "quant/tune.h"

#include "base/pool.h"
#include "runtime/plan.h"

#include <math.h>
#include <string.h>

/* Widest ranges first: among nearly equal ones that is safer for data unlike the samples. */
static const char *const candidates[] = { "minmax", "hist-mse=4", "hist-mse" };
enum { N = sizeof candidates / sizeof candidates[0], MOST_INPUTS = 64 };
#define MARGIN_DB 0.1 /* the least that counts as better */

typedef struct trial {
    oct_graph *g;
    oct_plan *plan;
    double *noise; /* [outputs] */
} trial;

typedef struct tuner {
    oct_qjob *j;
    const oct_calib *calib;
    oct_pool *pool;
    trial t[N];
    oct_plan *real;
    double *signal; /* [outputs] */
    float *a, *b;
    size_t cap;
    oct_batch batch;
    oct_input_shape *shape;
} tuner;

/* Decides with candidate i and rewrites a copy of the graph; the job's own graph stays float. */
static oct_status build(tuner *u, int i, oct_err *err)
{
    oct_qjob *j = u->j;
    OCT_TRY(oct_observer_parse(candidates[i], &j->observer, err));
    OCT_TRY(oct_qjob_decide(j, u->calib, err));
    OCT_TRY(oct_quantized_copy(j, &u->t[i].g, err));
    u->t[i].noise = oct_calloc(j->g->n_output + 1, sizeof(double));
    return u->t[i].noise ? OCT_OK : oct_nomem(err);
}

/* Something done to one of the N + 1 plans; the float one is number 0. */
typedef oct_status plan_fn(tuner *u, size_t i, oct_err *err);

static oct_plan **plan_of(tuner *u, size_t i)
{
    return i == 0 ? &u->real : &u->t[i - 1].plan;
}

static oct_status make_plan(tuner *u, size_t i, oct_err *err)
{
    oct_plan **p = plan_of(u, i);
    oct_plan_destroy(*p);
    *p = NULL;
    return oct_plan_create(i == 0 ? u->j->g : u->t[i - 1].g, u->shape, u->j->g->n_input, &(oct_plan_opts){ .no_passes = true }, p,
                           err);
}

static oct_status run_plan(tuner *u, size_t i, oct_err *err)
{
    const void *in[MOST_INPUTS];
    for (size_t k = 0; k < u->batch.n_tensors; k++)
        in[k] = u->batch.tensors[k].data;
    return oct_plan_run(*plan_of(u, i), in, err);
}

typedef struct all_plans {
    tuner *u;
    plan_fn *fn;
    oct_status status[N + 1];
    oct_err err[N + 1];
} all_plans;

static void on_plans(void *arg, size_t begin, size_t end, size_t thread)
{
    all_plans *a = arg;
    for (size_t i = begin; i < end; i++)
        a->status[i] = a->fn(a->u, i, &a->err[i]);
}

/* A plan to a thread: they are alike in cost and need no word from each other. */
static oct_status on_all_plans(tuner *u, plan_fn *fn, oct_err *err)
{
    all_plans a = { .u = u, .fn = fn };
    oct_pool_for(u->pool, N + 1, 1, on_plans, &a);
    for (int i = 0; i <= N; i++)
        if (a.status[i] != OCT_OK) {
            if (err)
                *err = a.err[i];
            return a.status[i];
        }
    return OCT_OK;
}

static oct_status make_plans(tuner *u, oct_err *err)
{
    const oct_graph *g = u->j->g;
    bool same = u->real != NULL;
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_array *a = &u->batch.tensors[i];
        oct_input_shape *s = &u->shape[i];
        same &= s->rank == a->rank && memcmp(s->dims, a->dims, (size_t)a->rank * sizeof *a->dims) == 0;
        s->name = g->value[g->input[i]].name;
        s->rank = a->rank;
        memcpy(s->dims, a->dims, (size_t)a->rank * sizeof *a->dims);
    }
    if (same)
        return OCT_OK;
    return on_all_plans(u, make_plan, err);
}

static oct_status reserve(tuner *u, size_t n, oct_err *err)
{
    if (n <= u->cap)
        return OCT_OK;
    oct_free(u->a);
    oct_free(u->b);
    u->a = oct_calloc(n, sizeof(float));
    u->b = oct_calloc(n, sizeof(float));
    u->cap = u->a && u->b ? n : 0;
    return u->cap ? OCT_OK : oct_nomem(err);
}

static oct_status score(tuner *u, oct_err *err)
{
    for (size_t k = 0; k < oct_plan_n_outputs(u->real); k++) {
        const oct_operand *y = oct_plan_output(u->real, k);
        OCT_TRY(reserve(u, (size_t)y->count, err));
        if (oct_operand_to_f32(y, u->a, NULL) != OCT_OK)
            continue;
        for (int64_t e = 0; e < y->count; e++)
            u->signal[k] += (double)u->a[e] * (double)u->a[e];
        for (int i = 0; i < N; i++) {
            const oct_operand *q = oct_plan_output(u->t[i].plan, k);
            if (q->count != y->count || oct_operand_to_f32(q, u->b, NULL) != OCT_OK)
                continue;
            for (int64_t e = 0; e < y->count; e++) {
                double d = (double)u->a[e] - (double)u->b[e];
                u->t[i].noise[k] += d * d;
            }
        }
    }
    return OCT_OK;
}

static oct_status run_sample(tuner *u, oct_err *err)
{
    OCT_TRY(make_plans(u, err));
    OCT_TRY(on_all_plans(u, run_plan, err));
    return score(u, err);
}

/* The smallest SQNR over the outputs. */
static double quality(const tuner *u, int i)
{
    double least = INFINITY;
    for (size_t k = 0; k < u->j->g->n_output; k++) {
        double noise = u->t[i].noise[k], signal = u->signal[k];
        double q = noise > 0 ? (isfinite(noise) ? 10 * log10(signal / noise) : -INFINITY) : INFINITY;
        least = q < least ? q : least;
    }
    return least;
}

static oct_status tune(tuner *u, oct_source *src, int64_t samples, oct_err *err)
{
    u->signal = oct_calloc(u->j->g->n_output + 1, sizeof *u->signal);
    u->shape = oct_calloc(u->j->g->n_input + 1, sizeof *u->shape);
    if (!u->signal || !u->shape)
        return oct_nomem(err);
    for (int i = 0; i < N; i++)
        OCT_TRY(build(u, i, err));
    for (int64_t done = 0; done < samples; done += (int64_t)u->batch.n) {
        OCT_TRY(oct_source_next(src, 1, &u->batch, err));
        if (u->batch.n == 0)
            break;
        OCT_TRY(run_sample(u, err));
    }
    double top = -INFINITY;
    int best = 0;
    for (int i = 0; i < N; i++)
        top = fmax(top, quality(u, i));
    while (best < N - 1 && !(quality(u, best) >= top - MARGIN_DB))
        best++;
    return oct_observer_parse(candidates[best], &u->j->observer, err);
}

static bool worth_it(const oct_qjob *j)
{
    for (size_t i = 0; i < j->n_layer; i++)
        if (j->node[j->layer[i]].role == OCT_ROLE_PRODUCT && !j->node[j->layer[i]].row.observer.observer)
            return j->g->n_input <= MOST_INPUTS;
    return false;
}

oct_status oct_qjob_tune(oct_qjob *j, const oct_calib *c, oct_source *src, int64_t samples, oct_pool *pool, oct_err *err)
{
    if (!worth_it(j))
        return OCT_OK;
    tuner u = { .j = j, .calib = c, .pool = pool };
    oct_status s = tune(&u, src, samples, err);
    for (int i = 0; i < N; i++) {
        oct_plan_destroy(u.t[i].plan);
        oct_graph_destroy(u.t[i].g);
        oct_free(u.t[i].noise);
    }
    oct_plan_destroy(u.real);
    oct_free(u.signal);
    oct_free(u.shape);
    oct_free(u.a);
    oct_free(u.b);
    oct_batch_free(&u.batch);
    return s;
}
