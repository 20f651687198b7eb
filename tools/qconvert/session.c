/* From arguments to a conversion: its options, its files, and its messages. */
#include "qconvert/qconvert.h"

#include "data/source/synthetic.h"

#include "base/io.h"
#include "base/spill.h"
#include "graph/graph_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sets the options for weights in blocks. OCT_EUSAGE: by the policy and the scheme in o, no layer can have such
 * weights. */
static oct_status block_options(oct_cli *cli, const convert_args *a, const oct_policy *policy, oct_qjob_opts *o,
                                oct_err *err)
{
    enum { LEVEL = 2 };
    static const char *const names[] = { "bits", "block-size", [LEVEL] = "accuracy-level", "symmetric" };
    const bool any = o->may_block || o->scheme == OCT_SCHEME_WEIGHT_ONLY ||
                     (o->scheme == OCT_SCHEME_AUTO && oct_policy_uses(policy, OCT_SCHEME_WEIGHT_ONLY));
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        const bool by_cost = i == LEVEL && o->scheme == OCT_SCHEME_AUTO &&
                             oct_target_n_costs(o->target) > 0; /* then costs may choose blocks */
        if (!any && !by_cost && oct_cli_given(cli, names[i])) {
            oct_fail(err, OCT_EUSAGE, "--%s is for weights in blocks, and no layer gets these", names[i]);
            oct_hint(err, "add --scheme weight-only, or a policy rule with that scheme");
            return OCT_EUSAGE;
        }
    }
    o->bits = a->bits ? atoi(a->bits) : 0; /* a is one of the names that the option allows */
    o->block = a->block_size ? atoi(a->block_size) : 0;
    o->symmetric = a->symmetric;
    o->block_bytes = strcmp(a->accuracy_level, "4") == 0;
    o->blocks_qdq =
        (oct_cli_given(cli, "format") && strcmp(a->format, "qdq") == 0) || oct_target_rules_of(o->target)->onnx_alone;
    if (o->scheme == OCT_SCHEME_BF16 && oct_target_rules_of(o->target)->bfloat16 == OCT_BFLOAT16_NEVER) {
        oct_fail(err, OCT_EUSAGE, "--scheme bf16: the target %s loads no bfloat16 tensors", oct_target_name(o->target));
        oct_hint(
            err,
            "convert with samples and without --scheme: what stays float32 in the file is the device's own affair");
        return OCT_EUSAGE;
    }
    if (o->block_bytes && o->blocks_qdq)
        return oct_fail(err, OCT_EUSAGE,
                        "--accuracy-level is an attribute of MatMulNBits, which --format qdq does not write");
    return OCT_OK;
}

/* ---- names of outputs ---- */

/* model.onnx -> model.int8.onnx, or .int4.onnx, .fp16.onnx */
static oct_status name_output(session *s, oct_err *err)
{
    const bool half = s->c.o.job.scheme == OCT_SCHEME_FP16 || s->c.o.job.scheme == OCT_SCHEME_BF16;
    const char *given = s->a->output, *model = s->a->model;
    if (given) {
        s->output = oct_arena_strdup(s->c.arena, given);
    } else if (strcmp(model, "-") == 0) {
        s->output = oct_arena_strdup(s->c.arena, "-");
        s->cli->output_taken = !s->a->dry_run && !s->a->no_save;
    } else {
        size_t n = strlen(model);
        if (n > 5 && strcmp(model + n - 5, ".onnx") == 0)
            n -= 5;
        bool four = s->c.o.job.scheme == OCT_SCHEME_WEIGHT_ONLY && (!s->a->bits || strcmp(s->a->bits, "4") == 0);
        s->output = oct_arena_printf(s->c.arena, "%.*s.%s.onnx", (int)n, model,
                                     half   ? oct_scheme_name(s->c.o.job.scheme)
                                     : four ? "int4"
                                            : "int8");
    }
    return s->output ? OCT_OK : oct_nomem(err);
}

