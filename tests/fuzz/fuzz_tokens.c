/* Fuzz target: any bytes as a file of token ids: first the steps, a text that ends in a zero; a byte, odd for lines and
 * even for a stream; the file. */
#include "fuzz_reader.h"

#include <string.h>

enum { MOST = 1 << 12 }; /* of a sample: what makes more is slow, and no other way */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t open[2] = { -1, -1 }, four[2] = { -1, 4 };
    static const oct_input_desc in[] = { { "input_ids", OCT_S64, 2, open },
                                         { "attention_mask", OCT_S32, 2, four },
                                         { "position_ids", OCT_U8, 2, open } };
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    oct_steps steps[3] = { { 0 } };
    oct_err err = OCT_ERR_INIT;
    if (!end || (size_t)(end + 1 - data) == size ||
        oct_steps_parse((const char *)data, NULL, 1, steps, &err) != OCT_OK || steps[0].length > MOST)
        return 0;
    steps[2] = steps[1] = steps[0];
    const size_t head = (size_t)(end + 2 - data);
    static const int64_t deep[3] = { -1, -1, -1 };
    static const oct_input_desc values[] = { { "input_ids", OCT_F32, 3, deep },
                                             { "attention_mask", OCT_STRING, 2, four } };
    if (end[1] & 1)
        fuzz_reader(&oct_read_token_lines, values, OCT_COUNT(values), data + head, size - head);
    return fuzz_reader_steps(end[1] & 1 ? &oct_read_token_lines : &oct_read_token_stream, in, steps, OCT_COUNT(in),
                             data + head, size - head);
}
