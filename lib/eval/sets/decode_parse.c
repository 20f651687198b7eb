/* Parses the text of rules. */
#include "base/io.h"
#include "base/words.h"
#include "eval/sets/decode.h"

#include <stdlib.h>
#include <string.h>

/* The kinds of sets that a key is for; none: all. */
enum {
    CLASSES = 1 << OCT_SET_CLASSES,
    MAPS = 1 << OCT_SET_MAPS,
    PAIRS = 1 << OCT_SET_PAIRS,
    BOXES = 1 << OCT_SET_BOXES,
    SEQUENCES = 1 << OCT_SET_SEQUENCES,
    RETRIEVAL = 1 << OCT_SET_RETRIEVAL
};

enum { MOST_COLUMNS = 1 << 30 };

/* ---- outputs ---- */

/* A dimension: "n", "*", "85"; or "9x4" or "9x*", which become two. NULL: it is none of these. */
static const char *read_dimension(const char *s, oct_decode_output *p)
{
    char *end;
    int64_t *d = &p->dims[p->rank++];
    if (*s == '*' || *s == 'n') {
        *d = *s == '*' ? OCT_OUTPUT_ANY : OCT_OUTPUT_ROWS;
        return s + 1;
    }
    *d = strtoll(s, &end, 10);
    if (end == s || *d < 1)
        return NULL;
    if (*end != 'x')
        return end;
    if (p->boxes || p->rank == OCT_DECODE_RANK || end[1] == 'n')
        return NULL;
    p->boxes = *d;
    p->joined = p->rank - 1;
    *d = OCT_OUTPUT_ROWS;
    return strchr(end + 1, 'x') ? NULL : read_dimension(end + 1, p);
}

/* "[n,85]", at `at` */
static oct_status read_pattern(const oct_words *w, const char *at, const char *text, oct_decode_output *p, oct_err *err)
{
    const char *s = text + 1;
    for (p->rank = 0;; s++) {
        if (p->rank == OCT_DECODE_RANK)
            return oct_words_fault(w, at, err, "a pattern has at most %d dimensions", OCT_DECODE_RANK);
        if (!(s = read_dimension(s, p)))
            break;
        if (*s == ']' && !s[1])
            return OCT_OK;
        if (*s != ',')
            break;
    }
    return oct_words_fault(w, at, err, "'%.60s' is no pattern such as [n,85], [84,n], [*,80] or [9x4,n,n]", text);
}

/* "4", "5..", "0..3"; "4..-33" and "-32..", where -1 is the last column */
static bool read_columns(const char *text, oct_decode_output *p)
{
    char *end;
    p->first = p->last = strtoll(text, &end, 10);
    if (end == text || p->first < -MOST_COLUMNS || p->first > MOST_COLUMNS)
        return false;
    if (strncmp(end, "..", 2) != 0)
        return !*end;
    text = end + 2;
    p->last = -1;
    if (!*text)
        return true;
    p->last = strtoll(text, &end, 10);
    return end != text && !*end && p->last >= -MOST_COLUMNS && p->last <= MOST_COLUMNS &&
           ((p->first < 0) != (p->last < 0) || p->last >= p->first);
}

/* A name, a pattern, and columns, of which not all need be there. */
static oct_status read_place(oct_words *w, oct_decode_output *p, oct_err *err)
{
    const char *word, *at;
    *p = (oct_decode_output){ .given = true, .last = -1 };
    OCT_TRY(oct_words_next(w, &word, &at, err));
    if (!*word)
        return oct_words_fault(w, at, err, "a name or a pattern of an output is missing, as in [n,85]");
    if (*word != '[') {
        p->name = word;
        OCT_TRY(oct_words_next(w, &word, &at, err));
    }
    if (*word == '[') {
        OCT_TRY(read_pattern(w, at, word, p, err));
        OCT_TRY(oct_words_next(w, &word, &at, err));
    }
    return !*word || read_columns(word, p)
               ? OCT_OK
               : oct_words_fault(w, at, err, "'%.60s' are no columns such as 4, 0..3 or 5..", word);
}

/* ---- keys ---- */

#define KEY(name) static oct_status read_##name(oct_words *w, void *self, oct_err *err)

