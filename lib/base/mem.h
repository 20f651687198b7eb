/* lib/base/mem.h -- overflow-checked sizes, allocation and the arena.
 *
 * All heap allocation of the library goes through oct_alloc()/oct_realloc()/oct_free(), so that the
 * fault tests can make each one fail in turn. Nothing here aborts: NULL means out of memory. */
#ifndef OCT_BASE_MEM_H
#define OCT_BASE_MEM_H

#include "base/status.h"

/* *out = a * b, or a + b. Returns false on overflow, which leaves *out unspecified. */
static inline bool oct_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool oct_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
/* Product of n non-negative dimensions; false when one is negative or the product exceeds INT64_MAX. */
bool oct_count(const int64_t *dims, int n, int64_t *out);

void *oct_alloc(size_t size);            /* uninitialised, aligned to 64 bytes; size 0 gives 1 byte */
void *oct_calloc(size_t n, size_t size); /* zeroed, aligned to 64 bytes, n * size checked */
/* Grows a block from oct_alloc: old_size bytes are kept. The old block stays valid on failure. */
void *oct_realloc(void *p, size_t old_size, size_t size);
void oct_free(void *p); /* NULL allowed */
char *oct_strdup(const char *s);

/* Fault injection, for tests: the n-th next allocation (1 = the next) returns NULL, and all after it
 * succeed; 0 turns it off. Returns how many allocations happened since the last call. */
size_t oct_alloc_fail_at(size_t n);

/* An arena: all that was allocated in it is released at once. Not thread-safe. */
typedef struct oct_arena oct_arena;
oct_arena *oct_arena_create(void);
oct_arena *oct_arena_create_on_heap(void); /* its blocks do not come from oct_arena_large_blocks */
void oct_arena_destroy(oct_arena *a);
void *oct_arena_alloc(oct_arena *a, size_t size);                 /* 16-byte aligned; NULL: no memory */
void *oct_arena_calloc(oct_arena *a, size_t n, size_t size);      /* zeroed, n * size checked */
void *oct_arena_aligned(oct_arena *a, size_t size, size_t align); /* align a power of two, <= 4096 */
char *oct_arena_strdup(oct_arena *a, const char *s);
char *oct_arena_strndup(oct_arena *a, const char *s, size_t n);
char *oct_arena_printf(oct_arena *a, const char *fmt, ...) OCT_PRINTF(2, 3);
char *oct_arena_vprintf(oct_arena *a, const char *fmt, va_list ap) OCT_PRINTF(2, 0);
void *oct_arena_memdup(oct_arena *a, const void *p, size_t n);
size_t oct_arena_bytes(const oct_arena *a); /* bytes handed out */

/* A source of large blocks for all arenas of the process, in place of the heap (base/spill.h). alloc is asked for
 * blocks of `least` bytes or more; it returns one aligned to a page, or NULL, and then the block comes from the heap.
 * free gets the size that alloc got. */
typedef struct oct_large_blocks {
    size_t least;
    void *(*alloc)(size_t size);
    void (*free)(void *p, size_t size);
} oct_large_blocks;
/* Sets the source, borrowed; NULL: blocks of any size come from the heap. */
void oct_arena_large_blocks(const oct_large_blocks *from);

/* Makes room for one more element in a growing array kept in an arena:
 *   OCT_GROW(a, list->v, list->n, list->cap)  returns false when out of memory. */
bool oct_arena_grow(oct_arena *a, void **v, size_t n, size_t *cap, size_t elem);
#define OCT_GROW(a, v, n, cap) oct_arena_grow((a), (void **)&(v), (n), &(cap), sizeof *(v))

#endif
