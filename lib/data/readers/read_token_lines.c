/* lib/data/readers/read_token_lines.c -- reader: a sample a line: JSON with a list for each input, token ids alone, or,
 * with a tokenizer, a text. Of other models, JSON with a value for each input. */
#include "data/text/json_values.h"
#include "data/text/token_rows.h"

#include "base/io.h"
#include "base/json_tree.h"
#include "base/mem.h"
#include "data/text/text_rows.h"

#include <math.h>
#include <string.h>

enum { MAX_LINE = 4 << 20 }; /* bytes; a tree of JSON takes about thirty times as many */

typedef struct lines {
    const oct_feed_ctx *ctx;
    oct_map map;
    bool values; /* the lines hold values (json_values.h), not token ids */
    size_t ids;  /* the input that takes them */
    size_t at, forgotten;
    int64_t line;             /* the number of the last line that was read, from 1 */
    oct_tokenizer *tokenizer; /* NULL: lines are ids */
    bool plain;               /* lines are texts, not JSON */
} lines;

static void lines_close(void *self)
{
    if (!self)
        return;
    oct_map_close(&((lines *)self)->map);
    oct_tokenizer_close(((lines *)self)->tokenizer);
    oct_free(self);
}

static bool is_blank(const char *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r", t[i]) || t[i] == 0)
            return false;
    return true;
}

/* The next line that is not blank. *number: its number, from 1; it must be 0 at the beginning. */
static bool next_line(const oct_map *m, size_t *at, const char **line, size_t *n, int64_t *number)
{
    const char *text = (const char *)m->data;
    if (*at == 0 && m->size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        *at = 3;
    while (*at < m->size) {
        const char *end = memchr(text + *at, '\n', m->size - *at);
        *line = text + *at;
        *n = (end ? (size_t)(end - text) : m->size) - *at;
        *at += *n + (end != NULL);
        ++*number;
        if (!is_blank(*line, *n))
            return true;
    }
    return false;
}

/* Whether the first line that is not blank is a JSON object. */
static bool begins_object(const oct_map *m)
{
    const char *line;
    size_t at = 0, n;
    int64_t number = 0;
    if (!next_line(m, &at, &line, &n, &number))
        return false;
    while (*line == ' ' || *line == '\t')
        line++;
    return *line == '{';
}

static oct_status lines_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    lines *r = oct_calloc(1, sizeof *r);
    if (!r)
        return oct_nomem(err);
    r->ctx = ctx;
    oct_status s = oct_map_open(&r->map, path, err);
    if (s == OCT_OK && (s = oct_token_input(ctx, &r->ids, err)) != OCT_OK) {
        r->values = s == OCT_EUNSUPPORTED && begins_object(&r->map);
        if (r->values)
            s = OCT_OK;
        else
            oct_within(err, "%s", path);
    }
    if (s == OCT_OK && r->values && err)
        *err = (oct_err)OCT_ERR_INIT;
    if (s == OCT_OK && !r->values && *ctx->steps[r->ids].tokenizer) {
        s = oct_tokenizer_open(ctx->steps[r->ids].tokenizer, &r->tokenizer, err);
        r->plain = oct_has_suffix(path, ".txt");
    }
    if (s == OCT_OK)
        *self = r;
    else
        lines_close(r);
    return s;
}

static int64_t lines_count(void *self)
{
    const lines *r = self;
    const char *line;
    int64_t count = 0, number = 0;
    for (size_t at = 0, n; next_line(&r->map, &at, &line, &n, &number);)
        count++;
    oct_map_forget(r->map.data, r->map.size);
    return count;
}

/* ---- a line ---- */

/* Parses ids separated by blanks and commas, with optional brackets around them. v NULL: only counts them. */
static oct_status read_ids(const char *t, size_t n, int64_t *v, int64_t *count, oct_err *err)
{
    *count = 0;
    for (size_t i = 0; i < n;) {
        if (strchr(" \t\r,[]", t[i]) && t[i]) {
            i++;
            continue;
        }
        const size_t from = i;
        int64_t id = 0;
        for (; i < n && t[i] >= '0' && t[i] <= '9'; i++)
            if (__builtin_mul_overflow(id, 10, &id) || __builtin_add_overflow(id, t[i] - '0', &id))
                return oct_fail(err, OCT_EMALFORMED, "character %zu: a token id of too many digits", from + 1);
        if (i == from || (i < n && (!strchr(" \t\r,]", t[i]) || !t[i]))) {
            oct_fail(err, OCT_EMALFORMED, "character %zu: not a token id", i + 1);
            oct_hint(err, OCT_TOKENIZER_HINT);
            return OCT_EMALFORMED;
        }
        if (v)
            v[*count] = id;
        ++*count;
    }
    return OCT_OK;
}

static oct_status parse_ids(const lines *r, const char *t, size_t n, oct_part *parts, oct_err *err)
{
    int64_t count;
    OCT_TRY(read_ids(t, n, NULL, &count, err));
    OCT_TRY(oct_token_row(r->ctx, r->ids, r->ids, count, &parts[r->ids], err));
    return read_ids(t, n, parts[r->ids].array.data, &count, err);
}

static bool whole(const oct_tree *t, int64_t *v)
{
    double d;
    if (!oct_tree_number(t, &d) || !(fabs(d) <= 0x1p53) || d != floor(d))
        return false;
    *v = (int64_t)d;
    return true;
}

