/* lib/eval/sets/truth.h -- what is true of samples where a class number does not say it: boxes, maps of classes, scores
 * of pairs. */
#ifndef OCT_EVAL_TRUTH_H
#define OCT_EVAL_TRUTH_H

#include "eval/sets/mask.h"
#include "eval/sets/sample_set.h"

typedef struct oct_truth oct_truth;

/* An object. Its box is in pixels of the stored picture. */
typedef struct oct_object {
    int64_t class_place;          /* the position of its class among those of the truth, from 0 */
    double x1, y1, x2, y2;        /* if oct_truth_in_shares: as shares of the picture's size */
    bool crowd;                   /* a crowd: many objects that need not be found */
    const oct_object_mask *shape; /* its extent, in the units of the box; NULL: unknown */
    const double *point;          /* [n_points]: x, y, and above 0 if the keypoint is labelled; NULL: unknown */
    size_t n_points, n_visible;
    bool needs_points; /* its keypoints are to be found */
    double area;       /* in the same units, for keypoints */
} oct_object;

/* What `path` holds, by its name and contents:
 *   .jsonl   a sample a line: an object with labels, a list of numbers, or text
 *   .json    objects as COCO has them (images, annotations, categories)
 *   .csv     with columns file (or sample, a position), class, x1, y1, x2, y2 and perhaps crowd: objects, where a line
 * whose class is empty names a picture without any; with a column score and perhaps a and b (positions): pairs .npy of
 * rank 1: scores of pairs (samples 2 i and 2 i + 1 are pair i); of rank 2: labels of places [N,L]; of rank 3: maps
 * [N,H,W] .npz     its array `scores`, of pairs a folder: of .png or .npy maps by the samples' names, of .txt objects,
 * a line each: class, centre x, centre y, width, height as shares; or class and the corners of its outline point_size:
 * the rule for outputs has keypoints of so many numbers, which stand behind the boxes of .txt; 0: none OCT_EMALFORMED
 * with file and line, OCT_EUNSUPPORTED for JSON in a build without jansson. */
oct_status oct_truth_open(const char *path, int point_size, oct_truth **t, oct_err *err);
void oct_truth_close(oct_truth *t); /* NULL allowed */
/* The kind of the truth: OCT_SET_BOXES, OCT_SET_MAPS or OCT_SET_PAIRS. */
oct_set_kind oct_truth_kind(const oct_truth *t);
const char *oct_truth_path(const oct_truth *t);

/* ---- boxes ---- */

/* The objects of a sample. False: the truth says nothing about it, and it does not count. With a CSV file, a picture
 * that is not named has no objects. */
bool oct_truth_objects(const oct_truth *t, const char *name, int64_t index, const oct_object **o, size_t *n);
bool oct_truth_in_shares(const oct_truth *t);
/* How many classes there are; and the position of a class by its category id (-1: there is none with that id). With a
 * CSV file, category ids are the class numbers. */
size_t oct_truth_classes(const oct_truth *t);
int64_t oct_truth_place(const oct_truth *t, int64_t id);
/* The category id of a place; places without one, and all without a truth (NULL), are the numbers themselves. */
int64_t oct_truth_class_id(const oct_truth *t, int64_t class_place);

/* ---- pairs ---- */

typedef struct oct_truth_pair {
    int64_t a, b; /* positions of the samples in the data */
    double score;
} oct_truth_pair;
const oct_truth_pair *oct_truth_pairs(const oct_truth *t, size_t *n);
/* Whether pair i consists of samples 2 i and 2 i + 1. */
bool oct_truth_consecutive(const oct_truth *t);

/* ---- sequences ---- */

/* Labels of places (below 0: the place does not count), or a text. */
typedef struct oct_truth_sequence {
    const int32_t *label; /* [n] */
    size_t n;
    const char *text; /* NULL: there are labels */
} oct_truth_sequence;
/* That of the sample at a position; NULL: there is none. */
const oct_truth_sequence *oct_truth_sequence_of(const oct_truth *t, int64_t index);

/* ---- maps ---- */

/* Reads the map of a sample: *v is s32[h][w], to be released with oct_free. OCT_EMALFORMED: there is no map. */
oct_status oct_truth_map(const oct_truth *t, const char *name, int64_t index, int32_t **v, int64_t *h, int64_t *w,
                         oct_err *err);

#endif
