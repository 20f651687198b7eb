/* Writes the model and checks what was written. */
#define _XOPEN_SOURCE 700
#include "qconvert/qconvert.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(oct_buf *b, const char *option, const char *value)
{
    oct_buf_puts(b, " ");
    if (option) {
        oct_buf_puts(b, option);
        oct_buf_puts(b, " ");
    }
    tool_quote(b, value);
}

/* A command's words without the folders in them. */
static void bare_words(oct_buf *b, const char *command)
{
    while (*command) {
        const size_t n = strcspn(command, " \t\n'\"`=:;,|&<>(){}$");
        const char *end = command + n, *word = end;
        while (word > command && word[-1] != '/')
            word--;
        oct_buf_add(b, word, (size_t)(end - word) + (*end != '\0'));
        command = end + (*end != '\0');
    }
}

/* What a file, a folder or a pattern is called, wherever it lies. */
static void bare_name(oct_buf *b, const char *path)
{
    static const char pipe[] = "pipe:";
    if (strncmp(path, pipe, sizeof pipe - 1) == 0) {
        bare_words(b, path);
        return;
    }
    char *real = NULL;
    size_t n = strlen(path);
    for (int turn = 0; turn < 2; turn++) {
        while (n > 1 && path[n - 1] == '/')
            n--;
        size_t at = n;
        while (at > 0 && path[at - 1] != '/')
            at--;
        const bool dots = n - at <= 2 && strspn(path + at, ".") >= n - at;
        if (!dots || turn || !(real = realpath(path, NULL))) {
            oct_buf_add(b, path + at, n - at);
            break;
        }
        path = real; /* the folder one is in has a name, too */
        n = strlen(path);
    }
    free(real);
}

static void add_file(oct_buf *b, const char *option, const char *path, bool bare)
{
    oct_buf name = OCT_BUF_INIT;
    if (bare)
        bare_name(&name, path);
    b->failed |= name.failed;
    add(b, option, bare ? oct_buf_str(&name) : path);
    oct_buf_free(&name);
}

void session_command(const session *s, bool bare, oct_buf *b)
{
    const convert_args *a = s->a;
    oct_buf_puts(b, s->cli->name);
    add_file(b, NULL, a->model, bare);
    for (size_t i = 0; i < a->data.specs.n; i++)
        add_file(b, "--data", a->data.specs.v[i], bare);
    for (size_t i = 0; i < a->data.preprocess.n; i++)
        add(b, "--preprocess", a->data.preprocess.v[i]);
    if (a->data.samples)
        oct_buf_printf(b, " --samples %lld", (long long)a->data.samples);
    if (a->data.first)
        oct_buf_puts(b, " --first");
    if (a->data.skip_bad)
        oct_buf_puts(b, " --skip-bad");
    if (a->calib)
        add_file(b, "--calib", a->calib, bare);
    if (a->policy)
        add_file(b, "--policy", a->policy, bare);
    if (target_file(a))
        add_file(b, "--target", a->target, bare);
    else if (oct_cli_given(s->cli, "target"))
        add(b, "--target", a->target);
    if (oct_cli_given(s->cli, "scheme"))
        add(b, "--scheme", a->scheme);
    if (oct_cli_given(s->cli, "bits"))
        add(b, "--bits", a->bits);
    if (oct_cli_given(s->cli, "block-size"))
        add(b, "--block-size", a->block_size);
    if (a->symmetric)
        oct_buf_puts(b, " --symmetric");
    if (oct_cli_given(s->cli, "format"))
        add(b, "--format", a->format);
    if (a->observer)
        add(b, "--observer", a->observer);
    for (size_t i = 0; i < a->disabled.n; i++)
        add(b, "--disable-pass", a->disabled.v[i]);
    if (!a->recover)
        oct_buf_puts(b, " --no-recover");
    if (!a->bias_correction)
        oct_buf_puts(b, " --no-bias-correction");
    if (!a->keep_io_types)
        oct_buf_puts(b, " --no-keep-io-types");
}

