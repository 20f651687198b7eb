/* lib/base/stop.h -- a call that is asked to end early.
 *
 * Whoever calls the library may set a flag from another thread or a signal handler. Long work looks at the flag of its
 * thread between its steps: before a step of a plan, an item of a pool, a sample, and before an output takes its
 * place. Who waits for a command looks at it meanwhile. */
#ifndef OCT_BASE_STOP_H
#define OCT_BASE_STOP_H

#include "base/status.h"

#include <poll.h>
#include <stdatomic.h>

/* Sets the flag that this thread looks at from now on; NULL: none. Returns the one before. Borrowed. */
const atomic_bool *oct_stop_watch(const atomic_bool *flag);
/* The flag that this thread looks at, or NULL. */
const atomic_bool *oct_stop_watched(void);
/* OCT_ESTOPPED when the flag of this thread is set. */
oct_status oct_stop_check(oct_err *err);
/* poll() until the time of oct_now(); INFINITY: for ever. A signal does not end it, and the flag of this thread does
 * within OCT_STOP_SLICE seconds: -1, and errno is ECANCELED. */
#define OCT_STOP_SLICE 0.02
int oct_stop_poll(struct pollfd *p, nfds_t n, double until);

#endif
