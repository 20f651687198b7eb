/* Objects from a folder of text files as used for training YOLO: each line is an object, in shares of the picture:
 * class, centre and size; behind these perhaps keypoints; or class and the corners of its outline. */
#include "eval/sets/truth_int.h"

#include "base/io.h"
#include "base/words.h"
#include "data/readers/list.h"

#include <math.h>

enum { MOST_TEXT = 1 << 24, MOST_SHARE = 1000000, BOX = 4, LEAST_OUTLINE = 6 };

/* The share of a box that its object covers, as Ultralytics has it for the similarity of keypoints. */
static const double COVERED = 0.53;

/* The numbers of a line behind its class. */
typedef struct line {
    double *v;
    size_t n, cap;
} line;

static void set_box(const line *l, oct_object *o)
{
    const double *v = l->v;
    o->x1 = v[0] - v[2] / 2;
    o->y1 = v[1] - v[3] / 2;
    o->x2 = v[0] + v[2] / 2;
    o->y2 = v[1] + v[3] / 2;
    o->area = v[2] * v[3] * COVERED;
}

static oct_status set_outline(oct_truth *t, const line *l, oct_object *o, oct_err *err)
{
    oct_object_mask *s = oct_arena_calloc(t->arena, 1, sizeof *s);
    double *xy = oct_arena_calloc(t->arena, l->n, sizeof *xy);
    size_t *corners = oct_arena_calloc(t->arena, 1, sizeof *corners);
    if (!s || !xy || !corners)
        return oct_nomem(err);
    o->x1 = o->y1 = INFINITY;
    o->x2 = o->y2 = -INFINITY;
    for (size_t i = 0; i < l->n; i += 2) {
        xy[i] = l->v[i];
        xy[i + 1] = l->v[i + 1];
        o->x1 = fmin(o->x1, xy[i]);
        o->x2 = fmax(o->x2, xy[i]);
        o->y1 = fmin(o->y1, xy[i + 1]);
        o->y2 = fmax(o->y2, xy[i + 1]);
    }
    *corners = l->n / 2;
    *s = (oct_object_mask){ .xy = xy, .corners = corners, .n_polygons = 1 };
    o->shape = s;
    return OCT_OK;
}

/* Keypoints of two numbers are labelled unless both are 0. */
static oct_status set_points(oct_truth *t, const oct_words *w, const line *l, oct_object *o, oct_err *err)
{
    const size_t size = (size_t)t->point_size, n = (l->n - BOX) / size;
    if ((l->n - BOX) % size)
        return oct_words_fault(w, w->at, err, "behind the box stand %zu numbers, and keypoints have %zu each",
                               l->n - BOX, size);
    double *p = oct_arena_calloc(t->arena, 3 * n + 1, sizeof *p);
    if (!p)
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const double *v = l->v + BOX + i * size;
        p[3 * i] = v[0];
        p[3 * i + 1] = v[1];
        p[3 * i + 2] = size > 2 ? v[2] : v[0] != 0 || v[1] != 0;
        o->n_visible += p[3 * i + 2] > 0;
    }
    o->point = p;
    o->n_points = n;
    o->needs_points = o->n_visible > 0;
    return OCT_OK;
}

static oct_status read_object(oct_truth *t, oct_words *w, line *l, oct_object *o, oct_err *err)
{
    *o = (oct_object){ 0 };
    OCT_TRY(oct_words_whole(w, 0, MOST_CLASS, &o->class_place, err));
    for (l->n = 0; l->n < BOX || !oct_words_done(w); l->n++) {
        if (!OCT_GROW(t->arena, l->v, l->n, l->cap))
            return oct_nomem(err);
        OCT_TRY(oct_words_number(w, -MOST_SHARE, MOST_SHARE, &l->v[l->n], err));
    }
    if (!t->point_size && l->n >= LEAST_OUTLINE && l->n % 2 == 0)
        return set_outline(t, l, o, err);
    set_box(l, o);
    return t->point_size ? set_points(t, w, l, o, err) : OCT_OK; /* else a score may stand behind the box */
}

static oct_status read_text(oct_truth *t, line *l, size_t *cap, const char *path, oct_err *err)
{
    char *text;
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a list of objects", &text, err));
    oct_words w = { .label = path, .next = text };
    oct_status s = OCT_OK;
    while (s == OCT_OK && oct_words_line(&w)) {
        oct_object o;
        if (oct_words_done(&w) || (s = read_object(t, &w, l, &o, err)) != OCT_OK)
            continue;
        if (!OCT_GROW(t->arena, t->object, t->n_objects, *cap)) {
            s = oct_nomem(err);
            break;
        }
        t->object[t->n_objects++] = o;
        if ((size_t)o.class_place >= t->n_classes)
            t->n_classes = (size_t)o.class_place + 1;
    }
    oct_free(text);
    return s;
}

oct_status oct_truth_read_yolo(oct_truth *t, const oct_names *names, oct_err *err)
{
    size_t cap = 0;
    line l = { 0 };
    t->kind = OCT_SET_BOXES;
    t->all = t->in_shares = t->by_stem = true;
    if (!(t->name = oct_arena_calloc(t->arena, names->n + 1, sizeof *t->name)))
        return oct_nomem(err);
    for (size_t i = 0; i < names->n; i++) {
        if (!oct_has_suffix(names->v[i], ".txt"))
            continue;
        oct_truth_named *n = &t->name[t->n_names++];
        *n = (oct_truth_named){ .path = oct_arena_printf(t->arena, "%s/%s", t->path, names->v[i]),
                                .first = t->n_objects };
        if (!n->path)
            return oct_nomem(err);
        OCT_TRY(read_text(t, &l, &cap, n->path, err));
        n->count = t->n_objects - n->first;
    }
    oct_truth_sort(t);
    return OCT_OK;
}
