#include "data/text/interned.h"

#include "base/io.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

struct oct_interned {
    pthread_mutex_t lock;
    oct_arena *arena; /* the texts */
    oct_str *slot;    /* open addressing; s NULL: empty */
    size_t n, size;   /* texts; slots, a power of two */
    size_t bytes;
};

oct_status oct_interned_create(oct_interned **out, oct_err *err)
{
    oct_interned *t = oct_calloc(1, sizeof *t);
    *out = NULL;
    if (!t || !(t->arena = oct_arena_create())) {
        oct_free(t);
        return oct_nomem(err);
    }
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return OCT_OK;
}

void oct_interned_destroy(oct_interned *t)
{
    if (!t)
        return;
    pthread_mutex_destroy(&t->lock);
    oct_arena_destroy(t->arena);
    oct_free(t->slot);
    oct_free(t);
}

/* The slot of a text, or the empty one where it belongs. */
static oct_str *slot_of(oct_str *slot, size_t size, const char *s, size_t n)
{
    size_t at = (size_t)oct_hash(OCT_HASH_INIT, s, n) & (size - 1);
    while (slot[at].s && !(slot[at].n == n && memcmp(slot[at].s, s, n) == 0))
        at = (at + 1) & (size - 1);
    return &slot[at];
}

/* At most half of the slots are used. */
static oct_status make_room(oct_interned *t, oct_err *err)
{
    if (2 * (t->n + 1) <= t->size)
        return OCT_OK;
    const size_t size = t->size ? 2 * t->size : 64;
    oct_str *slot = oct_calloc(size, sizeof *slot);
    if (!slot)
        return oct_nomem(err);
    for (size_t i = 0; i < t->size; i++)
        if (t->slot[i].s)
            *slot_of(slot, size, t->slot[i].s, t->slot[i].n) = t->slot[i];
    oct_free(t->slot);
    t->slot = slot;
    t->size = size;
    return OCT_OK;
}

static oct_status find(oct_interned *t, const char *s, size_t n, oct_str *kept, oct_err *err)
{
    OCT_TRY(make_room(t, err));
    oct_str *at = slot_of(t->slot, t->size, s, n);
    if (!at->s) {
        const size_t more = n + 1 + 4 * sizeof *at;
        if (n > OCT_INTERNED_BYTES || more > OCT_INTERNED_BYTES - t->bytes)
            return oct_fail(err, OCT_EUNSUPPORTED, "the samples have more than %d MB of different texts",
                            OCT_INTERNED_BYTES >> 20);
        char *text = oct_arena_alloc(t->arena, n + 1);
        if (!text)
            return oct_nomem(err);
        memcpy(text, s, n);
        text[n] = 0;
        *at = (oct_str){ text, n };
        t->bytes += more;
        t->n++;
    }
    *kept = *at;
    return OCT_OK;
}

oct_status oct_intern(oct_interned *t, const char *s, size_t n, oct_str *kept, oct_err *err)
{
    if (!t)
        return oct_fail(err, OCT_EUNSUPPORTED, "samples of texts are not taken here");
    pthread_mutex_lock(&t->lock);
    const oct_status st = find(t, n ? s : "", n, kept, err);
    pthread_mutex_unlock(&t->lock);
    return st;
}
