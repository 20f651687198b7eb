#define _GNU_SOURCE
#include "base/stack.h"

#include <pthread.h>
#include <stdint.h>

/* Whether this amount of stack is left below the caller's frame. A stack that is not the thread's own (coroutines)
 * counts as too small. */
static bool has_room(void)
{
    static _Thread_local uintptr_t lowest,
        highest; /* asking is slow in the first thread, which reads the list of its mappings */
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!highest) {
        pthread_attr_t attr;
        void *low;
        size_t size;
        if (pthread_getattr_np(pthread_self(), &attr) != 0)
            return false;
        if (pthread_attr_getstack(&attr, &low, &size) == 0) {
            lowest = (uintptr_t)low;
            highest = lowest + size;
        }
        pthread_attr_destroy(&attr);
    }
    return here >= lowest && here < highest && here - lowest >= OCT_STACK_LEAST;
}

typedef struct work {
    void (*fn)(void *arg);
    void *arg;
} work;

static void *run(void *arg)
{
    const work *w = arg;
    w->fn(w->arg);
    return NULL;
}

bool oct_stack_call(void (*fn)(void *arg), void *arg)
{
    if (has_room()) {
        fn(arg);
        return true;
    }
    work w = { fn, arg };
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setstacksize(&attr, 4 * OCT_STACK_LEAST);
    const bool started = pthread_create(&thread, &attr, run, &w) == 0;
    pthread_attr_destroy(&attr);
    if (started)
        pthread_join(thread, NULL);
    return started;
}
