/* lib/eval/sets/boxes.h -- computes boxes from a detector's outputs by a rule. Private to lib/eval. */
#ifndef OCT_EVAL_BOXES_H
#define OCT_EVAL_BOXES_H

#include "eval/sets/judging.h"

typedef struct oct_box {
    double x1, y1, x2, y2; /* pixels of the model's input */
    double score;
    int64_t class_place;
    size_t row; /* the position of the box in the outputs */
} oct_box;

typedef struct oct_boxes {
    oct_box *v;
    size_t n, cap;
} oct_boxes;
void oct_boxes_free(oct_boxes *b);

/* The width and height to which boxes refer: those of the input that took the sample's picture. OCT_EUSAGE: no input
 * can have taken a picture. */
oct_status oct_boxes_input_size(const oct_set_view *v, double *w, double *h, oct_err *err);

/* The boxes in out[n_out], best first, after suppression. b is filled anew. priors: f32[n_priors][4], or NULL.
 * OCT_EUSAGE: outputs that the rule names are missing, or do not match each other. */
oct_status oct_boxes_decode(const oct_judging *j, const oct_set_tensor *out, size_t n_out, double w, double h,
                            const float *priors, size_t n_priors, oct_boxes *b, oct_err *err);

/* The columns that the rule names beside the box, in the rows of boxes[n_boxes]: *v is f64[n_boxes][*columns], to be
 * released with oct_free. what: their name in messages. */
oct_status oct_boxes_columns(const oct_decode_output *o, const char *what, const oct_set_tensor *out, size_t n_out,
                             const oct_box *boxes, size_t n_boxes, double **v, size_t *columns, oct_err *err);

/* Intersection over union. For a crowd: intersection over the area of the box. */
double oct_overlap(const oct_box *a, const oct_box *b);
double oct_overlap_crowd(const oct_box *a, const oct_box *crowd);
/* Non-maximum suppression of b, which is sorted best first: removes a box if a better one (of the same class; all: of
 * any class) overlaps it by more than limit. Keeps at most `most` boxes (for each class, or in all). */
void oct_boxes_suppress(oct_boxes *b, double limit, bool all, int64_t most, bool most_of_class);

#endif
