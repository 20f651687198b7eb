/* Parses the text of rules. */
#include "base/words.h"
#include "eval/decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS = 2 * OCT_DECODE_ANCHORS + 2,
    CLASSES = 1 << OCT_SET_CLASSES,
    MAPS = 1 << OCT_SET_MAPS,
    PAIRS = 1 << OCT_SET_PAIRS,
    BOXES = 1 << OCT_SET_BOXES
};

/* A line: its words after the key, and their positions. */
typedef struct line {
    oct_words *w;
    oct_decode *r;
    const char *folder;
    const char *word[WORDS], *at[WORDS];
    int n;
    const char *key, *key_at;
} line;

/* ---- words ---- */

static oct_status read_words(line *l, oct_err *err)
{
    l->n = -1;
    while (!oct_words_done(l->w)) {
        const char *at = l->w->at;
        while (l->w->at < l->w->end && !strchr(" \t\r", *l->w->at))
            l->w->at++;
        char *word = oct_arena_strndup(l->r->arena, at, (size_t)(l->w->at - at));
        if (!word)
            return oct_nomem(err);
        if (l->n >= WORDS)
            return oct_words_fault(l->w, at, err, "there are too many words");
        if (l->n < 0) {
            l->key = word;
            l->key_at = at;
        } else {
            l->word[l->n] = word;
            l->at[l->n] = at;
        }
        l->n++;
    }
    return OCT_OK;
}

static oct_status want_words(const line *l, int least, int most, oct_err *err)
{
    if (l->n > most)
        return oct_words_fault(l->w, l->at[most], err, "the end of the line is expected");
    return l->n >= least ? OCT_OK : oct_words_fault(l->w, l->w->end, err, "the value of %s is missing", l->key);
}

static oct_status read_number(const line *l, int i, double least, double most, double *v, oct_err *err)
{
    char *end;
    *v = strtod(l->word[i], &end);
    if (end != l->word[i] && !*end && !strpbrk(l->word[i], "xX") && *v >= least && *v <= most)
        return OCT_OK;
    return oct_words_fault(l->w, l->at[i], err, "'%.60s' is not a number from %g to %g", l->word[i], least, most);
}

static oct_status one_number(const line *l, double least, double most, double *v, oct_err *err)
{
    OCT_TRY(want_words(l, 1, 1, err));
    return read_number(l, 0, least, most, v, err);
}

static oct_status one_whole(const line *l, double least, double most, int64_t *v, oct_err *err)
{
    double x;
    OCT_TRY(one_number(l, least, most, &x, err));
    *v = (int64_t)x;
    return (double)*v == x ? OCT_OK : oct_words_fault(l->w, l->at[0], err, "'%.60s' is no whole number", l->word[0]);
}

static oct_status one_of(const line *l, const char *const *names, size_t n, size_t *at, oct_err *err)
{
    OCT_TRY(want_words(l, 1, 1, err));
    for (*at = 0; *at < n; ++*at)
        if (strcmp(l->word[0], names[*at]) == 0)
            return OCT_OK;
    return oct_words_unknown(l->w, l->at[0], l->key, l->word[0], names, n, err);
}
#define ONE_OF(l, at, err, ...)                                                                                        \
    one_of(l, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), at, \
           err)

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

/* "[n,85]" */
static oct_status read_pattern(const line *l, int i, oct_decode_output *p, oct_err *err)
{
    const char *s = l->word[i] + 1;
    for (p->rank = 0;; s++) {
        if (p->rank == OCT_DECODE_RANK)
            return oct_words_fault(l->w, l->at[i], err, "a pattern has at most %d dimensions", OCT_DECODE_RANK);
        if (!(s = read_dimension(s, p)))
            break;
        if (*s == ']' && !s[1])
            return OCT_OK;
        if (*s != ',')
            break;
    }
    return oct_words_fault(l->w, l->at[i], err, "'%.60s' is no pattern such as [n,85], [84,n], [*,80] or [9x4,n,n]",
                           l->word[i]);
}

