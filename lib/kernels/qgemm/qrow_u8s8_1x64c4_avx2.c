/* lib/kernels/qgemm/qrow_u8s8_1x64c4_avx2.c -- one row by panels of 64 columns: bound by reading the weights. */
#include "kernels/qgemm/qgemm_int.h"
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
    const __m128i bytes =
        _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)from), _mm_set1_epi8((char)flip));
    return _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16((int16_t)base));
}

OCT_INLINE __m256i swapped(__m256i v, const int order)
{
    return order == 1 ? _mm256_shuffle_epi32(v, 0xb1) : _mm256_shuffle_epi32(v, 0x4e);
}

/* What decides how many parts the unit of each 32 bits needs: the largest sum of one sign in a lane, and twice the
 * largest value, which has to fit a byte. */
OCT_INLINE __m256i weigh(const bool small, __m256i x)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
    __m256i up = _mm256_madd_epi16(_mm256_max_epi16(x, zero), one),
            down = _mm256_madd_epi16(_mm256_max_epi16(_mm256_sub_epi16(zero, x), zero), one);
    if (!small) {
        const __m256i s = _mm256_max_epi32(up, down);
        return _mm256_max_epi32(s, swapped(s, 1));
    }
    const __m256i size = _mm256_abs_epi16(x), pair = _mm256_max_epi16(size, _mm256_srli_epi32(size, 16));
    const __m256i twice = _mm256_slli_epi32(_mm256_and_si256(pair, _mm256_set1_epi32(0xffff)), 1);
    up = _mm256_add_epi32(up, swapped(up, 2));
    down = _mm256_add_epi32(down, swapped(down, 2));
    __m256i s = _mm256_max_epi32(_mm256_max_epi32(up, down), twice);
    s = _mm256_max_epi32(s, swapped(s, 1));
    return _mm256_max_epi32(s, swapped(s, 2));
}

/* Parts that a unit needs beside the first, in each of its 32 bits. Rounding adds less than 1 to each value of a part:
 * 127 and 2 values stay within 128, 252 and 4 within 255. */
OCT_INLINE __m256i parts_of(const bool small, __m256i x)
{
    const __m256i s = weigh(small, x);
    const int32_t most = small ? 252 : 127;
    __m256i n = _mm256_setzero_si256();
    for (int32_t i = 1; i <= 4; i++)
        n = _mm256_sub_epi32(n, _mm256_cmpgt_epi32(s, _mm256_set1_epi32(most * i)));
    return n;
}

OCT_INLINE size_t count_parts(const bool small, const uint8_t *a, size_t k, uint8_t flip, int32_t base)
{
    __m256i n = _mm256_setzero_si256();
    for (size_t i = 0; i < k; i += 16)
        n = _mm256_add_epi32(n, parts_of(small, values_at(a, k, i, flip, base)));
    int32_t each[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)each, n);
    for (size_t i = 0; i < 8; i += small ? 4 : 2)
        sum += each[i];
    return (size_t)sum;
}

static size_t count(bool small, const uint8_t *a, size_t k, uint8_t flip, int32_t base)
{
    return small ? count_parts(true, a, k, flip, base) : count_parts(false, a, k, flip, base);
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

static void split_unit(size_t quads, const int16_t *x, int more, size_t unit, oct_qrow *r)
{
    for (size_t q = 0; q < quads; q++)
        r->first[unit * quads + q] = part_of(x + 4 * q, 0, more + 1);
    for (int i = 1; i <= more; i++) {
        oct_qrow_part *p = &r->further[r->more++];
        *p = (oct_qrow_part){ .unit = (uint32_t)unit };
        for (size_t q = 0; q < quads; q++)
            p->x[q] = part_of(x + 4 * q, i, more + 1);
    }
}

OCT_INLINE void split_row(const bool small, const uint8_t *a, size_t k, uint8_t flip, int32_t base, oct_qrow *r)
{
    const size_t quads = small ? 2 : 1;
    __m256i sum = _mm256_setzero_si256();
    r->more = 0;
    r->units = oct_qrow_units(small, k);
    for (size_t i = 0; i < k; i += 16) {
        const __m256i x = values_at(a, k, i, flip, base), n = parts_of(small, x);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, _mm256_set1_epi16(1)));
        const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(x, x), 0x08);
        _mm_storeu_si128((__m128i *)(void *)(r->first + i / 4), _mm256_castsi256_si128(bytes));
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(n, _mm256_setzero_si256())) == 0)
            continue;
        int16_t v[16];
        int32_t each[8];
        _mm256_storeu_si256((__m256i *)(void *)v, x);
        _mm256_storeu_si256((__m256i *)(void *)each, n);
        for (size_t u = 0; u < 4 / quads; u++)
            if (each[2 * quads * u])
                split_unit(quads, v + 4 * quads * u, each[2 * quads * u], i / 4 / quads + u, r);
    }
    int32_t each[8];
    _mm256_storeu_si256((__m256i *)(void *)each, sum);
    r->sum = 0;
    for (size_t i = 0; i < 8; i++)
        r->sum += (uint32_t)each[i];
}

