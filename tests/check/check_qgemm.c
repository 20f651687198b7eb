/* tests/check/check_qgemm.c -- 8-bit product and its output pipeline against loops in 64-bit integers. */
#include "check.h"
#include "kernels/qgemm/qgemm_int.h"
#include "kernels/qgemm/qchain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t byte_at(const void *p, size_t i, oct_dtype type)
{
    return type == OCT_S8 ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
}

/* docs/arithmetic.md, Products, in double where that is exact: a product of floats rounded once. */
static void finish(int32_t acc, const oct_qout *o, size_t j, void *c, size_t at)
{
    if (o->kind == OCT_QOUT_S32) {
        ((int32_t *)c)[at] = acc;
        return;
    }
    float v = (float)((double)(float)acc * (double)o->mult[j]);
    if (o->kind == OCT_QOUT_F32) {
        if (o->bias)
            v += o->bias[j];
        ((float *)c)[at] = o->clamp ? fminf(fmaxf(v, o->lo), o->hi) : v;
        return;
    }
    const uint8_t q = (uint8_t)(int)(nearbyintf(fminf(fmaxf(v, o->lo), o->hi)) + (float)o->zp);
    ((uint8_t *)c)[at] = o->lut ? o->lut[q] : q;
}

static void random_out(oct_check *t, size_t n, size_t k, oct_qout *o)
{
    float *mult = oct_check_buffer(t, n * 4), *bias = oct_check_buffer(t, n * 4);
    uint8_t *lut = oct_check_buffer(t, 256);
    oct_fill_f32(t, bias, n);
    oct_fill_bytes(t, lut, 256);
    /* Up to the largest below 1, where values pass 16 bits and not 32; or beyond. */
    const size_t size = oct_check_below(t, 8);
    for (size_t j = 0; j < n; j++)
        mult[j] = size == 0   ? nextafterf(1, 0)
                  : size == 1 ? (float)(j % 9) * 0.5f
                              : (float)(1 + oct_check_below(t, 1000)) * 1e-5f / (float)(k + 1);
    const uint32_t r = oct_check_random(t);
    *o = (oct_qout){ .mult = mult };
    switch (r % 4) {
    case 0: o->kind = OCT_QOUT_S32; break;
    case 1:
        *o = (oct_qout){
            .kind = OCT_QOUT_F32, .mult = mult, .bias = r & 16 ? bias : NULL, .clamp = r & 32, .lo = -1, .hi = 2
        };
        break;
    default:
        if (r % 4 == 2)
            oct_qout_range(o, OCT_QOUT_U8, (int32_t)oct_check_below(t, 256));
        else
            oct_qout_range(o, OCT_QOUT_S8, (int32_t)oct_check_below(t, 256) - 128);
        o->lut = r & 16 ? lut : NULL;
        if (r & 32)
            oct_qout_narrow(o, 0.05f, 0.0f, r & 64 ? 6.0f : INFINITY);
    }
}

/* Weights from all the same to all kinds, so that chains of every length and unsafe pairs come up. */
static void fill_weights(oct_check *t, int8_t *w, size_t n)
{
    const size_t kind = oct_check_below(t, 9), range = (size_t)1 << oct_check_below(t, 8),
                 heavy = 1 + oct_check_below(t, 60);
    for (size_t i = 0; i < n; i++) {
        const int small = (int)oct_check_below(t, 2 * range) - (int)range;
        const int sign = oct_check_below(t, 2) ? 1 : -1;
        w[i] = (int8_t)(kind == 0   ? 127
                        : kind == 1 ? -128
                        : kind == 2 ? (sign > 0 ? 127 : -128)
                        : kind == 3 ? 64 * sign
                        : kind == 4 ? (oct_check_below(t, heavy) ? 0 : -128)
                        : kind < 7  ? (oct_check_below(t, heavy) ? small
                                       : sign > 0                ? 127
                                                                 : -128)
                                    : small);
    }
}

/* Bytes around one of them, from all the same (spread 0) to all there are (8); wrapping. */
static void fill_near(oct_check *t, uint8_t *a, size_t n, int32_t middle, size_t spread, uint8_t flip)
{
    for (size_t i = 0; i < n; i++)
        a[i] = (uint8_t)((uint32_t)middle + (oct_check_random(t) >> 8) % (1u << spread) - (1u << spread) / 2) ^ flip;
}

