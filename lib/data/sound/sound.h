/* lib/data/sound/sound.h -- a recording, cut into windows as the steps say. Private to lib/data.
 *
 * Of a recording that has n samples at the wanted rate, window k holds the samples k * hop - lead to k * hop - lead +
 * frame - 1, zeros where there are none. There are as many windows as it takes for the last sample to lie in one.
 * Without frame= the whole recording is one window. */
#ifndef OCT_DATA_SOUND_H
#define OCT_DATA_SOUND_H

#include "data/readers/readers.h"
#include "data/sound/resample.h"

typedef struct oct_sound oct_sound;

/* Opens the file, or takes bytes (a member of an archive; their owner, and empty after it, also on failure). *filter,
 * zeroed at first, keeps the last filter for recordings of the same rate; it must outlive the recording. name is for
 * messages. in and s must outlive it too. OCT_EMALFORMED also where there are no samples or no such channel. */
oct_status oct_sound_open(const char *path, const oct_input_desc *in, const oct_steps *s, oct_resampler *filter,
                          oct_sound **out, oct_err *err);
oct_status oct_sound_take(oct_array *bytes, const char *name, const oct_input_desc *in, const oct_steps *s,
                          oct_resampler *filter, oct_sound **out, oct_err *err);
void oct_sound_close(oct_sound *s); /* NULL allowed */

int64_t oct_sound_windows(const oct_sound *s); /* 1 or more */
/* Window k as a part in the rank of the input: time is its last dimension, or, before a last dimension of one, the last
 * but one. */
oct_status oct_sound_window(const oct_sound *s, int64_t k, oct_part *part, oct_err *err);

/* The recordings of one sample, an input each, and the window that comes next. */
typedef struct oct_sounds {
    const oct_feed_ctx *ctx;
    oct_sound **sound;       /* [ctx->n], NULL where an input has none */
    oct_resampler *filter;   /* [ctx->n] */
    int64_t windows, window; /* windows 0: none is open */
} oct_sounds;

oct_status oct_sounds_init(oct_sounds *s, const oct_feed_ctx *ctx, oct_err *err);
void oct_sounds_free(oct_sounds *s);  /* zeroed ones allowed */
void oct_sounds_close(oct_sounds *s); /* the recordings; filters stay */
/* Whether recordings are cut, so that their number of samples must be looked for. */
bool oct_sounds_cut(const oct_sounds *s);
/* Opens one more, from a file or from bytes as above. OCT_EMALFORMED also where one has another number of windows than
 * those before. */
oct_status oct_sounds_open(oct_sounds *s, size_t input, const char *path, oct_err *err);
oct_status oct_sounds_take(oct_sounds *s, size_t input, oct_array *bytes, const char *name, oct_err *err);
/* After each window: goes on to the next one, false at the end, where the recordings are closed. */
bool oct_sounds_advance(oct_sounds *s);

#endif
