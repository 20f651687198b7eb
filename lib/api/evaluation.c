/* A comparison of models over samples, from typed options to a report. */
#include "api/evaluation_int.h"

#include "base/io.h"
#include "eval/run/scaled.h"
#include "eval/run/sweep.h"
#include "forms/write/ends.h"
#include "forms/write/forms_write.h"
#include "kernels/cpu.h"
#include "quant/convert/convert.h"

#include <math.h>
#include <string.h>

static const double CHEAP_SECONDS = 0.5, FULL_SECONDS = 3;

/* ---- gates ---- */

enum { MOST_TEXT = 1 << 20, MOST_REPORT = 1 << 26, CHEAP_LAYER_SAMPLES = 16 };

static oct_status read_file(const char *path, oct_gates *g, oct_err *err)
{
    char *text;
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a list of gates", &text, err));
    const size_t before = g->n;
    oct_status s = oct_gates_read(g, text, path, err);
    if (s == OCT_OK && g->n == before) { /* of a file that was emptied, nothing would ever fail again */
        s = oct_fail(err, OCT_EMALFORMED, "%s: there is no gate in it", path);
        oct_hint(err, "a line is a gate's name and its value, as 'max-drop top1 1%%'");
    }
    oct_free(text);
    return s;
}

void oct_evaluation_gate_texts(const octet_evaluate_options *a, const char *gate[OCT_GATE_KINDS])
{
    const char *const text[OCT_GATE_KINDS] = {
        [OCT_GATE_AGREEMENT] = a->min_agreement, [OCT_GATE_SQNR] = a->min_sqnr, [OCT_GATE_SPEEDUP] = a->min_speedup,
        [OCT_GATE_LATENCY] = a->max_latency,     [OCT_GATE_SIZE] = a->max_size, [OCT_GATE_MEMORY] = a->max_memory
    };
    memcpy(gate, text, sizeof text);
}

static oct_status read_all(const octet_evaluate_options *a, oct_gates *g, oct_err *err)
{
    const char *gate[OCT_GATE_KINDS];
    oct_evaluation_gate_texts(a, gate);
    for (size_t i = 0; i < a->max_drop.n; i++)
        OCT_TRY(oct_gates_add(g, oct_gate_name(OCT_GATE_DROP), a->max_drop.v[i], err));
    for (size_t k = 0; k < OCT_GATE_KINDS; k++)
        if (gate[k])
            OCT_TRY(oct_gates_add(g, oct_gate_name(k), gate[k], err));
    return a->gates ? read_file(a->gates, g, err) : OCT_OK;
}

static oct_status reject(const char *gate, const char *why, const char *remedy, oct_err *err)
{
    oct_fail(err, OCT_EUSAGE, "--%s %s", gate, why);
    oct_hint(err, "%s", remedy);
    return OCT_EUSAGE;
}

/* Checks what can be known before the work. */
static oct_status check_gates(const octet_evaluate_options *a, bool other, const oct_gates *g, oct_err *err)
{
    if (!g->n)
        return OCT_OK;
    const char *first = oct_gate_name(g->v[0].kind), *timed = oct_gates_timed(g);
    if (other)
        return reject(first, "judges a comparison, and none is asked for",
                      "leave out --check, --outputs or --sensitivity", err);
    if (!a->quantized.n && !a->compute)
        return reject(first, "judges quantized models, and none is given: no metric here has a drop",
                      "name one behind the float model", err);
    if (timed && a->latency == 0)
        return reject(timed, "needs times, and --no-latency leaves them out", "leave out one of both", err);
    if (timed && a->twin)
        return reject(timed, "needs times, and --as computes without the device's", "leave out one of both", err);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].kind == OCT_GATE_MEMORY && (a->runner || a->twin))
            return reject(oct_gate_name(OCT_GATE_MEMORY),
                          "judges the memory of our runtime, and --runner leaves the models to another",
                          "leave out one of both", err);
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].command && !a->metric_command)
            return reject(oct_gate_name(g->v[i].kind), "asks for the metric of a command, and there is none",
                          "give it with --metric-cmd", err);
    return OCT_OK;
}

