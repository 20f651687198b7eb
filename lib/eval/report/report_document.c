/* What was evaluated, as the document that every report prints. Fields do not change; new ones may be added. */
#include "eval/report/report.h"

#include "base/json.h"

#include <math.h>
#include <stddef.h>

/* A value in dB. For equal tensors it is null, and "exact" is set. */
static void put_db(oct_json *j, const char *key, double db)
{
    oct_json_num(j, key, db);
    if (isinf(db) && db > 0)
        oct_json_bool(j, "exact", true);
}

/* A change of a metric's value, whichever way is better, as it is shown. */
static void put_change(oct_json *j, const char *key, oct_interval change)
{
    oct_json_open(j, key, '{');
    oct_json_num(j, "value", change.mean);
    oct_json_num(j, "low", change.lo);
    oct_json_num(j, "high", change.hi);
    oct_json_close(j);
}

/* What the metrics are, in the order in which they are shown. */
static void put_metric_kinds(oct_json *j, const oct_eval_result *r)
{
    oct_json_open(j, "metrics", '[');
    for (size_t i = 0; i < r->n_scores; i++) {
        const oct_metric *m = r->models[0].scores[i].metric;
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "name", m->name);
        oct_json_str(j, "summary", m->summary);
        oct_json_str(j, "unit", m->unit);
        oct_json_bool(j, "percent", oct_metric_in_percent(m));
        oct_json_bool(j, "larger_is_better", m->larger_is_better);
        oct_json_bool(j, "relative", m->relative);
        oct_json_close(j);
    }
    oct_json_close(j);
}

static void put_metrics(oct_json *j, const oct_eval_result *r, const oct_eval_model_result *m)
{
    char words[OCT_DROP_TEXT];
    oct_json_open(j, "metrics", '{');
    for (size_t i = 0; i < r->n_scores; i++)
        if (!isnan(m->scores[i].value))
            oct_json_num(j, m->scores[i].metric->name, m->scores[i].value);
    oct_json_close(j);
    bool any = false;
    for (size_t i = 0; i < r->n_scores; i++)
        any |= !isnan(m->scores[i].drop);
    if (!any)
        return;
    oct_json_open(j, "drop", '{');
    for (size_t i = 0; i < r->n_scores; i++) {
        const oct_eval_score *s = &m->scores[i];
        if (isnan(s->drop))
            continue;
        oct_json_open(j, s->metric->name, '{');
        oct_json_num(j, "value", s->drop);
        oct_json_num(j, "float", s->reference);
        oct_json_num(j, "low", s->lo);
        oct_json_num(j, "high", s->hi);
        oct_json_str(j, "interval", s->method);
        oct_json_bool(j, "within_noise", s->within_noise);
        oct_json_int(j, "samples", (int64_t)s->n);
        put_change(j, "change", oct_eval_change(s));
        oct_json_str(j, "text", oct_report_drop(words, s));
        oct_json_close(j);
    }
    oct_json_close(j);
}

static void put_latency(oct_json *j, const oct_eval_latency *l)
{
    if (!l->runs) {
        oct_json_null(j, "latency_ms");
        return;
    }
    oct_json_open(j, "latency_ms", '{');
    oct_json_num(j, "median", l->median * 1e3);
    oct_json_num(j, "q1", l->q1 * 1e3);
    oct_json_num(j, "q3", l->q3 * 1e3);
    oct_json_int(j, "runs", l->runs);
    oct_json_bool(j, "wide", oct_is_scattered(l->q1, l->median, l->q3));
    oct_json_close(j);
}

