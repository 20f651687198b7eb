/* lib/kernels/elem/k_binary.c -- functions of two f32 over a row, compiled once per instruction set. */
#include "kernels/elem/isa.h"

/* NaN of either operand wins. */
static inline float min2(float a, float b)
{
    return nan_min(a, b);
}
static inline float max2(float a, float b)
{
    return nan_max(a, b);
}

/* The three fast shapes and the general one, for one expression of p and q. */
#define MAP2(name, expr)                                                                                \
    static void map2_##name(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y,       \
                            ptrdiff_t sy, size_t n)                                                     \
    {                                                                                                   \
        if (sy == 1 && sa == 1 && sb == 1) {                                                            \
            OCT_EACH                                                                                    \
            for (size_t i = 0; i < n; i++) {                                                            \
                float p = a[i], q = b[i];                                                               \
                y[i] = (expr);                                                                          \
            }                                                                                           \
        } else if (sy == 1 && sa == 1 && sb == 0) {                                                     \
            const float q = *b;                                                                         \
            OCT_EACH                                                                                    \
            for (size_t i = 0; i < n; i++) {                                                            \
                float p = a[i];                                                                         \
                y[i] = (expr);                                                                          \
            }                                                                                           \
        } else if (sy == 1 && sa == 0 && sb == 1) {                                                     \
            const float p = *a;                                                                         \
            OCT_EACH                                                                                    \
            for (size_t i = 0; i < n; i++) {                                                            \
                float q = b[i];                                                                         \
                y[i] = (expr);                                                                          \
            }                                                                                           \
        } else {                                                                                        \
            for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++) {                                              \
                float p = a[i * sa], q = b[i * sb];                                                     \
                y[i * sy] = (expr);                                                                     \
            }                                                                                           \
        }                                                                                               \
    }
MAP2(add, p + q)
MAP2(sub, p - q)
MAP2(mul, p * q)
MAP2(div, p / q)
MAP2(min, min2(p, q))
MAP2(max, max2(p, q))
MAP2(prelu, p < 0.0f ? p * q : p)

static void map2_pow(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, ptrdiff_t sy, size_t n)
{
    if (sb == 0 && *b == 2.0f) {
        map2_mul(a, sa, a, sa, y, sy, n);
        return;
    }
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++)
        y[i * sy] = oct_powf(a[i * sa], b[i * sb]);
}

static void (*const maps[OCT_BINARY_COUNT])(const float *, ptrdiff_t, const float *, ptrdiff_t, float *, ptrdiff_t,
                                            size_t) = {
    [OCT_BINARY_ADD] = map2_add, [OCT_BINARY_SUB] = map2_sub, [OCT_BINARY_MUL] = map2_mul,
    [OCT_BINARY_DIV] = map2_div, [OCT_BINARY_MIN] = map2_min, [OCT_BINARY_MAX] = map2_max,
    [OCT_BINARY_POW] = map2_pow, [OCT_BINARY_PRELU] = map2_prelu,
};

void K(binary)(oct_binary_op op, const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, ptrdiff_t sy,
               size_t n)
{
    maps[op](a, sa, b, sb, y, sy, n);
}

static inline int32_t qadd_code(const float c[3], float a, float b, float lo, float hi)
{
    return round_clamped(fmaf(a, c[0], fmaf(b, c[1], c[2])), lo, hi);
}

/* (a - za)(b - zb) is below 2^17: exact. */
static inline int32_t qmul_code(const float c[4], float a, float b, float lo, float hi)
{
    return round_clamped((a - c[2]) * (b - c[3]) * c[0] + c[1], lo, hi);
}

#define QMAP2(name, type, code, consts)                                                                     \
    static void name(const float c[consts], float lo, float hi, const type *a, ptrdiff_t sa, const type *b, \
                     ptrdiff_t sb, type *y, ptrdiff_t sy, size_t n)                                         \
    {                                                                                                       \
        if (sy == 1 && sa == 1 && sb == 1) {                                                                \
            OCT_EACH                                                                                        \
            for (size_t i = 0; i < n; i++)                                                                  \
                y[i] = (type)code(c, (float)a[i], (float)b[i], lo, hi);                                     \
        } else if (sy == 1 && sa == 1 && sb == 0) {                                                         \
            const float q = (float)*b;                                                                      \
            OCT_EACH                                                                                        \
            for (size_t i = 0; i < n; i++)                                                                  \
                y[i] = (type)code(c, (float)a[i], q, lo, hi);                                               \
        } else if (sy == 1 && sa == 0 && sb == 1) {                                                         \
            const float p = (float)*a;                                                                      \
            OCT_EACH                                                                                        \
            for (size_t i = 0; i < n; i++)                                                                  \
                y[i] = (type)code(c, p, (float)b[i], lo, hi);                                               \
        } else {                                                                                            \
            for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++)                                                    \
                y[i * sy] = (type)code(c, (float)a[i * sa], (float)b[i * sb], lo, hi);                      \
        }                                                                                                   \
    }
QMAP2(qadd_u8, uint8_t, qadd_code, 3)
QMAP2(qadd_s8, int8_t, qadd_code, 3)
QMAP2(qmul_u8, uint8_t, qmul_code, 4)
QMAP2(qmul_s8, int8_t, qmul_code, 4)

void K(qbinary)(const oct_qbinary *f, const void *a, ptrdiff_t sa, const void *b, ptrdiff_t sb, void *y, ptrdiff_t sy,
                size_t n)
{
    const float lo = (float)f->lo, hi = (float)f->hi;
    if (f->op == OCT_QBINARY_ADD) {
        const float ra = f->a.scale / f->y.scale, rb = f->b.scale / f->y.scale;
        const float c[3] = { ra, rb, (float)f->y.zp - fmaf(ra, (float)f->a.zp, rb * (float)f->b.zp) };
        if (f->is_signed)
            qadd_s8(c, lo, hi, a, sa, b, sb, y, sy, n);
        else
            qadd_u8(c, lo, hi, a, sa, b, sb, y, sy, n);
    } else {
        const float c[4] = { f->a.scale * f->b.scale / f->y.scale, (float)f->y.zp, (float)f->a.zp, (float)f->b.zp };
        if (f->is_signed)
            qmul_s8(c, lo, hi, a, sa, b, sb, y, sy, n);
        else
            qmul_u8(c, lo, hi, a, sa, b, sb, y, sy, n);
    }
}
