/* Outputs kept by sample: a hash table with lists. */
#include "eval/parts/kept_outputs.h"

#include "data/source/choice.h"

#include <string.h>

enum { LISTS = 1024 };

struct oct_kept_outputs {
    oct_arena *arena; /* of the samples; NULL: there are none */
    oct_kept_sample *list[LISTS];
    size_t limit, bytes;
    oct_kept_count count;
};

oct_kept_outputs *oct_kept_create(size_t limit)
{
    oct_kept_outputs *k = oct_calloc(1, sizeof *k);
    if (k)
        k->limit = limit;
    return k;
}

void oct_kept_forget(oct_kept_outputs *k)
{
    oct_arena_destroy(k->arena);
    *k = (oct_kept_outputs){ .limit = k->limit, .count = k->count };
}

void oct_kept_destroy(oct_kept_outputs *k)
{
    if (k)
        oct_arena_destroy(k->arena);
    oct_free(k);
}

static size_t list_of(int64_t index)
{
    return (size_t)(oct_place_hash((uint64_t)index) % LISTS);
}

const oct_kept_sample *oct_kept_find(const oct_kept_outputs *k, int64_t index)
{
    const oct_kept_sample *x = k->list[list_of(index)];
    while (x && x->index != index)
        x = x->next;
    return x;
}

/* Whether there is room for the sample, which is then counted. */
static bool take_room(oct_kept_outputs *k, const oct_operand *operand, size_t n)
{
    size_t bytes = sizeof(oct_kept_sample), more;
    for (size_t i = 0; i < n; i++)
        if (!oct_mul_size((size_t)operand[i].count, sizeof(float), &more) ||
            !oct_add_size(bytes, more + sizeof *operand + sizeof(float *), &bytes))
            return false;
    if (bytes > k->limit - k->bytes)
        return false;
    k->bytes += bytes;
    return true;
}

oct_status oct_kept_add(oct_kept_outputs *k, int64_t index, const oct_operand *operand, float *const *v, size_t n,
                        oct_err *err)
{
    oct_kept_sample **list = &k->list[list_of(index)], *x;
    if (!take_room(k, operand, n))
        return OCT_OK;
    if ((!k->arena && !(k->arena = oct_arena_create())) || !(x = oct_arena_calloc(k->arena, 1, sizeof *x)) ||
        !(x->operand = oct_arena_memdup(k->arena, operand, n * sizeof *operand)) ||
        !(x->v = oct_arena_calloc(k->arena, n, sizeof *x->v)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        x->operand[i].data = NULL;
        x->operand[i].q = NULL;
        if (!(x->v[i] = oct_arena_memdup(k->arena, v[i], (size_t)operand[i].count * sizeof(float))))
            return oct_nomem(err);
    }
    x->index = index;
    x->n = n;
    x->next = *list;
    *list = x;
    return OCT_OK;
}

oct_kept_count *oct_kept_counted(oct_kept_outputs *k)
{
    return &k->count;
}
