/* lib/kernels/qgemm/qgemm_u8s8_32x32c64_amx.c -- 32 rows by 32 columns in 2x2 tiles, tdpbusd and tdpbssd: 64 products
 * and their sum in 32 bits, wrapping, exact. All of k in one pass; the last step of 32 by 32 sums is spread over the
 * products of the next. */
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/simd.h"
#include "kernels/tiles.h"

#include <string.h>

enum { HALF = OCT_TILE_ROWS, WIDTH = 2 * HALF, TILE = 1024, LINE = 64 };

/* What is the same for all rows of 32 columns, 16 at a time. */
typedef struct columns {
    __m512i colmul[2];
    __m512 mult[2], bias[2];
    size_t from, n; /* the first of them, and how many */
    __mmask16 k[2];
} columns;

/* Rows of sums that await the last step. */
typedef struct pending {
    const int32_t *sums;   /* s32[end][WIDTH] */
    uint8_t *const *to;    /* of these rows */
    const int32_t *rowsum; /* likewise, or NULL */
    size_t row, end;       /* those that are left */
    const columns *columns;
    const oct_qout *out;
} pending;

static void find_columns(const oct_qblock *b, size_t from, size_t n, columns *c)
{
    const oct_qout *o = b->out;
    c->from = from;
    c->n = n;
    for (size_t v = 0; v < 2; v++) {
        const size_t at = v * HALF, left = n > at ? n - at : 0;
        c->k[v] = left >= HALF ? 0xffff : (__mmask16)((1u << left) - 1);
        c->colmul[v] = b->rowsum ? _mm512_maskz_loadu_epi32(c->k[v], b->colmul + from + at) : _mm512_setzero_si512();
        c->mult[v] = o->mult ? _mm512_maskz_loadu_ps(c->k[v], o->mult + from + at) : _mm512_setzero_ps();
        c->bias[v] = o->bias ? _mm512_maskz_loadu_ps(c->k[v], o->bias + from + at) : _mm512_setzero_ps();
    }
}

/* The rows that a call finishes. What is written to them cannot be told from *pending, so its fields are read once. */
typedef struct part {
    const int32_t *sums, *rowsum;
    uint8_t *const *to;
    size_t rows, from;
} part;

OCT_INLINE part part_of(pending *p, size_t rows)
{
    const size_t row = p->row, n = p->end - row < rows ? p->end - row : rows;
    p->row = row + n;
    return (part){ .sums = p->sums + row * WIDTH,
                   .rowsum = p->rowsum ? p->rowsum + row : NULL,
                   .to = p->to + row,
                   .rows = n,
                   .from = p->columns->from };
}

OCT_INLINE __m512i sum_at(const part *a, const __m512i colmul[2], size_t row, size_t v)
{
    const __m512i sum = _mm512_loadu_si512(a->sums + row * WIDTH + v * HALF);
    return a->rowsum ? _mm512_add_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(a->rowsum[row]), colmul[v])) : sum;
}

/* The last step of that many rows. */
static void finish_s32(pending *p, size_t rows)
{
    const columns *c = p->columns;
    const __mmask16 k[] = { c->k[0], c->k[1] };
    const __m512i colmul[] = { c->colmul[0], c->colmul[1] };
    const part a = part_of(p, rows);
    for (size_t row = 0; row < a.rows; row++)
        if (a.to[row]) {
            int32_t *to = (int32_t *)(void *)a.to[row] + a.from;
            _mm512_mask_storeu_epi32(to, k[0], sum_at(&a, colmul, row, 0));
            _mm512_mask_storeu_epi32(to + HALF, k[1], sum_at(&a, colmul, row, 1));
        }
}

OCT_INLINE void finish_real(const bool biased, const bool clamped, pending *p, size_t rows)
{
    const columns *c = p->columns;
    const __mmask16 k[] = { c->k[0], c->k[1] };
    const __m512i colmul[] = { c->colmul[0], c->colmul[1] };
    const __m512 mult[] = { c->mult[0], c->mult[1] }, bias[] = { c->bias[0], c->bias[1] };
    const __m512 lo = _mm512_set1_ps(p->out->lo), hi = _mm512_set1_ps(p->out->hi);
    const part a = part_of(p, rows);
    for (size_t row = 0; row < a.rows; row++) {
        if (!a.to[row])
            continue;
        float *to = (float *)(void *)a.to[row] + a.from;
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; v++) {
            __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(sum_at(&a, colmul, row, v)), mult[v]);
            y = biased ? _mm512_add_ps(y, bias[v]) : y;
            _mm512_mask_storeu_ps(to + v * HALF, k[v], clamped ? _mm512_min_ps(hi, _mm512_max_ps(lo, y)) : y);
        }
    }
}

