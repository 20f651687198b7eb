/* Fuzz target: any bytes as an .npy file. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[3] = { -1, 3, 2 };
    static const oct_input_desc in[] = { { "x", OCT_F32, 3, dims } };
    static const oct_input_desc texts[] = { { "x", OCT_STRING, -1, NULL } };
    fuzz_reader(&oct_read_npy, texts, OCT_COUNT(texts), data, size);
    return fuzz_reader(&oct_read_npy, in, OCT_COUNT(in), data, size);
}