KEY(output)
{
    oct_decode *r = self;
    oct_words_skip(w);
    const char *at = w->at;
    OCT_TRY(read_place(w, &r->output, err));
    return r->output.boxes ? oct_words_fault(w, at, err, "only outputs of boxes have several in one dimension")
                           : OCT_OK;
}

KEY(threshold)
{
    oct_decode *r = self;
    r->has_threshold = true;
    return oct_words_number(w, -1e30, 1e30, &r->threshold, err);
}

KEY(boxes)
{
    return read_place(w, &((oct_decode *)self)->box.boxes, err);
}

KEY(scores)
{
    return read_place(w, &((oct_decode *)self)->box.scores, err);
}

KEY(objectness)
{
    return read_place(w, &((oct_decode *)self)->box.objectness, err);
}

KEY(classes)
{
    return read_place(w, &((oct_decode *)self)->box.classes, err);
}

KEY(coefficients)
{
    return read_place(w, &((oct_decode *)self)->box.coefficients, err);
}

KEY(prototypes)
{
    return read_place(w, &((oct_decode *)self)->box.prototypes, err);
}

KEY(keypoints)
{
    return read_place(w, &((oct_decode *)self)->box.keypoints, err);
}

KEY(count)
{
    return read_place(w, &((oct_decode *)self)->box.count, err);
}

/* Numbers up to the end of the line, `least` or more. */
static oct_status read_numbers(oct_words *w, int least, int most, double from, double to, double *v, int *n,
                               oct_err *err)
{
    for (*n = 0; *n < least || !oct_words_done(w); ++*n) {
        if (*n == most)
            return oct_words_fault(w, w->at, err, "the end of the line is expected after %d numbers", most);
        OCT_TRY(oct_words_number(w, from, to, &v[*n], err));
    }
    return OCT_OK;
}

KEY(strides)
{
    oct_box_rule *b = &((oct_decode *)self)->box;
    return read_numbers(w, 1, OCT_DECODE_LEVELS, 1, 4096, b->stride, &b->n_strides, err);
}

/* A stride, followed by widths and heights. */
KEY(anchors)
{
    oct_box_rule *b = &((oct_decode *)self)->box;
    double stride;
    int level = 0, n;
    oct_words_skip(w);
    const char *at = w->at;
    OCT_TRY(oct_words_number(w, 1, 4096, &stride, err));
    while (level < b->n_strides && b->stride[level] != stride)
        level++;
    if (level == b->n_strides)
        return oct_words_fault(w, at, err, "%g is none of the strides, which are to stand before their anchors",
                               stride);
    OCT_TRY(read_numbers(w, 2, 2 * OCT_DECODE_ANCHORS, 1e-3, 1e6, b->anchor[level], &n, err));
    if (n % 2)
        return oct_words_fault(w, at, err, "anchors are pairs of width and height");
    if (b->n_anchors && b->n_anchors != n / 2)
        return oct_words_fault(w, at, err, "another stride has %d anchors", b->n_anchors);
    b->n_anchors = n / 2;
    return OCT_OK;
}

KEY(sigmas)
{
    oct_box_rule *b = &((oct_decode *)self)->box;
    return read_numbers(w, 1, OCT_DECODE_POINTS, 1e-6, 1e6, b->sigma, &b->n_sigmas, err);
}

KEY(per_cell)
{
    oct_box_rule *b = &((oct_decode *)self)->box;
    double v[OCT_DECODE_LEVELS];
    OCT_TRY(read_numbers(w, 1, OCT_DECODE_LEVELS, 1, OCT_DECODE_ANCHORS, v, &b->n_per_cell, err));
    for (int i = 0; i < b->n_per_cell; i++)
        b->per_cell[i] = (int)v[i];
    return OCT_OK;
}

/* The words of a line. */
KEY(tags)
{
    enum { MOST_TAGS = 4096 };
    oct_decode *r = self;
    const char **tag = oct_arena_calloc(w->arena, MOST_TAGS, sizeof *tag), *at;
    if (!tag)
        return oct_nomem(err);
    for (r->n_tags = 0; !oct_words_done(w); r->n_tags++) {
        if (r->n_tags == MOST_TAGS)
            return oct_words_fault(w, w->at, err, "there are more than %d tags", MOST_TAGS);
        OCT_TRY(oct_words_next(w, &tag[r->n_tags], &at, err));
    }
    r->tag = tag;
    return r->n_tags ? OCT_OK : oct_words_fault(w, w->at, err, "tags are missing, as in O B-PER I-PER");
}

