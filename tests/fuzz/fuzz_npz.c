/* Fuzz target: any bytes as an .npz archive. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[3] = { -1, 3, 2 }, state[3] = { 2, 1, 3 };
    static const oct_input_desc in[] = { { "x", OCT_F32, 3, dims },
                                         { "state", OCT_F32, 3, state },
                                         { "sr", OCT_S64, 0, NULL } };
    static const oct_input_desc texts[] = { { "x", OCT_STRING, -1, NULL } };
    fuzz_reader(&oct_read_npz, texts, OCT_COUNT(texts), data, size);
    return fuzz_reader(&oct_read_npz, in, OCT_COUNT(in), data, size);
}
