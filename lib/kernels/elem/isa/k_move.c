/* lib/kernels/elem/isa/k_move.c -- transposing tiles and resizing rows, compiled once per instruction set. */
#include "kernels/elem/isa.h"

#define TILE 8

/* One tile, y[j][i] = x[i][j]. */
#define TRANSPOSE_TILE(type)                                                     \
    static inline void tile_##type(const type *x, size_t xs, type *y, size_t ys) \
    {                                                                            \
        type t[TILE][TILE];                                                      \
        for (size_t i = 0; i < TILE; i++)                                        \
            for (size_t j = 0; j < TILE; j++)                                    \
                t[j][i] = x[i * xs + j];                                         \
        for (size_t j = 0; j < TILE; j++)                                        \
            for (size_t i = 0; i < TILE; i++)                                    \
                y[j * ys + i] = t[j][i];                                         \
    }
#if defined(__AVX2__)
/* Bytes of two rows side by side, then of four, then of eight: two columns a register. */
static inline void tile_uint8_t(const uint8_t *x, size_t xs, uint8_t *y, size_t ys)
{
    __m128i two[4], four[4];
    for (size_t i = 0; i < 4; i++) {
        const __m128i a = _mm_loadl_epi64((const __m128i *)(const void *)(x + 2 * i * xs));
        const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(x + (2 * i + 1) * xs));
        two[i] = _mm_unpacklo_epi8(a, b);
    }
    for (size_t i = 0; i < 2; i++) {
        four[i] = _mm_unpacklo_epi16(two[2 * i], two[2 * i + 1]); /* columns 0 to 3 of four rows */
        four[2 + i] = _mm_unpackhi_epi16(two[2 * i], two[2 * i + 1]);
    }
    for (size_t i = 0; i < 4; i++) {
        const __m128i first = four[i / 2 * 2], last = four[i / 2 * 2 + 1];
        const __m128i v = i % 2 ? _mm_unpackhi_epi32(first, last) : _mm_unpacklo_epi32(first, last);
        _mm_storel_epi64((__m128i *)(void *)(y + 2 * i * ys), v);
        _mm_storel_epi64((__m128i *)(void *)(y + (2 * i + 1) * ys), _mm_unpackhi_epi64(v, v));
    }
}
#else
TRANSPOSE_TILE(uint8_t)
#endif
TRANSPOSE_TILE(uint16_t)
TRANSPOSE_TILE(uint64_t)
#if defined(__AVX2__)
/* Pairs of rows i and i + 4 in one register; then 4x4 in each half. */
static inline void tile_uint32_t(const uint32_t *x, size_t xs, uint32_t *y, size_t ys)
{
    __m256 a[4], b[4];
    for (int i = 0; i < 4; i++) {
        const float *p = (const float *)(const void *)x + (size_t)i * xs, *q = p + 4 * xs;
        a[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(q), 1);
        b[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + 4)), _mm_loadu_ps(q + 4), 1);
    }
    for (int half = 0; half < 2; half++) {
        const __m256 *v = half ? b : a;
        const __m256 l0 = _mm256_unpacklo_ps(v[0], v[1]), h0 = _mm256_unpackhi_ps(v[0], v[1]);
        const __m256 l1 = _mm256_unpacklo_ps(v[2], v[3]), h1 = _mm256_unpackhi_ps(v[2], v[3]);
        float *to = (float *)(void *)y + (size_t)half * 4 * ys;
        _mm256_storeu_ps(to, _mm256_shuffle_ps(l0, l1, 0x44));
        _mm256_storeu_ps(to + ys, _mm256_shuffle_ps(l0, l1, 0xee));
        _mm256_storeu_ps(to + 2 * ys, _mm256_shuffle_ps(h0, h1, 0x44));
        _mm256_storeu_ps(to + 3 * ys, _mm256_shuffle_ps(h0, h1, 0xee));
    }
}
#else
TRANSPOSE_TILE(uint32_t)
#endif

/* Full tiles first, along the side whose rows lie farther apart, so that lines of the cache are used up before others
 * take their place; then the edges. */
