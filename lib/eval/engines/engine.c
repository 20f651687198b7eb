/* Runs a model with a plan of our runtime, with a command, or with a twin. */
#include "eval/engines/engine.h"

#include "base/io.h"

oct_status oct_engine_open(oct_engine *e, const oct_graph *g, const oct_engine_opts *o, const oct_input_desc *feed,
                           size_t n_feed, oct_err *err)
{
    *e = (oct_engine){ NULL };
    if (o->remote)
        return oct_remote_start(o->remote, o->path, g, feed, n_feed, &e->there, err);
    if (o->twin)
        return oct_twin_engine_open(o->twin, o->path, g, feed, n_feed, &e->as, err);
    return oct_runner_create(g, &(oct_plan_opts){ .pool = o->pool, .bf16 = o->bf16 }, feed, n_feed, &e->here, err);
}

void oct_engine_close(oct_engine *e)
{
    oct_runner_destroy(e->here);
    oct_remote_stop(e->there);
    oct_twin_engine_close(e->as);
    *e = (oct_engine){ NULL };
}

oct_status oct_engine_run(oct_engine *e, const oct_array *arrays, double *seconds, oct_err *err)
{
    if (e->there)
        return oct_remote_run(e->there, arrays, seconds, err);
    const double began = oct_now();
    const oct_status s =
        e->as ? oct_twin_engine_run(e->as, arrays, err) : oct_runner_run(e->here, arrays, &e->plan, err);
    *seconds = oct_now() - began;
    return s;
}

const oct_operand *oct_engine_output(const oct_engine *e, size_t i)
{
    return e->there ? oct_remote_output(e->there, i)
           : e->as  ? oct_twin_engine_output(e->as, i)
                    : oct_plan_output(e->plan, i);
}

const oct_operand *oct_engine_left(const void *e, size_t i)
{
    return oct_engine_output(e, i);
}

const char *oct_engine_name(const oct_engine *e)
{
    return e->there ? oct_remote_name(e->there) : e->as ? oct_twin_engine_name(e->as) : NULL;
}
