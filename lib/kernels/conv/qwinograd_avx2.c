/* lib/kernels/conv/qwinograd_avx2.c -- the steps of integer Winograd convolution, 16 channels of 16 bits or 8 of 32 at
 * a time. */
#include "kernels/conv/qwinograd.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

enum {
    IN = OCT_WINOGRAD_IN,
    OUT = OCT_WINOGRAD_OUT,
    POINTS = OCT_WINOGRAD_POINTS,
    COLUMNS = OCT_WINOGRAD_COLUMNS,
    GROUP = OCT_WINOGRAD_GROUP
};

OCT_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

OCT_INLINE void store(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

/* The rows of B' times d0 to d5, which are `step` apart; results are `step` apart from `to`. */
OCT_INLINE void input_line(const __m256i *d, size_t step, __m256i *to)
{
    const __m256i d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    const __m256i far = _mm256_sub_epi16(d4, d2), mid = _mm256_sub_epi16(d3, d1), twice = _mm256_add_epi16(mid, mid);
    const __m256i even = _mm256_sub_epi16(d4, _mm256_slli_epi16(d2, 2)),
                  odd = _mm256_sub_epi16(d3, _mm256_slli_epi16(d1, 2));
    to[0] = _mm256_add_epi16(_mm256_slli_epi16(_mm256_sub_epi16(d0, d2), 2), far);
    to[step] = _mm256_add_epi16(even, odd);
    to[2 * step] = _mm256_sub_epi16(even, odd);
    to[3 * step] = _mm256_add_epi16(far, twice);
    to[4 * step] = _mm256_sub_epi16(far, twice);
    to[5 * step] = _mm256_sub_epi16(_mm256_sub_epi16(d5, d3), _mm256_add_epi16(twice, twice));
}

void oct_qwinograd_input__avx2(size_t channels, const uint8_t *const *x, uint8_t flip, int16_t *v, size_t point,
                               size_t group)
{
    const __m128i f = _mm_set1_epi8((char)flip);
    for (size_t c = 0; c < channels; c += 16, v += 2 * group) {
        __m256i d[POINTS], t[POINTS];
        for (size_t p = 0; p < POINTS; p++)
            d[p] = _mm256_cvtepi8_epi16(_mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(x[p] + c)), f));
        for (size_t j = 0; j < IN; j++)
            input_line(d + j, IN, t + j);
        for (size_t i = 0; i < IN; i++)
            input_line(t + i * IN, 1, d + i * IN);
        for (size_t p = 0; p < POINTS; p++) {
            _mm_storeu_si128((__m128i *)(void *)(v + p * point), _mm256_castsi256_si128(d[p]));
            _mm_storeu_si128((__m128i *)(void *)(v + p * point + group), _mm256_extracti128_si256(d[p], 1));
        }
    }
}

typedef struct pair {
    __m256i lo, hi;
} pair;

OCT_INLINE pair add(pair v, pair w)
{
    pair sum = { _mm256_add_epi32(v.lo, w.lo), _mm256_add_epi32(v.hi, w.hi) };
    OCT_KEEP(sum.lo);
    OCT_KEEP(sum.hi);
    return sum;
}

/* Two channels of a tile. */
OCT_INLINE pair multiply(const int16_t *v, pair u)
{
    const __m256i a = _mm256_set1_epi32((int)oct_quad((const uint8_t *)v));
    return (pair){ _mm256_madd_epi16(a, u.lo), _mm256_madd_epi16(a, u.hi) };
}

/* As with chains, the weights of a few channels stay in registers while the tiles pass. */
static void panel_product(size_t tiles, size_t channels, const int16_t *v, const int16_t *u, int32_t *m)
{
    static const int32_t zeros[COLUMNS];
    const int32_t *from = zeros;
    size_t step = 0;
    for (size_t c = 0; c < channels; c += GROUP, v += tiles * GROUP, u += GROUP * COLUMNS, from = m, step = COLUMNS) {
        const pair u0 = { load(u), load(u + 16) }, u1 = { load(u + 32), load(u + 48) };
        const pair u2 = { load(u + 64), load(u + 80) }, u3 = { load(u + 96), load(u + 112) };
        const int32_t *before = from;
        for (size_t t = 0; t < tiles; t++, before += step) {
            const int16_t *a = v + t * GROUP;
            pair sum = add(add(multiply(a, u0), multiply(a + 2, u1)), add(multiply(a + 4, u2), multiply(a + 6, u3)));
            sum = add(sum, (pair){ load(before), load(before + 8) });
            store(m + t * COLUMNS, sum.lo);
            store(m + t * COLUMNS + 8, sum.hi);
        }
    }
}

static void product(size_t tiles, size_t channels, size_t panels, const int16_t *v,
                    const int16_t *const u[OCT_WINOGRAD_PANELS], int32_t *const m[OCT_WINOGRAD_PANELS])
{
    for (size_t p = 0; p < panels; p++)
        panel_product(tiles, channels, v, u[p], m[p]);
}

/* The rows of A' times m0 to m5. */
OCT_INLINE void output_line(const __m256i m[IN], __m256i to[OUT])
{
    const __m256i p = _mm256_add_epi32(m[1], m[2]), q = _mm256_sub_epi32(m[1], m[2]);
    const __m256i r = _mm256_add_epi32(m[3], m[4]), s = _mm256_sub_epi32(m[3], m[4]);
    to[0] = _mm256_add_epi32(_mm256_add_epi32(m[0], _mm256_slli_epi32(p, 2)), r);
    to[1] = _mm256_add_epi32(_mm256_add_epi32(q, q), s);
    to[2] = _mm256_add_epi32(p, r);
    to[3] = _mm256_add_epi32(_mm256_add_epi32(q, m[5]), _mm256_add_epi32(s, s));
}

/* Results times 9 and a power of two, modulo 2^32: the inverse of 9, then the shift. */
OCT_INLINE void finish_line(const __m256i v[OUT], const int s, int32_t *acc)
{
    const __m256i inverse = _mm256_set1_epi32(954437177);
    store(acc, _mm256_srai_epi32(_mm256_mullo_epi32(v[0], inverse), s + 3));
    store(acc + COLUMNS, _mm256_srai_epi32(_mm256_mullo_epi32(v[1], inverse), s + 2));
    store(acc + 2 * COLUMNS, _mm256_srai_epi32(_mm256_mullo_epi32(v[2], inverse), s + 1));
    store(acc + 3 * COLUMNS, _mm256_srai_epi32(_mm256_mullo_epi32(v[3], inverse), s + 1));
}

static void output(const int32_t *m, size_t point, int32_t *acc, size_t line)
{
    for (size_t half = 0; half < COLUMNS; half += 8, m += 8, acc += 8) {
        __m256i t[OUT][IN];
        for (size_t j = 0; j < IN; j++) {
            __m256i d[IN], to[OUT];
            for (size_t i = 0; i < IN; i++)
                d[i] = load(m + (i * IN + j) * point);
            output_line(d, to);
            for (size_t i = 0; i < OUT; i++)
                t[i][j] = to[i];
        }
        __m256i to[OUT];
        output_line(t[0], to);
        finish_line(to, 3, acc);
        output_line(t[1], to);
        finish_line(to, 2, acc + line);
        output_line(t[2], to);
        finish_line(to, 1, acc + 2 * line);
        output_line(t[3], to);
        finish_line(to, 1, acc + 3 * line);
    }
}

const oct_qwinograd_kernel oct_qwinograd__avx2 = { "oct_qwinograd__avx2", OCT_ISA_AVX2, oct_qwinograd_input__avx2,
                                                   product, output };
