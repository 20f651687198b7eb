/* lib/kernels/qgemm/qgemm_u8s8_8x32c4_avx512vnni.c -- 8 rows by 32 columns, vpdpbusd: four products and their sum in 32
 * bits, exact. Sums as they are, or with their last step while they are in registers. */
#include "kernels/qgemm/qfused.h"
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/qgemm/quad.h"
#include "kernels/qgemm/qlast_zmm.inc"
#include "kernels/simd.h"

enum { ROWS = 8, HALF = 16, WIDTH = 2 * HALF, QUAD = 4 * WIDTH };

OCT_INLINE __m512i broadcast(uint32_t four, const uint8_t flip)
{
    const __m512i all = _mm512_set1_epi32((int)four);
    return flip ? _mm512_xor_si512(all, _mm512_set1_epi8((char)flip)) : all;
}

/* Adds the products of m rows to their sums: of each the first sixteen columns and, if wide, the others. What is left
 * of k behind whole quads is copied and follows as one. fetch: weights `ahead` bytes further are fetched. */
OCT_INLINE void products(const size_t m, const bool wide, const uint8_t flip, const bool fetch, size_t ahead,
                         size_t taps, size_t kc, const uint8_t *const *a, const int8_t *b, __m512i v[ROWS][2])
{
    const size_t whole = kc / 4 * 4;
    for (size_t t = 0; t < taps; t++, a += ROWS) {
        uint32_t rest[ROWS];
        const uint8_t *x[ROWS];
#pragma GCC unroll 8
        for (size_t i = 0; i < m; i++)
            x[i] = a[i];
        for (size_t done = 0, n = whole ? whole : kc; done < kc; done += n, n = kc - done) {
            for (size_t i = 0; done == whole && i < m; i++) {
                rest[i] = oct_quad_part(a[i] + whole, kc - whole);
                x[i] = (const uint8_t *)&rest[i];
            }
            for (size_t k = 0; k < n; k += 4, b += QUAD) {
                if (fetch) {
                    _mm_prefetch((const char *)b + ahead, _MM_HINT_T0);
                    _mm_prefetch((const char *)b + ahead + QUAD / 2, _MM_HINT_T0);
                }
                const __m512i b0 = _mm512_loadu_si512(b), b1 = wide ? _mm512_loadu_si512(b + QUAD / 2) : b0;
#pragma GCC unroll 8
                for (size_t i = 0; i < m; i++) {
                    const __m512i four = broadcast(oct_quad(x[i] + k), flip);
                    v[i][0] = _mm512_dpbusd_epi32(v[i][0], four, b0);
                    v[i][1] = wide ? _mm512_dpbusd_epi32(v[i][1], four, b1) : v[i][1];
                }
            }
        }
    }
}

OCT_INLINE void tile(const size_t m, const bool wide, const uint8_t flip, size_t taps, size_t kc,
                     const uint8_t *const *a, const int8_t *b, int32_t *c)
{
    __m512i v[ROWS][2];
#pragma GCC unroll 8
    for (size_t i = 0; i < m; i++)
        v[i][0] = v[i][1] = _mm512_setzero_si512();
    products(m, wide, flip, false, 0, taps, kc, a, b, v);
#pragma GCC unroll 8
    for (size_t i = 0; i < m; i++) {
        _mm512_storeu_si512(c + i * WIDTH, v[i][0]);
        if (wide)
            _mm512_storeu_si512(c + i * WIDTH + HALF, v[i][1]);
    }
}

/* One row, which waits for its sums and its weights: four sums an output, each of every fourth quad, and weights
 * fetched ahead. */
