/* lib/kernels/elem/k_bins.c -- scanning values and finding their histogram bins, compiled once per instruction set. */
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
OCT_INLINE size_t bins_of(const bool positive, const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small)
{
    const __m512i most = _mm512_set1_epi32(0x7fffffff), last = _mm512_set1_epi32(15), shifts = _mm512_loadu_si512(oct_bin_shift),
                  off = _mm512_loadu_si512(g->off[0]), off_neg = _mm512_loadu_si512(g->off[1]), top = _mm512_set1_epi32(g->top[0]),
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
    const int32_t up = oct_bits_of(g->scale[0]), down = oct_bits_of(g->scale[1]), least = g->least[0], least_change = g->least[1] - least;
    const int32_t base = g->base[0], base_change = g->base[1] - base, fine = g->fine[0], fine_change = g->fine[1] - fine;
    const int32_t zero = g->zero, small = g->small;
    int32_t found = 0;
    OCT_EACH
    for (uint32_t i = 0; i < (uint32_t)n; i++) {
        const int32_t bits = oct_bits_of(x[i]), magnitude = bits & 0x7fffffff, neg = positive ? 0 : bits >> 31;
        const int32_t u = (int32_t)(positive ? oct_float_of(magnitude) * g->scale[0] : oct_float_of(magnitude) * oct_float_of(SELECT(neg, down, up)));
        /* The steps are a concave function of u: the least of its three lines. */
        const int32_t second = 2048 + (u >> 1), third = 4096 + (u >> 2), upper = LEAST(second, third);
        const int32_t coarse = LEAST(u, upper) + base + (neg & base_change), low = (magnitude >> 20) + fine + (neg & fine_change);
        const int32_t below = (magnitude - least - (neg & least_change)) >> 31, is_zero = (magnitude - 1) >> 31, is_low = (u - OCT_GRID_LEAST) >> 31;
        const int32_t on = SELECT(is_low, low, coarse), off = SELECT(is_zero, zero + (int32_t)(i % OCT_ZERO_BINS), small);
        bin[i] = SELECT(below, off, on);
        found -= below & ~is_zero;
    }
    return (size_t)found;
}

static size_t bins_of(bool positive, const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *small)
{
    *small = positive ? index_row(true, x, n, g, bin) : index_row(false, x, n, g, bin);
    return n;
}

#endif

void K(bin_index)(const float *x, size_t n, const oct_bin_grid *g, int32_t *bin, size_t *n_bin, size_t *small)
{
    *n_bin = g->scale[1] > 0 ? bins_of(false, x, n, g, bin, small) : bins_of(true, x, n, g, bin, small);
}
