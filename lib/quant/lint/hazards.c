/* Finds faults of a quantized model: scales that are too large for their values, sums that overflow, and layers that a
 * runtime would round. */
#include "forms/write/forms_write.h"
#include "ops/traits.h"
#include "quant/lint/examine.h"
#include "quant/weights/saturate.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_LEVELS = 16 }; /* how many quantized values a range should cover at least: 4 of 8 bits */

const char *oct_finding_name(oct_finding_kind kind)
{
    static const char *const names[OCT_FINDING_KINDS] = { "trap", "collapse", "wraps", "saturates", "rounds" };
    return names[kind];
}

bool oct_finding_concerns(const oct_finding *f, const oct_target *t)
{
    if (f->kind == OCT_FINDING_ROUNDS)
        return !oct_target_rules_of(t)->never_in_ort;
    return f->kind != OCT_FINDING_SATURATES || (f->sums >> oct_target_rules_of(t)->pair_sums & 1);
}

static oct_status add(oct_lint *l, oct_finding_kind kind, const oct_graph *g, int node, const char *where,
                      const char *text, oct_err *err)
{
    if (!text || !OCT_GROW(l->arena, l->finding, l->n_finding, l->cap_finding))
        return oct_nomem(err);
    const char *name = oct_arena_printf(l->arena, "%s%s", where, oct_node_label(g, node));
    l->finding[l->n_finding++] = (oct_finding){ .kind = kind, .name = name, .op = g->node[node].op, .text = text };
    return name ? OCT_OK : oct_nomem(err);
}

/* ---- scales ---- */

/* The quantization of a value, also if it exists only in a border after the value. */
static const oct_quant *grid_behind(const oct_graph *g, int value)
{
    const oct_value *v = &g->value[value];
    if (v->quant || !oct_value_used_once(v))
        return v->quant;
    const oct_node *n = &g->node[v->uses[0].node];
    return oct_border_of(g, n) == OCT_BORDER_ROUNDS ? g->value[n->out[0]].quant : NULL;
}

static bool collapses(oct_span s, double step)
{
    return s.known && isfinite(s.lo) && isfinite(s.hi) && s.hi > s.lo && (s.hi - s.lo) / step < LEAST_LEVELS;
}

static oct_status say_collapse(oct_lint *l, const oct_graph *g, int node, int value, const char *where, oct_span s,
                               double step, bool would, oct_err *err)
{
    return add(l, OCT_FINDING_COLLAPSE, g, node, where,
               oct_arena_printf(l->arena,
                                "'%s' reaches from %.4g to %.4g, and the scale that it %s has steps of %.3g: "
                                "%d of 256 quantized values are left for it",
                                oct_value_name(g, value), s.lo, s.hi, would ? "would share" : "has", step,
                                (int)floor((s.hi - s.lo) / step) + 1),
               err);
}

/* Tensors that are joined with one scale: that of the result, or, before it is quantized, the range of all of them. */
static oct_status look_at_join(oct_lint *l, const oct_graph *g, int id, const char *where, const oct_span *span,
                               oct_err *err)
{
    const oct_node *n = &g->node[id];
    const oct_quant *q = grid_behind(g, n->out[0]);
    const oct_span all = span[n->out[0]];
    const bool would = !q && !l->quantized && all.known && g->value[n->out[0]].dtype == OCT_F32;
    const double step = q && q->n == 1 ? (double)q->scale[0] : would ? (all.hi - all.lo) / 255 : 0;
    for (int i = 0; i < n->n_in && step > 0; i++)
        if (n->in[i] >= 0 && !oct_value_is_constant(&g->value[n->in[i]]) && collapses(span[n->in[i]], step))
            OCT_TRY(say_collapse(l, g, id, n->in[i], where, span[n->in[i]], step, would, err));
    return OCT_OK;
}

/* A value that is quantized with a far larger scale than it needs. */
static oct_status look_at_grid(oct_lint *l, const oct_graph *g, int id, const char *where, const oct_span *span,
                               oct_err *err)
{
    const oct_node *n = &g->node[id];
    const int from = oct_border_of(g, n) == OCT_BORDER_ROUNDS ? n->in[0] : n->n_out > 0 ? n->out[0] : -1;
    const oct_quant *q = n->n_out > 0 && n->out[0] >= 0 ? g->value[n->out[0]].quant : NULL;
    if (!q || q->n != 1 || (q->dtype != OCT_U8 && q->dtype != OCT_S8) || from < 0 ||
        oct_value_is_constant(&g->value[from]) || !collapses(span[from], (double)q->scale[0]))
        return OCT_OK;
    return say_collapse(l, g, id, from, where, span[from], (double)q->scale[0], false, err);
}

/* ---- sums ---- */

/* The largest possible sum of products of one output channel, with every activation as far as possible from the zero
 * point. */
static int64_t largest_sum(const oct_weight_layout *l, const oct_quant *w, int farthest)
{
    const int64_t depth = l->ins / l->groups * l->taps;
    int64_t most = 0;
    for (int64_t g = 0; g < l->matrices * l->groups; g++)
        for (int64_t o = 0; o < l->outs / l->groups; o++) {
            int64_t sum = 0;
            for (int64_t k = 0; k < depth; k++) {
                const int64_t at = oct_weight_at(l, g, o, k);
                const int code =
                    w->dtype == OCT_S8 ? ((const int8_t *)w->qvals->data)[at] : ((const uint8_t *)w->qvals->data)[at];
                sum += abs(code - w->zp[w->n > 1 ? (g % l->groups * (l->outs / l->groups) + o) % w->n : 0]);
            }
            most = sum > most ? sum : most;
        }
    return most * farthest;
}

