/* The report of a conversion, of schema "octet-convert-1". */
#include "api/convert/session_int.h"

#include "api/answer.h"

#include "eval/metrics/metric.h"

#include <math.h>

/* An infinite one is null, with a note beside. */
static void number(oct_json *j, const char *key, double v)
{
    if (isnan(v))
        return;
    oct_json_num(j, key, v);
    if (isinf(v))
        oct_json_bool(j, "exact", v > 0);
}

static void put_decision(oct_json *j, const oct_layer *l, const char *why)
{
    oct_json_str(j, "name", l->name);
    oct_json_str(j, "op", l->d.op);
    oct_json_str(j, "scheme", oct_scheme_name(l->d.scheme));
    oct_json_bool(j, "integer", l->d.integer);
    oct_json_str(j, "why", why);
}

void oct_report_decision(oct_json *j, const void *row)
{
    const oct_layer *l = row;
    put_decision(j, l, l->d.why);
}

void oct_report_layer(oct_json *j, const oct_layer *l, const char *why)
{
    const oct_layer_decision *d = &l->d;
    put_decision(j, l, why);
    if (l->product)
        oct_json_int(j, "weight_count", l->weight_count);
    if (l->macs)
        oct_json_int(j, "macs", l->macs);
    if (d->weights) {
        oct_json_str(j, "weights", oct_dtype_name(d->weights));
        oct_json_bool(j, "per_channel", d->per_channel);
        if (d->block)
            oct_json_int(j, "block", d->block);
    }
    if (d->remedy)
        oct_json_str(j, "remedy", d->remedy);
    if (d->observer)
        oct_json_str(j, "observer", d->observer);
    if (d->scale != 0) {
        oct_json_num(j, "scale", (double)d->scale);
        oct_json_int(j, "zero_point", d->zero_point);
    }
    if (!isnan(d->on_floats)) {
        oct_json_num(j, "expected_float_us", d->on_floats / 1e3);
        oct_json_num(j, "expected_us", d->expected / 1e3);
    }
    number(j, "sqnr_weights_db", d->sqnr_weights);
    number(j, "sqnr_output_db", d->sqnr_output);
    if (l->loss > 0)
        oct_json_num(j, "loss_share", l->loss);
    if (*d->where)
        oct_json_bool(j, "in_body", true);
}

static void put_layer(oct_json *j, const void *row)
{
    const oct_layer *l = row;
    oct_report_layer(j, l, l->d.why);
}

static void put_drop(oct_json *j, const oct_eval_score *x)
{
    number(j, "drop", x->drop);
    number(j, "low", x->lo);
    number(j, "high", x->hi);
}

static void put_score(oct_json *j, const oct_goal *g, const oct_eval_score *x)
{
    const oct_eval_gate gate = oct_eval_judge(x, &g->limit);
    char text[OCT_GATE_TEXT];
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "text", oct_goal_text(text, g, x));
    oct_json_str(j, "option", g->option);
    oct_json_str(j, "metric", x->metric->name);
    number(j, "value", x->value);
    put_drop(j, x);
    number(j, "allowed", gate.allowed);
    oct_json_bool(j, "met", !gate.missed);
    oct_json_bool(j, "unsure", gate.unsure);
    if (gate.samples)
        oct_json_int(j, "samples_needed", (int64_t)gate.samples);
    oct_json_close(j);
}

static void put_trial(oct_json *j, const oct_session *s, const oct_goal_trial *t)
{
    char text[OCT_TRIAL_TEXT];
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "text", oct_goal_trial_text(text, t));
    oct_json_int(j, "layers_left_float", (int64_t)t->layers);
    oct_json_int(j, "layers_of_16_bits", (int64_t)t->wide);
    number(j, "macs_share", t->macs);
    number(j, "output_sqnr_db", t->sqnr);
    oct_json_int(j, "samples", (int64_t)t->samples);
    oct_json_bool(j, "met", t->met);
    oct_json_bool(j, "taken", t->taken);
    oct_json_open(j, "goals", '[');
    for (size_t i = 0; i < s->n_goals; i++)
        put_score(j, &s->goals[i], &t->score[i]);
    oct_json_close(j);
    oct_json_close(j);
}