/* "4", "5..", "0..3" */
static bool read_columns(const char *text, oct_decode_output *p)
{
    char *end;
    p->first = p->last = strtoll(text, &end, 10);
    if (end == text || p->first < 0)
        return false;
    if (strncmp(end, "..", 2) != 0)
        return !*end;
    text = end + 2;
    p->last = -1;
    if (!*text)
        return true;
    p->last = strtoll(text, &end, 10);
    return end != text && !*end && p->last >= p->first;
}

static oct_status read_place(const line *l, oct_decode_output *p, oct_err *err)
{
    OCT_TRY(want_words(l, 1, 3, err));
    *p = (oct_decode_output){ .given = true, .last = -1 };
    int i = 0;
    if (l->word[0][0] != '[')
        p->name = l->word[i++];
    if (i < l->n && l->word[i][0] == '[')
        OCT_TRY(read_pattern(l, i++, p, err));
    if (i < l->n && !read_columns(l->word[i++], p))
        return oct_words_fault(l->w, l->at[i - 1], err, "'%.60s' are no columns such as 4, 0..3 or 5..",
                               l->word[i - 1]);
    return i == l->n ? OCT_OK : oct_words_fault(l->w, l->at[i], err, "the end of the line is expected");
}

/* ---- keys ---- */

typedef oct_status (*key_fn)(line *l, oct_err *err);
#define KEY(name) static oct_status key_##name(line *l, oct_err *err)

KEY(judges)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "classes", "maps", "pairs", "boxes"));
    l->r->judges = (oct_set_kind)(OCT_SET_CLASSES + at);
    return OCT_OK;
}

KEY(summary)
{
    (void)err;
    l->n = 0;
    return OCT_OK;
}

KEY(peak)
{
    return one_number(l, 1e-30, 1e30, &l->r->peak, err);
}

KEY(output)
{
    OCT_TRY(read_place(l, &l->r->output, err));
    return l->r->output.boxes
               ? oct_words_fault(l->w, l->at[0], err, "only outputs of boxes have several in one dimension")
               : OCT_OK;
}

KEY(threshold)
{
    l->r->has_threshold = true;
    return one_number(l, -1e30, 1e30, &l->r->threshold, err);
}

KEY(average)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "auto", "macro"));
    l->r->macro = at == 1;
    return OCT_OK;
}

KEY(values)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "auto", "probabilities", "logits"));
    l->r->scores = (oct_decode_scores)at;
    return OCT_OK;
}

KEY(layout)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "nchw", "nhwc"));
    l->r->classes_last = at == 1;
    return OCT_OK;
}

KEY(ignore)
{
    return one_whole(l, -1, 1e6, &l->r->ignore, err);
}

KEY(resize)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "nearest", "bilinear"));
    l->r->bilinear = at == 1;
    return OCT_OK;
}

KEY(pooling)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "none", "mean", "cls"));
    l->r->pooling = (oct_pooling)at;
    return OCT_OK;
}

KEY(boxes)
{
    return read_place(l, &l->r->box.boxes, err);
}

KEY(scores)
{
    return read_place(l, &l->r->box.scores, err);
}

KEY(objectness)
{
    return read_place(l, &l->r->box.objectness, err);
}

KEY(classes)
{
    return read_place(l, &l->r->box.classes, err);
}

KEY(count)
{
    return read_place(l, &l->r->box.count, err);
}

KEY(form)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "xyxy", "yxyx", "xywh", "cxcywh", "ltrb", "grid", "yolo", "deltas"));
    l->r->box.form = (oct_box_form)at;
    return OCT_OK;
}

KEY(unit)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "pixels", "input", "stride"));
    l->r->box.unit = (oct_box_unit)at;
    return OCT_OK;
}

KEY(strides)
{
    OCT_TRY(want_words(l, 1, OCT_DECODE_LEVELS, err));
    for (int i = 0; i < l->n; i++)
        OCT_TRY(read_number(l, i, 1, 4096, &l->r->box.stride[i], err));
    l->r->box.n_strides = l->n;
    return OCT_OK;
}

