/* lib/eval/sets/truth_int.h -- internals of lib/eval: the representation of all kinds of truth. */
#ifndef OCT_EVAL_TRUTH_INT_H
#define OCT_EVAL_TRUTH_INT_H

#include "base/mem.h"
#include "data/arrays/csv.h"
#include "data/readers/list.h"
#include "eval/sets/truth.h"

enum { MOST_CLASS = 1000000 };
#define MOST_PLACE 1e15 /* position of a sample */

/* A sample that the truth names, by its path or by its position. */
typedef struct oct_truth_named {
    const char *path, *base; /* NULL: the name is a position */
    int64_t index;
    size_t first, count; /* for boxes: its objects */
} oct_truth_named;

struct oct_truth {
    oct_arena *arena;
    const char *path;
    oct_set_kind kind;
    oct_truth_named *name; /* sorted by base and path, or by index */
    size_t n_names;
    bool by_index;
    /* for boxes: */
    oct_object *object; /* grouped by name */
    size_t n_objects;
    int64_t *id; /* the category id of each class; NULL: classes are numbered themselves */
    size_t n_classes;
    bool all;       /* samples that are not named have no objects */
    bool in_shares; /* boxes are given as shares of the picture's size */
    int point_size; /* how many numbers a keypoint has in lines of text; 0: there are none */
    bool by_stem;   /* names are those of the samples without the extension */
    /* for pairs: */
    oct_truth_pair *pair;
    size_t n_pairs;
    bool consecutive;
    /* for sequences: */
    oct_truth_sequence *sequence;
    size_t n_sequences;
    /* for maps: */
    oct_array maps; /* [N,H,W], or empty */
};

/* Sorts the names. Call it before oct_truth_find. */
void oct_truth_sort(oct_truth *t);
/* The named sample for this sample: the one with the same path, or else the only one with the same last component.
 * NULL: there is none. */
const oct_truth_named *oct_truth_find(const oct_truth *t, const char *name, int64_t index);

/* truth_boxes.c */
oct_status oct_truth_read_coco(oct_truth *t, const char *text, size_t size, oct_err *err);
/* truth_shapes.c: what annotation i says beside the box, which is known already. */
struct json_t;
oct_status oct_truth_read_shapes(oct_truth *t, struct json_t *annotation, size_t i, oct_object *o, oct_err *err);
/* truth_boxes.c
 * Reads boxes from a CSV file whose header has x1. */
oct_status oct_truth_read_boxes(oct_truth *t, oct_csv *c, oct_err *err);
/* truth_yolo.c */
oct_status oct_truth_read_yolo(oct_truth *t, const oct_names *names, oct_err *err);
/* truth_sequences.c: an array [N,L]; lines of JSON, from t->path */
oct_status oct_truth_sequences_of_array(oct_truth *t, const oct_array *a, oct_err *err);
oct_status oct_truth_read_sequences(oct_truth *t, oct_err *err);
/* truth_maps.c */
oct_status oct_truth_read_maps(oct_truth *t, const oct_names *names, oct_err *err);

#endif
