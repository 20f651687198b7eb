/* lib/kernels/qgemm/qgemm_u8s8_mx16c4_avx2_chain.c -- all rows of a block by 16 columns, vpmaddubsw, up to 8 products in a
 * 16-bit sum.
 *
 * Exact because the packer only chains quads that cannot overflow (qchain.h). The weights of a unit stay in 8 registers while the
 * rows pass, and its products are added to the tile in memory. That takes fewer instructions than weights passing by sums in registers: with
 * 16-bit sums there are two kinds of them to keep. */
#include "kernels/qgemm/qchain.h"
#include "kernels/qgemm/quad.h"
#include "kernels/simd.h"

typedef struct pair {
    __m256i lo, hi;
} pair;

OCT_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

OCT_INLINE pair load_pair(const int8_t *p)
{
    return (pair){ load(p), load(p + 32) };
}

OCT_INLINE __m256i spread(const uint8_t *a, const bool shuffled, __m256i pick)
{
    if (shuffled)
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)), pick);
    return _mm256_set1_epi32((int)oct_quad(a));
}

OCT_INLINE pair multiply(__m256i a, pair b)
{
    return (pair){ _mm256_maddubs_epi16(a, b.lo), _mm256_maddubs_epi16(a, b.hi) };
}

OCT_INLINE pair keep(pair v)
{
    OCT_KEEP(v.lo);
    OCT_KEEP(v.hi);
    return v;
}

OCT_INLINE pair add16(pair v, pair w)
{
    return keep((pair){ _mm256_add_epi16(v.lo, w.lo), _mm256_add_epi16(v.hi, w.hi) });
}

OCT_INLINE pair add32(pair v, pair w)
{
    return keep((pair){ _mm256_add_epi32(v.lo, w.lo), _mm256_add_epi32(v.hi, w.hi) });
}

OCT_INLINE pair widen(pair v)
{
    const __m256i one = _mm256_set1_epi16(1);
    return (pair){ _mm256_madd_epi16(v.lo, one), _mm256_madd_epi16(v.hi, one) };
}

/* The 16-bit sums of quad i of a unit, for the row r bytes from the first. */
#define QUAD(i) multiply(spread(a##i + r, shuffled, pick##i), b##i)

/* One unit: rows of the tile `to` are those of `from`, `step` numbers apart, and the products. Returns nothing to wait for: a row of the
 * tile comes again only when all others have passed. */
OCT_INLINE void pass(const size_t form, const bool shuffled, size_t rows, const oct_qchain_rows *a, const oct_qchain_quad *at, const int8_t *b,
                     const int32_t *from, size_t step, int32_t *to)
{
    const bool half = form >= OCT_QCHAIN_HALVES;
#define FIND(i, q)                                                                                                                 \
    const pair b##i = load_pair(b + 64 * (q));                                                                                     \
    const uint8_t *a##i = a->x + at[q].k / OCT_QCHAIN_WINDOW * a->window + at[q].k % OCT_QCHAIN_WINDOW;                            \
    const __m256i pick##i = _mm256_set1_epi32((int)oct_quad(at[q].pick));
    FIND(0, 0) FIND(1, 1) FIND(2, half ? 0 : 2) FIND(3, half ? 0 : 3)
#undef FIND
    const size_t row = a->row, end = rows * row;
    for (size_t r = 0; r < end; r += row, from += step, to += OCT_QCHAIN_COLUMNS) {
        pair v = QUAD(0);
        if (form == 4 || form == 6)
            v = add32(widen(v), widen(QUAD(1)));
        else if (form == 3)
            v = add32(widen(add16(v, QUAD(1))), widen(QUAD(2)));
        else
            v = add16(v, QUAD(1));
        if (form == 0)
            v = widen(add16(add16(v, QUAD(2)), QUAD(3)));
        else if (form == 1)
            v = add32(widen(add16(v, QUAD(2))), widen(QUAD(3)));
        else if (form == 2)
            v = add32(widen(v), widen(add16(QUAD(2), QUAD(3))));
        else if (form == 3)
            v = add32(v, widen(QUAD(3)));
        else if (form == 4)
            v = add32(add32(v, widen(QUAD(2))), widen(QUAD(3)));
        else if (form == 5)
            v = widen(v);
        const pair sum = add32(v, (pair){ load(from), load(from + 8) });
        _mm256_storeu_si256((__m256i *)(void *)to, sum.lo);
        _mm256_storeu_si256((__m256i *)(void *)(to + 8), sum.hi);
    }
}

/* What is left of a segment, and where the sums so far are. */
typedef struct place {
    const oct_qchain_quad *at;
    const int8_t *b;
    const int32_t *from;
    size_t step;
} place;

/* All units of one kind. */
#define UNITS(name, form, shuffled)                                                                                                \
    static place name(size_t units, place p, size_t rows, const oct_qchain_rows *a, int32_t *c)                                            \
    {                                                                                                                              \
        const size_t quads = oct_qchain_quads(form);                                                                               \
        for (size_t i = 0; i < units; i++, p.at += quads, p.b += quads * 4 * OCT_QCHAIN_COLUMNS) {                                 \
            pass(form, shuffled, rows, a, p.at, p.b, p.from, p.step, c);                                                           \
            p.from = c;                                                                                                            \
            p.step = OCT_QCHAIN_COLUMNS;                                                                                           \
        }                                                                                                                          \
        return p;                                                                                                                  \
    }
UNITS(natural0, 0, false)
UNITS(natural1, 1, false)
UNITS(natural2, 2, false)
UNITS(natural3, 3, false)
UNITS(natural4, 4, false)
UNITS(natural5, 5, false)
UNITS(natural6, 6, false)
UNITS(shuffled0, 0, true)
UNITS(shuffled1, 1, true)
UNITS(shuffled2, 2, true)
UNITS(shuffled3, 3, true)
UNITS(shuffled4, 4, true)
UNITS(shuffled5, 5, true)
UNITS(shuffled6, 6, true)

void oct_qgemm_u8s8_mx16c4__avx2_chain(size_t rows, size_t depth, const oct_qchain_rows *a, const int8_t *panel, const int32_t *start, int32_t *c)
{
    static place (*const kinds[])(size_t, place, size_t, const oct_qchain_rows *, int32_t *) = {
        natural0, natural1, natural2, natural3, natural4, natural5, natural6, shuffled0, shuffled1, shuffled2, shuffled3, shuffled4, shuffled5,
        shuffled6,
    };
    const oct_qchain_segment *s = (const oct_qchain_segment *)(const void *)(panel + sizeof(oct_qchain_panel));
    place p = { .from = start };
    for (size_t k = 0; k < depth; k += OCT_QCHAIN_DEPTH) {
        p.at = (const oct_qchain_quad *)(const void *)(s + 1);
        p.b = (const int8_t *)p.at + s->weights;
        const oct_qchain_segment *next = (const oct_qchain_segment *)(const void *)((const int8_t *)p.at + s->next);
        for (size_t i = 0; i < OCT_QCHAIN_KINDS; i++)
            if (s->units[i])
                p = kinds[i](s->units[i], p, rows, a, c);
        s = next;
    }
}
