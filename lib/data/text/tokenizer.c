/* lib/data/text/tokenizer.c -- a tokenizer as a whole: it is read, and a text goes through its stages. */
#include "data/text/tokenizer_int.h"

#include "base/io.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 256 << 20, MAX_SPECIAL = 4096 };

/* A token that is found in the text before anything else is done. */
typedef struct added {
    const char *s;
    size_t n;
    int64_t id;
    bool single_word, lstrip, rstrip;
} added;

/* Those that are looked for in the text as it is, or in the normalized one. */
typedef struct added_list {
    added *v; /* by their first byte, the longest first */
    size_t n;
    size_t from[257]; /* those that begin with byte b are v[from[b]] to v[from[b + 1]] */
} added_list;

/* What stands around a text: ids, or the text itself. */
typedef struct frame {
    int text; /* 0 the text, 1 its pair, -1 ids */
    int64_t type;
    const int64_t *ids;
    size_t n;
} frame;

typedef struct frames {
    frame *v;
    size_t n, cap;
} frames;

struct oct_tokenizer {
    oct_arena *arena;
    oct_stages normalizers, splitters;
    oct_token_model model;
    added_list raw, normal;
    frames one, two; /* of a text alone, and of a pair */
    size_t longest;  /* 0: no limit */
    bool cut_left;
    int64_t pad;
    oct_pieces a, b;
    oct_buf text[2];
    oct_ids part[2], ids, types;
};

static void free_stages(oct_stages *list)
{
    for (size_t i = 0; i < list->n; i++)
        oct_pattern_free(&list->v[i].pattern);
}

void oct_tokenizer_close(oct_tokenizer *t)
{
    if (!t)
        return;
    free_stages(&t->normalizers);
    free_stages(&t->splitters);
    oct_buf_free(&t->model.word);
    oct_free(t->model.work);
    oct_pieces_free(&t->a);
    oct_pieces_free(&t->b);
    for (int i = 0; i < 2; i++) {
        oct_buf_free(&t->text[i]);
        oct_ids_free(&t->part[i]);
    }
    oct_ids_free(&t->ids);
    oct_ids_free(&t->types);
    oct_arena_destroy(t->arena);
    oct_free(t);
}

int64_t oct_tokenizer_pad(const oct_tokenizer *t)
{
    return t->pad;
}

/* ---- a text ---- */

/* The text in t->text[0], changed by the normalizers; borrowed. */
static oct_status normalize(oct_tokenizer *t, const char *s, size_t n, const char **to, size_t *len, oct_err *err)
{
    *to = s;
    *len = n;
    for (size_t i = 0; i < t->normalizers.n; i++) {
        oct_buf *out = &t->text[i % 2];
        oct_buf_cut(out, 0);
        OCT_TRY(t->normalizers.v[i].change(&t->normalizers.v[i], *to, *len, out, err));
        if (out->failed)
            return oct_nomem(err);
        *to = oct_buf_str(out);
        *len = out->len;
    }
    return OCT_OK;
}

/* The character before offset `at`, which is above 0. */
static uint32_t char_before(const char *s, size_t at, size_t *len)
{
    size_t from = at - 1;
    while (from > 0 && at - from < 4 && (s[from] & 0xc0) == 0x80)
        from--;
    return oct_utf8_char(s + from, at - from, len);
}

static const added *added_at(const added_list *list, const char *s, size_t n)
{
    const uint8_t byte = (uint8_t)s[0];
    for (size_t i = list->from[byte]; i < list->from[byte + 1]; i++)
        if (list->v[i].n <= n && memcmp(list->v[i].s, s, list->v[i].n) == 0)
            return &list->v[i];
    return NULL;
}

static bool stands_alone(const char *s, size_t n, size_t a, size_t b)
{
    size_t len;
    return (a == 0 || !oct_char_is_word(char_before(s, a, &len))) &&
           (b == n || !oct_char_is_word(oct_utf8_char(s + b, n - b, &len)));
}