void oct_report_json_speed(oct_json *j, const char *key, const oct_eval_speed *s)
{
    static const char *const words[] = { [OCT_SPEED_UNKNOWN] = "unknown",
                                         [OCT_SPEED_SAME] = "same",
                                         [OCT_SPEED_FASTER] = "faster",
                                         [OCT_SPEED_SLOWER] = "slower" };
    const oct_speed_verdict v = oct_eval_speed_judge(s);
    char text[OCT_SPEED_TEXT];
    oct_json_open(j, key, '{');
    oct_json_str(j, "verdict", words[v]);
    oct_json_int(j, "runs", s->runs);
    oct_json_str(j, "text", oct_report_speed(text, s));
    if (v != OCT_SPEED_UNKNOWN) {
        oct_json_num(j, "median", s->median);
        oct_json_num(j, "q1", s->q1);
        oct_json_num(j, "q3", s->q3);
    }
    oct_json_close(j);
}

static void put_output(oct_json *j, const oct_eval_output *o, int64_t samples)
{
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "name", o->name);
    put_db(j, "sqnr_db", o->sqnr_db);
    oct_json_num(j, "cosine", o->cosine);
    oct_json_num(j, "max_abs_error", o->max_abs);
    oct_json_str(j, "holds", oct_output_form_name(o->form));
    oct_json_num(j, "matched", o->matched);
    oct_json_int(j, "compared", (int64_t)o->compared);
    oct_json_int(j, "other_length", (int64_t)o->apart);
    oct_json_int(j, "samples", samples);
    oct_json_int(j, "broken", (int64_t)o->broken);
    oct_json_close(j);
}

static void put_fit(oct_json *j, const void *row)
{
    static const char *const names[] = { "good", "outside", "narrow" };
    const oct_input_fit *f = row;
    oct_json_str(j, "name", f->input);
    oct_json_num(j, "range_low", f->lo);
    oct_json_num(j, "range_high", f->hi);
    oct_json_num(j, "seen_min", f->min);
    oct_json_num(j, "seen_max", f->max);
    oct_json_num(j, "outside", f->n ? (double)f->outside / (double)f->n : 0);
    oct_json_str(j, "fit", names[oct_input_fit_judge(f)]);
}

static void put_own(oct_json *j, double db)
{
    oct_json_num(j, "own_sqnr_db", db);
    if (isinf(db) && db > 0)
        oct_json_bool(j, "own_exact", true);
}

/* The quantization of the value, and its effect on the float model's values. */
static void put_range(oct_json *j, const oct_eval_layer *l)
{
    const oct_eval_range *r = &l->range;
    if (r->dtype == OCT_UNDEFINED) {
        oct_json_null(j, "range");
        return;
    }
    oct_json_open(j, "range", '{');
    oct_json_str(j, "type", oct_dtype_name(r->dtype));
    oct_json_num(j, "scale", r->scale);
    oct_json_int(j, "zero_point", r->zero);
    oct_json_num(j, "low", r->lo);
    oct_json_num(j, "high", r->hi);
    oct_json_num(j, "clipped", l->clipped);
    oct_json_num(j, "saturated", l->saturated);
    oct_json_num(j, "codes_used", l->used);
    oct_json_close(j);
}

static void put_histogram(oct_json *j, const oct_eval_histogram *h)
{
    oct_json_open(j, "histogram", '{');
    oct_json_int(j, "values", (int64_t)h->n);
    oct_json_num(j, "min", h->min);
    oct_json_num(j, "max", h->max);
    oct_json_num(j, "low", h->lo);
    oct_json_num(j, "high", h->hi);
    oct_json_int(j, "below", (int64_t)h->below);
    oct_json_int(j, "above", (int64_t)h->above);
    oct_json_open(j, "bins", '[');
    for (int i = 0; i < OCT_LAYER_BINS; i++)
        oct_json_int(j, NULL, (int64_t)h->bin[i]);
    oct_json_close(j);
    oct_json_close(j);
}

static void put_channel_numbers(oct_json *j, const char *key, const oct_eval_weights *w, size_t member)
{
    oct_json_open(j, key, '[');
    for (size_t i = 0; i < w->n_channel; i++)
        oct_json_num(j, NULL, *(const double *)((const char *)&w->channel[i] + member));
    oct_json_close(j);
}

