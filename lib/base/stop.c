#include "base/stop.h"

static _Thread_local const atomic_bool *watched;

const atomic_bool *oct_stop_watch(const atomic_bool *flag)
{
    const atomic_bool *before = watched;
    watched = flag;
    return before;
}

const atomic_bool *oct_stop_watched(void)
{
    return watched;
}

oct_status oct_stop_check(oct_err *err)
{
    if (!watched || !atomic_load_explicit(watched, memory_order_relaxed))
        return OCT_OK;
    return oct_fail(err, OCT_ESTOPPED, "stopped");
}