/* By the kernel of that name, or by any. */
static void check_shape(oct_check *t, const char *kernel, size_t m, size_t n, size_t k)
{
    const uint32_t r = oct_check_random(t);
    const oct_dtype at = r & 1 ? OCT_S8 : OCT_U8, bt = r & 2 ? OCT_S8 : OCT_U8;
    void (*fill)(oct_check *, void *, size_t) = r & 4 ? oct_fill_bytes : oct_fill_extremes;
    const int32_t za = (int32_t)oct_check_below(t, 256) - (at == OCT_S8 ? 128 : 0);
    const size_t lda = k + oct_check_below(t, 5), ldc = n + oct_check_below(t, 5), zb_step = r >> 3 & 1;
    oct_qout o;
    random_out(t, n, k, &o);
    const size_t elem = oct_qout_size(o.kind);
    uint8_t *a = oct_check_buffer(t, m * lda), *b = oct_check_buffer(t, k * n);
    int32_t *bias = oct_check_buffer(t, n * 4), *zb = oct_check_buffer(t, n * 4);
    uint8_t *want = oct_check_buffer(t, m * ldc * elem), *got = oct_check_buffer(t, m * ldc * elem);
    fill(t, a, m * lda);
    if (r & 2048) /* around the zero point */
        fill_near(t, a, m * lda, za, oct_check_below(t, 9), 0);
    if (r & 128)
        fill_weights(t, (int8_t *)b, k * n);
    else
        fill(t, b, k * n);
    for (size_t j = 0; j < n; j++) {
        bias[j] = (int32_t)oct_check_random(t) >> 12;
        zb[j] = (int32_t)oct_check_below(t, 256) - (bt == OCT_S8 ? 128 : 0);
    }
    const bool with_zb = r & 16, with_bias = r & 32;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            int64_t sum = with_bias ? bias[j] : 0;
            for (size_t p = 0; p < k; p++)
                sum +=
                    (byte_at(a, i * lda + p, at) - za) * (byte_at(b, p * n + j, bt) - (with_zb ? zb[j * zb_step] : 0));
            finish((int32_t)(uint32_t)sum, &o, j, want, i * ldc + j);
        }
    oct_qgemm p;
    oct_err err = OCT_ERR_INIT;
    if (kernel)
        oct_choice_want(kernel, NULL);
    else
        oct_check_want_any(t, true);
    const oct_status s = oct_qgemm_prepare(&p, r & 512 ? m : 0, n, k, at, bt, 2, &err);
    oct_choice_want(NULL, NULL);
    if (s != OCT_OK) {
        printf("# FAIL qgemm %s\n", err.text);
        t->failed++;
        return;
    }
    p.fast_pack = r & 256;
    p.backwards = r & 1024;
    void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
    oct_qgemm_pack(&p, b, (ptrdiff_t)n, 1, with_zb ? zb : NULL, zb_step, packed);
    oct_qgemm_run(&p, r & 64 ? t->pool : NULL, m, a, lda, za, packed, with_bias ? bias : NULL, &o, got, ldc, scratch);
    oct_check_same(t, want, got, m * ldc * elem, elem, "%s %s m=%zu n=%zu k=%zu types %s %s kind %d flags %x",
                   p.kernel->name, p.qout->name, m, n, k, oct_dtype_name(at), oct_dtype_name(bt), o.kind, r & 4095);
    oct_check_release(t);
}

typedef struct kernel_case {
    const oct_qgemm_kernel *k;
    size_t m, n, taps, kc;
    const int8_t *w; /* [taps][kc][nr] */
} kernel_case;

static void chain_rows(const void *source, size_t k, size_t n, int8_t w[][OCT_QCHAIN_COLUMNS])
{
    const kernel_case *c = source;
    memcpy(w, c->w + k * OCT_QCHAIN_COLUMNS, n * sizeof *w);
}