static void put_weights(oct_json *j, const oct_eval_weights *w)
{
    oct_json_open(j, "weights", '{');
    oct_json_str(j, "name", w->name);
    oct_json_str(j, "type", oct_dtype_name(w->dtype));
    oct_json_int(j, "count", w->count);
    oct_json_bool(j, "per_channel", w->per_channel);
    oct_json_int(j, "block", w->block);
    put_db(j, "sqnr_db", w->sqnr_db);
    oct_json_num(j, "clipped", w->clipped);
    oct_json_open(j, "channels", '{');
    put_channel_numbers(j, "sqnr_db", w, offsetof(oct_eval_channel, sqnr_db));
    put_channel_numbers(j, "scale", w, offsetof(oct_eval_channel, scale));
    put_channel_numbers(j, "clipped", w, offsetof(oct_eval_channel, clipped));
    oct_json_close(j);
    oct_json_close(j);
}

static void put_layer(oct_json *j, const void *row)
{
    const oct_eval_layer *l = row;
    oct_json_str(j, "name", l->name);
    oct_json_str(j, "op", l->op);
    oct_json_str(j, "scheme", l->scheme);
    put_db(j, "sqnr_db", l->sqnr_db);
    if (l->has_own)
        put_own(j, l->own_sqnr_db);
    oct_json_str(j, "value", l->value);
    oct_json_str(j, "other", l->other);
    oct_json_str(j, "paired_by", oct_pair_word(l->how));
    oct_json_int(j, "order", (int64_t)l->order);
}

static void put_whole_layer(oct_json *j, const void *row)
{
    const oct_eval_layer *l = row;
    put_layer(j, row);
    put_range(j, l);
    if (l->channels) {
        oct_json_int(j, "channels", l->channels);
        oct_json_int(j, "dead_channels", l->dead);
    }
    if (l->histogram.n)
        put_histogram(j, &l->histogram);
    if (l->weights.name)
        put_weights(j, &l->weights);
}

static void put_layers(oct_json *j, const oct_eval_model_result *m, bool whole)
{
    oct_json_rows(j, "layers", m->layers, m->n_layers, sizeof *m->layers, whole ? put_whole_layer : put_layer);
}

static void put_difference(oct_json *j, const void *row)
{
    const oct_eval_difference *l = row;
    oct_json_str(j, "name", l->name);
    oct_json_str(j, "op", l->op);
    oct_json_int(j, "values", (int64_t)l->values);
    oct_json_int(j, "differ", (int64_t)l->own);
    oct_json_int(j, "most_steps", l->own_most);
    oct_json_int(j, "differ_in_all", (int64_t)l->all);
    oct_json_int(j, "most_steps_in_all", l->all_most);
}

static void put_output_difference(oct_json *j, const void *row)
{
    const oct_eval_output_difference *o = row;
    oct_json_str(j, "name", o->name);
    oct_json_int(j, "values", (int64_t)o->values);
    oct_json_int(j, "differ", (int64_t)o->differ);
    oct_json_num(j, "max_abs", o->most);
}

static void put_device(oct_json *j, const oct_eval_result *r, const oct_eval_differences *d)
{
    char words[OCT_DEVICE_TEXT];
    oct_json_open(j, "device", '{');
    oct_json_str(j, "runtime", d->runtime);
    oct_json_int(j, "samples", r->layer_samples);
    oct_json_int(j, "compared_layers", (int64_t)d->layers);
    oct_json_rows(j, "layers", d->layer, d->n, sizeof *d->layer, put_difference);
    oct_json_rows(j, "outputs", d->output, r->n_outputs, sizeof *d->output, put_output_difference);
    oct_json_str(j, "text", oct_report_device(words, r, d));
    oct_json_close(j);
}

