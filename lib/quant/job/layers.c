/* The layers of a job: names, work, counts. */
#include "quant/job/layers.h"

#include "forms/forms.h"
#include "ops/core/quantized.h"
#include "ops/traits.h"
#include "quant/job/placed.h"
#include "quant/job/scope.h"
#include "targets/stand.h"

#include <stdio.h>
#include <string.h>

/* The number of samples of a run: the batch size if it is fixed. */
static int64_t samples_of_run(const oct_graph *g)
{
    const oct_shape *s = g->n_input ? &g->value[g->input[0]].shape : NULL;
    return s && s->rank > 1 && s->d[0].n > 0 ? s->d[0].n : 1;
}

const char *oct_macs_text(char dst[OCT_MACS_TEXT], double share)
{
    static const char of[] = "multiply-accumulates";
    if (isnan(share))
        snprintf(dst, OCT_MACS_TEXT, "an unknown part of the %s", of);
    else if (!(share > 0))
        snprintf(dst, OCT_MACS_TEXT, "no %s", of);
    else if (share < 0.001)
        snprintf(dst, OCT_MACS_TEXT, "less than 0.1 %% of the %s", of);
    else if (share > 0.9995)
        snprintf(dst, OCT_MACS_TEXT, "all %s", of);
    else
        snprintf(dst, OCT_MACS_TEXT, "%.1f %% of the %s", 100 * share, of);
    return dst;
}

int64_t oct_sample_macs(const oct_graph *g)
{
    return oct_graph_macs(g) / samples_of_run(g) + 1;
}

/* A node that computes on quantized values of the file keeps doing so if the target runs it. read: the graph of the
 * node as it was read. */
static oct_status keep_quantized(const oct_qjob *j, const oct_graph *read, oct_layer_decision *d, oct_err *err)
{
    static const oct_scheme as[] = { [OCT_ON_QUANTIZED] = OCT_SCHEME_STATIC,
                                     [OCT_ON_DYNAMIC] = OCT_SCHEME_DYNAMIC,
                                     [OCT_ON_BLOCKS] = OCT_SCHEME_WEIGHT_ONLY };
    oct_compute how;
    if (d->scheme != OCT_SCHEME_FLOAT)
        return OCT_OK;
    OCT_TRY(oct_target_computes(j->opts.target, read, d->node, &how, &d->why, err));
    if (how == OCT_ON_REALS)
        return OCT_OK;
    d->integer = how != OCT_ON_BLOCKS;
    d->scheme = as[how];
    d->why = "quantized in the model";
    for (size_t i = 0; !*d->where && i < j->opts.n_given_weights; i++) {
        const oct_given_weights *w = &j->opts.given_weights[i];
        if (w->node != d->node)
            continue;
        d->remedy = w->remedy;
        d->weights = w->type;
        d->per_channel = w->per_channel;
        d->sqnr_weights = w->sqnr;
    }
    return OCT_OK;
}

/* A recurrent layer whose input, results and matrices are rounded: the target computes it on integers, and nothing here
 * does (annotate.c). */
static void count_rounded(const oct_qjob *j, oct_layer_decision *d)
{
    const oct_op *op = oct_op_of(d->graph, d->node);
    if (d->scheme != OCT_SCHEME_FLOAT || d->graph != j->g || d->node >= (int)j->n_nodes || !op ||
        op->quant != OCT_QUANT_RECURRENT || !oct_rounds_inputs(j, d->node))
        return;
    d->scheme = OCT_SCHEME_STATIC;
    d->integer = true;
    d->weights = OCT_S8;
    d->why = "its input, its results and its matrices are quantized: the target computes it on integers";
}

static oct_status fill(oct_layer *l, const oct_qjob *j, const oct_graph *read, const oct_layer_decision *d,
                       oct_arena *arena, oct_err *err)
{
    l->d = *d;
    OCT_TRY(keep_quantized(j, read, &l->d, err));
    count_rounded(j, &l->d);
    l->own = oct_node_label(d->graph, d->node);
    l->name = *d->where ? oct_arena_printf(arena, "%s%s", d->where, l->own) : l->own;
    l->product = oct_node_has_weights(read, d->node);
    l->depth = oct_node_depth(read, d->node);
    l->macs = l->product ? oct_node_macs(read, d->node) : 0;
    if (l->product && d->graph == j->g && j->opts.n_seen && d->node < (int)j->n_nodes)
        l->macs = j->guessed[d->node] ? 0 : (int64_t)j->work[d->node];
    l->weight_count = oct_layer_weight_count(read, d->node);
    l->d.why = l->d.why ? l->d.why : "";
    return l->name ? OCT_OK : oct_nomem(err);
}

