/* The sets of an evaluation, on which some metrics are defined, for each model. */
#include "eval/run/eval_int.h"
#include "eval/sets/maps.h"
#include "eval/sets/sequences.h"
#include "eval/sets/average_precision.h"
#include "base/bytes.h"

#include "eval/metrics/bootstrap.h"

#include <math.h>

struct ev_sets {
    oct_set_kind kind;
    size_t n_models;
    oct_set **of_task, **of_values; /* per model; NULL: no metric needs such sets */
};

void ev_sets_destroy(ev_sets *s)
{
    for (size_t k = 0; s && k < s->n_models; k++) {
        oct_set_free(s->of_task ? s->of_task[k] : NULL);
        oct_set_free(s->of_values ? s->of_values[k] : NULL);
    }
    if (s) {
        oct_free(s->of_task);
        oct_free(s->of_values);
    }
    oct_free(s);
}

static oct_status create(size_t n, oct_set_kind kind, const oct_judging *j, oct_set ***set, oct_err *err)
{
    if (!(*set = oct_calloc(n, sizeof **set)))
        return oct_nomem(err);
    for (size_t k = 0; k < n; k++)
        OCT_TRY(oct_set_create(kind, j, &(*set)[k], err));
    return OCT_OK;
}

oct_status ev_sets_create(const oct_judging *j, const oct_metric *const *metric, size_t n_metric, bool per_class,
                          size_t n_models, ev_sets **out, oct_err *err)
{
    const oct_set_kind kind = oct_judging_kind(j);
    bool task = per_class &&
                (kind == OCT_SET_CLASSES || kind == OCT_SET_BOXES || kind == OCT_SET_MAPS || kind == OCT_SET_SEQUENCES),
         values = false;
    for (size_t i = 0; i < n_metric; i++) {
        task |= metric[i]->set[kind] != NULL;
        values |= metric[i]->set[OCT_SET_VALUES] != NULL;
    }
    ev_sets *s = oct_calloc(1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    *s = (ev_sets){ .kind = kind, .n_models = n_models };
    oct_status st = task ? create(n_models, kind, j, &s->of_task, err) : OCT_OK;
    if (st == OCT_OK && values)
        st = create(n_models, OCT_SET_VALUES, j, &s->of_values, err);
    if (st != OCT_OK) {
        ev_sets_destroy(s);
        return st;
    }
    *out = s;
    return OCT_OK;
}

bool ev_sets_wanted(const ev_sets *s)
{
    return s->of_task || s->of_values;
}

oct_status ev_sets_add(ev_sets *s, size_t k, const oct_set_view *v, oct_err *err)
{
    if (s->of_task)
        OCT_TRY(s->of_task[k]->type->add(s->of_task[k], v, err));
    return s->of_values ? s->of_values[k]->type->add(s->of_values[k], v, err) : OCT_OK;
}

void ev_sets_set_apart(ev_sets *s)
{
    for (size_t k = 0; k < s->n_models; k++) {
        if (s->of_task)
            s->of_task[k]->apart = true;
        if (s->of_values)
            s->of_values[k]->apart = true;
    }
}

void ev_sets_save(ev_sets *s, size_t k, oct_buf *b)
{
    if (s->of_task)
        s->of_task[k]->type->save(s->of_task[k], b);
    if (s->of_values)
        s->of_values[k]->type->save(s->of_values[k], b);
}

/* Loads a sample for model k. The same samples must count for every model. */
static oct_status load(oct_set **set, size_t k, oct_bytes *r, oct_err *err)
{
    OCT_TRY(set[k]->type->load(set[k], r, err));
    r->bad |= set[k]->n != set[0]->n;
    return OCT_OK;
}

oct_status ev_sets_load(ev_sets *s, size_t k, oct_bytes *r, oct_err *err)
{
    if (s->of_task)
        OCT_TRY(load(s->of_task, k, r, err));
    return s->of_values ? load(s->of_values, k, r, err) : OCT_OK;
}

oct_status ev_sets_finish(ev_sets *s, oct_err *err)
{
    for (size_t k = 0; k < s->n_models; k++) {
        if (s->of_task)
            OCT_TRY(oct_set_finish(s->of_task[k], err));
        if (s->of_values)
            OCT_TRY(oct_set_finish(s->of_values[k], err));
    }
    return OCT_OK;
}

oct_status ev_sets_score(const ev_sets *s, size_t k, oct_pool *pool, oct_eval_score *c, oct_err *err)
{
    const oct_metric *m = c->metric;
    const bool values = m->set[OCT_SET_VALUES] != NULL;
    oct_set *const *set = values ? s->of_values : s->of_task;
    const oct_set_value fn = m->set[values ? OCT_SET_VALUES : s->kind];
    oct_interval d = { NAN, NAN, NAN };
    c->n = set[k]->n;
    OCT_TRY(oct_set_value_of(set[k], fn, &c->value, err));
    if (k == 0)
        return OCT_OK;
    if (m->relative) {
        OCT_TRY(oct_set_value_of(set[k], m->set_loss, &d.mean, err));
        OCT_TRY(oct_set_interval(NULL, set[k], m->set_loss, pool, &d.lo, &d.hi, err));
        return ev_set_drop(c, &d, false), OCT_OK;
    }
    OCT_TRY(oct_set_value_of(set[0], fn, &c->reference, err));
    d.mean = c->value - c->reference;
    OCT_TRY(oct_set_interval(set[0], set[k], fn, pool, &d.lo, &d.hi, err));
    return ev_set_drop(c, &d, m->larger_is_better), OCT_OK;
}

void ev_set_drop(oct_eval_score *c, const oct_interval *d, bool flip)
{
    c->drop = (flip ? -d->mean : d->mean) + 0.0; /* avoids -0 */
    c->lo = (flip ? -d->hi : d->lo) + 0.0;
    c->hi = (flip ? -d->lo : d->hi) + 0.0;
    c->within_noise = oct_interval_holds(d, 0);
    if (c->metric->kind == OCT_METRIC_SET && !isnan(d->lo))
        c->method = "BCa bootstrap of the set";
}

oct_status ev_sets_classes(const ev_sets *s, size_t k, oct_arena *arena, oct_class_table *t, oct_err *err)
{
    switch (s->of_task ? s->kind : OCT_SET_VALUES) {
    case OCT_SET_CLASSES: return oct_classes_table(s->of_task[k], arena, t, err);
    case OCT_SET_BOXES: return oct_boxes_table(s->of_task[k], arena, t, err);
    case OCT_SET_SEQUENCES: return oct_sequences_table(s->of_task[k], arena, t, err);
    case OCT_SET_MAPS: return oct_maps_table(s->of_task[k], arena, t, err);
    default: return OCT_OK;
    }
}