static oct_status read_baseline(const octet_evaluate_options *a, oct_arena *arena, oct_baseline **b, oct_err *err)
{
    char *text;
    size_t size;
    if (!a->baseline)
        return OCT_OK;
    if (!a->quantized.n && !a->compute)
        return reject("baseline", "is about quantized models, and none is given", "name one behind the float model",
                      err);
    OCT_TRY(oct_read_all(a->baseline, MOST_REPORT, &text, &size, err));
    const oct_status s = oct_baseline_read(text, size, a->baseline, arena, b, err);
    oct_free(text);
    if (s == OCT_EUNSUPPORTED)
        oct_within(err, "--baseline");
    return s;
}

/* ---- models ---- */

/* Adds the float model in bf16: beside the float model if models are compared, else in its place. */
static oct_status add_bf16(oct_evaluation *s, oct_err *err)
{
    oct_eval_model *m = &s->models[s->h.alone ? 0 : s->n_models++];
    *m = s->models[0];
    m->bf16 = true;
    m->name = oct_arena_printf(s->arena, "%s in bf16", s->x.model);
    return m->name ? OCT_OK : oct_nomem(err);
}

/* Whether --runner runs the k-th model. */
static bool is_remote(const oct_evaluation *s, size_t k)
{
    return s->x.runner && (k || !s->x.runner_for || strcmp(s->x.runner_for, "quant") != 0);
}

/* The twin that computes the k-th model; NULL: our runtime does. */
static const oct_twin *twin_of(const oct_evaluation *s, size_t k)
{
    return k || s->h.alone || s->n_models == 1 ? s->twin : NULL;
}

/* Another runtime runs the file unchanged, so the types of its inputs and outputs must be those of the float model. */
static oct_status leave_ends(const oct_evaluation *s, size_t k, oct_err *err)
{
    if (!oct_model_meta(s->loaded[k], OCT_ENDS_KEY))
        return OCT_OK;
    oct_fail(err, OCT_EUNSUPPORTED,
             "%s: its inputs or outputs have other types than the float model's, and --runner runs the file as it is",
             s->models[k].name);
    oct_hint(err,
             "compare it without --runner, or compare a model that was made without --input-type and --output-type");
    return OCT_EUNSUPPORTED;
}

/* If inputs or outputs of a model have other types than those of the first model, adds nodes that convert them,
 * according to its metadata. */
static oct_status match_ends(oct_evaluation *s, size_t k, oct_err *err)
{
    const oct_graph *first = s->models[0].graph;
    oct_end *end;
    size_t n;
    OCT_TRY(oct_ends_read(oct_model_meta(s->loaded[k], OCT_ENDS_KEY), s->arena, &end, &n, err));
    for (size_t i = 0; i < n; i++) {
        const int v = oct_graph_find(first, end[i].name);
        if (v >= 0 && (end[i].output ? first->value[v].is_output : first->value[v].is_input) &&
            first->value[v].dtype == OCT_F32)
            OCT_TRY_WITHIN(oct_end_reopen(s->loaded[k]->graph, &end[i], err), err, "%s", s->models[k].name);
    }
    return OCT_OK;
}

/* If inputs or outputs of a model have the channels last and those of the first model do not, or the other way round,
 * adds a Transpose: .tflite files have them last, and are read with the channels first. */
static oct_status match_axes(const oct_evaluation *s, size_t k, oct_err *err)
{
    const oct_graph *first = s->models[0].graph;
    char text[160];
    for (int output = 0; output < 2; output++)
        for (size_t i = 0; i < (output ? first->n_output : first->n_input); i++) {
            const oct_value *v = &first->value[(output ? first->output : first->input)[i]];
            bool turned;
            OCT_TRY_WITHIN(oct_end_turn(s->loaded[k]->graph, v->name, output, &v->shape, &turned, err), err, "%s",
                           s->models[k].name);
            if (turned)
                oct_say(s->h.voice, 0, "%s: %s '%s' is taken as %s, the order of axes in %s", s->models[k].name,
                        output ? "output" : "input", v->name, oct_shape_text(&v->shape, text, sizeof text),
                        s->models[0].name);
        }
    return OCT_OK;
}

