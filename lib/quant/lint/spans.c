/* Intervals that contain values, computed without samples: from the records of operators, constants and quantization
 * parameters, and from the ranges of a table if there is one. */
#include "quant/lint/examine.h"

#include "ops/op.h"

#include <math.h>

static oct_span hull(oct_span a, oct_span b)
{
    return (oct_span){ a.known && b.known, fmin(a.lo, b.lo), fmax(a.hi, b.hi) };
}

static oct_span inside(oct_span a, oct_span b)
{
    if (!a.known || !b.known)
        return a.known ? a : b;
    const oct_span both = { true, fmax(a.lo, b.lo), fmin(a.hi, b.hi) };
    return both.lo <= both.hi ? both : a;
}

static oct_span product(oct_span a, oct_span b)
{
    const double p[4] = { a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi };
    return (oct_span){ a.known && b.known, fmin(fmin(p[0], p[1]), fmin(p[2], p[3])),
                       fmax(fmax(p[0], p[1]), fmax(p[2], p[3])) };
}

static oct_span sum(oct_span a, oct_span b)
{
    return (oct_span){ a.known && b.known, a.lo + b.lo, a.hi + b.hi };
}

/* The interval of a constant: of floats, or of quantized values with one scale. */
static oct_span constant_span(const oct_value *v)
{
    const oct_tensor *t = v->constant;
    oct_span s = { false, INFINITY, -INFINITY };
    if (!t || !t->data || t->dtype != OCT_F32 || t->count == 0)
        return s;
    const float *x = t->data;
    s.known = true;
    for (int64_t i = 0; i < t->count; i++) {
        s.known &= isfinite(x[i]) != 0;
        s.lo = fmin(s.lo, (double)x[i]);
        s.hi = fmax(s.hi, (double)x[i]);
    }
    return s;
}

/* The interval of what the quantized values of a type can represent. */
static oct_span grid_span(const oct_quant *q)
{
    if (!q || q->n != 1 || (q->dtype != OCT_U8 && q->dtype != OCT_S8))
        return (oct_span){ .known = false };
    const double least = q->dtype == OCT_S8 ? -128 : 0, s = (double)q->scale[0];
    return (oct_span){ true, s * (least - q->zp[0]), s * (least + 255 - q->zp[0]) };
}

static oct_span node_span(const oct_graph *g, int id, const oct_span *span)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    const oct_span none = { .known = false };
    float lo, hi;
    if (!op || n->n_in < 1 || n->in[0] < 0)
        return none;
    const oct_span x = span[n->in[0]];
    if (op->fixed_range)
        return (oct_span){ true, (double)op->range_lo, (double)op->range_hi };
    if (oct_op_clamp(g, id, &lo, &hi))
        return x.known ? (oct_span){ true, fmin(fmax(x.lo, (double)lo), (double)hi),
                                     fmin(fmax(x.hi, (double)lo), (double)hi) }
                       : (oct_span){ isfinite(lo) && isfinite(hi), (double)lo, (double)hi };
    if (op->alias || op->permutes || op->picks || op->is_qdq || op->quant == OCT_QUANT_SAME)
        return x;
    const bool pairs = op->adds || op->multiplies;
    if (!pairs && op->quant != OCT_QUANT_JOIN)
        return none;
    oct_span all = x;
    for (int i = 1; i < n->n_in; i++) {
        const oct_span y = n->in[i] >= 0 ? span[n->in[i]] : none;
        all = op->adds ? sum(all, y) : op->multiplies ? product(all, y) : hull(all, y);
    }
    return all;
}

static oct_span table_span(const oct_graph *g, int value, const oct_calib *table)
{
    const oct_calib_tensor *t = table ? oct_calib_find(table, oct_value_name(g, value)) : NULL;
    if (!t || !oct_stats_finite(&t->stats))
        return (oct_span){ .known = false };
    return (oct_span){ true, (double)t->stats.min, (double)t->stats.max };
}

oct_status oct_spans_find(const oct_graph *g, const oct_calib *table, oct_arena *arena, oct_span **out, oct_err *err)
{
    oct_span *span = oct_arena_calloc(arena, g->n_value + 1, sizeof *span);
    if (!span)
        return oct_nomem(err);
    for (size_t v = 0; v < g->n_value; v++) {
        span[v] = g->value[v].dead ? (oct_span){ .known = false } : constant_span(&g->value[v]);
        if (!g->value[v].dead && g->value[v].producer < 0)
            span[v] = inside(inside(span[v], table_span(g, (int)v, table)), grid_span(g->value[v].quant));
    }
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        const oct_span s = node_span(g, g->order[i], span);
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                span[n->out[k]] =
                    inside(inside(s, table_span(g, n->out[k], table)), grid_span(g->value[n->out[k]].quant));
    }
    *out = span;
    return OCT_OK;
}
