/* lib/kernels/elem/isa/k_quantize.c -- f32 to affine integers and back over a row, compiled once per instruction set.
 */
#include "kernels/elem/isa.h"

#define QUANTIZE(type, qmin, qmax)                                                                        \
    static void quantize_##type(const float *x, size_t n, float s, int32_t z, type *q)                    \
    {                                                                                                     \
        const float lo = (float)((qmin) - z), hi = (float)((qmax) - z);                                   \
        OCT_EACH                                                                                          \
        for (size_t i = 0; i < n; i++)                                                                    \
            q[i] = (type)(round_clamped(x[i] / s, lo, hi) + z);                                           \
    }                                                                                                     \
    static void quantize_each_##type(const float *x, size_t n, const float *s, const int32_t *z, type *q) \
    {                                                                                                     \
        OCT_EACH                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                                  \
            const int32_t zp = z ? z[i] : 0;                                                              \
            q[i] = (type)(round_clamped(x[i] / s[i], (float)((qmin) - zp), (float)((qmax) - zp)) + zp);   \
        }                                                                                                 \
    }                                                                                                     \
    DEQUANTIZE(type)
#define DEQUANTIZE(type)                                                                                    \
    static void dequantize_##type(const type *q, size_t n, float s, int32_t z, float *x)                    \
    {                                                                                                       \
        OCT_EACH                                                                                            \
        for (size_t i = 0; i < n; i++)                                                                      \
            x[i] = (float)(int32_t)((uint32_t)(int32_t)q[i] - (uint32_t)z) * s;                             \
    }                                                                                                       \
    static void dequantize_each_##type(const type *q, size_t n, const float *s, const int32_t *z, float *x) \
    {                                                                                                       \
        OCT_EACH                                                                                            \
        for (size_t i = 0; i < n; i++)                                                                      \
            x[i] = (float)(int32_t)((uint32_t)(int32_t)q[i] - (z ? (uint32_t)z[i] : 0)) * s[i];             \
    }
QUANTIZE(uint8_t, 0, 255)
QUANTIZE(int8_t, -128, 127)
QUANTIZE(uint16_t, 0, 65535)
QUANTIZE(int16_t, -32768, 32767)
DEQUANTIZE(int32_t)

void K(quantize)(oct_dtype t, const float *x, size_t n, float scale, int32_t zp, void *q)
{
    switch (t) {
    case OCT_U8: quantize_uint8_t(x, n, scale, zp, q); break;
    case OCT_S8: quantize_int8_t(x, n, scale, zp, q); break;
    case OCT_U16: quantize_uint16_t(x, n, scale, zp, q); break;
    default: quantize_int16_t(x, n, scale, zp, q);
    }
}

void K(quantize_each)(oct_dtype t, const float *x, size_t n, const float *scale, const int32_t *zp, void *q)
{
    switch (t) {
    case OCT_U8: quantize_each_uint8_t(x, n, scale, zp, q); break;
    case OCT_S8: quantize_each_int8_t(x, n, scale, zp, q); break;
    case OCT_U16: quantize_each_uint16_t(x, n, scale, zp, q); break;
    default: quantize_each_int16_t(x, n, scale, zp, q);
    }
}

void K(dequantize)(oct_dtype t, const void *q, size_t n, float scale, int32_t zp, float *x)
{
    switch (t) {
    case OCT_U8: dequantize_uint8_t(q, n, scale, zp, x); break;
    case OCT_S8: dequantize_int8_t(q, n, scale, zp, x); break;
    case OCT_U16: dequantize_uint16_t(q, n, scale, zp, x); break;
    case OCT_S16: dequantize_int16_t(q, n, scale, zp, x); break;
    default: dequantize_int32_t(q, n, scale, zp, x);
    }
}

void K(dequantize_each)(oct_dtype t, const void *q, size_t n, const float *scale, const int32_t *zp, float *x)
{
    switch (t) {
    case OCT_U8: dequantize_each_uint8_t(q, n, scale, zp, x); break;
    case OCT_S8: dequantize_each_int8_t(q, n, scale, zp, x); break;
    case OCT_U16: dequantize_each_uint16_t(q, n, scale, zp, x); break;
    case OCT_S16: dequantize_each_int16_t(q, n, scale, zp, x); break;
    default: dequantize_each_int32_t(q, n, scale, zp, x);
    }
}

void K(fake_quantize)(const float *x, size_t n, float scale, float lo, float hi, float *y)
{
    OCT_EACH
    for (size_t i = 0; i < n; i++)
        y[i] = (float)round_clamped(x[i] / scale, lo, hi) * scale;
}

#define QSOFTMAX(type, qmin, qmax)                                                                                    \
    static void qsoftmax_##type(const float table[256], const type *x, size_t n, float m, int32_t z, type *y)         \
    {                                                                                                                 \
        int32_t top = qmin;                                                                                           \
        float lanes[16] = { 0 };                                                                                      \
        for (size_t i = 0; i < n; i++)                                                                                \
            top = x[i] > top ? x[i] : top;                                                                            \
        const int32_t base = 255 - top;                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                \
            lanes[i % 16] += table[base + x[i]];                                                                      \
        for (int half = 8; half > 0; half /= 2)                                                                       \
            for (int l = 0; l < half; l++)                                                                            \
                lanes[l] += lanes[l + half];                                                                          \
        const float sum = lanes[0];                                                                                   \
        for (size_t i = 0; i < n; i++)                                                                                \
            y[i] = (type)(z + round_clamped(table[base + x[i]] * m / sum, (float)((qmin) - z), (float)((qmax) - z))); \
    }
QSOFTMAX(uint8_t, 0, 255)
QSOFTMAX(int8_t, -128, 127)

void K(qsoftmax_row)(bool is_signed, const float table[256], const void *x, size_t n, float m, int32_t zp, void *y)
{
    if (is_signed)
        qsoftmax_int8_t(table, x, n, m, zp, y);
    else
        qsoftmax_uint8_t(table, x, n, m, zp, y);
}
