/* lib/data/text/tokenizer_split.c -- pre-tokenizers: they divide a text into the words that the model gets. */
#include "data/text/tokenizer_int.h"

#include "base/utf8.h"

#include <string.h>

/* GPT-2's (Radford et al. 2019). */
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* ---- matches and what lies between them ---- */

/* Parts of a text in turn, of which some match, become pieces. */
typedef struct cutter {
    const char *t;
    oct_cut_how how;
    bool first; /* of the text */
    oct_pieces *out;
    size_t from, end; /* what is held back */
    bool held, matched;
} cutter;

static void emit(cutter *c)
{
    if (c->held)
        oct_pieces_add(c->out, c->t + c->from, c->end - c->from, c->first && c->from == 0, -1);
    c->held = false;
}

/* The next part, [a, b). */
static void part(cutter *c, size_t a, size_t b, bool match)
{
    if (a == b)
        return;
    const bool joins = c->held && ((c->how == OCT_CUT_WITH_PREVIOUS && match && !c->matched) ||
                                   (c->how == OCT_CUT_WITH_NEXT && c->matched && !match) ||
                                   (c->how == OCT_CUT_CONTIGUOUS && match == c->matched));
    c->matched = match;
    if (joins) {
        c->end = b;
        return;
    }
    emit(c);
    if (match && c->how == OCT_CUT_REMOVED)
        return;
    c->held = true;
    c->from = a;
    c->end = b;
}

static oct_status cut_pattern(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err)
{
    cutter c = { .t = t, .how = s->how, .first = first, .out = out };
    const bool invert = s->flags[0];
    size_t at = 0, a, b;
    bool found;
    while (true) {
        OCT_TRY(oct_pattern_find(&s->pattern, t, n, at, &a, &b, &found, err));
        if (!found)
            break;
        part(&c, at, a, invert);
        part(&c, a, b, !invert);
        at = b;
    }
    part(&c, at, n, invert);
    emit(&c);
    return OCT_OK;
}

/* Each character that the rule takes is a match; what lies between two is one part. */
static void cut_chars(cutter *c, size_t n, bool (*rule)(uint32_t))
{
    size_t from = 0;
    for (size_t i = 0, len; i < n; i += len)
        if (rule(oct_utf8_char(c->t + i, n - i, &len))) {
            part(c, from, i, false);
            part(c, i, i + len, true);
            from = i + len;
        }
    part(c, from, n, false);
    emit(c);
}

static oct_status cut_space(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err)
{
    cutter c = { .t = t, .how = OCT_CUT_REMOVED, .first = first, .out = out };
    cut_chars(&c, n, oct_char_is_space);
    return OCT_OK;
}

static oct_status cut_punctuation(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out,
                                  oct_err *err)
{
    cutter c = { .t = t, .how = s->how, .first = first, .out = out };
    cut_chars(&c, n, oct_char_is_punct);
    return OCT_OK;
}

static oct_status cut_digits(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err)
{
    cutter c = { .t = t, .how = s->flags[0] ? OCT_CUT_ISOLATED : OCT_CUT_CONTIGUOUS, .first = first, .out = out };
    cut_chars(&c, n, oct_char_is_number);
    return OCT_OK;
}

/* At white space, which goes, and around each mark of punctuation. */
static oct_status cut_bert(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err)
{
    size_t from = 0;
    for (size_t i = 0, len; i < n; i += len) {
        const uint32_t c = oct_utf8_char(t + i, n - i, &len);
        const bool space = oct_char_is_space(c), punct = oct_char_is_punct(c);
        if (!space && !punct)
            continue;
        oct_pieces_add(out, t + from, i - from, first && from == 0, -1);
        if (punct && !space)
            oct_pieces_add(out, t + i, len, first && i == 0, -1);
        from = i + len;
    }
    oct_pieces_add(out, t + from, n - from, first && from == 0, -1);
    return OCT_OK;
}

