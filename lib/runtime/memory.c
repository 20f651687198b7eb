/* Memory: lifetimes of buffers, and their places in one arena. */
#include "runtime/plan_int.h"

#include <limits.h>

enum { ALIGN = 64 };

static size_t rounded(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* Lifetimes count on the buffer whose bytes they are. Steps that run in tiles are one. */
static void set_lifetimes(oct_plan *p)
{
    for (size_t i = 0; i < p->n_step; i++) {
        const oct_step *s = &p->step[i]->s;
        const rt_tiles *t = p->step[i]->tiles;
        const int first = t ? (int)rt_tiles_first(t) : (int)i, last = t ? (int)rt_tiles_last(t) : (int)i;
        for (int k = 0; k < s->n_in + s->n_out; k++) {
            const oct_operand *o = s->in[k];
            if (!o)
                continue;
            rt_buffer *b = &p->buffer[rt_root(p, ((const rt_operand *)o)->buffer)];
            if (b->first < 0)
                b->first = first;
            if (b->last < last)
                b->last = last;
        }
    }
    for (size_t i = 0; i < p->g->n_output; i++) {
        rt_buffer *b = &p->buffer[rt_root(p, p->output[i]->buffer)];
        b->last = INT_MAX;
        if (b->first < 0)
            b->first = 0;
    }
}

static bool needs_place(const rt_buffer *b)
{
    return b->alias < 0 && b->input < 0 && !b->constant && b->first >= 0;
}

/* The buffer of input i if only this step, and only at this slot, still needs it; else NULL. */
static rt_buffer *dying(oct_plan *p, int step, int i)
{
    const oct_step *s = &p->step[step]->s;
    const int buffer = s->in[i] ? rt_root(p, ((const rt_operand *)s->in[i])->buffer) : -1;
    if (buffer < 0 || !needs_place(&p->buffer[buffer]) || p->buffer[buffer].last != step)
        return NULL;
    for (int k = 0; k < s->n_in; k++)
        if (k != i && s->in[k] && rt_root(p, ((const rt_operand *)s->in[k])->buffer) == buffer)
            return NULL;
    return &p->buffer[buffer];
}

/* Results use the memory of inputs that are last read by their step, if operators allow it. */
static void overwrite(oct_plan *p)
{
    for (size_t n = 0; n < p->n_step; n++) {
        const oct_step *s = &p->step[n]->s;
        for (int i = 0; i < s->n_in && i < 32 && !p->step[n]->tiles; i++) {
            rt_buffer *from = s->overwrites >> i & 1 ? dying(p, (int)n, i) : NULL;
            rt_buffer *to = from ? &p->buffer[((const rt_operand *)s->out[0])->buffer] : NULL;
            if (!from || !needs_place(to) || to->bytes != from->bytes)
                continue;
            from->last = to->last;
            to->alias = (int)(from - p->buffer);
            break;
        }
    }
}

/* The lowest gap between buffers with an offset that are alive at the same time; placed[n] is sorted by offset. */
static size_t find_gap(const rt_buffer *b, rt_buffer *const *placed, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (b->first > placed[i]->last || placed[i]->first > b->last)
            continue;
        if (placed[i]->offset >= at + rounded(b->bytes))
            break;
        size_t end = placed[i]->offset + rounded(placed[i]->bytes);
        if (end > at)
            at = end;
    }
    return at;
}

/* Keeps a list sorted, by offset or by decreasing size: sorting again for each buffer takes minutes if thousands are
 * alive at once. */
static void insert(rt_buffer **list, size_t n, rt_buffer *b, bool by_offset)
{
    for (; n && (by_offset ? list[n - 1]->offset > b->offset : list[n - 1]->bytes < b->bytes); n--)
        list[n] = list[n - 1];
    list[n] = b;
}

/* The maximum number of bytes alive at a step, from those that begin and end at each step. */
static oct_status find_live_peak(oct_plan *p, oct_err *err)
{
    size_t *change = oct_arena_calloc(p->arena, p->n_step + 1, sizeof *change),
           sum = 0; /* an end is a negative number, modulo 2^64 */
    if (!change)
        return oct_nomem(err);
    for (size_t b = 0; b < p->n_buffer; b++) {
        const rt_buffer *x = &p->buffer[b];
        if (!x->placed || (size_t)x->first >= p->n_step)
            continue;
        change[x->first] += rounded(x->bytes);
        if ((size_t)x->last < p->n_step)
            change[x->last + 1] -= rounded(x->bytes);
    }
    p->live_bytes = 0;
    for (size_t i = 0; i < p->n_step; i++) {
        sum += change[i];
        p->live_bytes = sum > p->live_bytes ? sum : p->live_bytes;
    }
    return OCT_OK;
}

/* Largest first: the usual greedy rule; small ones fill the gaps. */
oct_status rt_place(oct_plan *p, oct_err *err)
{
    rt_buffer **order = oct_arena_calloc(p->arena, p->n_buffer + 1, sizeof *order);
    rt_buffer **placed = oct_arena_calloc(p->arena, p->n_buffer + 1, sizeof *placed);
    size_t n = 0, end;
    if (!order || !placed)
        return oct_nomem(err);
    set_lifetimes(p);
    overwrite(p);
    for (size_t i = 0; i < p->n_buffer; i++)
        if (needs_place(&p->buffer[i]))
            insert(order, n++, &p->buffer[i], false);
    for (size_t i = 0; i < n; i++) {
        rt_buffer *b = order[i];
        b->offset = find_gap(b, placed, i);
        b->placed = true;
        insert(placed, i, b, true);
        if (b->bytes > SIZE_MAX / 4 || !oct_add_size(b->offset, rounded(b->bytes), &end))
            return oct_fail(err, OCT_ENOMEM, "intermediate tensors are larger than memory can be");
        p->memory_bytes = end > p->memory_bytes ? end : p->memory_bytes;
    }
    return find_live_peak(p, err);
}
