/* The layers in the graphs that nodes hold (If, Loop, Scan), and the inputs that the float model gives them.
 *
 * The simulation shows values of the outer graph alone, so that the model is run for a body by itself. Where a body
 * runs several times for a sample, one of these runs counts, which a hash chooses. */
#include "quant/rounding/rounding_int.h"

#include "quant/convert/convert_int.h"
#include "quant/simulate/simulate_int.h"

#include <string.h>

oct_status oct_rounder_add_bodies(rounder *r, oct_err *err)
{
    for (size_t i = r->j->n_body; i-- > 0;) {
        rounder *x = oct_arena_calloc(r->a, 1, sizeof *x);
        if (!x)
            return oct_nomem(err);
        x->c = r->c;
        x->s = r->s;
        x->a = r->a;
        x->j = r->j->body[i].job;
        x->further = r->further;
        r->further = x;
        OCT_TRY(oct_rounder_add_bodies(x, err));
    }
    return OCT_OK;
}

/* A run shows values by name. Branches may use one name for different values; these are shown for none of them. */
size_t oct_rounder_tap(const rounder *r, int value)
{
    if (r->j == r->c->job)
        return oct_sim_tap(r->s, value);
    return oct_job_count_named(r->c->job, oct_value_name(r->j->g, value)) == 1 ? (size_t)value : OCT_NO_TAP;
}

/* A run of a sample. */
typedef struct shower {
    rounder *r;
    size_t sample;
    const int *value; /* by tap */
    uint64_t *shown;  /* by tap: how often, in this run */
} shower;

static oct_status show(void *arg, size_t tap, const oct_operand *t, oct_err *err)
{
    shower *x = arg;
    const uint64_t n = ++x->shown[tap], hash = (x->sample * 31 + tap) * 0x9e3779b97f4a7c15U + n * 0xbf58476d1ce4e5b9U;
    if ((hash >> 32) % n == 0) /* each of the runs is as likely */
        oct_rounder_collect(x->r, x->sample, (size_t)x->value[tap], t);
    return OCT_OK;
}

static oct_status run_samples(rounder *r, const oct_plan_opts *o, shower *x, oct_err *err)
{
    oct_runner *runner = NULL;
    oct_plan *plan;
    oct_status s = oct_runner_create(r->c->job->g, o, NULL, 0, &runner, err);
    if (s == OCT_OK)
        oct_runner_set_tap(runner, show, x);
    for (x->sample = 0; x->sample < r->s->n_samples && s == OCT_OK; x->sample++) {
        memset(x->shown, 0, o->n_taps * sizeof *x->shown);
        s = oct_runner_run(runner, r->s->sample[x->sample]->input, &plan, err);
    }
    oct_runner_destroy(runner);
    return s;
}

oct_status oct_rounder_show(rounder *r, oct_err *err)
{
    const bool *wanted = oct_rounder_wants(r);
    const size_t n = r->j->n_values;
    if (r->j == r->c->job)
        return oct_sim_show(r->s, wanted, oct_rounder_collect, r, err);
    const char **name = oct_arena_calloc(r->a, n + 1, sizeof *name);
    int *value = oct_arena_calloc(r->a, n + 1, sizeof *value);
    shower x = { .r = r, .value = value, .shown = oct_arena_calloc(r->a, n + 1, sizeof *x.shown) };
    oct_plan_opts o = { .pool = r->s->core->pool, .taps = name, .no_passes = true, .fast_pack = true };
    if (!name || !value || !x.shown)
        return oct_nomem(err);
    for (size_t v = 0; v < n; v++)
        if (wanted[v]) {
            value[o.n_taps] = (int)v;
            name[o.n_taps++] = oct_value_name(r->j->g, (int)v);
        }
    return run_samples(r, &o, &x, err);
}
