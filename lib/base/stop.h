/* lib/base/stop.h -- a call that is asked to end early.
 *
 * Whoever calls the library may set a flag from another thread or a signal handler. Long work looks at the flag of its
 * thread between its steps: before a step of a plan, an item of a pool, a sample, and before an output takes its
 * place. */
#ifndef OCT_BASE_STOP_H
#define OCT_BASE_STOP_H

#include "base/status.h"

#include <stdatomic.h>

/* Sets the flag that this thread looks at from now on; NULL: none. Returns the one before. Borrowed. */
const atomic_bool *oct_stop_watch(const atomic_bool *flag);
/* The flag that this thread looks at, or NULL. */
const atomic_bool *oct_stop_watched(void);
/* OCT_ESTOPPED when the flag of this thread is set. */
oct_status oct_stop_check(oct_err *err);

#endif
