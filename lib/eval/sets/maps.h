/* lib/eval/sets/maps.h -- metrics of a class for each pixel, compared with true maps. */
#ifndef OCT_EVAL_MAPS_H
#define OCT_EVAL_MAPS_H

#include "eval/sets/classes.h"

/* In each picture, the pixels of each class are counted: true positives, false positives and false negatives. Pixels do
 * not count if their true class is the rule's `ignore`, or if preprocessing has cut them off. */
extern const oct_set_type oct_set_of_maps;

/* A row of each class of pixels, with its IoU beside the others; in arena. */
oct_status oct_maps_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err);
/* Intersection over union of the pixels of a class over all samples, averaged over the classes that occur. */
double oct_maps_miou(const oct_set *s, const double *draws, double *scratch);

#endif