static void put_class(oct_json *j, const oct_class_table *t, const oct_class_row *c)
{
    oct_json_open(j, NULL, '{');
    oct_json_int(j, "class", c->class_number);
    oct_json_int(j, "samples", (int64_t)c->samples);
    oct_json_num(j, "precision", c->precision);
    oct_json_num(j, "recall", c->recall);
    oct_json_num(j, "f1", c->f1);
    if (t->own)
        oct_json_num(j, t->own, c->own);
    oct_json_close(j);
}

static void put_confused(oct_json *j, const void *row)
{
    const oct_confused *c = row;
    oct_json_int(j, "label", c->label);
    oct_json_int(j, "taken_for", c->taken_for);
    oct_json_int(j, "samples", (int64_t)c->samples);
}

static void put_classes(oct_json *j, const oct_class_table *t)
{
    oct_json_str(j, "class_counts", t->counts ? t->counts : "samples");
    oct_json_str(j, "class_metric", t->own);
    oct_json_open(j, "classes", '[');
    for (size_t i = 0; i < t->n_rows; i++)
        put_class(j, t, &t->row[i]);
    oct_json_close(j);
    if (!t->own) /* only a sample that has a class is taken for one */
        oct_json_rows(j, "confusion", t->cell, t->n_cells, sizeof *t->cell, put_confused);
}

static void put_step(oct_json *j, const oct_eval_step *s, double whole)
{
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "name", s->name);
    oct_json_str(j, "op", s->op);
    oct_json_str(j, "scheme", s->scheme);
    if (*s->algorithm)
        oct_json_str(j, "algorithm", s->algorithm);
    if (*s->kernel)
        oct_json_str(j, "kernel", s->kernel);
    oct_json_num(j, "ms", s->seconds * 1e3);
    oct_json_bool(j, "wide", s->scattered);
    oct_json_int(j, "macs", (int64_t)s->macs);
    oct_json_int(j, "bytes", (int64_t)s->bytes);
    oct_json_num(j, "share", whole > 0 ? s->seconds / whole : 0);
    oct_json_num(j, "roof", s->roof);
    oct_json_close(j);
}

static void put_steps(oct_json *j, const oct_eval_model_result *m)
{
    double whole = 0;
    for (size_t i = 0; i < m->n_steps; i++)
        whole += m->steps[i].seconds;
    oct_json_open(j, "profile", '[');
    for (size_t i = 0; i < m->n_steps; i++)
        put_step(j, &m->steps[i], whole);
    oct_json_close(j);
}

static void put_cost(oct_json *j, const char *key, const oct_eval_cost *c)
{
    if (!c->steps) {
        oct_json_null(j, key);
        return;
    }
    oct_json_open(j, key, '{');
    oct_json_str(j, "scheme", c->scheme);
    oct_json_int(j, "steps", (int64_t)c->steps);
    oct_json_num(j, "ms", c->seconds * 1e3);
    oct_json_num(j, "q1", c->q1 * 1e3);
    oct_json_num(j, "q3", c->q3 * 1e3);
    oct_json_bool(j, "wide", c->scattered);
    oct_json_int(j, "macs", (int64_t)c->macs);
    oct_json_int(j, "bytes", (int64_t)c->bytes);
    oct_json_int(j, "weight_bytes", (int64_t)c->weights);
    oct_json_int(j, "result_bytes", (int64_t)c->made);
    oct_json_num(j, "roof", c->roof);
    oct_json_close(j);
}

static void put_cost_row(oct_json *j, const void *row)
{
    const oct_eval_cost_row *c = row;
    oct_json_str(j, "name", c->name);
    oct_json_str(j, "op", c->op);
    put_cost(j, "float", &c->was);
    put_cost(j, "quant", &c->is);
    oct_json_num(j, "faster", oct_eval_cost_faster(&c->was, &c->is));
}