/* Cuts the added tokens out of a text. */
static void find_added(const added_list *list, const char *s, size_t n, bool first, oct_pieces *out)
{
    size_t from = 0;
    for (size_t i = 0; i < n;) {
        const added *token = list->n ? added_at(list, s + i, n - i) : NULL;
        if (!token) {
            i++;
            continue;
        }
        size_t a = i, b = i + token->n, len;
        i = b;
        if (token->single_word && !stands_alone(s, n, a, b))
            continue;
        while (token->lstrip && a > from && oct_char_is_space(char_before(s, a, &len)))
            a -= len;
        while (token->rstrip && b < n && oct_char_is_space(oct_utf8_char(s + b, n - b, &len)))
            b += len;
        i = b > i ? b : i;
        oct_pieces_add(out, s + from, a - from, first && from == 0, -1);
        oct_pieces_add(out, s + a, b - a, false, token->id);
        from = b;
    }
    oct_pieces_add(out, s + from, n - from, first && from == 0, -1);
}

static oct_status failed(const oct_pieces *p, oct_err *err)
{
    return p->failed ? oct_nomem(err) : OCT_OK;
}

static void swap_pieces(oct_tokenizer *t)
{
    const oct_pieces a = t->a;
    t->a = t->b;
    t->b = a;
    oct_pieces_clear(&t->b);
}

/* Each text among t->a becomes pieces in t->b; then the two change places. */
static oct_status normalize_all(oct_tokenizer *t, oct_err *err)
{
    for (size_t i = 0; i < t->a.n; i++) {
        const oct_piece *p = &t->a.v[i];
        const char *s = t->a.text.data + p->from;
        size_t n = p->n;
        if (p->id < 0)
            OCT_TRY(normalize(t, s, n, &s, &n, err));
        if (p->id < 0)
            find_added(&t->normal, s, n, p->first, &t->b);
        else
            oct_pieces_add(&t->b, s, n, p->first, p->id);
    }
    OCT_TRY(failed(&t->b, err));
    swap_pieces(t);
    return OCT_OK;
}

static oct_status split_all(oct_tokenizer *t, const oct_stage *by, oct_err *err)
{
    for (size_t i = 0; i < t->a.n; i++) {
        const oct_piece *p = &t->a.v[i];
        if (p->id < 0)
            OCT_TRY(by->cut(by, t->a.text.data + p->from, p->n, p->first, &t->b, err));
        else
            oct_pieces_add(&t->b, t->a.text.data + p->from, p->n, p->first, p->id);
    }
    OCT_TRY(failed(&t->b, err));
    swap_pieces(t);
    return OCT_OK;
}

static oct_status encode_one(oct_tokenizer *t, const char *s, size_t n, oct_ids *out, oct_err *err)
{
    out->n = 0;
    oct_pieces_clear(&t->a);
    oct_pieces_clear(&t->b);
    for (size_t i = 0, len; i < n; i += len)
        if (oct_utf8_char(s + i, n - i, &len) == OCT_BAD_CHAR && len == 1 && s[i])
            return oct_fail(err, OCT_EMALFORMED, "byte %zu (counted from 0) is not UTF-8", i);
    find_added(&t->raw, s, n, true, &t->a);
    OCT_TRY(failed(&t->a, err));
    OCT_TRY(normalize_all(t, err));
    for (size_t i = 0; i < t->splitters.n; i++)
        OCT_TRY(split_all(t, &t->splitters.v[i], err));
    for (size_t i = 0; i < t->a.n; i++) {
        const oct_piece *p = &t->a.v[i];
        if (p->id >= 0)
            oct_ids_add(out, p->id);
        else
            OCT_TRY(t->model.encode(&t->model, t->a.text.data + p->from, p->n, out, err));
    }
    return out->failed ? oct_nomem(err) : OCT_OK;
}