/* Writes the goals, how the result compares with them, and the trials. */
static void put_goals(oct_json *j, const oct_session *s)
{
    uint64_t needed = 0;
    bool unsure = false;
    oct_json_open(j, "goals", '[');
    for (size_t i = 0; i < s->n_goals; i++) {
        const oct_eval_score x = oct_conversion_goal_score(&s->c, i);
        const oct_eval_gate g = oct_eval_judge(&x, &s->goals[i].limit);
        put_score(j, &s->goals[i], &x);
        unsure |= g.unsure;
        needed = g.samples > needed ? g.samples : needed;
    }
    oct_json_close(j);
    oct_json_bool(j, "goal_met", !s->c.missed);
    oct_json_bool(j, "goal_unsure", unsure);
    if (needed)
        oct_json_int(j, "samples_needed", (int64_t)needed);
    oct_json_open(j, "trials", '[');
    for (size_t i = 0; i < s->c.n_trials; i++)
        put_trial(j, s, &s->c.trials[i]);
    oct_json_close(j);
    oct_json_bool(j, "trials_on_other_samples", s->c.divided);
    oct_json_bool(j, "stopped_by_time_limit", s->c.stopped);
}

/* Writes on which samples the result is judged, and on how many. */
static void put_judged(oct_json *j, const oct_session *s)
{
    static const char *const names[] = {
        [OCT_JUDGED_OTHERS] = "unseen", [OCT_JUDGED_SAME] = "calibration", [OCT_JUDGED_ANY] = "any"
    };
    oct_json_open(j, "judged_on", '{');
    oct_json_int(j, "samples", s->c.verdict->samples);
    oct_json_str(j, "which", names[s->c.judged]);
    if (s->twin)
        oct_json_str(j, "as", s->twin->runtime);
    if (s->c.seen_gap > 0 && isfinite(s->c.seen_gap))
        oct_json_num(j, "seen_sqnr_db", s->c.sqnr + s->c.seen_gap);
    oct_json_close(j);
}

static void put_metric(oct_json *j, const oct_session *s)
{
    const oct_eval_score *x = s->c.verdict ? oct_conversion_score(&s->c) : NULL;
    if (!x)
        return;
    oct_json_open(j, "metric", '{');
    oct_json_str(j, "name", x->metric->name);
    oct_json_int(j, "samples", (int64_t)x->n);
    number(j, "float", x->reference);
    number(j, "quant", x->value);
    put_drop(j, x);
    oct_json_bool(j, "within_noise", x->within_noise);
    oct_json_close(j);
}

static void put_verdict(oct_json *j, const oct_session *s)
{
    if (s->c.unjudged)
        oct_json_str(j, "not_judged", s->c.unjudged);
    if (!s->c.verdict)
        return;
    put_judged(j, s);
    oct_report_json_speed(j, "speed", &s->c.verdict->models[1].speed);
    if (s->c.looked_for_denormals) {
        oct_json_open(j, "denormals", '{');
        oct_json_int(j, "weights", (int64_t)s->c.denormals.weights);
        oct_json_int(j, "values", (int64_t)s->c.denormals.values);
        oct_report_json_speed(j, "flushed", &s->c.denormals.flushed);
        oct_json_close(j);
    }
    put_metric(j, s);
    if (s->n_goals)
        put_goals(j, s);
}

static void put_method(oct_json *j, const void *row)
{
    const oct_method_result *r = row;
    oct_json_str(j, "name", r->method->name);
    oct_json_str(j, "step", oct_method_step_name(r->method->step));
    oct_json_bool(j, "ran", r->ran);
    if (r->why)
        oct_json_str(j, "why", r->why);
    if (*r->choice)
        oct_json_str(j, "choice", r->choice);
    if (r->measure) {
        oct_json_str(j, "measure", r->measure);
        oct_json_str(j, "unit", r->unit);
        number(j, "before", r->before);
        number(j, "after", r->after);
        if (oct_method_is_worse(r) && r->although)
            oct_json_str(j, "although", r->although);
        if (r->next) {
            oct_json_str(j, "next", r->next);
            number(j, "next_value", r->next_value);
        }
    }
    if (r->ran) {
        oct_buf text = OCT_BUF_INIT;
        oct_method_text(r, &text);
        oct_json_str(j, "text", oct_buf_str(&text));
        oct_buf_free(&text);
    }
}

static void put_promotion(oct_json *j, const void *row)
{
    const oct_promotion *p = row;
    oct_json_str(j, "layer", p->layer);
    oct_json_str(j, "value", p->value);
    oct_json_num(j, "macs_share", p->macs);
    oct_json_num(j, "loss_share", p->loss);
    oct_json_num(j, "gain_db", p->gain);
    oct_json_bool(j, "beyond_budget", p->beyond_budget);
    oct_json_int(j, "bits", p->wide ? 16 : 32);
}

