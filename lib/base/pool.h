/* lib/base/pool.h -- a pool of threads that wait for work. Results depend neither on the assignment of work to threads
 * nor on its division. */
#ifndef OCT_BASE_POOL_H
#define OCT_BASE_POOL_H

#include "base/status.h"

#include <pthread.h>

/* Starts a thread that is to be joined. It reads and writes numbers as in "C" (base/number_locale.h). Its stack is
 * small, like those of a pool: the default of 8 MB each would use up a limited address space. Returns false when the
 * system starts no thread, for lack of memory or of processes. */
bool oct_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);

typedef struct oct_pool oct_pool;

int oct_processors(void); /* that this process may use */

/* Makes a pool of n threads, the caller's included; n = 0: as many as the processors that this process may use. Returns
 * NULL when there is not enough memory, or the system does not start that many threads. */
oct_pool *oct_pool_create(int n);

/* Calls work(arg, i) once for each i < n, on threads of its own, and returns when all have ended. */
typedef void (*oct_parallel_fn)(void *context, size_t n, void (*work)(void *arg, size_t i), void *arg);
/* Makes a pool of n lanes without threads: fn runs them on threads of another program. `context` is what fn gets, and
 * may be changed between calls. Only one thread at a time may use such a pool. NULL: out of memory. */
oct_pool *oct_pool_create_on(int n, oct_parallel_fn fn);
void oct_pool_set_context(oct_pool *p, void *context);
oct_status oct_pool_fail(int n, oct_err *err); /* OCT_ENOMEM, with a message for a failed oct_pool_create(n) */
/* A child made by fork() may use and destroy a pool of its parent; its work then runs on the calling thread. */
void oct_pool_destroy(oct_pool *p);
/* Makes threads sleep between calls instead of spinning, and likewise the caller when it waits for them. Meant for few,
 * long calls: on a busy machine, spinning takes time from threads that have work. */
void oct_pool_relax(oct_pool *p);
int oct_pool_threads(const oct_pool *p); /* 1 for NULL */
/* Among how many threads the next call is divided: oct_pool_threads, or 1 where the threads of another program have not
 * come for a while. Work is cut for so many. */
int oct_pool_useful(const oct_pool *p);
/* While `alone` is set, calls run on the caller's thread only, so that it can be timed. NULL allowed. */
void oct_pool_alone(oct_pool *p, bool alone);

/* Calls fn(arg, begin, end, thread) over tiles of [0, n), at most `tile` >= 1 items each, and returns when all are
 * done. Each thread takes consecutive tiles, then steals from slower threads, the last tile first. thread <
 * oct_pool_threads(p) is an index for scratch memory of the call. For a NULL pool, and while another thread's call has
 * the threads, everything runs on the caller, in order. fn must not fail and must not call oct_pool_for itself. */
void oct_pool_for(oct_pool *p, size_t n, size_t tile, void (*fn)(void *arg, size_t begin, size_t end, size_t thread),
                  void *arg);
/* The same for single items that may fail. Returns the failure of the first failed item, in order. All items are tried,
 * unless the caller is asked to stop (base/stop.h). */
oct_status oct_pool_try(oct_pool *p, size_t n, oct_status (*fn)(void *arg, size_t item, size_t thread, oct_err *err),
                        void *arg, oct_err *err);

#endif
