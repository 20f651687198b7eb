/* The result of an evaluation, from what was added up over the samples. */
#include "eval/run/eval_int.h"

#include "eval/metrics/bootstrap.h"
#include "kernels/math.h"

#include <math.h>
#include <string.h>

static double risen(double more, const oct_eval_score *c)
{
    return c->reference * oct_expm1(more / c->per_sample);
}

/* Turns the interval of the mean difference of logarithms into one of a factor on the reference. */
static oct_interval as_factors(const oct_interval *d, const oct_eval_score *c)
{
    return (oct_interval){ risen(d->mean, c), risen(d->lo, c), risen(d->hi, c) };
}

/* Sets the interval of the drop from that of the difference. Shares of which no sample has lost or won anything (the
 * words of a text, for example) tell as little as answers that are right or wrong: a sample that differs may be one in
 * n / 4, and lose all. */
static void set_drop(oct_eval_score *c, const oct_paired *p)
{
    const bool equal = oct_metric_in_percent(c->metric) && p->n > 1 && p->up + p->down == 0 && p->sum == 0;
    const bool counts = c->metric->kind == OCT_METRIC_PROPORTION || equal;
    oct_interval d = counts ? oct_paired_proportion(p) : oct_paired_mean(p);
    if (c->metric->kind == OCT_METRIC_TOKENS)
        d = as_factors(&d, c);
    ev_set_drop(c, &d, c->metric->larger_is_better);
    if (!isnan(d.lo))
        c->method = counts ? "Tango's score interval" : oct_paired_mean_method(p->n);
}

oct_interval oct_eval_change(const oct_eval_score *s)
{
    if (!s->metric->larger_is_better || s->metric->lost)
        return (oct_interval){ s->drop, s->lo, s->hi };
    return (oct_interval){ 0 - s->drop, 0 - s->hi, 0 - s->lo }; /* not -s->drop, which makes -0 of 0 */
}

bool oct_eval_has_few(const oct_eval_score *s)
{
    return s->metric->kind != OCT_METRIC_WHOLE && isnan(s->lo) && !isnan(s->drop) && s->n < OCT_BCA_LEAST;
}

bool oct_eval_lacks_interval(const oct_eval_score *s)
{
    return oct_eval_has_few(s) || (s->metric->kind != OCT_METRIC_WHOLE && isnan(s->lo) && isfinite(s->drop));
}

oct_eval_gate oct_eval_judge(const oct_eval_score *s, const oct_drop_limit *limit)
{
    const oct_interval d = { s->drop, s->lo, s->hi };
    oct_eval_gate g = { .allowed = oct_drop_allowed(limit, s->reference),
                        .missed = oct_drop_exceeds(limit, s->reference, s->drop) };
    g.unsure = oct_interval_holds(&d, g.allowed) || oct_eval_lacks_interval(s);
    if (g.unsure)
        g.samples = oct_interval_samples(&d, s->n, g.allowed);
    return g;
}

static double value_of(const oct_metric *m, const ev_tally *t)
{
    const bool tokens = m->kind == OCT_METRIC_TOKENS;
    const double mean = t->n ? t->sum / (tokens ? t->weight : (double)t->n) : NAN;
    return tokens ? oct_exp(mean) : mean;
}

/* The share of samples that guessing gets right: k of the classes. One value is of two classes. */
static double chance_of(const ev_evaluation *e, const oct_metric *m)
{
    const size_t classes = e->kase.single ? 2 : e->kase.classes;
    return m->k && !m->relative && classes > m->k ? (double)m->k / (double)classes : NAN;
}

bool oct_eval_is_guess(const oct_eval_score *s)
{
    enum { ENOUGH = 20 };
    return s->n >= ENOUGH && s->value <= s->chance + 2 * sqrt(s->chance * (1 - s->chance) / (double)s->n);
}

