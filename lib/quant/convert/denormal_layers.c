/* Finds the layers that have denormal numbers among their weights. In integers and 16-bit floats these become zeros; in
 * float32 they remain. */
#include "quant/convert/convert_int.h"

#include "ops/core/waiting.h"
#include "ops/traits.h"
#include "passes/match.h"

#include <string.h>

/* Counts |x| < 2^-126 other than 0 by looking at the bits, so that the loop is vectorized. */
static uint64_t count(const float *v, int64_t n)
{
    uint64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        found += (bits & 0x7fffffffu) - 1 < 0x007fffffu;
    }
    return found;
}

/* Numbers that wait are read part by part. As float32, no number of float16 is denormal. */
static uint64_t count_of(const oct_tensor *t)
{
    enum { PART = OCT_COUNT(((oct_chunk *)0)->f) };
    uint64_t found = 0;
    if (t->data)
        return count(t->data, t->count);
    for (int64_t i = 0, n; t->narrow_type != OCT_F16 && i < t->count; i += n) {
        oct_chunk part;
        n = t->count - i < PART ? t->count - i : PART;
        found += count(oct_floats_load(t, i, 1, n, &part), n);
    }
    return found;
}

/* The weights of a layer: input 1; for recurrent layers inputs 1 and 2; for a node that picks from a table input 0.
 * NULL after the last. */
static const oct_tensor *weights_at(const oct_layer *l, int i)
{
    const oct_graph *g = l->d.graph;
    const oct_op *op = oct_op_of(g, l->d.node);
    const bool table = op && op->picks;
    if (!op || i > (op->quant == OCT_QUANT_RECURRENT) || !(table || oct_layer_weights(g, l->d.node)))
        return NULL;
    const int v = oct_input_at(&g->node[l->d.node], table ? 0 : 1 + i);
    const oct_tensor *t = v >= 0 ? g->value[v].constant : NULL;
    return t && t->dtype == OCT_F32 && oct_has_floats(t) ? t : NULL;
}

/* Whether an earlier layer has the same weights, and so has counted them. */
static bool counted(const oct_conversion *c, const oct_tensor *t)
{
    bool found = false;
    for (size_t i = 0; i < c->n_denormal && !found; i++)
        found = c->denormal[i].first == t;
    return found;
}

oct_status oct_conversion_find_denormals(oct_conversion *c, oct_err *err)
{
    size_t cap = c->n_denormal = 0;
    for (size_t i = 0; i < c->n_layers; i++) {
        const oct_layer *l = &c->layers[i];
        const oct_tensor *t = weights_at(l, 0);
        oct_layer_denormals d = { .layer = l->name,
                                  .op = l->d.op,
                                  .zeros = l->d.weights != OCT_UNDEFINED && l->d.weights != OCT_F32 };
        if (!t || counted(c, t))
            continue;
        d.first = t;
        for (int k = 0; (t = weights_at(l, k)); k++) {
            d.n += count_of(t);
            d.of += (uint64_t)t->count;
            if (t->data)
                oct_map_forget(t->data, t->bytes);
        }
        if (!d.n)
            continue;
        if (!OCT_GROW(c->arena, c->denormal, c->n_denormal, cap))
            return oct_nomem(err);
        c->denormal[c->n_denormal++] = d;
    }
    return OCT_OK;
}
