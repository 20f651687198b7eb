/* lib/kernels/elem/isa/k_bins.c -- scanning values and finding their histogram bins, compiled once per instruction set.
 */
#include "kernels/elem/isa.h"

#include <string.h>

/* In the order of the values, -0 before 0; NaN lies outside of the infinities. */
static inline int32_t key_of(int32_t bits)
{
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

static inline float value_of(int32_t key)
{
    return oct_float_of(key_of(key));
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

/* Extremes of what is no NaN. */
static void scan_without_nan(const float *x, size_t n, oct_scan *s)
{
    for (size_t i = 0; i < n; i++) {
        s->min = x[i] < s->min ? x[i] : s->min;
        s->max = x[i] > s->max ? x[i] : s->max;
    }
}

/* All on integers, whose extremes may be found in any order. */
void K(scan)(const float *x, size_t n, float tiny, oct_scan *s)
{
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    uint32_t least = UINT32_MAX; /* magnitude less 1, so that zeros come last */
    for (size_t i = 0; i < n; i++) {
        const int32_t bits = oct_bits_of(x[i]), key = key_of(bits);
        const uint32_t magnitude = ((uint32_t)bits & 0x7fffffff) - 1;
        lo = LEAST(lo, key);
        hi = MOST(hi, key);
        least = LEAST(least, magnitude);
    }
    s->small |= tiny > 0 && n > 0 && least < (uint32_t)oct_bits_of(tiny) - 1;
    if (n > 0 && (lo < key_of(oct_bits_of(-INFINITY)) || hi > key_of(oct_bits_of(INFINITY)))) {
        s->nan = true;
        scan_without_nan(x, n, s);
    } else if (n > 0) {
        s->min = LEAST(value_of(lo), s->min);
        s->max = MOST(value_of(hi), s->max);
    }
}

void K(count_equal)(const float *x, size_t n, float v, size_t *count)
{
    uint32_t c = 0; /* a row is short */
    for (size_t i = 0; i < n; i++)
        c += x[i] == v;
    *count = c;
}

/* a where mask is -1, b where it is 0: written so that the compiler computes neither twice. */
#define SELECT(mask, a, b) ((b) ^ ((mask) & ((a) ^ (b))))

#if defined(__AVX512F__)

/* Zeros are left out. */
OCT_INLINE size_t bins_of(const bool positive, const float *x, size_t n, const oct_bin_grid *g, int32_t *bin,
                          size_t *small)
{
    const __m512i most = _mm512_set1_epi32(0x7fffffff), last = _mm512_set1_epi32(15),
                  shifts = _mm512_loadu_si512(oct_bin_shift), off = _mm512_loadu_si512(g->off[0]),
                  off_neg = _mm512_loadu_si512(g->off[1]), top = _mm512_set1_epi32(g->top[0]),
                  least = _mm512_set1_epi32(g->least[0]);
    size_t k = 0, found = 0;
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 some = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        const __m512i bits = _mm512_maskz_loadu_epi32(some, x + i), v = _mm512_and_si512(bits, most);
        const __mmask16 neg = positive ? 0 : _mm512_movepi32_mask(bits), keep = _mm512_test_epi32_mask(v, v);
        const __m512i at_top = positive ? top : _mm512_mask_set1_epi32(top, neg, g->top[1]);
        const __m512i from = positive ? least : _mm512_mask_set1_epi32(least, neg, g->least[1]);
        const __m512i r = _mm512_min_epi32(_mm512_sub_epi32(at_top, _mm512_srli_epi32(v, 23)), last);
        __m512i o = _mm512_permutexvar_epi32(r, off);
        if (!positive)
            o = _mm512_mask_permutexvar_epi32(o, neg, r, off_neg);
        __m512i b = _mm512_add_epi32(o, _mm512_srlv_epi32(v, _mm512_permutexvar_epi32(r, shifts)));
        const __mmask16 below = _mm512_mask_cmplt_epi32_mask(keep, v, from);
        if (below) {
            b = _mm512_mask_set1_epi32(b, below, g->small);
            found += (size_t)__builtin_popcount(below);
        }
        const __m512i kept = _mm512_maskz_compress_epi32(keep, b);
        const size_t more = (size_t)__builtin_popcount(keep);
        if (k + 16 <= n) /* (Compressed into memory it takes ten times as long on Zen 4.) */
            _mm512_storeu_si512(bin + k, kept);
        else
            _mm512_mask_storeu_epi32(bin + k, (__mmask16)((1u << more) - 1), kept);
        k += more;
    }
    *small = found;
    return k;
}

#else

/* With `positive` there are no negative values. */
OCT_INLINE size_t index_row(const bool positive, const float *x, size_t n, const oct_bin_grid *g, int32_t *bin)
{
    const int32_t up = oct_bits_of(g->scale[0]), down = oct_bits_of(g->scale[1]), least = g->least[0],
                  least_change = g->least[1] - least;
    const int32_t base = g->base[0], base_change = g->base[1] - base, fine = g->fine[0],
                  fine_change = g->fine[1] - fine;
    const int32_t zero = g->zero, small = g->small;
    int32_t found = 0;
    OCT_EACH
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        const int32_t bits = oct_bits_of(x[i]), magnitude = bits & 0x7fffffff, neg = positive ? 0 : bits >> 31;
        const int32_t u = (int32_t)(positive ? oct_float_of(magnitude) * g->scale[0]
                                             : oct_float_of(magnitude) * oct_float_of(SELECT(neg, down, up)));
        /* The steps are a concave function of u: the least of its three lines. */
        const int32_t second = 2048 + (u >> 1), third = 4096 + (u >> 2), upper = LEAST(second, third);
        const int32_t coarse = LEAST(u, upper) + base + (neg & base_change),
                      low = (magnitude >> 20) + fine + (neg & fine_change);
        const int32_t below = (magnitude - least - (neg & least_change)) >> 31, is_zero = (magnitude - 1) >> 31,
                      is_low = (u - OCT_GRID_LEAST) >> 31;
        const int32_t on = SELECT(is_low, low, coarse),
                      off = SELECT(is_zero, zero + (int32_t)(i % OCT_ZERO_BINS), small);
        bin[i] = SELECT(below, off, on);
        found -= below & ~is_zero;
    }
    return (size_t)found;
}

