/* lib/data/text/tokenizer_models.c -- models that look words up: WordPiece (Schuster and Nakajima 2012: the longest
 * known beginning, then the longest that goes on) and WordLevel. */
#include "data/text/tokenizer_int.h"

#include "base/utf8.h"

#include <string.h>

enum { MAX_CHARS = 256 }; /* of a word: the search is quadratic in them */

oct_status oct_token_work(oct_token_model *m, size_t n, size_t each, oct_err *err)
{
    size_t bytes;
    if (!oct_mul_size(n, each, &bytes))
        return oct_nomem(err);
    if (bytes <= m->n_work)
        return OCT_OK;
    void *to = oct_alloc(bytes);
    if (!to)
        return oct_nomem(err);
    oct_free(m->work);
    m->work = to;
    m->n_work = bytes;
    return OCT_OK;
}

/* The vocab, and the word for what is unknown, which must be in it. */
static oct_status read_vocab(oct_tree *t, oct_token_model *m, oct_err *err)
{
    OCT_TRY(oct_vocab_read(oct_tree_member(t, "vocab"), m->arena, &m->vocab, err));
    const char *unk = oct_tree_word(t, "unk_token");
    m->unk = oct_vocab_find(&m->vocab, unk, strlen(unk));
    return OCT_OK;
}

static size_t count_chars(const char *t, size_t n)
{
    size_t chars = 0;
    for (size_t i = 0, len; i < n; i += len, chars++)
        oct_utf8_char(t + i, n - i, &len);
    return chars;
}

/* The longest word at the beginning of t, as a number of bytes; 0: none. */
static size_t longest_word(oct_token_model *m, const char *t, size_t n, bool begins, int64_t *id)
{
    const size_t prefix = begins ? 0 : strlen(m->prefix);
    oct_buf_cut(&m->word, 0);
    oct_buf_add(&m->word, m->prefix, prefix);
    oct_buf_add(&m->word, t, n);
    if (m->word.failed)
        return 0;
    for (size_t end = n; end > 0; end--) {
        if (end < n && (t[end] & 0xc0) == 0x80) /* inside a character */
            continue;
        if ((*id = oct_vocab_find(&m->vocab, m->word.data, prefix + end)) >= 0)
            return end;
    }
    return 0;
}

static oct_status encode_pieces(oct_token_model *m, const char *t, size_t n, oct_ids *out, oct_err *err)
{
    const size_t before = out->n;
    bool known = (int64_t)count_chars(t, n) <= m->longest;
    for (size_t at = 0, len; known && at < n; at += len) {
        int64_t id;
        len = longest_word(m, t + at, n - at, at == 0, &id);
        known = len > 0;
        if (known)
            oct_ids_add(out, id);
    }
    if (m->word.failed)
        return oct_nomem(err);
    if (known)
        return OCT_OK;
    out->n = before;
    oct_ids_add(out, m->unk);
    return OCT_OK;
}

oct_status oct_wordpiece_read(oct_tree *t, oct_token_model *m, oct_err *err)
{
    OCT_TRY(read_vocab(t, m, err));
    m->longest = 100;
    oct_tree_whole(oct_tree_member(t, "max_input_chars_per_word"), &m->longest);
    if (m->longest > MAX_CHARS)
        return oct_fail(err, OCT_EUNSUPPORTED, "words of up to %lld characters, at most %d are read",
                        (long long)m->longest, MAX_CHARS);
    m->prefix = oct_arena_strdup(m->arena, oct_tree_word(t, "continuing_subword_prefix"));
    if (!m->prefix)
        return oct_nomem(err);
    if (m->unk < 0)
        return oct_fail(err, OCT_EMALFORMED, "the model's unk_token is not in its vocab");
    m->encode = encode_pieces;
    return OCT_OK;
}

static oct_status encode_word(oct_token_model *m, const char *t, size_t n, oct_ids *out, oct_err *err)
{
    const int64_t id = oct_vocab_find(&m->vocab, t, n);
    if (id >= 0 || m->unk >= 0)
        oct_ids_add(out, id >= 0 ? id : m->unk);
    return OCT_OK;
}

oct_status oct_wordlevel_read(oct_tree *t, oct_token_model *m, oct_err *err)
{
    OCT_TRY(read_vocab(t, m, err));
    m->encode = encode_word;
    return OCT_OK;
}
