#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t locks[OCT_LOCKS];
static atomic_uint forks;

static void before_fork(void)
{
    for (int i = 0; i < OCT_LOCKS; i++)
        pthread_mutex_lock(&locks[i]);
}

static void release_all(void)
{
    for (int i = OCT_LOCKS; i-- > 0;)
        pthread_mutex_unlock(&locks[i]);
}

static void in_child(void)
{
    atomic_fetch_add(&forks, 1);
    release_all();
}

static void start(void)
{
    for (int i = 0; i < OCT_LOCKS; i++)
        pthread_mutex_init(&locks[i], NULL);
    pthread_atfork(before_fork, release_all, in_child);
}

static void start_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}

void oct_lock(oct_lock_name which)
{
    start_once();
    pthread_mutex_lock(&locks[which]);
}

void oct_unlock(oct_lock_name which)
{
    pthread_mutex_unlock(&locks[which]);
}

unsigned oct_forks(void)
{
    start_once();
    return atomic_load_explicit(&forks, memory_order_acquire);
}