OCT_INLINE void row(const bool wide, const uint8_t flip, size_t taps, size_t kc, const uint8_t *const *a,
                    const int8_t *b, int32_t *c)
{
    enum { AHEAD = 2048, CHAINS = 4 };
    __m512i v[CHAINS][2];
#pragma GCC unroll 4
    for (size_t i = 0; i < CHAINS; i++)
        v[i][0] = v[i][1] = _mm512_setzero_si512();
    for (size_t t = 0; t < taps; t++, a += ROWS) {
        size_t k = 0;
        for (; k + 4 * CHAINS <= kc; k += 4 * CHAINS, b += CHAINS * QUAD) {
            for (size_t i = 0; i < CHAINS * QUAD; i += 64)
                _mm_prefetch((const char *)b + AHEAD + i, _MM_HINT_T0);
#pragma GCC unroll 4
            for (size_t i = 0; i < CHAINS; i++) {
                const __m512i x = broadcast(oct_quad(a[0] + k + 4 * i), flip);
                v[i][0] = _mm512_dpbusd_epi32(v[i][0], x, _mm512_loadu_si512(b + QUAD * i));
                v[i][1] = wide ? _mm512_dpbusd_epi32(v[i][1], x, _mm512_loadu_si512(b + QUAD * i + QUAD / 2)) : v[i][1];
            }
        }
        for (; k < kc; k += 4, b += QUAD) {
            const __m512i x = broadcast(kc - k >= 4 ? oct_quad(a[0] + k) : oct_quad_part(a[0] + k, kc - k), flip);
            v[0][0] = _mm512_dpbusd_epi32(v[0][0], x, _mm512_loadu_si512(b));
            v[0][1] = wide ? _mm512_dpbusd_epi32(v[0][1], x, _mm512_loadu_si512(b + QUAD / 2)) : v[0][1];
        }
    }
    _mm512_storeu_si512(c, _mm512_add_epi32(_mm512_add_epi32(v[0][0], v[1][0]), _mm512_add_epi32(v[2][0], v[3][0])));
    if (wide)
        _mm512_storeu_si512(c + HALF,
                            _mm512_add_epi32(_mm512_add_epi32(v[0][1], v[1][1]), _mm512_add_epi32(v[2][1], v[3][1])));
}

/* Heights 3, 5 and 7 run as the next even one: the walk gives valid rows up to mr. */
#define CASE(m)                                                                                      \
    case m:                                                                                          \
        if (flip)                                                                                    \
            wide ? tile(m, true, 0x80, taps, kc, a, b, c) : tile(m, false, 0x80, taps, kc, a, b, c); \
        else                                                                                         \
            wide ? tile(m, true, 0, taps, kc, a, b, c) : tile(m, false, 0, taps, kc, a, b, c);       \
        break;

void oct_qgemm_u8s8_8x32c4__avx512vnni(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a,
                                       uint8_t flip, const int8_t *b, int32_t *c)
{
    const bool wide = n > HALF;
    if (m == 1) {
        if (flip)
            wide ? row(true, 0x80, taps, kc, a, b, c) : row(false, 0x80, taps, kc, a, b, c);
        else
            wide ? row(true, 0, taps, kc, a, b, c) : row(false, 0, taps, kc, a, b, c);
        return;
    }
    switch ((m + 1) / 2 * 2) {
        CASE(2) CASE(4) CASE(6) CASE(8)
    }
}
#undef CASE

/* What is the same for all rows of a panel. */
typedef struct columns {
    __m512i add[2];
    __m512 mult[2], bias[2];
    __mmask16 k[2];
    oct_qlast last;
} columns;

static void find_columns(const oct_qfused *f, columns *c)
{
    for (size_t v = 0; v < 2; v++) {
        const size_t at = v * HALF, left = f->n > at ? f->n - at : 0;
        const __mmask16 k = left >= HALF ? 0xffff : (__mmask16)((1u << left) - 1);
        c->k[v] = k;
        c->add[v] = _mm512_maskz_loadu_epi32(k, f->add + (k ? at : 0));
        c->mult[v] = _mm512_maskz_loadu_ps(k, f->out->mult + (k ? at : 0));
        c->bias[v] = f->out->bias ? _mm512_maskz_loadu_ps(k, f->out->bias + (k ? at : 0)) : _mm512_setzero_ps();
    }
    c->last = oct_qlast_of(f->out);
}

