/* From typed options to a conversion: its options, its files, and its messages. */
#include "api/convert/session_int.h"
#include "tflite/tflite.h"

#include "data/source/synthetic.h"

#include "base/io.h"
#include "base/spill.h"
#include "graph/graph_text.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A word that is one of a list. *i: its place. */
static oct_status one_of(const char *option, const char *word, const char *const *words, size_t n, size_t *i,
                         oct_err *err)
{
    for (*i = 0; *i < n; ++*i)
        if (strcmp(words[*i], word) == 0)
            return OCT_OK;
    return oct_fail(err, OCT_EUSAGE, "--%s: there is no '%s'", option, word);
}

static oct_status check_block(int bits, int block, int level, oct_err *err)
{
    if ((bits && bits != 4 && bits != 8) || (block && (block < 16 || block > 256 || (block & (block - 1)))))
        return oct_fail(err, OCT_EUSAGE, "weights of %d bits in blocks of %d: give 4 or 8, and 16 to 256", bits, block);
    return level < 0 || level == 0 || level == 4 ? OCT_OK
                                                 : oct_fail(err, OCT_EUSAGE, "--accuracy-level %d: give 0 or 4", level);
}

/* Sets the options for weights in blocks. OCT_EUSAGE: by the policy and the scheme in o, no layer can have such
 * weights. */
