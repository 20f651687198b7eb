/* qeval: compares a float model with quantized ones: accuracy, errors, latency, memory and size. */
#include "qeval/inside.h"

#include "base/io.h"
#include "cli/textfmt.h"
#include "eval/run/outputs.h"
#include "eval/run/scaled.h"
#include "eval/run/sweep.h"
#include "forms/write/ends.h"
#include "kernels/cpu.h"
#include "ops/op.h"
#include "quant/simulate/memo.h"

#include <math.h>
#include <string.h>

enum { CHEAP_LAYER_SAMPLES = 16, OUTPUTS_BATCH = 8 };
static const double CHEAP_SECONDS = 0.5, FULL_SECONDS = 3;

/* What exists as long as the run. */
typedef struct session {
    const qeval_args *a;
    oct_cli *cli;
    oct_arena *arena;
    oct_pool *pool;
    oct_model **loaded;
    oct_eval_model *models;
    size_t n_models;
    oct_source *src;
    const oct_state *states;
    size_t n_states;
    oct_remote_opts remote; /* for --runner */
    oct_gates gates;
    oct_baseline *baseline; /* NULL: not given */
    oct_decode *decode;     /* NULL: not given */
    oct_truth *truth;
    oct_parts parts; /* for merge */
    qeval_joining joining;
} session;

/* ---- models ---- */

/* Adds the float model in bf16: beside the float model if models are compared, else in its place. */
static oct_status add_bf16(session *s, oct_err *err)
{
    oct_eval_model *m = &s->models[s->a->outputs ? 0 : s->n_models++];
    *m = s->models[0];
    m->bf16 = true;
    m->name = oct_arena_printf(s->arena, "%s in bf16", s->a->model);
    return m->name ? OCT_OK : oct_nomem(err);
}

/* Whether --runner runs the k-th model. */
static bool is_remote(const session *s, size_t k)
{
    return s->a->runner && (k || !s->a->runner_for || strcmp(s->a->runner_for, "quant") != 0);
}

/* Another runtime runs the file unchanged, so the types of its inputs and outputs must be those of the float model. */
static oct_status leave_ends(const session *s, size_t k, oct_err *err)
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
static oct_status match_ends(session *s, size_t k, oct_err *err)
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

static oct_status load_models(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    s->n_models = 1 + a->others.n;
    s->loaded = oct_arena_calloc(s->arena, s->n_models + 1, sizeof *s->loaded);
    s->models = oct_arena_calloc(s->arena, s->n_models + 1, sizeof *s->models);
    if (!s->loaded || !s->models)
        return oct_nomem(err);
    for (size_t k = 0; k < s->n_models; k++) {
        const char *path = k ? a->others.v[k - 1] : a->model;
        OCT_TRY(tool_load(s->cli, path, &s->loaded[k], err));
        s->models[k] = (oct_eval_model){ path,
                                         s->loaded[k]->graph,
                                         oct_model_bytes(s->loaded[k]),
                                         oct_model_meta(s->loaded[k], OCT_SCALED_KEY),
                                         false,
                                         is_remote(s, k) ? &s->remote : NULL };
        if (s->parts.n && oct_model_hash(s->loaded[k]) != s->joining.hash[k])
            return qeval_changed(path, err);
        if (k)
            OCT_TRY(is_remote(s, k) ? leave_ends(s, k, err) : match_ends(s, k, err));
    }
    return a->compute ? add_bf16(s, err) : OCT_OK;
}

/* ---- data ---- */

/* Opens the samples for the inputs of all models. */
static oct_status open_source(const session *s, oct_samples *d, oct_source **src, oct_err *err)
{
    const tool_data *a = &s->a->data;
    oct_input_desc *inputs;
    size_t n;
    OCT_TRY(oct_eval_inputs(s->models, s->n_models, s->arena, &inputs, &n, err));
    *d = (oct_samples){ .of = tool_samples(s->cli, a), .shard_i = a->shard_i, .shard_n = a->shard_n };
    OCT_TRY(oct_samples_read_states(s->models[0].graph, d, err));
    d->of.first |= d->n_state && d->of.samples; /* states need all samples in between */
    return oct_samples_open_inputs(inputs, n, d, 0, src, err);
}

static oct_status open_data(session *s, oct_err *err)
{
    oct_samples d;
    oct_samples_warn_pixels(tool_voice(s->cli), s->models[0].graph, tool_texts(s->a->data.preprocess));
    OCT_TRY(open_source(s, &d, &s->src, err));
    s->n_states = d.n_state;
    if (!(s->states = oct_arena_memdup(s->arena, d.state, sizeof d.state)))
        return oct_nomem(err);
    const char *words = oct_source_preprocess_words(s->src);
    if (words && words[0])
        oct_cli_note(s->cli, 1, "preprocessing: %s", words);
    oct_samples_say_chosen(tool_voice(s->cli), s->src);
    return OCT_OK;
}

/* Collects the samples that were skipped, for the reports. The messages are valid as long as the source is open. */
static oct_status collect_bad(session *s, const char ***bad, size_t *n, oct_err *err)
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

