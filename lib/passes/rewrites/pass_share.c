/* Pass: constants with the same numbers become one. They occur in layers with shared weights after which the same
 * normalization was fused, and some exporters write them. */
#include "passes/pass.h"

#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LEAST: bytes. PROBES: elements that are compared first. MOST_COMPARED: with how many others all elements are
 * compared */
enum { LEAST = 4096, PROBES = 16, MOST_COMPARED = 16 };

typedef struct entry {
    const oct_tensor *t;
    uint64_t hash; /* of the type, the dimensions and a few elements */
    int value;
} entry;

/* The bytes of a constant; those of 16-bit floats if its numbers wait. */
static const void *bytes_of(const oct_tensor *t)
{
    return t->data ? t->data : t->narrow;
}

static size_t n_bytes(const oct_tensor *t)
{
    return t->data ? t->bytes : (size_t)t->count * sizeof(uint16_t);
}

static uint64_t hash_of(const oct_tensor *t)
{
    const uint8_t *data = bytes_of(t);
    uint64_t h = oct_hash(OCT_HASH_INIT, &t->dtype, sizeof t->dtype);
    h = oct_hash(h, t->dims, (size_t)t->rank * sizeof *t->dims);
    for (size_t i = 0; i < PROBES; i++)
        h = oct_hash(h, data + i * (n_bytes(t) / PROBES), sizeof(uint64_t));
    oct_map_forget(data, n_bytes(t)); /* the system maps megabytes around each of them */
    return h;
}

static int by_hash(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
                              : (x->value > y->value) - (x->value < y->value);
}

static bool same_tensor(const oct_tensor *a, const oct_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0 && !a->data == !b->data &&
           (a->data || a->narrow_type == b->narrow_type) &&
           (bytes_of(a) == bytes_of(b) || memcmp(bytes_of(a), bytes_of(b), n_bytes(a)) == 0);
}

static bool is_shareable(const oct_value *v)
{
    const oct_tensor *t = v->constant;
    return !v->dead && t && bytes_of(t) && t->rank > 1 && t->dtype != OCT_STRING && t->bytes >= LEAST && v->outer < 0 &&
           !v->is_input && !v->is_output && !v->quant && v->n_uses && !oct_value_is_captured(v);
}

/* Large constants are read as a whole only here and when they are rounded. */
static bool is_same(const oct_tensor *a, const oct_tensor *b)
{
    const bool same = same_tensor(a, b);
    oct_map_forget(bytes_of(a), n_bytes(a));
    oct_map_forget(bytes_of(b), n_bytes(b));
    return same;
}

/* The first equal constant before i in the sorted list. Different constants nearly always have different hashes. */
static const entry *first_same(const entry *list, size_t i)
{
    const entry *found = NULL;
    for (size_t k = i; k-- > 0 && i - k <= MOST_COMPARED && list[k].hash == list[i].hash;)
        if (list[k].t && is_same(list[k].t, list[i].t))
            found = &list[k];
    return found;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    entry *list = oct_calloc(g->n_value + 1, sizeof *list);
    oct_status s = OCT_OK;
    size_t n = 0, gone = 0;
    char text[64];
    if (!list)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++)
        if (is_shareable(&g->value[v]))
            list[n++] = (entry){ g->value[v].constant, hash_of(g->value[v].constant), (int)v };
    qsort(list, n, sizeof *list, by_hash);
    for (size_t i = 1; i < n && s == OCT_OK; i++) {
        const entry *same = first_same(list, i);
        if (!same)
            continue;
        s = oct_graph_replace_uses(g, list[i].value, same->value, err);
        list[i].t = NULL;
        gone++;
    }
    snprintf(text, sizeof text, "%zu constant%s", gone, gone > 1 ? "s" : "");
    if (gone)
        oct_pass_note(log, self, text, "");
    oct_free(list);
    return s;
}

const oct_pass oct_pass_share = { "share", "store constants of the same numbers once", run };