static void put_floats(oct_json *j, const void *row)
{
    const oct_float_bytes *f = row;
    oct_json_str(j, "op", f->op);
    oct_json_int(j, "bytes", (int64_t)f->bytes);
    oct_json_num(j, "share", f->share);
    oct_json_str(j, "largest", f->largest);
    oct_json_str(j, "why", f->why);
}

void oct_report_change(oct_json *j, const void *row)
{
    const oct_change *c = row;
    oct_json_str(j, "pass", c->pass);
    oct_json_str(j, "change", c->what);
    oct_json_str(j, "node", c->node);
}

void oct_report_passes(oct_json *j, const oct_conversion *c)
{
    oct_json_rows(j, "passes", c->changes, c->n_changes, sizeof *c->changes, oct_report_change);
}

void oct_report_methods(oct_json *j, const oct_conversion *c)
{
    oct_json_rows(j, "methods", c->methods, c->n_methods, sizeof *c->methods, put_method);
}

static void put_denormal(oct_json *j, const void *row)
{
    const oct_layer_denormals *d = row;
    oct_json_str(j, "layer", d->layer);
    oct_json_str(j, "op", d->op);
    oct_json_int(j, "denormal", (int64_t)d->n);
    oct_json_int(j, "weights", (int64_t)d->of);
    oct_json_bool(j, "zeros", d->zeros);
}

/* Writes an input or output whose type was requested. */
static void put_end(oct_json *j, const void *row)
{
    const oct_conversion_end *e = row;
    oct_json_str(j, "name", e->close.name);
    oct_json_bool(j, "output", e->close.output);
    oct_json_str(j, "type", e->reached ? oct_dtype_name(e->close.type) : "float32");
    oct_json_bool(j, "nhwc", e->reached && e->close.nhwc);
    oct_json_str(j, "how", e->how);
}

static void put_misfit(oct_json *j, const void *row)
{
    const oct_misfit *m = row;
    oct_json_str(j, "tensor", m->tensor);
    oct_json_str(j, "why", m->why);
}

/* Writes how ranges of another tool were used. */
static void put_pinned(oct_json *j, const oct_conversion *c)
{
    const oct_pinned *p = &c->pinned;
    if (!p->ranges && !c->match.form)
        return;
    oct_json_open(j, "pinned", '{');
    if (c->match.form)
        oct_json_str(j, "form", oct_encoding_form_name(c->match.form));
    oct_json_int(j, "ranges", (int64_t)p->ranges);
    oct_json_int(j, "exact", (int64_t)p->exact);
    oct_json_int(j, "missing", (int64_t)p->missing);
    oct_json_rows(j, "nearest", p->misfit, p->n_misfit, sizeof *p->misfit, put_misfit);
    oct_json_close(j);
}

/* Writes the expected times, for each table of the target. */
static void put_expected(oct_json *j, const oct_session *s)
{
    const oct_target_times x = oct_qjob_expected(s->c.job);
    oct_json_open(j, "expected", '[');
    for (size_t i = 0; i < x.n; i++) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "costs", oct_target_costs_name(s->target, i));
        oct_json_num(j, "float_us", x.on_floats[i] / 1e3);
        oct_json_num(j, "us", x.decided[i] / 1e3);
        oct_json_bool(j, "least_gain", i == x.least);
        oct_json_close(j);
    }
    oct_json_close(j);
}

static void put_finer(oct_json *j, const oct_finer *x)
{
    if (!x->nodes)
        return;
    oct_json_open(j, "finer", '{');
    oct_json_int(j, "nodes", (int64_t)x->nodes);
    number(j, "sqnr_db", x->after);
    number(j, "without_sqnr_db", x->before);
    number(j, "time", x->longer);
    oct_json_close(j);
}

static void put_in_onnxruntime(oct_json *j, const oct_in_onnxruntime *x)
{
    if (!x->costs)
        return;
    oct_json_open(j, "in_onnxruntime", '{');
    oct_json_str(j, "costs", x->costs);
    oct_json_num(j, "own", x->own);
    oct_json_num(j, "with_provider", x->with_provider);
    oct_json_close(j);
}

