/* The layers of a conversion: names, work, decisions. */
#include "qconvert/qconvert.h"

#include "ops/op.h"

#include <string.h>

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

static const oct_tensor *weights(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    return n->n_in > 1 && n->in[1] >= 0 ? g->value[n->in[1]].konst : NULL;
}

static bool is_recurrent(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    return op && op->quant == OCT_QUANT_RECURRENT;
}

bool is_product(const oct_graph *g, int node)
{
    const oct_op *op = oct_op_of(g, node);
    return op && (op->quant == OCT_QUANT_WEIGHTED || op->quant == OCT_QUANT_RECURRENT) && weights(g, node);
}

int64_t layer_weights(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_tensor *w = weights(g, node), *r = is_recurrent(g, node) && n->in[2] >= 0 ? g->value[n->in[2]].konst : NULL;
    return (w ? w->count : 0) + (r ? r->count : 0);
}

/* Of a sequence of one batch, 0 when its length is free. */
static int64_t recurrent_macs(const oct_graph *g, int node)
{
    const oct_shape *x = &g->value[g->node[node].in[0]].shape;
    int64_t macs;
    return x->rank == 3 && x->d[0].n > 0 && !__builtin_mul_overflow(x->d[0].n, layer_weights(g, node), &macs) ? macs : 0;
}

/* Elements of the output for a batch of one, 0 when other dimensions are free. */
static int64_t outputs(const oct_graph *g, int node)
{
    const oct_node *n = &g->node[node];
    const oct_shape *s = n->n_out && n->out[0] >= 0 ? &g->value[n->out[0]].shape : NULL;
    int64_t dims[OCT_MAX_RANK], count;
    if (!s || s->rank < 1)
        return 0;
    for (int i = 0; i < s->rank; i++)
        dims[i] = i == 0 ? (s->d[0].n > 0 && s->rank < 3 ? s->d[0].n : 1) : s->d[i].n;
    return oct_count(dims, s->rank, &count) ? count : 0;
}

int64_t layer_macs(const oct_graph *g, int node)
{
    const oct_tensor *w = weights(g, node);
    const oct_node *n = &g->node[node];
    int64_t out = outputs(g, node), per, macs;
    if (!w || w->rank < 2 || !w->count)
        return 0;
    if (is_recurrent(g, node))
        return recurrent_macs(g, node);
    bool conv = strcmp(n->op, "Conv") == 0, transposed = strcmp(n->op, "Gemm") == 0 && oct_node_int(n, "transB", 0);
    per = w->count / w->dims[conv || transposed ? 0 : w->rank - 1];
    return __builtin_mul_overflow(out, per, &macs) ? 0 : macs;
}

int64_t model_macs(const oct_graph *g)
{
    int64_t macs = 1;
    for (size_t i = 0; i < g->n_order; i++)
        if (__builtin_add_overflow(macs, layer_macs(g, g->order[i]), &macs))
            return INT64_MAX;
    return macs;
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