/* Checks every file that this run writes against every file that it reads. */
static oct_status check_outputs(session *s, oct_err *err)
{
    const convert_args *a = s->a;
    const char *out[] = { a->dry_run || a->no_save ? NULL : s->output, a->dump_policy, s->cli->json, a->sarif,
                          a->html };
    const char *in[] = { a->model,       a->calib,           a->policy,
                         a->data.labels, a->truth,           tool_rule_file(a->decode),
                         target_file(a), a->sensitivity_file };
    for (size_t i = 0; i < OCT_COUNT(out); i++) {
        OCT_TRY(tool_check_output(out[i], in, OCT_COUNT(in), err));
        OCT_TRY(tool_check_output(out[i], a->data.specs.v, a->data.specs.n, err));
        OCT_TRY(tool_check_model_output(out[i], s->m, err));
        /* This file is read before it is written, and written only if it was of that kind. */
        if (out[i] && a->sensitivity_file && oct_same_output(out[i], a->sensitivity_file))
            return oct_fail(err, OCT_EUSAGE, "%s: two outputs would be written there", out[i]);
        for (size_t k = 0; k < i; k++) /* the name of the model may not have been on the command line */
            if (out[i] && out[k] && oct_same_output(out[i], out[k]))
                return oct_fail(err, OCT_EUSAGE, "%s: two outputs would be written there", out[i]);
    }
    return OCT_OK;
}

/* ---- messages ---- */

static void say_chosen(void *cli, const oct_source *src)
{
    tool_say_samples(cli, src);
}

static void say_taken(void *cli, const oct_source *src)
{
    tool_say_bad(cli, src);
}

/* ---- options ---- */

enum { PAGE_SAMPLES = 16 }; /* how many samples a page uses to compare layers */

static oct_status method_options(const convert_args *a, oct_method_set *set, oct_err *err)
{
    *set = strcmp(a->effort, "high") == 0 ? oct_methods_high() : oct_methods_default();
    if (!a->recover)
        oct_methods_drop_needing(set, OCT_NEEDS_SAMPLES);
    if (!a->bias_correction)
        oct_methods_drop_step(set, OCT_STEP_BIASES);
    for (size_t i = 0; i < a->methods.n; i++)
        OCT_TRY(oct_methods_switch(set, a->methods.v[i], true, err));
    for (size_t i = 0; i < a->no_methods.n; i++)
        OCT_TRY(oct_methods_switch(set, a->no_methods.v[i], false, err));
    return OCT_OK;
}

/* "[NAME=]TYPE". A name may contain '=' as well. */
static oct_status read_end(session *s, const char *option, const char *text, bool output, oct_end_ask *a, oct_err *err)
{
    static const struct {
        const char *name;
        oct_dtype type;
    } types[] = { { "u8", OCT_U8 }, { "s8", OCT_S8 }, { "fp16", OCT_F16 } };
    const char *eq = strrchr(text, '='), *type = eq ? eq + 1 : text;
    *a = (oct_end_ask){ .output = output };
    for (size_t i = 0; i < OCT_COUNT(types); i++)
        if (strcmp(type, types[i].name) == 0)
            a->type = types[i].type;
    if (eq && !(a->name = oct_arena_strndup(s->c.arena, text, (size_t)(eq - text))))
        return oct_nomem(err);
    if (a->type)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "--%s: '%s' is not a type", option, type);
    oct_hint(err, "give u8, s8 or fp16, or NAME=u8");
    return OCT_EUSAGE;
}

static oct_status read_ends(session *s, oct_err *err)
{
    const oct_cli_list *in = &s->a->input_types, *out = &s->a->output_types;
    oct_convert_opts *o = &s->c.o;
    if (!s->a->keep_io_types && in->n + out->n)
        return oct_fail(
            err, OCT_EUSAGE,
            "--no-keep-io-types gives all inputs and outputs a type: --input-type and --output-type have nothing to add");
    oct_end_ask *ends = oct_arena_calloc(s->c.arena, in->n + out->n + 1, sizeof *ends);
    if (!ends)
        return oct_nomem(err);
    o->ends = ends;
    o->nhwc = s->a->input_layout && strcmp(s->a->input_layout, "nhwc") == 0;
    for (size_t i = 0; i < in->n; i++)
        OCT_TRY(read_end(s, "input-type", in->v[i], false, &ends[o->n_ends++], err));
    for (size_t i = 0; i < out->n; i++)
        OCT_TRY(read_end(s, "output-type", out->v[i], true, &ends[o->n_ends++], err));
    return OCT_OK;
}

static oct_goal *add_goal(session *s, const char *option, const char *metric)
{
    oct_goal *g = &s->goals[s->n_goals++];
    *g = (oct_goal){ .option = option, .metric = metric };
    return g;
}