/* The choice of a quad for a chain, on random loads, is what its formula says, and the same on every CPU. */
static void check_best(oct_check *t)
{
    enum { LOADS = OCT_QCHAIN_LOADS, MOST = OCT_QCHAIN_QUADS };
    uint8_t(*loads)[LOADS] = oct_check_buffer(t, sizeof *loads * MOST), *room = oct_check_buffer(t, LOADS);
    uint8_t list[MOST], fit[MOST];
    const size_t all = oct_check_below(t, MOST + 1), heavy = 1 + oct_check_below(t, 129),
                 begin = oct_check_below(t, all + 1);
    size_t n = 0, want = 0, end = begin, from = begin;
    int32_t most = INT32_MIN;
    for (size_t j = 0; j < LOADS; j++)
        room[j] = (uint8_t)(oct_check_below(t, 4) ? 128 - oct_check_below(t, 40) : oct_check_below(t, 129));
    for (size_t i = 0; i < all; i++) {
        list[i] = (uint8_t)oct_check_below(t, all);
        for (size_t j = 0; j < LOADS; j++)
            loads[i][j] =
                (uint8_t)(oct_check_below(t, 60) ? oct_check_below(t, heavy) * room[j] / 200 : oct_check_below(t, 129));
    }
    for (; end < all && n < OCT_QCHAIN_MOST; end++) {
        bool fits = true;
        int32_t sum = 0;
        for (size_t j = 0; j < LOADS; j++) {
            const int32_t l = loads[list[end]][j], r = room[j];
            fits &= l <= r;
            sum += l * (2 * r - 64 - (l + l % 2)) / 2;
        }
        if (!fits)
            continue;
        want = sum > most ? n : want;
        most = sum > most ? sum : most;
        fit[n++] = list[end];
    }
    const size_t got = oct_qchain_best_select(oct_isa_active())((const uint8_t(*)[LOADS])loads, room, list, &from, all);
    const uint32_t wants[2] = { (uint32_t)(n ? end - n + want : all), (uint32_t)(end - n) },
                   gots[2] = { (uint32_t)got, (uint32_t)from };
    oct_check_same(t, wants, gots, sizeof gots, sizeof *gots, "the best of %zu quads, and where those begin that fit",
                   all - begin);
    if (from == end - n)
        oct_check_same(t, fit, list + from, n, 1, "those of %zu quads that fit", all - begin);
    oct_check_release(t);
}

/* Every quad of a chained panel is read inside the copy of the rows: the kernel does not look. */
static void check_quads(oct_check *t, size_t depth, const int8_t *panel)
{
    const oct_qchain_panel *head = (const oct_qchain_panel *)(const void *)panel;
    const uint8_t *at = (const uint8_t *)(head + 1);
    bool some = false;
    for (size_t k = 0; k < depth; k += OCT_QCHAIN_DEPTH) {
        const oct_qchain_segment *s = (const oct_qchain_segment *)(const void *)at;
        const oct_qchain_quad *q = (const oct_qchain_quad *)(const void *)(s + 1);
        size_t n = 0;
        for (size_t kind = 0; kind < OCT_QCHAIN_KINDS; kind++)
            for (size_t i = 0; i < s->units[kind] * oct_qchain_quads(kind); i++, n++) {
                const bool shuffled = kind >= OCT_QCHAIN_FORMS;
                some |= shuffled;
                bool inside = q[n].k < depth && q[n].k % (shuffled ? OCT_QCHAIN_CHUNK : 4) == 0;
                for (size_t b = 0; b < 4 && shuffled; b++)
                    inside &= q[n].pick[b] < OCT_QCHAIN_CHUNK;
                if (!inside) {
                    printf("# FAIL quad %zu of kind %zu reads from %u of a row of %zu\n", n, kind, (unsigned)q[n].k,
                           depth);
                    t->failed++;
                }
            }
        at += sizeof *s + oct_qchain_table(n) + n * 64;
    }
    if (some != head->shuffled) {
        printf("# FAIL a panel of %zu values of k says that %s unit is shuffled\n", depth, some ? "no" : "some");
        t->failed++;
    }
}