static void put_size_point(oct_json *j, const void *row)
{
    const oct_size_point *p = row;
    oct_json_str(j, "layer", *p->layer ? p->layer : NULL);
    oct_json_str(j, "form", *p->form ? p->form : NULL);
    oct_json_int(j, "bytes", (int64_t)p->bytes);
    number(j, "sqnr_db", p->sqnr);
    oct_json_bool(j, "taken", p->taken);
}

static void put_size_rival(oct_json *j, const void *row)
{
    const oct_size_rival *r = row;
    oct_json_str(j, "form", *r->form ? r->form : NULL);
    oct_json_bool(j, "float_between", r->between);
    oct_json_int(j, "bytes", (int64_t)r->bytes);
    number(j, "sqnr_db", r->sqnr);
}

void oct_report_size(oct_json *j, const oct_conversion *c)
{
    const oct_size_choice *x = &c->size;
    if (!x->n)
        return;
    oct_json_open(j, "size", '{');
    oct_json_int(j, "limit", (int64_t)x->limit);
    oct_json_int(j, "least", (int64_t)x->least);
    oct_json_bool(j, "missed", x->missed);
    oct_json_bool(j, "measured", x->measured);
    number(j, "sqnr_db", x->sqnr);
    oct_json_int(j, "samples", (int64_t)x->samples);
    oct_json_int(j, "taken", (int64_t)x->taken);
    oct_json_rows(j, "compared", x->rival, x->n_rivals, sizeof *x->rival, put_size_rival);
    oct_json_rows(j, "curve", x->point, x->n, sizeof *x->point, put_size_point);
    oct_json_close(j);
}

static void decibels(oct_json *j, const char *key, double v)
{
    if (!isnan(v))
        oct_json_num(j, key, v); /* null: nothing is lost */
}

static void put_cause(oct_json *j, const void *row)
{
    const oct_cause *c = row;
    oct_json_str(j, "layer", c->layer);
    oct_json_str(j, "op", c->op);
    oct_json_str(j, "value", c->value);
    if (c->whole)
        oct_json_bool(j, "whole", true);
    oct_json_num(j, "share", c->share);
    oct_json_num(j, "sqnr_db", c->sqnr);
    oct_json_num(j, "gain_db", c->gain);
}

void oct_report_causes(oct_json *j, const oct_causes *x)
{
    if (x->samples == 0)
        return;
    oct_json_open(j, "sensitivity", '{');
    oct_json_int(j, "samples", (int64_t)x->samples);
    decibels(j, "all_db", x->all);
    decibels(j, "sum_db", x->sum);
    decibels(j, "values_db", x->of_values);
    decibels(j, "weights_db", x->of_weights);
    oct_json_bool(j, "weights_measured", x->weights);
    oct_json_num(j, "least_share", x->least);
    oct_json_int(j, "not_told_apart", (int64_t)x->small);
    oct_json_texts(j, "not_simulated", x->left_out, x->n_left_out);
    oct_json_rows(j, "causes", x->cause, x->n, sizeof *x->cause, put_cause);
    oct_json_close(j);
}

/* Writes the answer as a paragraph. */
static void put_sentence(oct_json *j, const oct_session *s)
{
    oct_buf b = OCT_BUF_INIT;
    oct_session_sentence(s, &b);
    oct_json_str(j, "text", oct_buf_str(&b));
    oct_buf_free(&b);
}

static void put_answer(const void *of, oct_json *j)
{
    oct_session_answer(of, j);
}