/* A drop of a named metric, of the metric of the command, or of the one that counts. */
static oct_status read_drop(session *s, const char *text, oct_err *err)
{
    OCT_TRY(oct_gates_add(&s->gates, oct_gate_name(OCT_GATE_DROP), text, err));
    const oct_gate *g = &s->gates.v[s->gates.n - 1];
    if (g->command && !s->a->command.command) {
        oct_fail(err, OCT_EUSAGE, "--max-drop asks for the metric of a command, and there is none");
        oct_hint(err, "give it with --metric-cmd");
        return OCT_EUSAGE;
    }
    add_goal(s, "--max-drop", g->metric ? g->metric->name : g->command ? OCT_COMMAND_METRIC : NULL)->limit = g->limit;
    return OCT_OK;
}

static oct_status read_goals(session *s, oct_err *err)
{
    const convert_args *a = s->a;
    enum { OTHERS = 2 };
    oct_drop_limit least;
    if (a->max_drop.n > OCT_GOALS_MAX - OTHERS)
        return oct_fail(err, OCT_EUSAGE, "--max-drop is given %zu times, at most %d are judged", a->max_drop.n,
                        OCT_GOALS_MAX - OTHERS);
    for (size_t i = 0; i < a->max_drop.n; i++)
        OCT_TRY(read_drop(s, a->max_drop.v[i], err));
    if (oct_cli_given(s->cli, "min-sqnr"))
        add_goal(s, "--min-sqnr", "sqnr")->limit.value = pow(10, -a->min_sqnr / 10);
    if (!a->min_agreement)
        return OCT_OK;
    OCT_TRY(oct_agreement_parse("--min-agreement", a->min_agreement, &least, err));
    add_goal(s, "--min-agreement", "agreement")->limit = least;
    return OCT_OK;
}

/* The metric that counts: the requested one, else that of the command, else the first that a goal names. */
static const char *counting(const session *s)
{
    if (s->a->metric || s->a->command.command)
        return s->a->metric;
    for (size_t i = 0; i < s->gates.n; i++)
        if (s->gates.v[i].metric)
            return s->gates.v[i].metric->name;
    return NULL;
}

/* Reads how results are judged, and checks that the requested metrics suit that. */
static oct_status read_judging(session *s, oct_convert_opts *o, oct_err *err)
{
    const oct_metric *m = NULL;
    OCT_TRY(tool_open_judging(s->a->decode, s->a->truth, &s->rule, &s->truth, err));
    o->rule = s->rule;
    o->truth = s->truth;
    o->metric = counting(s);
    const oct_judging j = { .rule = s->rule, .truth = s->truth };
    if (o->metric)
        OCT_TRY(oct_metric_find(o->metric, &m, err));
    if (m)
        OCT_TRY(oct_metric_suits(m, &j, err));
    for (size_t i = 0; i < s->gates.n; i++)
        if (s->gates.v[i].metric)
            OCT_TRY(oct_metric_suits(s->gates.v[i].metric, &j, err));
    return OCT_OK;
}

