/* Parts: what a convolution makes for a Concat of channels alone is written where it lies in there, a position at a
 * time (oct_operand.pitch), and is not copied. */
#include "runtime/plan_int.h"

#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/q8.h"

/* By buffer: the step that makes it, or -1, and how many times it is read, as it is or by another name. */
typedef struct uses {
    int maker, reads;
} uses;

static int buffer_of(const oct_operand *t)
{
    return ((const rt_operand *)t)->buffer;
}

static uses *count_uses(const oct_plan *p)
{
    uses *u = oct_arena_calloc(p->arena, p->n_buffer + 1, sizeof *u);
    for (size_t b = 0; u && b < p->n_buffer; b++)
        u[b].maker = -1;
    for (size_t b = 0; u && b < p->n_buffer; b++)
        if (p->buffer[b].alias >= 0)
            u[p->buffer[b].alias].reads++;
    for (size_t i = 0; u && i < p->n_step; i++) {
        const oct_step *s = &p->step[i]->s;
        for (int k = 0; k < s->n_in; k++)
            if (s->in[k])
                u[buffer_of(s->in[k])].reads++;
        for (int k = 0; k < s->n_out; k++)
            if (s->out[k])
                u[buffer_of(s->out[k])].maker = (int)i;
    }
    for (size_t i = 0; u && i < p->g->n_output; i++)
        u[p->output[i]->buffer].reads++;
    return u;
}

/* Whether a step joins channels that lie beside each other. */
static bool joins_channels(const oct_step *s)
{
    const oct_operand *y = s->op && s->op->joins ? s->out[0] : NULL;
    int axis;
    return y && y->rank >= 3 && y->count && y->layout == OCT_LAYOUT_CHANNELS_LAST &&
           oct_axis(oct_node_int(s->node, "axis", 0), y->rank, &axis, NULL) == OCT_OK && axis == 1;
}

/* Whether input t of a Concat, which writes y, can be written into y directly: it has no other reader, and elements
 * like those of y. */
static bool may_lie_in(const oct_plan *p, const uses *u, const oct_operand *t, const oct_operand *y)
{
    const uses *of = &u[buffer_of(t)];
    const rt_step *maker = of->maker >= 0 && of->reads == 1 ? p->step[of->maker] : NULL;
    return maker && maker->s.op && maker->s.op->pitched && !maker->alias && maker->s.out[0] == t &&
           maker->tap[0] == OCT_NO_TAP && p->buffer[buffer_of(t)].alias < 0 && t->layout == y->layout &&
           t->rank == y->rank && t->count &&
           (t->q || y->q ? oct_q8(t) && oct_q8(y) && oct_q8_same(t, y) : t->dtype == OCT_F32 && y->dtype == OCT_F32);
}

/* From the last on: what joins may be a part itself. */
oct_status rt_join_parts(oct_plan *p, oct_err *err)
{
    const uses *u = p->opts.no_passes ? NULL : count_uses(p);
    if (!u)
        return p->opts.no_passes ? OCT_OK : oct_nomem(err);
    for (size_t i = p->n_step; i-- > 0;) {
        const oct_step *s = &p->step[i]->s;
        if (!joins_channels(s))
            continue;
        const oct_operand *y = s->out[0];
        size_t at = 0;
        for (int k = 0; k < s->n_in && s->in[k]; k++) {
            oct_operand *t = s->in[k];
            const bool fits = t->rank == y->rank && oct_elem_size(t->dtype) == oct_elem_size(y->dtype);
            if (!fits)
                break; /* it will not be prepared */
            if (s->n_in > 1 && may_lie_in(p, u, t, y)) {
                t->pitch = y->pitch ? y->pitch : y->dims[1];
                p->buffer[buffer_of(t)].alias = buffer_of(y);
                p->buffer[buffer_of(t)].at = at;
            }
            at += (size_t)t->dims[1] * oct_elem_size(t->dtype);
        }
    }
    return OCT_OK;
}