/* The float model is the measure of all others. */
static void warn_of_order(const oct_evaluation *s)
{
    for (size_t k = 1; k < s->n_models; k++)
        if (oct_quantized_nodes(s->models[0].graph) && !oct_quantized_nodes(s->models[k].graph)) {
            oct_say(s->h.voice, OCT_NOTE_WARNING,
                    "%s is quantized, and %s is not: the float model comes first, and the others are compared with it",
                    s->models[0].name, s->models[k].name);
            return;
        }
}

static oct_status load_models(oct_evaluation *s, oct_err *err)
{
    const octet_evaluate_options *a = &s->x;
    s->n_models = 1 + a->quantized.n;
    s->loaded = oct_arena_calloc(s->arena, s->n_models + 1, sizeof *s->loaded);
    s->models = oct_arena_calloc(s->arena, s->n_models + 1, sizeof *s->models);
    if (!s->loaded || !s->models)
        return oct_nomem(err);
    for (size_t k = 0; k < s->n_models; k++) {
        const char *path = k ? a->quantized.v[k - 1] : a->model;
        OCT_TRY(oct_load(s->h.voice, path, NULL, 0, &s->loaded[k], err));
        s->models[k] = (oct_eval_model){ path,
                                         s->loaded[k]->graph,
                                         oct_model_bytes(s->loaded[k]),
                                         oct_model_meta(s->loaded[k], OCT_SCALED_KEY),
                                         false,
                                         is_remote(s, k) ? &s->remote : NULL,
                                         twin_of(s, k) };
        if (s->hash && oct_model_hash(s->loaded[k]) != s->hash[k])
            return oct_evaluation_changed(path, err);
        if (k)
            OCT_TRY(is_remote(s, k) ? leave_ends(s, k, err) : match_ends(s, k, err));
        if (k && !is_remote(s, k))
            OCT_TRY(match_axes(s, k, err));
    }
    warn_of_order(s);
    return a->compute ? add_bf16(s, err) : OCT_OK;
}

/* ---- data ---- */

/* Opens the samples for the inputs of all models. */
static oct_status open_source(const oct_evaluation *s, oct_samples *d, oct_source **src, oct_err *err)
{
    oct_input_desc *inputs;
    size_t n;
    OCT_TRY(oct_eval_inputs(s->models, s->n_models, s->arena, &inputs, &n, err));
    *d = (oct_samples){
        .of = s->x.samples, .shard_i = s->x.shard, .shard_n = s->x.shards, .given = s->h.given, .model = s->x.model
    };
    OCT_TRY(oct_samples_read_states(s->models[0].graph, d, err));
    d->of.first |= d->n_state && d->of.samples && !d->of.generate; /* states need all samples in between */
    OCT_TRY(oct_samples_open_inputs(s->models[0].graph, inputs, n, d, 0, src, err));
    if (!d->n_state || d->of.generate)
        return OCT_OK;
    return oct_lengthen_masks(*src, s->models[0].graph, d->state, d->n_state, inputs, err);
}

oct_status oct_evaluation_open_samples(oct_evaluation *s, oct_err *err)
{
    oct_samples_warn_pixels(s->h.voice, s->models[0].graph, s->x.samples.preprocess);
    OCT_TRY(open_source(s, &s->samples, &s->src, err));
    const char *words = oct_source_preprocess_words(s->src);
    if (words && words[0])
        oct_say(s->h.voice, 1, "preprocessing: %s", words);
    oct_samples_say_beside(s->h.voice, &s->samples);
    oct_samples_say_chosen(s->h.voice, s->src);
    return OCT_OK;
}