/* Whether samples will be generated. Then there must be no others. */
static oct_status asks_synthetic(const session *s, bool *synthetic, oct_err *err)
{
    const convert_args *a = s->a;
    *synthetic = false;
    for (size_t i = 0; i < a->data.specs.n; i++)
        *synthetic |= strcmp(a->data.specs.v[i], OCT_SYNTHETIC) == 0;
    if (*synthetic && (a->data.specs.n > 1 || a->data.labels || a->truth))
        return oct_fail(err, OCT_EUSAGE,
                        "--data %s generates samples: no other samples can be given, and no labels or truth",
                        OCT_SYNTHETIC);
    if (*synthetic && s->n_goals) {
        oct_fail(err, OCT_EUSAGE, "%s cannot be judged on synthetic data", s->goals[0].option);
        oct_hint(err, "give samples with --data");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

/* With a limit for the size, other options must not leave layers float. */
static oct_status size_options(const session *s, oct_convert_opts *o, oct_err *err)
{
    const convert_args *a = s->a;
    if (a->target_size)
        OCT_TRY(oct_size_limit_parse("--target-size", a->target_size, &o->size, err));
    if (oct_cli_given(s->cli, "target-bits"))
        o->size.bits = a->target_bits;
    if (!a->target_size && !(o->size.bits > 0))
        return OCT_OK;
    o->trials = 0;
    o->job.may_block = true;
    if (oct_cli_given(s->cli, "trials") && a->trials)
        return oct_fail(err, OCT_EUSAGE, "--trials leave layers float, for which --target-%s has no bytes",
                        a->target_size ? "size" : "bits");
    return oct_methods_switch(&o->methods, "mixed-precision", false, err);
}

static void keep_graph(void *arg, const char *step, const oct_graph *g)
{
    session *s = arg;
    if (strcmp(step, s->a->print_graph) != 0)
        return;
    oct_buf_cut(&s->graph_text, 0); /* of a conversion that was given up */
    if (s->a->dot)
        oct_graph_put_dot(g, &s->graph_text);
    else
        oct_graph_put_text(g, &s->graph_text);
}

static oct_status read_options(session *s, oct_convert_opts *o, oct_err *err)
{
    const convert_args *a = s->a;
    OCT_TRY(oct_target_open(target_word(a), &s->target, err));
    *o = (oct_convert_opts){ .name = a->model,
                             .policy = a->policy,
                             .rules = a->rules.v,
                             .n_rules = a->rules.n,
                             .observer = a->observer,
                             .whole = a->data.skip_bad,
                             .sensitivity = a->sensitivity || a->sensitivity_file,
                             .sensitivity_file = a->sensitivity_file,
                             .listener = { .progress = tool_say_progress,
                                           .note = tool_say_note,
                                           .chosen = say_chosen,
                                           .taken = say_taken,
                                           .arg = s->cli } };
    if (a->print_graph)
        o->listener.graph = keep_graph, o->listener.graph_arg = s;
    o->job = (oct_qjob_opts){ .target = s->target,
                              .disabled = a->disabled.v,
                              .n_disabled = a->disabled.n,
                              .half_io = !a->keep_io_types,
                              .operators = strcmp(a->format, "qoperator") == 0,
                              .threads = (int)s->cli->threads };
    if (!oct_scheme_parse(a->scheme, &o->job.scheme))
        return oct_fail(err, OCT_EUSAGE, "there is no scheme '%s'", a->scheme);
    OCT_TRY(method_options(a, &o->methods, err));
    OCT_TRY(read_goals(s, err));
    OCT_TRY(read_judging(s, o, err));
    OCT_TRY(asks_synthetic(s, &o->synthetic, err));
    o->command = a->command.command ? &a->command : NULL;
    o->layer_samples = a->html ? PAGE_SAMPLES : 0;
    o->goals = s->goals;
    o->n_goals = s->n_goals;
    o->trials = (int)a->trials;
    o->time_limit = a->time_limit;
    s->budget = a->budget / 100;
    o->budget = &s->budget;
    return size_options(s, o, err);
}

oct_status session_open(session *s, oct_cli *cli, const convert_args *a, oct_err *err)
{
    enum { IN_MEMORY = 48 << 20 }; /* small models need no file */
    oct_convert_opts o;
    *s = (session){ .cli = cli, .a = a, .began = oct_now() };
    OCT_TRY(read_options(s, &o, err));
    OCT_TRY(oct_conversion_open(&s->c, &o, err));
    OCT_TRY(read_ends(s, err));
    OCT_TRY(block_options(cli, a, s->c.policy, &s->c.o.job, err));
    OCT_TRY(name_output(s, err));
    if (!a->data.specs.n) /* Only the model is large. What is made of its tensors is kept in a file beside the output */
        oct_spill_open(s->output, IN_MEMORY);
    OCT_TRY(tool_load(cli, a->model, &s->m, err));
    return check_outputs(s, err);
}

/* Preprocessing that becomes part of the model is removed from that of the samples: steps that override it follow the
 * user's. */
static oct_status take_ends(session *s, oct_cli_list *preprocess, oct_err *err)
{
    const oct_graph *g = s->m->graph;
    oct_steps *steps = oct_arena_calloc(s->c.arena, g->n_input + 1, sizeof *steps), *own;
    const char **names = oct_arena_calloc(s->c.arena, g->n_input + 1, sizeof *names),
               **texts = oct_arena_calloc(s->c.arena, preprocess->n + g->n_input + 1, sizeof *texts);
    if (!steps || !names || !texts)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_input; i++)
        names[i] = g->value[g->input[i]].name;
    if (s->c.calib)
        OCT_TRY(oct_steps_parse(s->c.calib->preprocess, names, g->n_input, steps, err));
    for (size_t i = 0; i < preprocess->n; i++)
        OCT_TRY(oct_steps_parse(texts[i] = preprocess->v[i], names, g->n_input, steps, err));
    if (!(own = oct_arena_memdup(s->c.arena, steps, (g->n_input + 1) * sizeof *steps)))
        return oct_nomem(err);
    OCT_TRY(oct_conversion_take_ends(&s->c, steps, err));
    for (size_t i = 0; i < g->n_input; i++) {
        oct_buf b = OCT_BUF_INIT;
        if (memcmp(&own[i], &steps[i], sizeof *own) == 0)
            continue;
        const char *prefix = oct_arena_printf(s->c.arena, "%s/", names[i]);
        oct_steps_text(&steps[i], prefix ? prefix : "", &b);
        texts[preprocess->n] = b.failed ? NULL : oct_arena_strdup(s->c.arena, oct_buf_str(&b));
        oct_buf_free(&b);
        if (!prefix || !texts[preprocess->n++])
            return oct_nomem(err);
    }
    preprocess->v = texts;
    return OCT_OK;
}

/* Labels are recorded only if there are trials (session_command). */
static void take_record(session *s)
{
    const convert_args *a = s->a;
    oct_record_model(&s->record, s->m);
    oct_record_file(&s->record, OCT_RECORD_TABLE, a->calib);
    oct_record_file(&s->record, OCT_RECORD_POLICY, a->policy);
    oct_record_file(&s->record, OCT_RECORD_TARGET, target_file(a));
    if (s->n_goals && a->trials) {
        oct_record_file(&s->record, OCT_RECORD_LABELS, a->data.labels);
        oct_record_file(&s->record, OCT_RECORD_TRUTH, a->truth);
        oct_record_file(&s->record, OCT_RECORD_RULE, tool_rule_file(a->decode));
    }
    s->c.o.record = &s->record;
}

oct_status session_take(session *s, oct_err *err)
{
    const convert_args *a = s->a;
    oct_conversion_take(&s->c, s->m);
    session_command(s, true, &s->made_by);
    if (s->made_by.failed)
        return oct_nomem(err);
    s->c.o.made_by = oct_buf_str(&s->made_by);
    if (!a->no_save)
        take_record(s);
    if (a->calib) {
        OCT_TRY(oct_conversion_read_table(&s->c, a->calib, err));
        tool_warn_incomplete(s->cli, a->calib, s->c.calib);
    }
    tool_data d = a->data;
    if (d.specs.n)
        tool_warn_pixels(s->cli, s->m->graph, &d.preprocess);
    d.hold = true;
    d.synthetic = s->c.o.synthetic;
    if (s->c.o.n_ends)
        OCT_TRY(take_ends(s, &d.preprocess, err));
    if (!d.specs.n)
        return OCT_OK;
    OCT_TRY(tool_read_states(s->c.m->graph, &d, err));
    s->c.o.n_states = d.n_state;
    if (!(s->c.o.states = oct_arena_memdup(s->c.arena, d.state, d.n_state * sizeof *d.state)))
        return oct_nomem(err);
    return tool_open_data(s->c.m->graph, &d, 0, &s->src, err);
}

oct_status session_decide(session *s, oct_err *err)
{
    OCT_TRY(session_take(s, err));
    return oct_conversion_decide(&s->c, s->src, err);
}

oct_status session_preview(const session *s, oct_graph *g, oct_qjob **job, oct_layer **layers, size_t *n, oct_err *err)
{
    oct_qjob_opts o = oct_conversion_job_opts(&s->c);
    o.have_data = o.late = true;
    OCT_TRY(oct_qjob_create(g, &o, job, err));
    return oct_layers_list(*job, s->c.arena, layers, n, err);
}

void session_close(session *s)
{
    oct_conversion_close(&s->c);
    oct_source_close(s->src);
    oct_target_close(s->target);
    oct_gates_free(&s->gates);
    oct_decode_close(s->rule);
    oct_truth_close(s->truth);
    oct_model_free(s->m);
    oct_buf_free(&s->made_by);
    oct_buf_free(&s->graph_text);
    oct_spill_close();
}