static void put_environment(oct_json *j, const oct_eval_result *r)
{
    const oct_environment *e = &r->environment;
    char text[OCT_ENVIRONMENT_TEXT];
    oct_json_open(j, "environment", '{');
    oct_json_str(j, "cpu", *e->cpu ? e->cpu : NULL);
    oct_json_int(j, "processors", e->processors);
    oct_json_str(j, "isa_available", e->available);
    oct_json_str(j, "isa_used", e->used);
    oct_json_int(j, "threads", r->threads);
    oct_json_num(j, "load", e->load);
    oct_json_str(j, "text", e->used ? oct_report_environment(text, r) : "octet " OCT_VERSION);
    if (r->machine.bytes > 0) {
        oct_json_open(j, "peak", '{');
        oct_json_num(j, "float_gmacs", r->machine.float_macs * 1e-9);
        oct_json_num(j, "int8_gmacs", r->machine.int8_macs * 1e-9);
        oct_json_num(j, "gbytes", r->machine.bytes * 1e-9);
        oct_json_close(j);
    }
    oct_json_close(j);
}

static void put_sweep(oct_json *j, const oct_eval_result *r)
{
    oct_json_open(j, "sweep", '[');
    for (size_t i = 0; i < r->n_sweep; i++) {
        const oct_sweep_cell *c = &r->sweep[i];
        oct_json_open(j, NULL, '{');
        oct_json_int(j, "threads", c->threads);
        oct_json_int(j, "batch", (int64_t)c->batch);
        oct_json_open(j, "models", '[');
        for (size_t k = 0; k < r->n_models; k++) {
            oct_json_open(j, NULL, '{');
            put_latency(j, &c->of[k]);
            if (k)
                oct_report_json_speed(j, "speed", &c->speed[k]);
            oct_json_close(j);
        }
        oct_json_close(j);
        oct_json_close(j);
    }
    oct_json_close(j);
}

/* Fields that compare a model with the float model. */
static void put_comparison(oct_json *j, const oct_eval_result *r, const oct_eval_model_result *m)
{
    const oct_eval_model_result *f = &r->models[0];
    oct_json_num(j, "agreement", m->agreement);
    put_db(j, "output_sqnr_db", m->sqnr_db);
    if (m->speed.runs)
        oct_report_json_speed(j, "speed", &m->speed);
    oct_json_open(j, "ratio", '{');
    oct_json_num(j, "latency", m->latency.runs ? m->latency.median / f->latency.median : NAN);
    oct_json_num(j, "size", f->size_bytes ? (double)m->size_bytes / (double)f->size_bytes : NAN);
    oct_json_close(j);
}

/* Figures from our plan, which another runtime does not report. */
static void put_of_plan(oct_json *j, const oct_eval_model_result *m, const char *key, uint64_t n)
{
    if (m->runner)
        oct_json_null(j, key);
    else
        oct_json_int(j, key, (int64_t)n);
}

/* Layers whose weights are stored in blocks, by the number of bits. */
static void put_blocks(oct_json *j, const oct_eval_model_result *m)
{
    oct_json_open(j, "blocks", '[');
    for (int bits = 1; bits <= OCT_MOST_BLOCK_BITS; bits++)
        if (m->block_steps[bits]) {
            oct_json_open(j, NULL, '{');
            oct_json_int(j, "bits", bits);
            oct_json_int(j, "layers", (int64_t)m->block_steps[bits]);
            oct_json_close(j);
        }
    oct_json_close(j);
}