/* ---- special tokens ---- */

/* Cuts the longer of both texts first, so that they have `most` ids together. */
static void cut_parts(oct_tokenizer *t, bool paired, size_t most)
{
    oct_ids *p = t->part;
    size_t keep[2] = { p[0].n, paired ? p[1].n : 0 };
    if (keep[0] + keep[1] <= most)
        return;
    const int small = keep[0] > keep[1];
    if (!paired) {
        keep[0] = most;
    } else {
        const size_t rest = keep[small] < most ? most - keep[small] : 0;
        keep[!small] = keep[small] > most || rest < keep[small] ? keep[small] : rest;
        if (keep[0] + keep[1] > most) {
            keep[small] = most / 2;
            keep[!small] = most - most / 2;
        }
    }
    for (int i = 0; i < 1 + paired; i++) {
        if (t->cut_left)
            memmove(p[i].v, p[i].v + (p[i].n - keep[i]), keep[i] * sizeof *p[i].v);
        p[i].n = keep[i];
    }
}

static size_t frame_ids(const frames *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->v[i].text < 0 ? f->v[i].n : 0;
    return n;
}

oct_status oct_tokenizer_encode(oct_tokenizer *t, const oct_tokenizer_text *in, size_t most, const int64_t **ids,
                                const int64_t **types, size_t *n, oct_err *err)
{
    const frames *f = in->pair ? &t->two : &t->one;
    OCT_TRY(encode_one(t, in->text, in->n, &t->part[0], err));
    if (in->pair)
        OCT_TRY(encode_one(t, in->pair, in->n_pair, &t->part[1], err));
    const size_t around = frame_ids(f), limit = most ? most : t->longest;
    if (limit)
        cut_parts(t, in->pair != NULL, limit > around ? limit - around : 0);
    t->ids.n = t->types.n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const frame *p = &f->v[i];
        const int64_t *v = p->text < 0 ? p->ids : t->part[p->text].v;
        const size_t count = p->text < 0 ? p->n : t->part[p->text].n;
        for (size_t k = 0; k < count; k++) {
            oct_ids_add(&t->ids, v[k]);
            oct_ids_add(&t->types, p->type);
        }
    }
    *ids = t->ids.v;
    *types = t->types.v;
    *n = t->ids.n;
    return t->ids.failed || t->types.failed ? oct_nomem(err) : OCT_OK;
}

/* ---- reading ---- */

static oct_status add_frame(oct_tokenizer *t, frames *f, frame p, oct_err *err)
{
    if (!OCT_GROW(t->arena, f->v, f->n, f->cap))
        return oct_nomem(err);
    f->v[f->n++] = p;
    return OCT_OK;
}

static oct_status add_id(oct_tokenizer *t, frames *f, const oct_tree *pair, int64_t type, oct_err *err)
{
    int64_t *id = oct_arena_alloc(t->arena, sizeof *id);
    if (!id)
        return oct_nomem(err);
    if (!oct_tree_whole(oct_tree_at(pair, 1), id))
        return oct_fail(err, OCT_EMALFORMED, "a special token of the post-processor has no id");
    return add_frame(t, f, (frame){ .text = -1, .type = type, .ids = id, .n = 1 }, err);
}

/* cls A sep, and cls A sep B sep; RoBERTa has two sep between the texts, and one type. */
static oct_status read_bert(oct_tokenizer *t, const oct_tree *p, bool roberta, oct_err *err)
{
    const oct_tree *cls = oct_tree_member(p, "cls"), *sep = oct_tree_member(p, "sep");
    for (int pair = 0; pair < 2; pair++) {
        frames *f = pair ? &t->two : &t->one;
        OCT_TRY(add_id(t, f, cls, 0, err));
        OCT_TRY(add_frame(t, f, (frame){ .text = 0 }, err));
        OCT_TRY(add_id(t, f, sep, 0, err));
        if (pair && roberta)
            OCT_TRY(add_id(t, f, sep, 0, err));
        if (pair) {
            OCT_TRY(add_frame(t, f, (frame){ .text = 1, .type = !roberta }, err));
            OCT_TRY(add_id(t, f, sep, !roberta, err));
        }
    }
    return OCT_OK;
}