/* Collects the samples that were skipped, for the reports. The messages are valid as long as the source is open. */
static oct_status collect_bad(const oct_evaluation *s, const char ***bad, size_t *n, oct_err *err)
{
    size_t count = 0;
    while (oct_source_bad_text(s->src, count))
        count++;
    if (!(*bad = oct_arena_calloc(s->arena, count + 1, sizeof **bad)))
        return oct_nomem(err);
    for (size_t i = 0; i < count; i++)
        (*bad)[i] = oct_source_bad_text(s->src, i);
    *n = count;
    return OCT_OK;
}

/* ---- whether samples match the calibration of the models ---- */

static void warn_of_fit(const oct_evaluation *s, const char *model, const oct_input_fit *f)
{
    const oct_fit fit = oct_input_fit_judge(f);
    if (fit == OCT_FIT_OUTSIDE)
        oct_say(
            s->h.voice, OCT_NOTE_WARNING,
            "%s: input '%s' holds %.4g to %.4g, and %.0f %% of the samples' values (%.4g to %.4g) lie outside: is --preprocess that of its calibration?",
            model, f->input, f->lo, f->hi, 100 * (double)f->outside / (double)f->n, f->min, f->max);
    else if (fit == OCT_FIT_NARROW)
        oct_say(
            s->h.voice, OCT_NOTE_WARNING,
            "%s: input '%s' holds %.4g to %.4g, and the samples' values take %.4g to %.4g of it alone: is --preprocess that of its calibration?",
            model, f->input, f->lo, f->hi, f->min, f->max);
}

/* Whether some layer of a graph, or of those in it, computes with 8 bits in ONNX Runtime and in float here. */
static bool rounds_inputs(const oct_graph *g)
{
    const oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++) {
        if (oct_rounds_inputs_at_load(g, g->order[i]))
            return true;
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)); k++)
            if (rounds_inputs(nested))
                return true;
    }
    return false;
}

static void say_rounded(const oct_evaluation *s)
{
    for (size_t k = 0; k < s->n_models; k++)
        if (!is_remote(s, k) && rounds_inputs(s->models[k].graph))
            oct_say(s->h.voice, 0, "%s: " OCT_ROUNDED_INPUTS "; here they are float", s->models[k].name);
}

/* Outputs that are no numbers are worth nothing, whatever a metric makes of them. */
static void warn_of_nan(const oct_evaluation *s, const oct_eval_result *r)
{
    for (size_t k = 0; k < r->n_models; k++)
        for (size_t i = 0; i < r->n_outputs; i++) {
            const oct_eval_output *o = &r->models[k].outputs[i];
            if (o->broken)
                oct_say(s->h.voice, OCT_NOTE_WARNING, "%s: output '%s' has %llu value%s that %s not finite%s",
                        r->models[k].name, o->name, (unsigned long long)o->broken, o->broken == 1 ? "" : "s",
                        o->broken == 1 ? "is" : "are", k ? ", or not the float model's" : "");
        }
}

/* A sample that a metric leaves out for one of two models. */
static void warn_of_lost(const oct_evaluation *s, const oct_eval_result *r)
{
    for (size_t k = 1; k < r->n_models; k++)
        for (size_t i = 0; i < r->n_scores; i++)
            if (r->models[k].scores[i].lost)
                oct_say(
                    s->h.voice, OCT_NOTE_WARNING,
                    "%s: %llu of %lld samples have a number of metric '%s' for one of the two models alone: they count as lost",
                    r->models[k].name, (unsigned long long)r->models[k].scores[i].lost, (long long)r->samples,
                    r->models[k].scores[i].metric->name);
}

/* What is measured is decided with the first samples. */
static void warn_of_labels(const oct_evaluation *s, const oct_eval_result *r)
{
    const unsigned long long without = (unsigned long long)r->unlabelled, all = (unsigned long long)r->samples;
    if (r->labels_too_late)
        oct_say(
            s->h.voice, OCT_NOTE_WARNING,
            "no label is used, as the first samples have none: %llu of %llu samples lack one; put one that has a label in front",
            without, all);
    else if (without)
        oct_say(s->h.voice, OCT_NOTE_WARNING, "%llu of %llu samples have no label: what needs one leaves them out",
                without, all);
}

