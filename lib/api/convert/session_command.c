#define _XOPEN_SOURCE 700
/* The command of a conversion as text: written, and read again from the record of a model. */
#include "api/convert/session_int.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
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

/* Steps of preprocessing, where the file of a tokenizer is independent of where it is. */
static void bare_steps(oct_buf *b, const char *text)
{
    static const char key[] = "tokenizer=";
    const size_t n = sizeof key - 1;
    for (const char *step = text, *end; *step; step = end) {
        const char *slash = step; /* behind the name of an input */
        end = step + strcspn(step, ":");
        while (slash < end && strncmp(slash, key, n) != 0)
            slash++;
        if (slash < end) {
            char *file = strndup(slash + n, (size_t)(end - slash) - n);
            b->failed |= !file;
            oct_buf_add(b, step, (size_t)(slash - step) + n);
            if (file)
                bare_name(b, file);
            free(file);
        } else {
            oct_buf_add(b, step, (size_t)(end - step));
        }
        if (*end == ':')
            oct_buf_add(b, end++, 1);
    }
}

bool oct_command_is_like(const char *command, const char *bare)
{
    oct_buf b = OCT_BUF_INIT;
    bare_words(&b, command);
    const bool is = !b.failed && strcmp(oct_buf_str(&b), bare) == 0;
    oct_buf_free(&b);
    return is;
}

/* ---- the options ---- */

typedef enum kind {
    FILES,
    FILE_NAME,
    TEXTS,
    STEPS,
    TEXT,
    TARGET,
    RULE,
    COMMAND,
    FLAG,
    NO_FLAG,
    NUMBER,
    WHOLE,
    REAL
} kind;

/* In the order in which they are written: what can change the model. */
static const struct option {
    const char *name;
    kind kind;
    size_t at;   /* in octet_convert_options */
    double from; /* numbers: given from there on */
    int digits;  /* of a REAL */
} options[] = {
#define AT(member) offsetof(octet_convert_options, member)
    { "--data", FILES, AT(samples.data) },
    { "--preprocess", STEPS, AT(samples.preprocess) },
    { "--samples", WHOLE, AT(samples.samples), 1 },
    { "--first", FLAG, AT(samples.first) },
    { "--seed", WHOLE, AT(samples.seed) },
    { "--state", TEXTS, AT(samples.states) },
    { "--generate", WHOLE, AT(samples.generate), 1 },
    { "--skip-bad", FLAG, AT(samples.skip_bad) },
    { "--calib", FILE_NAME, AT(calib) },
    { "--policy", FILE_NAME, AT(policy) },
    { "--set", TEXTS, AT(rules) },
    { "--target", TARGET, AT(target) },
    { "--scheme", TEXT, AT(scheme) },
    { "--bits", NUMBER, AT(bits), 1 },
    { "--block-size", NUMBER, AT(block_size), 1 },
    { "--accuracy-level", NUMBER, AT(accuracy_level) },
    { "--effort", TEXT, AT(effort) },
    { "--symmetric", FLAG, AT(symmetric) },
    { "--format", TEXT, AT(format) },
    { "--observer", TEXT, AT(observer) },
    { "--disable-pass", TEXTS, AT(disabled_passes) },
    { "--method", TEXTS, AT(methods) },
    { "--no-method", TEXTS, AT(no_methods) },
    { "--budget", REAL, AT(budget), 0, 15 },
    { "--target-size", TEXT, AT(target_size) },
    { "--target-bits", REAL, AT(target_bits), DBL_MIN, 9 },
    { "--max-drop", TEXTS, AT(max_drop) },
    { "--min-sqnr", REAL, AT(min_sqnr), -DBL_MAX, 9 },
    { "--min-agreement", TEXT, AT(min_agreement) },
    { "--metric", TEXT, AT(metric) },
    { "--metric-cmd", COMMAND, AT(metric_command) },
    { "--less-is-better", FLAG, AT(less_is_better) },
    { "--labels", FILE_NAME, AT(samples.labels) },
    { "--decode", RULE, AT(decode) },
    { "--truth", FILE_NAME, AT(truth) },
    { "--as", TEXT, AT(twin) },
    { "--trials", WHOLE, AT(trials) },
    { "--time-limit", REAL, AT(time_limit), DBL_MIN, 9 },
    { "--no-recover", NO_FLAG, AT(recover) },
    { "--no-bias-correction", NO_FLAG, AT(bias_correction) },
    { "--input-type", TEXTS, AT(input_types) },
    { "--output-type", TEXTS, AT(output_types) },
    { "--input-layout", TEXT, AT(input_layout) },
    { "--no-keep-io-types", NO_FLAG, AT(keep_io_types) },
};

/* Those of goals, which change the result only through trials. */
static bool of_goals(const struct option *o)
{
    return (o->at >= AT(max_drop) && o->at <= AT(time_limit)) || o->at == AT(samples.labels);
}

static bool is_file(const struct option *o, const octet_convert_options *x)
{
    return o->kind == FILES || o->kind == FILE_NAME || (o->kind == TARGET && oct_session_target_file(x)) ||
           (o->kind == RULE && oct_rule_file(x->decode));
}

/* ---- writing ---- */

static void put_text(oct_buf *b, const struct option *o, const octet_convert_options *x, const char *text, bool bare)
{
    oct_buf name = OCT_BUF_INIT;
    if (bare && is_file(o, x))
        bare_name(&name, text);
    else if (bare && o->kind == COMMAND)
        bare_words(&name, text);
    else if (bare && o->kind == STEPS)
        bare_steps(&name, text);
    else
        oct_buf_puts(&name, o->kind == TARGET && !is_file(o, x) ? oct_session_target(x) : text);
    b->failed |= name.failed;
    add(b, o->name, oct_buf_str(&name));
    oct_buf_free(&name);
}

