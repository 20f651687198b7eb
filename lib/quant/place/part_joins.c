/* Values whose range is much smaller than that of the values with which a Concat joins them.
 *
 * What a Concat joins shares parameters, so that it copies quantized values. An integer node that reads one of these
 * values besides the Concat, or the result, would find few quantized values left of it. So such a value, together with
 * those that only move its elements, has parameters of its own, and the Concat rounds it once more. If the target needs
 * one scale, the Concat stays float where nearly nothing would be left.
 *
 * Where the result leaves the integers, as an output of the model or to a float operator that picks among its elements,
 * each part counts for itself: scores beside boxes in pixels would all be the same number. There a Concat never rounds
 * a part to few numbers: it stays float, and so does what moves its elements behind it. The same holds of a product,
 * quotient or sum with a constant whose elements give parts of the result very different sizes. */
#include "quant/job/placed.h"
#include "quant/place/place.h"

#include <math.h>

/* The ratio of ranges from which on values are parted: two of eight bits would be lost; and from which on a Concat
 * stays float: four would be. */
enum { FAR = 4, VERY_FAR = 16 };
enum {
    LEAST_CODES = 32
}; /* how many quantized values the range of a part has at least, where the result leaves the integers */

/* Values that share parameters because their elements are moved, by the index of oct_moved_root. */
typedef struct group {
    oct_range range; /* the smallest with zero that contains all of them, as the table has it */
    bool known;      /* the table has it */
    int reader[2];   /* integer nodes that compute on them, at most two; -1: none */
} group;

static bool range_of(const oct_qjob *j, const oct_calib *c, int value, oct_range *r)
{
    const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, value)) : NULL;
    if (!t || (!t->pinned && oct_stats_finite(&t->stats) == 0))
        return false;
    *r = t->pinned ? (oct_range){ t->pin.lo, t->pin.hi } : (oct_range){ t->stats.min, t->stats.max };
    *r = (oct_range){ r->lo < 0 ? r->lo : 0, r->hi > 0 ? r->hi : 0 };
    return true;
}

static void add_readers(const oct_qjob *j, int value, group *to)
{
    const oct_value *v = &j->g->value[value];
    for (size_t i = 0; i < v->n_uses; i++) {
        const int id = v->uses[i].node;
        if (!oct_is_static(j, id) || !oct_reads_quantized(j, id, v->uses[i].slot) ||
            oct_op_of(j->g, id)->quant == OCT_QUANT_SAME)
            continue;
        if (to->reader[0] < 0)
            to->reader[0] = id;
        else if (to->reader[0] != id)
            to->reader[1] = id;
    }
}

static void find_groups(const oct_qjob *j, const oct_calib *c, group *of)
{
    for (size_t v = 0; v < j->n_values; v++)
        of[v] = (group){ .reader = { -1, -1 } };
    for (size_t v = 0; v < j->n_values; v++) {
        group *to = &of[oct_moved_root(j, (int)v)];
        oct_range r;
        if (!oct_is_wanted(j, v))
            continue;
        add_readers(j, (int)v, to);
        if (range_of(j, c, (int)v, &r)) {
            to->range =
                (oct_range){ r.lo < to->range.lo ? r.lo : to->range.lo, r.hi > to->range.hi ? r.hi : to->range.hi };
            to->known = true;
        }
    }
}

static bool is_read_elsewhere(const group *of, int concat)
{
    return (of->reader[0] >= 0 && of->reader[0] != concat) || of->reader[1] >= 0;
}

/* Whether parameters cover `far` times a range. */
static bool is_narrow(const oct_quant *q, oct_range r, int far)
{
    return q && r.hi > r.lo &&
           far * (double)(r.hi - r.lo) < (double)q->scale[0] * (double)((1 << oct_dtype_bits(q->dtype)) - 1);
}

static bool is_lost(const oct_qjob *j, const group *of, int value, int concat)
{
    const group *g = &of[oct_moved_root(j, value)];
    return g->known && is_read_elsewhere(g, concat) &&
           is_narrow(oct_quant_of(j, oct_params_root(j, value)), g->range, FAR);
}

/* The same of a value alone, where what the target needs makes it share parameters with the whole. */
static bool is_lost_alone(const oct_qjob *j, const oct_calib *c, int value, int concat)
{
    group own = { .reader = { -1, -1 } };
    add_readers(j, value, &own);
    return is_read_elsewhere(&own, concat) && range_of(j, c, value, &own.range) &&
           is_narrow(oct_quant_of(j, oct_params_root(j, value)), own.range, VERY_FAR);
}

static oct_status part_slot(oct_qjob *j, int concat, const group *of, int value, int slot, bool *changed, oct_err *err)
{
    const oct_constraint apart = { .kind = OCT_CONSTRAINT_OWN_PARAMS,
                                   .from = OCT_FROM_JOINS,
                                   .node = concat,
                                   .slot = slot,
                                   .why = "it would lose too much" };
    if (!is_lost(j, of, value, concat) || oct_slot_constrained(&j->constraints, concat, apart.kind, slot))
        return OCT_OK;
    *changed = true;
    return oct_constrain(&j->constraints, &apart, err);
}