/* Runs of \w, and runs of what is neither \w nor white space. */
static oct_status cut_words(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err)
{
    enum { NONE, WORD, OTHER } kind = NONE;
    size_t from = 0;
    for (size_t i = 0, len; i < n; i += len) {
        const uint32_t c = oct_utf8_char(t + i, n - i, &len);
        const int now = oct_char_is_word(c) ? WORD : oct_char_is_space(c) ? NONE : OTHER;
        if (now == (int)kind)
            continue;
        if (kind != NONE)
            oct_pieces_add(out, t + from, i - from, first && from == 0, -1);
        kind = now;
        from = i;
    }
    if (kind != NONE)
        oct_pieces_add(out, t + from, n - from, first && from == 0, -1);
    return OCT_OK;
}

/* ---- bytes ---- */

/* Bytes that are no printable character of Latin-1 are those from 256 on, in their order. */
static uint32_t byte_char(uint8_t byte)
{
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173))
        return byte;
    return 256u + (byte <= 32 ? byte : byte == 173 ? 67u : byte - 127u + 33u);
}

void oct_bytes_as_chars(const char *t, size_t n, oct_buf *out)
{
    for (size_t i = 0; i < n; i++)
        oct_buf_add_char(out, byte_char((uint8_t)t[i]));
}

enum { PREFIX_SPACE, USE_REGEX };

static oct_status cut_bytes(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err)
{
    oct_buf text = OCT_BUF_INIT, word = OCT_BUF_INIT;
    oct_pieces words = { 0 };
    if (s->flags[PREFIX_SPACE] && n && t[0] != ' ')
        oct_buf_puts(&text, " ");
    oct_buf_add(&text, t, n);
    oct_stage split = { .pattern = s->pattern, .how = OCT_CUT_ISOLATED };
    oct_status st = text.failed ? oct_nomem(err) : OCT_OK;
    if (st == OCT_OK && s->flags[USE_REGEX])
        st = cut_pattern(&split, oct_buf_str(&text), text.len, first, &words, err);
    else if (st == OCT_OK)
        oct_pieces_add(&words, oct_buf_str(&text), text.len, first, -1);
    if (st == OCT_OK && words.failed)
        st = oct_nomem(err);
    for (size_t i = 0; st == OCT_OK && i < words.n; i++) {
        oct_buf_cut(&word, 0);
        oct_bytes_as_chars(words.text.data + words.v[i].from, words.v[i].n, &word);
        oct_pieces_add(out, oct_buf_str(&word), word.len, words.v[i].first, -1);
    }
    if (st == OCT_OK && word.failed)
        st = oct_nomem(err);
    oct_pieces_free(&words);
    oct_buf_free(&text);
    oct_buf_free(&word);
    return st;
}

/* ---- spaces as a visible character ---- */

enum { DIVIDES, ALWAYS, AT_FIRST };

static oct_status cut_metaspace(const oct_stage *s, const char *t, size_t n, bool first, oct_pieces *out, oct_err *err)
{
    oct_buf text = OCT_BUF_INIT;
    const size_t len = strlen(s->text);
    const bool begins = (n && t[0] == ' ') || (n >= len && memcmp(t, s->text, len) == 0);
    if (!begins && (s->flags[ALWAYS] || (s->flags[AT_FIRST] && first)))
        oct_buf_puts(&text, s->text);
    for (size_t i = 0; i < n; i++) {
        if (t[i] == ' ')
            oct_buf_puts(&text, s->text);
        else
            oct_buf_add(&text, t + i, 1);
    }
    const oct_stage split = { .pattern = { .text = s->text, .n = len }, .how = OCT_CUT_WITH_NEXT };
    oct_status st = text.failed ? oct_nomem(err) : OCT_OK;
    if (st == OCT_OK && s->flags[DIVIDES])
        st = cut_pattern(&split, oct_buf_str(&text), text.len, first, out, err);
    else if (st == OCT_OK)
        oct_pieces_add(out, oct_buf_str(&text), text.len, first, -1);
    oct_buf_free(&text);
    return st;
}

