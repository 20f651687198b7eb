/* lib/eval/maps.h -- a class for each pixel, against maps of what is true. */
#ifndef OCT_EVAL_MAPS_H
#define OCT_EVAL_MAPS_H

#include "eval/classes.h"

/* Of each picture the pixels of each class are counted: found rightly, found where it is not, not found where it is. Pixels of the truth whose class
 * is the rule's `ignore` do not count, nor do those that preprocessing cut off. */
extern const oct_set_type oct_set_of_maps;

/* Intersection over union of the pixels of a class, over all samples; the mean over the classes that are there or were found. */
/* IoU beside the others, of pixels; in arena. */
oct_status oct_maps_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err);
double oct_maps_miou(const oct_set *s, const double *draws, double *scratch);

#endif