/* whole: for all that is known of the model; NULL: its figures alone. */
static void put_model(oct_json *j, const char *key, const oct_eval_result *r, size_t k, const oct_report_context *whole)
{
    const oct_eval_model_result *m = &r->models[k];
    oct_json_open(j, key, '{');
    oct_json_str(j, "path", m->name);
    oct_json_str(j, "runner", m->runner);
    put_metrics(j, r, m);
    put_latency(j, &m->latency);
    oct_json_int(j, "size_bytes", (int64_t)m->size_bytes);
    put_of_plan(j, m, "peak_bytes", m->peak_bytes);
    put_of_plan(j, m, "arena_bytes", m->arena_bytes);
    put_of_plan(j, m, "live_bytes", m->live_bytes);
    put_of_plan(j, m, "weighted_layers", m->weighted_steps);
    put_of_plan(j, m, "integer_layers", m->integer_steps);
    put_blocks(j, m);
    oct_json_bool(j, "batch_scales", m->batch_scales);
    if (k > 0) {
        oct_json_open(j, "outputs", '[');
        for (size_t i = 0; i < r->n_outputs; i++)
            put_output(j, &m->outputs[i], r->samples);
        oct_json_close(j);
    }
    if (whole && k > 0) {
        put_comparison(j, r, m);
        put_layers(j, m, true);
    }
    if (m->device.runtime)
        put_device(j, r, &m->device);
    if (m->n_fit)
        oct_json_rows(j, "inputs", m->fit, m->n_fit, sizeof *m->fit, put_fit);
    if (whole && m->classes.n_rows)
        put_classes(j, &m->classes);
    if (whole && m->n_steps)
        put_steps(j, m);
    if (whole && m->n_costs)
        oct_json_rows(j, "costs", m->costs, m->n_costs, sizeof *m->costs, put_cost_row);
    if (whole && whole->put_notes)
        whole->put_notes(j, k, whole->notes);
    oct_json_close(j);
}

static void put_context(oct_json *j, const oct_eval_result *r, const oct_report_context *c)
{
    oct_json_texts(j, "data", c->data, c->n_data);
    oct_json_str(j, "preprocess", c->preprocess);
    oct_json_int(j, "threads", r->threads);
    oct_json_str(j, "isa", r->isa);
    put_environment(j, r);
    if (c->title)
        oct_json_str(j, "title", c->title);
    if (c->which)
        oct_json_str(j, "which_samples", c->which);
    if (c->command)
        oct_json_str(j, "command", c->command);
}

/* The first requested drop, for all models. `gates` has all of them. */
static void put_goal(oct_json *j, const oct_report_context *c)
{
    const oct_gate_result *first = NULL;
    bool met = true, unsure = false;
    uint64_t samples = 0;
    for (size_t i = 0; i < c->n_gates; i++) {
        const oct_gate_result *g = &c->gates[i];
        first = !first && g->gate->kind == OCT_GATE_DROP ? g : first;
        if (!first || g->gate != first->gate)
            continue;
        met &= g->met;
        unsure |= g->unsure;
        samples = g->samples_needed > samples ? g->samples_needed : samples;
    }
    if (!first)
        return;
    oct_json_open(j, "goal", '{');
    oct_json_str(j, "metric", first->score->metric->name);
    oct_json_num(j, "max_drop", first->gate->limit.value);
    oct_json_bool(j, "relative", first->gate->limit.relative);
    oct_json_bool(j, "met", met);
    oct_json_bool(j, "unsure", unsure);
    if (samples)
        oct_json_int(j, "samples_needed", (int64_t)samples);
    oct_json_close(j);
}

static void put_interval(oct_json *j, const oct_gate_result *g)
{
    if (isnan(g->lo)) {
        oct_json_null(j, "interval");
        return;
    }
    oct_json_open(j, "interval", '{');
    oct_json_num(j, "low", g->lo);
    oct_json_num(j, "high", g->hi);
    oct_json_str(j, "method", g->method);
    oct_json_close(j);
}

static void put_before(oct_json *j, const oct_gate_result *g)
{
    oct_json_num(j, "before", g->before);
    if (isinf(g->before) && g->before > 0)
        oct_json_bool(j, "before_exact", true);
}