static oct_status read_special(oct_tokenizer *t, const oct_tree *p, const char *name, frame *f, oct_err *err)
{
    const oct_tree *ids = oct_tree_member(oct_tree_member(oct_tree_member(p, "special_tokens"), name), "ids");
    const size_t n = oct_tree_count(ids);
    int64_t *v = oct_arena_calloc(t->arena, n + 1, sizeof *v);
    if (!v)
        return oct_nomem(err);
    bool good = oct_tree_is_list(ids) && n <= MAX_SPECIAL;
    for (size_t i = 0; good && i < n; i++)
        good = oct_tree_whole(oct_tree_at(ids, i), &v[i]);
    if (!good)
        return oct_fail(err, OCT_EMALFORMED, "the special token '%.40s' of the post-processor has no ids", name);
    f->text = -1;
    f->ids = v;
    f->n = n;
    return OCT_OK;
}

static oct_status read_template(oct_tokenizer *t, const oct_tree *p, const char *which, frames *to, oct_err *err)
{
    const oct_tree *list = oct_tree_member(p, which);
    const size_t n = oct_tree_is_list(list) ? oct_tree_count(list) : 0;
    if (n > MAX_SPECIAL)
        return oct_fail(err, OCT_EMALFORMED, "a template of %zu parts", n);
    for (size_t i = 0; i < n; i++) {
        const oct_tree *special = oct_tree_member(oct_tree_at(list, i), "SpecialToken"),
                       *text = oct_tree_member(oct_tree_at(list, i), "Sequence");
        frame f = { .text = strcmp(oct_tree_word(text, "id"), "B") == 0 };
        if (!oct_tree_whole(oct_tree_member(special ? special : text, "type_id"), &f.type))
            return oct_fail(err, OCT_EMALFORMED,
                            "part %zu (counted from 0) of the template '%s' is neither a text nor a token", i, which);
        if (special)
            OCT_TRY(read_special(t, p, oct_tree_word(special, "id"), &f, err));
        OCT_TRY(add_frame(t, to, f, err));
    }
    return OCT_OK;
}

static oct_status read_frames(oct_tokenizer *t, const oct_tree *p, int depth, oct_err *err)
{
    if (!oct_tree_is_object(p))
        return OCT_OK;
    const char *kind = oct_tree_word(p, "type");
    if (depth == OCT_STAGES_DEEP)
        return oct_fail(err, OCT_EUNSUPPORTED, "post-processors nested more than %d deep", OCT_STAGES_DEEP);
    if (strcmp(kind, "ByteLevel") == 0)
        return OCT_OK; /* it moves offsets, no ids */
    if (strcmp(kind, "Sequence") == 0) {
        const oct_tree *all = oct_tree_member(p, "processors");
        for (size_t i = 0; oct_tree_is_list(all) && i < oct_tree_count(all); i++)
            OCT_TRY(read_frames(t, oct_tree_at(all, i), depth + 1, err));
        return OCT_OK;
    }
    if (t->one.n || t->two.n)
        return oct_fail(err, OCT_EUNSUPPORTED, "several post-processors that add tokens");
    if (strcmp(kind, "BertProcessing") == 0 || strcmp(kind, "RobertaProcessing") == 0)
        return read_bert(t, p, kind[0] == 'R', err);
    if (strcmp(kind, "TemplateProcessing") != 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "the post-processor '%.40s' is not known here", kind);
    OCT_TRY(read_template(t, p, "single", &t->one, err));
    return read_template(t, p, "pair", &t->two, err);
}

