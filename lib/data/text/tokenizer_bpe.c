/* lib/data/text/tokenizer_bpe.c -- byte-pair encoding (Sennrich et al. 2016): a word begins as its characters, and the
 * pair that was learned first is joined, until none is left. */
#include "data/text/tokenizer_int.h"

#include "base/dtype.h"
#include "base/utf8.h"

#include <string.h>

typedef struct merge {
    uint64_t pair; /* left id << 32 | right id */
    int32_t rank, to;
} merge;

typedef struct merges {
    merge *slot; /* to < 0: empty */
    size_t room;
} merges;

/* A symbol of a word: a list in an array, so that joining takes constant time. */
typedef struct symbol {
    int32_t id, prev, next;
    bool gone;
} symbol;

/* A pair that may be joined: of the symbol at `at` and the next one then. */
typedef struct joint {
    int32_t rank, at, to;
} joint;

static merge *merge_at(const merges *m, uint64_t pair)
{
    size_t at = (size_t)(pair * 0x9e3779b97f4a7c15u >> 20) & (m->room - 1);
    while (m->slot[at].to >= 0 && m->slot[at].pair != pair)
        at = (at + 1) & (m->room - 1);
    return &m->slot[at];
}

static const merge *find_merge(const merges *m, int32_t left, int32_t right)
{
    const merge *found = merge_at(m, (uint64_t)(uint32_t)left << 32 | (uint32_t)right);
    return found->to >= 0 ? found : NULL;
}

/* ---- reading ---- */

/* "left right", or a list of both. */
static bool split_merge(const oct_tree *t, oct_str *left, oct_str *right, oct_arena *a)
{
    const bool list = oct_tree_is_list(t);
    const char *text = oct_tree_text(list ? oct_tree_at(t, 0) : t), *other = oct_tree_text(oct_tree_at(t, 1));
    if (!text || (list && (oct_tree_count(t) != 2 || !other)) || !(left->s = oct_nul_plain(text, &left->n, a)))
        return false;
    if (list)
        return (right->s = oct_nul_plain(other, &right->n, a)) != NULL;
    const char *blank = memchr(left->s, ' ', left->n);
    if (!blank)
        return false;
    *right = (oct_str){ .s = blank + 1, .n = left->n - (size_t)(blank + 1 - left->s) };
    left->n = (size_t)(blank - left->s);
    return true;
}

static oct_status read_merge(oct_token_model *m, const oct_tree *t, size_t i, oct_err *err)
{
    oct_str left, right;
    if (!split_merge(t, &left, &right, m->arena))
        return oct_fail(err, OCT_EMALFORMED, "merge %zu (counted from 0) is not a pair", i);
    const size_t n_prefix = strlen(m->prefix), skip = right.n >= n_prefix ? n_prefix : 0;
    oct_buf_cut(&m->word, 0);
    oct_buf_add(&m->word, left.s, left.n);
    oct_buf_add(&m->word, right.s + skip, right.n - skip);
    if (m->word.failed)
        return oct_nomem(err);
    const int64_t a = oct_vocab_find(&m->vocab, left.s, left.n), b = oct_vocab_find(&m->vocab, right.s, right.n),
                  to = oct_vocab_find(&m->vocab, oct_buf_str(&m->word), m->word.len);
    if (a < 0 || b < 0 || to < 0)
        return oct_fail(err, OCT_EMALFORMED, "merge %zu (counted from 0): '%.40s' is not in the vocab", i,
                        a < 0   ? left.s
                        : b < 0 ? right.s
                                : oct_buf_str(&m->word));
    const uint64_t pair = (uint64_t)a << 32 | (uint64_t)b;
    *merge_at(m->more, pair) = (merge){ .pair = pair, .rank = (int32_t)i, .to = (int32_t)to };
    return OCT_OK;
}

static oct_status read_merges(oct_tree *t, oct_token_model *m, oct_err *err)
{
    merges *all = m->more = oct_arena_calloc(m->arena, 1, sizeof *all);
    const oct_tree *list = oct_tree_member(t, "merges");
    if (!all)
        return oct_nomem(err);
    if (!oct_tree_is_list(list) || oct_tree_count(list) > INT32_MAX / 4)
        return oct_fail(err, OCT_EMALFORMED, "the model has no list of merges");
    for (all->room = 16; all->room / 2 < oct_tree_count(list);)
        all->room *= 2;
    if (!(all->slot = oct_arena_calloc(m->arena, all->room, sizeof *all->slot)))
        return oct_nomem(err);
    for (size_t i = 0; i < all->room; i++)
        all->slot[i].to = -1;
    for (size_t i = 0; i < oct_tree_count(list); i++)
        OCT_TRY(read_merge(m, oct_tree_at(list, i), i, err));
    return OCT_OK;
}

/* ---- a word ---- */

typedef struct bpe {
    symbol *s;
    size_t n;
    joint *heap; /* the least is at 0 */
    size_t n_heap;
} bpe;

static void add_symbol(bpe *w, int64_t id)
{
    w->s[w->n] = (symbol){ .id = (int32_t)id, .prev = (int32_t)w->n - 1, .next = (int32_t)w->n + 1 };
    w->n++;
}

