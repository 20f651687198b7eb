/* The layers of a job: names, work, counts. */
#include "quant/layers.h"

#include "ops/core/quantized.h"
#include "ops/traits.h"
#include "quant/job.h"

static int64_t layer_macs(const oct_graph *g, int node)
{
    return oct_layer_weights(g, node) ? oct_node_macs(g, node) : 0;
}

/* Samples of a run: the batch where it is fixed. */
static int64_t samples_of_run(const oct_graph *g)
{
    const oct_shape *s = g->n_input ? &g->value[g->input[0]].shape : NULL;
    return s && s->rank > 1 && s->d[0].n > 0 ? s->d[0].n : 1;
}

int64_t oct_graph_macs(const oct_graph *g)
{
    int64_t macs = 0;
    for (size_t i = 0; i < g->n_order; i++)
        if (__builtin_add_overflow(macs, layer_macs(g, g->order[i]), &macs))
            return INT64_MAX;
    return macs / samples_of_run(g) + 1;
}

/* What computes on quantized values of the file does so in the target if that runs it. */
static oct_status keep_quantized(const oct_qjob *j, oct_layer_decision *d, oct_err *err)
{
    static const oct_scheme as[] = { [OCT_ON_CODES] = OCT_SCHEME_STATIC, [OCT_ON_DYNAMIC] = OCT_SCHEME_DYNAMIC,
                                     [OCT_ON_BLOCKS] = OCT_SCHEME_WEIGHT_ONLY };
    oct_compute how;
    OCT_TRY(oct_compute_of(d->graph, d->node, &how, err));
    if (how == OCT_ON_REALS || !oct_target_runs(j->opts.target, d->graph, d->node, oct_form_of(as[how]), &d->why))
        return OCT_OK;
    d->integer = how != OCT_ON_BLOCKS;
    d->scheme = as[how];
    d->why = "quantized in the model";
    return OCT_OK;
}

static oct_status fill(oct_layer *l, const oct_qjob *j, const oct_layer_decision *d, oct_arena *arena, oct_err *err)
{
    l->d = *d;
    if (j->opts.read_forms)
        OCT_TRY(keep_quantized(j, &l->d, err));
    l->own = oct_node_label(d->graph, d->node);
    l->name = *d->where ? oct_arena_printf(arena, "%s%s", d->where, l->own) : l->own;
    l->product = oct_layer_weights(d->graph, d->node) != NULL;
    l->macs = layer_macs(d->graph, d->node);
    l->d.why = l->d.why ? l->d.why : "";
    return l->name ? OCT_OK : oct_nomem(err);
}

oct_status oct_layers_list(const oct_qjob *j, oct_arena *arena, oct_layer **layers, size_t *n, oct_err *err)
{
    const size_t count = oct_qjob_n_layers(j);
    oct_layer *l = oct_arena_calloc(arena, count + 1, sizeof *l);
    if (!l)
        return oct_nomem(err);
    *n = 0;
    for (size_t i = 0; i < count; i++) {
        const oct_layer_decision *d = oct_qjob_layer(j, i);
        if (!oct_border_of(d->graph, &d->graph->node[d->node]))
            OCT_TRY(fill(&l[(*n)++], j, d, arena, err));
    }
    *layers = l;
    return OCT_OK;
}

oct_layer_count oct_layers_count(const oct_layer *layers, size_t n)
{
    oct_layer_count c = { .nodes = n };
    for (size_t i = 0; i < n; i++) {
        const oct_layer *l = &layers[i];
        const int bits = oct_layer_is_weight_only(l) ? oct_dtype_bits(l->d.weights) : 0;
        const bool integer = l->product && l->d.integer;
        c.integer_nodes += l->d.integer;
        c.products += l->product;
        c.integer += integer;
        c.half += l->product && oct_scheme_is_half(l->d.scheme);
        c.blocks4 += bits == 4;
        c.blocks8 += bits == 8;
        c.weights += l->product ? l->d.weight_count : 0;
        c.integer_weights += integer ? l->d.weight_count : 0;
        c.macs += l->macs;
        c.integer_macs += integer ? l->macs : 0;
    }
    return c;
}
