/* lib/eval/truth_int.h -- within lib/eval: what truths of every kind are made of. */
#ifndef OCT_EVAL_TRUTH_INT_H
#define OCT_EVAL_TRUTH_INT_H

#include "base/mem.h"
#include "data/list.h"
#include "eval/truth.h"

/* A sample that the truth names: by its path, or by its position. */
typedef struct oct_truth_named {
    const char *path, *base; /* NULL: by position */
    int64_t index;
    size_t first, count;     /* of boxes: its objects */
} oct_truth_named;

struct oct_truth {
    oct_arena *arena;
    const char *path;
    oct_set_kind kind;
    oct_truth_named *name;   /* sorted by base and path, or by index */
    size_t n_names;
    bool by_index;
    /* boxes */
    oct_object *object;      /* grouped by name */
    size_t n_objects;
    int64_t *id;             /* category ids by place; NULL: places are the numbers themselves */
    size_t n_classes;
    bool all;                /* what is not named has no objects */
    bool in_shares;          /* boxes are shares of the picture */
    bool by_stem;            /* names are the samples' but for what follows the last dot */
    /* pairs */
    oct_truth_pair *pair;
    size_t n_pairs;
    bool consecutive;
    /* maps */
    oct_array maps;          /* [N,H,W], or none */
};

/* Sorts the names; afterwards oct_truth_find can be asked. */
void oct_truth_sort(oct_truth *t);
/* The named sample that this one is: of the same path, or else alone with its last component. NULL: none. */
const oct_truth_named *oct_truth_find(const oct_truth *t, const char *name, int64_t index);

/* truth_boxes.c */
oct_status oct_truth_read_coco(oct_truth *t, const char *text, size_t size, oct_err *err);
/* Of a CSV whose header has x1. */
oct_status oct_truth_read_boxes(oct_truth *t, const char *text, size_t size, oct_err *err);
/* truth_yolo.c */
oct_status oct_truth_read_yolo(oct_truth *t, const oct_names *names, oct_err *err);
/* truth_maps.c */
oct_status oct_truth_read_maps(oct_truth *t, const oct_names *names, oct_err *err);

#endif
