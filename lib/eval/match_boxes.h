/* lib/eval/match_boxes.h -- which boxes meet which objects, as COCO's evaluation has it. Private to lib/eval. */
#ifndef OCT_EVAL_MATCH_BOXES_H
#define OCT_EVAL_MATCH_BOXES_H

#include "eval/boxes.h"

enum { OCT_OVERLAPS = 10 }; /* 0.50, 0.55 ... 0.95 */

/* Bit t of hit: the box has an object of its own at the t-th overlap; of ignored: it lies on a crowd, and counts neither way. */
typedef struct oct_match {
    uint16_t hit, ignored;
} oct_match;

/* boxes[n_boxes], best first, and objects[n_objects] are of one class of one picture; match[n_boxes] is filled. A box takes the free object that it overlaps most, a better box first; crowds come after all others and are
 * never used up. OCT_ENOMEM. */
oct_status oct_match_boxes(const oct_box *boxes, size_t n_boxes, const oct_object *objects, size_t n_objects, oct_match *match, oct_err *err);

#endif
