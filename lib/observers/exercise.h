/* lib/observers/exercise.h -- whether the samples behind a table exercise the model: a range is only as good as what was seen. */
#ifndef OCT_OBSERVERS_EXERCISE_H
#define OCT_OBSERVERS_EXERCISE_H

#include "base/buf.h"
#include "observers/calib.h"

typedef struct oct_exercise {
    size_t layers, still;   /* tensors with moments of at least 8 channels; those of them where most channels have one value in all samples */
    const char *stillest;   /* the one of these with the largest share; borrowed from the table */
    size_t still_channels, channels; /* its own */
    size_t ranges, unmoved; /* tensors with a range; those that do not move over two samples or more: the same extremes, as often, in each */
} oct_exercise;

oct_exercise oct_calib_exercise(const oct_calib *c);

/* What is wrong with it, in one sentence; nothing is added when all is well. Channels may be still
 * because the model is so, and a clamp may hold a range in place, so it takes most channels of a layer, and most ranges of a model. */
void oct_exercise_tell(const oct_exercise *x, oct_buf *b);

#endif
