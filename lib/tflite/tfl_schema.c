/* Names and types of the schema, and an operator's options by their slots. */
#include "tflite/tfl_model.h"

#include <string.h>

static const struct {
    const char *name;
    int number;
} codes[] = {
#define CODE(name, number) { #name, number },
#define NAME CODE
#include "tflite/schema_codes.inc"
#undef NAME
#undef CODE
};

static const struct {
    const char *name;
    int number, bits;
} types[] = {
#define TYPE(name, number, bits) { #name, number, bits },
#include "tflite/schema_types.inc"
#undef TYPE
};

const char *oct_tfl_code_name(oct_tfl_code code)
{
    for (size_t i = 0; i < OCT_COUNT(codes); i++)
        if (codes[i].number == (int)code)
            return codes[i].name;
    return "?";
}

const char *oct_tfl_type_name(oct_tfl_type t)
{
    return (size_t)t < OCT_COUNT(types) ? types[t].name : "?";
}

int oct_tfl_type_bits(oct_tfl_type t)
{
    return (size_t)t < OCT_COUNT(types) ? types[t].bits : 0;
}

size_t oct_tfl_type_bytes(oct_tfl_type t)
{
    return (size_t)oct_tfl_type_bits(t) / 8;
}

oct_dtype oct_tfl_type_dtype(oct_tfl_type t)
{
    switch (t) {
    case OCT_TFL_FLOAT32: return OCT_F32;
    case OCT_TFL_FLOAT16: return OCT_F16;
    case OCT_TFL_BFLOAT16: return OCT_BF16;
    case OCT_TFL_FLOAT64: return OCT_F64;
    case OCT_TFL_INT8: return OCT_S8;
    case OCT_TFL_UINT8: return OCT_U8;
    case OCT_TFL_INT16: return OCT_S16;
    case OCT_TFL_UINT16: return OCT_U16;
    case OCT_TFL_INT32: return OCT_S32;
    case OCT_TFL_UINT32: return OCT_U32;
    case OCT_TFL_INT64: return OCT_S64;
    case OCT_TFL_UINT64: return OCT_U64;
    case OCT_TFL_INT4: return OCT_S4;
    case OCT_TFL_UINT4: return OCT_U4;
    case OCT_TFL_INT2: return OCT_S2;
    case OCT_TFL_BOOL: return OCT_BOOL;
    default: return OCT_UNDEFINED;
    }
}

static const oct_flat_field *find_field(const oct_tfl_operator *op, int slot)
{
    for (size_t i = 0; i < op->n_fields; i++)
        if (op->field[i].slot == slot)
            return &op->field[i];
    return NULL;
}

int32_t oct_tfl_option(const oct_tfl_operator *op, int slot, int32_t absent)
{
    const oct_flat_field *f = find_field(op, slot);
    return f ? (int32_t)f->bits : absent;
}

float oct_tfl_option_real(const oct_tfl_operator *op, int slot, float absent)
{
    const oct_flat_field *f = find_field(op, slot);
    float x;
    if (!f)
        return absent;
    memcpy(&x, &f->bits, sizeof x);
    return x;
}
