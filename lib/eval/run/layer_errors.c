/* Compares layer by layer. The reference model's values are kept for one batch, and those of the other models are
 * compared while they are computed. Each of the other models runs twice: once unchanged; and once with its values
 * replaced by those of the reference after they were compared. In the second run every layer reads what the reference
 * reads, as far as its quantization parameters can represent that, so that its error is its own.
 *
 * Values of bodies are shown once in each iteration: the k-th time in one model corresponds to the k-th time in the
 * other. */
#include "eval/run/layers_int.h"

#include "eval/pairs/name_map.h"
#include "ops/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the compared values ---- */

/* Which values are computed from inputs. Others may be in constants, which must not be written to. */
static bool *find_varying(oct_arena *a, const oct_graph *g)
{
    bool *varies = oct_arena_calloc(a, g->n_value + 1, sizeof *varies);
    for (size_t k = 0; varies && k < g->n_input; k++)
        varies[g->input[k]] = !g->value[g->input[k]].constant;
    for (size_t i = 0; varies && i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        bool any = false;
        for (int k = 0; k < n->n_in; k++)
            any |= n->in[k] >= 0 && varies[n->in[k]];
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] >= 0)
                varies[n->out[k]] = any;
    }
    return varies;
}

/* Chooses the values of the reference that another model also has. */
static oct_status choose_taps(ev_layers *l, const oct_graph *reference, oct_err *err)
{
    size_t most = 0;
    for (size_t k = 1; k < l->n_side; k++)
        for (size_t i = 0; i < l->side[k].pairs.n; i++)
            most = l->side[k].pairs.pair[i].order >= most ? l->side[k].pairs.pair[i].order + 1 : most;
    l->tap = oct_arena_calloc(l->arena, most + 1, sizeof *l->tap);
    l->order = oct_arena_calloc(l->arena, most + 1, sizeof *l->order);
    l->varies = oct_arena_calloc(l->arena, most + 1, sizeof *l->varies);
    l->kept = oct_arena_calloc(l->arena, most + 1, sizeof *l->kept);
    l->stats = oct_arena_calloc(l->arena, most + 1, sizeof *l->stats);
    const bool *varies = find_varying(l->arena, reference);
    if (!l->tap || !l->order || !l->varies || !l->kept || !l->stats || !varies)
        return oct_nomem(err);
    for (size_t k = 1; k < l->n_side; k++)
        for (size_t i = 0; i < l->side[k].pairs.n; i++)
            l->tap[l->side[k].pairs.pair[i].order] = l->side[k].pairs.pair[i].value;
    for (size_t i = 0; i < most; i++) {
        if (!l->tap[i])
            continue;
        const int v = oct_graph_find(reference, l->tap[i]);
        l->varies[l->n_tap] = v >= 0 && varies[v];
        l->order[l->n_tap] = i;
        oct_stats_init(&l->stats[l->n_tap]);
        l->tap[l->n_tap++] = l->tap[i];
    }
    return OCT_OK;
}

/* Copies the elements of x to y in the other order of dimensions. The tensor that has dims[rank], y or (back) x, has as
 * its dimension i dimension axes[i] of the other one. */
static void permute(const float *x, int rank, const int64_t *dims, const int *axes, bool back, float *y)
{
    int64_t step[OCT_MAX_RANK], stride[OCT_MAX_RANK], at[OCT_MAX_RANK] = { 0 }, n = 1;
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = n;
        for (int i = 0; i < rank; i++)
            n *= axes[i] == d ? dims[i] : 1;
    }
    for (int i = 0; i < rank; i++)
        step[i] = stride[axes[i]];
    for (int64_t e = 0, from = 0; e < n; e++) {
        y[back ? from : e] = x[back ? e : from];
        for (int d = rank - 1; d >= 0; d--) {
            from += step[d];
            if (++at[d] < dims[d])
                break;
            from -= step[d] * dims[d];
            at[d] = 0;
        }
    }
}

/* Reads the numbers of a shown value, as this model has them, in the reference's order of dimensions. */
static oct_status read_value(const ev_side *s, size_t i, const oct_operand *t, float *to, oct_err *err)
{
    const oct_pair *p = s->pair[i];
    if (!p || !p->rank || p->rank != t->rank)
        return oct_operand_to_f32(t, to, err);
    OCT_TRY(ev_reserve(&s->l->moved, (size_t)t->count, err));
    OCT_TRY(oct_operand_to_f32(t, s->l->moved.v, err));
    permute(s->l->moved.v, t->rank, t->dims, p->axes, true, to);
    return OCT_OK;
}

