/* Fuzz target: any bytes as a tar shard. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[4] = { -1, 3, -1, -1 };
    static const oct_input_desc in[] = { { "x", OCT_F32, 4, dims } };
    return fuzz_reader(&oct_read_tar, in, OCT_COUNT(in), data, size);
}
