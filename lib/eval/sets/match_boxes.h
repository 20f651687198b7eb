/* lib/eval/sets/match_boxes.h -- matches boxes with objects as COCO's evaluation does. Private to lib/eval. */
#ifndef OCT_EVAL_MATCH_BOXES_H
#define OCT_EVAL_MATCH_BOXES_H

#include "eval/sets/boxes.h"

enum { OCT_OVERLAPS = 10 }; /* 0.50, 0.55 ... 0.95 */

/* Bit t of hit: at the t-th overlap, the box is matched with an object of its own. Bit t of ignored: it lies on a
 * crowd, and does not count. */
typedef struct oct_match {
    uint16_t hit, ignored;
} oct_match;

/* What is compared: the boxes, the masks or the keypoints of what was found and of the objects. */
typedef enum oct_matched { OCT_MATCHED_BOXES, OCT_MATCHED_MASKS, OCT_MATCHED_POINTS, OCT_MATCHED_KINDS } oct_matched;

/* Whether an object need not be found: a crowd, or one without keypoints where these are matched. */
bool oct_object_is_ignored(const oct_object *o, oct_matched by);

/* As oct_match_boxes, for overlaps that are known: overlap[n_boxes][n_objects]. */
oct_status oct_match_overlaps(oct_matched by, const double *overlap, size_t n_boxes, const oct_object *objects,
                              size_t n_objects, oct_match *match, oct_err *err);
/* boxes[n_boxes], best first, and objects[n_objects] belong to one class of one picture. match[n_boxes] is filled. Each
 * box, the better ones first, is matched with the free object that it overlaps most. Crowds are considered after all
 * other objects, and can be matched repeatedly. OCT_ENOMEM. */
oct_status oct_match_boxes(const oct_box *boxes, size_t n_boxes, const oct_object *objects, size_t n_objects,
                           oct_match *match, oct_err *err);

#endif