/* How many rows of a tensor belong to samples that count. */
static size_t rows_of(const ev_layers *l, const oct_operand *t)
{
    int64_t first;
    const int64_t n = (int64_t)l->n * oct_row_elements(t->rank, t->dims, l->rows, &first);
    return (size_t)(n < t->count ? n : t->count);
}

/* The dimensions of a shown value, in the reference's order. */
static void real_dims(const ev_side *s, size_t i, const oct_operand *t, oct_operand *as)
{
    const oct_pair *p = s->pair[i];
    *as = *t;
    for (int d = 0; p && p->rank == t->rank && d < t->rank; d++)
        as->dims[p->axes[d]] = t->dims[d];
}

/* Makes room for n more elements after the kept ones. */
static oct_status extend(ev_shown *k, int64_t n, oct_err *err)
{
    const size_t used = k->n ? (size_t)k->end[k->n - 1] : 0, need = used + (size_t)n;
    if (!used || need <= k->values.cap)
        return ev_reserve(&k->values, need, err);
    const size_t cap = need > 2 * k->values.cap ? need : 2 * k->values.cap;
    float *v = oct_realloc(k->values.v, used * sizeof *v, cap * sizeof *v);
    if (!v)
        return oct_nomem(err);
    k->values = (ev_floats){ v, cap };
    return OCT_OK;
}

static oct_status keep_value(void *arg, size_t shown, const oct_operand *t, oct_err *err)
{
    ev_side *s = arg;
    ev_layers *l = s->l;
    const size_t i = s->tap_of[shown];
    ev_shown *k = &l->kept[i];
    const int64_t used = k->n ? k->end[k->n - 1] : 0;
    k->full |= k->n && t->count > MOST_AGAIN - l->again;
    if (k->full)
        return OCT_OK;
    l->again += k->n ? t->count : 0;
    OCT_TRY(extend(k, t->count, err));
    OCT_TRY(oct_operand_to_f32(t, k->values.v + used, err));
    if (!OCT_GROW(l->arena, k->end, k->n, k->cap))
        return oct_nomem(err);
    k->end[k->n++] = used + t->count;
    const size_t n = rows_of(l, t);
    OCT_TRY(ev_channels_add(&s->channels[i], l->arena, t, k->values.v + used, n, err));
    const oct_status st = oct_stats_update(&l->stats[i], k->values.v + used, n, NULL);
    return st == OCT_ENOMEM ? oct_nomem(err) : OCT_OK; /* a value that is not finite is in no histogram */
}

/* Replaces a value by the kept values of the reference, which have its order of dimensions. A value that is equal is
 * not written to, because it may be in the inputs of the run. */
static oct_status replace_value(const ev_side *s, size_t i, const float *kept, const oct_operand *t, oct_err *err)
{
    const ev_layers *l = s->l;
    const size_t bytes = (size_t)t->count * sizeof(float);
    const oct_scaled_channels *scaled = oct_scaled_find(s->scaled, s->n_scaled, s->name[i]);
    const oct_pair *p = s->pair[i];
    if (!l->varies[i] || memcmp(kept, l->scratch.v, bytes) == 0)
        return OCT_OK;
    if (p->rank && p->rank == t->rank)
        permute(kept, t->rank, t->dims, p->axes, false, l->scratch.v);
    else
        memcpy(l->scratch.v, kept, bytes);
    if (scaled)
        oct_scaled_undo(scaled, t->rank, t->dims, true, l->scratch.v);
    const oct_status st = oct_operand_from_f32(t, l->scratch.v, err);
    return st == OCT_EUNSUPPORTED ? OCT_OK
                                  : st; /* then the error of the layers that read it includes the error of the value */
}

/* Counts the quantized values and channels in a run without replaced values. real: the reference's values; t has its
 * dimensions. */
static oct_status note_codes(ev_side *s, size_t i, const float *real, const oct_operand *t, oct_err *err)
{
    ev_codes *c = &s->codes[i];
    const size_t n = rows_of(s->l, t);
    if (!c->known) {
        c->range = ev_range_of(t->q ? t->q : s->pair[i]->quant);
        c->known = true;
    }
    ev_codes_add(c, real, s->l->scratch.v, n);
    return ev_channels_add(&s->channels[i], s->l->arena, t, s->l->scratch.v, n, err);
}