/* The ways of adding, by bits, in which pairs of s8 weights could saturate. */
static unsigned saturating_sums(const oct_weight_layout *lay, const int8_t *qvals)
{
    unsigned sums = 0;
    for (int k = OCT_SUMS_EXACT; k < OCT_PAIR_SUMS; k++)
        sums |= oct_pairs_safe((oct_pair_sums)k, lay, qvals) ? 0 : 1u << k;
    return sums;
}

static bool is_centred(const oct_quant *q, bool lowest)
{
    return q->n == 1 && (q->dtype == OCT_S8 || q->dtype == OCT_U8) &&
           (q->zp[0] == (q->dtype == OCT_S8 ? 0 : 128) || (lowest && q->zp[0] == (q->dtype == OCT_S8 ? -128 : 0)));
}

/* OpenVINO multiplies two activations on integers if both are centred, the second around 0. ONNX Runtime makes u8 of an
 * s8 activation with one reader, so that its sums are exact; if the second has more, it stays s8, and they saturate. */
static unsigned saturating_activations(const oct_value *x, const oct_value *w)
{
    const bool bytes = oct_dtype_bits(x->quant->dtype) == 8;
    return (is_centred(x->quant, true) && is_centred(w->quant, false) ? 1u << OCT_SUMS_IN_TAPS : 0) |
           (bytes && w->quant->dtype == OCT_S8 && !oct_value_used_once(w) ? 1u << OCT_SUMS_ALONG_K : 0);
}

static oct_status say_saturates(oct_lint *l, const oct_graph *g, int id, const char *where, unsigned sums, oct_err *err)
{
    if (!sums)
        return OCT_OK;
    OCT_TRY(add(l, OCT_FINDING_SATURATES, g, id, where,
                "the sum of two of its products can exceed 16 bits, in which old CPUs add them", err));
    l->finding[l->n_finding - 1].sums = sums;
    l->finding[l->n_finding - 1].weights = g->value[g->node[id].in[1]].quant->qvals;
    return OCT_OK;
}

static oct_status look_at_sums(oct_lint *l, const oct_graph *g, int id, const char *where, oct_err *err)
{
    const oct_node *n = &g->node[id];
    const oct_op *op = oct_op_of(g, id);
    const oct_quant *x = n->n_in > 1 && n->in[0] >= 0 ? g->value[n->in[0]].quant : NULL;
    const oct_quant *w = oct_input_at(n, 1) >= 0 ? g->value[n->in[1]].quant : NULL;
    oct_weight_layout lay;
    if (op && op->quant == OCT_QUANT_WEIGHTED && x && w && !w->block && !w->qvals)
        return say_saturates(l, g, id, where, saturating_activations(&g->value[n->in[0]], &g->value[n->in[1]]), err);
    if (!op || op->quant != OCT_QUANT_WEIGHTED || !x || !w || w->block || !w->qvals->data ||
        (w->dtype != OCT_S8 && w->dtype != OCT_U8) || x->n > 1 ||
        !oct_weight_layout_of(op, n, 1, w->qvals->rank, w->qvals->dims, &lay))
        return OCT_OK;
    if (w->dtype == OCT_S8 && (x->n == 0 || x->dtype == OCT_U8 || x->dtype == OCT_S8))
        OCT_TRY(say_saturates(l, g, id, where, saturating_sums(&lay, w->qvals->data), err));
    const int64_t most = largest_sum(&lay, w, 255);
    if (most > INT32_MAX)
        return add(l, OCT_FINDING_WRAPS, g, id, where,
                   oct_arena_printf(l->arena, "with extreme quantized values its sum can reach %lld, and wraps at 2^31",
                                    (long long)most),
                   err);
    return OCT_OK;
}

/* One finding for all layers of a graph, at the first. */
static oct_status look_at_blocks(oct_lint *l, const oct_graph *g, const char *where, oct_err *err)
{
    int first = -1;
    size_t n = 0;
    for (size_t i = 0; i < g->n_order; i++)
        if (oct_rounds_inputs_at_load(g, g->order[i]))
            first = n++ ? first : g->order[i];
    if (!n)
        return OCT_OK;
    OCT_TRY(add(l, OCT_FINDING_ROUNDS, g, first, where,
                n > 1 ? oct_arena_printf(l->arena, OCT_ROUNDED_INPUTS ": here and in %zu other layers", n - 1)
                      : OCT_ROUNDED_INPUTS,
                err));
    l->finding[l->n_finding - 1].session = true;
    return OCT_OK;
}

oct_status oct_rounded_find(oct_lint *l, const oct_graph *g, const char *where, oct_err *err)
{
    OCT_TRY(look_at_blocks(l, g, where, err));
    for (size_t i = 0; i < g->n_order; i++)
        if (oct_rounds_at_load(g, g->order[i]))
            OCT_TRY(add(
                l, OCT_FINDING_ROUNDS, g, g->order[i], where,
                "it is float between quantizers, and ONNX Runtime rounds its weights to 8 bits with one scale for all when it loads the file",
                err));
    return OCT_OK;
}

oct_status oct_hazards_find(oct_lint *l, const oct_graph *g, const char *where, oct_err *err)
{
    oct_span *span;
    OCT_TRY(oct_spans_find(g, l->table, l->arena, &span, err));
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const oct_op *op = oct_op_of(g, id);
        if (op && op->quant == OCT_QUANT_JOIN && g->node[id].n_in > 1 && g->node[id].out[0] >= 0)
            OCT_TRY(look_at_join(l, g, id, where, span, err));
        else
            OCT_TRY(look_at_grid(l, g, id, where, span, err));
        OCT_TRY(look_at_sums(l, g, id, where, err));
    }
    return OCT_OK;
}