static void warn_of_fit(const session *s, const char *model, const oct_input_fit *f)
{
    const oct_fit fit = oct_input_fit_judge(f);
    if (fit == OCT_FIT_OUTSIDE)
        oct_cli_warn(
            s->cli,
            "%s: input '%s' holds %.4g to %.4g, and %.0f %% of the samples' values (%.4g to %.4g) lie outside: is --preprocess that of its calibration?",
            model, f->input, f->lo, f->hi, 100 * (double)f->outside / (double)f->n, f->min, f->max);
    else if (fit == OCT_FIT_NARROW)
        oct_cli_warn(
            s->cli,
            "%s: input '%s' holds %.4g to %.4g, and the samples' values take %.4g to %.4g of it alone: is --preprocess that of its calibration?",
            model, f->input, f->lo, f->hi, f->min, f->max);
}

/* Outputs that are no numbers are worth nothing, whatever a metric makes of them. */
static void warn_of_nan(const session *s, const oct_eval_result *r)
{
    for (size_t k = 0; k < r->n_models; k++)
        for (size_t i = 0; i < r->n_outputs; i++) {
            const oct_eval_output *o = &r->models[k].outputs[i];
            if (o->broken)
                oct_cli_warn(s->cli, "%s: output '%s' has %llu value%s that %s not finite%s", r->models[k].name,
                             o->name, (unsigned long long)o->broken, o->broken == 1 ? "" : "s",
                             o->broken == 1 ? "is" : "are", k ? ", or not the float model's" : "");
        }
}

/* A sample that a metric leaves out for one of two models. */
static void warn_of_lost(const session *s, const oct_eval_result *r)
{
    for (size_t k = 1; k < r->n_models; k++)
        for (size_t i = 0; i < r->n_scores; i++)
            if (r->models[k].scores[i].lost)
                oct_cli_warn(
                    s->cli,
                    "%s: %llu of %lld samples have a number of metric '%s' for one of the two models alone: they count as lost",
                    r->models[k].name, (unsigned long long)r->models[k].scores[i].lost, (long long)r->samples,
                    r->models[k].scores[i].metric->name);
}

/* A float model that guesses is fed or judged wrongly, and then a comparison with it means little. */
static void warn_of_guesses(const session *s, const oct_eval_result *r)
{
    for (size_t i = 0; i < r->n_scores; i++) {
        const oct_eval_score *c = &r->models[0].scores[i];
        if (!oct_eval_is_guess(c))
            continue;
        oct_cli_warn(
            s->cli,
            "%s: %s is %.3g %% of %llu samples, and guessing has %.3g %%: do --preprocess and the order of the labels fit it?",
            r->models[0].name, c->metric->name, 100 * c->value, (unsigned long long)c->n, 100 * c->chance);
        return;
    }
}

/* Warns if a model was calibrated with other preprocessing. A model that takes pixels has the preprocessing inside. */
static void warn_of_steps(const session *s, size_t k, const char *is)
{
    const char *was = oct_model_meta(s->loaded[k], "octet.preprocess");
    if (was && is && *was && *is && strcmp(was, is) != 0 && !oct_model_meta(s->loaded[k], OCT_ENDS_KEY))
        oct_cli_warn(s->cli, "%s was calibrated with --preprocess %s, and these samples are prepared with %s",
                     s->models[k].name, was, is);
}

static void warn_of_samples(const session *s, const oct_eval_result *r, const char *preprocess)
{
    warn_of_nan(s, r);
    warn_of_lost(s, r);
    warn_of_guesses(s, r);
    for (size_t k = 0; k < r->n_models && !s->models[k].bf16; k++) {
        warn_of_steps(s, k, preprocess);
        for (size_t i = 0; i < r->models[k].n_fit; i++)
            warn_of_fit(s, r->models[k].name, &r->models[k].fit[i]);
    }
}

/* ---- gates ---- */

/* A metric that only one of the reports has is not compared, and a drop of it would not be seen. */
static void warn_of_gaps(const session *s, const oct_eval_result *r)
{
    oct_buf now = OCT_BUF_INIT, then = OCT_BUF_INIT;
    oct_baseline_gaps(s->baseline, r, &now, &then);
    if (*oct_buf_str(&now))
        oct_cli_warn(s->cli, "%s does not have %s: not compared", s->baseline->label, oct_buf_str(&now));
    if (*oct_buf_str(&then))
        oct_cli_warn(s->cli, "%s has %s, not computed now: not compared", s->baseline->label, oct_buf_str(&then));
    oct_buf_free(&now);
    oct_buf_free(&then);
}

static oct_status judge(const session *s, oct_eval_result *r, oct_report_context *c, oct_err *err)
{
    OCT_TRY(oct_gates_judge(&s->gates, r, &c->gates, &c->n_gates, err));
    if (!s->baseline)
        return OCT_OK;
    if (!isnan(s->baseline->samples) && s->baseline->samples != (double)r->samples)
        oct_cli_warn(s->cli, "%s is of %.0f samples, and these are %lld", s->baseline->label, s->baseline->samples,
                     (long long)r->samples);
    warn_of_gaps(s, r);
    return oct_baseline_judge(s->baseline, r, &c->gates, &c->n_gates, err);
}

/* ---- writing ---- */

static oct_status print_reports(session *s, const oct_item *report, oct_err *err)
{
    FILE *f = oct_cli_result(s->cli);
    oct_progress_clear(&s->cli->progress);
    if (!report)
        return oct_nomem(err);
    if (!s->cli->quiet || f == s->cli->out)
        OCT_TRY(qeval_print(report, s->a->layers, s->a->profile, f, err));
    OCT_TRY(tool_write_report(s->cli->json, oct_json_text, report, err));
    OCT_TRY(tool_write_report(s->a->html, oct_report_html, report, err));
    OCT_TRY(tool_write_report(s->a->markdown, oct_report_markdown, report, err));
    return tool_write_report(s->a->junit, oct_report_junit, report, err);
}

