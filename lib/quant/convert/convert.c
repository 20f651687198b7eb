/* One conversion up to its decisions: policy, job, and all steps in their order (steps.inc). What makes several of them
 * and compares these is in fold_choice.c. */
#include "quant/convert/convert_int.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/stop.h"
#include "forms/write/forms_write.h"
#include "passes/pass.h"

#include <math.h>
#include <string.h>

static oct_status run_methods(oct_conversion *c, oct_method_step kind, oct_err *err);

/* Takes the arena. */
static oct_status open(oct_conversion *c, const oct_convert_opts *o, oct_arena *arena, oct_err *err)
{
    *c = (oct_conversion){ .o = *o, .arena = arena, .sqnr = NAN, .began = oct_now(), .run_methods = run_methods };
    c->known = oct_method_all(&c->n_known);
    if (!arena)
        return oct_nomem(err);
    OCT_TRY(oct_policy_create(o->policy, &c->policy, err));
    for (size_t i = 0; i < o->n_rules; i++) {
        const oct_status s = oct_policy_set(c->policy, o->rules[i], "--set", i + 1, err);
        if (s != OCT_OK)
            return err && s == OCT_EMALFORMED ? err->status = OCT_EUSAGE : s;
    }
    if (!o->observer)
        return OCT_OK;
    oct_observer_spec spec;
    OCT_TRY(oct_observer_parse(o->observer, &spec, err));
    oct_buf b = OCT_BUF_INIT;
    oct_buf_printf(&b, "any - - - %s\n", o->observer);
    oct_status st = b.failed ? oct_nomem(err) : oct_policy_add(c->policy, oct_buf_str(&b), OCT_POLICY_OBSERVER, err);
    oct_buf_free(&b);
    return st;
}

oct_status oct_conversion_open(oct_conversion *c, const oct_convert_opts *o, oct_err *err)
{
    return open(c, o, oct_arena_create(), err);
}

/* All but the arena. */
static void release(oct_conversion *c)
{
    oct_eval_free(c->verdict);
    oct_conversion_end_sim(c);
    oct_kept_destroy(c->kept);
    oct_buf_free(&c->scaled);
    oct_qjob_destroy(c->job);
    oct_graph_destroy(c->fl);
    oct_graph_destroy(c->adopted);
    oct_graph_destroy(c->like);
    oct_graph_destroy(c->from_pixels);
    oct_arena_destroy(c->equalized);
    oct_arena_destroy(c->lasting);
    oct_calib_destroy(c->calib);
    for (int h = 0; h < 2; h++)
        oct_calib_destroy(c->half[h]);
    oct_policy_destroy(c->policy);
    oct_fold_end(c);
}

void oct_conversion_close(oct_conversion *c)
{
    release(c);
    oct_arena_destroy(c->arena);
    *c = (oct_conversion){ 0 };
}

oct_status oct_conversion_restart(oct_conversion *c, const oct_convert_opts *o, oct_err *err)
{
    const double began = c->began;
    release(c);
    OCT_TRY(open(c, o, c->arena, err));
    c->began = began;
    return OCT_OK;
}

static void absent(void *arg, const char *place, const char *op)
{
    oct_conversion_say(arg, 1, "%s: the model has no %s", place, op);
}

static void absent_value(void *arg, const char *place, const char *pattern)
{
    oct_conversion_say(arg, OCT_NOTE_WARNING, "%s: no value is named '%s'", place, pattern);
}

/* ONNX Runtime makes MatMulNBits of DequantizeLinear and MatMul when it loads the file. */
static void say_blocks(oct_conversion *c)
{
    if (c->o.job.blocks_qdq && oct_qjob_has_blocks(c->job) && !oct_target_rules_of(c->o.job.target)->never_in_ort)
        oct_conversion_say(c, 0, OCT_ROUNDED_INPUTS "; here they are float");
}