/* What the chain kernel says of rows as they lie, and of rows copied as the tile walk copies them. */
static void check_chain(oct_check *t, const oct_qgemm_kernel *k, size_t m, size_t depth)
{
    enum { MR = 4, HALF = OCT_QCHAIN_COLUMNS / 2 };
    const bool doubled = oct_check_below(t, 3) == 0;
    const size_t columns = doubled ? HALF : OCT_QCHAIN_COLUMNS,
                 tile = doubled ? (m + 1) / 2 * OCT_QCHAIN_COLUMNS : m * OCT_QCHAIN_COLUMNS;
    const size_t size = 1024 + depth * 40 + (depth / OCT_QCHAIN_DEPTH + 1) * 300, padded = (depth + 15) / 16 * 16;
    const size_t pitch = padded + oct_check_below(t, 40);
    int8_t *w = oct_check_buffer(t, depth * OCT_QCHAIN_COLUMNS), *panel = oct_check_buffer(t, size);
    uint8_t *a = oct_check_buffer(t, m * pitch), *copy = oct_check_buffer(t, m * padded);
    int32_t *start = oct_check_buffer(t, OCT_QCHAIN_COLUMNS * 4);
    int32_t *got = oct_check_buffer(t, tile * 4), *want = oct_check_buffer(t, tile * 4);
    const uint8_t **rows = oct_check_buffer(t, (m + MR) * sizeof *rows);
    const uint8_t flip = oct_check_below(t, 2) ? 0x80 : 0;
    const kernel_case c = { .w = w };
    uint64_t cost;
    fill_weights(t, w, depth * OCT_QCHAIN_COLUMNS);
    if (oct_check_below(t, 2)) /* A at its largest, after the flip */
        memset(a, 0xff ^ flip, m * pitch);
    else
        oct_fill_extremes(t, a, m * pitch);
    for (size_t i = 0; i < m; i++)
        rows[i] = a + i * pitch;
    for (size_t j = 0; j < OCT_QCHAIN_COLUMNS; j++)
        start[j] = j < columns ? (int32_t)oct_check_random(t) >> oct_check_below(t, 32) : start[j - columns];
    for (size_t i = 0; doubled && i < depth * OCT_QCHAIN_COLUMNS; i++)
        w[i] = i % OCT_QCHAIN_COLUMNS < HALF ? w[i] : w[i - HALF];
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < columns; j++) {
            uint32_t sum = (uint32_t)start[j];
            for (size_t q = 0; q < depth; q++)
                sum += (uint32_t)((rows[i][q] ^ flip) * w[q * OCT_QCHAIN_COLUMNS + j]);
            want[i * columns + j] = (int32_t)sum;
        }
    const bool packed = oct_qchain_pack(chain_rows, &c, depth, doubled, size, panel, &cost);
    if (packed) {
        check_quads(t, depth, panel);
        /* With several taps a row lies in as many parts. */
        const size_t taps = depth % 48 == 0 ? 3 : 1;
        const uint8_t **parts = oct_check_buffer(t, (m + MR) * taps * sizeof *parts);
        for (size_t i = 0; i < m; i++)
            for (size_t tap = 0; tap < taps; tap++)
                parts[(i / MR * taps + tap) * MR + i % MR] = rows[i] + depth / taps * tap;
        oct_qchain_copy(m, MR, taps, depth / taps, parts, flip, copy);
        k->chain(m, depth, &(oct_qchain_rows){ copy, OCT_QCHAIN_CHUNK, m * OCT_QCHAIN_CHUNK }, panel, start, got);
        oct_check_same(t, want, got, m * columns * 4, 4, "%s m=%zu depth=%zu columns=%zu taps=%zu flip %x", k->name, m,
                       depth, columns, taps, flip);
        for (size_t i = 0; i < m * pitch; i++)
            a[i] ^= flip;
        k->chain(m, depth, &(oct_qchain_rows){ a, pitch, OCT_QCHAIN_CHUNK }, panel, start, got);
        oct_check_same(t, want, got, m * columns * 4, 4, "%s m=%zu depth=%zu columns=%zu rows %zu apart", k->name, m,
                       depth, columns, pitch);
    } else {
        printf("# FAIL %s: a panel of %zu values of k has no room\n", k->name, depth);
        t->failed++;
    }
    oct_check_release(t);
}

