/* lib/kernels/qgemm/qgemm_u8s8_1x16c4_avx2.c -- one row by any number of plain panels: exact for all weights, bound by reading them.
 *
 * A byte of A is 16 * high + low, each at most 15, so sixteen products of a half fit a 16-bit lane: 16 * 15 * 128 < 2^15. The halves of four
 * quads are summed by vpmaddubsw on the same weights, interleaved, and vpmaddwd by (1, 16) makes one 32-bit sum of both. Widening the
 * weights instead takes more instructions than reading them does time; with more rows it is shared, and cheaper. */
#include "kernels/qgemm/kernels.h"
#include "kernels/simd.h"

#include <string.h>

enum { COLUMNS = 16, QUAD = 4 * COLUMNS, CHAIN = 4 /* quads */, DEPTH = 1024 /* values of k split at once */ };

/* The halves of each quad, as its even and its odd k lie in a panel: (k0, k2) and (k1, k3), twice. */
typedef struct halves {
    uint32_t low_even[DEPTH / 4], high_even[DEPTH / 4], low_odd[DEPTH / 4], high_odd[DEPTH / 4];
} __attribute__((aligned(32))) halves;

OCT_INLINE void put(uint32_t *to, __m256i v)
{
    _mm256_store_si256((__m256i *)(void *)to, v);
}

OCT_INLINE void split_quads(__m256i a, halves *h, size_t at)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i pick = _mm256_setr_epi8(0, 2, 0, 2, 4, 6, 4, 6, 8, 10, 8, 10, 12, 14, 12, 14,
                                          0, 2, 0, 2, 4, 6, 4, 6, 8, 10, 8, 10, 12, 14, 12, 14);
    const __m256i low = _mm256_and_si256(a, nibble), high = _mm256_and_si256(_mm256_srli_epi16(a, 4), nibble);
    put(h->low_even + at, _mm256_shuffle_epi8(low, pick));
    put(h->high_even + at, _mm256_shuffle_epi8(high, pick));
    put(h->low_odd + at, _mm256_shuffle_epi8(_mm256_srli_epi16(low, 8), pick));
    put(h->high_odd + at, _mm256_shuffle_epi8(_mm256_srli_epi16(high, 8), pick));
}

/* k is at most DEPTH; the weights beside what follows the last value are zero. */
static void split(const uint8_t *a, size_t k, uint8_t flip, halves *h)
{
    const __m256i f = _mm256_set1_epi8((char)flip);
    for (size_t i = 0; i < k; i += 32) {
        uint8_t rest[32] = { 0 };
        const uint8_t *from = a + i;
        if (k - i < 32)
            from = memcpy(rest, from, k - i);
        split_quads(_mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)from), f), h, i / 4);
    }
}

/* Sums of products with the low and the high halves, in 16 bits. */
typedef struct chain {
    __m256i low, high;
} chain;

/* Sums of 16 columns; x: 0 to 3 and 8 to 11, y: the others. */
typedef struct sums {
    __m256i x, y;
} sums;

OCT_INLINE void add_pairs(chain *c, const bool first, const int8_t *b, __m256i low, __m256i high)
{
    __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)b);
    OCT_KEEP(w); /* read once */
    const __m256i l = _mm256_maddubs_epi16(low, w), h = _mm256_maddubs_epi16(high, w);
    c->low = first ? l : _mm256_add_epi16(c->low, l);
    c->high = first ? h : _mm256_add_epi16(c->high, h);
    OCT_KEEP(c->low);
    OCT_KEEP(c->high);
}

OCT_INLINE void widen(sums *s, const chain *c)
{
    const __m256i by = _mm256_set1_epi32(16 << 16 | 1);
    s->x = _mm256_add_epi32(s->x, _mm256_madd_epi16(_mm256_unpacklo_epi16(c->low, c->high), by));
    s->y = _mm256_add_epi32(s->y, _mm256_madd_epi16(_mm256_unpackhi_epi16(c->low, c->high), by));
}

OCT_INLINE __m256i spread(uint32_t pair)
{
    return _mm256_set1_epi32((int)pair);
}

/* Quad q from quad `at`, of `panels` panels. */
OCT_INLINE void add_quad(const size_t panels, const size_t q, const halves *h, size_t at, const int8_t *b, size_t panel, chain *c)
{
    const __m256i le = spread(h->low_even[at + q]), he = spread(h->high_even[at + q]);
    add_pairs(&c[0], q == 0, b + q * QUAD, le, he);
    if (panels > 1)
        add_pairs(&c[1], q == 0, b + panel + q * QUAD, le, he);
    const __m256i lo = spread(h->low_odd[at + q]), ho = spread(h->high_odd[at + q]);
    add_pairs(&c[0], false, b + q * QUAD + QUAD / 2, lo, ho);
    if (panels > 1)
        add_pairs(&c[1], false, b + panel + q * QUAD + QUAD / 2, lo, ho);
}

/* CHAIN quads, or one. */
OCT_INLINE void add_chain(const size_t panels, const bool whole, const halves *h, size_t at, const int8_t *b, size_t panel, sums *s)
{
    chain c[2];
    add_quad(panels, 0, h, at, b, panel, c);
    if (whole) {
        add_quad(panels, 1, h, at, b, panel, c);
        add_quad(panels, 2, h, at, b, panel, c);
        add_quad(panels, 3, h, at, b, panel, c);
    }
    widen(&s[0], &c[0]);
    if (panels > 1)
        widen(&s[1], &c[1]);
}

OCT_INLINE __m256i plus(const int32_t *c, bool more, __m256i v)
{
    return more ? _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(const void *)c), v) : v;
}

/* One panel or two; more: c has sums of earlier k. */
OCT_INLINE void run(const size_t panels, size_t quads, const halves *h, const int8_t *b, size_t panel, bool more, int32_t *c)
{
    const __m256i zero = _mm256_setzero_si256();
    sums s[2] = { { zero, zero }, { zero, zero } };
    size_t q = 0;
    for (; q + CHAIN <= quads; q += CHAIN, b += CHAIN * QUAD)
        add_chain(panels, true, h, q, b, panel, s);
    for (; q < quads; q++, b += QUAD)
        add_chain(panels, false, h, q, b, panel, s);
    for (size_t p = 0; p < panels; p++, c += COLUMNS) {
        _mm256_storeu_si256((__m256i *)(void *)c, plus(c, more, _mm256_permute2x128_si256(s[p].x, s[p].y, 0x20)));
        _mm256_storeu_si256((__m256i *)(void *)(c + 8), plus(c + 8, more, _mm256_permute2x128_si256(s[p].x, s[p].y, 0x31)));
    }
}

void oct_qgemm_u8s8_1x16c4__avx2(size_t panels, size_t kc, const uint8_t *a, uint8_t flip, const int8_t *b, size_t panel, int32_t *c)
{
    halves h;
    for (size_t k = 0; k == 0 || k < kc; k += DEPTH, b += DEPTH * COLUMNS) {
        const size_t n = kc - k < DEPTH ? kc - k : DEPTH, quads = (n + 3) / 4;
        split(a + k, n, flip, &h);
        size_t p = 0;
        for (; p + 2 <= panels; p += 2)
            run(2, quads, &h, b + p * panel, panel, k > 0, c + p * COLUMNS);
        if (p < panels)
            run(1, quads, &h, b + p * panel, panel, k > 0, c + p * COLUMNS);
    }
}