static oct_status compare_value(void *arg, size_t shown, const oct_operand *t, oct_err *err)
{
    ev_side *s = arg;
    ev_layers *l = s->l;
    const size_t i = s->tap_of[shown], at = s->shown[i]++;
    const ev_shown *kept = &l->kept[i];
    if (at >= kept->n)
        return OCT_OK;
    const int64_t begin = at ? kept->end[at - 1] : 0;
    if (kept->end[at] - begin != t->count)
        return OCT_OK;
    const float *real = kept->values.v + begin;
    oct_operand as;
    real_dims(s, i, t, &as);
    const oct_scaled_channels *scaled = oct_scaled_find(s->scaled, s->n_scaled, s->name[i]);
    OCT_TRY(ev_reserve(&l->scratch, (size_t)t->count, err));
    OCT_TRY(read_value(s, i, t, l->scratch.v, err));
    if (!s->scheme[i]) {
        s->scheme[i] = oct_operand_scheme(t);
        s->news = true;
    }
    if (!l->replacing && !scaled)
        OCT_TRY(note_codes(s, i, real, &as, err));
    if (scaled)
        oct_scaled_undo(scaled, t->rank, t->dims, false, l->scratch.v);
    int64_t first, row = oct_row_elements(as.rank, as.dims, l->rows, &first);
    for (size_t k = 0; k < l->n && (int64_t)(k + 1) * row <= t->count; k++) {
        oct_error e = { 0 };
        oct_error_add(&e, real + k * (size_t)row, l->scratch.v + k * (size_t)row, (size_t)row);
        oct_error_sum_add(l->replacing ? &s->own[i] : &s->error[i], &e);
    }
    return l->replacing ? replace_value(s, i, real, t, err) : OCT_OK;
}

static oct_status create_side(ev_layers *l, ev_side *s, oct_pool *pool, const oct_input_desc *feed, size_t n_feed,
                              oct_err *err)
{
    const size_t n = l->n_tap + 1;
    s->error = oct_arena_calloc(l->arena, n, sizeof *s->error);
    s->own = oct_arena_calloc(l->arena, n, sizeof *s->own);
    s->codes = oct_arena_calloc(l->arena, n, sizeof *s->codes);
    s->channels = oct_arena_calloc(l->arena, n, sizeof *s->channels);
    s->scheme = oct_arena_calloc(l->arena, n, sizeof *s->scheme);
    s->shown = oct_arena_calloc(l->arena, n, sizeof *s->shown);
    s->pair = oct_arena_calloc(l->arena, n, sizeof *s->pair);
    s->name = oct_arena_calloc(l->arena, n, sizeof *s->name);
    s->shows = oct_arena_calloc(l->arena, n, sizeof *s->shows);
    s->tap_of = oct_arena_calloc(l->arena, n, sizeof *s->tap_of);
    if (!s->error || !s->own || !s->codes || !s->channels || !s->scheme || !s->shown || !s->pair || !s->name ||
        !s->shows || !s->tap_of)
        return oct_nomem(err);
    OCT_TRY(oct_scaled_read(s->model->scaled, l->arena, &s->scaled, &s->n_scaled, err));
    for (size_t i = 0, k = 0; i < l->n_tap; i++) {
        while (k < s->pairs.n && s->pairs.pair[k].order < l->order[i])
            k++;
        s->pair[i] = k < s->pairs.n && s->pairs.pair[k].order == l->order[i] ? &s->pairs.pair[k] : NULL;
        s->name[i] = s == l->side ? l->tap[i] : s->pair[i] ? s->pair[i]->shown : NULL;
        if (s->name[i]) {
            s->tap_of[s->n_shows] = i;
            s->shows[s->n_shows++] = s->name[i];
        }
    }
    oct_plan_opts opts = { .pool = pool, .taps = s->shows, .n_taps = s->n_shows, .bf16 = s->model->bf16 };
    oct_status st = oct_runner_create(s->model->graph, &opts, feed, n_feed, &s->runner, err);
    if (st != OCT_OK)
        oct_within(err, "%s", s->model->name);
    else
        oct_runner_set_tap(s->runner, s == l->side ? keep_value : compare_value, s);
    return st;
}

