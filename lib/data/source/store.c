/* lib/data/source/store.c -- samples of a stream, kept by the hashes of their places. */
#include "data/source/store.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void oct_store_open(oct_store *s, size_t n_inputs, size_t room, size_t bound)
{
    *s = (oct_store){ .n_inputs = n_inputs, .room = room, .bound = bound };
}

static void drop(oct_store *s, oct_kept *k)
{
    if (k->item.parts)
        oct_item_free(&k->item, s->n_inputs);
    oct_free(k->item.parts);
    oct_free(k->fault);
}

void oct_store_free(oct_store *s)
{
    for (size_t i = 0; i < s->n; i++)
        drop(s, &s->v[i]);
    oct_free(s->v);
    *s = (oct_store){ 0 };
}

bool oct_store_wants(const oct_store *s, uint64_t hash)
{
    return s->n < s->room || hash < s->v[0].hash;
}

/* ---- the heap ---- */

static void swap(oct_kept *a, oct_kept *b)
{
    oct_kept t = *a;
    *a = *b;
    *b = t;
}

static void push(oct_store *s, const oct_kept *k)
{
    size_t i = s->n++;
    s->v[i] = *k;
    s->bytes += k->bytes;
    for (; i && s->v[(i - 1) / 2].hash < s->v[i].hash; i = (i - 1) / 2)
        swap(&s->v[i], &s->v[(i - 1) / 2]);
}

static void pop(oct_store *s)
{
    s->bytes -= s->v[0].bytes;
    drop(s, &s->v[0]);
    s->v[0] = s->v[--s->n];
    for (size_t i = 0, k; (k = 2 * i + 1) < s->n; i = k) {
        k += k + 1 < s->n && s->v[k + 1].hash > s->v[k].hash;
        if (s->v[i].hash >= s->v[k].hash)
            break;
        swap(&s->v[i], &s->v[k]);
    }
}

static oct_status reserve(oct_store *s, oct_err *err)
{
    if (s->n < s->cap)
        return OCT_OK;
    const size_t cap = s->cap ? 2 * s->cap : 64;
    oct_kept *v = oct_realloc(s->v, s->cap * sizeof *v, cap * sizeof *v);
    if (!v)
        return oct_nomem(err);
    s->v = v;
    s->cap = cap;
    return OCT_OK;
}

oct_status oct_store_add(oct_store *s, uint64_t hash, int64_t index, oct_item *item, const oct_err *fault, oct_err *err)
{
    OCT_TRY(reserve(s, err));
    oct_kept k = { .hash = hash, .index = index, .bytes = sizeof k };
    for (size_t i = 0; i < s->n_inputs; i++) {
        OCT_TRY(oct_part_own(&item->parts[i], err)); /* readers are closed before the samples are used */
        k.bytes += item->parts[i].array.bytes + (item->parts[i].path ? strlen(item->parts[i].path) : 0);
    }
    oct_part *fresh = oct_calloc(s->n_inputs + 1, sizeof *fresh);
    if (!fresh || (fault && !(k.fault = oct_alloc(sizeof *fault)))) {
        oct_free(fresh);
        return oct_nomem(err);
    }
    if (fault)
        *k.fault = *fault;
    k.item = *item;
    *item = (oct_item){ .label = -1, .parts = fresh };
    push(s, &k);
    if (s->n > s->room)
        pop(s);
    while (s->bytes > s->bound && s->n > 1) {
        pop(s);
        s->room = s->n;
    }
    return OCT_OK;
}

/* ---- the end ---- */

static int by_hash(const void *a, const void *b)
{
    const oct_kept *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int by_index(const void *a, const void *b)
{
    const oct_kept *x = a, *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

void oct_store_close(oct_store *s, int64_t n_chosen)
{
    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, by_hash);
    for (size_t i = 0; i < s->n; i++)
        s->v[i].chosen = (int64_t)i < n_chosen;
    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, by_index);
}

oct_status oct_store_view(const oct_store *s, size_t i, oct_item *item, oct_err *err)
{
    const oct_item *from = &s->v[i].item;
    item->label = from->label;
    bool ok = !from->name || (item->name = oct_strdup(from->name));
    for (size_t k = 0; ok && k < s->n_inputs; k++) {
        const oct_part *p = &from->parts[k];
        item->parts[k] = (oct_part){ .kind = p->kind, .array = p->array, .shared = p->shared };
        item->parts[k].array.owned = false;
        ok = !p->path || (item->parts[k].path = oct_strdup(p->path));
    }
    return ok ? OCT_OK : oct_nomem(err);
}