static void put(oct_buf *b, const struct option *o, const octet_convert_options *x, bool bare)
{
    const void *at = (const char *)x + o->at;
    switch (o->kind) {
    case FILES:
    case STEPS:
    case TEXTS: {
        const octet_texts *t = at;
        for (size_t i = 0; i < t->n; i++)
            put_text(b, o, x, t->v[i], bare);
        if (o->kind == FILES && x->samples.get)
            add(b, o->name, OCT_GIVEN);
        break;
    }
    case FLAG:
    case NO_FLAG:
        if (*(const bool *)at == (o->kind == FLAG))
            oct_buf_printf(b, " %s", o->name);
        break;
    case NUMBER:
        if (*(const int *)at >= o->from)
            oct_buf_printf(b, " %s %d", o->name, *(const int *)at);
        break;
    case WHOLE:
        if ((double)*(const int64_t *)at >= o->from)
            oct_buf_printf(b, " %s %lld", o->name, (long long)*(const int64_t *)at);
        break;
    case REAL:
        if (*(const double *)at >= o->from)
            oct_buf_printf(b, " %s %.*g", o->name, o->digits, *(const double *)at);
        break;
    default:
        if (*(const char *const *)at)
            put_text(b, o, x, *(const char *const *)at, bare);
    }
}

void oct_session_command(const octet_convert_options *x, bool bare, oct_buf *b)
{
    static const struct option model = { NULL, FILE_NAME, AT(model) };
    const bool trials = oct_session_goals(x) && x->trials != 0;
    oct_buf_puts(b, "qconvert");
    put(b, &model, x, bare);
    for (size_t i = 0; i < OCT_COUNT(options); i++)
        if (trials || !bare || !of_goals(&options[i]))
            put(b, &options[i], x, bare);
}

/* ---- reading ---- */

/* Splits a text that was written by oct_quote. The words are stored in `out`, which is large enough. False: the text
 * has another form. */
static bool split(const char *text, char *out, const char **word, size_t *n)
{
    for (*n = 0; *text; text += *text == ' ') {
        word[(*n)++] = out;
        for (bool quoted = false; *text && (quoted || *text != ' '); text++)
            if (*text == '\'')
                quoted = !quoted;
            else if (!quoted && *text == '\\' && !*++text)
                return false;
            else
                *out++ = *text;
        *out++ = '\0';
    }
    return *n > 1;
}

/* Reads an option's value; what is no number is noticed when the command is written again. */
static bool take(octet_convert_options *x, const struct option *o, const char *word, size_t most, oct_arena *a)
{
    void *at = (char *)x + o->at;
    switch (o->kind) {
    case FILES:
    case STEPS:
    case TEXTS: {
        octet_texts *t = at;
        const char **v = t->n ? (const char **)t->v : oct_arena_calloc(a, most, sizeof *v);
        if (v)
            v[t->n++] = word;
        t->v = v;
        return v != NULL;
    }
    case FLAG:
    case NO_FLAG: *(bool *)at = o->kind == FLAG; break;
    case NUMBER: *(int *)at = atoi(word); break;
    case WHOLE: *(int64_t *)at = strtoll(word, NULL, 10); break;
    case REAL: *(double *)at = strtod(word, NULL); break;
    default: *(const char **)at = word;
    }
    return true;
}

/* A file was recorded without its folder, which distinguishes it from the name of something built in. This gives it a
 * folder. */
static bool name_file(const char **name, const oct_record_entry *e, oct_arena *a)
{
    return !e->there || !*name || (*name = oct_arena_printf(a, "./%s", *name));
}

/* What is read is written again, and must be the same text: so it has no other option and no value in another form. */
static bool is_written_so(const octet_convert_options *x, const char *text)
{
    oct_scheme scheme;
    oct_buf b = OCT_BUF_INIT;
    oct_session_command(x, true, &b);
    const bool is =
        !b.failed && strcmp(oct_buf_str(&b), text) == 0 && (!x->scheme || oct_scheme_parse(x->scheme, &scheme));
    oct_buf_free(&b);
    return is;
}

oct_status oct_session_read_command(octet_convert_options *x, const char *model, const char *text,
                                    const oct_record *record, oct_arena *arena, oct_err *err)
{
    const size_t most = strlen(text) + 2;
    size_t n, k;
    char *out = oct_arena_alloc(arena, most);
    const char **word = oct_arena_calloc(arena, most, sizeof *word);
    if (!out || !word)
        return oct_nomem(err);
    bool is = split(text, out, word, &n) && strcmp(word[0], "qconvert") == 0;
    octet_convert_init(x, sizeof *x);
    x->model = word[1];
    for (size_t i = 2; is && i < n; i++) {
        for (k = 0; k < OCT_COUNT(options) && strcmp(options[k].name, word[i]) != 0;)
            k++;
        is = k < OCT_COUNT(options);
        const bool flag = is && (options[k].kind == FLAG || options[k].kind == NO_FLAG);
        if ((is = is && (flag || i + 1 < n)) && !take(x, &options[k], flag ? NULL : word[++i], n, arena))
            return oct_nomem(err);
    }
    if (is && (!name_file(&x->target, &record->part[OCT_RECORD_TARGET], arena) ||
               !name_file(&x->decode, &record->part[OCT_RECORD_RULE], arena)))
        return oct_nomem(err);
    if (is && is_written_so(x, text))
        return OCT_OK;
    oct_fail(err, OCT_EMALFORMED, "%s: octet.command is not a command that this program records", model);
    oct_hint(err, "the record of the model was edited");
    return OCT_EMALFORMED;
}
