#include "base/mem.h"

#include "base/reuse.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static atomic_size_t n_allocs, fail_at;

/* Large blocks get pages of their own, which are used again as they are or go back to the system (reuse.h). glibc's
 * default is to keep them once one was freed, so that the peak of one phase (calibration) would add to that of the
 * next. And threads share one heap: one for each would reserve 64 MB of address space, and they allocate little. */
static void tune_malloc(void)
{
#ifdef __GLIBC__
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&done)) {
        mallopt(M_MMAP_THRESHOLD, OCT_REUSE_LEAST);
        mallopt(M_ARENA_MAX, 1);
    }
#endif
}

size_t oct_alloc_fail_at(size_t n)
{
    fail_at = n;
    return atomic_exchange(&n_allocs, 0);
}

bool oct_count(const int64_t *dims, int n, int64_t *out)
{
    int64_t c = 1;
    for (int i = 0; i < n; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(c, dims[i], &c))
            return false;
    *out = c;
    return true;
}

void *oct_alloc(size_t size)
{
    size_t k = atomic_fetch_add(&n_allocs, 1) + 1;
    size_t at = fail_at;
    if (at && k == at) {
        fail_at = 0;
        return NULL;
    }
    tune_malloc();
    size_t rounded;
    if (!oct_add_size(size ? size : 1, 63, &rounded))
        return NULL;
    rounded &= ~(size_t)63;
    return rounded < OCT_REUSE_LEAST ? aligned_alloc(64, rounded) : oct_reuse_alloc(rounded);
}

void *oct_calloc(size_t n, size_t size)
{
    size_t bytes;
    if (!oct_mul_size(n, size, &bytes))
        return NULL;
    void *p = oct_alloc(bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

char *oct_strdup(const char *s)
{
    const size_t n = strlen(s) + 1;
    char *p = oct_alloc(n);
    return p ? memcpy(p, s, n) : NULL;
}

void *oct_realloc(void *p, size_t old_size, size_t size)
{
    void *q = oct_alloc(size);
    if (!q)
        return NULL;
    if (p)
        memcpy(q, p, old_size < size ? old_size : size);
    oct_free(p);
    return q;
}

void oct_free(void *p)
{
    if (p)
        oct_reuse_free(p);
}

/* Blocks are chained; a request larger than a block gets a block of its own. */
typedef struct block {
    struct block *next;
    size_t cap, used;
    const oct_large_blocks *from; /* NULL: the heap */
} block;

#define HEAD ((sizeof(block) + 63) & ~(size_t)63)

enum { MOST_SHARED = 1 << 15 }; /* blocks do not grow beyond: a larger request gets its own */

static _Atomic(const oct_large_blocks *) large_blocks;

void oct_arena_large_blocks(const oct_large_blocks *from)
{
    atomic_store(&large_blocks, from);
}

struct oct_arena {
    block *first;
    bool on_heap; /* no block is of large_blocks */
    size_t bytes, next_cap;
};

oct_arena *oct_arena_create(void)
{
    oct_arena *a = oct_calloc(1, sizeof *a);
    if (a)
        a->next_cap = 4096;
    return a;
}

oct_arena *oct_arena_create_on_heap(void)
{
    oct_arena *a = oct_arena_create();
    if (a)
        a->on_heap = true;
    return a;
}

void oct_arena_destroy(oct_arena *a)
{
    if (!a)
        return;
    for (block *b = a->first, *next; b; b = next) {
        next = b->next;
        if (b->from)
            b->from->free(b, HEAD + b->cap);
        else
            oct_free(b);
    }
    oct_free(a);
}

static block *new_block(size_t cap, bool on_heap)
{
    size_t total;
    if (!oct_add_size(cap, HEAD, &total))
        return NULL;
    const oct_large_blocks *from = on_heap ? NULL : atomic_load(&large_blocks);
    block *b = from && total >= from->least ? from->alloc(total) : NULL;
    if (!b) {
        from = NULL;
        b = oct_alloc(total);
    }
    if (b)
        *b = (block){ .cap = cap, .from = from };
    return b;
}

void *oct_arena_aligned(oct_arena *a, size_t size, size_t align)
{
    block *b = a->first;
    size_t at = 0;
    if (b)
        at = (((uintptr_t)b + HEAD + b->used + align - 1) & ~(uintptr_t)(align - 1)) - ((uintptr_t)b + HEAD);
    if (!b || at > b->cap || size > b->cap - at) {
        size_t want;
        if (!oct_add_size(size, align, &want))
            return NULL;
        if (!(b = new_block(want > a->next_cap ? want : a->next_cap, a->on_heap)))
            return NULL;
        /* A large single request goes behind the current block, which still has room. */
        if (a->first && want > a->next_cap / 2) {
            b->next = a->first->next;
            a->first->next = b;
        } else {
            b->next = a->first;
            a->first = b;
            if (a->next_cap < MOST_SHARED)
                a->next_cap *= 2;
        }
        at = (((uintptr_t)b + HEAD + align - 1) & ~(uintptr_t)(align - 1)) - ((uintptr_t)b + HEAD);
    }
    b->used = at + size;
    a->bytes += size;
    return (char *)b + HEAD + at;
}

void *oct_arena_alloc(oct_arena *a, size_t size)
{
    return oct_arena_aligned(a, size, 16);
}

void *oct_arena_calloc(oct_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (!oct_mul_size(n, size, &bytes))
        return NULL;
    void *p = oct_arena_alloc(a, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void *oct_arena_memdup(oct_arena *a, const void *p, size_t n)
{
    void *q = oct_arena_alloc(a, n);
    if (q && n)
        memcpy(q, p, n);
    return q;
}

char *oct_arena_strndup(oct_arena *a, const char *s, size_t n)
{
    char *q = oct_arena_alloc(a, n + 1);
    if (!q)
        return NULL;
    memcpy(q, s, n);
    q[n] = 0;
    return q;
}

char *oct_arena_strdup(oct_arena *a, const char *s)
{
    return oct_arena_strndup(a, s, strlen(s));
}

char *oct_arena_vprintf(oct_arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *q = n < 0 ? NULL : oct_arena_alloc(a, (size_t)n + 1);
    if (q)
        vsnprintf(q, (size_t)n + 1, fmt, again);
    va_end(again);
    return q;
}

char *oct_arena_printf(oct_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *q = oct_arena_vprintf(a, fmt, ap);
    va_end(ap);
    return q;
}

size_t oct_arena_bytes(const oct_arena *a)
{
    return a->bytes;
}

bool oct_arena_grow(oct_arena *a, void **v, size_t n, size_t *cap, size_t elem)
{
    if (n < *cap)
        return true;
    size_t want = *cap ? *cap * 2 : 8, bytes;
    if (!oct_mul_size(want, elem, &bytes))
        return false;
    void *q = oct_arena_alloc(a, bytes);
    if (!q)
        return false;
    if (n)
        memcpy(q, *v, n * elem);
    *v = q;
    *cap = want;
    return true;
}
