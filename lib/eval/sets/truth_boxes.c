/* Objects in pictures, from COCO's JSON or from a CSV file. */
#include "eval/sets/truth_int.h"

#include "base/json_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- COCO ---- */

typedef struct numbered {
    int64_t id;
    size_t at; /* the position among images or categories in the file */
} numbered;

static int by_id(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static const numbered *find_id(const numbered *v, size_t n, int64_t id)
{
    const numbered key = { .id = id };
    return n ? bsearch(&key, v, n, sizeof *v, by_id) : NULL;
}

static bool whole(const oct_tree *t, int64_t *v)
{
    double x;
    if (!oct_tree_number(t, &x) || !(fabs(x) <= 1e15) || x != floor(x))
        return false;
    *v = (int64_t)x;
    return true;
}

/* The ids of a list's members, in ascending order. */
static oct_status read_ids(const oct_truth *t, oct_tree *list, const char *what, numbered **ids, oct_err *err)
{
    const size_t n = oct_tree_count(list);
    if (!(*ids = oct_arena_calloc(t->arena, n + 1, sizeof **ids)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        (*ids)[i].at = i;
        if (!whole(oct_tree_member(oct_tree_at(list, i), "id"), &(*ids)[i].id))
            return oct_fail(err, OCT_EMALFORMED, "%s: %s[%zu] has no id that is a whole number", t->path, what, i);
    }
    if (n)
        qsort(*ids, n, sizeof **ids, by_id);
    for (size_t i = 1; i < n; i++)
        if ((*ids)[i].id == (*ids)[i - 1].id)
            return oct_fail(err, OCT_EMALFORMED, "%s: %s has the id %lld twice", t->path, what,
                            (long long)(*ids)[i].id);
    return OCT_OK;
}

static oct_status read_images(oct_truth *t, oct_tree *images, oct_err *err)
{
    t->n_names = oct_tree_count(images);
    if (!(t->name = oct_arena_calloc(t->arena, t->n_names + 1, sizeof *t->name)))
        return oct_nomem(err);
    for (size_t i = 0; i < t->n_names; i++) {
        const char *file = oct_tree_text(oct_tree_member(oct_tree_at(images, i), "file_name"));
        if (!file)
            return oct_fail(err, OCT_EMALFORMED, "%s: images[%zu] has no file_name", t->path, i);
        if (!(t->name[i].path = oct_arena_strdup(t->arena, file)))
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status read_object(oct_truth *t, oct_tree *a, size_t i, oct_object *o, oct_err *err)
{
    oct_tree *box = oct_tree_member(a, "bbox");
    double v[4], crowd = 0;
    bool known = oct_tree_count(box) == 4;
    for (size_t k = 0; k < 4 && known; k++)
        known = oct_tree_number(oct_tree_at(box, k), &v[k]) && isfinite(v[k]);
    if (!known)
        return oct_fail(err, OCT_EMALFORMED, "%s: annotations[%zu] has no bbox of four numbers", t->path, i);
    oct_tree_number(oct_tree_member(a, "iscrowd"), &crowd);
    *o = (oct_object){ .x1 = v[0], .y1 = v[1], .x2 = v[0] + v[2], .y2 = v[1] + v[3], .crowd = crowd != 0 };
    return oct_truth_read_shapes(t, a, i, o, err);
}

/* Finds the picture and the class of each annotation, and counts the objects of each picture. */
static oct_status place_objects(oct_truth *t, oct_tree *list, const numbered *image, const numbered *category,
                                size_t *of, oct_err *err)
{
    int64_t id;
    for (size_t i = 0; i < t->n_objects; i++) {
        oct_tree *a = oct_tree_at(list, i);
        const numbered *im = whole(oct_tree_member(a, "image_id"), &id) ? find_id(image, t->n_names, id) : NULL;
        const numbered *c =
            im && whole(oct_tree_member(a, "category_id"), &id) ? find_id(category, t->n_classes, id) : NULL;
        if (!c)
            return oct_fail(err, OCT_EMALFORMED, "%s: annotations[%zu] has an image or a category that does not exist",
                            t->path, i);
        OCT_TRY(read_object(t, a, i, &t->object[i], err));
        t->object[i].class_place = c - category;
        of[i] = im->at;
        t->name[im->at].count++;
    }
    return OCT_OK;
}

/* Places the objects of each picture together, in their order. */
static oct_status group(oct_truth *t, const size_t *of, oct_err *err)
{
    oct_object *sorted = oct_arena_calloc(t->arena, t->n_objects + 1, sizeof *sorted);
    if (!sorted)
        return oct_nomem(err);
    for (size_t i = 0, at = 0; i < t->n_names; i++) {
        t->name[i].first = at;
        at += t->name[i].count;
        t->name[i].count = 0;
    }
    for (size_t i = 0; i < t->n_objects; i++) {
        oct_truth_named *n = &t->name[of[i]];
        sorted[n->first + n->count++] = t->object[i];
    }
    t->object = sorted;
    return OCT_OK;
}

static oct_status read_coco(oct_truth *t, oct_tree *root, oct_err *err)
{
    oct_tree *images = oct_tree_member(root, "images"), *list = oct_tree_member(root, "annotations"),
             *categories = oct_tree_member(root, "categories");
    numbered *image, *category;
    if (!oct_tree_is_list(images) || !oct_tree_is_list(list) || !oct_tree_is_list(categories)) {
        oct_fail(err, OCT_EMALFORMED, "%s: these are not objects in the form of COCO", t->path);
        oct_hint(err, "the lists images, annotations and categories are expected");
        return OCT_EMALFORMED;
    }
    t->kind = OCT_SET_BOXES;
    OCT_TRY(read_images(t, images, err));
    OCT_TRY(read_ids(t, images, "images", &image, err));
    OCT_TRY(read_ids(t, categories, "categories", &category, err));
    t->n_classes = oct_tree_count(categories);
    t->n_objects = oct_tree_count(list);
    t->id = oct_arena_calloc(t->arena, t->n_classes + 1, sizeof *t->id);
    t->object = oct_arena_calloc(t->arena, t->n_objects + 1, sizeof *t->object);
    size_t *of = oct_arena_calloc(t->arena, t->n_objects + 1, sizeof *of);
    if (!t->id || !t->object || !of)
        return oct_nomem(err);
    for (size_t i = 0; i < t->n_classes; i++)
        t->id[i] = category[i].id;
    OCT_TRY(place_objects(t, list, image, category, of, err));
    OCT_TRY(group(t, of, err));
    oct_truth_sort(t);
    return OCT_OK;
}

oct_status oct_truth_read_coco(oct_truth *t, const char *text, size_t size, oct_err *err)
{
    oct_tree *root;
    OCT_TRY(oct_tree_parse(text, size, t->path, &root, err));
    const oct_status s = read_coco(t, root, err);
    oct_tree_free(root);
    return s;
}

/* ---- CSV ---- */

enum { FILE_NAME, SAMPLE, CLASS, X1, Y1, X2, Y2, CROWD, COLUMNS };
static const char *const columns[COLUMNS] = { "file", "sample", "class", "x1", "y1", "x2", "y2", "crowd" };

/* A line: its picture, and an object if it has one. */
typedef struct row {
    oct_truth_named name;
    bool any;
    oct_object o;
    size_t line;
} row;

static oct_status find_columns(const oct_csv *c, int column[COLUMNS], oct_err *err)
{
    for (int k = 0; k < COLUMNS; k++) {
        column[k] = oct_csv_column(c, columns[k]);
        if (column[k] < 0 && k != FILE_NAME && k != SAMPLE && k != CROWD)
            return oct_csv_fault(c, err, "no column '%s'", columns[k]);
    }
    return column[FILE_NAME] >= 0 || column[SAMPLE] >= 0 ? OCT_OK
                                                         : oct_csv_fault(c, err, "no column 'file' or 'sample'");
}

static oct_status read_row(const oct_csv *c, const int column[COLUMNS], row *r, oct_err *err)
{
    double v[COLUMNS] = { 0 };
    *r = (row){ .line = c->line, .any = *c->field[column[CLASS]] };
    if (column[FILE_NAME] >= 0)
        r->name.path = c->field[column[FILE_NAME]];
    else
        OCT_TRY(oct_csv_whole(c, column[SAMPLE], columns[SAMPLE], MOST_PLACE, &r->name.index, err));
    if (!r->any)
        return OCT_OK;
    OCT_TRY(oct_csv_whole(c, column[CLASS], columns[CLASS], MOST_CLASS, &r->o.class_place, err));
    for (int k = X1; k < COLUMNS; k++)
        if (column[k] >= 0 && (k != CROWD || *c->field[column[k]]))
            OCT_TRY(oct_csv_number(c, column[k], columns[k], &v[k], err));
    r->o = (oct_object){
        .class_place = r->o.class_place, .x1 = v[X1], .y1 = v[Y1], .x2 = v[X2], .y2 = v[Y2], .crowd = v[CROWD] != 0
    };
    return OCT_OK;
}

static int by_picture(const void *a, const void *b)
{
    const row *x = a, *y = b;
    const int d = x->name.path ? strcmp(x->name.path, y->name.path)
                               : (x->name.index > y->name.index) - (x->name.index < y->name.index);
    return d ? d : (x->line > y->line) - (x->line < y->line);
}

static bool same_picture(const oct_truth_named *a, const oct_truth_named *b)
{
    return a->path ? strcmp(a->path, b->path) == 0 : a->index == b->index;
}

static oct_status take_rows(oct_truth *t, row *v, size_t n, oct_err *err)
{
    t->name = oct_arena_calloc(t->arena, n + 1, sizeof *t->name);
    t->object = oct_arena_calloc(t->arena, n + 1, sizeof *t->object);
    if (!t->name || !t->object)
        return oct_nomem(err);
    if (n)
        qsort(v, n, sizeof *v, by_picture);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !same_picture(&v[i - 1].name, &v[i].name)) {
            t->name[t->n_names] = v[i].name;
            t->name[t->n_names++].first = t->n_objects;
        }
        if (!v[i].any)
            continue;
        t->object[t->n_objects++] = v[i].o;
        t->name[t->n_names - 1].count++;
        if ((size_t)v[i].o.class_place >= t->n_classes)
            t->n_classes = (size_t)v[i].o.class_place + 1;
    }
    oct_truth_sort(t);
    return OCT_OK;
}

oct_status oct_truth_read_boxes(oct_truth *t, oct_csv *c, oct_err *err)
{
    size_t n = 0, cap = 0;
    row *v = NULL;
    int column[COLUMNS];
    OCT_TRY(find_columns(c, column, err));
    for (;;) {
        bool end;
        OCT_TRY(oct_csv_row(c, &end, err));
        if (end)
            break;
        if (!OCT_GROW(t->arena, v, n, cap))
            return oct_nomem(err);
        OCT_TRY(read_row(c, column, &v[n++], err));
    }
    t->kind = OCT_SET_BOXES;
    t->all = true;
    t->by_index = column[FILE_NAME] < 0;
    return take_rows(t, v, n, err);
}

/* ---- queries ---- */

bool oct_truth_objects(const oct_truth *t, const char *name, int64_t index, const oct_object **o, size_t *n)
{
    const oct_truth_named *hit = oct_truth_find(t, name, index);
    *o = hit ? t->object + hit->first : NULL;
    *n = hit ? hit->count : 0;
    return hit || t->all;
}

bool oct_truth_in_shares(const oct_truth *t)
{
    return t->in_shares;
}

int64_t oct_truth_class_id(const oct_truth *t, int64_t class_place)
{
    return t && t->id && class_place < (int64_t)t->n_classes ? t->id[class_place] : class_place;
}

size_t oct_truth_classes(const oct_truth *t)
{
    return t->n_classes;
}

int64_t oct_truth_place(const oct_truth *t, int64_t id)
{
    if (!t->id)
        return id;
    size_t lo = 0, hi = t->n_classes;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->id[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->n_classes && t->id[lo] == id ? (int64_t)lo : -1;
}