/* Rows i and i + 1, if there is one, as bytes. */
OCT_INLINE void store_bytes(const bool wide, const oct_qfused *f, const columns *c, __m512i v[ROWS][2], size_t i,
                            size_t rows, uint8_t *to)
{
    const __m512 mult0 = c->mult[0], mult1 = wide ? c->mult[1] : c->mult[0];
    const __m512i sums[] = { v[i][0], wide ? v[i][1] : v[i][0], v[i + 1][0], wide ? v[i + 1][1] : v[i + 1][0] };
    const __m512i q = oct_qlast_bytes(true, &c->last, sums, (const __m512[]){ mult0, mult1, mult0, mult1 });
    const __m256i first = _mm512_castsi512_si256(q), second = _mm512_extracti64x4_epi64(q, 1);
    to += i * f->ldc;
    if (f->n == WIDTH) { /* a store without a mask is several times cheaper on some CPUs */
        _mm256_storeu_si256((__m256i *)(void *)to, first);
        if (i + 1 < rows)
            _mm256_storeu_si256((__m256i *)(void *)(to + f->ldc), second);
    } else if (f->n == HALF) {
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(first));
        if (i + 1 < rows)
            _mm_storeu_si128((__m128i *)(void *)(to + f->ldc), _mm256_castsi256_si128(second));
    } else {
        const __mmask32 k = (__mmask32)(c->k[0] | (uint32_t)c->k[1] << HALF);
        _mm256_mask_storeu_epi8(to, k, first);
        if (i + 1 < rows)
            _mm256_mask_storeu_epi8(to + f->ldc, k, second);
    }
}

/* Sixteen columns of a row as float32. */
OCT_INLINE void store_real(const oct_qout *o, const columns *c, const size_t h, __m512i sums, float *to)
{
    __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), c->mult[h]);
    if (o->bias)
        y = _mm512_add_ps(y, c->bias[h]);
    if (o->clamp)
        y = _mm512_min_ps(_mm512_set1_ps(o->hi), _mm512_max_ps(_mm512_set1_ps(o->lo), y));
    if (c->k[h] == 0xffff)
        _mm512_storeu_ps(to + h * HALF, y);
    else
        _mm512_mask_storeu_ps(to + h * HALF, c->k[h], y);
}

/* m rows from `at` on, of which the first `rows` exist. */
OCT_INLINE void finished(const size_t m, const bool wide, const uint8_t flip, const bool fetch, const oct_qfused *f,
                         const columns *c, size_t at, size_t rows)
{
    __m512i v[ROWS][2];
#pragma GCC unroll 8
    for (size_t i = 0; i < m; i++) {
        v[i][0] = c->add[0];
        v[i][1] = c->add[1];
    }
    products(m, wide, flip, fetch, f->ahead, f->taps, f->kc, f->a + at * f->taps, f->b, v);
    if (f->out->kind == OCT_QOUT_F32) {
        float *to = (float *)f->c + at * f->ldc;
#pragma GCC unroll 8
        for (size_t i = 0; i < m; i++)
            if (i < rows) {
                store_real(f->out, c, 0, v[i][0], to + i * f->ldc);
                if (wide)
                    store_real(f->out, c, 1, v[i][1], to + i * f->ldc);
            }
    } else {
        uint8_t *to = (uint8_t *)f->c + at * f->ldc;
#pragma GCC unroll 4
        for (size_t i = 0; i < m; i += 2)
            if (i < rows)
                store_bytes(wide, f, c, v, i, rows, to);
    }
}

/* The last whole tile fetches the panel that comes next, for which else the first tile of that waits, where it is not
 * in the second-level cache. If all tiles fetched, products in small caches would take 5 % longer. */
OCT_INLINE void run(const bool wide, const uint8_t flip, const oct_qfused *f)
{
    columns c;
    find_columns(f, &c);
    size_t i = 0;
    for (; i + ROWS + ROWS / 2 < f->rows; i += ROWS)
        finished(ROWS, wide, flip, false, f, &c, i, f->rows - i);
    for (; i + ROWS / 2 < f->rows; i += ROWS)
        finished(ROWS, wide, flip, true, f, &c, i, f->rows - i);
    if (i + 2 < f->rows)
        finished(4, wide, flip, false, f, &c, i, f->rows - i);
    else if (i < f->rows)
        finished(2, wide, flip, false, f, &c, i, f->rows - i);
}

void oct_qfused_u8s8_8x32c4__avx512vnni(const oct_qfused *f)
{
    if (f->n > HALF)
        f->flip ? run(true, 0x80, f) : run(true, 0, f);
    else
        f->flip ? run(false, 0x80, f) : run(false, 0, f);
}