/* Makes the report, and prints it in every form that is asked for. */
static oct_status write_reports(session *s, oct_eval_result *r, const oct_report_context *c, oct_err *err)
{
    qeval_page page = { .models = s->models, .loaded = s->loaded, .r = r, .arena = s->arena, .st = OCT_OK, .err = err };
    oct_report_context with = *c;
    oct_buf command = OCT_BUF_INIT;
    oct_document *report = oct_document_create();
    if (s->a->html) {
        tool_command_line(&command, s->cli, s->a->argc, s->a->argv);
        with.title = "Evaluation";
        with.command = oct_buf_str(&command);
        with.put_notes = qeval_page_put;
        with.notes = &page;
    }
    oct_status st = report && !command.failed ? OCT_OK : oct_nomem(err);
    if (st == OCT_OK) {
        oct_report_document(r, &with, report);
        st = page.st;
    }
    if (st == OCT_OK)
        st = print_reports(s, oct_document_root(report), err);
    oct_target_close(page.target);
    oct_document_destroy(report);
    oct_buf_free(&command);
    return st;
}

/* ---- evaluating, writing a part, joining parts ---- */

static oct_status pick_metrics(const session *s, const oct_metric ***metrics, oct_err *err)
{
    *metrics = oct_arena_calloc(s->arena, s->a->metrics.n + 1, sizeof **metrics);
    if (!*metrics)
        return oct_nomem(err);
    for (size_t i = 0; i < s->a->metrics.n; i++)
        OCT_TRY(oct_metric_find(s->a->metrics.v[i], &(*metrics)[i], err));
    return OCT_OK;
}

/* Uses a source of its own, because the samples of the comparison are consumed, and messages about them are kept. */
static oct_status run_sweep(const session *s, oct_eval_result *r, oct_err *err)
{
    oct_source *src;
    oct_samples d;
    if (!s->a->sweep)
        return OCT_OK;
    OCT_TRY(open_source(s, &d, &src, err));
    const oct_status st = oct_eval_sweep(s->models, s->n_models, src, (int)s->cli->threads, r, err);
    oct_source_close(src);
    return st;
}

/* The options of an evaluation, except for the metrics. */
static oct_eval_options options_of(const session *s)
{
    const qeval_args *a = s->a;
    /* A request for one of the two slow measurements (layers, latency) leaves out the other. Without a request, both
     * are made briefly. Gates on times justify long measurements. */
    const bool timed = oct_gates_timed(&s->gates), asked = a->layers || a->latency;
    const bool no_latency = oct_cli_given(s->cli, "latency") && !a->latency;
    const bool no_layers = a->runner || (oct_cli_given(s->cli, "layers") && !a->layers);
    return (oct_eval_options){
        .pool = s->pool,
        .batch = (size_t)a->batch,
        .rule = s->decode,
        .truth = s->truth,
        .per_class = a->per_class,
        .command = a->command.command ? &a->command : NULL,
        .layer_samples = s->parts.n           ? s->joining.layer_samples
                         : a->layers          ? -1
                         : asked || no_layers ? 0
                                              : CHEAP_LAYER_SAMPLES,
        .latency_seconds = a->latency || timed   ? FULL_SECONDS
                           : asked || no_latency ? 0
                                                 : CHEAP_SECONDS,
        .latency_runs = (int)a->runs,
        .profile = a->profile || a->html,
        .states = s->states,
        .n_states = s->n_states,
        .progress = oct_progress_report,
        .progress_arg = &s->cli->progress,
    };
}

/* Adds requested metrics and those of gates: of the parts, if there are any, and of this command line. */
static oct_status add_metrics(const session *s, oct_eval_options *o, oct_err *err)
{
    const oct_metric **asked, **of_parts = NULL, **of_gates;
    size_t n_parts = 0, n;
    OCT_TRY(pick_metrics(s, &asked, err));
    OCT_TRY(oct_gates_metrics(&s->gates, &of_gates, &n, err));
    if (s->joining.gates.n)
        OCT_TRY(oct_gates_metrics(&s->joining.gates, &of_parts, &n_parts, err));
    const oct_metric **needed = oct_arena_calloc(s->arena, n_parts + n + 1, sizeof *needed);
    if (!needed)
        return oct_nomem(err);
    for (size_t i = 0; i < n_parts + n; i++)
        needed[i] = i < n_parts ? of_parts[i] : of_gates[i - n_parts];
    o->metrics = s->a->metrics.n ? asked : NULL;
    o->n_metrics = s->a->metrics.n;
    o->needed = needed;
    o->n_needed = n_parts + n;
    o->main_limit = oct_gates_main_limit(&s->gates);
    return OCT_OK;
}

/* Judges the result and writes the reports. */
static oct_status conclude(session *s, oct_eval_result *r, oct_report_context *c, oct_err *err)
{
    r->isa = oct_isa_name(oct_isa_active());
    warn_of_samples(s, r, c->preprocess);
    OCT_TRY(run_sweep(s, r, err));
    OCT_TRY(judge(s, r, c, err));
    OCT_TRY(write_reports(s, r, c, err));
    return qeval_judge_gates(s->cli, r, c, err);
}