static void finish_f32(pending *p, size_t rows)
{
    if (p->out->bias)
        p->out->clamp ? finish_real(true, true, p, rows) : finish_real(true, false, p, rows);
    else
        p->out->clamp ? finish_real(false, true, p, rows) : finish_real(false, false, p, rows);
}

/* The bytes of a table that those of v name: its halves of 128, by their low seven bits. */
OCT_INLINE __m512i look_up(const uint8_t *lut, __m512i v)
{
    const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(lut), v, _mm512_loadu_si512(lut + 64));
    const __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(lut + 128), v, _mm512_loadu_si512(lut + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high);
}

/* Whether the output has its whole range and no value passes 32 bits: saturation then clamps. */
static bool is_whole(const oct_qblock *b)
{
    const oct_qout *o = b->out;
    const int32_t least = o->kind == OCT_QOUT_U8 ? 0 : -128;
    bool whole = o->lo <= (float)(least - o->zp) && o->hi >= (float)(least + 255 - o->zp);
    for (size_t j = b->from; j < b->n && whole; j += HALF) {
        const __mmask16 k = b->n - j < HALF ? (__mmask16)((1u << (b->n - j)) - 1) : 0xffff;
        const __m512 size = _mm512_abs_ps(_mm512_maskz_loadu_ps(k, o->mult + j));
        whole = _mm512_cmp_ps_mask(size, _mm512_set1_ps(1), _CMP_LT_OQ) == 0xffff;
    }
    return whole;
}

/* Two rows of sums, bytes: clamped values take 9 bits and a sign from the zero point, so packing leaves them as they
 * are. */
OCT_INLINE __m512i bytes_of(const bool whole, const bool is_u8, const __m512i v[4], const __m512 mult[2], __m512 lo,
                            __m512 hi, __m512i zp)
{
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i w[4];
#pragma GCC unroll 4
    for (size_t q = 0; q < 4; q++) {
        const __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(v[q]), mult[q % 2]);
        w[q] = _mm512_cvtps_epi32(whole ? y : _mm512_min_ps(hi, _mm512_max_ps(lo, y)));
    }
    const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(w[0], w[1]), zp),
                  second = _mm512_adds_epi16(_mm512_packs_epi32(w[2], w[3]), zp);
    return _mm512_permutexvar_epi32(in_order,
                                    is_u8 ? _mm512_packus_epi16(first, second) : _mm512_packs_epi16(first, second));
}

/* Where a row that goes nowhere is written to. */
OCT_INLINE uint8_t *place_of(uint8_t *to, size_t from, uint8_t *nowhere)
{
    return to ? to + from : nowhere;
}

/* By two rows; a last one twice. full: whole panels. */
OCT_INLINE void finish_bytes(const bool whole, const bool is_u8, const bool full, const uint8_t *lut, pending *p,
                             size_t rows)
{
    const columns *c = p->columns;
    const __mmask32 k = (__mmask32)(c->k[0] | (uint32_t)c->k[1] << HALF);
    const __m512i colmul[] = { c->colmul[0], c->colmul[1] };
    const __m512 mult[] = { c->mult[0], c->mult[1] };
    const __m512 lo = _mm512_set1_ps(p->out->lo), hi = _mm512_set1_ps(p->out->hi);
    const __m512i zp = _mm512_set1_epi16((short)p->out->zp);
    const part a = part_of(p, rows);
    uint8_t nowhere[WIDTH];
    for (size_t row = 0; row < a.rows; row += 2) {
        const size_t other = row + (row + 1 < a.rows);
        const __m512i v[] = { sum_at(&a, colmul, row, 0), sum_at(&a, colmul, row, 1), sum_at(&a, colmul, other, 0),
                              sum_at(&a, colmul, other, 1) };
        const __m512i bytes = bytes_of(whole, is_u8, v, mult, lo, hi, zp), all = lut ? look_up(lut, bytes) : bytes;
        uint8_t *const to[] = { place_of(a.to[row], a.from, nowhere), place_of(a.to[other], a.from, nowhere) };
        if (full) { /* a store without a mask is several times cheaper on some CPUs */
            _mm256_storeu_si256((__m256i *)(void *)to[0], _mm512_castsi512_si256(all));
            _mm256_storeu_si256((__m256i *)(void *)to[1], _mm512_extracti64x4_epi64(all, 1));
        } else {
            _mm256_mask_storeu_epi8(to[0], k, _mm512_castsi512_si256(all));
            _mm256_mask_storeu_epi8(to[1], k, _mm512_extracti64x4_epi64(all, 1));
        }
    }
}