/* Reports the requirements of the target, and how well it is known. */
static void say_target(oct_conversion *c)
{
    const oct_graph *g = c->m->graph;
    const oct_target *t = c->o.job.target;
    if (oct_target_rules_of(t)->proof == OCT_PROOF_NONE)
        oct_conversion_say(c, 1, OCT_RULES_ONLY, oct_target_name(t));
    for (size_t i = 0; oct_target_rules_of(t)->static_shapes && i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        int d = 0;
        while (d < v->shape.rank && v->shape.d[d].n >= 0)
            d++;
        if (v->shape.rank >= 0 && d == v->shape.rank)
            continue;
        oct_conversion_say(
            c, OCT_NOTE_WARNING,
            "the target %s wants fixed shapes, and dimension %d of input '%s' is not fixed: export the model with "
            "whole numbers for all dimensions of its inputs",
            oct_target_name(t), d, v->name);
    }
}

/* A rule that the target cannot follow has no effect that one would see. */
static void say_unmet(oct_conversion *c)
{
    oct_dtype asked, taken;
    const size_t n = oct_qjob_unmet(c->job, &asked, &taken);
    if (n)
        oct_conversion_say(c, OCT_NOTE_WARNING,
                           "the target %s takes no %s activations, which rules ask for: %zu node%s %s instead; "
                           "'qconvert --list-targets' has others",
                           oct_target_name(c->o.job.target), oct_policy_activations(asked), n,
                           n == 1 ? " has" : "s have", oct_policy_activations(taken));
}

/* Of rules that another option makes void one would see nothing, either. */
static oct_status say_void(oct_conversion *c, oct_err *err)
{
    oct_void_rule *list;
    size_t n;
    OCT_TRY(oct_qjob_void_rules(c->job, c->arena, &list, &n, err));
    for (size_t i = 0; i < n; i++)
        oct_conversion_say(c, OCT_NOTE_WARNING, "the rule %s has no effect on %zu node%s: %s", list[i].rule,
                           list[i].nodes, list[i].nodes == 1 ? "" : "s", list[i].why);
    return OCT_OK;
}

static oct_status open_job(oct_conversion *c, oct_err *err)
{
    OCT_TRY(oct_conversion_reopen(c, err));
    if (c->o.join) { /* of prepared nodes, and the job is of the graph as it is then */
        OCT_TRY(c->o.join(c->m->graph, err));
        OCT_TRY(oct_conversion_reopen(c, err));
    }
    if (c->o.job.scheme == OCT_SCHEME_BF16 && oct_target_rules_of(c->o.job.target)->bfloat16 != OCT_BFLOAT16_YES)
        oct_conversion_say(
            c, OCT_NOTE_WARNING,
            "the target %s has no bfloat16 kernels: weights are stored in bfloat16, and all is computed in "
            "float32; --target says where else the model will run",
            oct_target_name(c->o.job.target));
    OCT_TRY(oct_policy_note(c->policy, c->m->graph, err));
    c->n_prepared = c->m->graph->n_node;
    oct_conversion_show(c, "prepared", c->m->graph);
    if (c->o.writable)
        OCT_TRY(c->o.writable(c->m->graph, err));
    say_target(c);
    say_blocks(c);
    say_unmet(c);
    OCT_TRY(say_void(c, err));
    return oct_policy_check(c->policy, c->m->graph, absent, c, err);
}

/* ---- methods ---- */

/* What a method needs and cannot get; NULL: it gets everything. */
static const char *lacks(const oct_conversion *c, const oct_method *m)
{
    const oct_method_needs needs = m->needs;
    if (m->of_blocks)
        return !oct_qjob_has_blocks(c->job) && !oct_qjob_has_expert_blocks(c->job) ? "no layer has weights in blocks"
               : c->src                                                            ? oct_no_running(c)
                                                                                   : "it needs samples";
    if (needs == OCT_NEEDS_SAMPLES)
        return !c->src                                         ? "it needs samples"
               : m->of_dynamic && oct_qjob_has_dynamic(c->job) ? oct_no_running(c)
                                                               : oct_no_measuring(c);
    if (needs == OCT_NEEDS_STATISTICS)
        return !c->calib ? "it needs samples or a table" : oct_qjob_has_qparams(c->job) ? NULL : oct_no_ranges;
    return NULL;
}

