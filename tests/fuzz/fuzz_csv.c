/* Fuzz target: any bytes as a CSV: a list of samples, a table of values, a table of features. */
#include "fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[4] = { -1, 3, -1, -1 };
    static const oct_input_desc in[] = { { "x", OCT_F32, 4, dims } };
    static const int64_t one[2] = { -1, 1 }, all[2] = { -1, -1 };
    static const oct_input_desc table[] = { { "file", OCT_STRING, 2, one }, { "label", OCT_S64, 1, one } };
    static const oct_input_desc features[] = { { "x", OCT_F32, 2, all } };
    fuzz_reader(&oct_read_csv, table, OCT_COUNT(table), data, size);
    fuzz_reader(&oct_read_csv, features, OCT_COUNT(features), data, size);
    return fuzz_reader(&oct_read_csv, in, OCT_COUNT(in), data, size);
}
