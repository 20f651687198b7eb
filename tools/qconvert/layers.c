/* The layers of a conversion: names, work, decisions. */
#include "qconvert/qconvert.h"

#include "ops/traits.h"

const char *layer_name(const oct_graph *g, int node, const char *own)
{
    const oct_node *n = &g->node[node];
    if (own && *own)
        return own;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            return g->value[n->out[i]].name;
    return "";
}

bool is_product(const oct_graph *g, int node)
{
    return oct_layer_weights(g, node) != NULL;
}

int64_t layer_weights(const oct_graph *g, int node)
{
    return oct_layer_weight_count(g, node);
}

int64_t layer_macs(const oct_graph *g, int node)
{
    return is_product(g, node) ? oct_node_macs(g, node) : 0;
}

/* Samples of a run: the batch where it is fixed. */
static int64_t samples_of_run(const oct_graph *g)
{
    const oct_shape *s = g->n_input ? &g->value[g->input[0]].shape : NULL;
    return s && s->rank > 1 && s->d[0].n > 0 ? s->d[0].n : 1;
}

int64_t model_macs(const oct_graph *g)
{
    int64_t macs = 0;
    for (size_t i = 0; i < g->n_order; i++)
        if (__builtin_add_overflow(macs, layer_macs(g, g->order[i]), &macs))
            return INT64_MAX;
    return macs / samples_of_run(g) + 1;
}

oct_status session_layers(session *s, oct_err *err)
{
    s->n_layers = oct_qjob_n_layers(s->job);
    s->layers = oct_arena_calloc(s->arena, s->n_layers + 1, sizeof *s->layers);
    if (!s->layers)
        return oct_nomem(err);
    for (size_t i = 0; i < s->n_layers; i++) {
        layer *l = &s->layers[i];
        l->d = *oct_qjob_layer(s->job, i);
        l->own = layer_name(l->d.graph, l->d.node, l->d.name);
        l->name = *l->d.where ? oct_arena_printf(s->arena, "%s%s", l->d.where, l->own) : l->own;
        if (!l->name)
            return oct_nomem(err);
        l->product = is_product(l->d.graph, l->d.node);
        l->macs = l->product ? layer_macs(l->d.graph, l->d.node) : 0;
        if (!l->d.why)
            l->d.why = "";
    }
    return OCT_OK;
}

static bool is_half(const layer *l)
{
    return l->d.scheme == OCT_SCHEME_FP16 || l->d.scheme == OCT_SCHEME_BF16;
}

layer_count count_layers(const session *s)
{
    layer_count n = { 0 };
    for (size_t i = 0; i < s->n_layers; i++) {
        const layer *l = &s->layers[i];
        n.products += l->product;
        n.integer += l->product && l->d.integer;
        n.half += l->product && is_half(l);
        n.blocks4 += is_weight_only(l) && oct_dtype_bits(l->d.weights) == 4;
        n.blocks8 += is_weight_only(l) && oct_dtype_bits(l->d.weights) == 8;
    }
    return n;
}
