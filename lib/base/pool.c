#define _GNU_SOURCE
#include "base/pool.h"

#include "base/mem.h"

#if defined(OCT_PTHREADPOOL)
#include <pthreadpool.h>
#else
#include "base/pool_plain.h"
#endif
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

/* A lane's share of the tiles. Its own thread takes from the front, others, when theirs are done, from the back; a tile belongs to
 * whoever counted `left` down for it. */
struct lane {
    alignas(64) atomic_size_t left;
    atomic_size_t end;
    size_t begin;
};

struct oct_pool {
    pthreadpool_t impl;   /* NULL for one thread */
    int threads;
    uint32_t flags;       /* of pthreadpool */
    struct lane *lanes;   /* one a thread, of the call that holds `busy` */
    pthread_mutex_t busy;
};

static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

oct_pool *oct_pool_create(int n)
{
    oct_pool *p = oct_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->busy, NULL);
    p->threads = n > 0 ? n : processors();
    if (p->threads == 1)
        return p;
    if (!(p->impl = pthreadpool_create((size_t)p->threads))) {
        oct_pool_destroy(p);
        return NULL;
    }
    p->threads = (int)pthreadpool_get_threads_count(p->impl);
    if (!(p->lanes = oct_calloc((size_t)p->threads, sizeof *p->lanes))) {
        oct_pool_destroy(p);
        return NULL;
    }
    return p;
}

void oct_pool_destroy(oct_pool *p)
{
    if (!p)
        return;
    if (p->impl)
        pthreadpool_destroy(p->impl);
    pthread_mutex_destroy(&p->busy);
    oct_free(p->lanes);
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

typedef struct job {
    void (*fn)(void *, size_t, size_t, size_t);
    void *arg;
    size_t n, tile, threads;
    struct lane *lanes; /* NULL for one thread */
} job;

static bool claim(struct lane *l)
{
    size_t left = atomic_load_explicit(&l->left, memory_order_relaxed);
    while (left)
        if (atomic_compare_exchange_weak_explicit(&l->left, &left, left - 1, memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

static void run_tile(const job *j, size_t i, size_t lane)
{
    const size_t begin = i * j->tile, left = j->n - begin;
    j->fn(j->arg, begin, begin + (left < j->tile ? left : j->tile), lane);
}

/* Lane numbers serve as scratch indices even where the packaged pthreadpool does not tell which thread it runs on. */
static void run_lane(void *context, size_t lane)
{
    const job *j = context;
    struct lane *own = &j->lanes[lane];
    while (claim(own))
        run_tile(j, own->begin++, lane);
    for (size_t k = 1; k < j->threads; k++) {
        struct lane *other = &j->lanes[(lane + k) % j->threads];
        while (claim(other))
            run_tile(j, atomic_fetch_sub_explicit(&other->end, 1, memory_order_relaxed) - 1, lane);
    }
}

/* Lane t gets the t-th part of the tiles: what a thread reads of one operator's output it then mostly wrote itself, and finds in its cache. */
static void share(struct lane *lanes, size_t threads, size_t tiles)
{
    const size_t each = tiles / threads, more = tiles % threads;
    for (size_t t = 0; t < threads; t++) {
        lanes[t].begin = t * each + (t < more ? t : more);
        const size_t n = each + (t < more);
        atomic_store_explicit(&lanes[t].end, lanes[t].begin + n, memory_order_relaxed);
        atomic_store_explicit(&lanes[t].left, n, memory_order_relaxed);
    }
}

void oct_pool_for(oct_pool *p, size_t n, size_t tile,
                  void (*fn)(void *arg, size_t begin, size_t end, size_t thread), void *arg)
{
    if (n == 0)
        return;
    const size_t tiles = (n - 1) / tile + 1;
    job j = { .fn = fn, .arg = arg, .n = n, .tile = tile };
    if (!p || !p->impl || tiles == 1) {
        for (size_t i = 0; i < tiles; i++)
            run_tile(&j, i, 0);
        return;
    }
    pthread_mutex_lock(&p->busy);
    j.lanes = p->lanes;
    j.threads = (size_t)p->threads;
    share(j.lanes, j.threads, tiles);
    pthreadpool_parallelize_1d(p->impl, run_lane, &j, j.threads, p->flags);
    pthread_mutex_unlock(&p->busy);
}