/* A line as a symbol: the marks that stand for a blank become one. NULL: memory ran out. */
static const char *make_symbol(oct_arena *arena, const char *s, size_t n)
{
    static const char mark[] = "\xe2\x96\x81"; /* as SentencePiece writes it */
    char *to = oct_arena_calloc(arena, n + 1, 1);
    for (size_t i = 0, k = 0; to && i < n; k++) {
        const bool marked = n - i >= 3 && memcmp(s + i, mark, 3) == 0;
        to[k] = marked || s[i] == '|' ? ' ' : s[i];
        i += marked ? 3 : 1;
    }
    return to;
}

static oct_status split_symbols(oct_decode *r, oct_arena *arena, const char *text, oct_err *err)
{
    enum { MOST_SYMBOLS = 1 << 20 };
    const char **symbol = NULL;
    size_t n = 0, cap = 0;
    for (const char *s = text, *end; *s && n < MOST_SYMBOLS; s = end) {
        const size_t len = strcspn(s, "\r\n");
        end = s + len + (s[len] == '\r');
        end += *end == '\n';
        if (!OCT_GROW(arena, symbol, n, cap) || !(symbol[n++] = make_symbol(arena, s, len)))
            return oct_nomem(err);
    }
    r->symbol = symbol;
    r->n_symbols = (int64_t)n;
    return OCT_OK;
}

/* A file with the symbol of a label in each line. */
KEY(symbols)
{
    enum { MOST_TEXT = 1 << 26 };
    oct_decode *r = self;
    const char *at, *path;
    char *text;
    OCT_TRY(oct_words_next(w, &path, &at, err));
    if (!*path)
        return oct_words_fault(w, at, err, "a path is missing");
    path = *path == '/' ? path : oct_arena_printf(w->arena, "%s%s", r->folder, path);
    if (!path)
        return oct_nomem(err);
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a list of symbols", &text, err));
    const oct_status s = split_symbols(r, w->arena, text, err);
    oct_free(text);
    return s;
}

KEY(variances)
{
    int n;
    return read_numbers(w, 4, 4, 1e-6, 1e6, ((oct_decode *)self)->box.variance, &n, err);
}

KEY(priors)
{
    oct_decode *r = self;
    const char *at, *path;
    OCT_TRY(oct_words_next(w, &path, &at, err));
    if (!*path)
        return oct_words_fault(w, at, err, "a path is missing");
    r->box.priors = *path == '/' ? path : oct_arena_printf(w->arena, "%s%s", r->folder, path);
    return r->box.priors ? OCT_OK : oct_nomem(err);
}

/* Whether a word behind the value is `yes`; none, or `no`: it is not. */
static oct_status read_extent(oct_words *w, const char *no, const char *yes, bool *is, oct_err *err)
{
    const char *const words[] = { no, yes };
    size_t i = 0;
    if (!oct_words_done(w))
        OCT_TRY(OCT_WORDS_ONE_OF(w, "extent", words, &i, err));
    *is = i == 1;
    return OCT_OK;
}

/* Whether the rest of the line is this word, which is then taken. */
static bool take_if(oct_words *w, const char *word)
{
    const oct_words before = *w;
    const bool is = oct_word_is(oct_words_take(w), word);
    if (!is)
        *w = before;
    return is;
}

/* "none", or an overlap, which "class" or "all" may follow. */
KEY(nms)
{
    oct_box_rule *b = &((oct_decode *)self)->box;
    b->nms = 2;
    if (take_if(w, "none"))
        return OCT_OK;
    OCT_TRY(oct_words_number(w, 0, 1, &b->nms, err));
    return read_extent(w, "class", "all", &b->nms_all, err);
}

KEY(most)
{
    oct_box_rule *b = &((oct_decode *)self)->box;
    OCT_TRY(oct_words_whole(w, 1, 1e6, &b->most, err));
    return read_extent(w, "picture", "class", &b->most_of_class, err);
}

KEY(f1_score)
{
    oct_box_rule *b = &((oct_decode *)self)->box;
    b->f1_score = -1;
    return take_if(w, "best") ? OCT_OK : oct_words_number(w, 0, 1, &b->f1_score, err);
}

