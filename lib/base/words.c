/* Lines of words, and errors that name the place in them. */
#include "base/words.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

bool oct_words_line(oct_words *w)
{
    if (!*w->next)
        return false;
    w->line = w->at = w->next;
    const char *newline = strchr(w->line, '\n');
    w->end = newline ? newline : w->line + strlen(w->line);
    w->next = newline ? newline + 1 : w->end;
    w->number++;
    return true;
}

void oct_words_skip(oct_words *w)
{
    while (w->at < w->end && (*w->at == ' ' || *w->at == '\t' || *w->at == '\r'))
        w->at++;
}

bool oct_words_done(oct_words *w)
{
    oct_words_skip(w);
    return w->at == w->end || *w->at == '#';
}

oct_status oct_words_fault(const oct_words *w, const char *at, oct_err *err, const char *fmt, ...)
{
    char reason[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    return oct_fail(err, OCT_EMALFORMED, "%s:%zu:%zu: %s", w->label, w->number, (size_t)(at - w->line) + 1, reason);
}

oct_status oct_words_unknown(const oct_words *w, const char *at, const char *what, const char *word,
                             const char *const *known, size_t n, oct_err *err)
{
    oct_nearest near = { .word = word, .most = 2 };
    oct_buf all = OCT_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        oct_nearest_try(&near, known[i]);
        oct_buf_printf(&all, "%s%s", i ? ", " : "", known[i]);
    }
    oct_words_fault(w, at, err, "there is no %s '%.100s'", what, word);
    oct_nearest_hint(&near, *word ? 1 : 0, NULL, err);
    if (!near.n || !*word)
        oct_hint(err, "one of %s", oct_buf_str(&all));
    oct_buf_free(&all);
    return OCT_EMALFORMED;
}
