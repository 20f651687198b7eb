/* Chooses the layers whose weights are rounded on their inputs, and the form of the results. */
#include "quant/rounding/rounding_int.h"

#include "quant/convert/convert_int.h"
#include "quant/job/placed.h"
#include "quant/rounding/ldlq.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/saturate.h"
#include "quant/weights/weights.h"

#include <string.h>

enum { MOST_DEPTH = 2304, LEAST_ROWS = 1024, DEPTHWISE_ROWS = 512 };

static bool describe_member(const rounder *r, int id, bool kernel, rmember *m)
{
    const oct_graph *g = r->j->g;
    const oct_node *n = &g->node[id];
    *m = (rmember){ .node = id, .tap = oct_rounder_tap(r, n->in[0]), .axis = oct_channel_axis(oct_op_of(g, id), n) };
    return m->tap != OCT_NO_TAP &&
           (!kernel || oct_window_of_weights(n, g->value[n->in[1]].shape, &m->window, NULL) == OCT_OK);
}

/* Layers that share their weights are one entry. If they have clamps of their own, their outputs are not learned
 * together. x->member: room for all of them. */
static bool describe(const rounder *r, int id, rlayer *x)
{
    const oct_graph *g = r->j->g;
    if (!oct_is_product(r->j, id) || !oct_sim_rounds(r->j, id) || !oct_layer_layout(g, id, &x->l) ||
        x->l.matrices != 1 || oct_weights_next(r->j, id, -1) != id)
        return false;
    x->node = id;
    x->kernel = oct_op_of(g, id)->weights.kernel;
    x->depth = x->l.ins / x->l.groups * x->l.taps;
    x->outs = x->l.outs / x->l.groups;
    x->rows = (x->l.groups > 1 ? DEPTHWISE_ROWS : x->depth < LEAST_ROWS ? LEAST_ROWS : x->depth) * (r->learns ? 2 : 1);
    if (x->kernel && x->l.out_axis != 0)
        return false; /* a transposed convolution reads its inputs in another way */
    size_t n = 0;
    for (int of = -1; (of = oct_weights_next(r->j, id, of)) >= 0; n++)
        if (!describe_member(r, of, x->kernel, &x->member[n]))
            return false;
    x->n_member = n;
    return x->depth > 1 && x->depth <= MOST_DEPTH && !(r->learns && x->n_member > 1);
}

/* Sets the form of the result: type, scales and bounds. */
static void set_form(const rounder *r, rlayer *x)
{
    const qweights *q = r->j->constants[x->node].weights[0];
    x->limit = q->limit;
    x->scales = q->quant.n;
    x->to = (rresult){ .weights = (size_t)q->qvals->count, .scales = (size_t)q->quant.n };
    /* Groups that share one scale are rounded one after the other. */
    x->sums = oct_target_rules_of(r->j->opts.target)->pair_sums;
    x->bound = oct_pairs_need(r->j, x->node) != OCT_PAIRS_ANY && oct_adds_pairs(x->sums, &x->l) &&
               (x->scales > 1 || x->l.groups == 1);
    x->to.bound = x->bound && !r->learns; /* learning keeps safe pairs safe */
}

/* Inserts in the order of the graph, except that layers that read the same value are neighbours, so that it is shown
 * once. */
static void insert(rounder *r, const rlayer *x)
{
    size_t at = r->n;
    for (size_t i = 0; i < r->n; i++)
        if (r->layer[i].member->tap == x->member->tap)
            at = i + 1;
    memmove(r->layer + at + 1, r->layer + at, (r->n++ - at) * sizeof *r->layer);
    r->layer[at] = *x;
}

oct_status oct_rounder_list(rounder *r, oct_err *err)
{
    r->n = 0;
    r->layer = oct_arena_calloc(r->a, r->j->n_layer + 1, sizeof *r->layer);
    r->wanted = oct_arena_calloc(r->a, r->j->n_values + 1, sizeof *r->wanted);
    r->queue = oct_arena_calloc(r->a, r->j->n_layer + 1, sizeof *r->queue);
    if (!r->layer || !r->wanted || !r->queue)
        return oct_nomem(err);
    for (size_t i = 0; i < r->j->n_layer; i++) {
        rlayer x = { .node = -1 };
        size_t most = 1;
        for (int of = -1; (of = oct_weights_next(r->j, r->j->layer[i], of)) >= 0;)
            most++;
        if (!(x.member = oct_arena_calloc(r->a, most, sizeof *x.member)))
            return oct_nomem(err);
        if (!describe(r, r->j->layer[i], &x))
            continue;
        set_form(r, &x);
        insert(r, &x);
    }
    return OCT_OK;
}