/* A float model that guesses is fed or judged wrongly, and then a comparison with it means little. */
static void warn_of_guesses(const oct_evaluation *s, const oct_eval_result *r)
{
    for (size_t i = 0; i < r->n_scores; i++) {
        const oct_eval_score *c = &r->models[0].scores[i];
        if (!oct_eval_is_guess(c))
            continue;
        oct_say(
            s->h.voice, OCT_NOTE_WARNING,
            "%s: %s is %.3g %% of %llu samples, and guessing has %.3g %%: do --preprocess and the order of the labels fit it?",
            r->models[0].name, c->metric->name, 100 * c->value, (unsigned long long)c->n, 100 * c->chance);
        return;
    }
}

/* Warns if a model was calibrated with other preprocessing. A model that takes pixels has the preprocessing inside. */
static void warn_of_steps(const oct_evaluation *s, size_t k, const char *is)
{
    const char *was = oct_model_meta(s->loaded[k], "octet.preprocess");
    if (was && is && *was && *is && strcmp(was, is) != 0 && !oct_model_meta(s->loaded[k], OCT_ENDS_KEY))
        oct_say(s->h.voice, OCT_NOTE_WARNING,
                "%s was calibrated with --preprocess %s, and these samples are prepared with %s", s->models[k].name,
                was, is);
}

static void warn_of_samples(const oct_evaluation *s, const oct_eval_result *r, const char *preprocess)
{
    warn_of_nan(s, r);
    warn_of_lost(s, r);
    warn_of_labels(s, r);
    warn_of_guesses(s, r);
    for (size_t k = 0; k < r->n_models && !s->models[k].bf16; k++) {
        warn_of_steps(s, k, preprocess);
        for (size_t i = 0; i < r->models[k].n_fit; i++)
            warn_of_fit(s, r->models[k].name, &r->models[k].fit[i]);
    }
}

/* ---- judging ---- */

/* A metric that only one of the reports has is not compared, and a drop of it would not be seen. */
static void warn_of_gaps(const oct_evaluation *s, const oct_eval_result *r)
{
    oct_buf now = OCT_BUF_INIT, then = OCT_BUF_INIT;
    oct_baseline_gaps(s->baseline, r, &now, &then);
    if (*oct_buf_str(&now))
        oct_say(s->h.voice, OCT_NOTE_WARNING, "%s does not have %s: not compared", s->baseline->label,
                oct_buf_str(&now));
    if (*oct_buf_str(&then))
        oct_say(s->h.voice, OCT_NOTE_WARNING, "%s has %s, not computed now: not compared", s->baseline->label,
                oct_buf_str(&then));
    oct_buf_free(&now);
    oct_buf_free(&then);
}

static oct_status judge(const oct_evaluation *s, oct_eval_result *r, oct_report_context *c, oct_err *err)
{
    OCT_TRY(oct_gates_judge(&s->gates, r, &c->gates, &c->n_gates, err));
    if (!s->baseline)
        return OCT_OK;
    if (!isnan(s->baseline->samples) && s->baseline->samples != (double)r->samples)
        oct_say(s->h.voice, OCT_NOTE_WARNING, "%s is of %.0f samples, and these are %lld", s->baseline->label,
                s->baseline->samples, (long long)r->samples);
    warn_of_gaps(s, r);
    return oct_baseline_judge(s->baseline, r, &c->gates, &c->n_gates, err);
}

static oct_status pick_metrics(const oct_evaluation *s, const oct_metric ***metrics, oct_err *err)
{
    *metrics = oct_arena_calloc(s->arena, s->x.metrics.n + 1, sizeof **metrics);
    if (!*metrics)
        return oct_nomem(err);
    for (size_t i = 0; i < s->x.metrics.n; i++)
        OCT_TRY(oct_metric_find(s->x.metrics.v[i], &(*metrics)[i], err));
    return OCT_OK;
}