/* The plain panel of the weights. */
static int8_t *panel_of(oct_check *t, const kernel_case *c)
{
    const size_t nr = c->k->nr, kr = c->k->kr, groups = (c->kc + kr - 1) / kr, taps = c->taps, kc = c->kc;
    int8_t *b = oct_check_buffer(t, taps * groups * kr * nr);
    memset(b, 0, taps * groups * kr * nr);
    for (size_t p = 0; p < taps; p++)
        for (size_t q = 0; q < kc; q++)
            for (size_t j = 0; j < nr; j++) {
                const size_t in = q % kr;
                const size_t at = c->k->order == OCT_QGEMM_PLAIN ? j * kr + in : in % 2 * nr * 2 + j * 2 + in / 2;
                b[(p * groups + q / kr) * kr * nr + at] = c->w[(p * kc + q) * nr + j];
            }
    return b;
}

/* Every kernel the CPU has, on its own: taps, every depth tail, both signs of A. */
static void check_kernel(oct_check *t, kernel_case c)
{
    const size_t mr = c.k->mr, nr = c.k->nr;
    int8_t *w = oct_check_buffer(t, c.taps * c.kc * nr);
    int32_t *got = oct_check_buffer(t, mr * nr * 4), *want = oct_check_buffer(t, mr * nr * 4);
    const uint8_t **rows = oct_check_buffer(t, mr * c.taps * sizeof *rows);
    const uint8_t flip = oct_check_below(t, 2) ? 0x80 : 0;
    const bool loud = oct_check_below(t, 2); /* A at its largest, after the flip */
    fill_weights(t, w, c.taps * c.kc * nr);
    c.w = w;
    const int8_t *b = panel_of(t, &c);
    /* Rows of a tap equally far from each other, or one of them elsewhere; beyond m they repeat one that exists, as the
     * tile walk has it. */
    for (size_t p = 0; p < c.taps; p++) {
        const size_t pitch = c.kc + oct_check_below(t, 70), odd = oct_check_below(t, 2 * mr);
        uint8_t *block = oct_check_buffer(t, (c.m - 1) * pitch + c.kc), *apart = oct_check_buffer(t, c.kc);
        for (size_t i = 0; i < mr; i++) {
            uint8_t *row = i >= c.m ? (uint8_t *)rows[p * mr + i - 1] : i == odd ? apart : block + i * pitch;
            if (i < c.m && loud)
                memset(row, (c.k->a == OCT_S8 ? 0x80 : 0xff) ^ flip, c.kc);
            else if (i < c.m)
                oct_fill_extremes(t, row, c.kc);
            rows[p * mr + i] = row;
        }
    }
    for (size_t i = 0; i < c.m; i++)
        for (size_t j = 0; j < c.n; j++) {
            uint32_t sum = 0;
            for (size_t p = 0; p < c.taps; p++)
                for (size_t q = 0; q < c.kc; q++) {
                    const uint8_t byte = rows[p * mr + i][q] ^ flip;
                    sum += (uint32_t)(byte_at(&byte, 0, c.k->a) * w[(p * c.kc + q) * nr + j]);
                }
            want[i * nr + j] = (int32_t)sum;
        }
    c.k->fn(c.m, c.n, c.taps, c.kc, rows, flip, b, got);
    for (size_t i = 0; i < c.m; i++)
        oct_check_same(t, want + i * nr, got + i * nr, c.n * 4, 4, "%s m=%zu n=%zu taps=%zu kc=%zu row %zu flip %x",
                       c.k->name, c.m, c.n, c.taps, c.kc, i, flip);
    oct_check_release(t);
}

/* A panel of a row kernel. */
static uint8_t *row_panel(oct_check *t, const int8_t *w, bool small, size_t kc, size_t columns)
{
    const size_t quads = small ? (kc + 7) / 8 * 2 : (kc + 3) / 4;
    const int bias = small ? 64 : 128;
    uint8_t *b = oct_check_buffer(t, quads * 4 * columns);
    memset(b, bias, quads * 4 * columns);
    for (size_t k = 0; k < kc; k++)
        for (size_t j = 0; j < columns; j++)
            b[(k / 4 * columns + j) * 4 + k % 4] = (uint8_t)(w[k * columns + j] + bias);
    return b;
}

