/* Sums: Add behind a product becomes part of the product's step, which adds as it stores (oct_step.residual). The result has the
 * same bits: the product's chain ends, the sum is rounded, then clamped. */
#include "runtime/plan_int.h"

#include <string.h>

/* By buffer: the step that writes it (-1: none does), and how often it is read, outputs included. */
typedef struct uses {
    int *maker, *readers;
} uses;

static int buffer_of(const oct_operand *t)
{
    return ((const rt_operand *)t)->buffer;
}

static void find_uses(const oct_plan *p, uses *u)
{
    for (size_t b = 0; b < p->n_buffer; b++)
        u->maker[b] = -1;
    for (size_t i = 0; i < p->n_step; i++) {
        const oct_step *s = &p->step[i].s;
        for (int k = 0; k < s->n_in; k++)
            if (s->in[k])
                u->readers[buffer_of(s->in[k])]++;
        for (int k = 0; k < s->n_out; k++)
            if (s->out[k])
                u->maker[buffer_of(s->out[k])] = (int)i;
    }
    for (size_t i = 0; i < p->n_output; i++)
        u->readers[p->output[i]->buffer]++;
}

static bool same_shape(const oct_operand *a, const oct_operand *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* Real numbers in float32. */
static bool is_real(const oct_operand *t)
{
    return t && t->dtype == OCT_F32 && !t->q;
}

static bool is_sum(const oct_step *s)
{
    return s->op->adds && s->n_in == 2 && is_real(s->in[0]) &&
           is_real(s->in[1]) && is_real(s->out[0]) && same_shape(s->in[0], s->in[1]);
}

/* Whether a step is a product that may take in the sum that alone reads it. */
static bool is_free(const rt_step *st, int readers)
{
    return st->s.op->fuses_sum && st->s.n_out == 1 && is_real(st->s.in[0]) && !st->s.residual && !st->s.epilogue.clamp && !st->tap[0] &&
           readers == 1;
}

/* The product that sum i may become part of: the later one where both could, whose output is still in the caches; -1: none. */
static int product_of(const oct_plan *p, const uses *u, size_t i)
{
    const oct_step *s = &p->step[i].s;
    int best = -1;
    for (int k = 0; k < 2; k++) {
        const int b = buffer_of(s->in[k]), maker = u->maker[b];
        if (maker > best && !s->in[1 - k]->constant && is_free(&p->step[maker], u->readers[b]))
            best = maker;
    }
    return best;
}

/* The sum's step becomes that of the product, under the product's name, with the sum's output, clamp and tap. */
static oct_status join(oct_plan *p, int product, size_t sum, oct_err *err)
{
    rt_step *to = &p->step[sum], st = p->step[product];
    const int slot = st.s.op->max_in;
    oct_operand **in = oct_arena_calloc(p->arena, (size_t)slot + 1, sizeof *in);
    if (!in)
        return oct_nomem(err);
    memcpy(in, st.s.in, (size_t)st.s.n_in * sizeof *in);
    in[slot] = to->s.in[buffer_of(to->s.in[0]) == buffer_of(st.s.out[0])];
    st.s.in = in;
    st.s.n_in = slot + 1;
    st.s.residual = slot;
    st.s.out = to->s.out;
    st.s.epilogue = to->s.epilogue;
    st.tap = to->tap;
    *to = st;
    p->step[product].s.op = NULL;
    return OCT_OK;
}

static void drop_joined(oct_plan *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n_step; i++)
        if (p->step[i].s.op)
            p->step[kept++] = p->step[i];
    p->n_step = kept;
}

static oct_status join_all(oct_plan *p, uses *u, oct_err *err)
{
    find_uses(p, u);
    for (size_t i = 0; i < p->n_step; i++) {
        const int product = is_sum(&p->step[i].s) ? product_of(p, u, i) : -1;
        if (product >= 0)
            OCT_TRY(join(p, product, i, err));
    }
    drop_joined(p);
    return OCT_OK;
}

oct_status rt_join_sums(oct_plan *p, oct_err *err)
{
    uses u = { oct_calloc(p->n_buffer + 1, sizeof(int)), oct_calloc(p->n_buffer + 1, sizeof(int)) };
    oct_status s = u.maker && u.readers ? join_all(p, &u, err) : oct_nomem(err);
    oct_free(u.maker);
    oct_free(u.readers);
    return s;
}
