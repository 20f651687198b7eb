#include "base/stop.h"

#include "base/io.h"

#include <errno.h>
#include <math.h>

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

int oct_stop_poll(struct pollfd *p, nfds_t n, double until)
{
    for (;;) {
        if (oct_stop_check(NULL) != OCT_OK) {
            errno = ECANCELED;
            return -1;
        }
        const double left = fmax(until - oct_now(), 0), wait = watched ? fmin(left, OCT_STOP_SLICE) : left;
        const int ready = poll(p, n, isinf(wait) ? -1 : (int)fmin(ceil(wait * 1e3), 1e9));
        if (ready > 0 || (ready < 0 && errno != EINTR) || (ready == 0 && left <= 0))
            return ready;
    }
}