/* Without a post-processor the texts stand alone, one behind the other. */
static oct_status complete_frames(oct_tokenizer *t, oct_err *err)
{
    if (!t->one.n)
        OCT_TRY(add_frame(t, &t->one, (frame){ .text = 0 }, err));
    if (t->two.n)
        return OCT_OK;
    OCT_TRY(add_frame(t, &t->two, (frame){ .text = 0 }, err));
    return add_frame(t, &t->two, (frame){ .text = 1, .type = 1 }, err);
}

static int by_first_byte(const void *a, const void *b)
{
    const added *p = a, *q = b;
    const int order = (int)(uint8_t)p->s[0] - (int)(uint8_t)q->s[0];
    return order ? order : p->n != q->n ? (p->n < q->n) - (p->n > q->n) : memcmp(p->s, q->s, p->n);
}

static oct_status read_added(oct_tokenizer *t, const oct_tree *list, bool normal, added_list *to, oct_err *err)
{
    const size_t n = oct_tree_is_list(list) ? oct_tree_count(list) : 0;
    if (!(to->v = oct_arena_calloc(t->arena, n + 1, sizeof *to->v)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const oct_tree *one = oct_tree_at(list, i);
        const char *text = oct_tree_word(one, "content");
        added *a = &to->v[to->n];
        if (!oct_tree_whole(oct_tree_member(one, "id"), &a->id))
            return oct_fail(err, OCT_EMALFORMED, "added token %zu (counted from 0) has no id", i);
        if (!normal && (strcmp(text, "[PAD]") == 0 || strcmp(text, "<pad>") == 0))
            t->pad = a->id;
        if (oct_tree_flag(one, "normalized", !oct_tree_flag(one, "special", false)) != normal)
            continue;
        if (!(text = oct_nul_plain(text, &a->n, t->arena)))
            return oct_nomem(err);
        if (normal)
            OCT_TRY(normalize(t, text, a->n, &text, &a->n, err));
        if (a->n == 0)
            continue;
        if (!(a->s = oct_arena_strndup(t->arena, text, a->n)))
            return oct_nomem(err);
        a->single_word = oct_tree_flag(one, "single_word", false);
        a->lstrip = oct_tree_flag(one, "lstrip", false);
        a->rstrip = oct_tree_flag(one, "rstrip", false);
        to->n++;
    }
    qsort(to->v, to->n, sizeof *to->v, by_first_byte);
    for (size_t byte = 0, i = 0; byte <= 256; byte++) {
        while (i < to->n && (uint8_t)to->v[i].s[0] < byte)
            i++;
        to->from[byte] = i;
    }
    return OCT_OK;
}

static oct_status read_model(oct_tokenizer *t, oct_tree *m, oct_err *err)
{
    static const struct {
        const char *kind;
        oct_status (*read)(oct_tree *, oct_token_model *, oct_err *);
    } models[] = { { "WordPiece", oct_wordpiece_read },
                   { "BPE", oct_bpe_read },
                   { "Unigram", oct_unigram_read },
                   { "WordLevel", oct_wordlevel_read } };
    const char *kind = oct_tree_word(m, "type");
    /* Files of early versions do not name it. */
    if (!*kind)
        kind = oct_tree_member(m, "merges")                     ? "BPE"
               : oct_tree_is_list(oct_tree_member(m, "vocab"))  ? "Unigram"
               : oct_tree_member(m, "max_input_chars_per_word") ? "WordPiece"
                                                                : "WordLevel";
    t->model = (oct_token_model){ .arena = t->arena, .unk = -1, .prefix = "", .suffix = "" };
    for (size_t i = 0; i < OCT_COUNT(models); i++)
        if (strcmp(kind, models[i].kind) == 0)
            return models[i].read(m, &t->model, err);
    return oct_fail(err, OCT_EUNSUPPORTED, "the model '%.40s' is not known here", kind);
}

static oct_status read_all(oct_tokenizer *t, oct_tree *root, oct_err *err)
{
    const oct_tree *cut = oct_tree_member(root, "truncation"), *pad = oct_tree_member(root, "padding");
    int64_t longest;
    t->normalizers.arena = t->splitters.arena = t->arena;
    if (!oct_tree_is_object(oct_tree_member(root, "model")))
        return oct_fail(err, OCT_EMALFORMED, "no model: it is not a tokenizer.json");
    OCT_TRY(oct_normalizers_read(oct_tree_member(root, "normalizer"), &t->normalizers, err));
    OCT_TRY(oct_splitters_read(oct_tree_member(root, "pre_tokenizer"), &t->splitters, err));
    OCT_TRY(read_model(t, oct_tree_member(root, "model"), err));
    OCT_TRY(read_added(t, oct_tree_member(root, "added_tokens"), false, &t->raw, err));
    OCT_TRY(read_added(t, oct_tree_member(root, "added_tokens"), true, &t->normal, err));
    OCT_TRY(read_frames(t, oct_tree_member(root, "post_processor"), 0, err));
    OCT_TRY(complete_frames(t, err));
    if (oct_tree_whole(oct_tree_member(cut, "max_length"), &longest))
        t->longest = (size_t)longest;
    t->cut_left = strcmp(oct_tree_word(cut, "direction"), "Left") == 0;
    oct_tree_whole(oct_tree_member(pad, "pad_id"), &t->pad);
    return OCT_OK;
}

/* Words may have U+0000; patterns and the names of special tokens would be cut there. */
static oct_status check_nul(oct_tree *root, oct_err *err)
{
    static const char *const words[] = { "model", "added_tokens", "decoder", "vocab", "merges" };
    oct_tree *const level[] = { root, oct_tree_member(root, "model") };
    const char *name;
    oct_tree *member;
    for (size_t k = 0; k < OCT_COUNT(level); k++)
        for (void *at = NULL; oct_tree_is_object(level[k]) && oct_tree_next(level[k], &at, &name, &member);) {
            bool skip = false;
            for (size_t i = 0; i < OCT_COUNT(words); i++)
                skip |= strcmp(name, words[i]) == 0;
            if (!skip && oct_nul_within(member))
                return oct_fail(err, OCT_EUNSUPPORTED, "'%s' has the character U+0000, which only words may have",
                                name);
        }
    return OCT_OK;
}

static oct_status parse(const oct_map *map, const char *path, oct_tree **root, oct_err *err)
{
    oct_buf marked = OCT_BUF_INIT;
    oct_status s = oct_nul_mark((const char *)map->data, map->size, &marked, err);
    if (s == OCT_OK)
        s = marked.len ? oct_tree_parse(marked.data, marked.len, path, root, err)
                       : oct_tree_parse((const char *)map->data, map->size, path, root, err);
    if (s == OCT_OK && marked.len && (s = check_nul(*root, err)) != OCT_OK)
        oct_within(err, "%s", path);
    oct_buf_free(&marked);
    return s;
}

oct_status oct_tokenizer_open(const char *path, oct_tokenizer **to, oct_err *err)
{
    oct_map map;
    oct_tree *root = NULL;
    OCT_TRY(oct_map_open(&map, path, err));
    oct_tokenizer *t = oct_calloc(1, sizeof *t);
    oct_status s = t && (t->arena = oct_arena_create()) ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK) {
        t->pad = -1;
        s = map.size > MAX_FILE ? oct_fail(err, OCT_EUNSUPPORTED, "%s: a tokenizer of %zu bytes, at most %d are read",
                                           path, map.size, MAX_FILE)
                                : parse(&map, path, &root, err);
    }
    if (s == OCT_OK && (s = read_all(t, root, err)) != OCT_OK)
        oct_within(err, "%s", path);
    oct_tree_free(root);
    oct_map_close(&map);
    if (s == OCT_OK)
        *to = t;
    else
        oct_tokenizer_close(t);
    return s;
}