static oct_status part(oct_qjob *j, int concat, const group *of, bool *changed, oct_err *err)
{
    const oct_node *n = &j->g->node[concat];
    for (int k = 0; k < n->n_in && k < OCT_SLOT_OUTPUT; k++)
        OCT_TRY(part_slot(j, concat, of, n->in[k], k, changed, err));
    return part_slot(j, concat, of, n->out[0], OCT_SLOT_OUTPUT, changed, err);
}

static oct_status keep_whole(oct_qjob *j, int concat, const oct_calib *c, bool *changed, oct_err *err)
{
    const oct_node *n = &j->g->node[concat];
    bool lost = oct_target_op_rules_of(j->opts.target, n->op)->same_scale && is_lost_alone(j, c, n->out[0], concat);
    for (int k = 0; k < n->n_in; k++)
        lost |= is_lost_alone(j, c, n->in[k], concat);
    if (!lost || oct_kept_float(&j->constraints, concat))
        return OCT_OK;
    *changed = true;
    return oct_keep_float(&j->constraints, concat, OCT_FROM_JOINS,
                          "its inputs have ranges that are too far apart for one scale", err);
}

/* ---- results that leave the integers ---- */

static bool divides(const oct_op *op)
{
    return op->grows == OCT_GROWS_BY_DIVISOR;
}

/* The input of a product, quotient or sum that is a constant, or -1. */
static int constant_operand(const oct_qjob *j, int id)
{
    const oct_node *n = &j->g->node[id];
    const oct_op *op = oct_op_of(j->g, id);
    if (!op || n->n_in != 2 || !(op->adds || op->multiplies || divides(op)))
        return -1;
    return !divides(op) && j->g->value[n->in[0]].constant ? 0 : j->g->value[n->in[1]].constant ? 1 : -1;
}

/* Whether each element of a node's result is made of one element that it reads: it moves or joins them, or computes
 * with a constant. */
static bool keeps_parts(const oct_qjob *j, int id)
{
    const oct_op *op = oct_op_of(j->g, id);
    return op && (op->quant == OCT_QUANT_SAME || op->quant == OCT_QUANT_JOIN || constant_operand(j, id) >= 0);
}

/* Whether a node reads real numbers one by one: it computes in float, and is no layer, in whose sums parts of small
 * range matter less. */
static bool picks_reals(const oct_qjob *j, int id)
{
    const bool quantized =
        id >= (int)j->n_nodes || oct_is_static(j, id) || oct_is_absorbed(j, id) || oct_rounds_inputs(j, id);
    return !quantized && !oct_op_is_layer(oct_op_of(j->g, id));
}

/* Marks the values that leave the integers, directly or through nodes that keep their parts: leaves[n_values]; and
 * those that become outputs so: ends[n_values]. */
static void find_leaving(const oct_qjob *j, bool *leaves, bool *ends)
{
    for (size_t v = 0; v < j->n_values; v++) {
        const oct_value *x = &j->g->value[v];
        leaves[v] = ends[v] = x->is_output;
        for (size_t i = 0; i < x->n_uses && !leaves[v]; i++)
            leaves[v] = picks_reals(j, x->uses[i].node);
    }
    for (size_t i = j->g->n_order; i-- > 0;) {
        const oct_node *n = &j->g->node[j->g->order[i]];
        bool leave = false, end = false;
        for (int k = 0; k < n->n_out && keeps_parts(j, j->g->order[i]); k++) {
            leave |= n->out[k] >= 0 && leaves[n->out[k]];
            end |= n->out[k] >= 0 && ends[n->out[k]];
        }
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] >= 0) {
                leaves[n->in[k]] |= leave;
                ends[n->in[k]] |= end;
            }
    }
}

/* The ranges of the parts of a value: their hull, and the width of the narrowest, with zero. */
typedef struct parts {
    double lo, hi, least;
} parts;

static void add_part(parts *p, double lo, double hi)
{
    const double width = fmax(hi, 0) - fmin(lo, 0);
    p->lo = fmin(p->lo, lo);
    p->hi = fmax(p->hi, hi);
    p->least = width > 0 ? fmin(p->least, width) : p->least; /* zeros need no numbers */
}

static void parts_of_join(const oct_qjob *j, const oct_calib *c, const oct_node *n, parts *p)
{
    for (int k = 0; k < n->n_in; k++) {
        oct_range r;
        if (range_of(j, c, n->in[k], &r))
            add_part(p, (double)r.lo, (double)r.hi);
    }
}

