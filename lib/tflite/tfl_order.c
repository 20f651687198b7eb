#include "tflite/tfl_order.h"

#include <string.h>

oct_tfl_order oct_tfl_plain(void)
{
    oct_tfl_order o;
    for (int i = 0; i < OCT_MAX_RANK; i++)
        o.d[i] = (int8_t)i;
    return o;
}

oct_tfl_order oct_tfl_channels_last(int rank)
{
    oct_tfl_order o = oct_tfl_plain();
    for (int i = 1; i + 1 < rank; i++)
        o.d[i] = (int8_t)(i + 1);
    if (rank > 2)
        o.d[rank - 1] = 1;
    return o;
}

oct_tfl_order oct_tfl_channels_first(int rank)
{
    oct_tfl_order o = oct_tfl_plain();
    for (int i = 2; i < rank; i++)
        o.d[i] = (int8_t)(i - 1);
    if (rank > 2)
        o.d[1] = (int8_t)(rank - 1);
    return o;
}

bool oct_tfl_same_order(const oct_tfl_order *a, const oct_tfl_order *b, int rank)
{
    return memcmp(a->d, b->d, (size_t)rank) == 0;
}

int oct_tfl_axis(const oct_tfl_order *o, int rank, int64_t axis)
{
    if (axis < 0)
        axis += rank;
    for (int i = 0; i < rank; i++)
        if (o->d[i] == axis)
            return i;
    return 0;
}