static void put_gates(oct_json *j, const oct_eval_result *r, const oct_report_context *c)
{
    char words[OCT_GATE_TEXT], title[OCT_GATE_TITLE];
    if (!c->n_gates)
        return;
    bool met = true;
    oct_json_open(j, "gates", '[');
    for (size_t i = 0; i < c->n_gates; i++) {
        const oct_gate_result *g = &c->gates[i];
        met &= g->met;
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "gate", oct_gate_name(g->gate->kind));
        oct_json_str(j, "title", oct_report_gate_title(title, g));
        oct_json_str(j, "metric", g->score ? g->score->metric->name : g->subject);
        oct_json_str(j, "model", r->models[g->model].name);
        oct_json_int(j, "model_number", (int64_t)g->model);
        put_db(j, "estimate", g->estimate);
        put_interval(j, g);
        oct_json_num(j, "limit", g->limit);
        if (!g->subject && g->gate->kind == OCT_GATE_DROP)
            oct_json_num(j, "allowed_change",
                         oct_eval_change(&(oct_eval_score){ .metric = g->score->metric, .drop = g->limit }).mean);
        else if (!g->subject && g->gate->kind == OCT_GATE_AGREEMENT)
            oct_json_num(j, "allowed_change", g->limit - g->score->reference);
        if (g->subject)
            put_before(j, g);
        oct_json_bool(j, "met", g->met);
        oct_json_bool(j, "unsure", g->unsure);
        if (g->samples_needed)
            oct_json_int(j, "samples_needed", (int64_t)g->samples_needed);
        else
            oct_json_null(j, "samples_needed");
        oct_json_str(j, "text", oct_report_gate_result(words, g));
        oct_json_close(j);
    }
    oct_json_close(j);
    oct_json_bool(j, "gates_met", met);
}

void oct_report_document(const oct_eval_result *r, const oct_report_context *c, oct_document *to)
{
    oct_json json = { .to = to }, *j = &json;
    oct_report_open(j, OCT_EVAL_SCHEMA);
    put_context(j, r, c);
    put_metric_kinds(j, r);
    put_goal(j, c);
    put_gates(j, r, c);
    oct_json_int(j, "samples", r->samples);
    oct_json_int(j, "bad_samples", r->bad_samples);
    oct_json_int(j, "layer_samples", r->layer_samples);
    oct_json_int(j, "batch", (int64_t)r->batch);
    oct_json_num(j, "seconds", r->seconds);
    put_model(j, "float", r, 0, NULL);
    if (r->n_models > 1) {
        put_model(j, "quant", r, 1, NULL);
        put_comparison(j, r, &r->models[1]);
        put_layers(j, &r->models[1], false);
    } else {
        oct_json_null(j, "quant");
    }
    oct_json_open(j, "models", '[');
    for (size_t k = 0; k < r->n_models; k++)
        put_model(j, NULL, r, k, c);
    oct_json_close(j);
    if (r->n_sweep)
        put_sweep(j, r);
    if (c->n_bad)
        oct_json_texts(j, "bad", c->bad, c->n_bad);
    if (c->put_more)
        c->put_more(j, c->more);
    oct_json_close(j);
}

void oct_check_json(const char *model, const char *dir, const oct_check_options *o, const oct_check_result *r,
                    oct_buf *out)
{
    oct_json json = OCT_JSON_INIT(out), *j = &json;
    oct_report_open(j, OCT_CHECK_SCHEMA);
    oct_json_str(j, "model", model);
    oct_json_str(j, "case", dir);
    oct_json_bool(j, "passed", !r->first[0]);
    oct_json_str(j, "first", r->first[0] ? r->first : NULL);
    oct_json_int(j, "outputs", (int64_t)r->outputs);
    oct_json_int(j, "values", (int64_t)r->values);
    oct_json_int(j, "differ", (int64_t)r->differ);
    oct_json_num(j, "max_abs_error", r->max_abs);
    oct_json_num(j, "rtol", o->rtol);
    oct_json_num(j, "atol", o->atol);
    oct_json_close(j);
}
