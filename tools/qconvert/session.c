/* A conversion up to its decisions: model, policy, job, statistics. */
#include "qconvert/qconvert.h"

#include "base/spill.h"
#include "quant/runnable.h"
#include "quant/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer samples than this are not split: halves would be worse than the optimism they avoid. */
enum { LEAST_SPLIT = 16 };

static void log_change(void *arg, const char *pass, const char *what, const char *node)
{
    session *s = arg;
    if (s->n_changes == s->cap_changes && !OCT_GROW(s->arena, s->changes, s->n_changes, s->cap_changes)) {
        s->out_of_memory = true;
        return;
    }
    change *c = &s->changes[s->n_changes++];
    c->pass = oct_arena_strdup(s->arena, pass);
    c->what = oct_arena_strdup(s->arena, what);
    c->node = oct_arena_strdup(s->arena, node ? node : "");
    s->out_of_memory |= !c->pass || !c->what || !c->node;
}

oct_pass_log session_log(session *s)
{
    return (oct_pass_log){ .change = log_change, .arg = s };
}

static void forget(void *arg, const void *bytes, size_t n)
{
    oct_model_forget(arg, bytes, n);
}

oct_qjob_opts session_opts(const session *s)
{
    oct_qjob_opts o = s->blocks;
    o.policy = s->policy;
    o.target = s->target;
    o.scheme = s->scheme;
    o.disabled = s->a->disabled.v;
    o.n_disabled = s->a->disabled.n;
    o.no_bias_correction = !s->a->bias_correction;
    o.half_io = !s->a->keep_io_types;
    o.threads = (int)s->cli->threads;
    o.forget = forget;
    o.forget_arg = s->m;
    return o;
}

oct_status block_options(oct_cli *cli, const convert_args *a, const oct_policy *policy, oct_qjob_opts *o, oct_err *err)
{
    static const char *const names[] = { "bits", "block-size", "symmetric" };
    oct_scheme scheme;
    bool any = oct_scheme_parse(a->scheme, &scheme) &&
               (scheme == OCT_SCHEME_WEIGHT_ONLY || (scheme == OCT_SCHEME_AUTO && oct_policy_uses(policy, OCT_SCHEME_WEIGHT_ONLY)));
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (!any && oct_cli_given(cli, names[i])) {
            oct_fail(err, OCT_EUSAGE, "--%s is for weights in blocks, which no layer gets", names[i]);
            oct_hint(err, "add --scheme weight-only, or a policy rule with that scheme");
            return OCT_EUSAGE;
        }
    o->bits = atoi(a->bits); /* one of the names of an option */
    o->block = atoi(a->block_size);
    o->symmetric = a->symmetric;
    o->blocks_qdq = oct_cli_given(cli, "format") && strcmp(a->format, "qdq") == 0;
    return OCT_OK;
}

/* ---- what is written where ---- */

/* model.onnx -> model.int8.onnx, or .int4.onnx, .fp16.onnx */
static oct_status name_output(session *s, oct_err *err)
{
    const bool half = s->scheme == OCT_SCHEME_FP16 || s->scheme == OCT_SCHEME_BF16;
    const char *given = s->a->output, *model = s->a->model;
    if (given) {
        s->output = oct_arena_strdup(s->arena, given);
    } else if (strcmp(model, "-") == 0) {
        s->output = oct_arena_strdup(s->arena, "-");
    } else {
        size_t n = strlen(model);
        if (n > 5 && strcmp(model + n - 5, ".onnx") == 0)
            n -= 5;
        bool four = s->scheme == OCT_SCHEME_WEIGHT_ONLY && strcmp(s->a->bits, "4") == 0;
        s->output = oct_arena_printf(s->arena, "%.*s.%s.onnx", (int)n, model, half ? oct_scheme_name(s->scheme) : four ? "int4" : "int8");
    }
    return s->output ? OCT_OK : oct_nomem(err);
}

/* Without samples nothing but the model is large: what is made of its tensors waits in a file where the output will be. */
static oct_status spill_results(const session *s, oct_err *err)
{
    enum { IN_MEMORY = 48 << 20 }; /* small models need no file */
    const char *slash = strrchr(s->output, '/');
    const char *folder = slash ? oct_arena_strndup(s->arena, s->output, (size_t)(slash - s->output) + 1) : ".";
    if (!folder)
        return oct_nomem(err);
    oct_spill_open(folder, IN_MEMORY);
    return OCT_OK;
}

