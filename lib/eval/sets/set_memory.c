/* The memory of sets of samples. */
#include "eval/sets/sample_set.h"

#include "base/mem.h"

enum { LEAST_CAPACITY = 64 };

bool oct_set_grow(void **v, size_t n, size_t *cap, size_t size)
{
    size_t bytes, want = *cap ? *cap * 2 : LEAST_CAPACITY;
    if (n < *cap)
        return true;
    if (want <= *cap || !oct_mul_size(want, size, &bytes))
        return false;
    void *p = oct_realloc(*v, *cap * size, bytes);
    if (!p)
        return false;
    *v = p;
    *cap = want;
    return true;
}