/* Uses a source of its own, because the samples of the comparison are consumed, and messages about them are kept. */
static oct_status run_sweep(const oct_evaluation *s, oct_eval_result *r, oct_err *err)
{
    oct_source *src;
    oct_samples d;
    if (!s->x.sweep)
        return OCT_OK;
    OCT_TRY(open_source(s, &d, &src, err));
    const oct_status st = oct_eval_sweep(s->models, s->n_models, src, s->x.threads, r, err);
    oct_source_close(src);
    return st;
}

/* The options of an evaluation, except for the metrics. */
static oct_eval_options options_of(const oct_evaluation *s)
{
    const octet_evaluate_options *a = &s->x;
    /* A request for one of the two slow measurements (layers, latency) leaves out the other. Without a request, both
     * are made briefly. Gates on times justify long measurements. */
    const bool timed = oct_gates_timed(&s->gates), asked = a->layers > 0 || a->latency > 0;
    const bool no_latency = a->latency == 0;
    const bool no_layers = a->runner || a->layers == 0;
    return (oct_eval_options){
        .pool = s->pool,
        .batch = (size_t)a->batch,
        .rule = s->decode,
        .truth = s->truth,
        .per_class = a->per_class,
        .command = a->metric_command ? &s->command : NULL,
        .layer_samples = s->hash              ? s->layer_samples
                         : a->layers > 0      ? -1
                         : asked || no_layers ? 0
                                              : CHEAP_LAYER_SAMPLES,
        .latency_seconds = a->twin                   ? 0
                           : a->latency > 0 || timed ? FULL_SECONDS
                           : asked || no_latency     ? 0
                                                     : CHEAP_SECONDS,
        .latency_runs = (int)a->runs,
        .profile = a->profile || a->html,
        .states = s->samples.state,
        .n_states = s->samples.n_state,
        .progress = s->h.voice.progress,
        .progress_arg = s->h.voice.arg,
    };
}

/* Adds requested metrics and those of gates: of the parts, if there are any, and of this command line. */
oct_status oct_evaluation_options(const oct_evaluation *s, oct_eval_options *o, oct_err *err)
{
    const oct_metric **asked, **of_parts = NULL, **of_gates;
    size_t n_parts = 0, n;
    *o = options_of(s);
    OCT_TRY(pick_metrics(s, &asked, err));
    OCT_TRY(oct_gates_metrics(&s->gates, &of_gates, &n, err));
    if (s->part_gates.n)
        OCT_TRY(oct_gates_metrics(&s->part_gates, &of_parts, &n_parts, err));
    const oct_metric **needed = oct_arena_calloc(s->arena, n_parts + n + 1, sizeof *needed);
    if (!needed)
        return oct_nomem(err);
    for (size_t i = 0; i < n_parts + n; i++)
        needed[i] = i < n_parts ? of_parts[i] : of_gates[i - n_parts];
    o->metrics = s->x.metrics.n ? asked : NULL;
    o->n_metrics = s->x.metrics.n;
    o->needed = needed;
    o->n_needed = n_parts + n;
    o->main_limit = oct_gates_main_limit(&s->gates);
    return OCT_OK;
}

static oct_status run_samples(oct_evaluation *s, oct_err *err)
{
    oct_report_context *c = &s->context;
    const char **bad = NULL;
    oct_eval_options o;
    *c = (oct_report_context){ .data = s->x.samples.data.v, .n_data = s->x.samples.data.n };
    OCT_TRY(oct_evaluation_open_samples(s, err));
    OCT_TRY(oct_evaluation_options(s, &o, err));
    OCT_TRY(oct_eval(s->models, s->n_models, s->src, &o, &s->result, err));
    c->preprocess = oct_source_preprocess(s->src);
    oct_samples_say_taken(s->h.voice, s->src);
    say_rounded(s);
    OCT_TRY(collect_bad(s, &bad, &c->n_bad, err));
    c->bad = bad;
    return OCT_OK;
}

