/* lib/data/text/tokenizer_unigram.c -- the unigram model (Kudo 2018): of all ways to divide a text into known words,
 * that of the largest sum of their scores, by Viterbi's search. */
#include "data/text/tokenizer_int.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A word that is unknown scores so much less than the worst. */
#define UNKNOWN_PENALTY 10.0

enum { MAX_WORD = 1024 }; /* bytes: each place of a text is compared with words up to their length */

typedef struct word {
    const char *s;
    size_t n;
    double score;
    int32_t id;
} word;

typedef struct unigram {
    word *sorted; /* by their bytes: words with one beginning are a range */
    size_t n;
    double unknown; /* score */
} unigram;

/* The best way to reach an offset. */
typedef struct step {
    double score;
    int64_t id;
    int64_t from; /* -1: not reached */
} step;

static int by_bytes(const void *a, const void *b)
{
    const word *p = a, *q = b;
    const int order = memcmp(p->s, q->s, p->n < q->n ? p->n : q->n);
    return order ? order : p->n < q->n ? -1 : p->n > q->n ? 1 : (p->id > q->id) - (p->id < q->id);
}

/* Narrows [*lo, *hi), whose words begin with the same `depth` bytes, to those that go on with c. */
static void narrow(const unigram *u, size_t *lo, size_t *hi, size_t depth, uint8_t c)
{
    for (int end = 0; end < 2; end++) {
        size_t a = *lo, b = *hi;
        while (a < b) {
            const size_t mid = a + (b - a) / 2;
            const int byte = u->sorted[mid].n > depth ? (uint8_t)u->sorted[mid].s[depth] : -1;
            if (byte < c + end)
                a = mid + 1;
            else
                b = mid;
        }
        *(end ? hi : lo) = a;
    }
}

static void reach(step *to, double score, int64_t id, size_t from)
{
    if (to->from < 0 || score > to->score)
        *to = (step){ .score = score, .id = id, .from = (int64_t)from };
}

/* Fills best[0..n]. */
static void search(const oct_token_model *m, const char *t, size_t n, step *best)
{
    const unigram *u = m->more;
    for (size_t i = 0; i <= n; i++)
        best[i] = (step){ .from = -1 };
    best[0].from = 0;
    for (size_t at = 0, len; at < n; at += len) {
        oct_utf8_char(t + at, n - at, &len);
        bool single = false;
        size_t lo = 0, hi = u->n;
        for (size_t k = 0; at + k < n && lo < hi; k++) {
            narrow(u, &lo, &hi, k, (uint8_t)t[at + k]);
            if (lo < hi && u->sorted[lo].n == k + 1) {
                /* Of equal words the last one counts, as in a map by words; the range begins with them. */
                size_t last = lo;
                while (last + 1 < hi && u->sorted[last + 1].n == k + 1)
                    last++;
                reach(&best[at + k + 1], best[at].score + u->sorted[last].score, u->sorted[last].id, at);
                single |= k + 1 == len;
            }
        }
        if (!single)
            reach(&best[at + len], best[at].score + u->unknown, m->unk, at);
    }
}

/* What a part of the text is: a word, bytes, or unknown. */
static oct_status put(const oct_token_model *m, const char *t, size_t n, int64_t id, oct_ids *out, oct_err *err)
{
    bool bytes = id == m->unk && m->byte_fallback;
    for (size_t i = 0; bytes && i < n; i++)
        bytes = m->bytes[(uint8_t)t[i]] >= 0;
    if (!bytes && id < 0)
        return oct_fail(err, OCT_EMALFORMED, "'%.*s' is unknown to the tokenizer, which has no unk_id",
                        (int)(n < 40 ? n : 40), t);
    for (size_t i = 0; i < (bytes ? n : 1); i++)
        oct_ids_add(out, bytes ? m->bytes[(uint8_t)t[i]] : id);
    return OCT_OK;
}

static oct_status encode(oct_token_model *m, const char *t, size_t n, oct_ids *out, oct_err *err)
{
    OCT_TRY(oct_token_work(m, n + 1, sizeof(step), err));
    step *best = m->work;
    search(m, t, n, best);
    /* Backwards: each step then holds where the next part begins. */
    for (size_t at = n, next = n; at > 0;) {
        const size_t from = (size_t)best[at].from;
        best[at].from = (int64_t)next;
        next = at;
        at = from;
        if (at == 0)
            best[0] = (step){ .from = (int64_t)next };
    }
    for (size_t at = 0; at < n;) {
        size_t to = (size_t)best[at].from;
        const int64_t id = best[to].id;
        /* Unknown parts beside each other are one. */
        while (id == m->unk && to < n && best[best[to].from].id == m->unk)
            to = (size_t)best[to].from;
        OCT_TRY(put(m, t + at, to - at, id, out, err));
        at = to;
    }
    return OCT_OK;
}

oct_status oct_unigram_read(oct_tree *t, oct_token_model *m, oct_err *err)
{
    const oct_tree *list = oct_tree_member(t, "vocab");
    unigram *u = m->more = oct_arena_calloc(m->arena, 1, sizeof *u);
    const size_t n = oct_tree_count(list);
    if (!oct_tree_is_list(list) || n == 0 || n > INT32_MAX)
        return oct_fail(err, OCT_EMALFORMED, "the model has no list of words and scores");
    if (!u || !(u->sorted = oct_arena_calloc(m->arena, n, sizeof *u->sorted)))
        return oct_nomem(err);
    OCT_TRY(oct_vocab_init(&m->vocab, n, m->arena, err));
    double least = INFINITY;
    for (size_t i = 0; i < n; i++) {
        const oct_tree *pair = oct_tree_at(list, i);
        const char *text = oct_tree_is_list(pair) ? oct_tree_text(oct_tree_at(pair, 0)) : NULL;
        double score;
        size_t len = 0;
        if (!text || !oct_tree_number(oct_tree_at(pair, 1), &score))
            return oct_fail(err, OCT_EMALFORMED, "entry %zu (counted from 0) of the vocab is not a word and its score",
                            i);
        if (!(text = oct_nul_plain(text, &len, m->arena)))
            return oct_nomem(err);
        if (len > MAX_WORD)
            return oct_fail(err, OCT_EUNSUPPORTED,
                            "entry %zu (counted from 0) of the vocab has %zu bytes, at most %d are read", i, len,
                            MAX_WORD);
        OCT_TRY(oct_vocab_add(&m->vocab, text, len, (int64_t)i, err));
        least = score < least ? score : least;
        if (len && !(u->sorted[u->n].s = oct_arena_strndup(m->arena, text, len)))
            return oct_nomem(err);
        if (len) {
            u->sorted[u->n].n = len;
            u->sorted[u->n].score = score;
            u->sorted[u->n++].id = (int32_t)i;
        }
    }
    qsort(u->sorted, u->n, sizeof *u->sorted, by_bytes);
    u->unknown = least - UNKNOWN_PENALTY;
    if (!oct_tree_whole(oct_tree_member(t, "unk_id"), &m->unk))
        m->unk = -1;
    else if ((size_t)m->unk >= n)
        return oct_fail(err, OCT_EMALFORMED, "the model's unk_id is beyond its vocab");
    m->byte_fallback = oct_tree_flag(t, "byte_fallback", false);
    oct_vocab_bytes(&m->vocab, m->bytes);
    m->encode = encode;
    return OCT_OK;
}
