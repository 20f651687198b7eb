/* Lines of words, tables of keys, and errors that name the place. */
#include "base/words.h"

#include "base/buf.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 63 };

/* ---- lines ---- */

bool oct_words_line(oct_words *w)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (!w->limit)
        w->limit = w->next + strlen(w->next);
    if (w->number == 0 && w->limit - w->next >= 3 && memcmp(w->next, mark, 3) == 0)
        w->next += 3;
    if (w->next >= w->limit)
        return false;
    w->line = w->at = w->next;
    const char *newline = memchr(w->line, '\n', (size_t)(w->limit - w->line));
    w->end = newline ? newline : w->limit;
    w->next = newline ? newline + 1 : w->end;
    w->number++;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

void oct_words_skip(oct_words *w)
{
    while (w->at < w->end && is_blank(*w->at))
        w->at++;
}

bool oct_words_done(oct_words *w)
{
    oct_words_skip(w);
    return w->at == w->end || *w->at == '#';
}

oct_status oct_words_end(oct_words *w, oct_err *err)
{
    return oct_words_done(w) ? OCT_OK : oct_words_fault(w, w->at, err, "the end of the line is expected");
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

oct_status oct_words_misplaced(const oct_words *w, const char *at, const oct_err *what, oct_err *err)
{
    if (what->status == OCT_ENOMEM)
        return oct_nomem(err);
    oct_words_fault(w, at, err, "%.390s", what->text);
    if (what->hint[0])
        oct_hint(err, "%s", what->hint);
    return OCT_EMALFORMED;
}

static const char *word_of(const void *known, size_t i, size_t size)
{
    return *(const char *const *)(const void *)((const char *)known + i * size);
}

/* As oct_words_unknown, with the words of oct_words_one_of. */
static oct_status unknown(const oct_words *w, const char *at, const char *what, const char *word, const void *known,
                          size_t n, size_t size, oct_err *err)
{
    oct_nearest near = { .word = word, .most = 2 };
    oct_buf all = OCT_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        oct_nearest_try(&near, word_of(known, i, size));
        oct_buf_printf(&all, "%s%s", i ? ", " : "", word_of(known, i, size));
    }
    if (*word)
        oct_words_fault(w, at, err, "there is no %s '%.100s'", what, word);
    else
        oct_words_fault(w, at, err, "the %s is missing", what);
    oct_nearest_hint(&near, *word ? 1 : 0, NULL, err);
    if (!near.n || !*word)
        oct_hint(err, "one of %s", oct_buf_str(&all));
    oct_buf_free(&all);
    return OCT_EMALFORMED;
}

oct_status oct_words_unknown(const oct_words *w, const char *at, const char *what, const char *word,
                             const char *const *known, size_t n, oct_err *err)
{
    return unknown(w, at, what, word, known, n, sizeof *known, err);
}

/* ---- words ---- */

oct_word oct_words_take(oct_words *w)
{
    const bool done = oct_words_done(w);
    const char *at = w->at;
    while (!done && w->at < w->end && !is_blank(*w->at))
        w->at++;
    return (oct_word){ at, (size_t)(w->at - at) };
}

oct_status oct_words_next(oct_words *w, const char **word, const char **at, oct_err *err)
{
    const oct_word next = oct_words_take(w);
    *at = next.at;
    *word = oct_arena_strndup(w->arena, next.at, next.n);
    return *word ? OCT_OK : oct_nomem(err);
}

oct_status oct_words_rest(oct_words *w, const char *what, const char **text, oct_err *err)
{
    oct_words_skip(w);
    const char *at = w->at, *end = w->end;
    while (end > at && is_blank(end[-1]))
        end--;
    if (end == at)
        return oct_words_fault(w, at, err, "%s is missing", what);
    w->at = w->end;
    *text = oct_arena_strndup(w->arena, at, (size_t)(end - at));
    return *text ? OCT_OK : oct_nomem(err);
}