void oct_session_report(const oct_session *s, oct_document *to)
{
    const oct_layer_count n = oct_layers_count(s->c.layers, s->c.n_layers);
    oct_json j = { .to = to };
    oct_report_open(&j, "octet-convert-1");
    oct_json_str(&j, "model", s->x.model);
    oct_json_str(&j, "output", s->x.dry_run || s->x.in_memory ? NULL : s->output);
    oct_json_str(&j, "target", oct_target_name(s->target));
    oct_json_bool(&j, "untested_on_device", oct_target_rules_of(s->target)->proof != OCT_PROOF_RUN);
    oct_json_int(&j, "samples", s->c.calib ? (int64_t)s->c.calib->samples : 0);
    if (s->c.o.synthetic)
        oct_json_bool(&j, "synthetic", true);
    oct_samples_put_generated(&j, &s->samples);
    oct_buf missing = OCT_BUF_INIT;
    if (s->c.calib && oct_calib_missing(s->c.calib, &missing))
        oct_json_str(&j, "missing_shards", oct_buf_str(&missing));
    oct_buf_free(&missing);
    put_pinned(&j, &s->c);
    oct_json_open(&j, "size_bytes", '{');
    oct_json_int(&j, "before", (int64_t)s->c.size_before);
    oct_json_int(&j, "after", (int64_t)s->c.size_after);
    oct_json_close(&j);
    oct_json_rows(&j, "float_bytes", s->c.floats, s->c.n_floats, sizeof *s->c.floats, put_floats);
    if (s->x.dry_run) {
        const oct_estimate x = oct_session_estimate(s);
        oct_json_open(&j, "estimate", '{');
        oct_json_num(&j, "seconds", x.seconds);
        oct_json_int(&j, "memory_bytes", (int64_t)x.memory);
        oct_json_close(&j);
    }
    oct_json_rows(&j, "layers", s->c.layers, s->c.n_layers, sizeof *s->c.layers, put_layer);
    oct_json_int(&j, "layers_with_weights", (int64_t)n.products);
    oct_json_int(&j, "int8_layers", (int64_t)n.integer);
    oct_json_int(&j, "half_layers", (int64_t)n.half);
    oct_json_int(&j, "weight_only_layers", (int64_t)(n.blocks4 + n.blocks8));
    oct_report_passes(&j, &s->c);
    oct_report_census(&j, s);
    oct_report_methods(&j, &s->c);
    oct_report_size(&j, &s->c);
    oct_json_rows(&j, "promotions", s->c.promoted, s->c.n_promoted, sizeof *s->c.promoted, put_promotion);
    put_finer(&j, &s->c.finer);
    if (s->c.n_end)
        oct_json_rows(&j, "ends", s->c.end, s->c.n_end, sizeof *s->c.end, put_end);
    if (s->c.n_denormal)
        oct_json_rows(&j, "denormal_weights", s->c.denormal, s->c.n_denormal, sizeof *s->c.denormal, put_denormal);
    put_expected(&j, s);
    put_in_onnxruntime(&j, &s->c.in_onnxruntime);
    oct_json_texts(&j, "warnings", s->c.warnings, s->c.n_warnings);
    oct_json_bool(&j, "lossy", s->c.lossy);
    oct_report_causes(&j, &s->c.causes);
    if (s->c.verdict && isnan(s->c.sqnr)) /* measured, but no output has numbers that correspond */
        oct_json_num(&j, "output_sqnr_db", s->c.sqnr);
    number(&j, "output_sqnr_db", s->c.sqnr);
    put_verdict(&j, s);
    put_sentence(&j, s);
    oct_session_answer(s, &j);
    oct_answer_next(&j, put_answer, s);
    oct_json_close(&j);
}

void oct_report_target(oct_json *j, const oct_session *s)
{
    const oct_layer_count n = oct_layers_count(s->c.layers, s->c.n_layers);
    oct_buf loss = OCT_BUF_INIT;
    oct_session_loss(s, &loss);
    oct_json_str(j, "target", oct_target_name(s->target));
    oct_json_bool(j, "untested_on_device", oct_target_rules_of(s->target)->proof != OCT_PROOF_RUN);
    oct_json_int(j, "layers_with_weights", (int64_t)n.products);
    oct_json_int(j, "int8_layers", (int64_t)n.integer);
    oct_json_int(j, "half_layers", (int64_t)n.half);
    oct_json_int(j, "weight_only_layers", (int64_t)(n.blocks4 + n.blocks8));
    if (n.macs)
        oct_json_num(j, "integer_share", (double)n.integer_macs / (double)n.macs);
    oct_json_open(j, "size_bytes", '{');
    oct_json_int(j, "before", (int64_t)s->c.size_before);
    oct_json_int(j, "after", (int64_t)s->c.size_after);
    oct_json_close(j);
    oct_json_int(j, "findings", (int64_t)s->c.n_found);
    oct_json_int(j, "not_loaded", (int64_t)s->c.n_not_loaded);
    oct_json_bool(j, "lossy", s->c.lossy);
    if (loss.len)
        oct_json_str(j, "accuracy", oct_buf_str(&loss));
    number(j, "output_sqnr_db", s->c.sqnr);
    put_metric(j, s);
    if (s->c.verdict && s->n_goals)
        oct_json_bool(j, "goal_met", !s->c.missed);
    put_expected(j, s);
    oct_json_texts(j, "warnings", s->c.warnings, s->c.n_warnings);
    oct_buf_free(&loss);
}