static bool before(const joint *a, const joint *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(const oct_token_model *m, bpe *w, int32_t at, int32_t right)
{
    const merge *found = find_merge(m->more, w->s[at].id, w->s[right].id);
    if (!found)
        return;
    const joint j = { .rank = found->rank, .at = at, .to = found->to };
    size_t i = w->n_heap++;
    for (; i > 0 && before(&j, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = j;
}

static joint pop(bpe *w)
{
    const joint top = w->heap[0], last = w->heap[--w->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->n_heap; i = child) {
        child += child + 1 < w->n_heap && before(&w->heap[child + 1], &w->heap[child]);
        if (!before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
    }
    if (w->n_heap)
        w->heap[i] = last;
    return top;
}

/* Each joining takes one symbol away and adds two pairs at most: the heap holds 3 n at most. */
static void join_all(const oct_token_model *m, bpe *w)
{
    for (size_t i = 0; i + 1 < w->n; i++)
        push(m, w, (int32_t)i, (int32_t)i + 1);
    while (w->n_heap) {
        const joint j = pop(w);
        symbol *left = &w->s[j.at];
        if (left->gone || left->next >= (int32_t)w->n)
            continue;
        symbol *right = &w->s[left->next];
        const merge *now = find_merge(m->more, left->id, right->id);
        if (!now || now->to != j.to) /* one of the two has changed since */
            continue;
        left->id = j.to;
        left->next = right->next;
        right->gone = true;
        if (left->next < (int32_t)w->n)
            w->s[left->next].prev = j.at;
        if (left->prev >= 0)
            push(m, w, left->prev, j.at);
        if (left->next < (int32_t)w->n)
            push(m, w, j.at, left->next);
    }
}

/* The id of a character with what the model writes before and behind it. */
static int64_t char_id(oct_token_model *m, const char *t, size_t len, bool first, bool last)
{
    if ((first || !*m->prefix) && (!last || !*m->suffix))
        return oct_vocab_find(&m->vocab, t, len);
    oct_buf_cut(&m->word, 0);
    oct_buf_puts(&m->word, first ? "" : m->prefix);
    oct_buf_add(&m->word, t, len);
    oct_buf_puts(&m->word, last ? m->suffix : "");
    return oct_vocab_find(&m->vocab, oct_buf_str(&m->word), m->word.len);
}

static bool add_bytes(const oct_token_model *m, bpe *w, const char *t, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (m->bytes[(uint8_t)t[i]] < 0)
            return false;
    for (size_t i = 0; i < len; i++)
        add_symbol(w, m->bytes[(uint8_t)t[i]]);
    return true;
}

/* The characters of a word. A run of unknown ones is one symbol where they are fused, unless bytes stand for one. */
static void add_chars(oct_token_model *m, bpe *w, const char *t, size_t n)
{
    bool unknown = false; /* one is not yet added */
    for (size_t i = 0, len; i < n; i += len) {
        oct_utf8_char(t + i, n - i, &len);
        const int64_t id = char_id(m, t + i, len, i == 0, i + len == n);
        if (id < 0 && m->byte_fallback && add_bytes(m, w, t + i, len))
            continue;
        if (id < 0 && m->unk < 0)
            continue;
        if (unknown && (id >= 0 || !m->fuse_unk))
            add_symbol(w, m->unk);
        unknown = id < 0;
        if (id >= 0)
            add_symbol(w, id);
    }
    if (unknown)
        add_symbol(w, m->unk);
}

static oct_status encode(oct_token_model *m, const char *t, size_t n, oct_ids *out, oct_err *err)
{
    const int64_t whole = m->ignore_merges ? oct_vocab_find(&m->vocab, t, n) : -1;
    if (whole >= 0) {
        oct_ids_add(out, whole);
        return OCT_OK;
    }
    if (n > INT32_MAX / 8)
        return oct_fail(err, OCT_EMALFORMED, "a word of %zu bytes", n);
    OCT_TRY(oct_token_work(m, n, sizeof(symbol) + 3 * sizeof(joint), err));
    bpe w = { .s = m->work, .heap = (joint *)((symbol *)m->work + n) };
    add_chars(m, &w, t, n);
    if (m->word.failed)
        return oct_nomem(err);
    join_all(m, &w);
    for (size_t i = 0; i < w.n; i++)
        if (!w.s[i].gone)
            oct_ids_add(out, w.s[i].id);
    return OCT_OK;
}

oct_status oct_bpe_read(oct_tree *t, oct_token_model *m, oct_err *err)
{
    double dropout;
    if (oct_tree_number(oct_tree_member(t, "dropout"), &dropout) && dropout > 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "the model drops merges by chance (dropout %g)", dropout);
    OCT_TRY(oct_vocab_read(oct_tree_member(t, "vocab"), m->arena, &m->vocab, err));
    const char *unk = oct_tree_word(t, "unk_token");
    m->unk = oct_vocab_find(&m->vocab, unk, strlen(unk));
    m->fuse_unk = oct_tree_flag(t, "fuse_unk", false);
    m->byte_fallback = oct_tree_flag(t, "byte_fallback", false);
    m->ignore_merges = oct_tree_flag(t, "ignore_merges", false);
    m->prefix = oct_arena_strdup(m->arena, oct_tree_word(t, "continuing_subword_prefix"));
    m->suffix = oct_arena_strdup(m->arena, oct_tree_word(t, "end_of_word_suffix"));
    if (!m->prefix || !m->suffix)
        return oct_nomem(err);
    oct_vocab_bytes(&m->vocab, m->bytes);
    m->encode = encode;
    return read_merges(t, m, err);
}
