#define _XOPEN_SOURCE 700
/* Writes the command of a run as text. */
#include "qconvert/qconvert.h"

#include <stdlib.h>
#include <string.h>

static void add(oct_buf *b, const char *option, const char *value)
{
    oct_buf_puts(b, " ");
    if (option) {
        oct_buf_puts(b, option);
        oct_buf_puts(b, " ");
    }
    tool_quote(b, value);
}

/* A command's words, without the folders in them. */
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

/* The name of a file, a folder or a pattern, independent of where it is. */
static void bare_name(oct_buf *b, const char *path)
{
    static const char pipe[] = "pipe:";
    if (strncmp(path, pipe, sizeof pipe - 1) == 0) {
        bare_words(b, path);
        return;
    }
    char *real = NULL;
    size_t n = strlen(path);
    for (int round = 0; round < 2; round++) {
        while (n > 1 && path[n - 1] == '/')
            n--;
        size_t at = n;
        while (at > 0 && path[at - 1] != '/')
            at--;
        const bool dots = n - at <= 2 && strspn(path + at, ".") >= n - at;
        if (!dots || round || !(real = realpath(path, NULL))) {
            oct_buf_add(b, path + at, n - at);
            break;
        }
        path = real; /* the current folder has a name, too */
        n = strlen(path);
    }
    free(real);
}

bool command_is_like(const char *command, const char *bare)
{
    oct_buf b = OCT_BUF_INIT;
    bare_words(&b, command);
    const bool is = !b.failed && strcmp(oct_buf_str(&b), bare) == 0;
    oct_buf_free(&b);
    return is;
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

static void add_goals(const session *s, bool bare, oct_buf *b)
{
    const convert_args *a = s->a;
    oct_buf words = OCT_BUF_INIT;
    for (size_t i = 0; i < a->max_drop.n; i++)
        add(b, "--max-drop", a->max_drop.v[i]);
    if (oct_cli_given(s->cli, "min-sqnr"))
        oct_buf_printf(b, " --min-sqnr %.9g", a->min_sqnr);
    if (a->min_agreement)
        add(b, "--min-agreement", a->min_agreement);
    if (a->metric)
        add(b, "--metric", a->metric);
    if (a->command.command) {
        if (bare)
            bare_words(&words, a->command.command);
        b->failed |= words.failed;
        add(b, "--metric-cmd", bare ? oct_buf_str(&words) : a->command.command);
        oct_buf_free(&words);
    }
    if (a->command.smaller_is_better)
        oct_buf_puts(b, " --less-is-better");
    if (a->data.labels)
        add_file(b, "--labels", a->data.labels, bare);
    if (tool_rule_file(a->decode))
        add_file(b, "--decode", a->decode, bare);
    else if (a->decode)
        add(b, "--decode", a->decode);
    if (a->truth)
        add_file(b, "--truth", a->truth, bare);
    if (oct_cli_given(s->cli, "trials"))
        oct_buf_printf(b, " --trials %lld", (long long)a->trials);
    if (a->time_limit > 0)
        oct_buf_printf(b, " --time-limit %.9g", a->time_limit);
}

void session_command(const session *s, bool bare, oct_buf *b)
{
    const convert_args *a = s->a;
    const struct {
        const char *option, *value;
    } named[] = { { "--target", target_word(a) },
                  { "--scheme", a->scheme },
                  { "--bits", a->bits },
                  { "--block-size", a->block_size },
                  { "--accuracy-level", a->accuracy_level },
                  { "--effort", a->effort } };
    if (bare && a->recorded) {
        oct_buf_puts(b, a->recorded);
        return;
    }
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
    if (oct_cli_given(s->cli, "seed"))
        oct_buf_printf(b, " --seed %lld", (long long)a->data.seed);
    for (size_t i = 0; i < a->data.states.n; i++)
        add(b, "--state", a->data.states.v[i]);
    if (a->data.skip_bad)
        oct_buf_puts(b, " --skip-bad");
    if (a->calib)
        add_file(b, "--calib", a->calib, bare);
    if (a->policy)
        add_file(b, "--policy", a->policy, bare);
    for (size_t i = 0; i < a->rules.n; i++)
        add(b, "--set", a->rules.v[i]);
    if (target_file(a))
        add_file(b, "--target", a->target, bare);
    for (size_t i = target_file(a) ? 1 : 0; i < OCT_COUNT(named); i++)
        if (oct_cli_given(s->cli, named[i].option + 2))
            add(b, named[i].option, named[i].value);
    if (a->symmetric)
        oct_buf_puts(b, " --symmetric");
    if (oct_cli_given(s->cli, "format"))
        add(b, "--format", a->format);
    if (a->observer)
        add(b, "--observer", a->observer);
    for (size_t i = 0; i < a->disabled.n; i++)
        add(b, "--disable-pass", a->disabled.v[i]);
    for (size_t i = 0; i < a->methods.n; i++)
        add(b, "--method", a->methods.v[i]);
    for (size_t i = 0; i < a->no_methods.n; i++)
        add(b, "--no-method", a->no_methods.v[i]);
    if (oct_cli_given(s->cli, "budget"))
        oct_buf_printf(b, " --budget %.15g", a->budget);
    if (a->target_size)
        add(b, "--target-size", a->target_size);
    if (oct_cli_given(s->cli, "target-bits"))
        oct_buf_printf(b, " --target-bits %.9g", a->target_bits);
    if (s->n_goals && a->trials) /* goals change the result only through trials */
        add_goals(s, bare, b);
    if (!a->recover)
        oct_buf_puts(b, " --no-recover");
    if (!a->bias_correction)
        oct_buf_puts(b, " --no-bias-correction");
    for (size_t i = 0; i < a->input_types.n; i++)
        add(b, "--input-type", a->input_types.v[i]);
    for (size_t i = 0; i < a->output_types.n; i++)
        add(b, "--output-type", a->output_types.v[i]);
    if (a->input_layout)
        add(b, "--input-layout", a->input_layout);
    if (!a->keep_io_types)
        oct_buf_puts(b, " --no-keep-io-types");
}