oct_status oct_evaluation_run(oct_evaluation *s, oct_err *err)
{
    OCT_TRY(s->h.parts.n ? oct_evaluation_join(s, err) : run_samples(s, err));
    s->result->isa = oct_isa_name(oct_isa_active());
    warn_of_samples(s, s->result, s->context.preprocess);
    OCT_TRY(run_sweep(s, s->result, err));
    return judge(s, s->result, &s->context, err);
}

static void put_more(oct_json *j, const void *more)
{
    oct_samples_put_generated(j, &((const oct_evaluation *)more)->samples);
    oct_evaluation_put_answer(j, more);
}

oct_status oct_evaluation_report(oct_evaluation *s, oct_document *to, oct_err *err)
{
    oct_evaluation_notes notes = { .e = s, .r = s->result, .st = OCT_OK, .err = err };
    oct_report_context with = s->context;
    with.put_more = put_more;
    with.more = s;
    if (s->x.html) {
        with.title = "Evaluation";
        with.command = s->h.command ? s->h.command : "octet_evaluate_model";
        with.put_notes = oct_evaluation_put_notes;
        with.notes = &notes;
    }
    oct_report_document(s->result, &with, to);
    oct_target_close(notes.target);
    OCT_TRY(notes.st);
    return oct_document_root(to) ? OCT_OK : oct_nomem(err);
}

bool oct_evaluation_shows_layers(const oct_evaluation *s)
{
    return s->x.layers > 0;
}

oct_status oct_evaluation_gates(const oct_evaluation *s, oct_err *err)
{
    char text[OCT_GATE_TEXT];
    const oct_report_context *c = &s->context;
    const oct_eval_result *r = s->result;
    const oct_gate_result *last = NULL;
    for (size_t i = 0; i < c->n_gates; i++) {
        if (c->gates[i].met)
            continue;
        if (last && s->h.missed)
            s->h.missed(s->h.voice.arg, r->models[last->model].name, oct_report_gate_result(text, last));
        last = &c->gates[i];
    }
    return last ? oct_fail(err, OCT_EGOAL, "%s: %s", r->models[last->model].name, oct_report_gate_result(text, last))
                : OCT_OK;
}

/* ---- the whole ---- */

static oct_status check_ranges(const octet_evaluate_options *x, oct_err *err)
{
    if (!x->model)
        return oct_fail(err, OCT_EUSAGE, "there is no model: its name is NULL");
    if (x->threads < 0 || x->threads > 1024)
        return oct_fail(err, OCT_EUSAGE, "%d threads: not between 0 and 1024", x->threads);
    if (x->batch < 0 || x->batch > 4096 || x->runs < 0 || x->runs > 1000)
        return oct_fail(err, OCT_EUSAGE, "a batch of %lld, and %lld runs: give at most 4096 and 1000",
                        (long long)x->batch, (long long)x->runs);
    if (x->compute && strcmp(x->compute, "bf16") != 0)
        return oct_fail(err, OCT_EUSAGE, "--compute: there is no '%s'", x->compute);
    if (x->runner_for && strcmp(x->runner_for, "all") != 0 && strcmp(x->runner_for, "quant") != 0)
        return oct_fail(err, OCT_EUSAGE, "--runner-for: there is no '%s'", x->runner_for);
    if (!(x->metric_timeout >= 0) || !(x->runner_timeout >= 0))
        return oct_fail(err, OCT_EUSAGE, "a number of seconds is below 0");
    if (x->twin && (x->runner || x->compute || x->sweep || x->profile || x->latency > 0))
        return oct_fail(err, OCT_EUSAGE,
                        "--as computes models with another runtime's arithmetic, and %s runs them otherwise",
                        x->runner    ? "--runner"
                        : x->compute ? "--compute"
                        : x->sweep   ? "--sweep"
                        : x->profile ? "--profile"
                                     : "--latency");
    if (x->sweep && x->runner)
        return oct_fail(err, OCT_EUSAGE, "--sweep times models in this runtime, and --runner runs them in another");
    return oct_samples_check(&x->samples, err);
}

