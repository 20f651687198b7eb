/* Objects from a folder of text files as used for training YOLO: each line is an object, with class, centre and size as
 * shares of the picture. */
#include "eval/sets/truth_int.h"

#include "base/io.h"
#include "base/words.h"
#include "data/readers/list.h"

enum { MOST_TEXT = 1 << 24, MOST_SHARE = 1000000 };

/* What follows the five numbers, such as a score, is not read. */
static oct_status read_object(oct_words *w, oct_object *o, oct_err *err)
{
    double v[4];
    *o = (oct_object){ 0 };
    OCT_TRY(oct_words_whole(w, 0, MOST_CLASS, &o->class_place, err));
    for (int i = 0; i < 4; i++)
        OCT_TRY(oct_words_number(w, -MOST_SHARE, MOST_SHARE, &v[i], err));
    o->x1 = v[0] - v[2] / 2;
    o->y1 = v[1] - v[3] / 2;
    o->x2 = v[0] + v[2] / 2;
    o->y2 = v[1] + v[3] / 2;
    return OCT_OK;
}

static oct_status read_text(oct_truth *t, size_t *cap, const char *path, oct_err *err)
{
    char *text;
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a list of objects", &text, err));
    oct_words w = { .label = path, .next = text };
    oct_status s = OCT_OK;
    while (s == OCT_OK && oct_words_line(&w)) {
        oct_object o;
        if (oct_words_done(&w) || (s = read_object(&w, &o, err)) != OCT_OK)
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
        OCT_TRY(read_text(t, &cap, n->path, err));
        n->count = t->n_objects - n->first;
    }
    oct_truth_sort(t);
    return OCT_OK;
}