/* The kernel of single rows: A of all sizes, from the base on and around it. */
static void check_row(oct_check *t, const oct_qrow_kernel *k, size_t kc)
{
    const size_t columns = 16 * (1 + oct_check_below(t, 4)), spread = oct_check_below(t, 9);
    const uint8_t flip = oct_check_below(t, 2) ? 0x80 : 0;
    const int32_t base = oct_check_below(t, 2) ? 128 : (int32_t)oct_check_below(t, 256);
    int8_t *w = oct_check_buffer(t, kc * columns);
    uint8_t *a = oct_check_buffer(t, kc);
    int32_t *got = oct_check_buffer(t, columns * 4), *want = oct_check_buffer(t, columns * 4);
    fill_weights(t, w, kc * columns);
    const bool small = oct_check_below(t, 2);
    for (size_t i = 0; i < kc * columns && small; i++)
        w[i] = w[i] > 64 ? 64 : w[i] < -64 ? -64 : w[i];
    if (spread == 0)
        memset(a, (oct_check_below(t, 2) ? 0xff : 0) ^ flip, kc);
    else if (spread == 1)
        oct_fill_extremes(t, a, kc);
    else
        fill_near(t, a, kc, base, spread - 1, flip);
    for (size_t j = 0; j < columns; j++) {
        uint32_t sum = 0;
        for (size_t q = 0; q < kc; q++)
            sum += (uint32_t)(((a[q] ^ flip) - base) * w[q * columns + j]);
        want[j] = (int32_t)sum;
    }
    const size_t more = k->count(small, a, kc, flip, base);
    oct_qrow r = { .small = small,
                   .first = oct_check_buffer(t, (kc + 15) / 16 * 16),
                   .further = oct_check_buffer(t, more * sizeof *r.further) };
    k->split(a, kc, flip, base, &r);
    t->cases++;
    if (r.more != more || (base == 128 && more > 2 * r.units)) {
        printf("# FAIL %s: %zu parts, counted %zu\n", k->name, r.more, more);
        t->failed++;
    }
    k->run(&r, columns, row_panel(t, w, small, kc, columns), got);
    oct_check_same(t, want, got, columns * 4, 4, "%s columns=%zu kc=%zu base %d spread %zu flip %x small %d", k->name,
                   columns, kc, base, spread, flip, small);
    oct_check_release(t);
}

/* Every row is sorted in once in each chunk, and no class is too narrow for it. */
static bool sorted_well(const oct_qclass *c, size_t m, size_t chunks)
{
    bool ok = true;
    for (size_t w = 0; w < chunks; w++) {
        bool seen[OCT_QCLASS_ROWS] = { false };
        size_t rows = 0;
        for (size_t i = 0; i < OCT_QCLASSES; i++)
            rows += c->count[w][i];
        for (size_t i = 0; i < m && rows == m; i++) {
            const size_t row = c->to[w * m + i] / (OCT_QCLASS_COLUMNS * 4);
            ok &= row < m && !seen[row];
            seen[row < m ? row : 0] = true;
        }
        ok &= rows == m;
    }
    return ok;
}

