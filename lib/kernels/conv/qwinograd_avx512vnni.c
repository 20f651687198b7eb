/* lib/kernels/conv/qwinograd_avx512vnni.c -- the steps of integer Winograd convolution in 512-bit registers. Two panels
 * share each pair of channels that is fetched for vpdpwssd; sums stay in registers while the channels pass. */
#include "kernels/conv/qwinograd.h"
#include "kernels/simd.h"

#include <string.h>

enum {
    IN = OCT_WINOGRAD_IN,
    OUT = OCT_WINOGRAD_OUT,
    COLUMNS = OCT_WINOGRAD_COLUMNS,
    GROUP = OCT_WINOGRAD_GROUP,
    PANELS = OCT_WINOGRAD_PANELS,
    ROWS = 8 /* tiles at a time */
};

OCT_INLINE __m512i two_channels(const int16_t *v)
{
    int32_t both;
    memcpy(&both, v, sizeof both);
    return _mm512_set1_epi32(both);
}

/* `rows` tiles of all channels by `panels` panels. */
OCT_INLINE void multiply(const size_t rows, const size_t panels, size_t channels, const int16_t *v, size_t group,
                         const int16_t *const u[PANELS], int32_t *const m[PANELS])
{
    const int16_t *u0 = u[0], *u1 = u[panels - 1];
    __m512i sum[ROWS][PANELS];
#pragma GCC unroll 8
    for (size_t t = 0; t < rows; t++)
        sum[t][0] = sum[t][1] = _mm512_setzero_si512();
    for (size_t c = 0; c < channels; c += GROUP, v += group, u0 += GROUP * COLUMNS, u1 += GROUP * COLUMNS)
#pragma GCC unroll 4
        for (size_t i = 0; i < GROUP; i += 2) {
            const __m512i w0 = _mm512_loadu_si512(u0 + i * COLUMNS), w1 = _mm512_loadu_si512(u1 + i * COLUMNS);
#pragma GCC unroll 8
            for (size_t t = 0; t < rows; t++) {
                const __m512i a = two_channels(v + t * GROUP + i);
                sum[t][0] = _mm512_dpwssd_epi32(sum[t][0], w0, a);
                if (panels > 1)
                    sum[t][1] = _mm512_dpwssd_epi32(sum[t][1], w1, a);
            }
        }
#pragma GCC unroll 8
    for (size_t t = 0; t < rows; t++)
#pragma GCC unroll 2
        for (size_t p = 0; p < panels; p++)
            _mm512_storeu_si512(m[p] + t * COLUMNS, sum[t][p]);
}

OCT_INLINE void all_tiles(const size_t panels, size_t tiles, size_t channels, const int16_t *v,
                          const int16_t *const u[PANELS], int32_t *const m[PANELS])
{
    const size_t group = tiles * GROUP;
    size_t t = 0;
    for (; t + ROWS <= tiles; t += ROWS)
        multiply(ROWS, panels, channels, v + t * GROUP, group, u,
                 (int32_t *[]){ m[0] + t * COLUMNS, m[panels - 1] + t * COLUMNS });
    if (tiles - t >= ROWS / 2) {
        multiply(ROWS / 2, panels, channels, v + t * GROUP, group, u,
                 (int32_t *[]){ m[0] + t * COLUMNS, m[panels - 1] + t * COLUMNS });
        t += ROWS / 2;
    }
    for (; t < tiles; t++)
        multiply(1, panels, channels, v + t * GROUP, group, u,
                 (int32_t *[]){ m[0] + t * COLUMNS, m[panels - 1] + t * COLUMNS });
}

static void product(size_t tiles, size_t channels, size_t panels, const int16_t *v, const int16_t *const u[PANELS],
                    int32_t *const m[PANELS])
{
    if (panels > 1)
        all_tiles(2, tiles, channels, v, u, m);
    else
        all_tiles(1, tiles, channels, v, u, m);
}

/* The rows of A' times m0 to m5. */
OCT_INLINE void output_line(const __m512i m[IN], __m512i to[OUT])
{
    const __m512i p = _mm512_add_epi32(m[1], m[2]), q = _mm512_sub_epi32(m[1], m[2]);
    const __m512i r = _mm512_add_epi32(m[3], m[4]), s = _mm512_sub_epi32(m[3], m[4]);
    to[0] = _mm512_add_epi32(_mm512_add_epi32(m[0], _mm512_slli_epi32(p, 2)), r);
    to[1] = _mm512_add_epi32(_mm512_add_epi32(q, q), s);
    to[2] = _mm512_add_epi32(p, r);
    to[3] = _mm512_add_epi32(_mm512_add_epi32(q, m[5]), _mm512_add_epi32(s, s));
}

/* Results times 9 and a power of two, modulo 2^32: the inverse of 9, then the shift. */
OCT_INLINE void finish_line(const __m512i v[OUT], const unsigned s, int32_t *acc)
{
    const __m512i inverse = _mm512_set1_epi32(954437177);
    _mm512_storeu_si512(acc, _mm512_srai_epi32(_mm512_mullo_epi32(v[0], inverse), s + 3));
    _mm512_storeu_si512(acc + COLUMNS, _mm512_srai_epi32(_mm512_mullo_epi32(v[1], inverse), s + 2));
    _mm512_storeu_si512(acc + 2 * COLUMNS, _mm512_srai_epi32(_mm512_mullo_epi32(v[2], inverse), s + 1));
    _mm512_storeu_si512(acc + 3 * COLUMNS, _mm512_srai_epi32(_mm512_mullo_epi32(v[3], inverse), s + 1));
}

static void output(const int32_t *m, size_t point, int32_t *acc, size_t line)
{
    static const unsigned shift[OUT] = { 3, 2, 1, 1 };
    __m512i t[OUT][IN], to[OUT];
#pragma GCC unroll 6
    for (size_t j = 0; j < IN; j++) {
        __m512i d[IN];
#pragma GCC unroll 6
        for (size_t i = 0; i < IN; i++)
            d[i] = _mm512_loadu_si512(m + (i * IN + j) * point);
        output_line(d, to);
#pragma GCC unroll 4
        for (size_t i = 0; i < OUT; i++)
            t[i][j] = to[i];
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < OUT; i++) {
        output_line(t[i], to);
        finish_line(to, shift[i], acc + i * line);
    }
}

const oct_qwinograd_kernel oct_qwinograd__avx512vnni = {
    .name = "oct_qwinograd__avx512vnni",
    .isa = OCT_ISA_AVX2 | OCT_ISA_AVX512 | OCT_ISA_AVX512VNNI,
    .input = oct_qwinograd_input__avx2,
    .product = product,
    .output = output,
};
