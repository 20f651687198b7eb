/* lib/data/pictures/placing.h -- where the steps of preprocessing put a picture in a model's input, and so where boxes
 * of the input lie in the picture. */
#ifndef OCT_DATA_PLACING_H
#define OCT_DATA_PLACING_H

#include "data/pictures/preprocess.h"

/* Sizes that the steps give a picture of w x h: by precrop, by letterbox, and by resize=. */
void oct_precrop_size(const oct_steps *s, int w, int h, int *pw, int *ph);
void oct_letter_size(const oct_steps *s, int w, int h, int *lw, int *lh);
void oct_resize_size(const oct_steps *s, int w, int h, int *rw, int *rh);
/* Where a centre crop begins. Of an odd margin, the first side gets the smaller half, like (size - crop) // 2 in common
 * scripts. */
int oct_centre_of(int size, int crop);

/* A point (x, y) of the picture, in pixels from its upper left corner, lies at (x * sx + tx, y * sy + ty) in the
 * input. */
typedef struct oct_placing {
    double sx, sy, tx, ty;
} oct_placing;
/* Of a picture of w x h that the steps fit. */
oct_placing oct_placing_of(const oct_steps *s, int w, int h);

#endif
