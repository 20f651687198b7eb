#include "base/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    int bits;
} types[OCT_DTYPE_COUNT] = {
    [OCT_UNDEFINED] = { "undefined", 0 },
    [OCT_F32] = { "float32", 32 },
    [OCT_U8] = { "uint8", 8 },
    [OCT_S8] = { "int8", 8 },
    [OCT_U16] = { "uint16", 16 },
    [OCT_S16] = { "int16", 16 },
    [OCT_S32] = { "int32", 32 },
    [OCT_S64] = { "int64", 64 },
    [OCT_STRING] = { "string", 0 },
    [OCT_BOOL] = { "bool", 8 },
    [OCT_F16] = { "float16", 16 },
    [OCT_F64] = { "float64", 64 },
    [OCT_U32] = { "uint32", 32 },
    [OCT_U64] = { "uint64", 64 },
    [OCT_C64] = { "complex64", 64 },
    [OCT_C128] = { "complex128", 128 },
    [OCT_BF16] = { "bfloat16", 16 },
    [OCT_F8E4M3FN] = { "float8e4m3fn", 8 },
    [OCT_F8E4M3FNUZ] = { "float8e4m3fnuz", 8 },
    [OCT_F8E5M2] = { "float8e5m2", 8 },
    [OCT_F8E5M2FNUZ] = { "float8e5m2fnuz", 8 },
    [OCT_U4] = { "uint4", 4 },
    [OCT_S4] = { "int4", 4 },
    [OCT_F4E2M1] = { "float4e2m1", 4 },
    [OCT_F8E8M0] = { "float8e8m0", 8 },
    [OCT_U2] = { "uint2", 2 },
    [OCT_S2] = { "int2", 2 },
};

int oct_dtype_bits(oct_dtype t)
{
    return (unsigned)t < OCT_DTYPE_COUNT ? types[t].bits : 0;
}

size_t oct_dtype_align(oct_dtype t)
{
    const int bits = t == OCT_C64 || t == OCT_C128 ? oct_dtype_bits(t) / 2 : oct_dtype_bits(t);
    return bits < 8 ? 1 : (size_t)bits / 8;
}

bool oct_dtype_is_real(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F64 || t == OCT_F16 || t == OCT_BF16;
}

bool oct_dtype_bytes(oct_dtype t, int64_t n, size_t *bytes)
{
    int bits = oct_dtype_bits(t);
    if (bits == 0 || n < 0)
        return false;
    if (bits >= 8)
        return !__builtin_mul_overflow((uint64_t)n, (uint64_t)bits / 8, bytes);
    uint64_t per = 8 / (uint64_t)bits;
    *bytes = (size_t)(((uint64_t)n + per - 1) / per);
    return true;
}

const char *oct_dtype_name(oct_dtype t)
{
    return (unsigned)t < OCT_DTYPE_COUNT ? types[t].name : "unknown type";
}

float oct_bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

uint16_t oct_f32_to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40); /* NaN stays a quiet NaN */
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

float oct_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 0x3ff, u;
    if (exp == 31) {
        u = sign | 0x7f800000u | man << 13 | (man ? 0x400000u : 0); /* a NaN becomes quiet, as the CPU makes it */
    } else if (exp) {
        u = sign | (exp + 112) << 23 | man << 13;
    } else {
        /* A subnormal is man * 2^-24, exact in float32. */
        float f = (float)man * 0x1p-24f;
        return sign ? -f : f;
    }
    float f;
    memcpy(&f, &u, 4);
    return f;
}

uint16_t oct_f32_to_f16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    uint16_t sign = (uint16_t)((u >> 16) & 0x8000);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | ((u >> 13) & 0x3ff));
    if (u >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (u < 0x38800000u) {
        /* Below 2^-14: adding 0.5 aligns the ulp of the sum to 2^-24, so the addition rounds. */
        float a, b = 0.5f;
        memcpy(&a, &u, 4);
        volatile float c = a + b;
        float d = c;
        uint32_t v;
        memcpy(&v, &d, 4);
        return (uint16_t)(sign | (v - 0x3f000000u));
    }
    u += 0xc8000fffu + ((u >> 13) & 1); /* rebias by -112 and round half to even */
    return (uint16_t)(sign | (u >> 13));
}
