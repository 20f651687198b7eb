/* Sums: Add behind a product becomes part of the product's step, which adds as it stores (oct_step.residual) and then
 * stands where the addition stood. The result has the same bits: the product's chain ends, the sum is rounded, then
 * clamped. */
#include "runtime/lower_int.h"

#include "passes/match.h"

#include <string.h>

/* Real numbers in float32. */
static bool is_real(const oct_operand *t)
{
    return t && t->dtype == OCT_F32 && !t->q;
}

/* Whether a step is a product whose only reader is the sum, and which can add the other term. */
static bool is_free(const rt_step *st)
{
    return st->s.op->fuses_sum && st->s.n_out == 1 && is_real(st->s.in[0]) && !st->s.residual &&
           !st->s.epilogue.clamp && st->tap[0] == OCT_NO_TAP;
}

/* The step that makes an operand; -1: none does. */
static int maker_of(const oct_plan *p, const oct_operand *t)
{
    for (size_t i = p->n_step; i-- > 0;)
        if (p->step[i]->s.out[0] == t)
            return (int)i;
    return -1;
}

/* Step `at` leaves; st becomes it, and adds `other`. */
static oct_status join(oct_plan *p, int at, rt_step *st, oct_operand *other, oct_err *err)
{
    const rt_step *product = p->step[at];
    const int slot = product->s.op->max_in;
    rt_step *sum = rt_new_step(p, product->s.op, product->s.node, slot + 1, 1);
    if (!sum)
        return oct_nomem(err);
    memcpy(sum->s.in, product->s.in, (size_t)product->s.n_in * sizeof *sum->s.in);
    sum->s.in[slot] = other;
    sum->s.residual = slot;
    *st = *sum;
    p->n_step--;
    memmove(p->step + at, p->step + at + 1, (p->n_step - (size_t)at) * sizeof(rt_step *));
    return OCT_OK;
}

oct_status rt_join_sum(rt_lowering *l, const oct_node *n, rt_step *st, oct_err *err)
{
    oct_operand **in = st->s.in;
    int best = -1, product = 0;
    if (l->p->opts.no_passes || n->n_in != 2 || !is_real(in[0]) || !is_real(in[1]) ||
        !oct_same_dims(l->g, n->in[0], n->in[1]))
        return OCT_OK;
    /* If both can, the later one, whose output is still in the caches. */
    for (int k = 0; k < 2; k++) {
        const int at = oct_value_used_once(&l->g->value[n->in[k]]) && !in[1 - k]->constant ? maker_of(l->p, in[k]) : -1;
        if (at > best && is_free(l->p->step[at])) {
            best = at;
            product = k;
        }
    }
    return best < 0 ? OCT_OK : join(l->p, best, st, in[1 - product], err);
}
