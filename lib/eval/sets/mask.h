/* lib/eval/sets/mask.h -- masks of objects in a picture, as COCO's evaluation has them: runs of pixels down the
 * columns, the first of pixels that are not set. Private to lib/eval. */
#ifndef OCT_EVAL_MASK_H
#define OCT_EVAL_MASK_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_MASK_MOST_PIXELS (1 << 28) /* of a picture */

typedef struct oct_mask {
    uint32_t *run; /* [n], alternately of pixels that are not set and that are */
    size_t n, cap;
    uint64_t area; /* how many pixels are set */
} oct_mask;
void oct_mask_free(oct_mask *m);

/* The extent of an object as a truth gives it: polygons, whose union it is, or runs. */
typedef struct oct_object_mask {
    const double *xy;      /* x and y of all corners */
    const size_t *corners; /* [n_polygons] */
    size_t n_polygons;
    const uint32_t *run; /* [n_runs], for a picture of w x h; n_polygons is 0 */
    size_t n_runs;
    int64_t w, h;
} oct_object_mask;

/* The mask of a shape in a picture of w x h, whose coordinates are in units of ux and uy pixels. m is filled anew.
 * Polygons become pixels by the rule of COCO's tools. OCT_EMALFORMED: the runs are of a picture of another size.
 * OCT_EUNSUPPORTED: the picture is too large, or an outline too long. */
oct_status oct_mask_of_object(const oct_object_mask *s, double ux, double uy, int64_t w, int64_t h, oct_mask *m,
                              oct_err *err);

/* Begins a mask anew, and ends the current run at a pixel (counted down the columns): the pixels from there on are set
 * if those before were not. Pixels must ascend. False: memory ran out. */
void oct_mask_begin(oct_mask *m);
bool oct_mask_turn(oct_mask *m, uint64_t *last, uint64_t pixel);

/* Intersection over union; crowd: over the area of a. 0 where nothing is in both. */
double oct_mask_overlap(const oct_mask *a, const oct_mask *b, bool crowd);

/* Reads COCO's text of runs. run: u32[strlen(text)]. False: it is none, or is not of so many pixels. */
bool oct_mask_read_runs(const char *text, uint64_t pixels, uint32_t *run, size_t *n);

#endif
