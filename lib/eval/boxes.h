/* lib/eval/boxes.h -- boxes from a detector's outputs, by a rule. Private to lib/eval. */
#ifndef OCT_EVAL_BOXES_H
#define OCT_EVAL_BOXES_H

#include "eval/judging.h"

typedef struct oct_box {
    double x1, y1, x2, y2; /* pixels of the model's input */
    double score;
    int64_t class_place;
    size_t row;            /* where it stands in the outputs */
} oct_box;

typedef struct oct_boxes {
    oct_box *v;
    size_t n, cap;
} oct_boxes;
void oct_boxes_free(oct_boxes *b);

/* The sides of what boxes are relative to: the input that took the sample's picture. OCT_EUSAGE: none can have been a picture. */
oct_status oct_boxes_input_size(const oct_set_view *v, double *w, double *h, oct_err *err);

/* The boxes of out[n_out], best first, after suppression: b is filled anew. priors: f32[n_priors][4], or NULL. OCT_EUSAGE: outputs that the rule names are
 * not there, or do not belong together. */
oct_status oct_boxes_decode(const oct_judging *j, const oct_set_tensor *out, size_t n_out, double w, double h, const float *priors, size_t n_priors,
                            oct_boxes *b, oct_err *err);

/* Intersection over union; of a crowd, over the box alone. */
double oct_overlap(const oct_box *a, const oct_box *b);
double oct_overlap_crowd(const oct_box *a, const oct_box *crowd);
/* Keeps of b, best first, what no better one (of its class, or any: all) overlaps by more than limit, at most `most` (of a class, or in all). */
void oct_boxes_suppress(oct_boxes *b, double limit, bool all, int64_t most, bool most_of_class);

#endif