/* The copy of a job's graph inside a copy of the outer job's graph; nodes have the same indices. NULL: it is not a body
 * of that job. */
static const oct_graph *copy_of(const oct_qjob *outer, const oct_graph *copy, const oct_qjob *job)
{
    const oct_graph *found = outer == job ? copy : NULL;
    for (size_t i = 0; i < outer->n_body && !found; i++) {
        const qbody *b = &outer->body[i];
        found = copy->node[b->node].dead ? NULL : copy_of(b->job, oct_node_graph_at(&copy->node[b->node], b->at), job);
    }
    return found;
}

static oct_status list(const oct_qjob *j, const oct_graph *copy, oct_arena *arena, oct_layer *layers, size_t *n,
                       oct_err *err)
{
    *n = 0;
    for (size_t i = 0; i < oct_qjob_n_layers(j); i++) {
        const oct_layer_decision *d = oct_qjob_layer(j, i);
        const oct_graph *read = copy_of(j, copy, j->all[i].job);
        if (read && !oct_is_spelling(d->graph, read, d->node))
            OCT_TRY(fill(&layers[(*n)++], j, read, d, arena, err));
    }
    return OCT_OK;
}

/* Finds which layers make the inputs of which, in the job's own graph. */
static oct_status connect(const oct_qjob *j, const oct_graph *copy, oct_arena *arena, oct_layer *layers, size_t n,
                          oct_err *err)
{
    int *of = oct_arena_alloc(arena, (copy->n_node + 1) * sizeof *of); /* [n_node]: the layer of a node; -1: none */
    if (!of)
        return oct_nomem(err);
    for (size_t i = 0; i < copy->n_node; i++)
        of[i] = -1;
    for (size_t i = 0; i < n; i++)
        if (layers[i].d.graph == j->g)
            of[layers[i].d.node] = (int)i;
    for (size_t i = 0; i < n; i++) {
        oct_layer *l = &layers[i];
        if (l->d.graph != j->g)
            continue;
        const oct_node *node = &copy->node[l->d.node];
        if (!(l->from = oct_arena_alloc(arena, ((size_t)node->n_in + 1) * sizeof *l->from)))
            return oct_nomem(err);
        for (int k = 0; k < node->n_in; k++) {
            const int made = node->in[k] >= 0 ? copy->value[node->in[k]].producer : -1;
            if (made >= 0 && of[made] >= 0)
                l->from[l->n_from++] = of[made];
        }
    }
    return OCT_OK;
}

oct_status oct_layers_list(const oct_qjob *j, oct_arena *arena, oct_layer **layers, size_t *n, oct_err *err)
{
    oct_graph *copy = NULL;
    if (!(*layers = oct_arena_calloc(arena, oct_qjob_n_layers(j) + 1, sizeof **layers)))
        return oct_nomem(err);
    OCT_TRY(oct_graph_clone(j->g, &copy, err));
    oct_status s = oct_forms_read(copy, NULL, NULL, err);
    if (s == OCT_OK) {
        oct_graph_prune(copy);
        s = list(j, copy, arena, *layers, n, err);
        if (s == OCT_OK)
            s = connect(j, copy, arena, *layers, *n, err);
    }
    oct_graph_destroy(copy);
    return s;
}

oct_layer_count oct_layers_count(const oct_layer *layers, size_t n)
{
    oct_layer_count c = { .nodes = n };
    for (size_t i = 0; i < n; i++) {
        const oct_layer *l = &layers[i];
        const int bits = l->product && oct_layer_is_weight_only(l) ? oct_dtype_bits(l->d.weights) : 0;
        const bool integer = l->product && l->d.integer;
        c.integer_nodes += l->d.integer;
        c.products += l->product;
        c.integer += integer;
        c.half += l->product && oct_scheme_is_half(l->d.scheme);
        c.blocks4 += bits == 4;
        c.blocks8 += bits == 8;
        c.weights += l->product ? l->weight_count : 0;
        c.integer_weights += integer ? l->weight_count : 0;
        c.macs += l->macs;
        c.integer_macs += integer ? l->macs : 0;
    }
    return c;
}