static oct_status block_options(const octet_convert_options *x, const oct_policy *policy, oct_qjob_opts *o,
                                oct_err *err)
{
    const struct {
        const char *name;
        bool given, by_level;
    } asked[] = { { "bits", x->bits != 0 },
                  { "block-size", x->block_size != 0 },
                  { "accuracy-level", x->accuracy_level >= 0, true },
                  { "symmetric", x->symmetric } };
    const bool any = o->may_block || o->scheme == OCT_SCHEME_WEIGHT_ONLY ||
                     (o->scheme == OCT_SCHEME_AUTO && oct_policy_uses(policy, OCT_SCHEME_WEIGHT_ONLY));
    OCT_TRY(check_block(x->bits, x->block_size, x->accuracy_level, err));
    for (size_t i = 0; i < OCT_COUNT(asked); i++) {
        const bool by_cost = asked[i].by_level && o->scheme == OCT_SCHEME_AUTO &&
                             oct_target_n_costs(o->target) > 0; /* then costs may choose blocks */
        if (!any && !by_cost && asked[i].given) {
            oct_fail(err, OCT_EUSAGE, "--%s is for weights in blocks, and no layer gets these", asked[i].name);
            oct_hint(err, "add --scheme weight-only, or a policy rule with that scheme");
            return OCT_EUSAGE;
        }
    }
    o->bits = x->bits;
    o->block = x->block_size;
    o->symmetric = x->symmetric;
    o->block_bytes = x->accuracy_level == 4;
    o->blocks_qdq = (x->format && !o->operators) || oct_target_rules_of(o->target)->onnx_alone;
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
static oct_status name_output(oct_session *s, oct_err *err)
{
    const octet_convert_options *x = &s->x;
    const oct_scheme scheme = s->c.o.job.scheme;
    if (x->output || strcmp(x->model, "-") == 0) {
        s->output = oct_arena_strdup(s->c.arena, x->output ? x->output : "-");
        const char *end = strrchr(oct_path_base(x->output ? x->output : ""), '.');
        if (end && strcmp(end, ".onnx") != 0 && !oct_session_writes_tflite(x) && !oct_path_is_stream(x->output))
            oct_say(s->h.voice, OCT_NOTE_WARNING, "%s: an ONNX model is written there, whatever '%s' stands for",
                    x->output, end);
    } else {
        const size_t n = oct_model_stem(x->model);
        const bool four = scheme == OCT_SCHEME_WEIGHT_ONLY && (x->bits == 0 || x->bits == 4);
        s->output = oct_arena_printf(s->c.arena, "%.*s.%s.%s", (int)n, x->model,
                                     oct_scheme_is_half(scheme) ? oct_scheme_name(scheme)
                                     : four                     ? "int4"
                                                                : "int8",
                                     oct_session_writes_tflite(x) ? "tflite" : "onnx");
    }
    s->to = s->output;
    return s->output ? OCT_OK : oct_nomem(err);
}

/* For a model that is wanted in memory: a nameless file, written through its name in /proc. */
static oct_status open_memory(oct_session *s, oct_err *err)
{
    if (!s->x.in_memory || s->x.dry_run)
        return OCT_OK;
    if ((s->memory = oct_file_nameless("-")) < 0)
        return oct_fail_errno(err, "cannot make a file for the model");
    return (s->to = oct_arena_printf(s->c.arena, "/proc/self/fd/%d", s->memory)) ? OCT_OK : oct_nomem(err);
}

/* Checks every file that this run writes against every file that it reads. */
static oct_status check_outputs(const oct_session *s, oct_err *err)
{
    enum { OWN = 3, MOST = 8 };
    const octet_convert_options *x = &s->x;
    const octet_texts data = x->samples.data;
    const char *out[OWN + MOST] = { x->dry_run || s->h.no_save || x->in_memory ? NULL : s->output, x->dump_policy,
                                    x->html };
    const char *in[] = { x->model_data ? NULL : x->model,
                         x->calib,
                         x->policy,
                         x->samples.labels,
                         x->truth,
                         oct_rule_file(x->decode),
                         oct_session_target_file(x),
                         x->sensitivity_file };
    for (size_t i = 0; i < s->h.n_written && i < MOST; i++)
        out[OWN + i] = s->h.written[i];
    for (size_t i = 0; i < OCT_COUNT(out); i++) {
        OCT_TRY(oct_check_output(out[i], in, OCT_COUNT(in), err));
        OCT_TRY(oct_check_output(out[i], data.v, data.n, err));
        OCT_TRY(oct_check_model_output(out[i], s->m, err));
        /* This file is read before it is written, and written only if it was of that kind. */
        if (out[i] && x->sensitivity_file && oct_same_output(out[i], x->sensitivity_file))
            return oct_fail(err, OCT_EUSAGE, "%s: two outputs would be written there", out[i]);
        for (size_t k = 0; k < i; k++) /* the name of the model may not have been on the command line */
            if (out[i] && out[k] && oct_same_output(out[i], out[k]))
                return oct_fail(err, OCT_EUSAGE, "%s: two outputs would be written there", out[i]);
    }
    return OCT_OK;
}

/* ---- messages ---- */

static void say_chosen(void *arg, const oct_source *src)
{
    oct_samples_say_chosen(((oct_session *)arg)->h.voice, src);
}

/* The samples are read in several parts, of which only the broken ones differ. */
static void say_taken(void *arg, const oct_source *src)
{
    oct_session *s = arg;
    (s->said_taken ? oct_samples_say_bad : oct_samples_say_taken)(s->h.voice, src);
    s->said_taken = true;
}

static void say_note(void *arg, int level, const char *text)
{
    const oct_voice v = ((oct_session *)arg)->h.voice;
    if (v.note)
        v.note(v.arg, level, text);
}

static void say_progress(void *arg, const char *what, int64_t done, int64_t total)
{
    const oct_voice v = ((oct_session *)arg)->h.voice;
    if (v.progress)
        v.progress(v.arg, what, done, total);
}

static void keep_graph(void *arg, const char *step, const oct_graph *g)
{
    oct_session *s = arg;
    if (strcmp(step, s->h.graph) != 0)
        return;
    oct_buf_cut(&s->graph_text, 0); /* of a conversion that was given up */
    (s->h.dot ? oct_graph_put_dot : oct_graph_put_text)(g, &s->graph_text);
}

/* ---- options ---- */

/* Whoever gives such a name expects what it says, and would find an ONNX file. */
static oct_status refuse_ending(const char *output, const char *dot, oct_err *err)
{
    static const char *const others[] = { ".engine",  ".trt",       ".plan", ".dlc", ".rknn",  ".hef",
                                          ".mlmodel", ".mlpackage", ".xml",  ".ort", ".espdl", ".pt",
                                          ".pth",     ".keras",     ".h5",   ".gguf" };
    for (size_t i = 0; dot && i < OCT_COUNT(others); i++) {
        if (strcasecmp(dot, others[i]) != 0)
            continue;
        oct_fail(err, OCT_EUSAGE, "%s: what is written is an .onnx or .tflite file, no %s", output, others[i]);
        oct_hint(err, "write an .onnx file: the runtime's own tool makes its file from that");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

static bool is_written_as_tflite(const char *scheme)
{
    static const char *const schemes[] = { "auto", "static", "stored", "float" };
    bool is = !scheme;
    for (size_t i = 0; i < OCT_COUNT(schemes); i++)
        is |= scheme && strcmp(scheme, schemes[i]) == 0;
    return is;
}

/* A model of LiteRT stays one where no option says otherwise. */
static bool stays_tflite(const octet_convert_options *x)
{
    const char *dot = x->model && !x->model_data ? strrchr(x->model, '.') : NULL;
    return dot && strcasecmp(dot, ".tflite") == 0 && !x->output && !x->target && !x->format && !x->bits &&
           !x->target_size && is_written_as_tflite(x->scheme);
}

/* A .tflite file is asked for by its name, too, and is for LiteRT unless another target is given. */
static oct_status read_format(octet_convert_options *x, oct_err *err)
{
    const char *dot = x->output ? strrchr(x->output, '.') : NULL;
    OCT_TRY(refuse_ending(x->output, dot, err));
    if (dot && strcasecmp(dot, ".tflite") == 0) {
        if (x->format && strcmp(x->format, OCT_FORMAT_TFLITE) != 0)
            return oct_fail(err, OCT_EUSAGE, "%s: --format %s is a form of .onnx files", x->output, x->format);
        x->format = OCT_FORMAT_TFLITE;
    }
    if (stays_tflite(x))
        x->format = OCT_FORMAT_TFLITE;
    if (!x->target && (x->twin || oct_session_writes_tflite(x)))
        x->target = OCT_TARGET_OF_TFLITE;
    if (!oct_session_writes_tflite(x))
        return OCT_OK;
    if (!is_written_as_tflite(x->scheme)) {
        oct_fail(err, OCT_EUSAGE, "--scheme %s: .tflite is written of layers that are static, stored or float",
                 x->scheme);
        oct_hint(err, "give samples (--data) and --scheme static or none, or --scheme stored or float");
        return OCT_EUSAGE;
    }
    return OCT_OK;
}

bool oct_session_writes_tflite(const octet_convert_options *x)
{
    return x->format && strcmp(x->format, OCT_FORMAT_TFLITE) == 0;
}

const char *oct_session_target_file(const octet_convert_options *x)
{
    return x->target && oct_target_is_file(x->target) ? x->target : NULL;
}

const char *oct_session_target(const octet_convert_options *x)
{
    const char *name = x->target ? x->target : oct_target_builtin(0, NULL);
    if (strcmp(name, "auto") == 0)
        return oct_target_here();
    const char *called = oct_target_called(name); /* by its own name, whatever it was asked for by */
    return called && !oct_target_is_file(name) ? called : name;
}

static oct_status method_options(const octet_convert_options *a, oct_method_set *set, oct_err *err)
{
    static const char *const efforts[] = { "default", "high" };
    size_t effort = 0;
    if (a->effort)
        OCT_TRY(one_of("effort", a->effort, efforts, OCT_COUNT(efforts), &effort, err));
    *set = effort ? oct_methods_high() : oct_methods_default();
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
static oct_status read_end(oct_session *s, const char *option, const char *text, bool output, oct_end_ask *a,
                           oct_err *err)
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

static oct_status read_ends(oct_session *s, oct_err *err)
{
    static const char *const layouts[] = { "keep", "nhwc" };
    const octet_texts *in = &s->x.input_types, *out = &s->x.output_types;
    oct_convert_opts *o = &s->c.o;
    size_t layout = 0;
    if (s->x.input_layout)
        OCT_TRY(one_of("input-layout", s->x.input_layout, layouts, OCT_COUNT(layouts), &layout, err));
    if (!s->x.keep_io_types && in->n + out->n)
        return oct_fail(
            err, OCT_EUSAGE,
            "--no-keep-io-types gives all inputs and outputs a type: --input-type and --output-type have nothing to add");
    oct_end_ask *ends = oct_arena_calloc(s->c.arena, in->n + out->n + 1, sizeof *ends);
    if (!ends)
        return oct_nomem(err);
    o->ends = ends;
    o->nhwc = layout == 1;
    for (size_t i = 0; i < in->n; i++)
        OCT_TRY(read_end(s, "input-type", in->v[i], false, &ends[o->n_ends++], err));
    for (size_t i = 0; i < out->n; i++)
        OCT_TRY(read_end(s, "output-type", out->v[i], true, &ends[o->n_ends++], err));
    return OCT_OK;
}

static oct_goal *add_goal(oct_session *s, const char *option, const char *metric)
{
    oct_goal *g = &s->goals[s->n_goals++];
    *g = (oct_goal){ .option = option, .metric = metric };
    return g;
}

/* A drop of a named metric, of the metric of the command, or of the one that counts. */
static oct_status read_drop(oct_session *s, const char *text, oct_err *err)
{
    OCT_TRY(oct_gates_add(&s->gates, oct_gate_name(OCT_GATE_DROP), text, err));
    const oct_gate *g = &s->gates.v[s->gates.n - 1];
    if (g->command && !s->x.metric_command) {
        oct_fail(err, OCT_EUSAGE, "--max-drop asks for the metric of a command, and there is none");
        oct_hint(err, "give it with --metric-cmd");
        return OCT_EUSAGE;
    }
    add_goal(s, "--max-drop", g->metric ? g->metric->name : g->command ? OCT_COMMAND_METRIC : NULL)->limit = g->limit;
    return OCT_OK;
}

static oct_status read_goals(oct_session *s, oct_err *err)
{
    const octet_convert_options *a = &s->x;
    enum { OTHERS = 2 };
    double least;
    if (a->max_drop.n > OCT_GOALS_MAX - OTHERS)
        return oct_fail(err, OCT_EUSAGE, "--max-drop is given %zu times, at most %d are judged", a->max_drop.n,
                        OCT_GOALS_MAX - OTHERS);
    for (size_t i = 0; i < a->max_drop.n; i++)
        OCT_TRY(read_drop(s, a->max_drop.v[i], err));
    if (!isnan(a->min_sqnr))
        add_goal(s, "--min-sqnr", "sqnr")->limit.value = pow(10, -a->min_sqnr / 10);
    if (!a->min_agreement)
        return OCT_OK;
    OCT_TRY(oct_share_parse("--min-agreement", "samples", a->min_agreement, &least, err));
    add_goal(s, "--min-agreement", "agreement")->limit.value = 1 - least;
    return OCT_OK;
}

/* The metric that counts: the requested one, else that of the command, else the first that a goal names. */
static const char *counting(const oct_session *s)
{
    if (s->x.metric || s->x.metric_command)
        return s->x.metric;
    for (size_t i = 0; i < s->gates.n; i++)
        if (s->gates.v[i].metric)
            return s->gates.v[i].metric->name;
    return NULL;
}

/* Reads how results are judged, and checks that the requested metrics suit that. */
static oct_status read_judging(oct_session *s, oct_convert_opts *o, oct_err *err)
{
    const oct_metric *m = NULL;
    OCT_TRY(oct_judging_open(s->x.decode, s->x.truth, &s->rule, &s->truth, err));
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
static oct_status asks_synthetic(const oct_session *s, bool *synthetic, oct_err *err)
{
    const octet_samples *a = &s->x.samples;
    *synthetic = false;
    for (size_t i = 0; i < a->data.n; i++)
        *synthetic |= strcmp(a->data.v[i], OCT_SYNTHETIC) == 0;
    if (*synthetic && (a->data.n > 1 || a->labels || s->x.truth))
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
static oct_status size_options(const oct_session *s, oct_convert_opts *o, oct_err *err)
{
    const octet_convert_options *a = &s->x;
    if (a->target_size)
        OCT_TRY(oct_size_limit_parse("--target-size", a->target_size, &o->size, err));
    o->size.bits = a->target_bits;
    if (!a->target_size && !(o->size.bits > 0))
        return OCT_OK;
    o->trials = 0;
    o->job.may_block = true;
    if (a->trials > 0)
        return oct_fail(err, OCT_EUSAGE, "--trials leave layers float, for which --target-%s has no bytes",
                        a->target_size ? "size" : "bits");
    return oct_methods_switch(&o->methods, "mixed-precision", false, err);
}

size_t oct_session_goals(const octet_convert_options *x)
{
    return x->max_drop.n + !isnan(x->min_sqnr) + (x->min_agreement != NULL);
}

static oct_status check_ranges(const octet_convert_options *x, oct_err *err)
{
    if (!x->model)
        return oct_fail(err, OCT_EUSAGE, "there is no model: its name is NULL");
    if (x->threads < 0 || x->threads > 1024)
        return oct_fail(err, OCT_EUSAGE, "%d threads: not between 0 and 1024", x->threads);
    OCT_TRY(oct_samples_check(&x->samples, err));
    if (x->calib && oct_samples_any(&x->samples))
        return oct_fail(err, OCT_EUSAGE, "there are samples and a calibration table: one of them finds ranges");
    if (!(x->target_bits >= 0 && x->target_bits <= 32) || !(x->time_limit >= 0) || !(x->metric_timeout >= 0) ||
        !(x->budget <= 100) || x->trials > 1000)
        return oct_fail(err, OCT_EUSAGE,
                        "a number is out of its range: bits 0 to 32, budget to 100, trials to 1000, "
                        "seconds not below 0");
    const bool size = x->target_size || x->target_bits > 0;
    if ((x->target_size && x->target_bits > 0) || (size && (x->scheme || x->bits || x->block_size)))
        return oct_fail(err, OCT_EUSAGE,
                        "--target-size and --target-bits choose schemes, bits and blocks: give one of "
                        "the two, and none of those");
    if ((oct_session_goals(x) || x->strict || x->metric || x->metric_command) && !oct_samples_any(&x->samples))
        return oct_fail(err, OCT_EUSAGE, "a goal or a metric is asked for, and there are no samples to judge by");
    if ((oct_session_goals(x) || x->strict) && x->dry_run)
        return oct_fail(err, OCT_EUSAGE, "a goal is asked for, and in a dry run there is nothing to judge");
    return OCT_OK;
}

static oct_status read_options(oct_session *s, oct_convert_opts *o, oct_err *err)
{
    enum { TRIALS = 8, PAGE_SAMPLES = 16 }; /* how many samples a page uses to compare layers */
    static const char *const formats[] = { "qdq", "qoperator", OCT_FORMAT_TFLITE };
    const octet_convert_options *x = &s->x;
    size_t format = 0;
    OCT_TRY(oct_target_open(oct_session_target(x), &s->target, err));
    if ((x->twin || oct_session_writes_tflite(x)) && !oct_target_takes(s->target, OCT_S8, OCT_S8) &&
        !oct_target_takes(s->target, OCT_S16, OCT_S8)) {
        oct_fail(err, OCT_EUSAGE,
                 "the target %s quantizes activations to other types than int8 and int16, which .tflite needs",
                 oct_target_name(s->target));
        oct_hint(err, "give --target " OCT_TARGET_OF_TFLITE ", or none");
        return OCT_EUSAGE;
    }
    if (x->twin)
        OCT_TRY_WITHIN(oct_twin_find(x->twin, &s->twin, err), err, "--as");
    if (x->format)
        OCT_TRY(one_of("format", x->format, formats, OCT_COUNT(formats), &format, err));
    *o = (oct_convert_opts){ .name = x->model,
                             .writable = format == 2 || s->twin ? oct_session_tflite_check : NULL,
                             .join = format == 2 ? oct_tflite_join : NULL,
                             .twin = s->twin,
                             .policy = x->policy,
                             .rules = x->rules.v,
                             .n_rules = x->rules.n,
                             .observer = x->observer,
                             .whole = x->samples.skip_bad,
                             .sensitivity = x->sensitivity || x->sensitivity_file,
                             .sensitivity_file = x->sensitivity_file,
                             .listener = { .progress = say_progress,
                                           .note = say_note,
                                           .chosen = say_chosen,
                                           .taken = say_taken,
                                           .graph = s->h.graph ? keep_graph : NULL,
                                           .graph_arg = s,
                                           .arg = s } };
    o->job = (oct_qjob_opts){ .target = s->target,
                              .disabled = x->disabled_passes.v,
                              .n_disabled = x->disabled_passes.n,
                              .half_io = !x->keep_io_types,
                              .operators = format == 1,
                              .threads = x->threads };
    if (!oct_scheme_parse(x->scheme ? x->scheme : "auto", &o->job.scheme))
        return oct_fail(err, OCT_EUSAGE, "there is no scheme '%s'", x->scheme);
    OCT_TRY(method_options(x, &o->methods, err));
    OCT_TRY(read_goals(s, err));
    OCT_TRY(read_judging(s, o, err));
    OCT_TRY(asks_synthetic(s, &o->synthetic, err));
    s->command = (oct_metric_command){ x->metric_command, x->less_is_better, x->metric_timeout };
    o->command = x->metric_command ? &s->command : NULL;
    o->layer_samples = x->html ? PAGE_SAMPLES : 0;
    o->goals = s->goals;
    o->n_goals = s->n_goals;
    o->trials = x->trials < 0 ? TRIALS : (int)x->trials;
    o->time_limit = x->time_limit;
    s->budget = x->budget / 100;
    o->budget = x->budget < 0 ? NULL : &s->budget;
    return size_options(s, o, err);
}

/* Whether nothing reads large matrices but their rounding in blocks. */
static bool only_weights(const oct_session *s)
{
    const octet_convert_options *x = &s->x;
    return s->c.o.job.scheme == OCT_SCHEME_WEIGHT_ONLY && !oct_samples_any(&x->samples) && !x->calib && !x->html &&
           !s->h.graph && !s->c.o.n_ends;
}

static oct_status open_session(oct_session *s, oct_err *err)
{
    enum { IN_MEMORY = 48 << 20 }; /* small models need no file */
    const octet_convert_options *x = &s->x;
    const oct_session_host *h = &s->h;
    oct_convert_opts o;
    OCT_TRY(read_format(&s->x, err));
    OCT_TRY(check_ranges(x, err));
    OCT_TRY(read_options(s, &o, err));
    OCT_TRY(oct_conversion_open(&s->c, &o, err));
    OCT_TRY(read_ends(s, err));
    OCT_TRY(block_options(x, s->c.policy, &s->c.o.job, err));
    OCT_TRY(name_output(s, err));
    OCT_TRY(open_memory(s, err));
    s->c.o.job.waiting = only_weights(s);
    if (h->spill && !oct_samples_any(&x->samples))
        /* Only the model is large. What is made of its tensors is kept in a file beside the output */
        oct_spill_open(s->to, IN_MEMORY);
    OCT_TRY(oct_load(h->voice, x->model, x->model_data, x->model_size, &s->m, err));
    OCT_TRY(oct_census_take(s->m->graph, s->c.arena, &s->census, err));
    return check_outputs(s, err);
}

oct_status oct_session_open(const octet_convert_options *x, const oct_session_host *h, oct_session **s, oct_err *err)
{
    if (!(*s = oct_calloc(1, sizeof **s)))
        return oct_nomem(err);
    **s = (oct_session){ .x = *x, .h = *h, .memory = -1, .began = oct_now() };
    const oct_status st = open_session(*s, err);
    if (st != OCT_OK) {
        oct_session_close(*s);
        *s = NULL;
    }
    return st;
}

/* Preprocessing that becomes part of the model is removed from that of the samples: steps that override it follow the
 * user's. */
static oct_status take_ends(oct_session *s, octet_texts *preprocess, oct_err *err)
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

/* Labels are recorded only if there are trials (oct_session_command). */
static void take_record(oct_session *s)
{
    const octet_convert_options *x = &s->x;
    oct_record_begin(&s->record, s->m, (int)x->threads);
    oct_record_file(&s->record, OCT_RECORD_TABLE, x->calib);
    oct_record_file(&s->record, OCT_RECORD_POLICY, x->policy);
    oct_record_file(&s->record, OCT_RECORD_TARGET, oct_session_target_file(x));
    if (s->n_goals && x->trials != 0) {
        oct_record_file(&s->record, OCT_RECORD_LABELS, x->samples.labels);
        oct_record_file(&s->record, OCT_RECORD_TRUTH, x->truth);
        oct_record_file(&s->record, OCT_RECORD_RULE, oct_rule_file(x->decode));
    }
    s->c.o.record = &s->record;
}

/* Pictures without preprocessing go in as bytes: many times what some models were trained on. */
static void warn_of_bytes(const oct_session *s)
{
    enum { BYTES = 60 }; /* how far the pixels of a photograph spread, about */
    if (s->x.samples.preprocess.n || s->x.input_types.n || s->pixels != OCT_PIXELS_UNKNOWN ||
        !oct_source_has_bytes(s->src) || !(s->spread < OCT_SPREAD_SCALED))
        return;
    oct_say(s->h.voice, OCT_NOTE_WARNING,
            "pixels go in as 0 to 255, but by the normalization behind its first layer the model was trained on values "
            "about %.0f times smaller: give their mean and std with --preprocess",
            BYTES / s->spread);
}

static oct_status take(oct_session *s, oct_err *err)
{
    const octet_convert_options *x = &s->x;
    oct_samples *d = &s->samples;
    oct_conversion_take(&s->c, s->m);
    if (s->h.recorded)
        oct_buf_puts(&s->made_by, s->h.recorded);
    else
        oct_session_command(x, true, &s->made_by);
    if (s->made_by.failed)
        return oct_nomem(err);
    s->c.o.made_by = oct_buf_str(&s->made_by);
    if (!s->h.no_save)
        take_record(s);
    if (x->calib) {
        OCT_TRY(oct_conversion_read_table(&s->c, x->calib, err));
        oct_samples_warn_incomplete(s->h.voice, x->calib, s->c.calib);
    }
    *d = (oct_samples){
        .of = x->samples, .hold = true, .synthetic = s->c.o.synthetic, .given = s->h.given, .model = x->model
    };
    const bool any = oct_samples_any(&d->of);
    if (s->m->graph->n_input) {
        s->pixels = oct_input_pixels(s->m->graph, s->m->graph->input[0]);
        s->spread = oct_input_spread(s->m->graph, s->m->graph->input[0]);
    }
    if (any)
        oct_samples_warn_pixels(s->h.voice, s->m->graph, d->of.preprocess);
    if (s->c.o.n_ends)
        OCT_TRY(take_ends(s, &d->of.preprocess, err));
    if (!any)
        return OCT_OK;
    OCT_TRY(oct_samples_read_states(s->c.m->graph, d, err));
    s->c.o.n_states = d->of.generate ? 0 : d->n_state; /* generated samples have theirs */
    s->c.o.states = d->state;
    OCT_TRY(oct_samples_open(s->c.m->graph, d, 0, &s->src, err));
    oct_samples_say_beside(s->h.voice, d);
    return OCT_OK;
}

oct_status oct_session_decide(oct_session *s, oct_err *err)
{
    OCT_TRY(take(s, err));
    OCT_TRY(oct_conversion_decide(&s->c, s->src, err));
    if (s->src)
        warn_of_bytes(s); /* now it is known whether samples are pictures */
    return OCT_OK;
}

oct_status oct_session_preview(const oct_session *s, oct_graph *g, oct_qjob **job, oct_layer **layers, size_t *n,
                               oct_err *err)
{
    oct_qjob_opts o = oct_conversion_job_opts(&s->c);
    o.have_data = o.late = true;
    OCT_TRY(oct_qjob_create(g, &o, job, err));
    return oct_layers_list(*job, s->c.arena, layers, n, err);
}

const oct_buf *oct_session_graph(const oct_session *s)
{
    return &s->graph_text;
}

bool oct_session_lacks_samples(const oct_session *s)
{
    return s->x.calib && oct_methods_any_needing(&s->c.o.methods, OCT_NEEDS_SAMPLES);
}

void oct_session_close(oct_session *s)
{
    if (!s)
        return;
    if (s->h.spill)
        oct_spill_end();
    oct_buf_free(&s->graph_text);
    oct_record_end(&s->record);
    oct_conversion_close(&s->c);
    oct_source_close(s->src);
    oct_target_close(s->target);
    oct_gates_free(&s->gates);
    oct_decode_close(s->rule);
    oct_truth_close(s->truth);
    oct_model_free(s->m);
    oct_buf_free(&s->made_by);
    if (s->memory >= 0)
        close(s->memory);
    if (s->h.spill)
        oct_spill_close();
    oct_free(s);
}
