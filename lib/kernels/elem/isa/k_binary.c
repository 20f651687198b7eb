/* lib/kernels/elem/isa/k_binary.c -- functions of two f32 over a row, compiled once per instruction set. */
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
#define MAP2(name, expr)                                                                                        \
    static void map2_##name(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, ptrdiff_t sy, \
                            size_t n)                                                                           \
    {                                                                                                           \
        if (sy == 1 && sa == 1 && sb == 1) {                                                                    \
            OCT_EACH                                                                                            \
            for (size_t i = 0; i < n; i++) {                                                                    \
                float p = a[i], q = b[i];                                                                       \
                y[i] = (expr);                                                                                  \
            }                                                                                                   \
        } else if (sy == 1 && sa == 1 && sb == 0) {                                                             \
            const float q = *b;                                                                                 \
            OCT_EACH                                                                                            \
            for (size_t i = 0; i < n; i++) {                                                                    \
                float p = a[i];                                                                                 \
                y[i] = (expr);                                                                                  \
            }                                                                                                   \
        } else if (sy == 1 && sa == 0 && sb == 1) {                                                             \
            const float p = *a;                                                                                 \
            OCT_EACH                                                                                            \
            for (size_t i = 0; i < n; i++) {                                                                    \
                float q = b[i];                                                                                 \
                y[i] = (expr);                                                                                  \
            }                                                                                                   \
        } else {                                                                                                \
            for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++) {                                                      \
                float p = a[i * sa], q = b[i * sb];                                                             \
                y[i * sy] = (expr);                                                                             \
            }                                                                                                   \
        }                                                                                                       \
    }
MAP2(add, p + q)
MAP2(sub, p - q)
MAP2(mul, p *q)
MAP2(div, p / q)
MAP2(min, min2(p, q))
MAP2(max, max2(p, q))
MAP2(prelu, p < 0.0f ? p * q : p)

MAP2(cube, p *p *q) /* of p and p */
MAP2(root, ((void)q, sqrtf(p)))
MAP2(pow_small, oct_powf_small(p, q))
MAP2(pow_any, oct_powf(p, q))

static void map2_pow(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, ptrdiff_t sy, size_t n)
{
    const float one = sb == 0 ? *b : 1.0f;
    if (one == 2.0f || one == 3.0f) {
        (one == 2.0f ? map2_mul : map2_cube)(a, sa, a, sa, y, sy, n);
        return;
    }
    float same[OCT_SCREEN_BLOCK]; /* compilers would make a loop for every special exponent, and vectorise none */
    for (size_t i = 0; sb == 0 && i < OCT_SCREEN_BLOCK; i++)
        same[i] = one;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i += OCT_SCREEN_BLOCK) {
        const size_t left = n - (size_t)i, k = left < OCT_SCREEN_BLOCK ? left : OCT_SCREEN_BLOCK;
        const float *p = a + i * sa, *q = sb == 0 ? same : b + i * sb;
        const ptrdiff_t sq = sb == 0 ? 1 : sb;
        const bool small = all_below(p, sa, k, 0xffffffffu, INFINITY) && all_below(q, sq, k, 0x7fffffffu, INFINITY);
        (!small ? map2_pow_any : one == 0.5f ? map2_root : map2_pow_small)(p, sa, q, sq, y + i * sy, sy, k);
    }
}

/* The remainder with a's sign, |a| < 2^52 |b| and b finite: the quotient, rounded, is right or one too large, and all
 * else is exact in double. */
static inline float fmod_small(float a, float b)
{
    const double x = fabs((double)a), m = fabs((double)b), r = fma(-floor(x / m), m, x);
    return oct_with_sign((float)(r < 0.0 ? r + m : r), a);
}

/* The remainder with b's sign, from the one with a's. */
static inline float floored(float r, float b)
{
    return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
MAP2(fmod_small, fmod_small(p, q))
MAP2(fmod_any, fmodf(p, q))
MAP2(mod_small, floored(fmod_small(p, q), q))
MAP2(mod_any, floored(fmodf(p, q), q))

/* By one number in blocks, as powers. */
#define MAP2_MOD(name)                                                                                            \
    static void map2_##name(const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *y, ptrdiff_t sy,   \
                            size_t n)                                                                             \
    {                                                                                                             \
        const float m = oct_absf(*b), limit = m * 0x1p51f;                                                        \
        const bool one = sb == 0 && m < INFINITY;                                                                 \
        for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i += OCT_SCREEN_BLOCK) {                                          \
            const size_t left = n - (size_t)i, k = left < OCT_SCREEN_BLOCK ? left : OCT_SCREEN_BLOCK;             \
            const bool small = one && all_below(a + i * sa, sa, k, 0x7fffffffu, limit);                           \
            (small ? map2_##name##_small : map2_##name##_any)(a + i * sa, sa, b + i * sb, sb, y + i * sy, sy, k); \
        }                                                                                                         \
    }
