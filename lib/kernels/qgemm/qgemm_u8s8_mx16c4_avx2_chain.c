/* lib/kernels/qgemm/qgemm_u8s8_mx16c4_avx2_chain.c -- all rows of a block by 16 columns, vpmaddubsw, up to 8 products
 * in a 16-bit sum.
 *
 * Exact because the packer only chains quads that cannot overflow (qchain.h). The weights of a unit stay in 8 registers
 * while the rows pass, and its products are added to the tile in memory. That takes fewer instructions than weights
 * passing by sums in registers: with 16-bit sums there are two kinds of them to keep. */
#include "kernels/qgemm/pair_ymm.inc"
#include "kernels/qgemm/qchain.h"
#include "kernels/qgemm/quad.h"

OCT_INLINE __m256i spread(const uint8_t *a, const bool shuffled, __m256i pick)
{
    if (shuffled)
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a)),
                                   pick);
    return _mm256_set1_epi32((int)oct_quad(a));
}

/* Doubled: the first half by the row at `a`, the second by the row at `next`. */
OCT_INLINE pair multiply(const bool shuffled, const bool doubled, const uint8_t *a, const uint8_t *next, __m256i pick,
                         pair b)
{
    const __m256i v = spread(a, shuffled, pick);
    return (pair){ _mm256_maddubs_epi16(v, b.lo),
                   _mm256_maddubs_epi16(doubled ? spread(next, shuffled, pick) : v, b.hi) };
}

/* The 16-bit sums of quad i of a unit, for the row r bytes from the first; doubled: and the one after it. */
#define QUAD(i) multiply(shuffled, doubled, a##i + r, a##i + gap + r, pick##i, b##i)

/* One unit, an even number of rows for doubled panels: rows of the tile `to` are those of `from`, `step` numbers apart,
 * and the products. Returns nothing to wait for: a row of the tile comes again only when all others have passed. */
OCT_INLINE void pass(const size_t form, const bool shuffled, const bool doubled, size_t rows, const oct_qchain_rows *a,
                     const oct_qchain_quad *at, const int8_t *b, const int32_t *from, size_t step, int32_t *to)
{
    const bool half = form >= OCT_QCHAIN_HALVES;
#define FIND(i, q)                                                                                   \
    const pair b##i = load_pair(b + 64 * (q));                                                       \
    const uint8_t *a##i = a->x + at[q].k / OCT_QCHAIN_CHUNK * a->chunk + at[q].k % OCT_QCHAIN_CHUNK; \
    const __m256i pick##i = _mm256_set1_epi32((int)oct_quad(at[q].pick))
    FIND(0, 0);
    FIND(1, 1);
    FIND(2, half ? 0 : 2);
    FIND(3, half ? 0 : 3);
#undef FIND
    const size_t gap = a->row, row = doubled ? 2 * gap : gap, end = rows * gap;
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
        store_pair(to, add32(v, load_pair(from)));
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
#define UNITS(name, form, shuffled, doubled)                                                       \
    static place name(size_t units, place p, size_t rows, const oct_qchain_rows *a, int32_t *c)    \
    {                                                                                              \
        const size_t quads = oct_qchain_quads(form);                                               \
        for (size_t i = 0; i < units; i++, p.at += quads, p.b += quads * 4 * OCT_QCHAIN_COLUMNS) { \
            pass(form, shuffled, doubled, rows, a, p.at, p.b, p.from, p.step, c);                  \
            p.from = c;                                                                            \
            p.step = OCT_QCHAIN_COLUMNS;                                                           \
        }                                                                                          \
        return p;                                                                                  \
    }
#define FORMS(name, shuffled, doubled)   \
    UNITS(name##0, 0, shuffled, doubled) \
    UNITS(name##1, 1, shuffled, doubled) \
    UNITS(name##2, 2, shuffled, doubled) \
    UNITS(name##3, 3, shuffled, doubled) \
    UNITS(name##4, 4, shuffled, doubled) \
    UNITS(name##5, 5, shuffled, doubled) \
    UNITS(name##6, 6, shuffled, doubled)
FORMS(natural, false, false)
FORMS(shuffled, true, false)
FORMS(natural_doubled, false, true)
FORMS(shuffled_doubled, true, true)

typedef place (*units_fn)(size_t, place, size_t, const oct_qchain_rows *, int32_t *);

static void run_panel(const units_fn *kinds, size_t rows, size_t depth, const oct_qchain_rows *a, const int8_t *panel,
                      const int32_t *start, int32_t *c)
{
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

void oct_qgemm_u8s8_mx16c4__avx2_chain(size_t rows, size_t depth, const oct_qchain_rows *a, const int8_t *panel,
                                       const int32_t *start, int32_t *c)
{
#define KINDS(name) name##0, name##1, name##2, name##3, name##4, name##5, name##6
    static const units_fn kinds[] = { KINDS(natural), KINDS(shuffled) },
                          doubled_kinds[] = { KINDS(natural_doubled), KINDS(shuffled_doubled) };
#undef KINDS
    if (!((const oct_qchain_panel *)(const void *)panel)->doubled) {
        run_panel(kinds, rows, depth, a, panel, start, c);
        return;
    }
    const size_t even = rows / 2 * 2;
    if (even)
        run_panel(doubled_kinds, even, depth, a, panel, start, c);
    if (even < rows) { /* the last row, by both halves */
        const oct_qchain_rows last = { a->x + even * a->row, a->row, a->chunk };
        run_panel(kinds, 1, depth, &last, panel, start, c + even * (OCT_QCHAIN_COLUMNS / 2));
    }
}