/* ---- reading ---- */

static oct_status read_how(const oct_tree *t, oct_cut_how otherwise, oct_cut_how *how, oct_err *err)
{
    static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous" };
    const char *name = oct_tree_word(t, "behavior");
    *how = otherwise;
    if (!*name)
        return OCT_OK;
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *how = (oct_cut_how)i;
            return OCT_OK;
        }
    return oct_fail(err, OCT_EUNSUPPORTED, "the behavior '%.40s' of a pre-tokenizer is not known here", name);
}

static oct_status read_metaspace(const oct_tree *t, oct_stages *list, oct_stage *s, oct_err *err)
{
    const char *text = oct_tree_word(t, "replacement"), *scheme = oct_tree_word(t, "prepend_scheme");
    if (!*text)
        return oct_fail(err, OCT_EMALFORMED, "Metaspace has no replacement");
    s->cut = cut_metaspace;
    s->flags[DIVIDES] = oct_tree_flag(t, "split", true);
    s->flags[ALWAYS] = strcmp(scheme, "always") == 0 || (!*scheme && oct_tree_flag(t, "add_prefix_space", true));
    s->flags[AT_FIRST] = strcmp(scheme, "first") == 0;
    s->text = oct_arena_strdup(list->arena, text);
    return s->text ? OCT_OK : oct_nomem(err);
}

static oct_status read_one(oct_tree *t, const char *kind, oct_stages *list, oct_stage *s, oct_err *err)
{
    if (strcmp(kind, "BertPreTokenizer") == 0)
        s->cut = cut_bert;
    else if (strcmp(kind, "Whitespace") == 0)
        s->cut = cut_words;
    else if (strcmp(kind, "WhitespaceSplit") == 0)
        s->cut = cut_space;
    else if (strcmp(kind, "Digits") == 0) {
        s->cut = cut_digits;
        s->flags[0] = oct_tree_flag(t, "individual_digits", false);
    } else if (strcmp(kind, "Punctuation") == 0) {
        s->cut = cut_punctuation;
        return read_how(t, OCT_CUT_ISOLATED, &s->how, err);
    } else if (strcmp(kind, "ByteLevel") == 0) {
        s->cut = cut_bytes;
        s->flags[PREFIX_SPACE] = oct_tree_flag(t, "add_prefix_space", true);
        s->flags[USE_REGEX] = oct_tree_flag(t, "use_regex", true);
        return oct_pattern_compile(GPT2, &s->pattern, err);
    } else if (strcmp(kind, "Metaspace") == 0)
        return read_metaspace(t, list, s, err);
    else if (strcmp(kind, "Split") == 0 || strcmp(kind, "CharDelimiterSplit") == 0) {
        s->cut = cut_pattern;
        s->flags[0] = oct_tree_flag(t, "invert", false);
        OCT_TRY(read_how(t, OCT_CUT_REMOVED, &s->how, err));
        if (kind[0] == 'S')
            return oct_pattern_read(oct_tree_member(t, "pattern"), list->arena, &s->pattern, err);
        const char *text = oct_tree_word(t, "delimiter");
        if (!*text)
            return oct_fail(err, OCT_EMALFORMED, "CharDelimiterSplit has no delimiter");
        s->pattern = (oct_pattern){ .text = oct_arena_strdup(list->arena, text), .n = strlen(text) };
        return s->pattern.text ? OCT_OK : oct_nomem(err);
    } else
        return oct_fail(err, OCT_EUNSUPPORTED, "the pre-tokenizer '%.40s' is not known here", kind);
    return OCT_OK;
}

oct_status oct_splitters_read(oct_tree *t, oct_stages *list, oct_err *err)
{
    static const oct_stage_kind kind = { "pretokenizers", read_one };
    return oct_stages_read(t, &kind, list, 0, err);
}