int oct_hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The character of an escape after a backslash; -1: it is not one. */
static int unescape(oct_words *w)
{
    if (w->at < w->end && (*w->at == '"' || *w->at == '\\'))
        return (unsigned char)*w->at++;
    if (w->end - w->at < 3 || *w->at != 'x' || oct_hex_digit(w->at[1]) < 0 || oct_hex_digit(w->at[2]) < 0)
        return -1;
    const int v = oct_hex_digit(w->at[1]) * 16 + oct_hex_digit(w->at[2]);
    w->at += 3;
    return v > 0 ? v : -1;
}

oct_status oct_words_quoted(oct_words *w, char **text, oct_err *err)
{
    oct_words_skip(w);
    const char *from = w->at;
    if (w->at == w->end || *w->at++ != '"')
        return oct_words_fault(w, from, err, "a text in double quotes is expected");
    char *s = oct_arena_alloc(w->arena, (size_t)(w->end - w->at) + 1);
    size_t n = 0;
    if (!s)
        return oct_nomem(err);
    while (w->at < w->end && *w->at != '"') {
        int c = (unsigned char)*w->at++;
        if (c == '\\')
            c = unescape(w);
        if (c <= 0)
            return oct_words_fault(w, w->at, err, "a text has a NUL, or an escape other than \\\", \\\\ and \\xNN");
        s[n++] = (char)c;
    }
    s[n] = '\0';
    if (w->at == w->end)
        return oct_words_fault(w, from, err, "the text's closing quote is missing");
    w->at++;
    *text = s;
    return OCT_OK;
}

oct_status oct_words_expect(oct_words *w, const char *word, oct_err *err)
{
    const oct_word next = oct_words_take(w);
    return oct_word_is(next, word) ? OCT_OK : oct_words_fault(w, next.at, err, "'%s' is expected", word);
}

oct_status oct_words_one_of(oct_words *w, const char *what, const void *known, size_t n, size_t size, size_t *i,
                            oct_err *err)
{
    char text[101];
    const oct_word word = oct_words_take(w);
    for (*i = 0; *i < n; ++*i)
        if (oct_word_is(word, word_of(known, *i, size)))
            return OCT_OK;
    snprintf(text, sizeof text, "%.*s", (int)(word.n < sizeof text ? word.n : sizeof text - 1), word.at);
    return unknown(w, word.at, what, text, known, n, size, err);
}

/* ---- numbers ---- */

bool oct_word_is(oct_word word, const char *s)
{
    return word.n == strlen(s) && memcmp(word.at, s, word.n) == 0;
}

/* Copies a word that may be a decimal number; other texts that strtod accepts, such as "inf" and "0x1p3", are not. */
static bool number_text(oct_word word, char text[LONGEST_NUMBER + 1])
{
    if (word.n == 0 || word.n > LONGEST_NUMBER)
        return false;
    memcpy(text, word.at, word.n);
    text[word.n] = '\0';
    return strspn(text, "0123456789.eE+-") == word.n;
}

bool oct_word_number(oct_word word, double *v)
{
    char text[LONGEST_NUMBER + 1], *end;
    if (!number_text(word, text))
        return false;
    *v = strtod(text, &end);
    return !*end && isfinite(*v);
}

bool oct_word_count(oct_word word, uint64_t most, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < word.n; i++) {
        if (word.at[i] < '0' || word.at[i] > '9' || __builtin_mul_overflow(*v, 10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(word.at[i] - '0'), v))
            return false;
    }
    return word.n > 0 && *v <= most;
}

/* The fault of a word that is no number of a range. */
static oct_status no_number(const oct_words *w, oct_word word, const char *kind, double least, double most,
                            oct_err *err)
{
    return word.n ? oct_words_fault(w, word.at, err, "'%.*s' is no %s from %g to %g", (int)(word.n < 60 ? word.n : 60),
                                    word.at, kind, least, most)
                  : oct_words_fault(w, word.at, err, "a %s from %g to %g is missing", kind, least, most);
}

