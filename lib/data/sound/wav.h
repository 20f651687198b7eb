/* lib/data/sound/wav.h -- the samples of a WAV file in memory. Private to lib/data. */
#ifndef OCT_DATA_WAV_H
#define OCT_DATA_WAV_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OCT_WAV_CHANNELS = 256, OCT_WAV_RATE = 1 << 20 }; /* the most that are read */

typedef struct oct_wav {
    int channels;
    int rate;  /* samples a second */
    int width; /* bytes of a number: 1 to 4, for floats 4 or 8 */
    bool real;
    int64_t n;           /* samples of each channel */
    const uint8_t *data; /* [n][channels], little-endian; a view of the bytes that were given */
} oct_wav;

/* Reads the chunks of RIFF or RF64; the bytes must outlive w. Integers of 8 to 32 bits and floats of 32 and 64, with a
 * plain or an extensible header. The length that writers to a pipe leave, which know none, means all that follows.
 * Messages do not name the file. OCT_EMALFORMED no WAV, cut short, or numbers that contradict each other
 * OCT_EUNSUPPORTED compressed samples */
oct_status oct_wav_parse(const void *p, size_t n, oct_wav *w, oct_err *err);

/* n samples from `first` on as reals; integers are divided by the largest power of two of their width, so that they lie
 * in -1 .. 1. channel: from 0, or -1 for the mean of all. Before and behind the recording there is silence. */
void oct_wav_read(const oct_wav *w, int channel, int64_t first, int64_t n, double *out);

#endif