MAP2_MOD(fmod)
MAP2_MOD(mod)

static void (*const maps[OCT_BINARY_COUNT])(const float *, ptrdiff_t, const float *, ptrdiff_t, float *, ptrdiff_t,
                                            size_t) = {
    [OCT_BINARY_ADD] = map2_add,   [OCT_BINARY_SUB] = map2_sub,     [OCT_BINARY_MUL] = map2_mul,
    [OCT_BINARY_DIV] = map2_div,   [OCT_BINARY_MIN] = map2_min,     [OCT_BINARY_MAX] = map2_max,
    [OCT_BINARY_POW] = map2_pow,   [OCT_BINARY_PRELU] = map2_prelu, [OCT_BINARY_MOD] = map2_mod,
    [OCT_BINARY_FMOD] = map2_fmod,
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

/* Rows of u8 that are all contiguous, 32 at a time; returns how many were done. Codes are bounded while packing, since
 * lo and hi lie in a code's range. */
#if defined(__AVX2__)
/* Codes 4 k to 4 k + 3 of each half, as floats. Packing undoes the order. */
static inline __m256 spread(__m256i v, int k)
{
    const __m256i first =
        _mm256_broadcastsi128_si256(_mm_setr_epi32((int)0x80808000, (int)0x80808001, (int)0x80808002, (int)0x80808003));
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(v, _mm256_add_epi32(first, _mm256_set1_epi32(4 * k))));
}

/* Sums of the same codes of a and b. */
static inline __m256i qadd_eight(const __m256 c[3], __m256i a, __m256i b, int k)
{
    return _mm256_cvtps_epi32(_mm256_fmadd_ps(spread(a, k), c[0], _mm256_fmadd_ps(spread(b, k), c[1], c[2])));
}

static size_t qadd_rows(const float c[3], float lo, float hi, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n)
{
    const __m256 k[3] = { _mm256_set1_ps(c[0]), _mm256_set1_ps(c[1]), _mm256_set1_ps(c[2]) };
    const __m256i least = _mm256_set1_epi8((char)(int)lo), most = _mm256_set1_epi8((char)(int)hi);
    /* Sums beyond int32 would turn negative. */
    if (!(fabsf(c[0]) < 0x1p20f && fabsf(c[1]) < 0x1p20f && fabsf(c[2]) < 0x1p30f))
        return 0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)(a + i)),
                      v = _mm256_loadu_si256((const __m256i *)(const void *)(b + i));
        const __m256i p = _mm256_packs_epi32(qadd_eight(k, u, v, 0), qadd_eight(k, u, v, 1));
        const __m256i q = _mm256_packs_epi32(qadd_eight(k, u, v, 2), qadd_eight(k, u, v, 3));
        _mm256_storeu_si256((__m256i *)(void *)(y + i),
                            _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(p, q), least), most));
    }
    return i;
}
#else
static size_t qadd_rows(const float c[3], float lo, float hi, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n)
{
    return 0;
}
#endif

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
        if (f->is_signed) {
            qadd_s8(c, lo, hi, a, sa, b, sb, y, sy, n);
            return;
        }
        const size_t i = sa == 1 && sb == 1 && sy == 1 ? qadd_rows(c, lo, hi, a, b, y, n) : 0;
        qadd_u8(c, lo, hi, (const uint8_t *)a + i * (size_t)(sa == 1), sa, (const uint8_t *)b + i * (size_t)(sb == 1),
                sb, (uint8_t *)y + i, sy, n - i);
    } else {
        const float c[4] = { f->a.scale * f->b.scale / f->y.scale, (float)f->y.zp, (float)f->a.zp, (float)f->b.zp };
        if (f->is_signed)
            qmul_s8(c, lo, hi, a, sa, b, sb, y, sy, n);
        else
            qmul_u8(c, lo, hi, a, sa, b, sb, y, sy, n);
    }
}
