#define _GNU_SOURCE
#include "base/pool.h"

#include "base/fork.h"
#include "base/mem.h"
#include "base/number_locale.h"
#include "base/stack.h"
#include "base/stop.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

/* The stack size of a thread. Sanitizers make frames several times as large, so they use the system's default. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 0 };
#elif defined(__has_feature)
enum {
    STACK = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
                ? 0
                : OCT_STACK_LEAST
};
#else
enum { STACK = OCT_STACK_LEAST };
#endif

typedef struct thread_start {
    void *(*fn)(void *);
    void *arg;
} thread_start;

/* A new thread has the locale of the process. */
static void *start_thread(void *arg)
{
    const thread_start start = *(thread_start *)arg;
    oct_number_locale locale;
    oct_free(arg);
    oct_number_locale_enter(&locale);
    void *result = start.fn(start.arg);
    oct_number_locale_leave(&locale);
    return result;
}

bool oct_thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    thread_start *start = oct_alloc(sizeof *start);
    if (!start || pthread_attr_init(&attr) != 0) {
        oct_free(start);
        return false;
    }
    *start = (thread_start){ fn, arg };
    if (STACK)
        pthread_attr_setstacksize(&attr, STACK);
    const bool ok = pthread_create(t, &attr, start_thread, start) == 0;
    pthread_attr_destroy(&attr);
    if (!ok)
        oct_free(start);
    return ok;
}

/* A thread's share of the tiles. The thread takes tiles from the front; others, when they are done with their own, take
 * from the back. A tile belongs to the thread that decremented `left` for it. */
struct lane {
    alignas(64) atomic_size_t left;
    atomic_size_t end;
    size_t begin;
};

typedef struct job {
    void (*fn)(void *, size_t, size_t, size_t);
    void *arg;
    size_t n, tile, threads;
    struct lane *lanes;      /* NULL for one thread */
    const atomic_bool *stop; /* the flag that the caller looks at (base/stop.h) */
} job;

