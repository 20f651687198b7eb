/* lib/data/text/tokenizer_chars.c -- categories of characters by utf8proc, and patterns by PCRE2. */
#define _GNU_SOURCE /* memmem */
#include "data/text/tokenizer_int.h"

#include "base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>
#include <utf8proc.h>

/* A pattern that goes back more often than this for one match is refused; those of tokenizers hardly go back. */
enum { MOST_STEPS = 1000000 };

bool oct_char_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static int category(uint32_t c)
{
    return (int)utf8proc_category((utf8proc_int32_t)c);
}

bool oct_char_is_mark(uint32_t c)
{
    const int k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

bool oct_char_is_number(uint32_t c)
{
    const int k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool oct_char_is_word(uint32_t c)
{
    /* Symbols that count as letters: those in circles and squares. */
    const bool circled = (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
                         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
    switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return circled || c == 0x200c || c == 0x200d;
    }
}

bool oct_char_is_punct(uint32_t c)
{
    if (c < 0x80)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    const int k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

void oct_buf_add_char(oct_buf *b, uint32_t c)
{
    utf8proc_uint8_t bytes[4];
    oct_buf_add(b, bytes, (size_t)utf8proc_encode_char((utf8proc_int32_t)c, bytes));
}

/* ---- patterns ---- */

oct_status oct_pattern_compile(const char *regex, oct_pattern *p, oct_err *err)
{
    int code;
    PCRE2_SIZE at;
    PCRE2_UCHAR why[120];
    pcre2_code *c = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (!c) {
        pcre2_get_error_message(code, why, sizeof why);
        return oct_fail(err, OCT_EUNSUPPORTED, "the regular expression '%.200s', character %zu: %s", regex, (size_t)at,
                        (char *)why);
    }
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(c, NULL);
    if (!m) {
        pcre2_code_free(c);
        return oct_nomem(err);
    }
    *p = (oct_pattern){ .code = c, .match = m };
    return OCT_OK;
}

oct_status oct_pattern_read(const oct_tree *t, oct_arena *a, oct_pattern *p, oct_err *err)
{
    const char *text = oct_tree_text(oct_tree_member(t, "String")), *regex = oct_tree_text(oct_tree_member(t, "Regex"));
    if (regex)
        return oct_pattern_compile(regex, p, err);
    if (!text || !*text)
        return oct_fail(err, OCT_EMALFORMED, "a pattern is neither a text nor a regular expression");
    *p = (oct_pattern){ .text = oct_arena_strdup(a, text), .n = strlen(text) };
    return p->text ? OCT_OK : oct_nomem(err);
}

void oct_pattern_free(oct_pattern *p)
{
    pcre2_match_data_free(p->match);
    pcre2_code_free(p->code);
    *p = (oct_pattern){ 0 };
}

static oct_status find_regex(const oct_pattern *p, const char *t, size_t n, size_t from, size_t *a, size_t *b,
                             bool *found, oct_err *err)
{
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (!limits)
        return oct_nomem(err);
    pcre2_set_match_limit(limits, MOST_STEPS);
    int code = 0;
    *found = false;
    while (!*found && from <= n &&
           (code = pcre2_match(p->code, (PCRE2_SPTR)t, n, from, PCRE2_NO_UTF_CHECK, p->match, limits)) >= 0) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(p->match);
        *a = at[0];
        *b = at[1];
        *found = at[1] > at[0];
        from = at[1] + 1;
        while (from < n && (t[from] & 0xc0) == 0x80)
            from++;
    }
    pcre2_match_context_free(limits);
    if (code >= 0 || code == PCRE2_ERROR_NOMATCH)
        return OCT_OK;
    if (code == PCRE2_ERROR_NOMEMORY)
        return oct_nomem(err);
    PCRE2_UCHAR why[120];
    pcre2_get_error_message(code, why, sizeof why);
    return oct_fail(err, OCT_EMALFORMED, "a regular expression of the tokenizer: %s", (char *)why);
}

oct_status oct_pattern_find(const oct_pattern *p, const char *t, size_t n, size_t from, size_t *a, size_t *b,
                            bool *found, oct_err *err)
{
    if (!p->text)
        return find_regex(p, t, n, from, a, b, found, err);
    const char *at = from < n ? memmem(t + from, n - from, p->text, p->n) : NULL;
    *found = at != NULL;
    *a = at ? (size_t)(at - t) : 0;
    *b = *a + p->n;
    return OCT_OK;
}