static void split(const uint8_t *a, size_t k, uint8_t flip, int32_t base, oct_qrow *r)
{
    if (r->small)
        split_row(true, a, k, flip, base, r);
    else
        split_row(false, a, k, flip, base, r);
}

/* ------------------------------------------------------------------ the product */

typedef struct sums {
    __m256i v0, v1, v2, v3, v4, v5, v6, v7;
} sums;

/* VECTOR(i) expands to the statement for vector i where the panel has it; n is a constant once inlined. */
#define VECTORS VECTOR(0) VECTOR(1) VECTOR(2) VECTOR(3) VECTOR(4) VECTOR(5) VECTOR(6) VECTOR(7)

OCT_INLINE __m256i lanes(const uint8_t *b, __m256i x)
{
    __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)b);
    OCT_KEEP(w);
    return _mm256_maddubs_epi16(w, x);
}

/* A unit of `quads` quads, of n vectors of 8 columns. */
OCT_INLINE void take_unit(const size_t quads, const size_t n, sums *s, const uint8_t *b, const uint32_t *x)
{
    const __m256i one = _mm256_set1_epi16(1), first = _mm256_set1_epi32((int)x[0]),
                  second = _mm256_set1_epi32((int)x[quads - 1]);
#define VECTOR(i)                                                       \
    if (n > i) {                                                        \
        __m256i v = lanes(b + 32 * i, first);                           \
        if (quads > 1)                                                  \
            v = _mm256_add_epi16(v, lanes(b + 32 * (n + i), second));   \
        s->v##i = _mm256_add_epi32(s->v##i, _mm256_madd_epi16(v, one)); \
    }
    VECTORS
#undef VECTOR
}

OCT_INLINE void prefetch(const size_t bytes, const uint8_t *b)
{
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)b + i, _MM_HINT_T0);
}

OCT_INLINE void panel(const size_t quads, const size_t n, const oct_qrow *r, const uint8_t *b, int32_t *c)
{
    enum { AHEAD = 1024 };
    const size_t unit = 32 * n * quads;
    const __m256i start = _mm256_set1_epi32((int32_t)(0u - (quads > 1 ? 64u : 128u) * r->sum));
    sums s = { start, start, start, start, start, start, start, start };
    size_t more = 0;
    for (size_t u = 0; u < r->units;) {
        const size_t end = r->units - u < OCT_QROW_SEGMENT ? r->units : u + OCT_QROW_SEGMENT;
        for (; u < end; u++) {
            prefetch(unit, b + u * unit + AHEAD);
            take_unit(quads, n, &s, b + u * unit, r->first + u * quads);
        }
        for (; more < r->more && r->further[more].unit < end; more++)
            take_unit(quads, n, &s, b + r->further[more].unit * unit, r->further[more].x);
    }
#define VECTOR(i) \
    if (n > i)    \
        _mm256_storeu_si256((__m256i *)(void *)(c + 8 * i), s.v##i);
    VECTORS
#undef VECTOR
}

OCT_INLINE void run_width(const size_t quads, const oct_qrow *r, size_t columns, const uint8_t *b, int32_t *c)
{
    switch (columns) {
    case 16: panel(quads, 2, r, b, c); break;
    case 32: panel(quads, 4, r, b, c); break;
    case 48: panel(quads, 6, r, b, c); break;
    default: panel(quads, 8, r, b, c); break;
    }
}

static void run(const oct_qrow *r, size_t columns, const uint8_t *b, int32_t *c)
{
    if (r->small)
        run_width(2, r, columns, b, c);
    else
        run_width(1, r, columns, b, c);
}

const oct_qrow_kernel oct_qrow_u8s8_1x64c4__avx2 = { "oct_qrow_u8s8_1x64c4__avx2", count, split, run };
