#define _GNU_SOURCE
#include "base/reuse.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Only glibc reports the size of a block. Not with sanitizers, which shall detect each use of a freed block. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(SANITIZED)
#include <malloc.h>

enum { MOST_BLOCKS = 64 };
#define MOST_BYTES ((size_t)64 << 20)

typedef struct block {
    void *p;
    size_t size;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block waiting[MOST_BLOCKS]; /* the oldest first */
static size_t n_waiting, waiting_bytes;
static size_t used_bytes, most_used; /* now, and at any time */

static void *leave(size_t i)
{
    void *p = waiting[i].p;
    waiting_bytes -= waiting[i].size;
    memmove(waiting + i, waiting + i + 1, (--n_waiting - i) * sizeof *waiting);
    return p;
}

/* The smallest cached block with at least `size` bytes, and at most an eighth more; n_waiting: none. */
static size_t find(size_t size)
{
    size_t best = n_waiting;
    for (size_t i = 0; i < n_waiting; i++)
        if (waiting[i].size >= size && waiting[i].size - size <= size / 8 &&
            (best == n_waiting || waiting[i].size < waiting[best].size))
            best = i;
    return best;
}

/* Frees cached blocks until the cache has at most this number of bytes. */
static void shrink(size_t most)
{
    while (n_waiting && waiting_bytes > most)
        free(leave(0));
}

/* The first use of a page is a fault, which costs several times the copy of what is put there: 9.3 ms for 22 MB in a
 * virtual machine, 2.1 ms with huge pages. Only for blocks that are mostly filled with those, and used as a whole. */
static void *with_huge_pages(void *p, size_t size)
{
    enum { LEAST = 4 << 20 };
    const uintptr_t page = 2 << 20, from = ((uintptr_t)p + page - 1) & ~(page - 1),
                    to = ((uintptr_t)p + size) & ~(page - 1);
    if (p && size >= LEAST && from < to)
        madvise((void *)from, to - from, MADV_HUGEPAGE); /* a wish: without them all is as before */
    return p;
}

/* Allocates from the system; if that fails, once more after emptying the cache. */
static void *alloc_new(size_t size)
{
    void *p = aligned_alloc(64, size);
    if (p)
        return with_huge_pages(p, size);
    pthread_mutex_lock(&lock);
    shrink(0);
    pthread_mutex_unlock(&lock);
    return with_huge_pages(aligned_alloc(64, size), size);
}

void *oct_reuse_alloc(size_t size)
{
    void *p = NULL;
    pthread_mutex_lock(&lock);
    const size_t i = find(size);
    used_bytes += i < n_waiting ? waiting[i].size : size;
    if (i < n_waiting)
        p = leave(i);
    most_used = used_bytes > most_used ? used_bytes : most_used;
    shrink(most_used - used_bytes);
    pthread_mutex_unlock(&lock);
    if (p)
        return p;
    p = alloc_new(size);
    pthread_mutex_lock(&lock);
    used_bytes += (p ? malloc_usable_size(p) : 0) - size; /* what it has in truth */
    pthread_mutex_unlock(&lock);
    return p;
}

void oct_reuse_free(void *p)
{
    const size_t size = malloc_usable_size(p);
    if (size < OCT_REUSE_LEAST) {
        free(p);
        return;
    }
    pthread_mutex_lock(&lock);
    used_bytes -= size < used_bytes ? size : used_bytes; /* it may be another library's */
    waiting[n_waiting++] = (block){ p, size };
    waiting_bytes += size;
    shrink(MOST_BYTES);
    if (n_waiting == MOST_BLOCKS)
        free(leave(0));
    pthread_mutex_unlock(&lock);
}

#else

void *oct_reuse_alloc(size_t size)
{
    return aligned_alloc(64, size);
}

void oct_reuse_free(void *p)
{
    free(p);
}

#endif