/* Called before any work: a requested method must not lack data. */
static oct_status list_methods(oct_conversion *c, oct_err *err)
{
    const oct_method *const *all = c->known;
    c->n_methods = c->n_known;
    c->methods = oct_arena_calloc(c->arena, c->n_methods, sizeof *c->methods);
    if (!c->methods)
        return oct_nomem(err);
    for (size_t i = 0; i < c->n_methods; i++) {
        c->methods[i] = (oct_method_result){ .method = all[i], .before = NAN, .after = NAN };
        const bool there =
            all[i]->needs == OCT_NEEDS_NOTHING || c->src || (all[i]->needs == OCT_NEEDS_STATISTICS && c->calib);
        if (c->o.methods.on[i] && c->o.methods.asked[i] && !there) {
            oct_fail(err, OCT_EUSAGE, "the method '%s' needs %s", all[i]->name, oct_method_needs_name(all[i]->needs));
            oct_hint(err, "give samples with --data");
            return OCT_EUSAGE;
        }
    }
    return OCT_OK;
}

/* Of all steps, in their order. */
static const bool is_method[] = {
#define OCT_STEP(function, words) false,
#define OCT_METHOD(record) true,
#include "quant/convert/steps.inc"
#undef OCT_METHOD
#undef OCT_STEP
};

/* Says that a step begins. */
static void report_step(const oct_conversion *c, const char *words, size_t step)
{
    if (c->o.listener.progress)
        c->o.listener.progress(c->o.listener.arg, words, (int64_t)step, OCT_COUNT(is_method));
}

static size_t step_of_method(size_t method)
{
    size_t step = 0;
    while (!is_method[step] || method--)
        step++;
    return step;
}

static oct_status run_method(oct_conversion *c, size_t i, oct_err *err)
{
    oct_method_result *r = &c->methods[i];
    const oct_method_step kind = r->method->step;
    OCT_TRY(oct_stop_check(err));
    r->why = c->o.methods.on[i] ? lacks(c, r->method) : "switched off";
    if (!r->why && r->method->run) {
        report_step(c, r->method->name, step_of_method(i));
        OCT_TRY(r->method->run(c, r, err));
        if (kind == OCT_STEP_GRAPH && c->src) /* methods that calibrate get all samples */
            OCT_TRY(oct_source_pick(c->src, &(oct_pick){ 0 }, err));
    }
    r->ran = !r->why;
    return OCT_OK;
}

static oct_status run_methods(oct_conversion *c, oct_method_step kind, oct_err *err)
{
    for (size_t i = 0; i < c->n_methods; i++)
        if (c->methods[i].method->step == kind)
            OCT_TRY(run_method(c, i, err));
    return OCT_OK;
}

/* ---- the other steps ---- */

static oct_status begin_statistics(oct_conversion *c, oct_err *err)
{
    if (c->src) {
        OCT_TRY(oct_statistics_see_shapes(c, err)); /* first: sizes decide what needs ranges */
        OCT_TRY(oct_statistics_begin(c, err));
        return oct_conversion_check_metrics(c, err);
    }
    if (c->calib && !oct_qjob_has_qparams(c->job))
        oct_statistics_warn(c);
    else if (c->calib)
        oct_statistics_warn_few(c);
    return OCT_OK;
}

/* Rules may name values that methods have made. */
static oct_status check_values(oct_conversion *c, oct_err *err)
{
    oct_conversion_show(c, "scaled", c->m->graph);
    oct_policy_check_values(c->policy, absent_value, c);
    return OCT_OK;
}

/* Generated samples take the place of the training data. */
static oct_status match_training(oct_conversion *c, oct_err *err)
{
    if (!c->o.synthetic)
        return OCT_OK;
    oct_conversion_say(c, 0, "ranges from synthetic data: what it costs on real data is not known");
    OCT_TRY(oct_synthetic_graph(c->m->graph, c->target, c->n_target, c->src, c->o.job.threads, &c->like, err));
    return oct_source_pick(c->src, &(oct_pick){ 0 }, err);
}

