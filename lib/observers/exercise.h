/* lib/observers/exercise.h -- whether the samples of a table make the model's values vary: a range is only as good as
 * the samples. */
#ifndef OCT_OBSERVERS_EXERCISE_H
#define OCT_OBSERVERS_EXERCISE_H

#include "base/buf.h"
#include "observers/calib.h"

typedef struct oct_exercise {
    size_t layers, still; /* layers: tensors with moments of at least 8 channels; still: those of them in which most
                             channels are constant over all samples */
    const char
        *stillest; /* the name of the tensor with the largest share of constant channels; borrowed from the table */
    size_t still_channels, channels; /* its constant channels, and all of its channels */
    size_t ranges, unmoved; /* ranges: tensors with a range; unmoved: those that have the same extremes, equally often,
                               in each of at least two samples */
} oct_exercise;

oct_exercise oct_calib_exercise(const oct_calib *c);

/* Appends one sentence about what is wrong, or nothing. Channels may be constant because the model makes them so, and a
 * clamp may fix a range. So only most channels of a layer, or most ranges of a model, are a reason. */
void oct_exercise_tell(const oct_exercise *x, oct_buf *b);

/* Appends one sentence where the ranges of a table come from a handful of samples; nothing where their number is not
 * known, as in a table of another tool. */
void oct_exercise_few(const oct_calib *c, oct_buf *b);

#endif