static oct_status set_meta(session *s, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT, command = OCT_BUF_INIT;
    session_command(s, true, &command);
    oct_text_clean(&b, oct_buf_str(&command), false); /* paths need not be UTF-8, strings of a model must */
    b.failed |= command.failed;
    oct_buf_free(&command);
    oct_status st = b.failed ? oct_nomem(err) : oct_model_set_meta(s->m, "octet.version", OCT_VERSION, err);
    if (st == OCT_OK)
        st = oct_model_set_meta(s->m, "octet.command", oct_buf_str(&b), err);
    oct_buf_free(&b);
    return st;
}

/* ---- the check ---- */

/* Reads back what was written, before it replaces anything: what does not load, or has operands of types that operators do not take, is no
 * model (OCT_ENUMERIC). A stream cannot be read back. */
static oct_status check(session *s, const oct_model_draft *d, oct_err *err)
{
    oct_model *q;
    oct_status st = oct_model_draft_load(d, &q, err);
    if (st == OCT_OK && q)
        st = oct_infer_shapes(q->graph, err);
    if (st == OCT_OK)
        st = oct_check_types(q ? q->graph : s->m->graph, err);
    oct_model_free(q);
    if (st == OCT_OK)
        return OCT_OK;
    oct_within(err, "%s: the written model does not pass the check", s->output);
    return st == OCT_EMALFORMED ? OCT_ENUMERIC : st == OCT_ENOMEM || st == OCT_EIO ? st : OCT_EINTERNAL;
}

static oct_status write_checked(session *s, oct_err *err)
{
    oct_model_draft *d;
    OCT_TRY(oct_model_write(s->m, s->output, NULL, &d, err));
    oct_status st = check(s, d, err);
    if (st == OCT_OK)
        return oct_model_draft_commit(d, err);
    oct_model_draft_abort(d);
    return st;
}

/* model.int8.onnx -> model.int8.best.onnx: where a model goes that missed its goal. NULL: no memory. */
static char *best_name(const session *s)
{
    size_t n = strlen(s->output);
    if (n > 5 && strcmp(s->output + n - 5, ".onnx") == 0)
        n -= 5;
    return oct_arena_printf(s->arena, "%.*s.best.onnx", (int)n, s->output);
}

static oct_status divert(session *s, oct_err *err)
{
    s->output = best_name(s);
    return s->output ? OCT_OK : oct_nomem(err);
}

/* External data as oct_model_save names it after its model. */
static bool is_data_of(const char *path, const char *model)
{
    const char *base = tool_base(path), *name = tool_base(model);
    const size_t n = strlen(name);
    return strncmp(base, name, n) == 0 && base[n] == '.' && strspn(base + n + 1, "0123456789abcdef") == 16 && strcmp(base + n + 17, ".data") == 0;
}

/* What an earlier run that missed its goal has put beside the output is out of date. It goes if it is a model of ours. */
static void remove_best(const session *s)
{
    const char *path = best_name(s);
    oct_model *m = NULL;
    if (!path || oct_path_is_stream(s->output) || !oct_path_exists(path) || oct_same_file(path, s->a->model) ||
        oct_model_load(path, &m, NULL) != OCT_OK)
        return;
    if (oct_model_meta(m, "octet.version")) {
        for (size_t i = 1; i < m->n_maps; i++)
            if (is_data_of(m->maps[i].path, path))
                unlink(m->maps[i].path);
        if (unlink(path) == 0)
            oct_cli_note(s->cli, 0, "%s, of a run that missed its goal, was removed", path);
    }
    oct_model_free(m);
}

/* Makes the model that is to be written, in memory. */
static oct_status rewrite(session *s, oct_err *err)
{
    OCT_TRY(oct_qjob_rewrite(s->job, err));
    if (strcmp(s->a->format, "qoperator") == 0)
        OCT_TRY(oct_qoperator_rewrite(s->m->graph, NULL, err));
    OCT_TRY(oct_infer_shapes(s->m->graph, err));
    if (oct_graph_opset(s->m->graph, "") >= 21 && s->m->ir_version < 10)
        s->m->ir_version = 10; /* the first with types of 4 bits */
    return set_meta(s, err);
}