/* Of a product, quotient or sum with a constant: what each of its elements makes. */
static void parts_of_constant(const oct_qjob *j, const oct_calib *c, int id, parts *p)
{
    const oct_node *n = &j->g->node[id];
    const oct_op *op = oct_op_of(j->g, id);
    const int k = constant_operand(j, id);
    const oct_tensor *by = k >= 0 ? j->g->value[n->in[k]].constant : NULL;
    oct_range r;
    if (!by || !by->data || by->dtype != OCT_F32 || by->count < 2 || !range_of(j, c, n->in[1 - k], &r))
        return;
    for (int64_t i = 0; i < by->count; i++) {
        const double v = (double)((const float *)by->data)[i], x = divides(op) ? 1 / v : v, lo = (double)r.lo,
                     hi = (double)r.hi;
        if (op->adds)
            add_part(p, lo + x, hi + x);
        else if (isfinite(x))
            add_part(p, fmin(lo * x, hi * x), fmax(lo * x, hi * x));
    }
}

/* Whether a part of a node's result keeps few quantized values, or would if the result had one scale. */
static bool keeps_few(const oct_qjob *j, const oct_calib *c, int id)
{
    enum { STEPS = 255 };
    const oct_node *n = &j->g->node[id];
    const int v = n->n_out > 0 ? oct_quantized_output(j, id) : -1;
    const oct_quant *q = v >= 0 ? oct_quant_of(j, oct_params_root(j, v)) : NULL;
    parts p = { 0, 0, INFINITY };
    if (oct_op_of(j->g, id)->quant == OCT_QUANT_JOIN)
        parts_of_join(j, c, n, &p);
    else
        parts_of_constant(j, c, id, &p);
    const double step = q ? (double)q->scale[0] : (p.hi - p.lo) / STEPS;
    return isfinite(p.least) && p.least < LEAST_CODES * step;
}

/* Keeps a node in float that runs on integers, or on real numbers between quantizers. */
static oct_status keep_static(oct_qjob *j, int id, const char *why, bool *changed, oct_err *err)
{
    if ((!oct_is_static(j, id) && !oct_rounds_inputs(j, id)) || oct_kept_float(&j->constraints, id))
        return OCT_OK;
    *changed = true;
    return oct_keep_float(&j->constraints, id, OCT_FROM_JOINS, why, err);
}

/* Keeps in float each Concat whose result leaves the integers, and each product, quotient or sum with a constant whose
 * result becomes an output (others scale channels for layers), of which a part would keep few quantized values; and
 * those behind it that would give the same values one scale once more. */
static oct_status keep_each_leaving(oct_qjob *j, const oct_calib *c, const bool *leaves, const bool *ends, bool *apart,
                                    bool *changed, oct_err *err)
{
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_node *n = &j->g->node[id];
        bool behind = false;
        if (!keeps_parts(j, id) || n->n_out < 1 || n->out[0] < 0 || !leaves[n->out[0]])
            continue;
        for (int k = 0; k < n->n_in; k++)
            behind |= n->in[k] >= 0 && apart[n->in[k]];
        const oct_quant_trait trait = oct_op_of(j->g, id)->quant;
        const bool counts = trait == OCT_QUANT_JOIN || (trait != OCT_QUANT_SAME && ends[n->out[0]]),
                   few = !behind && counts && keeps_few(j, c, id);
        if (few)
            OCT_TRY(keep_static(
                j, id,
                "with one scale for all its inputs, a part of its result would have few quantized values left, "
                "and the result is read as float",
                changed, err));
        else if (behind)
            OCT_TRY(keep_static(j, id,
                                "with one scale for all, a part of what it reads would have few quantized values left, "
                                "and its result is read as float",
                                changed, err));
        for (int k = 0; k < n->n_out && (few || behind); k++)
            if (n->out[k] >= 0)
                apart[n->out[k]] = true;
    }
    return OCT_OK;
}

static oct_status keep_leaving(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err)
{
    bool *leaves = oct_calloc(3 * j->n_values + 1, sizeof *leaves);
    if (!leaves)
        return oct_nomem(err);
    bool *ends = leaves + j->n_values, *apart = ends + j->n_values;
    find_leaving(j, leaves, ends);
    const oct_status s = keep_each_leaving(j, c, leaves, ends, apart, changed, err);
    oct_free(leaves);
    return s;
}

/* of: room for the groups of all values, [n_values]; NULL: not found yet. */
static oct_status part_join(oct_qjob *j, const oct_calib *c, int id, group **of, bool *changed, oct_err *err)
{
    const char *op = j->g->node[id].op;
    if (oct_target_op_rules_of(j->opts.target, op)->shared_inputs ||
        oct_target_op_rules_of(j->opts.target, op)->same_scale)
        return keep_whole(j, id, c, changed, err);
    if (!*of) {
        if (!(*of = oct_calloc(j->n_values, sizeof **of)))
            return oct_nomem(err);
        find_groups(j, c, *of);
    }
    return part(j, id, *of, changed, err);
}

oct_status oct_part_joins(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err)
{
    group *of = NULL;
    oct_status s = OCT_OK;
    for (size_t i = 0; i < j->g->n_order && s == OCT_OK; i++)
        if (oct_is_static(j, j->g->order[i]) && oct_op_of(j->g, j->g->order[i])->quant == OCT_QUANT_JOIN)
            s = part_join(j, c, j->g->order[i], &of, changed, err);
    oct_free(of);
    return s != OCT_OK || *changed ? s : keep_leaving(j, c, changed, err);
}
