/* Sets of samples, and intervals of functions of them. */
#include "eval/sets/sample_set.h"

#include "eval/metrics/bootstrap.h"

#include "base/mem.h"

#include <math.h>

enum { RESAMPLES = 2000, GROUPS = 200 };
static const double MOST_WITHOUT = 0.05; /* the largest share of resamples that may have no value */

oct_status oct_set_create(oct_set_kind kind, const oct_judging *j, oct_set **s, oct_err *err)
{
    const oct_set_type *t = oct_set_types[kind];
    if (!(*s = oct_calloc(1, t->size)))
        return oct_nomem(err);
    (*s)->type = t;
    (*s)->judging = j;
    return OCT_OK;
}

void oct_set_free(oct_set *s)
{
    if (s && s->type->release)
        s->type->release(s);
    oct_free(s);
}

oct_status oct_set_finish(oct_set *s, oct_err *err)
{
    return s->type->finish ? s->type->finish(s, err) : OCT_OK;
}

oct_status oct_set_value_of(const oct_set *s, oct_set_value fn, double *value, oct_err *err)
{
    double *scratch = oct_calloc(s->scratch + 1, sizeof *scratch);
    if (!scratch)
        return oct_nomem(err);
    *value = s->n ? fn(s, NULL, scratch) : NAN;
    oct_free(scratch);
    return OCT_OK;
}

/* ---- intervals ---- */

typedef struct resampling {
    const oct_set *reference, *other;
    oct_set_value fn;
    size_t n, groups, room; /* room: working memory of a thread, in doubles */
    double *memory, *value; /* value: [groups] with one group left out each, followed by [RESAMPLES] */
} resampling;

static void draw(double *draws, size_t n, uint64_t at)
{
    for (size_t i = 0; i < n; i++)
        draws[i] = 0;
    for (size_t i = 0; i < n; i += 2) {
        const uint64_t bits = oct_draw_bits(at << 32 | i);
        draws[(bits >> 32) * n >> 32]++;
        if (i + 1 < n)
            draws[(bits & 0xffffffffu) * n >> 32]++;
    }
}

static void leave_out(double *draws, size_t n, size_t groups, size_t group)
{
    for (size_t i = 0; i < n; i++)
        draws[i] = i % groups != group;
}

static void resample(void *arg, size_t begin, size_t end, size_t thread)
{
    const resampling *r = arg;
    double *draws = r->memory + thread * r->room, *scratch = draws + r->n;
    for (size_t i = begin; i < end; i++) {
        if (i < r->groups)
            leave_out(draws, r->n, r->groups, i);
        else
            draw(draws, r->n, i - r->groups);
        r->value[i] = r->fn(r->other, draws, scratch) - (r->reference ? r->fn(r->reference, draws, scratch) : 0);
    }
}

/* The acceleration from the values without one group each: the smaller the value without a group, the more the group
 * contributes. */
static double acceleration_of(const double *left, size_t n)
{
    double mean = 0, m2 = 0, m3 = 0;
    for (size_t i = 0; i < n; i++)
        mean += left[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double d = mean - left[i];
        m2 += d * d;
        m3 += d * d * d;
    }
    return isfinite(m3) ? oct_bootstrap_acceleration(m2, m3) : 0;
}

/* Moves the values that are not NaN to the front. */
static size_t keep_numbers(double *v, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i]))
            v[kept++] = v[i];
    return kept;
}

static void bounds(resampling *r, double estimate, double *lo, double *hi)
{
    double *v = r->value + r->groups;
    const size_t kept = keep_numbers(v, RESAMPLES);
    if ((double)(RESAMPLES - kept) <= MOST_WITHOUT * RESAMPLES)
        oct_bca_bounds(v, kept, estimate, acceleration_of(r->value, r->groups), r->n, lo, hi);
}

oct_status oct_set_interval(const oct_set *reference, const oct_set *other, oct_set_value fn, oct_pool *pool,
                            double *lo, double *hi, oct_err *err)
{
    const size_t n = other->n, threads = (size_t)oct_pool_threads(pool);
    size_t scratch = other->scratch, all;
    *lo = *hi = NAN;
    if (n < OCT_BCA_LEAST || n > UINT32_MAX || (reference && reference->n != n))
        return OCT_OK;
    scratch = reference && reference->scratch > scratch ? reference->scratch : scratch;
    resampling r = {
        .reference = reference, .other = other, .fn = fn, .n = n, .groups = n < GROUPS ? n : GROUPS, .room = n + scratch
    };
    if (!oct_mul_size(r.room, threads, &all))
        return oct_nomem(err);
    r.memory = oct_calloc(all, sizeof *r.memory);
    r.value = oct_calloc(r.groups + RESAMPLES, sizeof *r.value);
    oct_status s = r.memory && r.value ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        oct_pool_for(pool, r.groups + RESAMPLES, 16, resample, &r);
        const double estimate = fn(other, NULL, r.memory) - (reference ? fn(reference, NULL, r.memory) : 0);
        if (isfinite(estimate))
            bounds(&r, estimate, lo, hi);
    }
    oct_free(r.memory);
    oct_free(r.value);
    return s;
}
