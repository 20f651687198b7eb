/* lib/eval/sets/object_overlaps.h -- how much masks and keypoints of what was found agree with those of the truth.
 * Private to lib/eval. */
#ifndef OCT_EVAL_OBJECT_OVERLAPS_H
#define OCT_EVAL_OBJECT_OVERLAPS_H

#include "eval/sets/match_boxes.h"

/* A sample: its outputs, and how the input lies in the picture. */
typedef struct oct_overlap_case {
    const oct_judging *judging;
    const oct_set_tensor *out;
    size_t n_out;
    double w, h; /* the size of the input */
    double picture_w, picture_h;
    oct_placing placing;
    double unit_x, unit_y; /* pixels of the picture for a unit of the truth's shapes */
} oct_overlap_case;

/* Whether the rule says how such an overlap is computed, and there is a truth. */
bool oct_overlaps_known(const oct_judging *j, oct_matched by);

/* overlap: f64[n_boxes][n_objects], of boxes in pixels of the picture, and objects whose boxes are, too.
 *   OCT_MATCHED_MASKS   intersection over union of masks (for a crowd: over the mask that was found), in pixels of the
 *                       picture. A found mask is the sum of the prototypes by the box's coefficients, interpolated
 *                       bilinearly, where it is above 0 and inside the box
 *   OCT_MATCHED_POINTS  COCO's object keypoint similarity
 * OCT_EUSAGE: outputs that the rule names are missing or do not match each other. OCT_EMALFORMED: an object has no
 * mask, or another number of keypoints. */
oct_status oct_object_overlaps(const oct_overlap_case *c, oct_matched by, const oct_box *boxes, size_t n_boxes,
                               const oct_object *objects, size_t n_objects, double *overlap, oct_err *err);

#endif