oct_status session_measure(session *s, oct_err *err)
{
    OCT_TRY(rewrite(s, err));
    return oct_model_size(s->m, s->output, NULL, &s->size_after, err);
}

oct_status session_save(session *s, oct_err *err)
{
    if (s->src)
        OCT_TRY(oct_graph_clone(s->m->graph, &s->fl, err));
    OCT_TRY(session_measure(s, err));
    OCT_TRY(session_judge(s, s->m->graph, err));
    if (s->missed)
        OCT_TRY(divert(s, err));
    OCT_TRY(write_checked(s, err));
    if (s->a->max_drop && !s->missed)
        remove_best(s);
    return OCT_OK;
}

/* ---- the decisions as a table ---- */

static const char *weight_text(oct_weight_type t)
{
    static const char *const names[] = { [OCT_WEIGHT_S8] = "s8", [OCT_WEIGHT_S7] = "s7", [OCT_WEIGHT_U8] = "u8", [OCT_WEIGHT_S4] = "s4",
                                         [OCT_WEIGHT_U4] = "u4" };
    return names[t];
}

static void dump_name(oct_buf *b, const char *name)
{
    oct_buf_puts(b, "name:");
    for (size_t n; *name; name += n) {
        const uint32_t c = oct_utf8_char(name, 4, &n);
        if (oct_char_unsafe(c)) { /* a byte that is no printed character of ASCII */
            for (size_t i = 0; i < n; i++)
                oct_buf_puts(b, "[^!-~]");
            continue;
        }
        if (strchr(" \\&*?[", *name))
            oct_buf_puts(b, "\\");
        oct_buf_add(b, name, n);
    }
}

static void dump_comment(oct_buf *b, const char *op, const char *why)
{
    oct_buf_puts(b, "  # ");
    oct_text_clean(b, op, false);
    oct_buf_puts(b, *why ? ": " : "");
    oct_text_clean(b, why, false);
    oct_buf_puts(b, "\n");
}

static void dump_layer(oct_buf *b, const session *s, const oct_layer *l)
{
    oct_policy_row row;
    char param[32];
    if (!*l->own)
        return;
    oct_policy_match(s->policy, l->d.graph, l->d.node, &row);
    oct_observer_spec o = row.observer.observer ? row.observer : oct_qjob_observer(s->job);
    dump_name(b, l->own);
    if (!l->d.integer && !oct_layer_is_weight_only(l)) {
        oct_buf_printf(b, "  %s  -  -  -", oct_scheme_name(l->d.scheme));
        dump_comment(b, l->d.op, l->d.why);
        return;
    }
    if (oct_layer_is_weight_only(l)) {
        const bool is_unsigned = l->d.weights == OCT_U4 || l->d.weights == OCT_U8;
        oct_buf_printf(b, "  weight-only  %c%d/block%d/%s  -  -", is_unsigned ? 'u' : 's', oct_dtype_bits(l->d.weights),
                       l->d.block, is_unsigned ? "asym" : "sym");
        dump_comment(b, l->d.op, "");
        return;
    }
    oct_buf_printf(b, "  %s  %s/%s/sym  %s/tensor/%s  %s", oct_scheme_name(l->d.scheme), weight_text(row.weights),
                   row.per_channel ? "channel" : "tensor", row.activations == OCT_S8 ? "s8" : "u8",
                   row.symmetric ? "sym" : "asym", o.observer->name);
    if (o.observer->has_param)
        oct_buf_printf(b, "=%s", oct_f64_text(param, o.param));
    dump_comment(b, l->d.op, "");
}

oct_status session_dump_policy(const session *s, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT, command = OCT_BUF_INIT;
    session_command(s, true, &command);
    oct_buf_puts(&b, "# octet policy 1 -- the decisions of: ");
    oct_text_clean(&b, oct_buf_str(&command), false);
    b.failed |= command.failed;
    oct_buf_free(&command);
    oct_buf_puts(&b, "\n# match  scheme  weights  activations  observer\n");
    for (size_t i = 0; i < s->n_layers; i++)
        dump_layer(&b, s, &s->layers[i]);
    oct_status st = tool_write_text(s->a->dump_policy, &b, err);
    oct_buf_free(&b);
    return st;
}