/* Every file that this run writes, against every file that it reads. */
static oct_status check_outputs(session *s, oct_err *err)
{
    const convert_args *a = s->a;
    const char *out[] = { a->dry_run || a->no_save ? NULL : s->output, a->dump_policy, s->cli->json };
    const char *in[] = { a->model, a->calib, a->policy };
    for (size_t i = 0; i < OCT_COUNT(out); i++) {
        OCT_TRY(tool_check_output(out[i], in, OCT_COUNT(in), err));
        OCT_TRY(tool_check_output(out[i], a->data.specs.v, a->data.specs.n, err));
        OCT_TRY(tool_check_model_output(out[i], s->m, err));
    }
    return OCT_OK;
}

/* ---- policy ---- */

static void unmatched(void *arg, const char *rule, const char *near)
{
    session *s = arg;
    if (near)
        oct_cli_warn(s->cli, "the rule %s matches no node; did you mean '%s'?", rule, near);
    else
        oct_cli_warn(s->cli, "the rule %s matches no node", rule);
}

static oct_status read_policy(session *s, oct_err *err)
{
    OCT_TRY(oct_policy_create(s->a->policy, &s->policy, err));
    if (s->a->observer) {
        oct_observer_spec spec;
        OCT_TRY(oct_observer_parse(s->a->observer, &spec, err));
        oct_buf b = OCT_BUF_INIT;
        oct_buf_printf(&b, "any - - - %s\n", s->a->observer);
        oct_status st = b.failed ? oct_nomem(err) : oct_policy_add(s->policy, oct_buf_str(&b), "--observer", err);
        oct_buf_free(&b);
        OCT_TRY(st);
    }
    s->target = oct_target_find(s->a->target);
    if (!s->target || !oct_scheme_parse(s->a->scheme, &s->scheme))
        return oct_fail(err, OCT_EUSAGE, "there is no target or scheme of that name");
    return block_options(s->cli, s->a, s->policy, &s->blocks, err);
}

/* A float model is expected; of a quantized one little is left to do. */
static void warn_quantized(const session *s)
{
    const oct_graph *g = s->m->graph;
    size_t n = 0;
    for (size_t i = 0; i < g->n_order; i++) {
        const char *op = g->node[g->order[i]].op;
        n += strcmp(op, "DequantizeLinear") == 0 || strncmp(op, "QLinear", 7) == 0 || strcmp(op, "MatMulInteger") == 0 ||
             strcmp(op, "MatMulNBits") == 0 || strncmp(op, "DynamicQuantize", 15) == 0;
    }
    if (n)
        oct_cli_warn(s->cli, "%s is quantized already (%zu nodes); what is quantized stays as it is", s->a->model, n);
}

/* ---- statistics ---- */

static oct_status read_table(session *s, oct_err *err)
{
    const char *path = s->a->calib;
    OCT_TRY(oct_calib_load(path, &s->calib, err));
    uint64_t hash = oct_model_hash(s->m);
    if (s->calib->model_hash == hash)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s: made from another model: '%s' with hash %016llx, but %s has %016llx", path, s->calib->model,
             (unsigned long long)s->calib->model_hash, s->a->model, (unsigned long long)hash);
    oct_hint(err, "make the table from this model: qcalib %s --data SPEC -o %s", s->a->model, path);
    return OCT_EUSAGE;
}

/* Progress of one part of the samples as that of the whole. */
typedef struct part_progress {
    oct_cli *cli;
    int64_t before, total;
} part_progress;

static void report_part(void *arg, const char *what, int64_t done, int64_t total)
{
    part_progress *p = arg;
    (void)total;
    oct_progress_report(&p->cli->progress, what, p->before + done, p->total);
}

/* A pass over the samples of one part; a tuner (may be NULL) sees them too. */
static oct_status calibrate_part(session *s, int part, oct_tuner *tuner, part_progress *p, oct_calib *c, oct_err *err)
{
    oct_source *src;
    tool_data d = s->a->data;
    const int *axes;
    size_t n;
    const char *const *names = oct_qjob_values(s->job, &axes, &n);
    oct_calibrate_opts o = { .values = names, .axes = axes, .n = n, .threads = (int)s->cli->threads,
                             .each = tuner ? oct_tuner_sample : NULL, .each_arg = tuner,
                             .progress = report_part, .progress_arg = p };
    d.shard_i = part;
    d.shard_n = 2;
    OCT_TRY(tool_open_data(s->m->graph, &d, 0, &src, err));
    oct_status st = oct_calibrate(s->m->graph, src, &o, c, err);
    p->before += (int64_t)c->samples;
    oct_source_close(src);
    return st;
}

