/* lib/kernels/qgemm/qclass_u8s8_mx16c4_avx2.c -- rows by class: as many products in a 16-bit sum as the row allows. */
#include "kernels/qgemm/pair_ymm.inc"
#include "kernels/qgemm/qclass.h"
#include "kernels/qgemm/quad.h"

enum { CHUNK = OCT_QCLASS_CHUNK, LINE = 4 * CHUNK, PLACE = OCT_QCLASS_COLUMNS * sizeof(int32_t) };

OCT_INLINE void store(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

/* ------------------------------------------------------------------ sorting */

/* A line of k of all rows: their chunks and classes. */
typedef struct line {
    uint8_t a[4][OCT_QCLASS_ROWS + 1][CHUNK];
    uint8_t shift[4][OCT_QCLASS_ROWS + 1]; /* 16 times the class */
    uint64_t count[4];                     /* of each class, 16 bits each */
} line;

/* 16 bytes at k of a row, the zero point beyond its end. */
OCT_INLINE __m128i chunk_at(const uint8_t *a, size_t k, size_t n, uint8_t flip, uint8_t za)
{
    uint8_t rest[CHUNK];
    const uint8_t *from = a + k;
    if (n - k < CHUNK) {
        memset(rest, za ^ flip, sizeof rest);
        from = memcpy(rest, from, n - k);
    }
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

OCT_INLINE __m256i with_next(__m256i sums, const int order)
{
    return _mm256_add_epi16(sums, order == 1 ? _mm256_shuffle_epi32(sums, 0xb1) : _mm256_shuffle_epi32(sums, 0x4e));
}

OCT_INLINE uint32_t above(__m256i up, __m256i down, __m256i limit)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi16(_mm256_max_epi16(up, down), limit));
}

OCT_INLINE uint32_t shift_of(uint32_t four, uint32_t two, uint32_t one, uint32_t large)
{
    const uint32_t c = (uint32_t)(four != 0) + (uint32_t)(two != 0) + (uint32_t)(one != 0);
    return (c | (large ? OCT_QCLASS_WIDE : 0)) * 16;
}

/* Classes of one chunk of two rows, a row in each half. Sums of pairs, of the pairs of two quads, of four: of the
 * positive x, of the negative ones. */
OCT_INLINE void class_pair(__m256i a, __m256i base, __m256i limit, line *l, size_t w, size_t row, bool two)
{
    const __m256i one = _mm256_set1_epi8(1), up = _mm256_subs_epu8(a, base), down = _mm256_subs_epu8(base, a);
    const __m256i up1 = _mm256_maddubs_epi16(up, one), down1 = _mm256_maddubs_epi16(down, one);
    const __m256i up2 = with_next(up1, 1), down2 = with_next(down1, 1);
    const uint32_t m1 = above(up1, down1, limit), m2 = above(up2, down2, limit);
    const uint32_t m4 = above(with_next(up2, 2), with_next(down2, 2), limit),
                   large = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(up, down));
    const uint32_t first = shift_of(m4 & 0xffff, m2 & 0xffff, m1 & 0xffff, large & 0xffff);
    const uint32_t second = shift_of(m4 >> 16, m2 >> 16, m1 >> 16, large >> 16);
    l->shift[w][row] = (uint8_t)first;
    l->shift[w][row + 1] = (uint8_t)second;
    l->count[w] += (UINT64_C(1) << first) + ((uint64_t)two << second);
    store(l->a[w][row], a);
}

/* Rows of a chunk to their places. Those of wide rows are written as if they were not, where the next chunk's begin,
 * and then again. */
