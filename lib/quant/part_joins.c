/* Values whose range is much smaller than that of the values with which a Concat joins them.
 *
 * What a Concat joins shares parameters, so that it copies quantized values. An integer node that reads one of these values besides the Concat, or the result,
 * would find few quantized values left of it: none, where a residual is joined with what hundreds of its size were computed from. Such a value has parameters
 * of its own, and the Concat rounds it once more. If the target needs one scale, the Concat stays float where nearly nothing would be left. */
#include "quant/job.h"

/* The ratio of ranges from which on values are parted: two of eight bits would be lost; and from which on a Concat stays float: four would be. */
enum { FAR = 4, VERY_FAR = 16 };

/* Whether an integer node other than the Concat reads a value. */
static bool is_read_elsewhere(const oct_qjob *j, int value, int concat)
{
    const oct_value *v = &j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++)
        if (v->uses[i].node != concat && oct_is_static(j, v->uses[i].node) && oct_reads_quantized(j, v->uses[i].node, v->uses[i].slot))
            return true;
    return false;
}

/* The smallest range with zero that contains a value, as the table has it; false: it has none. */
static bool range_of(const oct_qjob *j, const oct_calib *c, int value, oct_range *r)
{
    const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, value)) : NULL;
    if (!t || (!t->pinned && oct_stats_finite(&t->stats) == 0))
        return false;
    *r = t->pinned ? (oct_range){ t->pin.lo, t->pin.hi } : (oct_range){ t->stats.min, t->stats.max };
    *r = (oct_range){ r->lo < 0 ? r->lo : 0, r->hi > 0 ? r->hi : 0 };
    return true;
}

/* Whether shared parameters cover `far` times the range of a value. */
static bool is_narrow(const oct_qjob *j, const oct_calib *c, int value, int far)
{
    const oct_quant *q = j->value[oct_params_root(j, value)].quant;
    oct_range r;
    if (!q || !range_of(j, c, value, &r) || !(r.hi > r.lo))
        return false;
    return far * (double)(r.hi - r.lo) < (double)q->scale[0] * (double)((1 << oct_dtype_bits(q->dtype)) - 1);
}

static void part(oct_qjob *j, int concat, uint32_t bit, bool bars, bool *changed)
{
    if (bars)
        j->node[concat].barred = "its inputs have ranges that are too far apart for one scale";
    else
        j->node[concat].parted |= bit;
    *changed = true;
}

void oct_part_joins(oct_qjob *j, const oct_calib *c, bool *changed)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        if (!oct_is_static(j, id) || oct_op_of(j->g, id)->quant != OCT_QUANT_JOIN)
            continue;
        const bool keeps = oct_target_keeps_scale(j->opts.target, n->op), shares = keeps || oct_target_shares_inputs(j->opts.target, n->op);
        const int root = oct_params_root(j, n->out[0]);
        for (int k = 0; k < n->n_in && k < OCT_PARTED_OUTPUT; k++)
            if (oct_params_root(j, n->in[k]) == root && is_read_elsewhere(j, n->in[k], id) && is_narrow(j, c, n->in[k], shares ? VERY_FAR : FAR))
                part(j, id, 1u << k, shares, changed);
        if (!(j->node[id].parted >> OCT_PARTED_OUTPUT) && is_read_elsewhere(j, n->out[0], id) && is_narrow(j, c, n->out[0], keeps ? VERY_FAR : FAR))
            part(j, id, 1u << OCT_PARTED_OUTPUT, keeps, changed);
    }
}