#define ONE_OF(member, ...) OCT_WORDS_CHOICE(oct_decode, member, NULL, __VA_ARGS__)
#define NUMBER(member, least, most) OCT_WORDS_NUMBER(oct_decode, member, least, most)
#define WHOLE(member, least, most) OCT_WORDS_WHOLE(oct_decode, member, least, most)

static const oct_words_key keys[] = {
    { "summary" },
    { "judges", ONE_OF(judges, "classes", "maps", "pairs", "boxes", "sequences", "retrieval"),
      .first = OCT_SET_CLASSES },
    { "peak", NUMBER(peak, 1e-30, 1e30) },
    { "output", .of = CLASSES | MAPS | PAIRS | SEQUENCES | RETRIEVAL, .read = read_output },
    { "threshold", .of = CLASSES, .read = read_threshold },
    { "average", .of = CLASSES, ONE_OF(macro, "auto", "macro") },
    { "values", .of = CLASSES, ONE_OF(scores, "auto", "probabilities", "logits") },
    { "layout", .of = MAPS, ONE_OF(classes_last, "nchw", "nhwc") },
    { "ignore", .of = MAPS, WHOLE(ignore, -1, 1e6) },
    { "resize", .of = MAPS, ONE_OF(bilinear, "nearest", "bilinear") },
    { "tags", .of = SEQUENCES, .read = read_tags },
    { "symbols", .of = SEQUENCES, .read = read_symbols },
    { "alignment", .of = SEQUENCES, ONE_OF(ctc, "places", "ctc") },
    { "blank", .of = SEQUENCES, WHOLE(blank, -1, 1e6) },
    { "end", .of = SEQUENCES, WHOLE(end, -1, 1e6) },
    { "pooling", .of = PAIRS | RETRIEVAL, ONE_OF(pooling, "none", "mean", "cls") },
    { "boxes", .of = BOXES, .read = read_boxes },
    { "scores", .of = BOXES, .read = read_scores },
    { "objectness", .of = BOXES, .read = read_objectness },
    { "classes", .of = BOXES, .read = read_classes },
    { "count", .of = BOXES, .read = read_count },
    { "coefficients", .of = BOXES, .read = read_coefficients },
    { "prototypes", .of = BOXES, .read = read_prototypes },
    { "keypoints", .of = BOXES, .read = read_keypoints },
    { "keypoint-size", .of = BOXES, WHOLE(box.point_size, 2, 16) },
    { "sigmas", .of = BOXES, .read = read_sigmas },
    { "form", .of = BOXES,
      ONE_OF(box.form, "xyxy", "yxyx", "xywh", "cxcywh", "ltrb", "grid", "yolo", "offsets", "deltas") },
    { "unit", .of = BOXES, ONE_OF(box.unit, "pixels", "input", "stride") },
    { "strides", .of = BOXES, .read = read_strides },
    { "anchors", .of = BOXES, .read = read_anchors },
    { "per-cell", .of = BOXES, .read = read_per_cell },
    { "order", .of = BOXES, ONE_OF(box.anchor_major, "cell", "anchor") },
    { "priors", .of = BOXES, .read = read_priors },
    { "offset", .of = BOXES, NUMBER(box.offset, -1, 1) },
    { "shift", .of = BOXES, NUMBER(box.shift, -4096, 4096) },
    { "variances", .of = BOXES, .read = read_variances },
    { "bins", .of = BOXES, WHOLE(box.bins, 2, 1024) },
    { "activation", .of = BOXES, ONE_OF(box.activation, "none", "sigmoid", "softmax") },
    { "background", .of = BOXES, ONE_OF(box.background, "last", "none", "first"), .first = -1 },
    { "first-class", .of = BOXES, WHOLE(box.first_class, 0, 1e6) },
    { "ids", .of = BOXES, ONE_OF(box.ids, "place", "category") },
    { "labels", .of = BOXES, ONE_OF(box.best_alone, "each", "best") },
    { "score", .of = BOXES, NUMBER(box.score, 0, 1) },
    { "nms", .of = BOXES, .read = read_nms },
    { "most", .of = BOXES, .read = read_most },
    { "f1-score", .of = BOXES, .read = read_f1_score },
};