static oct_status compare(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    oct_report_context c = { .data = a->data.specs.v, .n_data = a->data.specs.n };
    OCT_TRY(open_data(s, err));
    oct_eval_options o = options_of(s);
    oct_eval_result *r = NULL;
    const char **bad = NULL;
    OCT_TRY(add_metrics(s, &o, err));
    OCT_TRY(oct_eval(s->models, s->n_models, s->src, &o, &r, err));
    c.preprocess = oct_source_preprocess(s->src);
    oct_samples_say_bad(tool_voice(s->cli), s->src);
    oct_status st = collect_bad(s, &bad, &c.n_bad, err);
    c.bad = bad;
    if (st == OCT_OK)
        st = conclude(s, r, &c, err);
    oct_eval_free(r);
    return st;
}

/* Writes the contributions of the samples of one part to a file. */
static oct_status write_part(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    const long long part = (long long)a->data.shard_i, parts = (long long)a->data.shard_n;
    oct_buf asked = OCT_BUF_INIT;
    oct_part_out p;
    int64_t samples = 0;
    OCT_TRY(open_data(s, err));
    oct_eval_options o = options_of(s);
    OCT_TRY(add_metrics(s, &o, err));
    oct_status st = qeval_put_asked(a, s->loaded, o.layer_samples, &asked, err);
    if (st == OCT_OK)
        st = oct_part_create(&p, a->part, oct_buf_str(&asked), (uint32_t)part, (uint32_t)parts, err);
    oct_buf_free(&asked);
    if (st == OCT_OK)
        st = oct_eval_part(s->models, s->n_models, s->src, &o, &p, &samples, err);
    OCT_TRY(st);
    oct_samples_say_bad(tool_voice(s->cli), s->src);
    if (!samples)
        oct_cli_warn(s->cli, "shard %lld/%lld holds no samples", part, parts);
    oct_cli_note(s->cli, 0, "%s: part %lld/%lld, %lld samples%s", a->part, part, parts, (long long)samples,
                 s->gates.n ? "; 'qeval merge' judges the gates, of all parts" : "");
    return OCT_OK;
}

static void say_joined(const session *s, const oct_joined *j)
{
    if (!j->bad_samples)
        return;
    oct_cli_warn(s->cli, "%lld broken sample%s left out", (long long)j->bad_samples,
                 j->bad_samples == 1 ? " was" : "s were");
    for (size_t i = 0; i < j->n_bad && (i < 5 || s->cli->verbose); i++)
        oct_cli_note(s->cli, 0, "  %s", j->bad[i]);
}

/* Makes the report for all samples from parts. */
static oct_status join_parts(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    oct_joined j = { 0 };
    oct_eval_options o = options_of(s);
    oct_eval_result *r = NULL;
    OCT_TRY(add_metrics(s, &o, err));
    OCT_TRY(oct_eval_join(s->models, s->n_models, &s->parts, &o, &j, &r, err));
    oct_report_context c = {
        .data = a->data.specs.v, .n_data = a->data.specs.n, .preprocess = j.preprocess, .bad = j.bad, .n_bad = j.n_bad
    };
    say_joined(s, &j);
    const oct_status st = conclude(s, r, &c, err);
    oct_eval_free(r);
    return st;
}

static oct_status write_outputs(session *s, oct_err *err)
{
    if (s->n_models > 1)
        return oct_fail(err, OCT_EUSAGE, "--outputs runs one model, and %zu are given", s->n_models);
    OCT_TRY(open_data(s, err));
    const bool shares = oct_op_shares_scales(s->models[0].graph);
    const size_t batch = s->a->batch ? (size_t)s->a->batch : shares ? 1 : OUTPUTS_BATCH;
    int64_t samples;
    const oct_engine_opts how = { s->pool, s->models[0].bf16, s->models[0].remote, s->models[0].name };
    oct_status st = oct_write_outputs(s->models[0].graph, s->states, s->n_states, &how, s->src, s->a->outputs, batch,
                                      oct_progress_report, &s->cli->progress, &samples, err);
    if (st == OCT_EUNSUPPORTED || st == OCT_ENUMERIC)
        oct_within(err, "%s", s->a->model);
    OCT_TRY(st);
    oct_samples_say_bad(tool_voice(s->cli), s->src);
    oct_cli_note(s->cli, 0, "%s: outputs of %lld samples%s", s->a->outputs, (long long)samples,
                 shares && batch > 1 ? "; the model quantizes dynamically, so they depend on --batch" : "");
    return OCT_OK;
}

static bool looks_inside(const qeval_args *a)
{
    return a->dump.n || a->print_plan;
}

static oct_status look_inside(session *s, oct_err *err)
{
    if (s->n_models > 1 || s->a->runner)
        return oct_fail(err, OCT_EUSAGE, "--dump and --print-plan look into one model, in this runtime");
    OCT_TRY(open_data(s, err));
    oct_status st = qeval_look_inside(s->a, &s->models[0], s->pool, s->src, s->cli, s->arena, err);
    if (st == OCT_EUNSUPPORTED || st == OCT_ENUMERIC)
        oct_within(err, "%s", s->a->model);
    return st;
}

