/* Objects from a folder of text files as used for training YOLO: each line is an object, with class, centre and size as
 * shares of the picture. */
#include "eval/truth_int.h"

#include "base/io.h"
#include "base/words.h"
#include "data/list.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_TEXT = 1 << 24, NUMBERS = 5 };

static oct_status read_numbers(oct_words *w, double v[NUMBERS], oct_err *err)
{
    for (int i = 0; i < NUMBERS; i++) {
        const bool none = oct_words_done(w);
        const char *at = w->at;
        char *end;
        v[i] = none ? NAN : strtod(at, &end);
        if (none || end == at || end > w->end || !isfinite(v[i]))
            return oct_words_fault(
                w, at, err,
                "class, centre x, centre y, width and height are expected, numbers of 0 to 1 but for the class");
        w->at = end;
    }
    if (v[0] < 0 || v[0] > 1e6 || v[0] != floor(v[0]))
        return oct_words_fault(w, w->line, err, "the class is no whole number from 0 on");
    return OCT_OK;
}

static oct_status read_text(oct_truth *t, size_t *cap, const char *path, oct_err *err)
{
    char *text;
    double v[NUMBERS];
    OCT_TRY(oct_read_text(path, MOST_TEXT, "a list of objects", &text, err));
    oct_words w = { .label = path, .next = text };
    oct_status s = OCT_OK;
    while (s == OCT_OK && oct_words_line(&w)) {
        if (oct_words_done(&w))
            continue;
        if ((s = read_numbers(&w, v, err)) != OCT_OK)
            break;
        if (!OCT_GROW(t->arena, t->object, t->n_objects, *cap)) {
            s = oct_nomem(err);
            break;
        }
        t->object[t->n_objects++] =
            (oct_object){ (int64_t)v[0], v[1] - v[3] / 2, v[2] - v[4] / 2, v[1] + v[3] / 2, v[2] + v[4] / 2, false };
        if ((size_t)v[0] >= t->n_classes)
            t->n_classes = (size_t)v[0] + 1;
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