#if defined(__AVX2__)

enum { KEEP_1 = 0x03020100, KEEP_2 = 0x07060504, KEEP_3 = 0x0b0a0908, KEEP_4 = 0x0f0e0d0c };
/* Which of four lanes come first, by the mask of those that stay. */
static const int32_t kept_first[16][4] = {
    { 0 },
    { KEEP_1 },
    { KEEP_2 },
    { KEEP_1, KEEP_2 },
    { KEEP_3 },
    { KEEP_1, KEEP_3 },
    { KEEP_2, KEEP_3 },
    { KEEP_1, KEEP_2, KEEP_3 },
    { KEEP_4 },
    { KEEP_1, KEEP_4 },
    { KEEP_2, KEEP_4 },
    { KEEP_1, KEEP_2, KEEP_4 },
    { KEEP_3, KEEP_4 },
    { KEEP_1, KEEP_3, KEEP_4 },
    { KEEP_2, KEEP_3, KEEP_4 },
    { KEEP_1, KEEP_2, KEEP_3, KEEP_4 },
};

OCT_INLINE size_t put_kept(int32_t *to, __m128i v, unsigned mask)
{
    _mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(v, _mm_loadu_si128((const __m128i *)kept_first[mask])));
    return (size_t)__builtin_popcount(mask);
}

/* Nothing is negative, as behind a Relu, where half of the values are zeros as a rule: these are left out. */
static size_t positive_bins(const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small)
{
    const __m256i second = _mm256_set1_epi32(2048), third = _mm256_set1_epi32(4096),
                  base = _mm256_set1_epi32(g->base[0]), fine = _mm256_set1_epi32(g->fine[0]),
                  small_bin = _mm256_set1_epi32(g->small), least = _mm256_set1_epi32(g->least[0]),
                  low_end = _mm256_set1_epi32(OCT_GRID_LEAST);
    const __m256 scale = _mm256_set1_ps(g->scale[0]);
    size_t k = 0, i = 0, found = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        const __m256i bits = _mm256_castps_si256(v), u = _mm256_cvttps_epi32(_mm256_mul_ps(v, scale));
        const __m256i upper = _mm256_min_epi32(_mm256_add_epi32(second, _mm256_srli_epi32(u, 1)),
                                               _mm256_add_epi32(third, _mm256_srli_epi32(u, 2)));
        const __m256i coarse = _mm256_add_epi32(_mm256_min_epi32(u, upper), base),
                      low = _mm256_add_epi32(_mm256_srli_epi32(bits, 20), fine);
        const __m256i below = _mm256_cmpgt_epi32(least, bits);
        const __m256i on = _mm256_blendv_epi8(coarse, low, _mm256_cmpgt_epi32(low_end, u)),
                      b = _mm256_blendv_epi8(on, small_bin, below);
        const unsigned some = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ));
        found += (size_t)__builtin_popcount(some & (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(below)));
        k += put_kept(bin + k, _mm256_castsi256_si128(b), some & 15);
        k += put_kept(bin + k, _mm256_extracti128_si256(b, 1), some >> 4);
    }
    int32_t rest[8];
    found += index_row(true, x + i, n - i, g, rest);
    for (size_t at = i; at < n; at++)
        if (x[at] != 0)
            bin[k++] = rest[at - i];
    *small = found;
    return k;
}

#endif

static size_t bins_of(bool positive, const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small)
{
#if defined(__AVX2__)
    if (positive)
        return positive_bins(x, n, g, bin, small);
#endif
    *small = positive ? index_row(true, x, n, g, bin) : index_row(false, x, n, g, bin);
    return n;
}

#endif

void K(bin_index)(const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *n_bin, size_t *small)
{
    *n_bin = g->scale[1] > 0 ? bins_of(false, x, n, g, bin, small) : bins_of(true, x, n, g, bin, small);
}