/* Rows by class: weights of every bias, A of all sizes; each row of A in its own memory, nothing behind it. */
static void check_class(oct_check *t, const oct_qclass_kernel *k, size_t m, size_t kc)
{
    enum { N = OCT_QCLASS_COLUMNS };
    const size_t chunks = oct_qclass_chunks(kc), kind = oct_check_below(t, 4),
                 range = (size_t)1 << oct_check_below(t, 8);
    const uint8_t flip = oct_check_below(t, 2) ? 0x80 : 0, za = (uint8_t)oct_check_below(t, 256);
    int8_t *w = oct_check_buffer(t, kc * N);
    uint8_t *a = oct_check_buffer(t, m * kc), *panel = oct_check_buffer(t, chunks * OCT_QCLASS_CHUNK * N);
    const uint8_t **rows = oct_check_buffer(t, m * sizeof *rows);
    int32_t *got = oct_check_buffer(t, m * N * 4), *want = oct_check_buffer(t, m * N * 4),
            *sum = oct_check_buffer(t, m * 4);
    int32_t add[N];
    uint32_t bias = 1;
    fill_weights(t, w, kc * N);
    for (size_t i = 0; i < kc * N; i++) {
        w[i] = (int8_t)(kind == 0 ? w[i] : w[i] % (int)range);
        const uint32_t size = (uint32_t)(w[i] < 0 ? -w[i] : w[i]);
        bias = size > bias ? size : bias;
    }
    for (size_t j = 0; j < N; j++)
        add[j] = (int32_t)oct_check_random(t) >> oct_check_below(t, 32);
    memset(panel, (int)bias, chunks * OCT_QCLASS_CHUNK * N);
    for (size_t q = 0; q < kc; q++)
        for (size_t j = 0; j < N; j++)
            panel[(q / 4 * N + j) * 4 + q % 4] = (uint8_t)(w[q * N + j] + (int)bias);
    for (size_t i = 0; i < m; i++) { /* rows of one size, or of all */
        if (kind == 3)
            oct_fill_extremes(t, a + i * kc, kc);
        else
            fill_near(t, a + i * kc, kc, za, kind == 1 ? oct_check_below(t, 9) : m % 9, flip);
        rows[i] = a + i * kc;
    }
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < N; j++) {
            uint32_t v = (uint32_t)add[j];
            for (size_t q = 0; q < kc; q++)
                v += (uint32_t)(((a[i * kc + q] ^ flip) - za) * w[q * N + j]);
            want[i * N + j] = (int32_t)v;
        }
    size_t bytes;
    oct_qclass c = { .sum = sum };
    if (oct_qclass_carve(m, kc, NULL, NULL, &bytes)) {
        oct_qclass_carve(m, kc, oct_check_buffer(t, bytes), &c, &bytes);
        k->sort(m, kc, rows, flip, za, oct_qclass_limit(bias), &c);
        k->run(m, kc, bias, &c, panel, add, got);
    }
    t->cases++;
    if (!sorted_well(&c, m, chunks)) {
        printf("# FAIL %s m=%zu kc=%zu: rows are lost\n", k->name, m, kc);
        t->failed++;
    }
    oct_check_same(t, want, got, m * N * 4, 4, "%s m=%zu kc=%zu za %d bias %u kind %zu flip %x", k->name, m, kc, za,
                   (unsigned)bias, kind, flip);
    oct_check_release(t);
}

/* Sums beyond 2^31 wrap; they do not saturate. */
static void check_wrap(oct_check *t)
{
    enum { K = 70000, N = 3 };
    uint8_t *a = oct_check_buffer(t, K);
    int8_t *b = oct_check_buffer(t, K * N);
    int32_t got[N], want[N];
    const oct_qout o = { .kind = OCT_QOUT_S32 };
    memset(a, 255, K);
    memset(b, 127, K * N);
    for (size_t j = 0; j < N; j++)
        want[j] = (int32_t)(uint32_t)(INT64_C(255) * 127 * K);
    oct_qgemm p;
    oct_err err = OCT_ERR_INIT;
    if (oct_qgemm_prepare(&p, 1, N, K, OCT_U8, OCT_S8, 1, &err) == OCT_OK) {
        void *packed = oct_check_buffer(t, p.packed_size), *scratch = oct_check_buffer(t, p.scratch_size);
        oct_qgemm_pack(&p, b, N, 1, NULL, 0, packed);
        oct_qgemm_run(&p, NULL, 1, a, K, 0, packed, NULL, &o, got, N, scratch);
    }
    oct_check_same(t, want, got, sizeof got, 4, "%s wraps", p.kernel->name);
    oct_check_release(t);
}

