/* lib/data/sound/sound.h -- a recording, cut into windows as the preprocessing steps ask. Private to lib/data.
 *
 * Window k of a recording holds the samples k * hop - lead to k * hop - lead + frame - 1 at the wanted rate, and zeros
 * outside the recording. The number of windows is the smallest that covers the last sample. Without frame= the whole
 * recording is one window. */
#ifndef OCT_DATA_SOUND_H
#define OCT_DATA_SOUND_H

#include "data/readers/readers.h"
#include "data/sound/resample.h"

typedef struct oct_sound oct_sound;

/* Window k as a part with the rank of the input. Time is its last dimension, or the last but one if the last dimension
 * has size 1. With log-mel=, fbank= or mfcc= it holds features of the window's frames, [frames][features] or the other
 * way round as the input's dimensions say; an input of fixed time takes so many, of a window that ends early or is
 * followed by silence. OCT_EMALFORMED if there is no whole frame. */
oct_status oct_sound_window(const oct_sound *s, int64_t k, oct_part *part, oct_err *err);

/* The recordings of one sample, one for each input, and the index of the next window. */
typedef struct oct_sounds {
    const oct_feed_ctx *ctx;
    oct_sound **sound;       /* [ctx->n], NULL where an input has none */
    oct_resampler *filter;   /* [ctx->n] */
    int64_t windows, window; /* windows 0: none is open */
} oct_sounds;

oct_status oct_sounds_init(oct_sounds *s, const oct_feed_ctx *ctx, oct_err *err);
void oct_sounds_free(oct_sounds *s);  /* zeroed ones allowed */
void oct_sounds_close(oct_sounds *s); /* the recordings; filters stay */
/* Whether recordings are cut into windows, so that they must be opened to count samples. */
bool oct_sounds_cut(const oct_sounds *s);
/* Opens one more, from a file or from bytes as above. OCT_EMALFORMED also if its number of windows differs from that of
 * the others. */
oct_status oct_sounds_open(oct_sounds *s, size_t input, const char *path, oct_err *err);
oct_status oct_sounds_take(oct_sounds *s, size_t input, oct_array *bytes, const char *name, oct_err *err);
/* To be called after each window: steps to the next one. At the end it closes the recordings and returns false. */
bool oct_sounds_advance(oct_sounds *s);

#endif
