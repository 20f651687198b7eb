/* lib/kernels/qgemm/qrow_u8s8_1x64c4_avx2.c -- one row by panels of 64 columns: bound by reading the weights. */
#include "kernels/qgemm/kernels.h"
#include "kernels/simd.h"

#include <string.h>

/* ------------------------------------------------------------------ A */

/* 16 values of k less the base, s16: of quads 0, 1 in the lower half, of 2, 3 in the upper. */
OCT_INLINE __m256i values_at(const uint8_t *a, size_t k, size_t i, uint8_t flip, int32_t base)
{
    uint8_t rest[16];
    const uint8_t *from = a + i;
    if (k - i < 16) {
        memset(rest, base ^ flip, sizeof rest);
        from = memcpy(rest, from, k - i);
    }
    const __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)from), _mm_set1_epi8((char)flip));
    return _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16((int16_t)base));
}

/* The larger sum of either sign of each pair, s32. */
OCT_INLINE __m256i weigh(__m256i x)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
    const __m256i up = _mm256_madd_epi16(_mm256_max_epi16(x, zero), one), down = _mm256_madd_epi16(_mm256_min_epi16(x, zero), one);
    return _mm256_max_epi32(up, _mm256_sub_epi32(zero, down));
}

/* Parts that a quad needs beside the first, s32, twice. */
OCT_INLINE __m256i parts_of(__m256i x)
{
    const __m256i pairs = weigh(x), s = _mm256_max_epi32(pairs, _mm256_shuffle_epi32(pairs, 0xb1));
    __m256i n = _mm256_setzero_si256();
    for (int32_t most = OCT_QROW_PAIR; most < 510; most += OCT_QROW_PAIR)
        n = _mm256_sub_epi32(n, _mm256_cmpgt_epi32(s, _mm256_set1_epi32(most)));
    return n;
}

static size_t count(const uint8_t *a, size_t k, uint8_t flip, int32_t base)
{
    __m256i n = _mm256_setzero_si256();
    for (size_t i = 0; i < k; i += 16)
        n = _mm256_add_epi32(n, parts_of(values_at(a, k, i, flip, base)));
    int32_t each[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)each, n);
    for (size_t i = 0; i < 8; i += 2)
        sum += each[i];
    return (size_t)sum;
}

/* Part i of n of a quad. */
static uint32_t part_of(const int16_t *x, int i, int n)
{
    int8_t v[4];
    uint32_t word;
    for (int j = 0; j < 4; j++)
        v[j] = (int8_t)(x[j] * (i + 1) / n - x[j] * i / n);
    memcpy(&word, v, sizeof word);
    return word;
}

static void split_quad(const int16_t *x, int more, size_t quad, oct_qrow *r)
{
    r->first[quad] = part_of(x, 0, more + 1);
    for (int i = 1; i <= more; i++)
        r->further[r->more++] = (oct_qrow_part){ (uint32_t)quad, part_of(x, i, more + 1) };
}

static void split(const uint8_t *a, size_t k, uint8_t flip, int32_t base, oct_qrow *r)
{
    __m256i sum = _mm256_setzero_si256();
    r->more = 0;
    r->quads = (k + 3) / 4;
    for (size_t i = 0; i < k; i += 16) {
        const __m256i x = values_at(a, k, i, flip, base), n = parts_of(x);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, _mm256_set1_epi16(1)));
        const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(x, x), 0x08);
        _mm_storeu_si128((__m128i *)(void *)(r->first + i / 4), _mm256_castsi256_si128(bytes));
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(n, _mm256_setzero_si256())) == 0)
            continue;
        int16_t v[16];
        int32_t each[8];
        _mm256_storeu_si256((__m256i *)(void *)v, x);
        _mm256_storeu_si256((__m256i *)(void *)each, n);
        for (size_t q = 0; q < 4; q++)
            if (each[2 * q])
                split_quad(v + 4 * q, each[2 * q], i / 4 + q, r);
    }
    int32_t each[8];
    _mm256_storeu_si256((__m256i *)(void *)each, sum);
    r->sum = 0;
    for (size_t i = 0; i < 8; i++)
        r->sum += (uint32_t)each[i];
}

/* ------------------------------------------------------------------ the product */

typedef struct sums {
    __m256i v0, v1, v2, v3, v4, v5, v6, v7;
} sums;

/* VECTOR(i) expands to the statement for vector i where the panel has it; n is a constant once inlined. */
#define VECTORS VECTOR(0) VECTOR(1) VECTOR(2) VECTOR(3) VECTOR(4) VECTOR(5) VECTOR(6) VECTOR(7)

OCT_INLINE __m256i take(__m256i sum, const uint8_t *b, __m256i x)
{
    const __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)b);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
}

OCT_INLINE void take_quad(const size_t n, sums *s, const uint8_t *b, uint32_t quad)
{
    const __m256i x = _mm256_set1_epi32((int)quad);
#define VECTOR(i) if (n > i) s->v##i = take(s->v##i, b + 32 * i, x);
    VECTORS
#undef VECTOR
}

OCT_INLINE void prefetch(const size_t bytes, const uint8_t *b)
{
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)b + i, _MM_HINT_T0);
}

/* n vectors of 8 columns. */
OCT_INLINE void panel(const size_t n, const oct_qrow *r, const uint8_t *b, int32_t *c)
{
    enum { AHEAD = 1024 };
    const size_t quad = 32 * n;
    const __m256i start = _mm256_set1_epi32((int32_t)(0u - 128u * r->sum));
    sums s = { start, start, start, start, start, start, start, start };
    size_t more = 0;
    for (size_t q = 0; q < r->quads;) {
        const size_t end = r->quads - q < OCT_QROW_SEGMENT ? r->quads : q + OCT_QROW_SEGMENT;
        for (; q < end; q++) {
            prefetch(quad, b + q * quad + AHEAD);
            take_quad(n, &s, b + q * quad, r->first[q]);
        }
        for (; more < r->more && r->further[more].quad < end; more++)
            take_quad(n, &s, b + r->further[more].quad * quad, r->further[more].x);
    }
#define VECTOR(i) if (n > i) _mm256_storeu_si256((__m256i *)(void *)(c + 8 * i), s.v##i);
    VECTORS
#undef VECTOR
}

static void run(const oct_qrow *r, size_t columns, const uint8_t *b, int32_t *c)
{
    switch (columns) {
    case 16: panel(2, r, b, c); break;
    case 32: panel(4, r, b, c); break;
    case 48: panel(6, r, b, c); break;
    default: panel(8, r, b, c); break;
    }
}

const oct_qrow_kernel oct_qrow_u8s8_1x64c4__avx2 = { "oct_qrow_u8s8_1x64c4__avx2", count, split, run };
