/* lib/kernels/dw/qdw_columns_avx512vnni.c -- 3x3 depthwise convolution by columns: vpdpbusd on 64 channels, or on 32
 * of two pixels, whose bytes are finished and written at once. Other outputs and channels go in 256-bit registers, by
 * vpdpbusd and vpdpwssd of CPUs that may lack AVX-VNNI. */
#define MADD _mm256_dpwssd_epi32
#define QUAD _mm256_dpbusd_epi32

#include "kernels/dw/qdw_columns_ymm.inc"
#include "kernels/qgemm/qlast_zmm.inc"

enum { WIDTH = OCT_QDW_BLOCK, PARTS = 4 };

/* 64 values of a column in quads: register i has 4 of every 16, from 4 * i on. Of a block of 32 channels they are of
 * two neighbouring pixels. */
typedef struct quads {
    __m512i q[PARTS];
} quads;

OCT_INLINE __m512i row_at(const bool pair, const uint8_t *x, const uint8_t *next)
{
    if (!pair)
        return _mm512_loadu_si512(x);
    const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return _mm512_inserti64x4(_mm512_castsi256_si512(first), _mm256_loadu_si256((const __m256i *)(const void *)next),
                              1);
}

OCT_INLINE quads column_at(const bool pair, const uint8_t *const *x, const uint8_t *const *next, size_t from)
{
    const __m512i r0 = row_at(pair, x[0] + from, next[0] + from), r1 = row_at(pair, x[1] + from, next[1] + from);
    const __m512i r2 = row_at(pair, x[2] + from, next[2] + from);
    const __m512i a = _mm512_unpacklo_epi8(r0, r1), b = _mm512_unpacklo_epi8(r2, r1);
    const __m512i c = _mm512_unpackhi_epi8(r0, r1), d = _mm512_unpackhi_epi8(r2, r1);
    return (quads){ { _mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b), _mm512_unpacklo_epi16(c, d),
                      _mm512_unpackhi_epi16(c, d) } };
}

/* The second pixel of a and the first of b. */
OCT_INLINE quads between(quads a, quads b)
{
    quads v;
#pragma GCC unroll 4
    for (size_t i = 0; i < PARTS; i++)
        v.q[i] = _mm512_shuffle_i32x4(a.q[i], b.q[i], 0x4e);
    return v;
}

/* The columns of a pixel, or of two. */
typedef struct view {
    quads a, b, c;
} view;

/* advance: columns from one pixel to the next, if known: what they have in common stays in registers. */
OCT_INLINE void slide(const bool pair, const size_t advance, bool first, const uint8_t *const *x,
                      const uint8_t *const *next, size_t from, view *v)
{
    const view before = *v;
    v->c = column_at(pair, x + 6, next + 6, from);
    if (!first && advance == 1) {
        v->a = pair ? before.c : before.b;
        v->b = pair ? between(before.c, v->c) : before.c;
        return;
    }
    v->a = !first && advance == 2 && !pair ? before.c : column_at(pair, x, next, from);
    v->b = column_at(pair, x + 3, next + 3, from);
}

/* Values of a block's channels in the order of a column's registers. */
OCT_INLINE void values_of(const bool pair, const void *from, __m512i to[PARTS])
{
    for (size_t i = 0; i < PARTS; i++) {
        int32_t v[WIDTH / PARTS];
        for (size_t lane = 0; lane < 4; lane++)
            memcpy(v + 4 * lane, (const int32_t *)from + lane % (pair ? 2 : 4) * 16 + 4 * i, 4 * sizeof *v);
        to[i] = _mm512_loadu_si512(v);
    }
}

/* What finishes a block. */
typedef struct ending {
    __m512i add[PARTS];
    __m512 mult[PARTS];
    oct_qlast last;
} ending;

OCT_INLINE void block_line(const bool pair, const size_t advance, const oct_qdw_lines *l, const ending *k,
                           const int8_t *w, const uint8_t *const *x, size_t from, uint8_t *y)
{
    const size_t step = pair ? 2 : 1;
    view v = { 0 };
    for (size_t p = 0; p < l->px; p += step, x += 3 * step * l->advance, y += step * l->ldy) {
        const bool two = pair && p + 1 < l->px;
        slide(pair, advance, p == 0, x, two ? x + 3 * l->advance : x, from, &v);
        __m512i s[PARTS];
        OCT_RELOAD(w);
#pragma GCC unroll 4
        for (size_t i = 0; i < PARTS; i++) {
            s[i] = _mm512_dpbusd_epi32(k->add[i], v.a.q[i], _mm512_load_si512(w + i * WIDTH));
            s[i] = _mm512_dpbusd_epi32(s[i], v.b.q[i], _mm512_load_si512(w + (PARTS + i) * WIDTH));
            s[i] = _mm512_dpbusd_epi32(s[i], v.c.q[i], _mm512_load_si512(w + (2 * PARTS + i) * WIDTH));
        }
        const __m512i u = oct_qlast_mixed(true, &k->last, s, k->mult);
        if (pair)
            _mm256_storeu_si256((__m256i *)(void *)y, _mm512_castsi512_si256(u));
        else
            _mm512_storeu_si512(y, u);
        if (two)
            _mm256_storeu_si256((__m256i *)(void *)(y + l->ldy), _mm512_extracti64x4_epi64(u, 1));
    }
}

/* Channels from `from` on. */
OCT_INLINE void block(const bool pair, const oct_qdw_lines *l, const int8_t *w, size_t from)
{
    ending k = { .last = oct_qlast_of(l->out) };
    __m512i mult[PARTS];
    values_of(pair, l->add + from, k.add);
    values_of(pair, l->out->mult + from, mult);
    for (size_t i = 0; i < PARTS; i++)
        k.mult[i] = _mm512_castsi512_ps(mult[i]);
    for (size_t i = 0; i < l->lines; i++) {
        const uint8_t *const *x = l->x + i * l->pitch;
        uint8_t *y = l->y + i * l->px * l->ldy + from;
        if (l->advance == 1)
            block_line(pair, 1, l, &k, w, x, from, y);
        else if (l->advance == 2)
            block_line(pair, 2, l, &k, w, x, from, y);
        else
            block_line(pair, 0, l, &k, w, x, from, y);
    }
}

/* Units of 16 channels that are in blocks: those up to the first block with one that is wide. */
static size_t units_in_blocks(const oct_qdw_lines *l)
{
    const uint8_t *wide = l->w;
    const size_t most = oct_qdw_blocks(l->c) * 4, end = most < l->c / 32 * 2 ? most : l->c / 32 * 2;
    for (size_t i = 0; i < end; i++)
        if (wide[i])
            return i / 4 * 4;
    return end;
}

void oct_qdw_columns__avx512vnni(const oct_qdw_lines *l)
{
    const size_t units = l->acc ? 0 : units_in_blocks(l);
    const int8_t *w = (const int8_t *)l->w + oct_qdw_columns_units(l->c);
    for (size_t i = 0; i < units; i += 4, w += OCT_QDW_BLOCK_BYTES) {
        if (units - i < 4)
            block(true, l, w, i * 16);
        else
            block(false, l, w, i * 16);
    }
    units_from(units, l);
}
