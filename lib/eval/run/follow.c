/* Computes the states of recorded samples. A state may grow from sample to sample, as a cache does. */
#include "eval/run/follow.h"

#include "base/mem.h"
#include "runtime/runner.h"

#include <string.h>

typedef struct follower {
    oct_graph *g;
    oct_runner *runner;
    oct_carry *carry;
    oct_state *states;
    size_t n;
} follower;

static void done(void *arg)
{
    follower *f = arg;
    if (!f)
        return;
    oct_runner_destroy(f->runner);
    oct_carry_destroy(f->carry);
    oct_graph_destroy(f->g);
    oct_free(f->states);
    oct_free(f);
}

static oct_status take_state(const oct_array *from, oct_array *to, oct_err *err)
{
    if (from->data == to->data)
        return OCT_OK;
    if (from->rank != to->rank || memcmp(from->dims, to->dims, (size_t)to->rank * sizeof to->dims[0]) != 0) {
        const oct_dtype type = to->dtype;
        oct_array_free(to);
        OCT_TRY(oct_array_create(to, type, from->rank, from->dims, err));
    }
    return oct_array_convert(from->dtype, from->data, to->dtype, to->data, (size_t)oct_array_count(from), err);
}

static oct_status visit(void *arg, oct_array *arrays, bool follows, oct_err *err)
{
    follower *f = arg;
    oct_plan *plan;
    const oct_array *x = oct_carry_arrays(f->carry, arrays, follows);
    for (size_t i = 0; i < f->n; i++)
        OCT_TRY(take_state(&x[f->states[i].input], &arrays[f->states[i].input], err));
    OCT_TRY(oct_runner_run(f->runner, arrays, &plan, err));
    return oct_carry_keep(f->carry, oct_carry_plan, plan, err);
}

static oct_status create(const oct_graph *g, const oct_state *states, size_t n, follower *f, oct_err *err)
{
    if (!(f->states = oct_calloc(n + 1, sizeof *states)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        f->states[f->n++] = states[i];
    OCT_TRY(oct_graph_clone(g, &f->g, err));
    OCT_TRY(oct_carry_create(states, n, g->n_input, &f->carry, err));
    return oct_runner_create(f->g, &(oct_plan_opts){ .no_passes = true }, NULL, 0, &f->runner, err);
}

oct_status oct_follow(oct_source *src, const oct_graph *g, const oct_state *states, size_t n, oct_err *err)
{
    follower *f = oct_calloc(1, sizeof *f);
    const oct_status s = f ? create(g, states, n, f, err) : oct_nomem(err);
    if (s != OCT_OK)
        done(f);
    else
        oct_source_set_visit(src, visit, done, f);
    return s;
}
