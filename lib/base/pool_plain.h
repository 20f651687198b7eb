/* lib/base/pool_plain.h -- the part of pthreadpool that pool.c uses, on threads that live for one call. Only for builds
 * of the kernels alone (only_kernels), which link no library: starting threads costs far more than waking them. Internal. */
#ifndef OCT_BASE_POOL_PLAIN_H
#define OCT_BASE_POOL_PLAIN_H

#include "base/mem.h"

#include <pthread.h>

enum { PTHREADPOOL_FLAG_YIELD_WORKERS = 2, OCT_PLAIN_THREADS = 64 };

typedef struct oct_plain_pool {
    size_t threads;
} *pthreadpool_t;

typedef struct oct_plain_lane {
    void (*task)(void *, size_t);
    void *arg;
    size_t lane;
} oct_plain_lane;

static inline pthreadpool_t pthreadpool_create(size_t threads)
{
    pthreadpool_t p = oct_calloc(1, sizeof *p);
    if (p)
        p->threads = threads < OCT_PLAIN_THREADS ? threads : OCT_PLAIN_THREADS;
    return p;
}

static inline void pthreadpool_destroy(pthreadpool_t p)
{
    oct_free(p);
}

static inline size_t pthreadpool_get_threads_count(pthreadpool_t p)
{
    return p->threads;
}

static inline void *oct_plain_run(void *lane)
{
    const oct_plain_lane *l = lane;
    l->task(l->arg, l->lane);
    return NULL;
}

/* task(arg, i) for each i below lanes (at most the threads of the pool), each on its own thread, the first on the caller's. */
static inline void pthreadpool_parallelize_1d(pthreadpool_t p, void (*task)(void *, size_t), void *arg, size_t lanes,
                                              uint32_t flags)
{
    oct_plain_lane lane[OCT_PLAIN_THREADS];
    pthread_t thread[OCT_PLAIN_THREADS];
    bool started[OCT_PLAIN_THREADS];
    for (size_t i = 1; i < lanes; i++) {
        lane[i] = (oct_plain_lane){ task, arg, i };
        started[i] = pthread_create(&thread[i], NULL, oct_plain_run, &lane[i]) == 0;
    }
    task(arg, 0);
    for (size_t i = 1; i < lanes; i++)
        if (started[i])
            pthread_join(thread[i], NULL);
        else
            task(arg, i);
}

#endif