static bool claim(struct lane *l)
{
    size_t left = atomic_load_explicit(&l->left, memory_order_relaxed);
    while (left)
        if (atomic_compare_exchange_weak_explicit(&l->left, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void run_tile(const job *j, size_t i, size_t lane)
{
    const size_t begin = i * j->tile, left = j->n - begin;
    j->fn(j->arg, begin, begin + (left < j->tile ? left : j->tile), lane);
}

static void run_lane(const job *j, size_t lane)
{
    struct lane *own = &j->lanes[lane];
    while (claim(own))
        run_tile(j, own->begin++, lane);
    for (size_t k = 1; k < j->threads; k++) {
        struct lane *other = &j->lanes[(lane + k) % j->threads];
        while (claim(other))
            run_tile(j, atomic_fetch_sub_explicit(&other->end, 1, memory_order_relaxed) - 1, lane);
    }
}

/* Lane t gets the t-th part of the tiles: what a thread reads of one operator's output it then mostly wrote itself, and
 * finds in its cache. */
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

/* A thread beside the caller's. It runs lane `lane` of every call. */
struct worker {
    oct_pool *pool;
    size_t lane;
    pthread_t thread;
};

/* Threads of another program. Where that has none, or none that is free, dividing the work is lost time: after
 * LONELY_CALLS calls that nobody has joined, only one of ASK_AGAIN calls is divided. */
enum { LONELY_CALLS = 16, ASK_AGAIN = 256 };
typedef struct others {
    oct_parallel_fn run; /* NULL: this pool has threads of its own */
    void *context;
    pthread_t caller;
    atomic_bool joined; /* a thread beside the caller's has worked in this call */
    unsigned lonely;    /* calls in a row that nobody has joined */
} others;

struct oct_pool {
    int threads;
    bool alone;
    others others;
    atomic_bool relaxed;
    struct lane *lanes;     /* one a thread, of the call that holds `busy` */
    struct worker *workers; /* one for each of the threads but the caller's */
    int started;
    atomic_uint forks; /* oct_forks() when they were started */
    job job;           /* the call that all work on; stays while it does */
    bool stop;
    pthread_mutex_t busy;  /* held during a call of the workers */
    pthread_mutex_t sleep; /* for threads that wait for the two numbers below after spinning for a while */
    pthread_cond_t called, finished;
    alignas(64) atomic_uint calls;   /* grows with each call */
    alignas(64) atomic_uint working; /* workers that have not ended the call */
};

/* ---- waiting ---- */

/* Calls of a network follow each other within microseconds, less than it takes to wake a thread. A thread that waits
 * longer yields the processor, to decoding threads or to the thread for which it waits. */
enum { SPINS = 1000000, SPINS_ALONE = 256 };

static void pause_briefly(int turn)
{
    if (turn % SPINS_ALONE == SPINS_ALONE - 1)
        sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* To be called after changing a number for which others wait. A waiter checks it again with the lock held before it
 * sleeps, so no change is missed. */
static void wake(oct_pool *p, pthread_cond_t *who)
{
    pthread_mutex_lock(&p->sleep);
    pthread_cond_broadcast(who);
    pthread_mutex_unlock(&p->sleep);
}

/* The number of the call after number `last`. */
static unsigned next_call(oct_pool *p, unsigned last)
{
    unsigned now;
    for (int i = 0; i < SPINS && !atomic_load_explicit(&p->relaxed, memory_order_relaxed); pause_briefly(i++))
        if ((now = atomic_load_explicit(&p->calls, memory_order_acquire)) != last)
            return now;
    pthread_mutex_lock(&p->sleep);
    while ((now = atomic_load_explicit(&p->calls, memory_order_acquire)) == last)
        pthread_cond_wait(&p->called, &p->sleep);
    pthread_mutex_unlock(&p->sleep);
    return now;
}

static void all_finished(oct_pool *p)
{
    for (int i = 0; i < SPINS && !atomic_load_explicit(&p->relaxed, memory_order_relaxed); pause_briefly(i++))
        if (atomic_load_explicit(&p->working, memory_order_acquire) == 0)
            return;
    pthread_mutex_lock(&p->sleep);
    while (atomic_load_explicit(&p->working, memory_order_acquire) != 0)
        pthread_cond_wait(&p->finished, &p->sleep);
    pthread_mutex_unlock(&p->sleep);
}

static void *work(void *arg)
{
    const struct worker *w = arg;
    oct_pool *p = w->pool;
    for (unsigned call = 0;;) {
        call = next_call(p, call);
        if (p->stop)
            return NULL;
        oct_stop_watch(p->job.stop);
        run_lane(&p->job, w->lane);
        oct_stop_watch(NULL); /* the flag may be gone when the caller is */
        if (atomic_fetch_sub_explicit(&p->working, 1, memory_order_acq_rel) == 1)
            wake(p, &p->finished);
    }
}

static void call_workers(oct_pool *p)
{
    atomic_store_explicit(&p->working, (unsigned)p->started, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->calls, 1, memory_order_release);
    wake(p, &p->called);
}

/* ---- pools ---- */

static void init_locks(oct_pool *p)
{
    pthread_mutex_init(&p->busy, NULL);
    pthread_mutex_init(&p->sleep, NULL);
    pthread_cond_init(&p->called, NULL);
    pthread_cond_init(&p->finished, NULL);
}

/* A forked child has no workers, so the caller processes their lanes as well. */
static void lose_workers(oct_pool *p)
{
    oct_lock(OCT_LOCK_POOLS);
    if (atomic_load_explicit(&p->forks, memory_order_relaxed) != oct_forks()) {
        p->started = 0;
        init_locks(p);
        atomic_store_explicit(&p->forks, oct_forks(), memory_order_release);
    }
    oct_unlock(OCT_LOCK_POOLS);
}

static void look_for_fork(oct_pool *p)
{
    if (atomic_load_explicit(&p->forks, memory_order_acquire) != oct_forks())
        lose_workers(p);
}

int oct_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Fails unless all threads start: the caller has planned for as many as it asked for. */
static bool start_workers(oct_pool *p)
{
    const int n = p->threads - 1;
    p->lanes = oct_calloc((size_t)p->threads, sizeof *p->lanes);
    p->workers = oct_calloc((size_t)n, sizeof *p->workers);
    for (; p->lanes && p->workers && p->started < n; p->started++) {
        struct worker *w = &p->workers[p->started];
        *w = (struct worker){ .pool = p, .lane = (size_t)p->started + 1 };
        if (!oct_thread_start(&w->thread, work, w))
            break;
    }
    return p->started == n;
}

oct_pool *oct_pool_create(int n)
{
    oct_pool *p = oct_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    init_locks(p);
    p->forks = oct_forks();
    p->threads = n > 0 ? n : oct_processors();
    if (p->threads > 1 && !start_workers(p)) {
        oct_pool_destroy(p);
        return NULL;
    }
    return p;
}

void oct_pool_destroy(oct_pool *p)
{
    if (!p)
        return;
    look_for_fork(p);
    p->stop = true;
    call_workers(p);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->called);
    pthread_mutex_destroy(&p->sleep);
    pthread_mutex_destroy(&p->busy);
    oct_free(p->workers);
    oct_free(p->lanes);
    oct_free(p);
}

oct_pool *oct_pool_create_on(int n, oct_parallel_fn fn)
{
    oct_pool *p = oct_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    init_locks(p);
    p->forks = oct_forks();
    p->threads = n;
    p->others.run = fn;
    if (!(p->lanes = oct_calloc((size_t)n, sizeof *p->lanes))) {
        oct_pool_destroy(p);
        return NULL;
    }
    return p;
}

void oct_pool_set_context(oct_pool *p, void *context)
{
    p->others.context = context;
}

oct_status oct_pool_fail(int n, oct_err *err)
{
    oct_fail(err, OCT_ENOMEM, "cannot start %d threads: out of memory, or more than this process may have",
             n > 0 ? n : oct_processors());
    oct_hint(err, "--threads asks for fewer");
    return OCT_ENOMEM;
}

void oct_pool_relax(oct_pool *p)
{
    atomic_store_explicit(&p->relaxed, true, memory_order_relaxed);
}

int oct_pool_threads(const oct_pool *p)
{
    return p ? p->threads : 1;
}

void oct_pool_alone(oct_pool *p, bool alone)
{
    if (p)
        p->alone = alone;
}

static void run_other(void *arg, size_t lane)
{
    oct_pool *p = arg;
    const bool joins = !pthread_equal(pthread_self(), p->others.caller);
    const atomic_bool *watched = joins ? oct_stop_watch(p->job.stop) : NULL;
    run_lane(&p->job, lane);
    if (joins) {
        oct_stop_watch(watched);
        atomic_store_explicit(&p->others.joined, true, memory_order_relaxed);
    }
}

static void call_others(oct_pool *p)
{
    others *o = &p->others;
    o->caller = pthread_self();
    atomic_store_explicit(&o->joined, false, memory_order_relaxed);
    o->run(o->context, p->job.threads, run_other, p);
    o->lonely = atomic_load_explicit(&o->joined, memory_order_relaxed) ? 0 : o->lonely + 1;
}

static bool are_asked(const others *o)
{
    return o->lonely < LONELY_CALLS || o->lonely % ASK_AGAIN == 0;
}

int oct_pool_useful(const oct_pool *p)
{
    return p && p->others.run && !are_asked(&p->others) ? 1 : oct_pool_threads(p);
}

/* Whether a call is to be divided over threads of another program. */
static bool others_may_join(oct_pool *p, size_t tiles)
{
    if (are_asked(&p->others))
        return tiles > 1;
    p->others.lonely++;
    return false;
}

/* False while a call of another thread has the workers. Waiting for them would leave this thread idle, and it would get
 * them no sooner than it is done alone: that call may be followed by others. */
static bool take_workers(oct_pool *p, size_t tiles)
{
    if (p->others.run)
        return others_may_join(p, tiles);
    if (tiles == 1)
        return false;
    look_for_fork(p);
    return pthread_mutex_trylock(&p->busy) == 0;
}

void oct_pool_for(oct_pool *p, size_t n, size_t tile, void (*fn)(void *arg, size_t begin, size_t end, size_t thread),
                  void *arg)
{
    if (n == 0)
        return;
    const size_t tiles = (n - 1) / tile + 1;
    job j = { .fn = fn, .arg = arg, .n = n, .tile = tile };
    if (!p || p->threads == 1 || p->alone || !take_workers(p, tiles)) {
        for (size_t i = 0; i < tiles; i++)
            run_tile(&j, i, 0);
        return;
    }
    j.stop = oct_stop_watched();
    j.lanes = p->lanes;
    j.threads = (size_t)p->threads;
    share(j.lanes, j.threads, tiles);
    p->job = j;
    if (p->others.run) {
        call_others(p);
        return;
    }
    call_workers(p);
    run_lane(&p->job, 0);
    all_finished(p);
    pthread_mutex_unlock(&p->busy);
}

typedef struct attempts {
    oct_status (*fn)(void *arg, size_t item, size_t thread, oct_err *err);
    void *arg;
    pthread_mutex_t lock;
    size_t failed; /* the first item that did */
    oct_status status;
    oct_err *err;
} attempts;

static void run_attempts(void *arg, size_t begin, size_t end, size_t thread)
{
    attempts *a = arg;
    for (size_t i = begin; i < end; i++) {
        oct_err err = OCT_ERR_INIT;
        oct_status s = oct_stop_check(&err);
        if (s == OCT_OK)
            s = a->fn(a->arg, i, thread, &err);
        if (s == OCT_OK)
            continue;
        pthread_mutex_lock(&a->lock);
        if (i < a->failed) {
            a->failed = i;
            a->status = s;
            if (a->err)
                *a->err = err;
        }
        pthread_mutex_unlock(&a->lock);
    }
}

oct_status oct_pool_try(oct_pool *p, size_t n, oct_status (*fn)(void *arg, size_t item, size_t thread, oct_err *err),
                        void *arg, oct_err *err)
{
    attempts a = { .fn = fn, .arg = arg, .failed = n, .err = err };
    pthread_mutex_init(&a.lock, NULL);
    oct_pool_for(p, n, 1, run_attempts, &a);
    pthread_mutex_destroy(&a.lock);
    return a.status;
}