/* A stride, followed by widths and heights. */
KEY(anchors)
{
    oct_box_rule *b = &l->r->box;
    double stride;
    int at = 0;
    OCT_TRY(want_words(l, 3, WORDS - 1, err));
    OCT_TRY(read_number(l, 0, 1, 4096, &stride, err));
    while (at < b->n_strides && b->stride[at] != stride)
        at++;
    if (at == b->n_strides)
        return oct_words_fault(l->w, l->at[0], err,
                               "%g is none of the strides, which are to stand before their anchors", stride);
    if (l->n % 2 == 0 || l->n - 1 > 2 * OCT_DECODE_ANCHORS)
        return oct_words_fault(l->w, l->at[0], err, "anchors are pairs of width and height, at most %d",
                               OCT_DECODE_ANCHORS);
    if (b->n_anchors && b->n_anchors != (l->n - 1) / 2)
        return oct_words_fault(l->w, l->at[0], err, "another stride has %d anchors", b->n_anchors);
    b->n_anchors = (l->n - 1) / 2;
    for (int i = 1; i < l->n; i++)
        OCT_TRY(read_number(l, i, 1e-3, 1e6, &b->anchor[at][i - 1], err));
    return OCT_OK;
}

KEY(order)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "cell", "anchor"));
    l->r->box.anchor_major = at == 1;
    return OCT_OK;
}

KEY(priors)
{
    OCT_TRY(want_words(l, 1, 1, err));
    l->r->box.priors = l->word[0][0] == '/' ? l->word[0] : oct_arena_printf(l->r->arena, "%s%s", l->folder, l->word[0]);
    return l->r->box.priors ? OCT_OK : oct_nomem(err);
}

KEY(offset)
{
    return one_number(l, -1, 1, &l->r->box.offset, err);
}

KEY(shift)
{
    return one_number(l, -4096, 4096, &l->r->box.shift, err);
}

KEY(variances)
{
    OCT_TRY(want_words(l, 4, 4, err));
    for (int i = 0; i < 4; i++)
        OCT_TRY(read_number(l, i, 1e-6, 1e6, &l->r->box.variance[i], err));
    return OCT_OK;
}

KEY(bins)
{
    int64_t n;
    OCT_TRY(one_whole(l, 2, 1024, &n, err));
    l->r->box.bins = (int)n;
    return OCT_OK;
}

KEY(activation)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "none", "sigmoid", "softmax"));
    l->r->box.activation = (oct_activation)at;
    return OCT_OK;
}

KEY(background)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "none", "first", "last"));
    l->r->box.background = at == 2 ? -1 : (int)at;
    return OCT_OK;
}

KEY(first_class)
{
    return one_whole(l, 0, 1e6, &l->r->box.first_class, err);
}

KEY(ids)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "place", "category"));
    l->r->box.ids = at == 1;
    return OCT_OK;
}

KEY(labels)
{
    size_t at;
    OCT_TRY(ONE_OF(l, &at, err, "each", "best"));
    l->r->box.best_alone = at == 1;
    return OCT_OK;
}

KEY(score)
{
    return one_number(l, 0, 1, &l->r->box.score, err);
}

/* "none", or an overlap, which "class" or "all" may follow. */
KEY(nms)
{
    oct_box_rule *b = &l->r->box;
    OCT_TRY(want_words(l, 1, 2, err));
    b->nms = 2;
    if (l->n == 1 && strcmp(l->word[0], "none") == 0)
        return OCT_OK;
    OCT_TRY(read_number(l, 0, 0, 1, &b->nms, err));
    b->nms_all = l->n == 2 && strcmp(l->word[1], "all") == 0;
    if (l->n == 2 && !b->nms_all && strcmp(l->word[1], "class") != 0)
        return oct_words_fault(l->w, l->at[1], err, "'%.60s' is neither class nor all", l->word[1]);
    return OCT_OK;
}

KEY(most)
{
    oct_box_rule *b = &l->r->box;
    double n;
    OCT_TRY(want_words(l, 1, 2, err));
    OCT_TRY(read_number(l, 0, 1, 1e6, &n, err));
    b->most = (int64_t)n;
    b->most_of_class = l->n == 2 && strcmp(l->word[1], "class") == 0;
    if (l->n == 2 && !b->most_of_class && strcmp(l->word[1], "picture") != 0)
        return oct_words_fault(l->w, l->at[1], err, "'%.60s' is neither class nor picture", l->word[1]);
    return OCT_OK;
}

