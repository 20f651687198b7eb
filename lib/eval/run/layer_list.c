/* Makes the list of layers with the results of a comparison. */
#include "eval/run/layers_int.h"
#include "ops/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const oct_node *ev_computing_node(const oct_graph *g, int value)
{
    for (int hops = 0; hops < 4; hops++) {
        int p = g->value[value].producer;
        if (p < 0)
            return NULL;
        const oct_node *n = &g->node[p];
        const oct_op *op = oct_op_of(g, p);
        if (!op || !op->is_qdq || n->n_in < 1 || n->in[0] < 0)
            return n;
        if (g->value[n->in[0]].producer < 0)
            return n;
        value = n->in[0];
    }
    return NULL;
}

static int worst_first(const void *x, const void *y)
{
    const oct_eval_layer *a = x, *b = y;
    const double x_db[2] = { a->has_own ? a->own_sqnr_db : a->sqnr_db, a->sqnr_db };
    const double y_db[2] = { b->has_own ? b->own_sqnr_db : b->sqnr_db, b->sqnr_db };
    for (int k = 0; k < 2; k++) {
        const double p = isnan(x_db[k]) ? -INFINITY : x_db[k], q = isnan(y_db[k]) ? -INFINITY : y_db[k];
        if (p != q)
            return p < q ? -1 : 1;
    }
    return strcmp(a->value, b->value);
}

/* Whether channels that a layer reads or computes were scaled in comparison with the float model. Then its weights
 * differ, too. */
static bool is_scaled(const ev_side *s, const oct_graph *g, const oct_node *n)
{
    bool any = false;
    for (int k = 0; n && k < n->n_in; k++)
        any |= n->in[k] >= 0 && oct_scaled_find(s->scaled, s->n_scaled, g->value[n->in[k]].name);
    for (int k = 0; n && k < n->n_out; k++)
        any |= n->out[k] >= 0 && oct_scaled_find(s->scaled, s->n_scaled, g->value[n->out[k]].name);
    return any;
}

/* Fills in what was gathered for tap i. */
static oct_status fill(const ev_layers *l, const ev_side *s, size_t i, oct_arena *arena, oct_eval_layer *e,
                       oct_err *err)
{
    const ev_codes *c = &s->codes[i];
    const ev_channels *real = &l->side->channels[i], *here = &s->channels[i];
    const oct_error own = oct_error_sum_value(&s->own[i]);
    e->error = oct_error_sum_value(&s->error[i]);
    e->sqnr_db = oct_error_sqnr(&e->error);
    e->has_own = !l->no_own && own.n > 0;
    e->own_sqnr_db = e->has_own ? oct_error_sqnr(&own) : NAN;
    e->range = c->known ? c->range : ev_range_of(NULL);
    ev_histogram_of(&l->stats[i], &e->range, &e->histogram);
    e->clipped = c->n ? (double)c->clipped / (double)c->n : NAN;
    e->saturated = c->n ? (double)c->saturated / (double)c->n : NAN;
    e->used = ev_codes_used(c);
    if (ev_channels_known(real, here)) {
        e->channels = here->n;
        e->dead = ev_channels_dead(real, here);
    }
    e->weights = s->pair[i]->weights;
    if (e->weights.n_channel &&
        !(e->weights.channel =
              oct_arena_memdup(arena, e->weights.channel, e->weights.n_channel * sizeof *e->weights.channel)))
        return oct_nomem(err);
    if (e->weights.name && !(e->weights.name = oct_arena_strdup(arena, e->weights.name)))
        return oct_nomem(err);
    return OCT_OK;
}

oct_status ev_layers_result(const ev_layers *l, size_t k, oct_arena *arena, oct_eval_layer **layers, size_t *n_layers,
                            oct_err *err)
{
    const ev_side *s = &l->side[k];
    oct_eval_layer *list = oct_arena_calloc(arena, l->n_tap + 1, sizeof *list);
    size_t n = 0;
    if (!list)
        return oct_nomem(err);
    for (size_t i = 0; i < l->n_tap; i++) {
        oct_buf path = OCT_BUF_INIT;
        const oct_value_location at =
            s->scheme[i] ? oct_value_location_of(s->model->graph, s->name[i], &path) : (oct_value_location){ .n = 0 };
        const char *where = path.failed ? NULL : oct_arena_strdup(arena, oct_buf_str(&path));
        oct_buf_free(&path);
        if (!where)
            return oct_nomem(err);
        if (!at.n)
            continue;
        const oct_node *node = ev_computing_node(at.g, at.value);
        oct_eval_layer *e = &list[n++];
        *e = (oct_eval_layer){
            .value = l->tap[i], .other = s->pair[i]->other, .how = s->pair[i]->how, .order = l->order[i]
        };
        if (!(e->scheme = oct_arena_strdup(
                  arena, s->scheme[i]))) /* a scheme that was read from a part exists no longer than the sums */
            return oct_nomem(err);
        e->name = node && node->name[0] ? node->name : e->value;
        if (*where && !(e->name = oct_arena_printf(arena, "%s%s", where, e->name)))
            return oct_nomem(err);
        e->op = node ? node->op : "";
        OCT_TRY(fill(l, s, i, arena, e, err));
        if (is_scaled(s, at.g, node))
            e->weights = (oct_eval_weights){ 0 };
    }
    qsort(list, n, sizeof *list, worst_first);
    *layers = list;
    *n_layers = n;
    return OCT_OK;
}
