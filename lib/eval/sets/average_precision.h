/* lib/eval/sets/average_precision.h -- metrics of detectors: predicted boxes are matched with objects. */
#ifndef OCT_EVAL_AVERAGE_PRECISION_H
#define OCT_EVAL_AVERAGE_PRECISION_H

#include "eval/sets/classes.h"

/* Objects are those of the truth, in pixels of the picture. Without a truth, they are those boxes of the float model
 * whose score counts for f1. */
extern const oct_set_type oct_set_of_boxes;

/* Average precision at 101 recalls as in COCO, averaged over the classes that have objects: at an overlap of 0.5, and
 * the mean over 0.50, 0.55 ... 0.95. */
double oct_boxes_ap50(const oct_set *s, const double *draws, double *scratch);
double oct_boxes_map(const oct_set *s, const double *draws, double *scratch);
/* The same by the overlap of masks, and by the similarity of keypoints (OKS). NaN: the rule has none. */
double oct_masks_ap50(const oct_set *s, const double *draws, double *scratch);
double oct_masks_map(const oct_set *s, const double *draws, double *scratch);
double oct_keypoints_ap50(const oct_set *s, const double *draws, double *scratch);
double oct_keypoints_map(const oct_set *s, const double *draws, double *scratch);
/* Of all classes together, at an overlap of 0.5. They use boxes whose score is at least the rule's f1-score, or the
 * score with the best F1. */
double oct_boxes_f1(const oct_set *s, const double *draws, double *scratch);
double oct_boxes_precision(const oct_set *s, const double *draws, double *scratch);
double oct_boxes_recall(const oct_set *s, const double *draws, double *scratch);

/* AP50 beside precision, recall and f1 at the score of oct_boxes_f1; of objects that are no crowds. In arena. */
oct_status oct_boxes_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err);

#endif
