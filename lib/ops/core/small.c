/* Small types: codes and values. */
#include "ops/core/small.h"

#include <assert.h>
#include <math.h>

/* A small float: sign, exponent, mantissa bits. */
typedef struct format {
    int exponent, mantissa, bias;
    int largest;         /* code of the largest finite value, without sign */
    bool infinity, fnuz; /* fnuz: one zero, NaN is the code of -0 */
} format;

static const format *format_of(oct_dtype t)
{
    static const format e4m3fn = { 4, 3, 7, 0x7e, false, false }, e4m3fnuz = { 4, 3, 8, 0x7f, false, true },
                        e5m2 = { 5, 2, 15, 0x7b, true, false }, e5m2fnuz = { 5, 2, 16, 0x7f, false, true },
                        e2m1 = { 2, 1, 1, 7, false, false };
    switch (t) {
    case OCT_F8E4M3FN: return &e4m3fn;
    case OCT_F8E4M3FNUZ: return &e4m3fnuz;
    case OCT_F8E5M2: return &e5m2;
    case OCT_F8E5M2FNUZ: return &e5m2fnuz;
    case OCT_F4E2M1: return &e2m1;
    default: return NULL;
    }
}

bool oct_is_small_int(oct_dtype t)
{
    return t == OCT_U4 || t == OCT_S4 || t == OCT_U2 || t == OCT_S2;
}

bool oct_is_small(oct_dtype t)
{
    return oct_is_small_int(t) || t == OCT_F8E8M0 || format_of(t);
}

/* The bits of element i. */
static unsigned code_at(oct_dtype t, const void *data, int64_t i)
{
    int bits = oct_dtype_bits(t), per = 8 / bits;
    return (unsigned)(((const uint8_t *)data)[i / per] >> (i % per * bits)) & ((1u << bits) - 1);
}

static void set_code(oct_dtype t, void *data, int64_t i, unsigned code)
{
    int bits = oct_dtype_bits(t), per = 8 / bits, shift = (int)(i % per) * bits;
    unsigned mask = ((1u << bits) - 1) << shift;
    uint8_t *byte = (uint8_t *)data + i / per;
    *byte = (uint8_t)((*byte & ~mask) | ((code << shift) & mask));
}

/* The value of a code without sign; above `largest` it is the value that would follow. */
static float magnitude(const format *f, int code)
{
    int e = code >> f->mantissa, m = code & ((1 << f->mantissa) - 1);
    return e ? ldexpf((float)(m | 1 << f->mantissa), e - f->bias - f->mantissa)
             : ldexpf((float)m, 1 - f->bias - f->mantissa);
}

static float float_get(const format *f, unsigned code)
{
    assert(f); /* of a small type */
    int top = f->exponent + f->mantissa, size = (int)code & ((1 << top) - 1);
    bool minus = code >> top & 1;
    if (f->fnuz && minus && size == 0)
        return NAN;
    if (size > f->largest)
        return f->infinity && size == f->largest + 1 ? (minus ? -INFINITY : INFINITY) : NAN;
    return minus ? -magnitude(f, size) : magnitude(f, size);
}

/* The code nearest to v >= 0, ties to even; largest + 1 if v is beyond. */
static int nearest_code(const format *f, float v)
{
    int lo = 0, hi = f->largest + 1;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (magnitude(f, mid) <= v)
            lo = mid;
        else
            hi = mid;
    }
    double below = (double)v - magnitude(f, lo), above = (double)magnitude(f, hi) - v;
    return below < above || (below == above && lo % 2 == 0) ? lo : hi;
}

static unsigned float_code(const format *f, float v, bool saturate)
{
    assert(f);
    int top = f->exponent + f->mantissa;
    bool minus = signbit(v), whole = f->exponent + f->mantissa < 4; /* float4: nothing but numbers */
    unsigned sign = minus ? 1u << top : 0, nan = f->fnuz ? 1u << top : sign | ((1u << top) - 1);
    if (isnan(v))
        return whole ? 1u << top : nan; /* float4: -0, as the reference cases have it */
    int code = nearest_code(f, fabsf(v));
    if (code > f->largest) {
        if (saturate || whole)
            return sign | (unsigned)f->largest;
        return f->infinity ? sign | (unsigned)(f->largest + 1) : nan;
    }
    return code == 0 && f->fnuz ? 0 : sign | (unsigned)code;
}

/* float8e8m0: 2^(code - 127); 255 is NaN. */
static unsigned power_code(float v, bool saturate, oct_small_round round)
{
    int e;
    if (isnan(v) || (isinf(v) && !saturate))
        return 255;
    v = fabsf(v);
    if (isinf(v))
        return 254;
    if (v <= 0x1p-127f)
        return 0;
    float m = frexpf(v, &e); /* v = m 2^e, 0.5 <= m < 1 */
    bool up = m > 0.5f && (round == OCT_SMALL_UP || (round == OCT_SMALL_NEAREST && m >= 0.75f));
    e += up ? 127 : 126;
    return e > 254 ? (saturate ? 254u : 255u) : (unsigned)e;
}

float oct_small_get(oct_dtype t, const void *data, int64_t i)
{
    unsigned code = code_at(t, data, i);
    switch (t) {
    case OCT_U4:
    case OCT_U2: return (float)code;
    case OCT_S4: return (float)((int)(code ^ 8) - 8);
    case OCT_S2: return (float)((int)(code ^ 2) - 2);
    case OCT_F8E8M0: return code == 255 ? NAN : ldexpf(1.0f, (int)code - 127);
    default: return float_get(format_of(t), code);
    }
}

void oct_small_begin(oct_dtype t, void *data, int64_t n)
{
    const int bits = oct_dtype_bits(t);
    if (bits < 8 && n % (8 / bits) != 0)
        ((uint8_t *)data)[n / (8 / bits)] = 0;
}

void oct_small_set_int(oct_dtype t, void *data, int64_t i, int64_t v)
{
    set_code(t, data, i, (unsigned)(v & 15));
}

void oct_small_set(oct_dtype t, void *data, int64_t i, float v, bool saturate, oct_small_round round)
{
    if (oct_is_small_int(t))
        oct_small_set_int(t, data, i, (int64_t)v);
    else
        set_code(t, data, i, t == OCT_F8E8M0 ? power_code(v, saturate, round) : float_code(format_of(t), v, saturate));
}