static oct_status gather_statistics(oct_conversion *c, oct_err *err)
{
    if (!c->src || c->gathered) /* or there is nothing to gather */
        return OCT_OK;
    OCT_TRY(match_training(c, err));
    return oct_statistics_gather(c, err);
}

/* Rules about statistics apply now. Also reports that there are samples, but that the model cannot be run on them
 * again. */
static oct_status apply_measured_rules(oct_conversion *c, oct_err *err)
{
    if (oct_policy_waits(c->policy)) {
        OCT_TRY(oct_qjob_reread(c->job, c->calib, err));
        oct_conversion_changed(c);
    }
    const char *why = c->src ? oct_no_measuring(c) : NULL;
    if (why && why != oct_no_ranges && oct_methods_any_needing(&c->o.methods, OCT_NEEDS_SAMPLES))
        oct_conversion_say(c, 0, "%s: ranges by hist-mse, biases corrected from the statistics", why);
    return OCT_OK;
}

static oct_status measure_gains(oct_conversion *c, oct_err *err)
{
    for (size_t i = 0; i < c->n_methods; i++)
        if (c->methods[i].ran && c->methods[i].method->gain)
            c->methods[i].method->gain(c, &c->methods[i]);
    return OCT_OK;
}

static oct_status list_layers(oct_conversion *c, oct_err *err)
{
    return oct_layers_list(c->job, c->arena, &c->layers, &c->n_layers, err);
}

/* Later measurements decide nothing. */
static oct_status record_samples(oct_conversion *c, oct_err *err)
{
    if (c->src && c->o.record && !c->o.synthetic)
        c->read = oct_record_samples(c->src);
    return OCT_OK;
}

/* ---- all of them ---- */

static const struct step {
    oct_status (*run)(oct_conversion *c, oct_err *err);
    const char *words;
} steps[] = {
#define OCT_STEP(function, words) { function, words },
#define OCT_METHOD(record) { NULL, NULL }, /* the next of c->methods */
#include "quant/convert/steps.inc"
#undef OCT_METHOD
#undef OCT_STEP
};

/* Folding was judged, and no more is wanted. */
static bool is_over(const oct_conversion *c)
{
    return c->fold && c->fold->over;
}

static oct_status decide(oct_conversion *c, oct_err *err)
{
    size_t method = 0;
    for (size_t i = 0; i < OCT_COUNT(steps) && !is_over(c); i++) {
        if (steps[i].words)
            report_step(c, steps[i].words, i);
        OCT_TRY(steps[i].run ? steps[i].run(c, err) : run_method(c, method++, err));
    }
    return OCT_OK;
}

/* Rules about statistics need statistics. */
static oct_status check_measured(const oct_conversion *c, oct_err *err)
{
    const char *place = oct_policy_measured(c->policy);
    if (!place || c->src || c->calib)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s: the rule needs statistics of values, and there are none", place);
    oct_hint(err, "give samples with --data, or a table with --calib");
    return OCT_EUSAGE;
}

oct_status oct_conversion_run(oct_conversion *c, oct_source *src, oct_err *err)
{
    c->src = src;
    if (src && c->o.record && !c->o.synthetic)
        OCT_TRY(oct_source_sum(src, err));
    OCT_TRY(check_measured(c, err));
    OCT_TRY(list_methods(c, err));
    if (c->o.synthetic)
        OCT_TRY(oct_norm_targets(c->m->graph, c->arena, &c->target, &c->n_target, err));
    oct_status st = open_job(c, err);
    if (st == OCT_OK)
        st = decide(c, err);
    if (st == OCT_EMALFORMED || st == OCT_EUNSUPPORTED || st == OCT_ENUMERIC || st == OCT_EINTERNAL)
        oct_within(err, "%s", c->o.name);
    oct_conversion_end_sim(c);
    return st;
}