oct_status oct_words_number(oct_words *w, double least, double most, double *v, oct_err *err)
{
    const oct_word word = oct_words_take(w);
    return oct_word_number(word, v) && *v >= least && *v <= most ? OCT_OK
                                                                 : no_number(w, word, "number", least, most, err);
}

oct_status oct_words_whole(oct_words *w, double least, double most, int64_t *v, oct_err *err)
{
    double x;
    const oct_word word = oct_words_take(w);
    if (!oct_word_number(word, &x) || !(x >= least && x <= most) || x != floor(x))
        return no_number(w, word, "whole number", least, most, err);
    *v = (int64_t)x;
    return OCT_OK;
}

oct_status oct_words_count(oct_words *w, uint64_t most, uint64_t *v, oct_err *err)
{
    const oct_word word = oct_words_take(w);
    return oct_word_count(word, most, v)
               ? OCT_OK
               : oct_words_fault(w, word.at, err, "a whole number up to %llu is expected", (unsigned long long)most);
}

oct_status oct_words_f32(oct_words *w, float *v, oct_err *err)
{
    char text[LONGEST_NUMBER + 1], *end;
    const oct_word word = oct_words_take(w);
    if (number_text(word, text)) {
        *v = strtof(text, &end) + 0.0f; /* no -0 */
        if (!*end && isfinite(*v))
            return OCT_OK;
    }
    return oct_words_fault(w, word.at, err, "a finite decimal number is expected");
}

/* ---- formats ---- */

static oct_status read_member(oct_words *w, const oct_words_key *k, void *self, oct_err *err)
{
    char *member = (char *)self + k->member;
    size_t n = 0;
    int64_t whole;
    if (!k->size) {
        w->at = w->end;
        return OCT_OK;
    }
    if (!k->words && !k->whole)
        return oct_words_number(w, k->least, k->most, (double *)(void *)member, err);
    while (k->words && k->words[n])
        n++;
    if (k->words) {
        OCT_TRY(oct_words_one_of(w, k->what ? k->what : k->word, k->words, n, sizeof *k->words, &n, err));
        whole = (int64_t)n + k->first;
    } else {
        OCT_TRY(oct_words_whole(w, k->least, k->most, &whole, err));
    }
    if (k->size == sizeof whole)
        *(int64_t *)(void *)member = whole;
    else if (k->size == sizeof(int))
        *(int *)(void *)member = (int)whole;
    else
        *(bool *)member = whole != 0;
    return OCT_OK;
}

oct_status oct_words_key_line(oct_words *w, const oct_words_format *f, void *self, oct_err *err)
{
    size_t i;
    assert(f->n <= 64); /* bits of `given` */
    oct_words_skip(w);
    const char *at = w->at;
    OCT_TRY(oct_words_one_of(w, "key", f->key, f->n, sizeof *f->key, &i, err));
    const oct_words_key *k = &f->key[i];
    if (f->allow)
        OCT_TRY(f->allow(w, at, k, self, err));
    if (!k->again && !f->again && w->given >> i & 1)
        return oct_words_fault(w, at, err, "'%s' stands in two lines", k->word);
    OCT_TRY(k->read ? k->read(w, self, err) : read_member(w, k, self, err));
    w->given |= UINT64_C(1) << i;
    return oct_words_end(w, err);
}

oct_status oct_words_complete(const oct_words *w, const oct_words_format *f, oct_err *err)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->key[i].required && !(w->given >> i & 1))
            return oct_fail(err, OCT_EMALFORMED, "%s: the line '%s' is missing", w->label, f->key[i].word);
    return OCT_OK;
}

oct_status oct_words_read(oct_words *w, const oct_words_format *f, void *self, oct_err *err)
{
    while (oct_words_line(w))
        if (!oct_words_done(w))
            OCT_TRY(oct_words_key_line(w, f, self, err));
    return oct_words_complete(w, f, err);
}