void check_qgemm(oct_check *t)
{
    check_wrap(t);
    for (size_t round = 0; round < 300; round++)
        check_best(t);
    size_t count;
    const oct_qgemm_kernel *k = oct_qgemm_kernels(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t m = 1; k[i].fn && m <= k[i].mr && (k[i].isa & ~oct_isa_active()) == 0; m++)
            for (size_t n = 1; n <= k[i].nr; n++)
                check_kernel(t,
                             (kernel_case){ &k[i], m, n, 1 + (m + n) % 3, 1 + (m * 7 + n * 3) % (n % 4 ? 37 : 211) });
    for (size_t i = 0; i < count; i++)
        for (size_t round = 0; round < 500 && k[i].chain && (k[i].isa & ~oct_isa_active()) == 0; round++)
            check_chain(t, &k[i], 1 + round % 9, round % 10 ? 1 + round % 100 : 1 + oct_check_below(t, 1200));
    for (size_t i = 0; i < count; i++)
        for (size_t round = 0; round < 400 && k[i].row && (k[i].isa & ~oct_isa_active()) == 0; round++)
            check_row(t, k[i].row, round % 10 ? 1 + round : 1 + oct_check_below(t, 2200));
    for (size_t i = 0; i < count; i++)
        for (size_t round = 0; round < 600 && k[i].sorted && (k[i].isa & ~oct_isa_active()) == 0; round++)
            check_class(t, k[i].sorted, 1 + round % OCT_QCLASS_ROWS,
                        round % 10 ? 1 + round % 150 : 1 + oct_check_below(t, 1200));
    /* Every number of tiles, their heights, and steps of k with what is left of the last. */
    for (size_t i = 0; i < count; i++)
        for (size_t m = 1; m <= 100 && k[i].block && (k[i].isa & ~oct_isa_active()) == 0; m++)
            check_shape(t, k[i].name, m, 1 + oct_check_below(t, m > 16 && m % 4 ? 40 : 150),
                        oct_check_below(t, m % 3 ? 70 : 400));
    static const size_t depths[] = { 0, 1, 2, 3, 4, 5, 16, 20, 31, 32, 64, 257, 1030 };
    for (size_t i = 0; i < OCT_COUNT(depths); i++)
        for (size_t n = 0; n < 60; n++)
            check_shape(t, NULL, n % 4 == 1 ? 1 : 1 + oct_check_below(t, n % 8 == 0 ? 220 : 17),
                        1 + (n < 50 ? n : oct_check_below(t, 150)), depths[i]);
    /* One row whose columns take several tiles, from either end. */
    for (size_t i = 0; i < 60; i++)
        check_shape(t, NULL, 1, 1 + oct_check_below(t, 1200), oct_check_below(t, 150));
}

/* Pipelines on accumulators of every size, against finish(). */
static void check_pipeline(oct_check *t, const oct_qout_kernel *k, size_t m, size_t n)
{
    const size_t lda = n + oct_check_below(t, 3), ldc = n + oct_check_below(t, 3);
    oct_qout o;
    random_out(t, n, 0, &o);
    const size_t elem = oct_qout_size(o.kind);
    int32_t *acc = oct_check_buffer(t, m * lda * 4), *add = oct_check_buffer(t, n * 4),
            *row = oct_check_buffer(t, m * 4);
    int32_t *mul = oct_check_buffer(t, n * 4);
    uint8_t *want = oct_check_buffer(t, m * ldc * elem), *got = oct_check_buffer(t, m * ldc * elem);
    const bool rows = oct_check_below(t, 2), adds = oct_check_below(t, 2);
    for (size_t i = 0; i < m * lda; i++)
        acc[i] = (int32_t)oct_check_random(t) >> oct_check_below(t, 32);
    for (size_t i = 0; i < n; i++) {
        add[i] = (int32_t)oct_check_random(t) >> oct_check_below(t, 32);
        mul[i] = (int32_t)oct_check_below(t, 256) - 128;
    }
    for (size_t i = 0; i < m; i++)
        row[i] = (int32_t)oct_check_random(t) >> 8;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            finish((int32_t)(uint32_t)((int64_t)acc[i * lda + j] + (adds ? add[j] : 0) +
                                       (rows ? (int64_t)row[i] * mul[j] : 0)),
                   &o, j, want, i * ldc + j);
    k->fn(m, n, acc, lda, adds ? add : NULL, rows ? row : NULL, mul, &o, got, ldc);
    oct_check_same(t, want, got, m * ldc * elem, elem, "%s m=%zu n=%zu kind %d", k->name, m, n, o.kind);
    oct_check_release(t);
}

void check_qout(oct_check *t)
{
    size_t count;
    const oct_qout_kernel *k = oct_qout_kernels(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t n = 1; n < 80 && (k[i].isa & ~oct_isa_active()) == 0; n++)
            for (size_t m = 1; m < 8; m++)
                check_pipeline(t, &k[i], m, n);
}