/* Why what is measured on the whole model cannot be measured (empty: nothing would be); NULL: it can. */
static const char *no_measuring(const session *s)
{
    oct_graph *part = NULL;
    oct_err ignored = OCT_ERR_INIT;
    if (!oct_qjob_has_grids(s->job))
        return ""; /* nothing has a range to choose */
    bool whole = oct_runnable_part(s->m->graph, &part, &ignored) == OCT_OK && !part;
    oct_graph_destroy(part);
    if (!whole)
        return "the model has an operator that is not known here";
    return oct_source_reset(s->src, &ignored) == OCT_OK ? NULL : "the data can be read once only";
}

/* Samples for choices that are measured: more for small models, where they cost little and each tells less. */
static int64_t measured_samples(const session *s)
{
    const oct_graph *g = s->m->graph;
    int64_t macs = 1;
    for (size_t i = 0; i < g->n_order; i++)
        macs += layer_macs(g, g->order[i]);
    int64_t n = 2000000000 / macs;
    return n < 8 ? 8 : n > 64 ? 64 : n;
}

/* Ranges that are judged on the samples they come from look better the more they clip. So with enough samples candidates come
 * from a table of the odd ones, and the even ones judge them on their way into a table of their own. */
static bool can_split(const session *s)
{
    return !s->a->data.skip_bad && oct_source_count(s->src) >= LEAST_SPLIT;
}

static oct_status calibrate_parts(session *s, oct_err *err)
{
    part_progress p = { .cli = s->cli, .total = oct_source_count(s->src) };
    oct_tuner *tuner = NULL;
    oct_calib *odd = oct_calib_create();
    oct_status st = odd ? calibrate_part(s, 1, NULL, &p, odd, err) : oct_nomem(err);
    if (st == OCT_OK)
        st = oct_tuner_create(s->job, odd, (p.total + 1) / 2, measured_samples(s), &tuner, err);
    if (st == OCT_OK)
        st = calibrate_part(s, 0, tuner, &p, s->calib, err);
    if (st == OCT_OK)
        st = oct_calib_merge(s->calib, odd, err);
    if (st == OCT_OK && tuner)
        st = oct_tuner_choose(tuner, err);
    oct_tuner_destroy(tuner);
    oct_calib_destroy(odd);
    return st;
}

static oct_status calibrate_all(session *s, oct_err *err)
{
    const int *axes;
    size_t n;
    const char *const *names = oct_qjob_values(s->job, &axes, &n);
    oct_calibrate_opts o = { .values = names, .axes = axes, .n = n, .threads = (int)s->cli->threads,
                             .progress = oct_progress_report, .progress_arg = &s->cli->progress };
    OCT_TRY(oct_calibrate(s->m->graph, s->src, &o, s->calib, err));
    tool_say_bad(s->cli, s->src);
    return OCT_OK;
}

/* n samples spread over all data. */
static oct_status open_spread(const session *s, int64_t n, oct_source **src, oct_err *err)
{
    tool_data d = s->a->data;
    int64_t count = oct_source_count(s->src);
    d.shard_i = 0;
    d.shard_n = count > n ? count / n : 1;
    return tool_open_data(s->m->graph, &d, 0, src, err);
}

/* Few samples: they are run once more, and judge the ranges that come from them. */
static oct_status tune_again(session *s, oct_err *err)
{
    const int64_t n = measured_samples(s);
    oct_tuner *tuner = NULL;
    oct_source *src = NULL;
    oct_calib *none = oct_calib_create();
    oct_calibrate_opts o = { .limit = n, .threads = (int)s->cli->threads, .each = oct_tuner_sample };
    oct_status st = none ? oct_tuner_create(s->job, s->calib, 0, n, &tuner, err) : oct_nomem(err);
    o.each_arg = tuner;
    if (st == OCT_OK && tuner)
        st = open_spread(s, n, &src, err);
    if (st == OCT_OK && tuner)
        st = oct_calibrate(s->m->graph, src, &o, none, err);
    if (st == OCT_OK && tuner)
        st = oct_tuner_choose(tuner, err);
    oct_source_close(src);
    oct_tuner_destroy(tuner);
    oct_calib_destroy(none);
    return st;
}

