/* Parses the command in a model's record as options of a conversion. */
#define _XOPEN_SOURCE 700
#include "qconvert/qconvert.h"
#include "qconvert/verify.h"

#include <stdio.h>
#include <string.h>

/* Splits a text that was written by tool_quote. The words are stored in `out`, which is large enough. False: the text
 * has another form. */
static bool split(const char *text, char *out, char **word, size_t most, size_t *n)
{
    *n = 0;
    while (*text) {
        if (*n == most)
            return false;
        word[(*n)++] = out;
        for (bool quoted = false; *text && (quoted || *text != ' '); text++)
            if (*text == '\'')
                quoted = !quoted;
            else if (!quoted && *text == '\\' && !*++text)
                return false;
            else
                *out++ = *text;
        *out++ = '\0';
        text += *text == ' ';
    }
    return *n > 1;
}

static oct_status no_command(const char *model, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: octet.command is not a command that this program records", model);
    oct_hint(err, "the record of the model was edited, or the name of one of its files begins with '-'");
    return OCT_EMALFORMED;
}

/* Parses the words without printing anything, and checks that they would be recorded in the same form. So they contain
 * no option that is not part of records. */
static bool read_words(recorded *r, int n, char **word, const char *text)
{
    FILE *nobody = fopen("/dev/null", "w");
    oct_buf b = OCT_BUF_INIT;
    r->cli = (oct_cli){ .name = "qconvert", .summary = "", .out = nobody, .err = nobody };
    bool good = nobody && qconvert_read_command(&r->cli, &r->a, n, word, NULL) == OCT_OK && !r->cli.done;
    if (good) {
        r->x = convert_options(&r->cli, &r->a);
        oct_session_command(&r->x, true, &b);
        good = !b.failed && strcmp(oct_buf_str(&b), text) == 0;
    }
    oct_buf_free(&b);
    if (nobody)
        fclose(nobody);
    r->cli.out = r->cli.err = NULL;
    return good;
}

/* A file was recorded without its folder, which distinguishes it from the name of something built in. This gives it a
 * folder. */
static bool name_file(const char *option, char **word, size_t n, oct_arena *arena)
{
    for (size_t i = 1; i + 1 < n; i++)
        if (strcmp(word[i], option) == 0 && !(word[i + 1] = oct_arena_printf(arena, "./%s", word[i + 1])))
            return false;
    return true;
}

oct_status recorded_read(recorded *r, const char *model, const char *text, const oct_record *record, oct_arena *arena,
                         oct_err *err)
{
    const size_t most = strlen(text) / 2 + 2;
    size_t n;
    char *words = oct_arena_alloc(arena, strlen(text) + 2), **word = oct_arena_calloc(arena, most + 1, sizeof *word);
    if (!words || !word)
        return oct_nomem(err);
    const bool is = split(text, words, word, most, &n);
    if (is && ((record->part[OCT_RECORD_TARGET].there && !name_file("--target", word, n, arena)) ||
               (record->part[OCT_RECORD_RULE].there && !name_file("--decode", word, n, arena))))
        return oct_nomem(err);
    if (!is || strcmp(word[0], "qconvert") != 0 || !read_words(r, (int)n, word, text))
        return no_command(model, err);
    return OCT_OK;
}
