/* Finds rules: built-in ones, and those in files. */
#include "eval/sets/decode.h"

#include "base/buf.h"
#include "base/io.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 1 << 20 };

static const struct {
    const char *name, *summary, *text;
} builtin[] = {
#include "eval/builtin_decode.inc"
};

const char *oct_decode_builtin(size_t i, const char **summary)
{
    if (i >= OCT_COUNT(builtin))
        return NULL;
    if (summary)
        *summary = builtin[i].summary;
    return builtin[i].name;
}

static oct_status open_file(const char *path, oct_decode **r, oct_err *err)
{
    char *text;
    const size_t folder = (size_t)(strrchr(path, '/') - path) + 1;
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a rule for outputs", &text, err));
    oct_buf b = OCT_BUF_INIT;
    oct_buf_add(&b, path, folder);
    const oct_status s = b.failed ? oct_nomem(err) : oct_decode_parse(text, path, oct_buf_str(&b), r, err);
    oct_buf_free(&b);
    oct_free(text);
    return s;
}

/* Turns ":key=value:..." into lines. A piece without '=' belongs to the value before it, because names of outputs may
 * contain a ':'. */
static oct_status add_lines(const char *more, const char *word, oct_buf *b, oct_err *err)
{
    while (*more) {
        const char *at = more + 1, *end = at + strcspn(at, ":"), *equals = memchr(at, '=', (size_t)(end - at));
        if (!equals) {
            oct_fail(err, OCT_EUSAGE, "--decode: '%.100s' is not a key=value", at);
            oct_hint(err, "%.*s:score=0.3 adds a line to a rule", (int)strcspn(word, ":"), word);
            return OCT_EUSAGE;
        }
        while (*end && !memchr(end + 1, '=', strcspn(end + 1, ":")))
            end += 1 + strcspn(end + 1, ":");
        oct_buf_add(b, at, (size_t)(equals - at));
        oct_buf_puts(b, " ");
        oct_buf_add(b, equals + 1, (size_t)(end - equals - 1));
        oct_buf_puts(b, "\n");
        more = end;
    }
    return OCT_OK;
}

static oct_status unknown(const char *word, size_t n, oct_err *err)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), word);
    oct_nearest near = { .word = name, .most = 2 };
    for (size_t i = 0; i < OCT_COUNT(builtin); i++)
        oct_nearest_try(&near, builtin[i].name);
    oct_fail(err, OCT_EUSAGE, "--decode: there is no rule '%s'", name);
    if (oct_path_exists(word))
        oct_hint(err, "write a file with its folder: --decode ./%s", word);
    else
        oct_nearest_hint(&near, 1, "--decode help lists all", err);
    return OCT_EUSAGE;
}

oct_status oct_decode_open(const char *word, oct_decode **r, oct_err *err)
{
    const size_t n = strcspn(word, ":");
    size_t i = 0;
    if (strchr(word, '/') && !memchr(word, ':', (size_t)(strchr(word, '/') - word)))
        return open_file(word, r, err);
    while (i < OCT_COUNT(builtin) && !(strlen(builtin[i].name) == n && strncmp(builtin[i].name, word, n) == 0))
        i++;
    if (i == OCT_COUNT(builtin))
        return unknown(word, n, err);
    oct_buf b = OCT_BUF_INIT;
    oct_buf_puts(&b, builtin[i].text);
    oct_status s = add_lines(word + n, word, &b, err);
    if (s == OCT_OK)
        s = b.failed ? oct_nomem(err) : oct_decode_parse(oct_buf_str(&b), word, "", r, err);
    oct_buf_free(&b);
    return s;
}