OCT_INLINE void finish_any(const bool whole, const uint8_t *lut, pending *p, size_t rows)
{
    const bool full = p->columns->n == WIDTH;
    if (p->out->kind == OCT_QOUT_U8)
        full ? finish_bytes(whole, true, true, lut, p, rows) : finish_bytes(whole, true, false, lut, p, rows);
    else
        full ? finish_bytes(whole, false, true, lut, p, rows) : finish_bytes(whole, false, false, lut, p, rows);
}

static void finish_clamped(pending *p, size_t rows)
{
    finish_any(false, NULL, p, rows);
}

static void finish_whole(pending *p, size_t rows)
{
    finish_any(true, NULL, p, rows);
}

static void finish_table(pending *p, size_t rows)
{
    finish_any(false, p->out->lut, p, rows);
}

static void finish_whole_table(pending *p, size_t rows)
{
    finish_any(true, p->out->lut, p, rows);
}

typedef void (*finish_fn)(pending *p, size_t rows);

static finish_fn finish_of(const oct_qblock *b)
{
    const oct_qout_kind kind = b->out->kind;
    if (kind == OCT_QOUT_S32 || kind == OCT_QOUT_F32)
        return kind == OCT_QOUT_S32 ? finish_s32 : finish_f32;
    if (is_whole(b))
        return b->out->lut ? finish_whole_table : finish_whole;
    return b->out->lut ? finish_table : finish_clamped;
}

/* Rows of a tile: where they lie, and a copy of what they have under the last step where not all of it may be read. */
typedef struct tile_rows {
    _Alignas(LINE) uint8_t copy[HALF][LINE];
    const uint8_t *x;
    bool copied;
} tile_rows;

static void find_rows(const oct_qblock *b, size_t row, size_t height, tile_rows *r)
{
    const size_t left = b->run % LINE;
    r->x = b->x + row * b->step;
    r->copied = row + height > b->whole && b->steps;
    if (!r->copied)
        return;
    memset(r->copy, 0, sizeof r->copy);
    for (size_t i = 0; i < height; i++)
        memcpy(r->copy[i], r->x + i * b->step + b->at[b->steps - 1], left);
}

#define LOAD_ROWS(t, r, s)                                \
    do {                                                  \
        if ((r)->copied && (s) + 1 == b->steps)           \
            oct_tile_load(t, (r)->copy, LINE);            \
        else                                              \
            oct_tile_load(t, (r)->x + b->at[s], b->step); \
    } while (0)
#define DOT(c, a, w)                  \
    do {                              \
        if (is_signed)                \
            oct_tile_dot_ss(c, a, w); \
        else                          \
            oct_tile_dot_us(c, a, w); \
    } while (0)

/* Lines of the panel that comes next, to be fetched in each step: from one on, how many. */
typedef struct ahead {
    const int8_t *panel; /* NULL: none */
    size_t line, lines;
} ahead;

/* Rows that are finished behind a step: an even number, so that all are by the last. */
static size_t share_of(size_t rows, size_t steps)
{
    return steps ? ((rows + 1) / 2 + steps - 1) / steps * 2 : 0;
}

/* The products of two tiles of rows (one, unless tall) and two of columns (likewise): tiles 0 to 3 are the sums, 4 and
 * 5 rows, 6 and 7 columns. */