/* Whether a key says something of what the rule judges. */
static oct_status allow(const oct_words *w, const char *at, const oct_words_key *key, const void *self, oct_err *err)
{
    const oct_decode *r = self;
    if (key->of && !r->judges)
        return oct_words_fault(
            w, at, err,
            "what the rule judges is to be said first: judges boxes, classes, maps, pairs, sequences or retrieval");
    if (key->of && !(key->of >> r->judges & 1))
        return oct_words_fault(w, at, err, "'%s' says nothing of what this rule judges", key->word);
    return OCT_OK;
}

/* ---- the whole ---- */

static bool needs_cells(const oct_box_rule *b)
{
    return b->form == OCT_FORM_LTRB || b->form == OCT_FORM_GRID || b->form == OCT_FORM_YOLO ||
           b->form == OCT_FORM_OFFSETS || b->unit == OCT_UNIT_STRIDE;
}

static oct_status refuse(const char *label, const char *why, const char *hint, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: %s", label, why);
    oct_hint(err, "%s", hint);
    return OCT_EMALFORMED;
}

static oct_status check(const oct_decode *r, const char *label, oct_err *err)
{
    const oct_box_rule *b = &r->box;
    if (!r->judges)
        return refuse(label, "nothing says what the rule judges",
                      "judges boxes, classes, maps, pairs, sequences or retrieval", err);
    if (r->judges != OCT_SET_BOXES)
        return OCT_OK;
    if (!b->boxes.given || !b->scores.given)
        return refuse(label, "boxes need their outputs",
                      "boxes OUTPUT and scores OUTPUT, each a name or a pattern such as [n,4]", err);
    if (b->coefficients.given != b->prototypes.given)
        return refuse(label, "masks need coefficients and prototypes",
                      "coefficients OUTPUT with a column for each prototype, and prototypes [*,*,*]", err);
    if (needs_cells(b) && !b->n_strides && !b->priors)
        return refuse(label, "boxes against cells need strides", "strides 8 16 32", err);
    if (b->n_per_cell && (b->n_anchors || b->n_per_cell != b->n_strides))
        return refuse(label, "rows of a cell are given for each stride, where there are no anchors", "per-cell 2 6",
                      err);
    if (b->form == OCT_FORM_YOLO && !b->n_anchors)
        return refuse(label, "the form yolo needs anchors", "anchors 8 10 13 16 30 33 23, a line for each stride", err);
    for (int i = 0; i < b->n_strides && b->n_anchors; i++)
        if (!(b->anchor[i][0] > 0))
            return refuse(label, "a stride has no anchors", "anchors 8 10 13 16 30 33 23, a line for each stride", err);
    if (b->form == OCT_FORM_DELTAS && !b->priors && !b->n_anchors)
        return refuse(label, "the form deltas needs priors or anchors", "priors FILE.npy, or strides and anchors", err);
    return OCT_OK;
}

void oct_decode_defaults(oct_decode *r)
{
    r->threshold = 0.5;
    r->ignore = 255;
    r->end = -1;
    r->box = (oct_box_rule){
        .offset = 0.5, .variance = { 1, 1, 1, 1 }, .score = 0.05, .nms = 2, .most = 100, .f1_score = -1, .point_size = 3
    };
}

oct_status oct_decode_parse(const char *text, const char *label, const char *folder, oct_decode **out, oct_err *err)
{
    oct_arena *arena = oct_arena_create();
    oct_decode *r = arena ? oct_arena_calloc(arena, 1, sizeof *r) : NULL;
    if (!r) {
        oct_arena_destroy(arena);
        return oct_nomem(err);
    }
    r->arena = arena;
    oct_decode_defaults(r);
    r->folder = folder;
    oct_words w = { .label = label, .next = text, .arena = arena };
    const oct_words_format f = { .key = keys, .n = OCT_COUNT(keys), .again = true, .allow = allow };
    oct_status s = oct_words_read(&w, &f, r, err);
    if (s == OCT_OK)
        s = check(r, label, err);
    if (s != OCT_OK) {
        oct_decode_close(r);
        return s;
    }
    *out = r;
    return OCT_OK;
}

void oct_decode_close(oct_decode *r)
{
    if (r)
        oct_arena_destroy(r->arena);
}
