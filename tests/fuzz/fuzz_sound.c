/* Fuzz target: any bytes as a WAV file: first the steps, a text that ends in a zero, then the file. */
#define FUZZ_FILE "input.wav"
#include "fuzz_reader.h"

#include "data/sound/sound.h"

#include <string.h>

/* Of a window or filter, of a frame in ms: what makes more is slow, and no other way. */
enum { MOST = 1 << 16, LONGEST = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[3] = { -1, 1, -1 };
    static const oct_input_desc in[] = { { "x", OCT_F32, 3, dims } };
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    oct_steps steps = { 0 };
    oct_err err = OCT_ERR_INIT;
    if (!end || oct_steps_parse((const char *)data, NULL, 1, &steps, &err) != OCT_OK ||
        oct_steps_check(&steps, &err) != OCT_OK || steps.frame > MOST || steps.lead > MOST || steps.rate > MOST ||
        steps.frame_length > LONGEST)
        return 0;
    const size_t head = (size_t)(end + 1 - data);
    return fuzz_reader_steps(&oct_read_sound, in, &steps, 1, data + head, size - head);
}
