/* lib/data/text/tokenizer_words.c -- the containers of a tokenizer: pieces of a text, ids, stages, and words by their
 * ids. */
#include "data/text/tokenizer_int.h"

#include <stdio.h>
#include <string.h>

void oct_pieces_clear(oct_pieces *p)
{
    oct_buf_cut(&p->text, 0);
    p->n = 0;
}

void oct_pieces_free(oct_pieces *p)
{
    oct_buf_free(&p->text);
    oct_free(p->v);
    *p = (oct_pieces){ 0 };
}

/* Room for one more element of `each` bytes in *v. */
static bool grow(void **v, size_t n, size_t *cap, size_t each)
{
    if (n < *cap)
        return true;
    const size_t more = *cap ? *cap * 2 : 64;
    void *to = oct_realloc(*v, *cap * each, more * each);
    if (!to)
        return false;
    *v = to;
    *cap = more;
    return true;
}

void oct_pieces_add(oct_pieces *p, const char *s, size_t n, bool first, int64_t id)
{
    if (n == 0)
        return;
    if (!grow((void **)&p->v, p->n, &p->cap, sizeof *p->v)) {
        p->failed = true;
        return;
    }
    p->v[p->n++] = (oct_piece){ .from = p->text.len, .n = n, .id = id, .first = first };
    oct_buf_add(&p->text, s, n);
    p->failed = p->failed || p->text.failed;
}

void oct_ids_add(oct_ids *ids, int64_t id)
{
    if (grow((void **)&ids->v, ids->n, &ids->cap, sizeof *ids->v))
        ids->v[ids->n++] = id;
    else
        ids->failed = true;
}

void oct_ids_free(oct_ids *ids)
{
    oct_free(ids->v);
    *ids = (oct_ids){ 0 };
}

static oct_status read_stage(oct_tree *t, const oct_stage_kind *kind, oct_stages *list, oct_err *err)
{
    oct_stage s = { 0 };
    oct_status st = kind->read(t, oct_tree_word(t, "type"), list, &s, err);
    if (st == OCT_OK && !OCT_GROW(list->arena, list->v, list->n, list->cap))
        st = oct_nomem(err);
    if (st == OCT_OK)
        list->v[list->n++] = s;
    else
        oct_pattern_free(&s.pattern);
    return st;
}

oct_status oct_stages_read(oct_tree *t, const oct_stage_kind *kind, oct_stages *list, int depth, oct_err *err)
{
    if (!oct_tree_is_object(t))
        return OCT_OK;
    if (depth == OCT_STAGES_DEEP)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s nested more than %d deep", kind->list, OCT_STAGES_DEEP);
    if (strcmp(oct_tree_word(t, "type"), "Sequence") != 0)
        return read_stage(t, kind, list, err);
    oct_tree *all = oct_tree_member(t, kind->list);
    for (size_t i = 0; i < oct_tree_count(all) && oct_tree_is_list(all); i++)
        OCT_TRY(oct_stages_read(oct_tree_at(all, i), kind, list, depth + 1, err));
    return OCT_OK;
}

/* ---- words ---- */

static size_t hash_of(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

oct_status oct_vocab_init(oct_vocab *v, size_t most, oct_arena *a, oct_err *err)
{
    *v = (oct_vocab){ .room = 16, .arena = a };
    while (v->room / 2 < most)
        v->room *= 2;
    v->slot = oct_arena_calloc(a, v->room, sizeof *v->slot);
    return v->slot ? OCT_OK : oct_nomem(err);
}

static struct oct_vocab_slot *slot_of(const oct_vocab *v, const char *s, size_t n)
{
    size_t at = hash_of(s, n) & (v->room - 1);
    while (v->slot[at].s && (v->slot[at].n != n || memcmp(v->slot[at].s, s, n) != 0))
        at = (at + 1) & (v->room - 1);
    return &v->slot[at];
}

oct_status oct_vocab_add(oct_vocab *v, const char *s, size_t n, int64_t id, oct_err *err)
{
    struct oct_vocab_slot *slot = slot_of(v, s, n);
    if (!slot->s) {
        if (!(slot->s = oct_arena_strndup(v->arena, s, n)))
            return oct_nomem(err);
        slot->n = (uint32_t)n;
        v->n++;
    }
    slot->id = (int32_t)id;
    return OCT_OK;
}

int64_t oct_vocab_find(const oct_vocab *v, const char *s, size_t n)
{
    const struct oct_vocab_slot *slot = slot_of(v, s, n);
    return slot->s ? slot->id : -1;
}

oct_status oct_vocab_read(oct_tree *t, oct_arena *a, oct_vocab *v, oct_err *err)
{
    if (!oct_tree_is_object(t))
        return oct_fail(err, OCT_EMALFORMED, "the model's vocab is not an object of words and ids");
    OCT_TRY(oct_vocab_init(v, oct_tree_count(t), a, err));
    void *at = NULL;
    const char *word;
    oct_tree *value;
    while (oct_tree_next(t, &at, &word, &value)) {
        int64_t id;
        if (!oct_tree_whole(value, &id))
            return oct_fail(err, OCT_EMALFORMED, "the id of '%.40s' in the vocab is not a whole number", word);
        size_t n;
        if (!(word = oct_nul_plain(word, &n, a)))
            return oct_nomem(err);
        OCT_TRY(oct_vocab_add(v, word, n, id, err));
    }
    return OCT_OK;
}

void oct_vocab_bytes(const oct_vocab *v, int64_t bytes[256])
{
    char word[8];
    for (int i = 0; i < 256; i++)
        bytes[i] = oct_vocab_find(v, word, (size_t)snprintf(word, sizeof word, "<0x%02X>", i));
}

/* ---- JSON ---- */

bool oct_tree_flag(const oct_tree *object, const char *name, bool otherwise)
{
    bool v;
    return oct_tree_bool(oct_tree_member(object, name), &v) ? v : otherwise;
}

const char *oct_tree_word(const oct_tree *object, const char *name)
{
    const char *text = oct_tree_text(oct_tree_member(object, name));
    return text ? text : "";
}

bool oct_tree_whole(const oct_tree *t, int64_t *v)
{
    double d;
    if (!oct_tree_number(t, &d) || !(d >= 0 && d <= INT32_MAX) || d != (double)(int64_t)d)
        return false;
    *v = (int64_t)d;
    return true;
}