OCT_INLINE void place_rows(size_t rows, const line *l, size_t w, uint8_t za, oct_qclass *c)
{
    const uint64_t count = l->count[w];
    uint64_t start = (count << 16) * UINT64_C(0x0001000100010001); /* rows of the classes before */
    const size_t narrow = start >> 48;
    const __m128i base = _mm_set1_epi8((char)za);
    for (size_t i = 0; i < rows; i++) {
        const size_t at = start >> l->shift[w][i] & 0xffff;
        start += UINT64_C(1) << l->shift[w][i];
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)l->a[w][i]);
        _mm_storeu_si128((__m128i *)(void *)(c->x + at * CHUNK), _mm_sub_epi8(a, base));
        c->to[at] = (uint16_t)(i * PLACE);
    }
    for (size_t i = 0; i < OCT_QCLASSES; i++)
        (*c->count)[i] = (uint16_t)(count >> 16 * i);
    c->x += narrow * CHUNK;
    c->wide -= (rows - narrow) * CHUNK;
    for (size_t i = narrow; i < rows; i++) {
        const uint8_t *a = l->a[w][c->to[i] / PLACE];
        const __m256i x = _mm256_sub_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)a)),
                                           _mm256_set1_epi16(za));
        store(c->wide + (i - narrow) * CHUNK, _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(x, 0xd8), 0xd8));
    }
    c->to += rows;
    c->count++;
}

/* Chunks of a line, a pair of rows at a time: a line of a row is used up at once, for rows may drive each other from
 * the cache. */
OCT_INLINE void sort_line(size_t rows, size_t chunks, size_t k, size_t n, const uint8_t *const *a, uint8_t flip,
                          uint8_t za, int limit, line *l, int32_t *sum)
{
    const __m256i base = _mm256_set1_epi8((char)za), most = _mm256_set1_epi16((int16_t)limit),
                  flips = _mm256_set1_epi8((char)flip);
    memset(l->count, 0, sizeof l->count);
    for (size_t i = 0; i < rows; i += 2) {
        const bool two = i + 1 < rows;
        __m256i sums = _mm256_setzero_si256();
        for (size_t w = 0; w < chunks; w++) {
            const __m128i first = chunk_at(a[i], k + w * CHUNK, n, flip, za),
                          second = chunk_at(a[i + two], k + w * CHUNK, n, flip, za);
            const __m256i v =
                _mm256_xor_si256(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1), flips);
            sums = _mm256_add_epi64(sums, _mm256_sad_epu8(v, _mm256_setzero_si256()));
            class_pair(v, base, most, l, w, i, two);
        }
        uint64_t each[4];
        store(each, sums);
        sum[i] += (int32_t)(each[0] + each[1]) - (int32_t)(chunks * CHUNK * za);
        if (two)
            sum[i + 1] += (int32_t)(each[2] + each[3]) - (int32_t)(chunks * CHUNK * za);
    }
}

static void sort(size_t rows, size_t k, const uint8_t *const *a, uint8_t flip, uint8_t za, int limit,
                 const oct_qclass *c)
{
    line l;
    oct_qclass at = *c;
    memset(c->sum, 0, rows * sizeof *c->sum);
    for (size_t i = 0; i < k; i += LINE) {
        const size_t chunks = oct_qclass_chunks(k - i < LINE ? k - i : LINE);
        sort_line(rows, chunks, i, k, a, flip, za, limit, &l, c->sum);
        for (size_t w = 0; w < chunks; w++)
            place_rows(rows, &l, w, za, &at);
    }
}

/* ------------------------------------------------------------------ the product */

OCT_INLINE __m256i spread(const void *x)
{
    return _mm256_set1_epi32((int)oct_quad(x));
}

OCT_INLINE pair multiply(const uint8_t *x, pair b)
{
    const __m256i v = spread(x);
    return (pair){ _mm256_maddubs_epi16(b.lo, v), _mm256_maddubs_epi16(b.hi, v) };
}

OCT_INLINE void add_to(int32_t *tile, uint16_t at, pair v)
{
    void *to = (uint8_t *)tile + at;
    store_pair(to, add32(v, load_pair(to)));
}

typedef struct chunk {
    pair b0, b1, b2, b3;
} chunk;