static oct_eval_score score_of(const ev_evaluation *e, size_t k, size_t m)
{
    const oct_metric *metric = e->metric[m];
    const ev_subject *s = &e->subject[k];
    oct_eval_score c = { .metric = metric,
                         .value = NAN,
                         .reference = NAN,
                         .drop = NAN,
                         .lo = NAN,
                         .hi = NAN,
                         .chance = chance_of(e, metric) };
    if ((k == 0 && metric->relative) || metric->kind == OCT_METRIC_SET)
        return c;
    if (metric->whole) {
        c.value = metric->whole(s->total, e->n_out);
        c.drop = metric->loss(s->total, e->n_out);
        c.n = (uint64_t)e->given;
        return c;
    }
    const ev_tally *t = &s->tally[m], *ref = &e->subject[0].tally[m];
    c.one_number = e->one_number && m == 0;
    c.n = c.one_number ? (uint64_t)e->given : t->n;
    c.lost = t->lost;
    c.value = value_of(metric, t);
    if (k == 0 || !ref->n)
        return c;
    c.reference = value_of(metric, ref);
    c.per_sample = t->weight / (double)t->n;
    set_drop(&c, &t->pair);
    if (t->lost && metric->kind != OCT_METRIC_PROPORTION) { /* nothing says what the lost ones are worth */
        c.drop = INFINITY;
        c.lo = c.hi = NAN;
        c.method = NULL;
        c.within_noise = false;
    }
    return c;
}

static double agreement_of(const ev_evaluation *e, size_t k)
{
    for (size_t m = 0; m < e->n_metric && k > 0; m++)
        if (strcmp(e->metric[m]->name, "agreement") == 0 && e->subject[k].tally[m].n)
            return e->subject[k].tally[m].sum / (double)e->subject[k].tally[m].n;
    return NAN;
}

/* What the runtime of a twin computes otherwise. */
static oct_status fill_device(const ev_evaluation *e, const ev_subject *s, oct_arena *a, oct_eval_differences *to,
                              oct_err *err)
{
    const oct_graph *g = s->model->graph;
    const oct_twin_difference *f;
    while (oct_twin_differences_at(s->differences, to->layers))
        to->layers++;
    to->runtime = oct_arena_strdup(a, s->model->twin->runtime);
    to->layer = oct_arena_calloc(a, to->layers + 1, sizeof *to->layer);
    to->output = oct_arena_calloc(a, e->n_out + 1, sizeof *to->output);
    if (!to->runtime || !to->layer || !to->output)
        return oct_nomem(err);
    for (size_t i = 0; (f = oct_twin_differences_at(s->differences, i)); i++) {
        const int v = oct_graph_find(g, f->value);
        const oct_node *node = v >= 0 ? ev_computing_node(g, v) : NULL;
        if (!f->own)
            continue;
        oct_eval_difference *x = &to->layer[to->n++];
        *x = (oct_eval_difference){ .op = f->op,
                                    .values = f->values,
                                    .own = f->own,
                                    .all = f->all,
                                    .own_most = f->own_most,
                                    .all_most = f->all_most };
        if (!(x->name = oct_arena_strdup(a, node && node->name[0] ? node->name : f->value)))
            return oct_nomem(err);
    }
    for (size_t i = 0; i < e->n_out; i++) {
        const oct_twin_output_difference *o = oct_twin_differences_output(s->differences, s->from[i]);
        to->output[i] =
            (oct_eval_output_difference){ .name = e->models[0].graph->value[e->models[0].graph->output[i]].name,
                                          .values = o->values,
                                          .differ = o->differ,
                                          .most = o->most };
    }
    return OCT_OK;
}

