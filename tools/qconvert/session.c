/* A conversion up to its decisions: model, policy, job. */
#include "qconvert/qconvert.h"

#include "base/spill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        s->cli->output_taken = !s->a->dry_run && !s->a->no_save;
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
static void spill_results(const session *s)
{
    enum { IN_MEMORY = 48 << 20 }; /* small models need no file */
    oct_spill_open(s->output, IN_MEMORY);
}

/* Every file that this run writes, against every file that it reads. */
static oct_status check_outputs(session *s, oct_err *err)
{
    const convert_args *a = s->a;
    const char *out[] = { a->dry_run || a->no_save ? NULL : s->output, a->dump_policy, s->cli->json };
    const char *in[] = { a->model, a->calib, a->policy, a->data.labels, target_file(a) };
    for (size_t i = 0; i < OCT_COUNT(out); i++) {
        OCT_TRY(tool_check_output(out[i], in, OCT_COUNT(in), err));
        OCT_TRY(tool_check_output(out[i], a->data.specs.v, a->data.specs.n, err));
        OCT_TRY(tool_check_model_output(out[i], s->m, err));
        for (size_t k = 0; k < i; k++) /* the name of the model may not have been on the command line */
            if (out[i] && out[k] && oct_same_output(out[i], out[k]))
                return oct_fail(err, OCT_EUSAGE, "%s: two outputs would go there", out[i]);
    }
    return OCT_OK;
}

/* ---- policy ---- */

static void absent(void *arg, const char *place, const char *op)
{
    const session *s = arg;
    oct_cli_note(s->cli, 1, "%s: the model has no %s", place, op);
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
    OCT_TRY(oct_target_open(s->a->target, &s->target, err));
    if (!oct_scheme_parse(s->a->scheme, &s->scheme))
        return oct_fail(err, OCT_EUSAGE, "there is no scheme '%s'", s->a->scheme);
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

static void warn_bfloat16(const session *s)
{
    if (s->scheme == OCT_SCHEME_BF16 && !oct_target_bfloat16(s->target))
        oct_cli_warn(s->cli, "the target %s has no bfloat16 kernels; --target says where else the model will run", oct_target_name(s->target));
}

oct_status session_open(session *s, oct_cli *cli, const convert_args *a, oct_err *err)
{
    *s = (session){ .cli = cli, .a = a, .sqnr = NAN };
    if (!(s->arena = oct_arena_create()))
        return oct_nomem(err);
    if (a->max_drop)
        OCT_TRY(oct_drop_limit_parse(a->max_drop, &s->limit, err));
    OCT_TRY(read_policy(s, err));
    OCT_TRY(name_output(s, err));
    if (!a->data.specs.n)
        spill_results(s);
    OCT_TRY(tool_load(s->cli, a->model, &s->m, err));
    OCT_TRY(check_outputs(s, err));
    s->size_before = tool_model_bytes(s->m);
    warn_quantized(s);
    if (a->calib)
        OCT_TRY(session_read_table(s, err));
    tool_data d = a->data;
    d.hold = true;
    if (d.specs.n)
        OCT_TRY(tool_open_data(s->m->graph, &d, 0, &s->src, err));
    oct_policy_note(s->policy, s->m->graph);
    oct_pass_log log = session_log(s);
    oct_qjob_opts o = session_opts(s);
    o.log = &log;
    o.have_data = s->src || s->calib;
    oct_status st = oct_qjob_create(s->m->graph, &o, &s->job, err);
    if (st == OCT_OK && s->out_of_memory)
        st = oct_nomem(err);
    if (st == OCT_OK) {
        warn_bfloat16(s);
        oct_policy_note(s->policy, s->m->graph);
        OCT_TRY(oct_policy_check(s->policy, s->m->graph, absent, s, err));
        st = session_decide(s, err);
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
    oct_target_close(s->target);
    oct_model_free(s->m);
    oct_arena_destroy(s->arena);
    oct_spill_close();
}
