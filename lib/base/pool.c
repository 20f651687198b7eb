#define _GNU_SOURCE
#include "base/pool.h"

#include "base/mem.h"

#if defined(OCT_PTHREADPOOL)
#include <pthreadpool.h>
#else
#include "base/pool_plain.h"
#endif
#include <sched.h>
#include <stdatomic.h>

struct oct_pool {
    pthreadpool_t impl; /* NULL for one thread */
    int threads;
    uint32_t flags;     /* of pthreadpool */
};

oct_pool *oct_pool_create(int n)
{
    oct_pool *p = oct_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    if (n <= 0) {
        cpu_set_t set;
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    }
    p->threads = n;
    if (n > 1 && !(p->impl = pthreadpool_create((size_t)n))) {
        oct_free(p);
        return NULL;
    }
    if (p->impl)
        p->threads = (int)pthreadpool_get_threads_count(p->impl);
    return p;
}

void oct_pool_destroy(oct_pool *p)
{
    if (!p)
        return;
    if (p->impl)
        pthreadpool_destroy(p->impl);
    oct_free(p);
}

void oct_pool_relax(oct_pool *p)
{
    p->flags = PTHREADPOOL_FLAG_YIELD_WORKERS;
}

int oct_pool_threads(const oct_pool *p)
{
    return p ? p->threads : 1;
}

/* Each lane takes tiles from a shared counter, so that lane numbers serve as scratch indices even
 * where the packaged pthreadpool does not tell which thread it runs on. */
typedef struct job {
    void (*fn)(void *, size_t, size_t, size_t);
    void *arg;
    size_t n, tile, tiles;
    atomic_size_t next;
} job;

static void run_lane(void *context, size_t lane)
{
    job *j = context;
    for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->tiles;) {
        size_t begin = i * j->tile, left = j->n - begin;
        j->fn(j->arg, begin, begin + (left < j->tile ? left : j->tile), lane);
    }
}

void oct_pool_for(oct_pool *p, size_t n, size_t tile,
                  void (*fn)(void *arg, size_t begin, size_t end, size_t thread), void *arg)
{
    if (n == 0)
        return;
    job j = { .fn = fn, .arg = arg, .n = n, .tile = tile, .tiles = (n - 1) / tile + 1 };
    if (!p || !p->impl || j.tiles == 1)
        run_lane(&j, 0);
    else
        pthreadpool_parallelize_1d(p->impl, run_lane, &j, (size_t)p->threads, p->flags);
}
