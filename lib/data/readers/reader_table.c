/* The table of readers. */
#include "data/readers/readers.h"

const oct_reader *const oct_readers[] = {
#define OCT_READER(r) &r,
#include "data/readers/readers.inc"
#undef OCT_READER
};
const size_t oct_n_readers = OCT_COUNT(oct_readers);

bool oct_looks_like_data(const char *path)
{
    for (size_t i = 0; i < oct_n_readers; i++)
        if (oct_readers[i]->claims(path, false))
            return true;
    return false;
}
