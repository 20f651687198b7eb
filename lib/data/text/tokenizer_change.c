/* lib/data/text/tokenizer_change.c -- normalizers of a tokenizer. */
#include "data/text/tokenizer_int.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { NFC = UTF8PROC_STABLE | UTF8PROC_COMPOSE, NFD = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE };
enum { CLEAN, CHINESE, NO_ACCENTS, LOWER };

static oct_status normal_form(const char *t, size_t n, int form, oct_buf *out, oct_err *err)
{
    utf8proc_uint8_t *to = NULL;
    const utf8proc_ssize_t len =
        utf8proc_map((const utf8proc_uint8_t *)t, (utf8proc_ssize_t)n, &to, (utf8proc_option_t)form);
    if (len >= 0)
        oct_buf_add(out, to, (size_t)len);
    free(to);
    return len == UTF8PROC_ERROR_NOMEM ? oct_nomem(err)
           : len < 0                   ? oct_fail(err, OCT_EMALFORMED, "%s", utf8proc_errmsg(len))
                                       : OCT_OK;
}

static oct_status change_form(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    return normal_form(t, n, s->form, out, err);
}

/* The character I with a dot above is the only one whose small letter is two. */
static void add_lower(oct_buf *out, uint32_t c)
{
    if (c == 0x130) {
        oct_buf_puts(out, "i\xcc\x87");
        return;
    }
    oct_buf_add_char(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

static oct_status change_lower(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    for (size_t i = 0, len; i < n; i += len)
        add_lower(out, oct_utf8_char(t + i, n - i, &len));
    return OCT_OK;
}

static oct_status change_accents(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    for (size_t i = 0, len; i < n; i += len)
        if (!oct_char_is_mark(oct_utf8_char(t + i, n - i, &len)))
            oct_buf_add(out, t + i, len);
    return OCT_OK;
}

static bool is_control(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return c != '\t' && c != '\n' && c != '\r' &&
           (k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO);
}

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

/* As BERT's own tokenizer does it. */
static oct_status change_bert(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    oct_buf clean = OCT_BUF_INIT, plain = OCT_BUF_INIT;
    for (size_t i = 0, len; i < n; i += len) {
        const uint32_t c = oct_utf8_char(t + i, n - i, &len);
        if (s->flags[CLEAN] && (c == 0 || c == OCT_BAD_CHAR || is_control(c)))
            continue;
        const bool apart = s->flags[CHINESE] && is_chinese(c);
        oct_buf_puts(&clean, apart ? " " : "");
        if (s->flags[CLEAN] && oct_char_is_space(c))
            oct_buf_puts(&clean, " ");
        else
            oct_buf_add(&clean, t + i, len);
        oct_buf_puts(&clean, apart ? " " : "");
    }
    oct_status st = clean.failed ? oct_nomem(err) : OCT_OK;
    const oct_buf *from = &clean;
    if (st == OCT_OK && s->flags[NO_ACCENTS]) {
        st = normal_form(oct_buf_str(&clean), clean.len, NFD, &plain, err);
        if (st == OCT_OK && plain.failed)
            st = oct_nomem(err);
        from = &plain;
    }
    for (size_t i = 0, len; st == OCT_OK && i < from->len; i += len) {
        const uint32_t c = oct_utf8_char(from->data + i, from->len - i, &len);
        if (s->flags[NO_ACCENTS] && utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_MN)
            continue;
        if (s->flags[LOWER])
            add_lower(out, c);
        else
            oct_buf_add(out, from->data + i, len);
    }
    oct_buf_free(&clean);
    oct_buf_free(&plain);
    return st;
}

enum { LEFT, RIGHT };

static oct_status change_strip(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    size_t from = 0, end = 0;
    for (size_t i = 0, len; i < n; i += len) {
        if (!oct_char_is_space(oct_utf8_char(t + i, n - i, &len)))
            end = i + len;
        else if (from == i && s->flags[LEFT])
            from = i + len;
    }
    end = s->flags[RIGHT] ? end : n;
    if (end > from)
        oct_buf_add(out, t + from, end - from);
    return OCT_OK;
}

static oct_status change_replace(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    size_t at = 0, a, b;
    bool found;
    while (true) {
        OCT_TRY(oct_pattern_find(&s->pattern, t, n, at, &a, &b, &found, err));
        if (!found)
            break;
        oct_buf_add(out, t + at, a - at);
        oct_buf_puts(out, s->text);
        at = b;
    }
    oct_buf_add(out, t + at, n - at);
    return OCT_OK;
}

static oct_status change_prepend(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    oct_buf_puts(out, n ? s->text : "");
    oct_buf_add(out, t, n);
    return OCT_OK;
}

static oct_status change_bytes(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    oct_bytes_as_chars(t, n, out);
    return OCT_OK;
}

/* Control characters that SentencePiece's NMT rules drop, and spaces that they make plain. */
static oct_status change_nmt(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    for (size_t i = 0, len; i < n; i += len) {
        const uint32_t c = oct_utf8_char(t + i, n - i, &len);
        if ((c >= 1 && c <= 8) || c == 11 || (c >= 14 && c <= 31) || c == 127 || c == 0x8f || c == 0x9f)
            continue;
        if (c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 ||
            c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd)
            oct_buf_puts(out, " ");
        else
            oct_buf_add(out, t + i, len);
    }
    return OCT_OK;
}

/* ---- maps of SentencePiece ---- */

/* The text of the shortest key at the beginning of t, in a double array (Aoe 1989, as darts-clone stores it); NULL:
 * none. */
static const char *mapped(const oct_stage *s, const char *t, size_t n)
{
    size_t at = 0;
    uint32_t unit = s->trie[0];
    at ^= (unit >> 10) << ((unit & (1u << 9)) >> 6);
    for (size_t i = 0; i < n && t[i]; i++) {
        at ^= (uint8_t)t[i];
        if (at >= s->n_trie)
            return NULL;
        unit = s->trie[at];
        if ((unit & (1u << 31 | 0xff)) != (uint8_t)t[i])
            return NULL;
        at ^= (unit >> 10) << ((unit & (1u << 9)) >> 6);
        if (!(unit >> 8 & 1))
            continue;
        const size_t value = at < s->n_trie ? s->trie[at] & 0x7fffffff : SIZE_MAX;
        return value < s->n_mapped ? s->mapped + value : NULL;
    }
    return NULL;
}

/* A grapheme of fewer than 6 bytes as a whole, else each of its characters. */
static oct_status change_mapped(const oct_stage *s, const char *t, size_t n, oct_buf *out, oct_err *err)
{
    for (size_t i = 0, end; i < n; i = end) {
        size_t len;
        utf8proc_int32_t state = 0;
        uint32_t c = oct_utf8_char(t + i, n - i, &len);
        for (end = i + len; end < n; end += len) {
            const uint32_t next = oct_utf8_char(t + end, n - end, &len);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)c, (utf8proc_int32_t)next, &state))
                break;
            c = next;
        }
        const char *whole = end - i < 6 ? mapped(s, t + i, end - i) : NULL;
        if (whole) {
            oct_buf_puts(out, whole);
            continue;
        }
        for (size_t k = i; k < end; k += len) {
            oct_utf8_char(t + k, end - k, &len);
            const char *one = mapped(s, t + k, len);
            if (one)
                oct_buf_puts(out, one);
            else
                oct_buf_add(out, t + k, len);
        }
    }
    return OCT_OK;
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The bytes of a base64 text in memory of the arena, with 4 zeros behind them. */
static uint8_t *from_base64(const char *t, oct_arena *a, size_t *n)
{
    const size_t len = strcspn(t, "=");
    uint8_t *to = oct_arena_calloc(a, len / 4 * 3 + 8, 1);
    uint32_t bits = 0;
    *n = 0;
    for (size_t i = 0; to && i < len; i++) {
        const int d = base64_digit(t[i]);
        if (d < 0)
            return *n = 0, to;
        bits = bits << 6 | (uint32_t)d;
        if (i % 4 != 0)
            to[(*n)++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    return to;
}

/* The size of the trie in bytes, the trie, and the texts. */
static oct_status read_map(const oct_tree *t, oct_stages *list, oct_stage *s, oct_err *err)
{
    size_t n;
    const char *text = oct_tree_word(t, "precompiled_charsmap");
    uint8_t *bytes = from_base64(text, list->arena, &n);
    uint32_t size = 0;
    if (!bytes)
        return oct_nomem(err);
    memcpy(&size, bytes, sizeof size); /* 4 zeros are there */
    if (n < 8 || size % 4 || size == 0 || size > n - 4 || n - 4 == size || bytes[n - 1] != 0)
        return oct_fail(err, OCT_EMALFORMED, "the precompiled map of characters cannot be read");
    uint32_t *trie = oct_arena_alloc(list->arena, size);
    if (!trie)
        return oct_nomem(err);
    memcpy(trie, bytes + 4, size);
    s->trie = trie;
    s->n_trie = size / 4;
    s->mapped = (const char *)bytes + 4 + size;
    s->n_mapped = n - 4 - size;
    s->change = change_mapped;
    return OCT_OK;
}

/* ---- reading ---- */

static const struct {
    const char *kind;
    oct_status (*change)(const oct_stage *, const char *, size_t, oct_buf *, oct_err *);
    int form;
} plain[] = {
    { "NFC", change_form, NFC },
    { "NFD", change_form, NFD },
    { "NFKC", change_form, NFC | UTF8PROC_COMPAT },
    { "NFKD", change_form, NFD | UTF8PROC_COMPAT },
    { "Lowercase", change_lower, 0 },
    { "StripAccents", change_accents, 0 },
    { "ByteLevel", change_bytes, 0 },
    { "Nmt", change_nmt, 0 },
};

static oct_status read_text(const oct_tree *t, const char *name, oct_stages *list, oct_stage *s, oct_err *err)
{
    s->text = oct_arena_strdup(list->arena, oct_tree_word(t, name));
    return s->text ? OCT_OK : oct_nomem(err);
}

static oct_status read_one(oct_tree *t, const char *kind, oct_stages *list, oct_stage *s, oct_err *err)
{
    for (size_t i = 0; i < OCT_COUNT(plain); i++)
        if (strcmp(kind, plain[i].kind) == 0) {
            s->change = plain[i].change;
            s->form = plain[i].form;
            return OCT_OK;
        }
    if (strcmp(kind, "BertNormalizer") == 0) {
        s->change = change_bert;
        s->flags[CLEAN] = oct_tree_flag(t, "clean_text", true);
        s->flags[CHINESE] = oct_tree_flag(t, "handle_chinese_chars", true);
        s->flags[LOWER] = oct_tree_flag(t, "lowercase", true);
        s->flags[NO_ACCENTS] = oct_tree_flag(t, "strip_accents", s->flags[LOWER]);
        return OCT_OK;
    }
    if (strcmp(kind, "Strip") == 0) {
        s->change = change_strip;
        s->flags[LEFT] = oct_tree_flag(t, "strip_left", true);
        s->flags[RIGHT] = oct_tree_flag(t, "strip_right", true);
        return OCT_OK;
    }
    if (strcmp(kind, "Replace") == 0) {
        s->change = change_replace;
        OCT_TRY(read_text(t, "content", list, s, err));
        return oct_pattern_read(oct_tree_member(t, "pattern"), list->arena, &s->pattern, err);
    }
    if (strcmp(kind, "Prepend") == 0) {
        s->change = change_prepend;
        return read_text(t, "prepend", list, s, err);
    }
    if (strcmp(kind, "Precompiled") == 0)
        return read_map(t, list, s, err);
    return oct_fail(err, OCT_EUNSUPPORTED, "the normalizer '%.40s' is not known here", kind);
}

oct_status oct_normalizers_read(oct_tree *t, oct_stages *list, oct_err *err)
{
    static const oct_stage_kind kind = { "normalizers", read_one };
    return oct_stages_read(t, &kind, list, 0, err);
}