static oct_status parse_list(const lines *r, size_t i, const oct_tree *list, oct_part *part, oct_err *err)
{
    const char *name = r->ctx->inputs[i].name;
    if (!oct_tree_is_list(list))
        return oct_fail(err, OCT_EMALFORMED, "what stands for input '%s' is not a list", name);
    const size_t n = oct_tree_count(list);
    OCT_TRY(oct_token_row(r->ctx, r->ids, i, (int64_t)n, part, err));
    for (size_t k = 0; k < n; k++)
        if (!whole(oct_tree_at(list, k), (int64_t *)part->array.data + k)) {
            oct_fail(err, OCT_EMALFORMED, "element %zu (counted from 0) for input '%s' is not a whole number", k, name);
            oct_hint(err, OCT_TOKENIZER_HINT);
            return OCT_EMALFORMED;
        }
    return OCT_OK;
}

/* The member for input i: by its name, its name before a colon, or, for the ids, `input_ids`. */
static const oct_tree *find_member(const lines *r, size_t i, const oct_tree *root)
{
    char name[128];
    const char *input = r->ctx->inputs[i].name;
    const oct_tree *t = oct_tree_member(root, input);
    const size_t n = strcspn(input, ":");
    if (!t && n < sizeof name) {
        memcpy(name, input, n);
        name[n] = 0;
        t = oct_tree_member(root, name);
    }
    return t || i != r->ids ? t : oct_tree_member(root, "input_ids");
}

/* ---- a text ---- */

/* The members `text` and `text_pair`. */
static oct_status parse_texts(const lines *r, const oct_tree *root, oct_item *item, oct_err *err)
{
    oct_tokenizer_text text = { .text = oct_tree_text(oct_tree_member(root, "text")),
                                .pair = oct_tree_text(oct_tree_member(root, "text_pair")) };
    if (!text.text) {
        oct_fail(err, OCT_EMALFORMED, "no 'text' for the tokenizer");
        oct_hint(
            err,
            "a line is {\"text\": \"...\"}, with \"text_pair\" and \"label\" where there are any; in a .txt it is the text alone");
        return OCT_EMALFORMED;
    }
    text.n = strlen(text.text);
    text.n_pair = text.pair ? strlen(text.pair) : 0;
    return oct_text_rows(r->ctx, r->ids, r->tokenizer, &text, item->parts, err);
}

static oct_status parse_object(const lines *r, const char *t, size_t n, oct_item *item, oct_err *err)
{
    oct_tree *root;
    int64_t label;
    OCT_TRY(oct_tree_parse(t, n, "JSON", &root, err));
    oct_status s = OCT_OK;
    for (size_t i = 0; s == OCT_OK && i < r->ctx->n; i++) {
        const oct_tree *list = find_member(r, i, root);
        if (list)
            s = parse_list(r, i, list, &item->parts[i], err);
    }
    if (s == OCT_OK && r->tokenizer && item->parts[r->ids].kind == OCT_PART_NONE)
        s = parse_texts(r, root, item, err);
    if (whole(oct_tree_member(root, "label"), &label) && label >= -1)
        item->label = label;
    oct_tree_free(root);
    return s;
}

static oct_status parse_line(const lines *r, const char *t, size_t n, oct_item *item, oct_err *err)
{
    if (n > MAX_LINE) {
        oct_fail(err, OCT_EMALFORMED, "a line of %zu bytes, at most %d are read", n, MAX_LINE);
        oct_hint(err, "a line is one sample; a long stream of ids goes into a .bin file, which is cut into samples");
        return OCT_EMALFORMED;
    }
    if (r->values)
        return oct_json_values(r->ctx, t, n, item, err);
    const size_t blank = strspn(t, " \t");
    if (r->plain)
        OCT_TRY(oct_text_rows(r->ctx, r->ids, r->tokenizer,
                              &(oct_tokenizer_text){ .text = t, .n = n - (n > 0 && t[n - 1] == '\r') }, item->parts,
                              err));
    else
        OCT_TRY(t[blank] == '{' ? parse_object(r, t, n, item, err) : parse_ids(r, t, n, item->parts, err));
    return oct_token_complete(r->ctx, r->ids, item->parts, err);
}

static oct_status lines_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    lines *r = self;
    const char *line;
    size_t n;
    if (!next_line(&r->map, &r->at, &line, &n, &r->line)) {
        *end = true;
        return OCT_OK;
    }
    if (!(item->name = oct_strprintf("%s:%lld", r->map.path, (long long)r->line)))
        return oct_nomem(err);
    oct_status s = want ? parse_line(r, line, n, item, err) : OCT_OK;
    if (s != OCT_OK)
        oct_within(err, "%s", item->name);
    if (r->at - r->forgotten > MAX_LINE) {
        oct_map_forget(r->map.data + r->forgotten, r->at - r->forgotten);
        r->forgotten = r->at;
    }
    return s;
}

static oct_status lines_rewind(void *self, oct_err *err)
{
    lines *r = self;
    r->at = r->forgotten = 0;
    r->line = 0;
    return OCT_OK;
}

static bool lines_claims(const char *path, bool is_folder)
{
    return !is_folder &&
           (oct_has_suffix(path, ".jsonl") || oct_has_suffix(path, ".ndjson") || oct_has_suffix(path, ".txt"));
}

/* A sample a line. */
const oct_reader oct_read_token_lines = {
    .claims = lines_claims,
    .open = lines_open,
    .count = lines_count,
    .next = lines_next,
    .rewind = lines_rewind,
    .close = lines_close,
};
