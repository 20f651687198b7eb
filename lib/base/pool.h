/* lib/base/pool.h -- a pool of threads that wait for work. Results depend neither on which thread takes which part of
 * the work nor on how the work is cut. */
#ifndef OCT_BASE_POOL_H
#define OCT_BASE_POOL_H

#include "base/status.h"

#include <pthread.h>

/* Starts a thread that is to be joined. It reads and writes numbers as in "C" (base/number_locale.h). Its stack is
 * small, as those of a pool are: the system's default of 8 MB each would take most of the address space where that is
 * limited. Returns false when the system starts no thread, for lack of memory or of processes. */
bool oct_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);

typedef struct oct_pool oct_pool;

int oct_processors(void); /* that this process may use */

/* Makes a pool of n threads, the caller's included; n = 0: as many as the processors that this process may use. Returns
 * NULL when there is not enough memory, or the system does not start that many threads. */
oct_pool *oct_pool_create(int n);
oct_status oct_pool_fail(
    int n, oct_err *err); /* OCT_ENOMEM, with the message for a pool of n threads that could not be made */
/* A child made by fork() may use and destroy a pool of its parent; all runs on the calling thread then. */
void oct_pool_destroy(oct_pool *p);
/* Makes threads sleep between calls, and the caller at the end of one, instead of spinning. For few, long calls: on a
 * busy machine spinning takes time from the threads that have work. */
void oct_pool_relax(oct_pool *p);
int oct_pool_threads(const oct_pool *p); /* 1 for NULL */
/* While `alone`, calls run on the caller's thread alone, which is then to be timed. NULL allowed. */
void oct_pool_alone(oct_pool *p, bool alone);

/* Calls fn(arg, begin, end, thread) over tiles of [0, n), each at most `tile` items (tile >= 1), and
 * returns when all are done. Each thread takes consecutive tiles, and then those that slower threads have left, from
 * the last one on. thread < oct_pool_threads(p) is an index for scratch memory. A NULL pool runs everything on the
 * caller, in order. fn must not fail and must not call oct_pool_for itself. */
void oct_pool_for(oct_pool *p, size_t n, size_t tile, void (*fn)(void *arg, size_t begin, size_t end, size_t thread),
                  void *arg);
/* The same for items that may fail, one at a time: of those that did, the failure of the first in order is returned.
 * All are tried, unless the caller is asked to stop (base/stop.h). */
oct_status oct_pool_try(oct_pool *p, size_t n, oct_status (*fn)(void *arg, size_t item, size_t thread, oct_err *err),
                        void *arg, oct_err *err);

#endif