static oct_status fill_model(const ev_evaluation *e, size_t k, oct_eval_result *r, oct_err *err)
{
    const ev_subject *s = &e->subject[k];
    oct_eval_model_result *m = &r->models[k];
    const char *runner = oct_engine_name(&s->engine);
    m->name = oct_arena_strdup(r->arena, s->model->name);
    if (runner && !(m->runner = oct_arena_strdup(r->arena, runner)))
        return oct_nomem(err);
    m->size_bytes = s->model->size_bytes;
    m->batch_scales = e->most_rows > 1 && oct_op_shares_scales(s->model->graph);
    m->scores = oct_arena_calloc(r->arena, e->n_metric + 1, sizeof *m->scores);
    m->outputs = oct_arena_calloc(r->arena, e->n_out + 1, sizeof *m->outputs);
    if (!m->name || !m->scores || !m->outputs)
        return oct_nomem(err);
    for (size_t i = 0; i < e->n_metric; i++) {
        m->scores[i] = score_of(e, k, i);
        if (e->metric[i]->kind == OCT_METRIC_SET && (k > 0 || !e->metric[i]->relative))
            OCT_TRY(ev_sets_score(e->sets, k, e->o->pool, &m->scores[i], err));
    }
    if (e->o->per_class)
        OCT_TRY(ev_sets_classes(e->sets, k, r->arena, &m->classes, err));
    m->n_fit = s->n_fit;
    m->fit = oct_arena_alloc(r->arena, (s->n_fit + 1) * sizeof *m->fit);
    if (!m->fit)
        return oct_nomem(err);
    memcpy(m->fit, s->fit, s->n_fit * sizeof *m->fit);
    m->agreement = agreement_of(e, k);
    m->sqnr_db = oct_metric_sqnr(s->total, e->n_out);
    for (size_t i = 0; i < e->n_out; i++) {
        ev_output_result(e, s, i, &m->outputs[i]);
        m->broken |= m->outputs[i].broken;
    }
    if (s->differences && e->layer_samples)
        OCT_TRY(fill_device(e, s, r->arena, &m->device, err));
    if (e->layers && k > 0)
        OCT_TRY(ev_layers_result(e->layers, k, r->arena, &m->layers, &m->n_layers, err));
    return OCT_OK;
}

static oct_status time_models(ev_evaluation *e, oct_eval_result *r, oct_err *err)
{
    const oct_eval_options *o = e->o;
    if (o->kept && !(o->latency_seconds > 0))
        return OCT_OK;
    ev_timed *t = oct_arena_calloc(e->arena, e->n_subject, sizeof *t);
    if (!t)
        return oct_nomem(err);
    for (size_t k = 0; k < e->n_subject; k++) {
        ev_subject *s = &e->subject[k];
        const bool enough =
            o->time_samples && o->latency_seconds > 0 && s->n_seconds > 0 && s->n_seconds >= (size_t)o->latency_runs;
        t[k] = (ev_timed){ s->model->name, &s->engine, s->seconds, enough ? s->n_seconds : 0 };
    }
    oct_pool_alone(o->pool, o->time_samples);
    OCT_TRY(ev_time_models(t, e->n_subject, e->first, e->first_rows, o, r, err));
    return o->profile ? ev_profile_models(t, e->n_subject, e->first, e->models, o->pool, r, err) : OCT_OK;
}

oct_status ev_fill_result(ev_evaluation *e, oct_eval_result *r, oct_err *err)
{
    r->n_models = e->n_subject;
    r->n_scores = e->n_metric;
    r->n_outputs = e->n_out;
    r->samples = e->given;
    r->unlabelled = e->labels ? e->unlabelled : 0;
    r->labels_too_late = e->labels && !e->kase.labels;
    r->bad_samples = e->bad;
    r->layer_samples = e->layer_samples;
    r->batch = e->fixed_batch > 1 ? (size_t)e->fixed_batch : e->o->batch ? e->o->batch : 1;
    r->threads = e->o->time_samples ? 1 : oct_pool_threads(e->o->pool);
    if (!(r->models = oct_arena_calloc(r->arena, r->n_models, sizeof *r->models)))
        return oct_nomem(err);
    OCT_TRY(ev_sets_finish(e->sets, err));
    for (size_t k = 0; k < e->n_subject; k++)
        for (size_t i = 0; i < e->n_out; i++)
            e->subject[k].total[i] = oct_error_sum_value(&e->subject[k].sum[i]);
    for (size_t k = 0; k < e->n_subject; k++)
        OCT_TRY(fill_model(e, k, r, err));
    return time_models(e, r, err);
}

void oct_eval_free(oct_eval_result *r)
{
    if (r)
        oct_arena_destroy(r->arena);
}
