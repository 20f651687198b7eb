/* lib/kernels/conv/qdw_columns_avx2.c -- 3x3 depthwise convolution on bytes: the image columns of a pixel stay in registers for
 * the next one.
 *
 * A quad (r0, r1, r2, r1) of a channel fills a 32-bit lane. Narrow weights take vpmaddubsw, exact because the packer kept
 * each pair within 128 (qdw_columns.c); wide ones take the rows apart into 16 bits, |pair| <= 2 * 255 * 255. */
#include "kernels/conv/qdw_columns.h"
#include "kernels/simd.h"

/* Where a unit's 16 channels are: in the lower or upper halves of 32 loaded ones, or 16 by themselves. */
typedef enum part { LOWER, UPPER, ALONE } part;

/* Constants of an inlined copy. */
typedef struct form {
    part part;
    bool flip, wide;
} form;

typedef struct args {
    size_t px, step;
    const uint8_t *const *x;
    const uint8_t *fresh; /* columns of each pixel that the one before had not */
    size_t from, at, gap; /* first channel loaded; channels written */
    const uint8_t *w;
    int32_t *acc;
} args;

/* Channels 0-3, 8-11 of the unit, and the others. */
typedef struct column {
    __m256i lo, hi;
} column;

OCT_INLINE __m256i load(form f, const uint8_t *x)
{
    __m256i v;
    if (f.part == ALONE)
        v = _mm256_permute4x64_epi64(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)x)), 0x10);
    else
        v = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return f.flip ? _mm256_xor_si256(v, _mm256_set1_epi8((char)0x80)) : v;
}

OCT_INLINE column column_at(form f, const uint8_t *const *x, size_t from)
{
    const __m256i r0 = load(f, x[0] + from), r1 = load(f, x[3] + from), r2 = load(f, x[6] + from);
    const __m256i a = f.part == UPPER ? _mm256_unpackhi_epi8(r0, r1) : _mm256_unpacklo_epi8(r0, r1);
    const __m256i b = f.part == UPPER ? _mm256_unpackhi_epi8(r2, r1) : _mm256_unpacklo_epi8(r2, r1);
    return (column){ _mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b) };
}

/* The i-th register of the unit's weights. */
OCT_INLINE __m256i weights(const uint8_t *w, size_t i)
{
    return _mm256_load_si256((const __m256i *)(const void *)w + i);
}

OCT_INLINE __m256i narrow(const uint8_t *w, size_t i, __m256i v)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(v, weights(w, i)), _mm256_set1_epi16(1));
}

OCT_INLINE __m256i outer(const uint8_t *w, size_t i, __m256i v)
{
    return _mm256_madd_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0xff)), weights(w, i));
}

/* Sum of three columns' quads; i is 0 for the lower channels, 1 for the upper ones. */
OCT_INLINE __m256i sum(bool wide, const uint8_t *w, size_t i, __m256i a, __m256i b, __m256i c)
{
    if (!wide)
        return _mm256_add_epi32(_mm256_add_epi32(narrow(w, i, a), narrow(w, i + 2, b)), narrow(w, i + 4, c));
    const __m256i ab = _mm256_blend_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8), 0xaa);
    const __m256i middle = _mm256_add_epi32(_mm256_madd_epi16(ab, weights(w, i + 6)),
                                            _mm256_madd_epi16(_mm256_srli_epi16(c, 8), weights(w, i + 8)));
    return _mm256_add_epi32(_mm256_add_epi32(middle, outer(w, i, a)), _mm256_add_epi32(outer(w, i + 2, b), outer(w, i + 4, c)));
}

OCT_INLINE void unit(form f, const args *g)
{
    column a = { _mm256_setzero_si256(), _mm256_setzero_si256() }, b = a, c = a;
    const uint8_t *const *x = g->x;
    int32_t *to = g->acc + g->at;
    for (size_t p = 0; p < g->px; p++, x += 9, to += g->step) {
        if (g->fresh[p] == 1) {
            a = b, b = c;
        } else {
            a = g->fresh[p] == 2 ? c : column_at(f, x, g->from);
            b = column_at(f, x + 1, g->from);
        }
        c = column_at(f, x + 2, g->from);
        const __m256i lo = sum(f.wide, g->w, 0, a.lo, b.lo, c.lo), hi = sum(f.wide, g->w, 1, a.hi, b.hi, c.hi);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(lo, hi, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(to + g->gap), _mm256_permute2x128_si256(lo, hi, 0x31));
    }
}

OCT_INLINE void unit_of(part where, bool flip, bool wide, const args *g)
{
    if (flip && wide)
        unit((form){ where, true, true }, g);
    else if (flip)
        unit((form){ where, true, false }, g);
    else if (wide)
        unit((form){ where, false, true }, g);
    else
        unit((form){ where, false, false }, g);
}

/* Bit i: a[i] == b[i], of 4. */
OCT_INLINE int same(const uint8_t *const *a, const uint8_t *const *b)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)a);
    const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)b);
    return _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(v, u)));
}

/* Columns of pixel x[9..17] that pixel x[0..8] does not have: 1 or 2 where it slides along the rows, else 3. Of each row's three
 * taps the first two are the last two of the pixel before (taps 0, 1, 3 and 4, 6, 7), or the first is the last one (0, 3 and 6). */
OCT_INLINE uint8_t fresh_columns(const uint8_t *const *x)
{
    if ((same(x + 9, x + 1) & 11) == 11 && (same(x + 13, x + 5) & 13) == 13)
        return 1;
    return (same(x + 9, x + 2) & 9) == 9 && (same(x + 13, x + 6) & 4) ? 2 : 3;
}

void oct_qdw_columns__avx2(size_t px, size_t c, const uint8_t *const *x, uint8_t flip, const void *packed, int32_t *acc)
{
    const uint8_t *wide = packed;
    uint8_t fresh[OCT_DW_PIXELS] = { 3 };
    for (size_t p = 1; p < px; p++)
        fresh[p] = fresh_columns(x + (p - 1) * 9);
    args g = { .px = px, .step = oct_round_up(c, OCT_DW_CHANNELS), .x = x, .fresh = fresh,
               .w = wide + oct_qdw_columns_flags(c), .acc = acc };
    for (size_t i = 0; i < oct_qdw_units(c); i++, g.w += OCT_QDW_UNIT) {
        const oct_qdw_unit u = oct_qdw_unit_at(c, i);
        g.at = u.at, g.gap = u.gap;
        g.from = u.gap == 16 ? i / 2 * 32 : u.at;
        if (u.gap == 8)
            unit_of(ALONE, flip, wide[i], &g);
        else if (i % 2 == 0)
            unit_of(LOWER, flip, wide[i], &g);
        else
            unit_of(UPPER, flip, wide[i], &g);
    }
}