static oct_status check_cases(session *s, oct_err *err)
{
    const qeval_args *a = s->a;
    if (s->n_models > 1 || a->data.specs.n != 1)
        return oct_fail(err, OCT_EUSAGE, "--check runs one model on one test case");
    oct_check_options o = { a->rtol, a->atol, s->pool };
    oct_check_result r;
    oct_status st = oct_check_case(s->models[0].graph, a->data.specs.v[0], &o, &r, err);
    if (st != OCT_OK) {
        oct_within(err, "%s", a->model);
        return st;
    }
    oct_buf b = OCT_BUF_INIT;
    if (s->cli->json) {
        oct_check_json(a->model, a->data.specs.v[0], &o, &r, &b);
        st = tool_write_text(s->cli->json, &b, err);
        oct_buf_free(&b);
    }
    if (st == OCT_OK && a->junit) {
        oct_check_junit(a->model, a->data.specs.v[0], &r, &b);
        st = tool_write_text(a->junit, &b, err);
        oct_buf_free(&b);
    }
    if (st != OCT_OK)
        return st;
    if (r.first[0])
        return oct_fail(err, OCT_EGOAL, "%s: %s; %llu of %llu values differ, by at most %.3g", a->data.specs.v[0],
                        r.first, (unsigned long long)r.differ, (unsigned long long)r.values, r.max_abs);
    if (!s->cli->quiet)
        oct_print(oct_cli_result(s->cli), "%s: %zu output%s agree, largest difference %.3g\n", a->data.specs.v[0],
                  r.outputs, r.outputs == 1 ? "" : "s", r.max_abs);
    return OCT_OK;
}

/* Checks, before the work, that no output is an input. */
static oct_status check_outputs(const qeval_args *a, const oct_cli *cli, oct_err *err)
{
    const char *const outs[] = { a->part, a->outputs, a->html, a->junit, a->markdown, cli->json };
    const char *const one[] = { a->model, a->data.labels, a->truth, oct_rule_file(a->decode), a->sensitivity_file,
                                a->gates, a->baseline };
    for (size_t i = 0; i < OCT_COUNT(outs); i++) {
        OCT_TRY(oct_check_output(outs[i], one, OCT_COUNT(one), err));
        OCT_TRY(oct_check_output(outs[i], a->others.v, a->others.n, err));
        OCT_TRY(oct_check_output(outs[i], a->data.specs.v, a->data.specs.n, err));
        OCT_TRY(oct_check_output(outs[i], a->parts.v, a->parts.n, err));
        if (outs[i] && a->sensitivity_file &&
            oct_same_output(outs[i], a->sensitivity_file)) /* the file may not exist yet */
            return oct_fail(err, OCT_EUSAGE, "%s: two outputs would be written there", outs[i]);
    }
    return OCT_OK;
}

/* a gets the options of the parts. */
static oct_status take_parts(session *s, qeval_args *a, oct_err *err)
{
    OCT_TRY(qeval_take_asked(&s->parts.v[0], s->arena, a, &s->joining, err));
    return check_outputs(a, s->cli, err);
}

static oct_status evaluate(session *s, qeval_args *a, oct_err *err)
{
    oct_cli *cli = s->cli;
    if (a->parts.n)
        OCT_TRY(take_parts(s, a, err));
    OCT_TRY(qeval_read_gates(a, cli, &s->gates, err));
    if (!s->gates.n) { /* the gates of the parts' command lines, if this one has none */
        oct_gates_free(&s->gates);
        s->gates = s->joining.gates;
        s->joining.gates = (oct_gates){ 0 };
    }
    OCT_TRY(qeval_read_baseline(a, s->arena, &s->baseline, err));
    OCT_TRY(oct_judging_open(s->a->decode, s->a->truth, &s->decode, &s->truth, err));
    if (!(s->pool = oct_pool_create((int)cli->threads)))
        return oct_pool_fail((int)cli->threads, err);
    s->remote = (oct_remote_opts){ a->runner, oct_pool_threads(s->pool), a->runner_timeout };
    OCT_TRY(load_models(s, err));
    return a->check          ? check_cases(s, err)
           : a->outputs      ? write_outputs(s, err)
           : looks_inside(a) ? look_inside(s, err)
           : a->part         ? write_part(s, err)
           : a->parts.n      ? join_parts(s, err)
                             : compare(s, err);
}

static oct_status run(qeval_args *a, oct_cli *cli, oct_err *err)
{
    OCT_TRY(tool_read_shard(&a->data, err));
    OCT_TRY(check_outputs(a, cli, err));
    if (a->sensitivity || a->sensitivity_file)
        return qeval_sensitivity(a, cli, err);
    session s = { .a = a, .cli = cli, .arena = oct_arena_create() };
    oct_status st = s.arena ? OCT_OK : oct_nomem(err);
    if (st == OCT_OK && a->parts.n)
        st = oct_parts_open(&s.parts, a->parts.v, a->parts.n, err);
    if (st == OCT_OK)
        st = evaluate(&s, a, err);
    oct_source_close(s.src);
    for (size_t k = 0; s.loaded && k < s.n_models; k++)
        oct_model_free(s.loaded[k]);
    oct_pool_destroy(s.pool);
    oct_gates_free(&s.gates);
    oct_gates_free(&s.joining.gates);
    oct_parts_close(&s.parts);
    oct_decode_close(s.decode);
    oct_truth_close(s.truth);
    oct_arena_destroy(s.arena);
    return st;
}

static const char *compute_name(size_t i, const char **summary)
{
    *summary = i == 0 ? "products of bfloat16, as AMX computes them; sums, biases and all else are float32" : NULL;
    return i == 0 ? "bf16" : NULL;
}

static const char *runner_for_name(size_t i, const char **summary)
{
    static const char *const names[] = { "all", "quant" }, *const summaries[] = {
        "every model", "the quantized models; the float one runs here"
    };
    *summary = i < OCT_COUNT(names) ? summaries[i] : NULL;
    return i < OCT_COUNT(names) ? names[i] : NULL;
}

