#define _XOPEN_SOURCE 700
/* Writes the command of a conversion as text. */
#include "api/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(oct_buf *b, const char *option, const char *value)
{
    oct_buf_puts(b, " ");
    if (option) {
        oct_buf_puts(b, option);
        oct_buf_puts(b, " ");
    }
    oct_quote(b, value);
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

bool oct_command_is_like(const char *command, const char *bare)
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

static void add_texts(oct_buf *b, const char *option, octet_texts t)
{
    for (size_t i = 0; i < t.n; i++)
        add(b, option, t.v[i]);
}

static void add_goals(const octet_convert_options *x, bool bare, oct_buf *b)
{
    oct_buf words = OCT_BUF_INIT;
    add_texts(b, "--max-drop", x->max_drop);
    if (!isnan(x->min_sqnr))
        oct_buf_printf(b, " --min-sqnr %.9g", x->min_sqnr);
    if (x->min_agreement)
        add(b, "--min-agreement", x->min_agreement);
    if (x->metric)
        add(b, "--metric", x->metric);
    if (x->metric_command) {
        if (bare)
            bare_words(&words, x->metric_command);
        b->failed |= words.failed;
        add(b, "--metric-cmd", bare ? oct_buf_str(&words) : x->metric_command);
        oct_buf_free(&words);
    }
    if (x->less_is_better)
        oct_buf_puts(b, " --less-is-better");
    if (x->samples.labels)
        add_file(b, "--labels", x->samples.labels, bare);
    if (oct_rule_file(x->decode))
        add_file(b, "--decode", x->decode, bare);
    else if (x->decode)
        add(b, "--decode", x->decode);
    if (x->truth)
        add_file(b, "--truth", x->truth, bare);
    if (x->trials >= 0)
        oct_buf_printf(b, " --trials %lld", (long long)x->trials);
    if (x->time_limit > 0)
        oct_buf_printf(b, " --time-limit %.9g", x->time_limit);
}

static void add_samples(const octet_samples *d, bool bare, oct_buf *b)
{
    for (size_t i = 0; i < d->data.n; i++)
        add_file(b, "--data", d->data.v[i], bare);
    if (d->get)
        add(b, "--data", OCT_GIVEN);
    add_texts(b, "--preprocess", d->preprocess);
    if (d->samples)
        oct_buf_printf(b, " --samples %lld", (long long)d->samples);
    if (d->first)
        oct_buf_puts(b, " --first");
    if (d->seed >= 0)
        oct_buf_printf(b, " --seed %lld", (long long)d->seed);
    add_texts(b, "--state", d->states);
    if (d->skip_bad)
        oct_buf_puts(b, " --skip-bad");
}

void oct_session_command(const octet_convert_options *x, bool bare, oct_buf *b)
{
    const struct {
        const char *option;
        int value, from; /* given from there on */
    } numbers[] = { { "--bits", x->bits, 1 },
                    { "--block-size", x->block_size, 1 },
                    { "--accuracy-level", x->accuracy_level, 0 } };
    oct_buf_puts(b, "qconvert");
    add_file(b, NULL, x->model, bare);
    add_samples(&x->samples, bare, b);
    if (x->calib)
        add_file(b, "--calib", x->calib, bare);
    if (x->policy)
        add_file(b, "--policy", x->policy, bare);
    add_texts(b, "--set", x->rules);
    if (oct_session_target_file(x))
        add_file(b, "--target", x->target, bare);
    else if (x->target)
        add(b, "--target", oct_session_target(x));
    if (x->scheme)
        add(b, "--scheme", x->scheme);
    for (size_t i = 0; i < OCT_COUNT(numbers); i++)
        if (numbers[i].value >= numbers[i].from)
            oct_buf_printf(b, " %s %d", numbers[i].option, numbers[i].value);
    if (x->effort)
        add(b, "--effort", x->effort);
    if (x->symmetric)
        oct_buf_puts(b, " --symmetric");
    if (x->format)
        add(b, "--format", x->format);
    if (x->observer)
        add(b, "--observer", x->observer);
    add_texts(b, "--disable-pass", x->disabled_passes);
    add_texts(b, "--method", x->methods);
    add_texts(b, "--no-method", x->no_methods);
    if (x->budget >= 0)
        oct_buf_printf(b, " --budget %.15g", x->budget);
    if (x->target_size)
        add(b, "--target-size", x->target_size);
    if (x->target_bits > 0)
        oct_buf_printf(b, " --target-bits %.9g", x->target_bits);
    if (oct_session_goals(x) && x->trials != 0) /* goals change the result only through trials */
        add_goals(x, bare, b);
    if (!x->recover)
        oct_buf_puts(b, " --no-recover");
    if (!x->bias_correction)
        oct_buf_puts(b, " --no-bias-correction");
    add_texts(b, "--input-type", x->input_types);
    add_texts(b, "--output-type", x->output_types);
    if (x->input_layout)
        add(b, "--input-layout", x->input_layout);
    if (!x->keep_io_types)
        oct_buf_puts(b, " --no-keep-io-types");
}
