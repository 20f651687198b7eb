#include "tflite/read/read_operators.h"

static const oct_tfl_reading readings[] = {
#define READING(code, onnx, limits, wants, read) { OCT_TFL_##code, onnx, limits, OCT_TFL_WANTS_##wants, read },
#include "tflite/read/read_operators.inc"
#undef READING
};

const oct_tfl_reading *oct_tfl_reading_of(oct_tfl_code code)
{
    for (size_t i = 0; i < OCT_COUNT(readings); i++)
        if (readings[i].code == code)
            return &readings[i];
    return NULL;
}
