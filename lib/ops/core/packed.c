#include "ops/core/packed.h"

#include "base/fork.h"

#include <string.h>

/* Smaller ones are not worth a comparison. */
enum { LEAST = 64 << 10, BUCKETS = 256 };

/* Stands before the bytes. */
typedef struct entry {
    struct entry *next; /* of those in its bucket */
    uint64_t hash;
    size_t size;
    int refs;
} entry;

enum { HEAD = (sizeof(entry) + 63) / 64 * 64 };

/* In the plan's arena. */
typedef struct oct_packed_ref {
    struct oct_packed_ref *next;
    entry *e;
    bool known; /* the entry is in the table */
} oct_packed_ref;

static entry *table[BUCKETS];

static void *bytes_of(entry *e)
{
    return (char *)e + HEAD;
}

/* Four sums side by side; equality is what decides. */
static uint64_t hash_of(const void *p, size_t size)
{
    const char *b = p;
    uint64_t h[4] = { 1, 2, 3, size }, w[4];
    for (size_t i = 0; i + sizeof w <= size; i += sizeof w) {
        memcpy(w, b + i, sizeof w);
        for (int k = 0; k < 4; k++)
            h[k] = ((h[k] ^ w[k]) * 0x9e3779b97f4a7c15u) ^ (h[k] >> 29);
    }
    return h[0] ^ h[1] << 17 ^ h[1] >> 47 ^ h[2] << 31 ^ h[2] >> 33 ^ h[3] << 47 ^ h[3] >> 17;
}

void *oct_packed_new(const oct_prep *p, size_t size)
{
    size_t all;
    if (!p->packed || size < LEAST)
        return oct_arena_aligned(p->arena, size, 64);
    oct_packed_ref *r = oct_arena_calloc(p->arena, 1, sizeof *r);
    entry *e = r && oct_add_size(size, HEAD, &all) ? oct_alloc(all) : NULL;
    if (!e)
        return NULL;
    *e = (entry){ .size = size, .refs = 1 };
    *r = (oct_packed_ref){ .next = p->packed->first, .e = e };
    p->packed->first = r;
    p->packed->bytes += size;
    return bytes_of(e);
}

/* Returns an entry with the same bytes, with one more reference; otherwise adds e to the table. */
static entry *equal_to(entry *e)
{
    entry **bucket = &table[e->hash % BUCKETS];
    for (entry *k = *bucket; k; k = k->next)
        if (k->hash == e->hash && k->size == e->size && memcmp(bytes_of(k), bytes_of(e), e->size) == 0) {
            k->refs++;
            return k;
        }
    e->next = *bucket;
    *bucket = e;
    return e;
}

void *oct_packed_done(const oct_prep *p, void *packed, size_t size)
{
    oct_packed_ref *r = p->packed && size >= LEAST ? p->packed->first : NULL;
    while (r && bytes_of(r->e) != packed)
        r = r->next;
    if (!r)
        return packed;
    entry *own = r->e;
    own->hash = hash_of(packed, size);
    oct_lock(OCT_LOCK_WEIGHTS);
    r->e = equal_to(own);
    r->known = true;
    oct_unlock(OCT_LOCK_WEIGHTS);
    if (r->e != own)
        oct_free(own);
    return bytes_of(r->e);
}

/* Whether that was the last one to hold it. */
static bool drop(entry *e, bool known)
{
    if (--e->refs)
        return false;
    entry **at = &table[e->hash % BUCKETS];
    while (known && *at != e)
        at = &(*at)->next;
    if (known)
        *at = e->next;
    return true;
}

void oct_packed_release(oct_packed_refs *refs)
{
    for (oct_packed_ref *r = refs->first; r; r = r->next) {
        oct_lock(OCT_LOCK_WEIGHTS);
        const bool last = drop(r->e, r->known);
        oct_unlock(OCT_LOCK_WEIGHTS);
        if (last)
            oct_free(r->e);
    }
    *refs = (oct_packed_refs){ 0 };
}