oct_status oct_evaluation_check_outputs(const octet_evaluate_options *x, const oct_evaluation_host *h, const char *kept,
                                        oct_err *err)
{
    const char *const one[] = { x->model, x->samples.labels, x->truth,   oct_rule_file(x->decode),
                                kept,     x->gates,          x->baseline };
    for (size_t i = 0; i < h->n_written; i++) {
        const char *out = h->written[i];
        OCT_TRY(oct_check_output(out, one, OCT_COUNT(one), err));
        OCT_TRY(oct_check_output(out, x->quantized.v, x->quantized.n, err));
        OCT_TRY(oct_check_output(out, x->samples.data.v, x->samples.data.n, err));
        OCT_TRY(oct_check_output(out, h->parts.v, h->parts.n, err));
        if (out && kept && oct_same_output(out, kept)) /* the file may not exist yet */
            return oct_fail(err, OCT_EUSAGE, "%s: two outputs would be written there", out);
    }
    return OCT_OK;
}

static oct_status open_all(oct_evaluation *s, oct_err *err)
{
    static const double answer = 120; /* seconds */
    const octet_evaluate_options *x = &s->x;
    const oct_evaluation_host *h = &s->h;
    if (!s->arena)
        return oct_nomem(err);
    if (h->parts.n)
        OCT_TRY(oct_evaluation_take_parts(s, err));
    OCT_TRY(check_ranges(x, err));
    if (x->twin)
        OCT_TRY_WITHIN(oct_twin_find(x->twin, &s->twin, err), err, "--as");
    OCT_TRY(oct_evaluation_check_outputs(x, h, NULL, err));
    s->command = (oct_metric_command){ x->metric_command, x->less_is_better, x->metric_timeout };
    OCT_TRY(read_all(x, &s->gates, err));
    OCT_TRY(check_gates(x, h->other, &s->gates, err));
    if (!s->gates.n) { /* the gates of the parts' command lines, if there are none */
        oct_gates_free(&s->gates);
        s->gates = s->part_gates;
        s->part_gates = (oct_gates){ 0 };
    }
    OCT_TRY(read_baseline(x, s->arena, &s->baseline, err));
    OCT_TRY(oct_judging_open(x->decode, x->truth, &s->decode, &s->truth, err));
    if (!(s->pool = oct_pool_create(x->threads)))
        return oct_pool_fail(x->threads, err);
    s->remote =
        (oct_remote_opts){ x->runner, oct_pool_threads(s->pool), x->runner_timeout > 0 ? x->runner_timeout : answer };
    return load_models(s, err);
}

oct_status oct_evaluation_open(const octet_evaluate_options *x, const oct_evaluation_host *h, oct_evaluation **to,
                               oct_err *err)
{
    oct_evaluation *s = *to = oct_alloc(sizeof *s);
    if (!s)
        return oct_nomem(err);
    *s = (oct_evaluation){ .x = *x, .h = *h, .arena = oct_arena_create() };
    const oct_status st = open_all(s, err);
    if (st != OCT_OK) {
        oct_evaluation_close(s);
        *to = NULL;
    }
    return st;
}

void oct_evaluation_close(oct_evaluation *s)
{
    if (!s)
        return;
    oct_eval_free(s->result);
    oct_source_close(s->src);
    for (size_t k = 0; s->loaded && k < s->n_models; k++)
        oct_model_free(s->loaded[k]);
    oct_pool_destroy(s->pool);
    oct_gates_free(&s->gates);
    oct_gates_free(&s->part_gates);
    oct_parts_close(&s->parts);
    oct_decode_close(s->decode);
    oct_truth_close(s->truth);
    oct_arena_destroy(s->arena);
    oct_free(s);
}