/* n rows of one class. */
OCT_INLINE void pass(const int class, size_t n, chunk w, const uint8_t *x, const uint16_t *to, int32_t *tile)
{
    for (const uint16_t *end = to + n; to < end; to++, x += CHUNK) {
        pair v = multiply(x, w.b0);
        if (class == 2) {
            v = add32(widen(v), widen(multiply(x + 4, w.b1)));
            v = add32(add32(v, widen(multiply(x + 8, w.b2))), widen(multiply(x + 12, w.b3)));
        } else if (class == 1) {
            v = add32(widen(add16(v, multiply(x + 4, w.b1))),
                      widen(add16(multiply(x + 8, w.b2), multiply(x + 12, w.b3))));
        } else {
            v = widen(add16(add16(add16(v, multiply(x + 4, w.b1)), multiply(x + 8, w.b2)), multiply(x + 12, w.b3)));
        }
        add_to(tile, *to, v);
    }
}

OCT_INLINE pair even(pair b)
{
    const __m256i low = _mm256_set1_epi16(0xff);
    return keep((pair){ _mm256_and_si256(b.lo, low), _mm256_and_si256(b.hi, low) });
}

OCT_INLINE pair odd(pair b)
{
    return keep((pair){ _mm256_srli_epi16(b.lo, 8), _mm256_srli_epi16(b.hi, 8) });
}

OCT_INLINE pair multiply16(const int16_t *x, pair b)
{
    const __m256i v = spread(x);
    return (pair){ _mm256_madd_epi16(v, b.lo), _mm256_madd_epi16(v, b.hi) };
}

/* n rows of two quads of a chunk, wide. */
static void pass_wide(size_t n, const uint8_t *b, const int16_t *x, const uint16_t *to, int32_t *tile)
{
    const pair w0 = load_pair(b), w1 = load_pair(b + 64);
    const pair e0 = even(w0), o0 = odd(w0), e1 = even(w1), o1 = odd(w1);
    for (size_t i = 0; i < n; i++, x += CHUNK) {
        const pair v = add32(multiply16(x, e0), multiply16(x + 2, o0));
        add_to(tile, to[i], add32(add32(v, multiply16(x + 4, e1)), multiply16(x + 6, o1)));
    }
}

static void start_tile(size_t rows, uint32_t bias, const int32_t *sum, const int32_t *add, int32_t *tile)
{
    const pair start = load_pair(add);
    for (size_t i = 0; i < rows; i++, tile += OCT_QCLASS_COLUMNS) {
        const __m256i off = _mm256_set1_epi32((int32_t)(bias * (uint32_t)sum[i]));
        store_pair(tile, (pair){ _mm256_sub_epi32(start.lo, off), _mm256_sub_epi32(start.hi, off) });
    }
}

static void run(size_t rows, size_t k, uint32_t bias, const oct_qclass *c, const uint8_t *panel, const int32_t *add,
                int32_t *tile)
{
    const uint8_t *x = c->x;
    const uint16_t *to = c->to;
    const int16_t *wide = c->wide;
    start_tile(rows, bias, c->sum, add, tile);
    for (size_t i = 0; i < oct_qclass_chunks(k); i++, panel += CHUNK * OCT_QCLASS_COLUMNS) {
        const chunk w = { load_pair(panel), load_pair(panel + 64), load_pair(panel + 128), load_pair(panel + 192) };
        const size_t n0 = c->count[i][0], n1 = c->count[i][1], n2 = c->count[i][2], n3 = c->count[i][OCT_QCLASS_WIDE];
        pass(0, n0, w, x, to, tile);
        x += n0 * CHUNK;
        to += n0;
        pass(1, n1, w, x, to, tile);
        x += n1 * CHUNK;
        to += n1;
        pass(2, n2, w, x, to, tile);
        x += n2 * CHUNK;
        to += n2;
        if (n3 == 0)
            continue;
        wide -= n3 * CHUNK;
        pass_wide(n3, panel, wide, to, tile);
        pass_wide(n3, panel + 128, wide + 8, to, tile);
        to += n3;
    }
}

const oct_qclass_kernel oct_qclass_u8s8_mx16c4__avx2 = { "oct_qclass_u8s8_mx16c4__avx2", sort, run };