/* Options that evaluating and merging have in common. a: qeval_args *. */
#define QEVAL_OPT_GATES(a)                                                                                                         \
    OPT_GROUP("Gates: exit 1 when a quantized model does not meet one"),                                                           \
        OPT_MULTI(                                                                                                                 \
            0, "max-drop", &(a)->max_drop, "[M=]D",                                                                                \
            "how much worse the metric may be: M, else the first; 0.01 in its own units, 0.5% is 0.005, 0.5r% relative to float"), \
        OPT_STR(0, "min-agreement", &(a)->gate[OCT_GATE_AGREEMENT], "SHARE",                                                       \
                "share of samples on which the largest output is the float model's: 99%, 0.99"),                                   \
        OPT_STR(0, "min-sqnr", &(a)->gate[OCT_GATE_SQNR], "DB", "signal to quantization noise of the worst output"),               \
        OPT_STR(0, "min-speedup", &(a)->gate[OCT_GATE_SPEEDUP], "R", "at least R times as fast as the float model"),               \
        OPT_STR(0, "max-latency", &(a)->gate[OCT_GATE_LATENCY], "MS", "median time for one sample, in milliseconds"),              \
        OPT_STR(0, "max-size", &(a)->gate[OCT_GATE_SIZE], "SIZE",                                                                  \
                "size of the file: 12MB, 800kB, bytes, or 25% of the float model's"),                                              \
        OPT_STR(0, "max-memory", &(a)->gate[OCT_GATE_MEMORY], "SIZE",                                                              \
                "memory for weights and intermediate tensors of one sample, written like --max-size"),                             \
        OPT_FILE(0, "gates", &(a)->gates, "a file with such gates, one a line: max-drop top1 0.5%"),                               \
        OPT_FILE(                                                                                                                  \
            0, "baseline", &(a)->baseline,                                                                                         \
            "an earlier --json report: nothing may be worse by more than noise explains, and sizes by more than 1 %")
#define QEVAL_OPT_REPORTS(a)                                         \
    OPT_OUT(0, "html", &(a)->html, "write a page for the browser"),  \
        OPT_OUT(0, "junit", &(a)->junit, "write JUnit XML, for CI"), \
        OPT_OUT(0, "markdown", &(a)->markdown, "write short tables in Markdown; for the summary of a CI job")