static oct_status create(ev_layers *l, const oct_eval_model *models, size_t n_models, oct_pool *pool,
                         const oct_input_desc *feed, size_t n_feed, oct_err *err)
{
    if (!(l->side = oct_arena_calloc(l->arena, n_models, sizeof *l->side)))
        return oct_nomem(err);
    l->n_side = n_models;
    for (size_t k = 0; k < n_models; k++) {
        l->side[k].l = l;
        l->side[k].model = &models[k];
        if (k)
            OCT_TRY(oct_pairs_find(models[0].graph, models[k].graph, &l->side[k].pairs, err));
    }
    OCT_TRY(choose_taps(l, models[0].graph, err));
    for (size_t k = 0; k < n_models; k++)
        OCT_TRY(create_side(l, &l->side[k], pool, feed, n_feed, err));
    return OCT_OK;
}

oct_status ev_layers_create(const oct_eval_model *models, size_t n_models, oct_pool *pool, const oct_input_desc *feed,
                            size_t n_feed, ev_layers **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    ev_layers *l = a ? oct_arena_calloc(a, 1, sizeof *l) : NULL;
    if (!l) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    l->arena = a;
    const oct_status s = create(l, models, n_models, pool, feed, n_feed, err);
    if (s != OCT_OK) {
        ev_layers_destroy(l);
        return s;
    }
    *out = l;
    return OCT_OK;
}

void ev_layers_destroy(ev_layers *l)
{
    if (!l)
        return;
    for (size_t k = 0; k < l->n_side; k++) {
        oct_runner_destroy(l->side[k].runner);
        oct_pairs_free(&l->side[k].pairs);
    }
    for (size_t i = 0; l->stats && i < l->n_tap; i++) {
        ev_release(&l->kept[i].values);
        oct_stats_free(&l->stats[i]);
    }
    ev_release(&l->scratch);
    ev_release(&l->moved);
    oct_arena_destroy(l->arena);
}

/* ---- running ---- */

/* Names the scheme of each value: that on which the step of its layer computes. Integer steps can have float results.
 * The steps of a branch exist only after it was taken. */
static oct_status name_schemes(const ev_layers *l, ev_side *s, const oct_plan *p, oct_err *err)
{
    oct_name_map steps;
    oct_arena *a = oct_arena_create();
    oct_status status = a ? oct_name_map_init(&steps, oct_plan_n_steps(p), a, err) : oct_nomem(err);
    for (size_t i = 0; status == OCT_OK && i < oct_plan_n_steps(p); i++)
        oct_name_map_add(&steps, oct_plan_step(p, i).name, i);
    for (size_t i = 0; status == OCT_OK && i < l->n_tap; i++) {
        const oct_value_location at =
            s->scheme[i] ? oct_value_location_of(s->model->graph, s->name[i], NULL) : (oct_value_location){ .n = 0 };
        const oct_node *n = at.n ? ev_computing_node(at.g, at.value) : NULL;
        const size_t step = n && *n->name ? oct_name_map_find(&steps, n->name) : SIZE_MAX;
        s->scheme[i] = step != SIZE_MAX ? oct_plan_step(p, step).scheme : s->scheme[i];
    }
    oct_arena_destroy(a);
    s->news &= status != OCT_OK;
    return status;
}

/* own: layers read the values of the float model. */
static oct_status run_side(ev_layers *l, ev_side *s, const oct_array *arrays, const oct_array *own, oct_err *err)
{
    oct_plan *p;
    l->replacing = false;
    memset(s->shown, 0, l->n_tap * sizeof *s->shown);
    OCT_TRY(oct_runner_run(s->runner, arrays, &p, err));
    if (s->news)
        OCT_TRY(name_schemes(l, s, p, err));
    if (s == l->side || l->no_own)
        return OCT_OK;
    l->replacing = true;
    memset(s->shown, 0, l->n_tap * sizeof *s->shown);
    bool shown;
    const oct_status st = oct_runner_begin(s->runner, own, &p, err);
    if (st == OCT_OK)
        return oct_plan_advance(p, OCT_NO_TAP, &shown, err);
    l->no_own = st == OCT_EUNSUPPORTED; /* the model runs in stages, and its results may be in constants */
    return l->no_own ? OCT_OK : st;
}

oct_status ev_layers_feed(ev_layers *l, const oct_array *const *arrays, int64_t rows, size_t n, oct_err *err)
{
    l->rows = rows;
    l->n = n;
    l->again = 0;
    for (size_t i = 0; i < l->n_tap; i++) {
        l->kept[i].n = 0;
        l->kept[i].full = false;
    }
    for (size_t k = 0; k < l->n_side; k++) {
        const oct_status s = run_side(l, &l->side[k], arrays[k], arrays[0], err);
        if (s != OCT_OK) {
            oct_within(err, "%s", l->side[k].model->name);
            return s;
        }
    }
    return OCT_OK;
}