#define TRANSPOSE(type)                                                                                  \
    static void transpose_##type(const type *x, size_t xs, size_t rows, size_t cols, type *y, size_t ys) \
    {                                                                                                    \
        const size_t full_r = rows - rows % TILE, full_c = cols - cols % TILE;                           \
        if (ys > xs)                                                                                     \
            for (size_t c = 0; c < full_c; c += TILE)                                                    \
                for (size_t r = 0; r < full_r; r += TILE)                                                \
                    tile_##type(x + r * xs + c, xs, y + c * ys + r, ys);                                 \
        else                                                                                             \
            for (size_t r = 0; r < full_r; r += TILE)                                                    \
                for (size_t c = 0; c < full_c; c += TILE)                                                \
                    tile_##type(x + r * xs + c, xs, y + c * ys + r, ys);                                 \
        for (size_t c = 0; c < cols; c++)                                                                \
            for (size_t r = c < full_c ? full_r : 0; r < rows; r++)                                      \
                y[c * ys + r] = x[r * xs + c];                                                           \
    }

/* Few planes and the bytes of a pixel: n is a constant once inlined, so that the compiler sees an interleaving. */
#define WEAVE(type)                                                                                 \
    OCT_INLINE void join_##type(const size_t n, const type *x, size_t xs, size_t cols, type *y)     \
    {                                                                                               \
        OCT_EACH                                                                                    \
        for (size_t c = 0; c < cols; c++)                                                           \
            for (size_t r = 0; r < n; r++)                                                          \
                y[c * n + r] = x[r * xs + c];                                                       \
    }                                                                                               \
    OCT_INLINE void part_##type(const size_t n, const type *x, size_t rows, type *y, size_t ys)     \
    {                                                                                               \
        OCT_EACH                                                                                    \
        for (size_t r = 0; r < rows; r++)                                                           \
            for (size_t c = 0; c < n; c++)                                                          \
                y[c * ys + r] = x[r * n + c];                                                       \
    }                                                                                               \
    static void move_##type(const type *x, size_t xs, size_t rows, size_t cols, type *y, size_t ys) \
    {                                                                                               \
        if (rows == 3 && ys == 3)                                                                   \
            join_##type(3, x, xs, cols, y);                                                         \
        else if (rows == 4 && ys == 4)                                                              \
            join_##type(4, x, xs, cols, y);                                                         \
        else if (cols == 3 && xs == 3)                                                              \
            part_##type(3, x, rows, y, ys);                                                         \
        else if (cols == 4 && xs == 4)                                                              \
            part_##type(4, x, rows, y, ys);                                                         \
        else                                                                                        \
            transpose_##type(x, xs, rows, cols, y, ys);                                             \
    }
#define MOVE(type) TRANSPOSE(type) WEAVE(type)
MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)
MOVE(uint64_t)

void K(transpose_tile)(const void *x, size_t xs, size_t rows, size_t cols, void *y, size_t ys, size_t size)
{
    switch (size) {
    case 1: move_uint8_t(x, xs, rows, cols, y, ys); break;
    case 2: move_uint16_t(x, xs, rows, cols, y, ys); break;
    case 4: move_uint32_t(x, xs, rows, cols, y, ys); break;
    default: move_uint64_t(x, xs, rows, cols, y, ys);
    }
}

void K(resize_row)(const float *x, size_t inner, int taps, const int32_t *index, const float *weight, float *y)
{
    const float *a = x + (size_t)index[0] * inner;
    const float wa = weight[0];
    int k = 1;
    if (taps >= 2) {
        const float *b = x + (size_t)index[1] * inner;
        const float wb = weight[1];
        OCT_EACH
        for (size_t i = 0; i < inner; i++)
            y[i] = fmaf(b[i], wb, a[i] * wa);
        k = 2;
    } else {
        OCT_EACH
        for (size_t i = 0; i < inner; i++)
            y[i] = a[i] * wa;
    }
    for (; k < taps; k++) {
        const float *b = x + (size_t)index[k] * inner;
        const float wb = weight[k];
        OCT_EACH
        for (size_t i = 0; i < inner; i++)
            y[i] = fmaf(b[i], wb, y[i]);
    }
}

void K(resize_line)(const float *x, size_t n_out, int taps, const int32_t *index, const float *weight, float *y)
{
    for (size_t i = 0; i < n_out; i++, index += taps, weight += taps) {
        float v = x[index[0]] * weight[0];
        for (int k = 1; k < taps; k++)
            v = fmaf(x[index[k]], weight[k], v);
        y[i] = v;
    }
}
