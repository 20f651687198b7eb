/* lib/base/dtype.h -- tensor element types. The numbers are ONNX's TensorProto.DataType. */
#ifndef OCT_BASE_DTYPE_H
#define OCT_BASE_DTYPE_H

#include "base/status.h"

typedef enum oct_dtype {
    OCT_UNDEFINED = 0,
    OCT_F32 = 1,
    OCT_U8 = 2,
    OCT_S8 = 3,
    OCT_U16 = 4,
    OCT_S16 = 5,
    OCT_S32 = 6,
    OCT_S64 = 7,
    OCT_STRING = 8,
    OCT_BOOL = 9,
    OCT_F16 = 10,
    OCT_F64 = 11,
    OCT_U32 = 12,
    OCT_U64 = 13,
    OCT_C64 = 14,  /* complex of two f32 */
    OCT_C128 = 15, /* complex of two f64 */
    OCT_BF16 = 16,
    OCT_F8E4M3FN = 17,
    OCT_F8E4M3FNUZ = 18,
    OCT_F8E5M2 = 19,
    OCT_F8E5M2FNUZ = 20,
    OCT_U4 = 21, /* packed, two to a byte, the first in the low half */
    OCT_S4 = 22,
    OCT_F4E2M1 = 23,
    OCT_F8E8M0 = 24,
    OCT_U2 = 25, /* packed, four to a byte */
    OCT_S2 = 26,
    OCT_DTYPE_COUNT = 27
} oct_dtype;

/* An element of a tensor of strings: n arbitrary bytes. */
typedef struct oct_str {
    const char *s;
    size_t n;
} oct_str;

/* Bits of one element; 0 for undefined and string. */
int oct_dtype_bits(oct_dtype t);
/* Bytes to which elements must be aligned to be read in place: their size, that of a part for complex numbers. */
size_t oct_dtype_align(oct_dtype t);
/* Bytes of n elements, packed types rounded up. False on overflow or a type without a size. */
bool oct_dtype_bytes(oct_dtype t, int64_t n, size_t *bytes);
bool oct_dtype_is_real(oct_dtype t);     /* a float of 16 bits or more */
const char *oct_dtype_name(oct_dtype t); /* "float32", "uint8", ...; never NULL */

float oct_f16_to_f32(uint16_t h);  /* exact; a NaN becomes quiet */
uint16_t oct_f32_to_f16(float f);  /* round half to even; overflow to infinity */
float oct_bf16_to_f32(uint16_t h); /* exact */
uint16_t oct_f32_to_bf16(float f); /* round half to even */

#endif
