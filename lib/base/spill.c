#define _GNU_SOURCE
#include "base/spill.h"

#include "base/fork.h"
#include "base/io.h"
#include "base/mem.h"

#ifdef __linux__
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A part of the file that is mapped: blocks are cut from its beginning. Mappings are few in a process. */
typedef struct mapping {
    struct mapping *next;
    char *data;
    size_t size, used;
} mapping;

enum { MAPPING = 64 << 20 };

static struct {
    int fd; /* -1: none yet; made when it is first needed */
    bool on;
    atomic_bool ends;
    char beside[PATH_MAX];
    size_t keep, end; /* bytes that may still stay in memory; of the file */
    mapping *first;
} spill = { .fd = -1 };

void oct_spill_close(void)
{
    oct_lock(OCT_LOCK_SPILL);
    for (mapping *w = spill.first, *next; w; w = next) {
        next = w->next;
        munmap(w->data, w->size);
        oct_free(w);
    }
    if (spill.fd >= 0)
        close(spill.fd);
    spill.fd = -1;
    spill.on = false;
    spill.end = 0;
    spill.first = NULL;
    oct_unlock(OCT_LOCK_SPILL);
}

/* Disk space is reserved first, because otherwise a write to the mapping could end the process. */
static bool new_mapping(size_t size)
{
    if (spill.fd < 0 && (spill.fd = oct_file_nameless(spill.beside)) < 0)
        return false;
    if (fallocate(spill.fd, 0, (off_t)spill.end, (off_t)size) != 0)
        return false;
    mapping *w = oct_alloc(sizeof *w);
    void *p = w ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, spill.fd, (off_t)spill.end) : MAP_FAILED;
    if (p == MAP_FAILED) {
        oct_free(w);
        return false;
    }
    *w = (mapping){ .next = spill.first, .data = p, .size = size };
    spill.first = w;
    spill.end += size;
    return true;
}

static void *block_of_file(size_t size)
{
    if ((!spill.first || size > spill.first->size - spill.first->used) && !new_mapping(size > MAPPING ? size : MAPPING))
        return NULL;
    void *p = spill.first->data + spill.first->used;
    spill.first->used += size;
    return p;
}

static size_t whole_pages(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static void *alloc_block(size_t size)
{
    void *p = NULL;
    if (size > (size_t)1 << 46)
        return NULL;
    oct_lock(OCT_LOCK_SPILL);
    if (spill.on && size <= spill.keep)
        spill.keep -= size;
    else if (spill.on && !(p = block_of_file(whole_pages(size))))
        spill.on = false;
    oct_unlock(OCT_LOCK_SPILL);
    return p;
}

/* Gives the room back, as far as the file system can. */
static void free_block(void *p, size_t size)
{
    if (!atomic_load(&spill.ends))
        madvise(p, whole_pages(size), MADV_REMOVE);
}

void oct_spill_end(void)
{
    atomic_store(&spill.ends, true);
}

void oct_spill_forget(const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)p + page - 1) / page * page,
                    to = ((uintptr_t)p + n) / page * page;
    bool ours = false;
    oct_lock(OCT_LOCK_SPILL);
    for (const mapping *w = spill.first; w && !ours; w = w->next)
        ours = (uintptr_t)p - (uintptr_t)w->data < w->size && n <= w->size - ((uintptr_t)p - (uintptr_t)w->data);
    oct_unlock(OCT_LOCK_SPILL);
    if (ours && from < to)
        madvise((void *)from, to - from, MADV_DONTNEED); /* a shared mapping: the file has them */
}

void oct_spill_open(const char *beside, size_t keep)
{
    oct_spill_close();
    oct_lock(OCT_LOCK_SPILL);
    spill.on = strlen(beside) < sizeof spill.beside;
    if (spill.on)
        strcpy(spill.beside, beside);
    spill.keep = keep;
    atomic_store(&spill.ends, false);
    oct_unlock(OCT_LOCK_SPILL);
    static const oct_large_blocks blocks = { OCT_SPILL_LEAST, alloc_block, free_block };
    oct_arena_large_blocks(&blocks);
}

#else

void oct_spill_forget(const void *p, size_t n)
{
}

void oct_spill_open(const char *beside, size_t keep)
{
}

void oct_spill_end(void)
{
}

void oct_spill_close(void)
{
}
#endif