KEY(f1_score)
{
    if (l->n == 1 && strcmp(l->word[0], "best") == 0) {
        l->r->box.f1_score = -1;
        return OCT_OK;
    }
    return one_number(l, 0, 1, &l->r->box.f1_score, err);
}

static const struct {
    const char *name;
    unsigned kinds; /* the kinds to which it applies; 0: all */
    key_fn read;
} keys[] = {
    { "summary", 0, key_summary },
    { "judges", 0, key_judges },
    { "peak", 0, key_peak },
    { "output", CLASSES | MAPS | PAIRS, key_output },
    { "threshold", CLASSES, key_threshold },
    { "average", CLASSES, key_average },
    { "values", CLASSES, key_values },
    { "layout", MAPS, key_layout },
    { "ignore", MAPS, key_ignore },
    { "resize", MAPS, key_resize },
    { "pooling", PAIRS, key_pooling },
    { "boxes", BOXES, key_boxes },
    { "scores", BOXES, key_scores },
    { "objectness", BOXES, key_objectness },
    { "classes", BOXES, key_classes },
    { "count", BOXES, key_count },
    { "form", BOXES, key_form },
    { "unit", BOXES, key_unit },
    { "strides", BOXES, key_strides },
    { "anchors", BOXES, key_anchors },
    { "order", BOXES, key_order },
    { "priors", BOXES, key_priors },
    { "offset", BOXES, key_offset },
    { "shift", BOXES, key_shift },
    { "variances", BOXES, key_variances },
    { "bins", BOXES, key_bins },
    { "activation", BOXES, key_activation },
    { "background", BOXES, key_background },
    { "first-class", BOXES, key_first_class },
    { "ids", BOXES, key_ids },
    { "labels", BOXES, key_labels },
    { "score", BOXES, key_score },
    { "nms", BOXES, key_nms },
    { "most", BOXES, key_most },
    { "f1-score", BOXES, key_f1_score },
};

static oct_status unknown_key(const line *l, oct_err *err)
{
    const char *names[OCT_COUNT(keys)];
    for (size_t i = 0; i < OCT_COUNT(keys); i++)
        names[i] = keys[i].name;
    return oct_words_unknown(l->w, l->key_at, "key", l->key, names, OCT_COUNT(keys), err);
}

static oct_status read_line(line *l, oct_err *err)
{
    size_t i = 0;
    OCT_TRY(read_words(l, err));
    while (i < OCT_COUNT(keys) && strcmp(keys[i].name, l->key) != 0)
        i++;
    if (i == OCT_COUNT(keys))
        return unknown_key(l, err);
    if (keys[i].kinds && !l->r->judges)
        return oct_words_fault(l->w, l->key_at, err,
                               "what the rule judges is to be said first: judges boxes, classes, maps or pairs");
    if (keys[i].kinds && !(keys[i].kinds >> l->r->judges & 1))
        return oct_words_fault(l->w, l->key_at, err, "'%s' says nothing of what this rule judges", l->key);
    return keys[i].read(l, err);
}

/* ---- the whole ---- */

static bool needs_cells(const oct_box_rule *b)
{
    return b->form == OCT_FORM_LTRB || b->form == OCT_FORM_GRID || b->form == OCT_FORM_YOLO ||
           b->unit == OCT_UNIT_STRIDE;
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
        return refuse(label, "nothing says what the rule judges", "judges boxes, classes, maps or pairs", err);
    if (r->judges != OCT_SET_BOXES)
        return OCT_OK;
    if (!b->boxes.given || !b->scores.given)
        return refuse(label, "boxes need their outputs",
                      "boxes OUTPUT and scores OUTPUT, each a name or a pattern such as [n,4]", err);
    if (needs_cells(b) && !b->n_strides && !b->priors)
        return refuse(label, "boxes against cells need strides", "strides 8 16 32", err);
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
    r->box = (oct_box_rule){
        .offset = 0.5, .variance = { 1, 1, 1, 1 }, .score = 0.05, .nms = 2, .most = 100, .f1_score = -1
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
    oct_words w = { .label = label, .next = text };
    oct_status s = OCT_OK;
    while (s == OCT_OK && oct_words_line(&w))
        if (!oct_words_done(&w))
            s = read_line(&(line){ .w = &w, .r = r, .folder = folder }, err);
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
