/* lib/base/stop.h -- cancels a call of the library.
 *
 * The caller of the library may set a flag from another thread or a signal handler. Long work checks the flag of its
 * thread before each step of a plan, item of a pool and sample, before an output replaces a file, and while waiting for
 * a command. */
#ifndef OCT_BASE_STOP_H
#define OCT_BASE_STOP_H

#include "base/status.h"

#include <poll.h>
#include <stdatomic.h>

/* Sets the flag that this thread checks from now on; NULL: none. Returns the previous one. Borrowed. */
const atomic_bool *oct_stop_watch(const atomic_bool *flag);
/* The flag that this thread checks, or NULL. */
const atomic_bool *oct_stop_watched(void);
/* OCT_ESTOPPED when the flag of this thread is set. */
oct_status oct_stop_check(oct_err *err);
/* poll() until the time of oct_now(); INFINITY: for ever. It continues after signals. When the flag of this thread is
 * set, it returns -1 within OCT_STOP_SLICE seconds, with errno ECANCELED. */
#define OCT_STOP_SLICE 0.02
int oct_stop_poll(struct pollfd *p, nfds_t n, double until);

#endif