/* Statistics, and with them the observer where the policy leaves a choice. */
static oct_status calibrate(session *s, oct_err *err)
{
    size_t n;
    oct_qjob_values(s->job, NULL, &n);
    if (!(s->calib = oct_calib_create()))
        return oct_nomem(err);
    if (*oct_source_preprocess_words(s->src))
        oct_cli_note(s->cli, 0, "preprocessing: %s", oct_source_preprocess_words(s->src));
    if (n == 0)
        return OCT_OK;
    const bool tunes = s->a->recover && !no_measuring(s), splits = tunes && can_split(s);
    OCT_TRY(splits ? calibrate_parts(s, err) : calibrate_all(s, err));
    if (s->calib->n_tensors < n)
        oct_cli_warn(s->cli, "%zu of %zu tensors could not be calibrated: they depend on an operator that is not known here",
                     n - s->calib->n_tensors, n);
    return tunes && !splits ? tune_again(s, err) : OCT_OK;
}

/* With samples at hand: what the biases must make up for. */
static oct_status recover(session *s, oct_err *err)
{
    oct_source *src = NULL;
    const int64_t n = measured_samples(s);
    const char *why = no_measuring(s);
    OCT_TRY(oct_qjob_decide(s->job, s->calib, err));
    if (why) {
        if (*why)
            oct_cli_note(s->cli, 0, "%s: ranges by hist-mse, biases corrected from the statistics", why);
        return OCT_OK;
    }
    OCT_TRY(open_spread(s, n, &src, err));
    oct_status st = oct_qjob_correct(s->job, s->calib, src, n, (int)s->cli->threads, err);
    oct_source_close(src);
    return st;
}

/* A table made for integers need not have all values that 16-bit floats must hold. */
static void warn_unknown(const session *s)
{
    size_t n, missing = 0;
    const char *const *names = oct_qjob_values(s->job, NULL, &n);
    for (size_t i = 0; i < n; i++)
        missing += oct_calib_find(s->calib, names[i]) == NULL;
    if (missing)
        oct_cli_warn(s->cli, "%s has no range of %zu of %zu tensors: whether float16 holds them is not known", s->a->calib, missing, n);
}

static void warn_bfloat16(const session *s)
{
    if (s->scheme == OCT_SCHEME_BF16 && strcmp(s->target->name, "octet") != 0)
        oct_cli_warn(s->cli, "ONNX Runtime has no bfloat16 kernels for the CPU; --target octet says that the model is not for it");
}

static oct_status decide(session *s, oct_err *err)
{
    if (s->src)
        OCT_TRY(calibrate(s, err));
    else if (s->calib && !oct_qjob_has_grids(s->job))
        warn_unknown(s);
    OCT_TRY(s->src && s->a->recover ? recover(s, err) : oct_qjob_decide(s->job, s->calib, err));
    return session_layers(s, err);
}

oct_status session_open(session *s, oct_cli *cli, const convert_args *a, oct_err *err)
{
    *s = (session){ .cli = cli, .a = a, .sqnr = NAN };
    if (!(s->arena = oct_arena_create()))
        return oct_nomem(err);
    OCT_TRY(read_policy(s, err));
    OCT_TRY(name_output(s, err));
    if (!a->data.specs.n)
        OCT_TRY(spill_results(s, err));
    OCT_TRY(tool_load(a->model, &s->m, err));
    OCT_TRY(check_outputs(s, err));
    s->size_before = tool_model_bytes(s->m);
    warn_quantized(s);
    if (a->calib)
        OCT_TRY(read_table(s, err));
    if (a->data.specs.n)
        OCT_TRY(tool_open_data(s->m->graph, &a->data, 0, &s->src, err));
    oct_pass_log log = session_log(s);
    oct_qjob_opts o = session_opts(s);
    o.log = &log;
    o.have_data = s->src || s->calib;
    oct_status st = oct_qjob_create(s->m->graph, &o, &s->job, err);
    if (st == OCT_OK && s->out_of_memory)
        st = oct_nomem(err);
    if (st == OCT_OK) {
        warn_bfloat16(s);
        oct_policy_unmatched(s->policy, s->m->graph, unmatched, s);
        st = decide(s, err);
    }
    if (st == OCT_EMALFORMED || st == OCT_EUNSUPPORTED || st == OCT_ENUMERIC || st == OCT_EINTERNAL)
        oct_within(err, "%s", a->model);
    return st;
}

void session_close(session *s)
{
    oct_eval_free(s->verdict);
    oct_qjob_destroy(s->job);
    oct_graph_destroy(s->fl);
    oct_source_close(s->src);
    oct_calib_destroy(s->calib);
    oct_policy_destroy(s->policy);
    oct_model_free(s->m);
    oct_arena_destroy(s->arena);
    oct_spill_close();
}
