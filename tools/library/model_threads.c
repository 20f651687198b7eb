/* Runs of a model on threads of the caller's. */
#include "model_int.h"

enum { MOST_LANES = 1024 };

typedef struct lending {
    octet_model *m;
    int lanes;
    octet_parallel_fn fn;
    void *context;
} lending;

static oct_status check(const lending *x, oct_err *err)
{
    if (!x->m || !x->fn)
        return oct_fail(err, OCT_EUSAGE, "the %s is NULL", x->m ? "function" : "model");
    if (x->lanes < 1 || x->lanes > MOST_LANES)
        return oct_fail(err, OCT_EUSAGE, "%d lanes: not between 1 and %d", x->lanes, MOST_LANES);
    return OCT_OK;
}

/* A runner over a new pool; the one before, with its plans, goes. */
static oct_status set_lanes(octet_model *m, const lending *x, oct_err *err)
{
    const octet_core *c = m->core;
    oct_runner *r;
    oct_pool *p = oct_pool_create_on(x->lanes, x->fn);
    if (!p)
        return oct_nomem(err);
    const oct_status s = oct_runner_create(c->model->graph, &(oct_plan_opts){ .pool = p }, c->want, c->n_in, &r, err);
    if (s != OCT_OK) {
        oct_pool_destroy(p);
        return s;
    }
    oct_runner_destroy(m->runner);
    oct_pool_destroy(m->others);
    m->runner = r;
    m->others = p;
    m->others_fn = x->fn;
    oct_runner_profile(m->runner, m->profile);
    return OCT_OK;
}

static oct_status lend(octet *o, void *arg, oct_err *err)
{
    const lending *x = arg;
    OCT_TRY(check(x, err));
    octet_model *m = x->m;
    if (atomic_exchange(&m->busy, true))
        return oct_fail(err, OCT_EUSAGE, "the model is in use by another call");
    oct_status s = OCT_OK;
    if (!m->others || m->others_fn != x->fn || oct_pool_threads(m->others) != x->lanes)
        s = set_lanes(m, x, err);
    if (s == OCT_OK)
        oct_pool_set_context(m->others, x->context);
    atomic_store(&m->busy, false);
    return s;
}

octet_status octet_model_parallel(octet *o, octet_model *m, int lanes, octet_parallel_fn fn, void *context)
{
    return octet_do(o, lend, &(lending){ m, lanes, fn, context });
}