OCT_INLINE void products(const bool tall, const bool wide, const bool is_signed, const oct_qblock *b,
                         const tile_rows *r, const int8_t *w, const int32_t *add, ahead next, finish_fn finish,
                         pending *p)
{
    const size_t share = share_of(p->end - p->row, b->steps);
    oct_tile_load(0, add, 0);
    if (wide)
        oct_tile_load(1, add + HALF, 0);
    if (tall)
        oct_tile_load(2, add, 0);
    if (tall && wide)
        oct_tile_load(3, add + HALF, 0);
    for (size_t s = 0; s < b->steps; s++, w += 2 * TILE) {
        LOAD_ROWS(4, &r[0], s);
        oct_tile_load(6, w, LINE);
        DOT(0, 4, 6);
        if (wide) {
            oct_tile_load(7, w + TILE, LINE);
            DOT(1, 4, 7);
        }
        if (tall) {
            LOAD_ROWS(5, &r[1], s);
            DOT(2, 5, 6);
            if (wide)
                DOT(3, 5, 7);
        }
        for (size_t i = 0; next.panel && i < next.lines; i++)
            __builtin_prefetch(next.panel + s * 2 * TILE + (next.line + i) * LINE, 0, 2);
        if (p->row < p->end)
            finish(p, share);
    }
    if (p->row < p->end)
        finish(p, WIDTH);
}

static void products_of(bool tall, bool wide, const oct_qblock *b, const tile_rows *r, const int8_t *w,
                        const int32_t *add, ahead next, finish_fn finish, pending *p)
{
    if (b->is_signed)
        tall ? (wide ? products(true, true, true, b, r, w, add, next, finish, p)
                     : products(true, false, true, b, r, w, add, next, finish, p))
             : (wide ? products(false, true, true, b, r, w, add, next, finish, p)
                     : products(false, false, true, b, r, w, add, next, finish, p));
    else
        tall ? (wide ? products(true, true, false, b, r, w, add, next, finish, p)
                     : products(true, false, false, b, r, w, add, next, finish, p))
             : (wide ? products(false, true, false, b, r, w, add, next, finish, p)
                     : products(false, false, false, b, r, w, add, next, finish, p));
}

/* The same of one tile of rows and up to four of columns, so that as many sums hide each other's latency: tiles 0 to 3
 * are the sums, 4 rows, 5 to 7 columns. w: their panels. */
OCT_INLINE void products_row(const bool is_signed, size_t across, const oct_qblock *b, const tile_rows *r,
                             const int8_t *w, const int32_t *add, const int8_t *next, finish_fn finish, pending p[2])
{
    const size_t share = share_of(p[0].end - p[0].row + p[1].end - p[1].row, b->steps);
    oct_tile_load(0, add, 0);
    oct_tile_load(1, add + HALF, 0);
    oct_tile_load(2, add + WIDTH, 0);
    oct_tile_load(3, add + WIDTH + HALF, 0);
    for (size_t s = 0; s < b->steps; s++, w += 2 * TILE) {
        LOAD_ROWS(4, r, s);
        oct_tile_load(5, w, LINE);
        DOT(0, 4, 5);
        if (across > 1) {
            oct_tile_load(6, w + TILE, LINE);
            DOT(1, 4, 6);
        }
        if (across > 2) {
            oct_tile_load(7, w + b->panel, LINE);
            DOT(2, 4, 7);
        }
        if (across > 3) {
            oct_tile_load(5, w + b->panel + TILE, LINE);
            DOT(3, 4, 5);
        }
        for (size_t i = 0; next && i < 2 * TILE; i += LINE) {
            __builtin_prefetch(next + s * 2 * TILE + i, 0, 2);
            __builtin_prefetch(next + b->panel + s * 2 * TILE + i, 0, 2);
        }
        pending *const which = p[0].row < p[0].end ? &p[0] : &p[1];
        if (which->row < which->end)
            finish(which, share);
    }
    for (size_t i = 0; i < 2; i++)
        if (p[i].row < p[i].end)
            finish(&p[i], WIDTH);
}