int qeval_main(int argc, char **argv, const oct_cli_host *host)
{
    qeval_args a = { .rtol = 1e-3, .atol = 1e-5, .runner_timeout = 120, .argc = argc, .argv = argv };
    const oct_cli_opt opts[] = {
        OPT_POSITIONAL("FLOAT", &a.model, "the float ONNX model, to which the others are compared"),
        OPT_POSITIONALS("QUANT", &a.others, 0, "quantized models, made by any tool"),
        TOOL_OPT_DATA(&a.data),
        TOOL_OPT_LABELS(&a.data),
        OPT_INT(
            0, "batch", &a.batch, 1, 4096,
            "samples at a time; only results of dynamically quantized models depend on it [default: 1; with --outputs 8, or 1 for such models]"),
        OPT_ENUM(
            0, "compute", &a.compute, compute_name,
            "also run the float model in this type, and compare it like a quantized one; with --outputs, in place of float32"),
        OPT_STR(0, "shard", &a.data.shard, "I/N",
                "use only part I of N, counted from 0, of the samples; auto and auto/N ask the job's environment"),
        OPT_OUT('o', "output", &a.part, "file to write: the part, for 'qeval merge'"),
        OPT_GROUP("Comparison"),
        OPT_ENUMS(0, "metric", &a.metrics, oct_metric_names,
                  "metric to compute: one or several [default: those that apply]"),
        TOOL_OPT_JUDGING(&a),
        OPT_FLAG(0, "per-class", &a.per_class, "report each class, and which classes are confused"),
        OPT_STR(0, "metric-cmd", &a.command.command, "CMD",
                "a command that prints a metric of the outputs in the .npz it is given; it comes first"),
        OPT_FLAG(0, "less-is-better", &a.command.smaller_is_better, "smaller numbers of --metric-cmd are better"),
        TOOL_OPT_METRIC_TIMEOUT(&a.command.seconds),
        OPT_FLAG(0, "layers", &a.layers, "compare all layers over all samples"),
        OPT_FLAG(0, "latency", &a.latency, "time the models longer, in turn on one sample"),
        OPT_INT(0, "runs", &a.runs, 1, 1000, "time at least N runs of each model"),
        OPT_FLAG(0, "sweep", &a.sweep,
                 "time the models with 1, 2, 4 ... threads up to --threads, and 1, 4 and 16 samples at a time, too"),
        OPT_FLAG(
            0, "profile", &a.profile,
            "print time, throughput and bytes of each layer, float beside quantized, and of each step, with its algorithm and its kernel"),
        OPT_GROUP("Another runtime"),
        OPT_STR(0, "runner", &a.runner, "CMD", "a command that runs the models in another runtime: docs/runner.md"),
        OPT_ENUM(0, "runner-for", &a.runner_for, runner_for_name, "which models the command runs [default: all]"),
        OPT_FLOAT(0, "runner-timeout", &a.runner_timeout, 0.01, 86400, "seconds for each answer [default: 120]"),
        QEVAL_OPT_GATES(&a),
        OPT_GROUP("Instead of comparing"),
        OPT_OUT(0, "outputs", &a.outputs, "write the outputs of the model for all samples into an .npz"),
        OPT_MULTI(
            0, "dump", &a.dump, "NODE=FILE",
            "write what a node (or a value of that name) computes for the first sample as .npy; with a pattern (conv*) FILE is a FOLDER/"),
        OPT_FLAG(0, "print-plan", &a.print_plan,
                 "print the steps that run for the first sample, with kernels and memory"),
        OPT_FLAG(0, "sensitivity", &a.sensitivity,
                 "measure the error at the outputs that quantizing each value and each layer alone causes"),
        OPT_STR(0, "sensitivity-file", &a.sensitivity_file, "FILE",
                "keep what --sensitivity measures in FILE; measurements that it has are not repeated"),
        OPT_FLAG(0, "check", &a.check,
                 "run an ONNX test case (--data DIR/test_data_set_0) and compare with its outputs"),
        OPT_FLOAT(0, "rtol", &a.rtol, 0, 1, "relative tolerance of --check"),
        OPT_FLOAT(0, "atol", &a.atol, 0, 1e9, "absolute tolerance of --check"),
        OPT_GROUP("Reports"),
        QEVAL_OPT_REPORTS(&a),
        OPT_REQUIRED("data"),
        OPT_CONFLICT("sweep", "check"),
        OPT_CONFLICT("sweep", "runner"),
        OPT_CONFLICT("sweep", "outputs"),
        OPT_CONFLICT("sweep", "sensitivity"),
        OPT_CONFLICT("sweep", "sensitivity-file"),
        OPT_CONFLICT("check", "outputs"),
        OPT_CONFLICT("check", "html"),
        OPT_CONFLICT("check", "markdown"),
        OPT_CONFLICT("outputs", "markdown"),
        OPT_CONFLICT("sensitivity", "markdown"),
        OPT_CONFLICT("sensitivity-file", "markdown"),
        OPT_CONFLICT("baseline", "check"),
        OPT_CONFLICT("baseline", "outputs"),
        OPT_CONFLICT("baseline", "sensitivity"),
        OPT_CONFLICT("baseline", "sensitivity-file"),
        OPT_CONFLICT("check", "max-drop"),
        OPT_CONFLICT("check", "metric"),
        OPT_CONFLICT("check", "metric-cmd"),
        OPT_CONFLICT("check", "labels"),
        OPT_CONFLICT("check", "decode"),
        OPT_CONFLICT("outputs", "decode"),
        OPT_CONFLICT("sensitivity", "decode"),
        OPT_CONFLICT("sensitivity-file", "decode"),
        OPT_CONFLICT("check", "truth"),
        OPT_CONFLICT("outputs", "truth"),
        OPT_CONFLICT("sensitivity", "truth"),
        OPT_CONFLICT("sensitivity-file", "truth"),
        OPT_CONFLICT("check", "per-class"),
        OPT_CONFLICT("outputs", "per-class"),
        OPT_CONFLICT("sensitivity", "per-class"),
        OPT_CONFLICT("sensitivity-file", "per-class"),
        OPT_CONFLICT("check", "compute"),
        OPT_CONFLICT("sensitivity", "compute"),
        OPT_CONFLICT("sensitivity-file", "compute"),
        OPT_CONFLICT("dump", "outputs"),
        OPT_CONFLICT("dump", "check"),
        OPT_CONFLICT("dump", "sensitivity"),
        OPT_CONFLICT("dump", "sensitivity-file"),
        OPT_CONFLICT("dump", "shard"),
        OPT_CONFLICT("dump", "sweep"),
        OPT_CONFLICT("dump", "html"),
        OPT_CONFLICT("dump", "junit"),
        OPT_CONFLICT("dump", "json"),
        OPT_CONFLICT("dump", "markdown"),
        OPT_CONFLICT("dump", "max-drop"),
        OPT_CONFLICT("dump", "metric"),
        OPT_CONFLICT("dump", "metric-cmd"),
        OPT_CONFLICT("dump", "baseline"),
        OPT_CONFLICT("dump", "gates"),
        OPT_CONFLICT("dump", "layers"),
        OPT_CONFLICT("dump", "latency"),
        OPT_CONFLICT("dump", "profile"),
        OPT_CONFLICT("print-plan", "outputs"),
        OPT_CONFLICT("print-plan", "check"),
        OPT_CONFLICT("print-plan", "sensitivity"),
        OPT_CONFLICT("print-plan", "sensitivity-file"),
        OPT_CONFLICT("print-plan", "shard"),
        OPT_CONFLICT("print-plan", "sweep"),
        OPT_CONFLICT("print-plan", "html"),
        OPT_CONFLICT("print-plan", "junit"),
        OPT_CONFLICT("print-plan", "json"),
        OPT_CONFLICT("print-plan", "markdown"),
        OPT_CONFLICT("print-plan", "max-drop"),
        OPT_CONFLICT("print-plan", "metric"),
        OPT_CONFLICT("print-plan", "metric-cmd"),
        OPT_CONFLICT("print-plan", "baseline"),
        OPT_CONFLICT("print-plan", "gates"),
        OPT_CONFLICT("print-plan", "layers"),
        OPT_CONFLICT("print-plan", "latency"),
        OPT_CONFLICT("print-plan", "profile"),
        OPT_CONFLICT("outputs", "html"),
        OPT_CONFLICT("outputs", "junit"),
        OPT_CONFLICT("outputs", "json"),
        OPT_CONFLICT("outputs", "max-drop"),
        OPT_CONFLICT("outputs", "metric"),
        OPT_CONFLICT("outputs", "metric-cmd"),
        OPT_NEEDS("less-is-better", "metric-cmd"),
        OPT_NEEDS("metric-timeout", "metric-cmd"),
        OPT_NEEDS("rtol", "check"),
        OPT_NEEDS("atol", "check"),
        OPT_NEEDS("runner-for", "runner"),
        OPT_NEEDS("runner-timeout", "runner"),
        OPT_CONFLICT("runner", "compute"),
        OPT_CONFLICT("runner", "layers"),
        OPT_CONFLICT("runner", "profile"),
        OPT_CONFLICT("runner", "check"),
        OPT_CONFLICT("runner", "sensitivity"),
        OPT_CONFLICT("runner", "sensitivity-file"),
        OPT_CONFLICT("sensitivity", "check"),
        OPT_CONFLICT("sensitivity", "outputs"),
        OPT_CONFLICT("sensitivity", "html"),
        OPT_CONFLICT("sensitivity", "junit"),
        OPT_CONFLICT("sensitivity", "max-drop"),
        OPT_CONFLICT("sensitivity", "metric"),
        OPT_CONFLICT("sensitivity", "metric-cmd"),
        OPT_CONFLICT("sensitivity", "labels"),
        OPT_CONFLICT("sensitivity", "layers"),
        OPT_CONFLICT("sensitivity", "latency"),
        OPT_CONFLICT("sensitivity", "profile"),
        OPT_CONFLICT("sensitivity-file", "check"),
        OPT_CONFLICT("sensitivity-file", "outputs"),
        OPT_CONFLICT("sensitivity-file", "html"),
        OPT_CONFLICT("sensitivity-file", "junit"),
        OPT_CONFLICT("sensitivity-file", "max-drop"),
        OPT_CONFLICT("sensitivity-file", "metric"),
        OPT_CONFLICT("sensitivity-file", "metric-cmd"),
        OPT_CONFLICT("sensitivity-file", "labels"),
        OPT_CONFLICT("sensitivity-file", "layers"),
        OPT_CONFLICT("sensitivity-file", "latency"),
        OPT_CONFLICT("sensitivity-file", "profile"),
        OPT_NEEDS("shard", "output"),
        OPT_NEEDS("output", "shard"),
        OPT_CONFLICT("shard", "check"),
        OPT_CONFLICT("shard", "outputs"),
        OPT_CONFLICT("shard", "html"),
        OPT_CONFLICT("shard", "junit"),
        OPT_CONFLICT("shard", "markdown"),
        OPT_CONFLICT("shard", "json"),
        OPT_CONFLICT("shard", "baseline"),
        OPT_CONFLICT("shard", "latency"),
        OPT_CONFLICT("shard", "sweep"),
        OPT_CONFLICT("shard", "profile"),
        OPT_CONFLICT("shard", "runner"),
        OPT_CONFLICT("shard", "metric-cmd"),
        OPT_CONFLICT("shard", "state"),
        OPT_CONFLICT("shard", "sensitivity"),
        OPT_CONFLICT("shard", "sensitivity-file"),
        OPT_USUAL(
            "data preprocess samples labels metric max-drop gates layers latency html junit markdown json threads quiet verbose"),
        OPT_COMMON,
        OPT_END,
    };
    const oct_cli_opt merge[] = {
        OPT_POSITIONALS("PART", &a.parts, 1, "files of all parts, in any order"),
        OPT_FLAG(0, "latency", &a.latency, "time the models longer, in turn on one sample"),
        OPT_INT(0, "runs", &a.runs, 1, 1000, "time at least N runs of each model"),
        OPT_FLAG(
            0, "profile", &a.profile,
            "print time, throughput and bytes of each layer, float beside quantized, and of each step, with its algorithm and its kernel"),
        QEVAL_OPT_GATES(&a),
        OPT_GROUP("Reports"),
        QEVAL_OPT_REPORTS(&a),
        OPT_USUAL("latency max-drop gates baseline html junit markdown json quiet"),
        OPT_COMMON,
        OPT_END,
    };
    const oct_cli_command commands[] = {
        { "merge", "report on all parts", merge, "  qeval merge a.part b.part --max-drop 0.5% --json report.json\n" },
    };
    oct_err err = OCT_ERR_INIT;
    oct_cli cli = {
        .name = "qeval",
        .summary =
            "Compares a float ONNX model with quantized ones over the same samples: accuracy, error of every layer, "
            "latency, memory, size. With one model, reports on it alone.",
        .opts = opts,
        .commands = commands,
        .n_commands = OCT_COUNT(commands),
        .examples = "  qeval model.onnx model.int8.onnx --data eval.csv --preprocess imagenet\n"
                    "  qeval m.onnx m.int8.onnx --data 'eval/*.npy' --labels y.npy --max-drop 0.5%\n"
                    "  qeval model.onnx --data x.npy --outputs y.npz\n"
                    "  qeval model.onnx theirs.onnx --data x.npy --sensitivity\n",
    };
    tool_init(&cli, host);
    oct_status s = oct_cli_parse(&cli, argc, argv, &err);
    if (s == OCT_OK && !cli.done)
        s = tool_start(&cli, &err);
    if (s == OCT_OK && !cli.done)
        s = run(&a, &cli, &err);
    return tool_finish(&cli, s, &err);
}
