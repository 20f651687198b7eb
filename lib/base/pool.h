/* lib/base/pool.h -- threads, that wait for the next call. Results do not depend on which thread takes which part of the work, nor on how it is cut. */
#ifndef OCT_BASE_POOL_H
#define OCT_BASE_POOL_H

#include "base/status.h"

#include <pthread.h>

/* Starts a thread that is to be joined. Its stack is small, as those of a pool are: the system's 8 MB each would take most of the address
 * space of a process that may have little. False: the system gives none, which is a lack of memory or of processes. */
bool oct_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);

typedef struct oct_pool oct_pool;

/* n threads including the caller's; 0 takes the number of processors this process may use. NULL: no memory, or not as many threads. */
oct_pool *oct_pool_create(int n);
oct_status oct_pool_fail(int n, oct_err *err); /* OCT_ENOMEM, said for a pool of n threads that could not be made */
void oct_pool_destroy(oct_pool *p);
/* For few, long calls: threads sleep between them instead of spinning until the next, which on a busy machine takes time from
 * those who have work. */
void oct_pool_relax(oct_pool *p);
int oct_pool_threads(const oct_pool *p); /* 1 for NULL */

/* Calls fn(arg, begin, end, thread) over tiles of [0, n), each at most `tile` items (tile >= 1), and
 * returns when all are done. Each thread takes tiles that follow each other, then, from the last one on, what slower threads have left. thread < oct_pool_threads(p): an index for scratch memory. A NULL pool
 * runs everything on the caller, in order. fn must not fail and must not call oct_pool_for itself. */
void oct_pool_for(oct_pool *p, size_t n, size_t tile,
                  void (*fn)(void *arg, size_t begin, size_t end, size_t thread), void *arg);

#endif