/* Up to 16 rows: by two panels. */
static void run_row(const oct_qblock *b, finish_fn finish)
{
    enum { WIDE = 2 * WIDTH };
    _Alignas(LINE) int32_t sums[2][2][HALF * WIDTH], add[WIDE];
    columns c[2][2];
    pending p[2] = { { 0 }, { 0 } };
    tile_rows r;
    find_rows(b, 0, b->rows, &r);
    for (size_t j = b->from, which = 0; j < b->n; j += WIDE, which ^= 1) {
        const size_t n = b->n - j < WIDE ? b->n - j : WIDE, across = (n + HALF - 1) / HALF;
        const int8_t *w = b->b + (j - b->from) / WIDTH * b->panel, *next = j + WIDE < b->n ? w + 2 * b->panel : NULL;
        memset(add, 0, sizeof add);
        memcpy(add, b->add + j, n * sizeof *add);
        OCT_TILES_SETTLE();
        if (b->is_signed)
            products_row(true, across, b, &r, w, add, next, finish, p);
        else
            products_row(false, across, b, &r, w, add, next, finish, p);
        oct_tile_store(0, sums[which][0], WIDTH * sizeof(int32_t));
        oct_tile_store(1, sums[which][0] + HALF, WIDTH * sizeof(int32_t));
        oct_tile_store(2, sums[which][1], WIDTH * sizeof(int32_t));
        oct_tile_store(3, sums[which][1] + HALF, WIDTH * sizeof(int32_t));
        OCT_TILES_SETTLE();
        for (size_t i = 0; i < 2; i++) {
            const size_t at = i * WIDTH, left = n > at ? n - at : 0;
            find_columns(b, j + at, left < WIDTH ? left : WIDTH, &c[which][i]);
            p[i] = (pending){ .sums = sums[which][i],
                              .to = b->to,
                              .rowsum = b->rowsum,
                              .end = left ? b->rows : 0,
                              .columns = &c[which][i],
                              .out = b->out };
        }
    }
    for (size_t i = 0; i < 2; i++)
        if (p[i].row < p[i].end)
            finish(&p[i], WIDTH);
}

/* The second tile's rows may have some in common with the first's: they are stored at their place, `apart` rows on. */
static void store_sums(bool tall, bool wide, size_t apart, int32_t *to)
{
    oct_tile_store(0, to, WIDTH * sizeof *to);
    if (wide)
        oct_tile_store(1, to + HALF, WIDTH * sizeof *to);
    if (tall)
        oct_tile_store(2, to + apart * WIDTH, WIDTH * sizeof *to);
    if (tall && wide)
        oct_tile_store(3, to + apart * WIDTH + HALF, WIDTH * sizeof *to);
    OCT_TILES_SETTLE();
}

/* Tiles are as many as the rows need, all of one height; the last begins earlier where they have more rows than there
 * are. */
void oct_qgemm_u8s8_32x32c64__amx(const oct_qblock *b)
{
    const size_t tiles = (b->rows + HALF - 1) / HALF, height = (b->rows + tiles - 1) / tiles, last = b->rows - height,
                 parts = (tiles + 1) / 2;
    const size_t share = (2 * TILE / LINE + parts - 1) / parts;
    const finish_fn finish = finish_of(b);
    _Alignas(LINE) int32_t sums[2][WIDTH * WIDTH], add[WIDTH];
    columns c[2];
    pending p = { 0 };
    tile_rows r[2];
    oct_tiles_shape shape = oct_tiles_whole;
    for (size_t i = 0; i < (tiles == 1 ? 5 : 6); i++)
        shape.rows[i] = (uint8_t)height;
    oct_tiles_begin_shape(&shape);
    if (tiles == 1) {
        run_row(b, finish);
        oct_tiles_end();
        return;
    }
    for (size_t j = b->from, which = 0; j < b->n; j += WIDTH) {
        const size_t n = b->n - j < WIDTH ? b->n - j : WIDTH;
        const int8_t *w = b->b + (j - b->from) / WIDTH * b->panel;
        memset(add, 0, sizeof add);
        memcpy(add, b->add + j, n * sizeof *add);
        columns *const now = &c[(j - b->from) / WIDTH % 2];
        find_columns(b, j, n, now);
        for (size_t i = 0, done = 0; i < tiles; i += 2, which ^= 1) {
            const bool tall = i + 1 < tiles;
            const size_t at = i * height < last ? i * height : last,
                         apart = tall ? ((i + 1) * height < last ? (i + 1) * height : last) - at : 0;
            find_rows(b, at, height, &r[0]);
            if (tall)
                find_rows(b, at + apart, height, &r[1]);
            OCT_TILES_SETTLE();
            products_of(tall, n > HALF, b, r, w, add,
                        (ahead){ j + WIDTH < b->n ? w + b->panel : NULL, i / 2 * share, share }, finish, &p);
            store_sums(tall, n > HALF, apart, sums[which]);
            p = (pending){ .sums = sums[which],
                           .to = b->to + at,
                           .rowsum = b->rowsum ? b->rowsum + at : NULL,
                           .row = done - at,
                           .end = apart + height,
                           .columns = now,
                           .out = b->out };
            done = at + p.end;
        }
    }
    oct_tiles_end();
    finish(&p, WIDTH);
}
